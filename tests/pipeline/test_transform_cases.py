"""singer-python's Transformer, case by case, run beside burler: where it is right both give the same, and each
difference is a row of the table in docs/values.md."""

from __future__ import annotations

import copy
import datetime as dt
import enum
import importlib
import json
import logging
import re
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest

from burler.singer import deselected, prune
from support.shaping import fast, slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "values.md"
UTC = dt.UTC
NAIVE = dt.datetime(2024, 1, 2)  # noqa: DTZ001
REFUSED = "refused"
FAILS = "fails"  # not with the error for bad data, but with whatever Python raises
UNWRITABLE = "can't be written"  # it passes, and the writer of messages raises


class Colour(enum.Enum):
    RED = "red"


def nullable(schema):
    return {**schema, "type": ["null", schema["type"]]}


INTEGER, NUMBER, STRING, BOOLEAN = ({"type": name} for name in ("integer", "number", "string", "boolean"))
TIME, DATE, DECIMAL = ({"type": "string", "format": name} for name in ("date-time", "date", "singer.decimal"))
OBJECT = {"type": "object", "properties": {"b": INTEGER}}
MAYBE_TIME = nullable(TIME)

SAME = [
    (INTEGER, [5, "5", "-7", 1.0, Decimal("7"), 10**30, None, "", [], {}, float("nan"), float("inf"), "x"]),
    (nullable(INTEGER), [None, 5, "5", "x"]),
    (NUMBER, [5, 1.5, "1.5", "1e3", Decimal("1.10"), -0.0, 1e22, 5e-324, 1.7976931348623157e308, "", None, "x", []]),
    (nullable(NUMBER), [None, 1.5]),
    (BOOLEAN, [True, False]),
    (nullable(BOOLEAN), [True, False]),
    (STRING, ["x", "", "nul\0", "é😀\u2028", 5, 2**70, Decimal("1.50"), uuid.UUID(int=5), None]),
    (STRING, [dt.date(2024, 1, 2), dt.time(1, 2), dt.time(1, 2, 3, 4)]),
    (nullable(STRING), [None, "", "x"]),
    ({"type": "null"}, [None, 0, False, "x"]),
    (
        TIME,
        [
            "2024-01-02T03:04:05.123456Z",
            "2024-01-02T03:04:05.5+02:00",
            "2024-01-02T03:04:05.123-05:30",
            "2024-01-02t03:04:05.123456z",
            "2024-01-02 03:04:05.123456Z",
            "0001-01-01T00:00:00.000001Z",
            "9999-12-31T23:59:59.999999Z",
        ],
    ),
    (TIME, ["", None, "garbage", NAIVE, dt.date(2024, 1, 2), 1704164645, "1704164645", 1.5, True, [], {}]),
    (TIME, ["0001-01-01T00:00:00.5+01:00", "2024-01-02T24:00:00Z", "2024-01-02T23:59:60Z", "2024-02-30T00:00:00Z"]),
    (MAYBE_TIME, [None, "garbage", "2024-01-02T03:04:05.5Z"]),
    (DECIMAL, ["1.50", 1.5, 5, Decimal("1.50"), "-0", "12345678901234567890.12345678901234567890"]),
    (DECIMAL, ["abc", None, True, [], {}, "", "1,5"]),
    (nullable(DECIMAL), [None, "1.50", "abc"]),
    ({}, [5, "x", None, {"b": [1, 1.5, None]}, Decimal("1.10"), [], {}, ""]),
    ({"type": "object"}, [{"b": {"c": [1, "x"]}}, {}, "x", [], None]),
    (OBJECT, [{"b": "5", "c": 1}, {}, {"b": "x"}, {"b": None}, None, [], "x"]),
    (nullable(OBJECT), [None, {"b": 1}]),
    ({"type": "object", "properties": {"b": OBJECT, "c": {}}}, [{"b": {"b": "1", "z": 1}, "c": {"z": [{"y": 1}]}}]),
    ({"type": "object", "properties": {}, "patternProperties": {"^n": INTEGER}}, [{"n1": "5", "x": 1}, {"n1": "x"}]),
    ({"type": "object", "properties": {"a": STRING}, "patternProperties": {"^n": INTEGER}}, [{"n1": "5", "a": "b"}]),
    ({"type": "array", "items": INTEGER}, [["5", 1], [1.0], [], ["x"], [None], [[1]], "x", None, {}]),
    ({"type": "array", "items": nullable(INTEGER)}, [["5", None]]),
    ({"type": "array", "items": {"type": "array", "items": OBJECT}}, [[[{"b": "1", "z": 2}], []]]),
    ({"type": ["null", "array"], "items": {"type": "object", "properties": {"at": TIME}}}, [[{"at": None}]]),
    ({"type": ["null", "array"], "items": {"type": "object", "properties": {"at": MAYBE_TIME}}}, [[{"at": None}]]),
    ({"type": ["null", "array", "integer"], "items": INTEGER}, [[1], 1, None, "x"]),
    ({"type": ["integer", "string"]}, [5, "x"]),
    ({"type": ["null", "string", "object"], "properties": {"b": INTEGER}}, ["x", None]),
    ({"type": ["null", "object", "string"], "properties": {"b": INTEGER}}, [{"b": "1", "z": 1}, "x", None]),
    ({"type": ["number", "integer"]}, [1.5, 1]),
    ({"anyOf": [INTEGER, STRING]}, ["x", 5]),
    ({"anyOf": [TIME, STRING]}, ["2024-01-02T03:04:05.5+02:00", "x"]),
    ({"anyOf": [STRING, TIME]}, ["2024-01-02T03:04:05.5+02:00"]),
    ({"anyOf": [TIME, {"type": "null"}]}, [None, "x", "2024-01-02T03:04:05.5+02:00"]),
    ({"anyOf": [{"type": "null"}, TIME]}, [None, "2024-01-02T03:04:05.5+02:00", 5]),
    ({"anyOf": [OBJECT, {"type": "array", "items": INTEGER}]}, [{"b": 1}, ["1"], "x"]),
    ({"type": "string", "enum": ["a"]}, ["a"]),
    ({"type": "integer", "minimum": 3}, [3]),
    ({"type": "number", "multipleOf": 0.01}, [0.07]),
    ({"type": "string", "maxLength": 2}, ["ab"]),
    (DATE, ["2024-01-02", dt.date(2024, 1, 2), None]),
    ({"type": "string", "format": "uuid"}, [str(uuid.UUID(int=5)), uuid.UUID(int=5), "x"]),
    ({"type": "string", "format": "time"}, [dt.time(1), "01:00:00"]),
]


@dataclass(frozen=True)
class Difference:
    """A row of the table in docs/values.md: ``singer`` and ``burler`` in words, and values that show it.

    ``cases``: (schema, value, what singer-python writes, what burler writes), both as JSON text.
    """

    what: str
    singer: str
    burler: str
    why: str
    cases: list
    options: dict = field(default_factory=dict)

    @property
    def row(self):
        return f"| {self.what} | {self.singer} | {self.burler} | {self.why} |"


DIFFERENCES = [
    Difference(
        'a fraction in an integer field (`1.9`, `Decimal("7.5")`)',
        "cut: `1`, `7`",
        "refused",
        "a cast that loses something hides a wrong schema",
        [(INTEGER, 1.9, "1", REFUSED), (INTEGER, Decimal("7.5"), "7", REFUSED), (INTEGER, -1.9, "-1", REFUSED)],
    ),
    Difference(
        "`true` in an integer or number field",
        "`1`, `1.0`",
        "refused",
        "JSON keeps truth values and numbers apart",
        [(INTEGER, True, "1", REFUSED), (NUMBER, True, "1.0", REFUSED), (nullable(INTEGER), False, "0", REFUSED)],
    ),
    Difference(
        'text of an integer with a fraction of zero (`"1.0"`, `"1e3"`) in an integer field',
        "refused",
        "`1`, `1000`",
        "the text is the same whole number, and JSON Schema counts `1.0` as an integer",
        [(INTEGER, "1.0", REFUSED, "1"), (INTEGER, "1e3", REFUSED, "1000")],
    ),
    Difference(
        "text of a number with commas, blanks, underscores or other scripts' digits",
        "read as a number",
        "refused",
        "`1,5` is one and a half in half of the world: burler reads what JSON calls a number",
        [
            (INTEGER, "1,234", "1234", REFUSED),
            (INTEGER, " 5 ", "5", REFUSED),
            (INTEGER, "1_000", "1000", REFUSED),
            (INTEGER, "٣", "3", REFUSED),
            (NUMBER, "1,5", "15.0", REFUSED),
            (NUMBER, " 1.5", "1.5", REFUSED),
            (DECIMAL, " 1", '"1"', REFUSED),
            (DECIMAL, "1_0", '"10"', REFUSED),
        ],
    ),
    Difference(
        "a Decimal, a big integer or long text in a number field",
        "a float: `12345678901234567890.123` becomes `1.2345678901234567e+19`",
        "digit for digit",
        "money and keys are numbers too",
        [
            (NUMBER, Decimal("12345678901234567890.123"), "1.2345678901234567e+19", "12345678901234567890.123"),
            (NUMBER, "0.1234567890123456789", "0.12345678901234568", "0.1234567890123456789"),
            (NUMBER, 2**70 + 1, "1.1805916207174113e+21", str(2**70 + 1)),
            (NUMBER, 10**400, REFUSED, "1" + "0" * 400),
        ],
    ),
    Difference(
        "NaN and infinities, also as text, in a number field or where no schema says what is there",
        "passed on; writing the message raises",
        "refused, or null with `on_nan`",
        "JSON has no form for them; the error names row and field",
        [
            (NUMBER, float("nan"), UNWRITABLE, REFUSED),
            (NUMBER, Decimal("Infinity"), UNWRITABLE, REFUSED),
            (NUMBER, "nan", UNWRITABLE, REFUSED),
            (NUMBER, "Infinity", UNWRITABLE, REFUSED),
            ({}, float("inf"), UNWRITABLE, REFUSED),
        ],
    ),
    Difference(
        "empty text where null is allowed and text is not",
        "null",
        "refused",
        "the source said something else than null; a sync function can say `value or None`",
        [
            (nullable(INTEGER), "", "null", REFUSED),
            (nullable(NUMBER), "", "null", REFUSED),
            (MAYBE_TIME, "", "null", REFUSED),
            (nullable(DECIMAL), "", "null", REFUSED),
            (nullable(OBJECT), "", "null", REFUSED),
            ({"type": "null"}, "", "null", REFUSED),
            ({"anyOf": [TIME, {"type": "null"}]}, "", "null", REFUSED),
        ],
    ),
    Difference(
        "null in a boolean field",
        "`false`, even where null is allowed",
        "null where it is allowed, else refused",
        "unknown is not false",
        [(nullable(BOOLEAN), None, "false", "null"), (BOOLEAN, None, "false", REFUSED)],
    ),
    Difference(
        "anything else in a boolean field",
        'Python\'s truth of it: `"no"` and `"0"` are true; the text `false` is false',
        "refused",
        "a guess, and often the wrong one",
        [
            (BOOLEAN, "no", "true", REFUSED),
            (BOOLEAN, "0", "true", REFUSED),
            (BOOLEAN, "false", "false", REFUSED),
            (BOOLEAN, "true", "true", REFUSED),
            (BOOLEAN, 0, "false", REFUSED),
            (BOOLEAN, 2.5, "true", REFUSED),
            (BOOLEAN, [], "false", REFUSED),
            (nullable(BOOLEAN), "", "false", REFUSED),
        ],
    ),
    Difference(
        "a float, a boolean, a list or an object in a string field",
        'what Python prints: `"1.5"`, `"True"`, `"{\'b\': 1}"`',
        "refused (a float is text with `format: singer.decimal`)",
        "no reader can turn that text back",
        [
            (STRING, 1.5, '"1.5"', REFUSED),
            (STRING, True, '"True"', REFUSED),
            (STRING, {"b": 1}, "\"{'b': 1}\"", REFUSED),
            (STRING, [1], '"[1]"', REFUSED),
        ],
    ),
    Difference(
        "bytes and objects of unknown classes",
        "what Python prints: `\"b'x'\"`; where no schema says what is there, bytes are taken for UTF-8",
        "refused; bytes are base64 with `contentEncoding: base64`",
        "no reader can turn that text back",
        [
            (STRING, b"x", "\"b'x'\"", REFUSED),
            (STRING, object, "\"<class 'object'>\"", REFUSED),
            ({**STRING, "contentEncoding": "base64"}, b"x", "\"b'x'\"", '"eA=="'),
            ({}, b"x", '"x"', REFUSED),
        ],
    ),
    Difference(
        "enum members",
        'their name in Python: `"Colour.RED"`',
        "their value",
        "the value is what the source has",
        [(STRING, Colour.RED, '"Colour.RED"', '"red"'), ({}, Colour.RED, UNWRITABLE, '"red"')],
    ),
    Difference(
        "datetime objects in a string field without format",
        "with a blank: `2024-01-02 00:00:00`",
        "ISO 8601: `2024-01-02T00:00:00`",
        "one spelling everywhere",
        [
            (STRING, NAIVE, '"2024-01-02 00:00:00"', '"2024-01-02T00:00:00"'),
            (STRING, NAIVE.replace(tzinfo=UTC), '"2024-01-02 00:00:00+00:00"', '"2024-01-02T00:00:00+00:00"'),
        ],
    ),
    Difference(
        "timedelta objects",
        "what Python prints: `1 day, 0:00:05`, `1:00:00`",
        "an ISO 8601 duration: `P1DT5S`; `01:00:00` with `format: time`, below a day",
        "database drivers give these for intervals and for times of a day",
        [
            (STRING, dt.timedelta(1, 5), '"1 day, 0:00:05"', '"P1DT5S"'),
            ({**STRING, "format": "time"}, dt.timedelta(hours=1), '"1:00:00"', '"01:00:00"'),
        ],
    ),
    Difference(
        "dates, times and UUIDs where no schema says what is there",
        "writing the message raises",
        "their text",
        "database drivers give them",
        [
            ({}, dt.date(2024, 1, 2), UNWRITABLE, '"2024-01-02"'),
            ({}, [uuid.UUID(int=5)], UNWRITABLE, f'["{uuid.UUID(int=5)}"]'),
        ],
    ),
    Difference(
        "half a surrogate pair",
        "written as an escape",
        "refused",
        "UTF-8 has no form for it; most targets end there",
        [(STRING, "\ud800", '"\\ud800"', REFUSED), ({}, "\udfff", '"\\udfff"', REFUSED)],
    ),
    Difference(
        "a date-time without a fraction",
        "`.000000` is put behind it",
        "no fraction",
        "the same moment, seven bytes less",
        [
            (TIME, "2024-01-02T03:04:05Z", '"2024-01-02T03:04:05.000000Z"', '"2024-01-02T03:04:05Z"'),
            (TIME, "2024-01-02T03:04:05.000+02:00", '"2024-01-02T01:04:05.000000Z"', '"2024-01-02T01:04:05Z"'),
        ],
    ),
    Difference(
        "a date-time with more than six digits of a second",
        "cut to six",
        "all digits",
        "two rows may differ in the ninth",
        [
            (TIME, "2024-01-02T03:04:05.1234567Z", '"2024-01-02T03:04:05.123456Z"', '"2024-01-02T03:04:05.1234567Z"'),
            (
                TIME,
                "2024-01-02T03:04:05.123456789+02:00",
                '"2024-01-02T01:04:05.123456Z"',
                '"2024-01-02T01:04:05.123456789Z"',
            ),
        ],
    ),
    Difference(
        "a date-time without a zone, a plain date and other text that may mean a time",
        "a guess: UTC, midnight, today",
        "refused",
        "the sync function knows the zone; burler does not",
        [
            (TIME, "2024-01-02T03:04:05", '"2024-01-02T03:04:05.000000Z"', REFUSED),
            (TIME, "2024-01-02", '"2024-01-02T00:00:00.000000Z"', REFUSED),
            (TIME, "Jan 2 2024", '"2024-01-02T00:00:00.000000Z"', REFUSED),
            (TIME, "20240102T030405Z", '"2024-01-02T03:04:05.000000Z"', REFUSED),
            (TIME, "02/01/2024 10:00", '"2024-02-01T10:00:00.000000Z"', REFUSED),
        ],
    ),
    Difference(
        "datetime objects in a date-time field",
        "refused",
        "written in UTC if they have a zone",
        "database drivers and parsers give them",
        [
            (TIME, dt.datetime(2024, 1, 2, 3, 4, 5, 6, UTC), REFUSED, '"2024-01-02T03:04:05.000006Z"'),
            (
                TIME,
                dt.datetime(2024, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2))),
                REFUSED,
                '"2024-01-02T01:00:00Z"',
            ),
        ],
    ),
    Difference(
        "integers as date-times, in seconds since 1970 (`UNIX_SECONDS_INTEGER_DATETIME_PARSING`)",
        "converted where the tap asks for it; fractions are cut, `true` is a second",
        "refused; `datetime.fromtimestamp(value, UTC)` in the sync function",
        "which unit an integer counts is known where the row is made",
        [
            (MAYBE_TIME, 1704164645, '"2024-01-02T03:04:05.000000Z"', REFUSED),
            (MAYBE_TIME, "1704164645", '"2024-01-02T03:04:05.000000Z"', REFUSED),
            (MAYBE_TIME, 1704164645.5, '"2024-01-02T03:04:05.000000Z"', REFUSED),
            (MAYBE_TIME, True, '"1970-01-01T00:00:01.000000Z"', REFUSED),
            (MAYBE_TIME, 10**20, REFUSED, REFUSED),
        ],
        {"integer_datetime_fmt": "unix-seconds-integer-datetime-parsing"},
    ),
    Difference(
        "the same in milliseconds (`UNIX_MILLISECONDS_INTEGER_DATETIME_PARSING`)",
        "converted where the tap asks for it",
        "refused; `datetime.fromtimestamp(value / 1000, UTC)` in the sync function",
        "as above",
        [
            (MAYBE_TIME, 1704164645123, '"2024-01-02T03:04:05.123000Z"', REFUSED),
            (MAYBE_TIME, -1, '"1969-12-31T23:59:59.999000Z"', REFUSED),
        ],
        {"integer_datetime_fmt": "unix-milliseconds-integer-datetime-parsing"},
    ),
    Difference(
        "`format: date`",
        "any text",
        "a date or text of one; a datetime is refused",
        "what the SCHEMA promises",
        [
            (DATE, NAIVE, '"2024-01-02 00:00:00"', REFUSED),
            (DATE, "2024-01-02T00:00:00Z", '"2024-01-02T00:00:00Z"', REFUSED),
            (DATE, "x", '"x"', REFUSED),
        ],
    ),
    Difference(
        'an exponent in text of a Decimal (`Decimal("1E+2")`)',
        "kept: `1E+2`",
        "plain: `100`",
        "readers of text rarely know exponents",
        [
            (STRING, Decimal("1E+2"), '"1E+2"', '"100"'),
            (DECIMAL, Decimal("1E+2"), '"1E+2"', '"100"'),
            (DECIMAL, "1e3", '"1E+3"', '"1000"'),
            (DECIMAL, "1E-10", '"1E-10"', '"0.0000000001"'),
            (DECIMAL, 1e22, '"1E+22"', '"10000000000000000000000"'),
        ],
    ),
    Difference(
        "NaN and infinities with `format: singer.decimal`",
        "text: `NaN`, `Infinity`; a signalling NaN becomes `NaN`",
        "refused, or null with `on_nan`",
        "no number; a target that casts the text ends there",
        [
            (DECIMAL, "NaN", '"NaN"', REFUSED),
            (DECIMAL, float("nan"), '"NaN"', REFUSED),
            (DECIMAL, Decimal("NaN"), '"NaN"', REFUSED),
            (DECIMAL, Decimal("sNaN"), '"NaN"', REFUSED),
            (DECIMAL, Decimal("-Infinity"), '"-Infinity"', REFUSED),
        ],
    ),
    Difference(
        "several types, of which a later one is the value's own",
        'the first that can be cast to: `"5"` is 5, `"x"` is true, an object is text',
        "the value's own type, wherever it stands in the list",
        "nothing is cast that fits as it is",
        [
            ({"type": ["integer", "string"]}, "5", "5", '"5"'),
            ({"type": ["string", "integer"]}, 5, '"5"', "5"),
            ({"type": ["boolean", "string"]}, "x", "true", '"x"'),
            ({"type": ["string", "boolean"]}, True, '"True"', "true"),
            (
                {"type": ["null", "string", "object"], "properties": {"b": INTEGER}},
                {"b": 1},
                "\"{'b': 1}\"",
                '{"b": 1}',
            ),
            ({"type": ["null", "string", "array"], "items": INTEGER}, [1], '"[1]"', "[1]"),
            ({"type": ["null", "integer", "number"]}, 1.5, "1", "1.5"),
            ({"type": ["integer", "string"]}, 1.5, "1", REFUSED),
        ],
    ),
    Difference(
        "`anyOf`: which branch",
        "the first that can be cast to",
        "the first that takes the value unchanged, else the one that changes and drops least",
        "nothing is cast or dropped that fits as it is",
        [
            ({"anyOf": [INTEGER, STRING]}, "5", "5", '"5"'),
            ({"anyOf": [STRING, INTEGER]}, 5, '"5"', "5"),
            ({"anyOf": [OBJECT, {"type": "object", "properties": {"c": INTEGER}}]}, {"c": 1}, "{}", '{"c": 1}'),
        ],
    ),
    Difference(
        "keywords beside `anyOf`",
        "ignored",
        "hold together with each branch",
        "JSON Schema says so",
        [
            ({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 2}]}, "6", '"6"', "6"),
            ({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 2}]}, 4, "4", REFUSED),
            ({**OBJECT, "anyOf": [{"required": ["b"]}]}, {"b": "1", "z": 2}, '{"b": "1", "z": 2}', '{"b": 1}'),
        ],
    ),
    Difference(
        "`oneOf`, `allOf`, and `properties` without a type",
        "ignored: the value passes as it is",
        "as JSON Schema has them",
        "what the SCHEMA promises",
        [
            ({"oneOf": [INTEGER, STRING]}, 1.5, "1.5", REFUSED),
            ({"allOf": [INTEGER, {"minimum": 3}]}, "5", '"5"', "5"),
            ({"allOf": [INTEGER, {"minimum": 3}]}, 1, "1", REFUSED),
            ({"properties": {"b": INTEGER}}, {"b": "5", "c": 1}, '{"b": "5", "c": 1}', '{"b": 5}'),
            ({"properties": {"b": INTEGER}}, "x", '"x"', REFUSED),
        ],
    ),
    Difference(
        "`enum`, `const`, bounds, lengths, `pattern`, `multipleOf`, `uniqueItems`",
        "ignored",
        "a value that breaks one is refused; `check_constraints: false` holds types only",
        "what the SCHEMA promises; targets that check it end there",
        [
            ({"type": "string", "enum": ["a"]}, "b", '"b"', REFUSED),
            ({"const": 1}, 2, "2", REFUSED),
            ({"type": "integer", "minimum": 3}, 1, "1", REFUSED),
            ({"type": "number", "multipleOf": 0.01}, 0.075, "0.075", REFUSED),
            ({"type": "string", "maxLength": 2}, "abc", '"abc"', REFUSED),
            ({"type": "array", "items": INTEGER, "uniqueItems": True}, [1, 1], "[1, 1]", REFUSED),
        ],
    ),
    Difference(
        "`required`",
        "ignored",
        "a row without the field is refused",
        "what the SCHEMA promises",
        [({**OBJECT, "required": ["b"]}, {}, "{}", REFUSED)],
    ),
    Difference(
        "`additionalProperties`",
        "ignored: beside `properties` further fields are dropped, without them all are kept as they are",
        "`true` and a schema keep what they let in; `false` keeps nothing",
        "the schema says which fields are there",
        [
            ({**OBJECT, "additionalProperties": True}, {"b": 5, "c": 1}, '{"b": 5}', '{"b": 5, "c": 1}'),
            ({**OBJECT, "additionalProperties": INTEGER}, {"b": 5, "c": "1"}, '{"b": 5}', '{"b": 5, "c": 1}'),
            ({"type": "object", "additionalProperties": INTEGER}, {"b": "5"}, '{"b": "5"}', '{"b": 5}'),
            ({"type": "object", "additionalProperties": INTEGER}, {"b": "x"}, '{"b": "x"}', REFUSED),
            ({"type": "object", "additionalProperties": False}, {"b": 5}, '{"b": 5}', "{}"),
        ],
    ),
    Difference(
        "`properties: {}`",
        "all fields are kept",
        "no field is known: all are dropped and counted",
        "a schema from which every field was deselected looks so",
        [({"type": "object", "properties": {}}, {"b": 1}, '{"b": 1}', "{}")],
    ),
    Difference(
        "`patternProperties`",
        "a pattern must fit from the name's beginning; without `properties` other fields are dropped",
        "a pattern may fit anywhere in the name; without `properties` other fields are kept",
        "JSON Schema says so",
        [
            ({"type": "object", "patternProperties": {"ab": INTEGER}}, {"xab": "5"}, "{}", '{"xab": 5}'),
            (
                {"type": "object", "patternProperties": {"^n": INTEGER}},
                {"n1": "5", "x": 1},
                '{"n1": 5}',
                '{"n1":5,"x":1}',
            ),
        ],
    ),
    Difference(
        "an array without `items`",
        "raises KeyError",
        "kept as it is",
        "`items` may be left out",
        [({"type": "array"}, [1, "x"], FAILS, '[1, "x"]')],
    ),
    Difference(
        "a tuple: `items` as a list of schemas",
        "kept as it is",
        "each place by its own schema",
        "JSON Schema says so",
        [({"type": "array", "items": [INTEGER, STRING]}, ["5", 5], '["5", 5]', '[5, "5"]')],
    ),
    Difference(
        "Python tuples and sets in an array field",
        "refused",
        "arrays",
        "drivers give them",
        [
            ({"type": "array", "items": INTEGER}, (1, "2"), REFUSED, "[1, 2]"),
            ({"type": "array", "items": INTEGER}, frozenset([1]), REFUSED, "[1]"),
        ],
    ),
    Difference(
        "field names that are no text",
        "turned into text: `{5: 1}` has the field `5`",
        "refused",
        '`5` and `"5"` would be one field',
        [({"type": "object"}, {5: 1}, '{"5": 1}', REFUSED), ({}, [{None: 1}], '[{"null": 1}]', REFUSED)],
    ),
]


# ---- both sides ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def singer():
    """singer-python's transform, messages and metadata; importing it replaces the root logger's handlers."""
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    try:
        modules = {name: importlib.import_module(f"singer.{name}") for name in ("transform", "messages", "metadata")}
    finally:
        root.handlers[:], root.level = before
    return SimpleNamespace(**modules)


def canonical(value):
    """A parsed value in which numbers are equal by what they are worth, and truth values are none."""
    if isinstance(value, dict):
        return {name: canonical(part) for name, part in value.items()}
    if isinstance(value, list):
        return [canonical(part) for part in value]
    if isinstance(value, bool) or value is None:
        return ("literal", value)
    return ("text", value) if isinstance(value, str) else ("number", Decimal(value))


def parsed(text):
    return text if text in (REFUSED, FAILS, UNWRITABLE) else canonical(json.loads(text, parse_float=Decimal))


def by_singer(singer, schema, row, metadata=None, **options):
    """What singer-python writes for a row (or how it ends otherwise), and the Transformer."""
    transformer = singer.transform.Transformer(**options)
    try:
        out = transformer.transform(copy.deepcopy(row), copy.deepcopy(schema), metadata)
    except singer.transform.SchemaMismatch:
        return REFUSED, transformer
    except Exception:
        return FAILS, transformer
    message = singer.messages.RecordMessage("s", out)
    try:
        line = json.loads(singer.messages.format_message(message), parse_float=Decimal)
        return canonical(line["record"]), transformer
    except (TypeError, ValueError):
        return UNWRITABLE, transformer


def by_burler(schema, rows, **options):
    """What both ways write for each row, up to the first that is refused; and what they have not known."""
    outcome, lines = fast(schema, [rows], **options)
    assert slow(schema, [rows], **options) == outcome, (schema, rows)
    return [*map(parsed, lines), *([REFUSED] if outcome.error else [])], outcome.unknown


def results(singer, schema, value, **options):
    """(singer-python's, burler's) for one field's value, canonical; burler's on both paths, and among other rows."""
    whole = {"type": "object", "properties": {"a": schema, "n": {"type": "integer"}}}
    theirs, _ = by_singer(singer, whole, {"a": value, "n": 1}, **options)
    ours, _ = by_burler(whole, [{"a": value, "n": 1}])
    assert len(ours) == 1
    among, _ = by_burler(whole, [{"n": 0}] * 10 + [{"a": value, "n": 1}] + [{"n": 0}] * 10)
    assert among[10] == ours[0]
    assert len(among) == (11 if ours[0] == REFUSED else 21)
    return _field_a(theirs), _field_a(ours[0])


def _field_a(row):
    return row["a"] if isinstance(row, dict) else row


# ---- tests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "values"), SAME, ids=lambda part: json.dumps(part) if isinstance(part, dict) else ""
)
def test_where_singer_python_is_right_burler_gives_the_same(singer, schema, values):
    for value in values:
        theirs, ours = results(singer, schema, value)
        assert ours == theirs, (schema, value)
        assert theirs not in (FAILS, UNWRITABLE), (schema, value)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.what)
def test_where_they_differ_both_give_what_the_table_says(singer, difference):
    differing = []
    for schema, value, wanted_theirs, wanted_ours in difference.cases:
        theirs, ours = results(singer, schema, value, **difference.options)
        assert theirs == parsed(wanted_theirs), (schema, value)
        assert ours == parsed(wanted_ours), (schema, value)
        differing.append(theirs != ours)
    assert any(differing)


def test_the_page_lists_each_difference_and_no_other():
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition("## Differences from singer-python")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert rows[1:] == [difference.row for difference in DIFFERENCES]


def test_no_difference_is_said_twice():
    names = [difference.what for difference in DIFFERENCES]
    assert len(set(names)) == len(names)


def test_unknown_fields_are_the_removed_paths(singer):
    schema = {
        "type": "object",
        "properties": {
            "a": OBJECT,
            "l": {"type": "array", "items": OBJECT},
            "open": {"type": "object"},
            "any": {},
            "u": {"anyOf": [{"type": "null"}, OBJECT]},
        },
    }
    inner = {"b": 1, "z": {"y": 1}}
    row = {"a": inner, "l": [inner, {"x": 1}, {}], "open": inner, "any": inner, "u": inner, "z": [inner]}
    text, transformer = by_singer(singer, schema, row)
    ours, unknown = by_burler(schema, [row] * 3)
    assert ours == [ours[0]] * 3 and ours[0] == text
    removed = {re.sub(r"\.\d+", "[]", path) for path in transformer.removed}
    assert removed == {"a.z", "l[].z", "l[].x", "u.z", "z"}
    assert unknown == dict.fromkeys(removed, 3)


# Selection: breadcrumb -> metadata; what both leave of the row.
ROW = {"id": 1, "a": 2, "o": {"p": 1, "q": 2}, "l": [{"p": 1, "q": 2}], "ll": [[{"p": 1, "q": 2}]]}
PARTS = {"type": "object", "properties": {"p": INTEGER, "q": INTEGER}}
FULL = {
    "type": "object",
    "properties": {
        "id": INTEGER,
        "a": INTEGER,
        "o": PARTS,
        "l": {"type": "array", "items": PARTS},
        "ll": {"type": "array", "items": {"type": "array", "items": PARTS}},
    },
}
SELECTED, OFF = {"selected": True}, {"selected": False}


def field_of(*names):
    crumb = []
    for name in names:
        crumb += ["items"] if name == "[]" else ["properties", name]
    return tuple(crumb)


def less(**changed):
    """The row as it comes out: fields replaced, or left out where None is given."""
    return {name: value for name, value in {**ROW, **changed}.items() if value is not None}


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        ({}, ROW),
        ({(): SELECTED}, ROW),
        ({field_of("a"): OFF}, less(a=None)),
        ({field_of("a"): {"inclusion": "unsupported"}}, less(a=None)),
        ({field_of("a"): {"inclusion": "unsupported", "selected": True}}, less(a=None)),
        ({field_of("id"): {"inclusion": "automatic", "selected": False}}, ROW),
        ({field_of("id"): {"inclusion": "available"}, field_of("a"): {"inclusion": "available", **OFF}}, less(a=None)),
        ({field_of("o"): OFF}, less(o=None)),
        ({field_of("o"): OFF, field_of("o", "p"): SELECTED}, less(o=None)),
        ({field_of("o", "p"): OFF}, less(o={"q": 2})),
        ({field_of("o", "p"): OFF, field_of("o", "q"): {"inclusion": "unsupported"}}, less(o={})),
        ({field_of("l", "[]", "p"): OFF}, less(l=[{"q": 2}])),
        ({field_of("l"): OFF, field_of("l", "[]", "p"): SELECTED}, less(l=None)),
        ({field_of("ll", "[]", "[]", "q"): OFF}, less(ll=[[{"p": 1}]])),
        ({(): OFF, field_of("a"): OFF}, less(a=None)),
    ],
)
def test_selected_fields(singer, metadata, wanted):
    theirs, transformer = by_singer(singer, FULL, ROW, copy.deepcopy(metadata) or None)
    off = deselected(metadata, stream="s")
    pruned = prune(FULL, metadata, stream="s")
    ours, unknown = by_burler(pruned, [ROW], deselected=off)
    assert ours[0] == theirs == canonical(wanted)
    assert not transformer.removed and not unknown


@pytest.mark.parametrize(
    ("metadata", "theirs", "ours"),
    [
        ({field_of("a"): {"selected-by-default": False}}, {"id": 1, "a": 2}, {"id": 1}),
        ({field_of("a"): {"selected": "false"}}, {"id": 1, "a": 2}, {"id": 1}),
        ({field_of("a"): {"selected-by-default": False, "selected": True}}, {"id": 1, "a": 2}, {"id": 1, "a": 2}),
    ],
)
def test_selected_by_default_and_texts_count_too(singer, metadata, theirs, ours):
    """singer-python looks at ``selected: false`` alone; the page on selecting says what burler does."""
    schema, row = {"type": "object", "properties": {"id": INTEGER, "a": INTEGER}}, {"id": 1, "a": 2}
    text, _ = by_singer(singer, schema, row, copy.deepcopy(metadata))
    assert text == canonical(theirs)
    off = deselected(metadata, stream="s")
    texts, _ = by_burler(prune(schema, metadata, stream="s"), [row], deselected=off)
    assert texts[0] == canonical(ours)


def test_nothing_given_is_changed(singer):
    """singer-python takes unselected fields out of the row it was given, and null to the end of the schema's types."""
    schema = {"type": "object", "properties": {"id": {"type": ["null", "integer"]}, "o": PARTS}}
    metadata = {field_of("o", "p"): OFF}
    row = {"id": "5", "o": {"p": 1, "q": 2}}
    before = copy.deepcopy((schema, row))
    texts, _ = by_burler(prune(schema, metadata, stream="s"), [row], deselected=deselected(metadata, stream="s"))
    assert texts[0] == canonical({"id": 5, "o": {"q": 2}})
    assert (schema, row) == before
    singer.transform.Transformer().transform(row, schema, metadata)
    assert (schema, row) != before


def test_references_are_resolved_alike(singer):
    from burler.schema import resolve_refs

    schema = {
        "type": "object",
        "definitions": {"part": PARTS},
        "properties": {
            "o": {"$ref": "#/definitions/part"},
            "l": {"type": "array", "items": {"$ref": "#/definitions/part"}},
            "u": {"anyOf": [{"type": "null"}, {"$ref": "#/definitions/part"}]},
        },
        "patternProperties": {"^x": {"$ref": "#/definitions/part"}},
    }
    part = {"p": "1", "q": 2, "z": 3}
    row = {"o": part, "l": [part], "u": part, "x1": part}
    text, _ = by_singer(singer, singer.transform.resolve_schema_references(copy.deepcopy(schema)), row)
    ours, _ = by_burler(resolve_refs(schema, source="a test"), [row])
    assert ours[0] == text
