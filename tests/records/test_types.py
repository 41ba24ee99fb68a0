"""The table of column types, row by row, for Arrow."""

from __future__ import annotations

from pathlib import Path

import pytest

import burler
from burler.testing import run_tap

pa = pytest.importorskip("pyarrow", reason="extra 'batch'")

DATE_TIME = {"type": "string", "format": "date-time"}

CASES = [
    # JSON Schema, Arrow
    ({"type": "integer"}, "int64"),
    ({"type": ["null", "integer"], "minimum": -(2**63), "maximum": 2**63 - 1}, "int64"),
    ({"type": "integer", "maximum": 2**64 - 1}, "decimal128(38, 0)"),
    ({"type": "integer", "minimum": -(2**63) - 1}, "decimal128(38, 0)"),
    ({"type": "integer", "exclusiveMaximum": 2**63}, "int64"),
    ({"type": "integer", "exclusiveMaximum": 2**63 + 1}, "decimal128(38, 0)"),
    ({"type": "number"}, "double"),
    ({"type": "number", "multipleOf": 0.01}, "decimal128(38, 2)"),
    ({"type": "number", "multipleOf": 1e-9}, "decimal128(38, 9)"),
    ({"type": "number", "multipleOf": 1e-38}, "decimal128(38, 38)"),
    ({"type": "number", "multipleOf": 1}, "decimal128(38, 0)"),
    ({"type": "number", "multipleOf": 0.05}, "double"),
    ({"type": "number", "multipleOf": 10}, "double"),
    ({"type": ["null", "string"], "format": "singer.decimal"}, "decimal128(38, 18)"),
    ({"type": "string", "format": "singer.decimal", "scale": 4}, "decimal128(38, 4)"),
    ({"type": "boolean"}, "bool"),
    ({"type": ["null", "string"], "maxLength": 5}, "string"),
    (DATE_TIME, "timestamp[us, tz=UTC]"),
    ({"anyOf": [DATE_TIME, {"type": "null"}]}, "timestamp[us, tz=UTC]"),
    ({"type": "string", "format": "date"}, "date32[day]"),
    ({"type": "string", "format": "time"}, "string"),
    ({"type": "string", "format": "uuid"}, "string"),
    ({"type": "string", "contentEncoding": "base64"}, "binary"),
    ({"type": "array", "items": {"type": "integer"}}, "list<element: int64>"),
    ({"type": "array"}, "string"),
    ({"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}, "string"),
    ({"type": "array", "prefixItems": [{"type": "integer"}]}, "string"),
    (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b.c": {"type": "string"}}},
        "struct<a: int64, b.c: string>",
    ),
    (
        {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
        "struct<a: int64>",
    ),
    (
        {"type": "object", "additionalProperties": {"type": "number"}},
        "map<string, double>",
    ),
    ({"type": "object"}, "string"),
    ({"type": "object", "additionalProperties": True}, "string"),
    ({"type": "object", "properties": {}}, "string"),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, "string"),
    ({"type": "object", "patternProperties": {"^x": {"type": "integer"}}}, "string"),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": None}, "string"),
    ({}, "string"),
    (True, "string"),
    ({"type": ["integer", "number"]}, "double"),
    ({"anyOf": [{"type": "integer"}, {"type": "number", "multipleOf": 0.1}]}, "decimal128(38, 1)"),
    ({"type": ["string", "integer"], "format": "date-time"}, "string"),
    ({"type": ["string", "object"], "properties": {"a": {"type": "integer"}}}, "string"),
    ({"type": ["boolean", "integer"]}, "string"),
    ({"oneOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "object"}]}, "string"),
    ({"type": "null"}, "string"),
    ({"enum": ["a", "b", None]}, "string"),
    ({"enum": [1, 2]}, "int64"),
    ({"allOf": [{"type": "string"}, {"format": "date"}]}, "date32[day]"),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "allOf": [{"properties": {"b": {"type": "string"}}}],
        },
        "struct<b: string, a: int64>",
    ),
    ({"type": "string", "allOf": [{"type": "integer"}]}, "int64"),
]


def columns_of(folder: Path, schema: object, rows: str = "{}") -> object:
    """The table in the Arrow file that a run writes."""
    tap = burler.tap("tap-types")
    tap.sync("users", key_properties=[], schema=schema)(lambda: rows.encode())
    run = run_tap(tap, {"batch_config": {"encoding": {"format": "arrow"}, "storage": {"root": str(folder)}}})
    for error in run.result.errors.values():
        raise error
    (message,) = [message for message in run.messages if message["type"] == "BATCH"]
    return pa.ipc.open_file(message["manifest"][0].removeprefix("file://")).read_all()


def test_each_row_of_the_table_and_everything_is_nullable_at_every_depth(tmp_path):
    schema = {"properties": {str(at): node for at, (node, _) in enumerate(CASES)}}
    deep = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    schema["properties"]["deep"] = deep

    made = columns_of(tmp_path, schema).schema

    for at, (node, arrow_type) in enumerate(CASES):
        found = str(made.field(str(at)).type)
        assert found == arrow_type or found.startswith(arrow_type + " ("), node
    assert all(field.nullable for field in made)
    assert made.field("deep").type.value_field.nullable
    assert made.field("deep").type.value_type.field(0).nullable


def test_the_top_level_is_a_table_also_when_it_is_open(tmp_path):
    schema = {"type": "object", "properties": {"b": {}, "a": {}}, "additionalProperties": True}
    assert columns_of(tmp_path, schema, '{"a":1,"b":2}').column_names == ["b", "a"]
