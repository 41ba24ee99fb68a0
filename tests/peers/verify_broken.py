"""Messages with one fault each, for all that singer-check-tap looks at, and the rule of burler's that finds it."""

from __future__ import annotations

import json
from typing import Any

STATE = {"type": "STATE", "value": {"bookmarks": {}}}
Messages = list[Any]


def schema(value: Any = None, **more: Any) -> dict[str, Any]:
    """A SCHEMA with a field ``v``; ``more`` replaces its parts, None removes one."""
    fields = {"id": {"type": "integer"}, **({} if value is None else {"v": value})}
    made = {
        "type": "SCHEMA",
        "stream": "a",
        "schema": {"type": "object", "properties": fields},
        "key_properties": ["id"],
    }
    return {key: one for key, one in {**made, **more}.items() if one is not None}


def record(**more: Any) -> dict[str, Any]:
    """A row."""
    return {"type": "RECORD", "stream": "a", "record": {"id": 1, **more}}


def valued(value: Any, **said: Any) -> Messages:
    """A row with a value, and what the SCHEMA says of it."""
    return [schema(said), record(v=value), STATE]


def formed(text: str, form: str) -> Messages:
    """A row with a text that is not of a format."""
    return valued(text, type="string", format=form)


def lines(messages: Messages) -> str:
    """The messages as a tap would write them; a text is a line as it is."""
    return "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in messages)


_OPEN = {"type": "object", "properties": {"id": {"type": "integer"}}}

MESSAGES: dict[str, tuple[str, Messages]] = {
    "a line that is no JSON": ("M201", [schema(), record(), "INFO 3 rows", STATE]),
    "an empty line": ("M201", [schema(), record(), "", STATE]),
    "no 'type'": ("M202", [schema(), record(), {"stream": "a"}, STATE]),
    "a line that is no object": ("M202", [schema(), record(), [1], STATE]),
    "RECORD without 'stream'": ("M202", [schema(), record(), {"type": "RECORD", "record": {"id": 2}}, STATE]),
    "RECORD without 'record'": ("M202", [schema(), record(), {"type": "RECORD", "stream": "a"}, STATE]),
    "time_extracted without a zone": ("M210", [schema(), {**record(), "time_extracted": "2024-05-01T00:00:00"}, STATE]),
    "SCHEMA without 'stream'": ("M202", [schema(), record(), schema(stream=None), STATE]),
    "SCHEMA without 'schema'": ("M216", [schema(schema=None), STATE]),
    "SCHEMA without 'key_properties'": ("M216", [schema(key_properties=None), record(), STATE]),
    "bookmark_properties that are no names": ("M216", [schema(bookmark_properties=7), record(), STATE]),
    "STATE without 'value'": ("M202", [schema(), record(), {"type": "STATE"}]),
    "ACTIVATE_VERSION without 'stream'": (
        "M202",
        [schema(), record(), {"type": "ACTIVATE_VERSION", "version": 1}, STATE],
    ),
    "ACTIVATE_VERSION without 'version'": (
        "M212",
        [schema(), record(), {"type": "ACTIVATE_VERSION", "stream": "a"}, STATE],
    ),
    "RECORD before its SCHEMA": ("M204", [record(), schema(), STATE]),
    "RECORD with an empty SCHEMA": ("C107", [schema(schema={}), record(), STATE]),
    "a type that is none": ("C123", valued("x", type="text")),
    "a $ref to nothing": ("C108", [schema({"$ref": "#/definitions/n"}), record(v=1), STATE]),
}
"""Its own checks: what it says it does -> (rule, messages)."""

RECORDS: dict[str, tuple[str, Messages]] = {
    "type": ("M205", valued("x", type="integer")),
    "type: null": ("M205", valued(None, type="string")),
    "type: boolean as integer": ("M205", valued(True, type="integer")),
    "type: 1.5 as integer": ("M205", valued(1.5, type="integer")),
    "type: 1.0 as integer": ("M218", valued(1.0, type="integer")),
    "type, below": ("M205", valued({"b": "x"}, type="object", properties={"b": {"type": "integer"}})),
    "enum": ("M205", valued("c", type="string", enum=["a", "b"])),
    "pattern": ("M205", valued("x1", type="string", pattern="^[a-z]+$")),
    "minLength": ("M205", valued("", type="string", minLength=1)),
    "maxLength": ("M205", valued("four", type="string", maxLength=3)),
    "minimum": ("M205", valued(-1, type="integer", minimum=0)),
    "maximum": ("M205", valued(11, type="integer", maximum=10)),
    "exclusiveMinimum": ("M205", valued(0, type="number", minimum=0, exclusiveMinimum=True)),
    "exclusiveMaximum": ("M205", valued(9, type="number", maximum=9, exclusiveMaximum=True)),
    "multipleOf": ("M205", valued(5, type="integer", multipleOf=2)),
    "required": ("M205", [schema(schema={**_OPEN, "required": ["n"]}), record(), STATE]),
    "additionalProperties: false": (
        "R501",
        [schema(schema={**_OPEN, "additionalProperties": False}), record(n=1), STATE],
    ),
    "additionalProperties": (
        "M205",
        [schema(schema={**_OPEN, "additionalProperties": {"type": "string"}}), record(n=1), STATE],
    ),
    "patternProperties": (
        "M205",
        [schema(schema={**_OPEN, "patternProperties": {"^n": {"type": "string"}}}), record(n=1), STATE],
    ),
    "minProperties": ("M205", valued({}, type="object", minProperties=1)),
    "maxProperties": ("M205", valued({"a": 1, "b": 1}, type="object", maxProperties=1)),
    "dependencies": ("M205", valued({"a": 1}, type="object", dependencies={"a": ["b"]})),
    "items": ("M205", valued([1, "x"], type="array", items={"type": "integer"})),
    "items, a list": ("M205", valued(["x"], type="array", items=[{"type": "integer"}])),
    "additionalItems": ("M205", valued([1, 2], type="array", items=[{"type": "integer"}], additionalItems=False)),
    "minItems": ("M205", valued([], type="array", minItems=1)),
    "maxItems": ("M205", valued([1, 2], type="array", maxItems=1)),
    "uniqueItems": ("M205", valued([1, 1], type="array", uniqueItems=True)),
    "anyOf": ("M205", valued("x", anyOf=[{"type": "integer"}, {"type": "null"}])),
    "oneOf": ("M205", valued(3, oneOf=[{"type": "integer"}, {"type": "number"}])),
    "allOf": ("M205", valued(3, allOf=[{"type": "integer"}, {"maximum": 2}])),
    "not": ("M205", valued(3, **{"not": {"type": "integer"}})),
    "$ref": (
        "M205",
        [
            schema(
                schema={
                    "type": "object",
                    "definitions": {"n": {"type": "string"}},
                    "properties": {"id": {"type": "integer"}, "v": {"$ref": "#/definitions/n"}},
                }
            ),
            record(v=1),
            STATE,
        ],
    ),
    "format: date-time, no zone": ("M217", formed("2024-05-01T00:00:00", "date-time")),
    "format: date-time, a date": ("M217", formed("2024-05-01", "date-time")),
    "format: date-time, a space": ("M219", formed("2024-05-01 00:00:00+00:00", "date-time")),
    "format: date-time, no colon in the zone": ("M205", formed("2024-05-01T00:00:00+0000", "date-time")),
    "format: date-time, no such month": ("M205", formed("2024-13-01T00:00:00Z", "date-time")),
    "format: date-time, no such day": ("M205", formed("2023-02-29T00:00:00Z", "date-time")),
    "format: date-time, 24 h": ("M205", formed("2024-05-01T24:00:00Z", "date-time")),
    "format: date-time, words": ("M205", formed("soon", "date-time")),
    "format: date-time of anyOf": (
        "M205",
        valued("soon", anyOf=[{"type": "string", "format": "date-time"}, {"type": "null"}]),
    ),
    "format: date-time, a number": ("C124", valued(17, type=["string", "integer"], format="date-time")),
    "format: date": ("M205", formed("2024-13-01", "date")),
    "format: time": ("M205", formed("25:00:00", "time")),
    "format: email": ("M205", formed("nobody", "email")),
    "format: ipv4": ("M205", formed("300.1.1.1", "ipv4")),
    "format: ip-address": ("M205", formed("300.1.1.1", "ip-address")),
    "format: ipv6": ("M205", formed("::zz", "ipv6")),
    "format: hostname": ("M205", formed("-a..b", "hostname")),
    "format: host-name": ("M205", formed("a b", "host-name")),
    "format: regex": ("M205", formed("(", "regex")),
}
"""Each record is held against its SCHEMA as of draft 4, with formats: word of the schema -> (rule, messages)."""

KEEPS: dict[str, Messages] = {
    "plain": [schema({"type": "string"}), record(v="x"), STATE],
    "time": [schema({"type": "string", "format": "time"}), record(v="10:00:00"), STATE],
    "email": formed("ada@example.com", "email"),
    "ipv4": formed("127.0.0.1", "ipv4"),
    "ipv6": formed("::1", "ipv6"),
    "hostname": formed("db-1.example.com", "hostname"),
    "regex": formed("^a+$", "regex"),
    "uuid": formed("123e4567-e89b-12d3-a456-426614174000", "uuid"),
    "date-time": formed("2024-05-01T00:00:00.5+02:00", "date-time"),
    "date": formed("2024-02-29", "date"),
    "bookmark_properties, a name": [
        schema(bookmark_properties="id"),
        record(),
        {"type": "STATE", "value": {"bookmarks": {"a": {"id": 1}}}},
    ],
}
"""Nothing is wrong with these."""
