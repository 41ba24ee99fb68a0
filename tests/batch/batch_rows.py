"""Rows for tests of BATCH: one thing in each that a file may get wrong."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

TEXT = {"type": ["null", "string"]}
WHOLE = {"type": ["null", "integer"]}
MOMENT = {"type": ["null", "string"], "format": "date-time"}
ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"},
        "text": {**TEXT, "default": "none given"},
        "count": WHOLE,
        "huge": {"type": ["null", "integer"], "minimum": -(10**30), "maximum": 10**30},
        "ratio": {"type": ["null", "number"]},
        "price": {"type": ["null", "number"], "multipleOf": 0.01},
        "exact": {"type": ["null", "string"], "format": "singer.decimal"},
        "paid": {"type": ["null", "boolean"]},
        "at": MOMENT,
        "day": {"type": ["null", "string"], "format": "date"},
        "clock": {"type": ["null", "string"], "format": "time"},
        "blob": {"type": ["null", "string"], "contentEncoding": "base64"},
        "mixed": {"type": ["null", "string", "integer"]},
        "open": {},
        "nothing": {"type": "null"},
        "list": {"type": ["null", "array"], "items": {"type": ["null", "integer"]}},
        "loose": {"type": ["null", "array"]},
        "owner": {
            "type": ["null", "object"],
            "properties": {
                "name": TEXT,
                "email": TEXT,
                "since": MOMENT,
                "home": {"type": ["null", "object"], "properties": {"city": TEXT, "zip": TEXT}},
            },
        },
        "items": {
            "type": ["null", "array"],
            "items": {
                "type": "object",
                "properties": {"sku": TEXT, "price": {"type": "number"}, "tags": {"type": "array", "items": TEXT}},
            },
        },
        "labels": {"type": ["null", "object"], "additionalProperties": TEXT},
    },
}
FULL: dict[str, Any] = {
    "id": 1,
    "text": "plain",
    "count": 7,
    "huge": 10**25 + 1,
    "ratio": 0.1,
    "price": Decimal("12.50"),
    "exact": Decimal("12345678901234567890.123456789"),
    "paid": True,
    "at": dt.datetime(2024, 5, 1, 12, 30, 0, 250, dt.timezone(dt.timedelta(hours=2))),
    "day": "2024-05-01",
    "clock": "12:30:00",
    "blob": b"\x00\xff\n,\"'",
    "mixed": "7",
    "open": {"b": [1, 2.50, None, {"deep": 'x,"y"\n'}], "a": "ä"},
    "nothing": None,
    "list": [1, None, 3],
    "loose": [1, "two", {"three": 3}],
    "owner": {
        "name": "Ann",
        "email": "ann@example.org",
        "since": "2024-01-01T00:00:00+01:00",
        "home": {"city": "Bern", "zip": "3000"},
    },
    "items": [{"sku": "a", "price": 1.5, "tags": ["x", ""]}, {"sku": None, "price": 2, "tags": []}],
    "labels": {"red": "1", "green": None, "": "empty name"},
}
TEXTS = [
    "",
    " ",
    "null",
    "\\N",
    "NULL",
    '"',
    '""',
    ",",
    "a,b",
    'say "x"',
    "two\nlines",
    "cr\rlf\r\n",
    "tab\t",
    "ä€😀",
    "=1+1",
    "{}",
    "\x01",
    "'",
    ";",
    "#",
    "\ufeffbom",
    "\u2028",
]
NULLS: dict[str, Any] = {name: None for name in ORDER["properties"] if name != "id"}
ODD: list[dict[str, Any]] = [
    FULL,
    {"id": 2},
    {"id": 3, **NULLS},
    {
        "id": 4,
        "count": "12",
        "paid": False,
        "mixed": 7,
        "price": "0.10",
        "exact": 0,
        "ratio": 3,
        "huge": -(10**30),
        "open": 0,
    },
    {
        "id": 5,
        "count": 9223372036854775807,
        "ratio": 1e300,
        "list": [],
        "loose": [],
        "labels": {},
        "items": [],
        "owner": {},
        "open": [],
    },
    {
        "id": 6,
        "count": -9223372036854775808,
        "ratio": -0.0,
        "owner": {"home": {}},
        "items": [{}],
        "open": "7",
        "text": "",
    },
    {"id": 7, "at": "2024-05-01T00:00:00Z", "open": "", "mixed": "", "owner": {"home": None}, "clock": "23:59:59.5"},
    {"id": 8, "at": "1969-12-31T23:59:59.999999Z", "day": "9999-12-31", "open": True, "price": 1e2, "count": 3.0},
    {
        "id": 9,
        "at": "0001-01-01T00:00:00Z",
        "day": "0001-01-01",
        "open": 12345678901234567890123,
        "blob": "",
        "labels": {"a\n": "\n"},
    },
    *(
        {"id": 10 + number, "text": text, "open": text, "mixed": text, "owner": {"name": text}, "labels": {text: text}}
        for number, text in enumerate(TEXTS)
    ),
]
UNKNOWN = [{"id": 90, "colour": "red", "owner": {"name": "x", "shoe_size": 44}}, {"id": 91, "colour": None}]

# ---- names and schemas of all kinds ---------------------------------------------------------------------------

NAMES = [
    "a.b",
    "a b",
    'say "x"',
    "comma,name",
    ";",
    "new\nline",
    "ä€😀",
    "1",
    "__proto__",
    "record",
    "'",
    "null",
    "true",
]
NAMED = {"type": "object", "properties": {"id": {"type": "integer"}, **dict.fromkeys(NAMES, TEXT)}}
NAMED_ROWS = [{"id": 1, **{name: name for name in NAMES}}, {"id": 2, **dict.fromkeys(NAMES)}, {"id": 3}]

DAY = {"type": ["null", "string"], "format": "date"}
KINDS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "wide": {"type": ["integer", "number"]},
        "moment": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        "enum": {"enum": ["a", 1, None]},
        "text_or_truth": {"type": ["string", "boolean", "null"]},
        "mixed_object": {
            "type": "object",
            "properties": {"x": {"type": "integer"}},
            "additionalProperties": {"type": "integer"},
        },
        "map": {"type": "object", "additionalProperties": {"type": "number"}},
        "map_of_moments": {"type": "object", "additionalProperties": {"type": "string", "format": "date-time"}},
        "deep": {
            "type": "array",
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"day": DAY, "n": {"type": ["null", "number"], "multipleOf": 0.001}},
                },
            },
        },
        "tuple": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]},
        "uuid": {"type": "string", "format": "uuid"},
        "object": {"type": "object"},
        "anything_in_it": {"type": "array", "items": {}},
        "true": True,
        "object_or_text": {"type": ["object", "string"]},
        "list_or_null": {"type": ["array", "null"]},
    },
}
KINDS_ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "wide": 1,
        "moment": "2024-01-01T00:00:00+03:00",
        "either": 1,
        "enum": "a",
        "text_or_truth": "true",
        "mixed_object": {"x": 1, "y": 2},
        "map": {"a": 1.5, "b": 2},
        "map_of_moments": {"a": "2024-01-01T00:00:00+03:00"},
        "deep": [[{"day": "2024-01-01", "n": "1.25"}, {}], []],
        "tuple": [1, "a"],
        "uuid": "00000000-0000-0000-0000-000000000000",
        "object": {"a": {"b": 1}},
        "anything_in_it": [1, "a", None, {"b": 2}],
        "true": {"a": 1},
        "object_or_text": {"a": 1},
        "list_or_null": [1],
    },
    {"id": 2, "wide": 1.5, "moment": None, "either": True, "enum": 1, "text_or_truth": True, "true": "t"},
    {"id": 3, "enum": None, "text_or_truth": None, "object_or_text": "t", "list_or_null": None, "true": [None]},
    {"id": 4, "wide": 10**18, "mixed_object": {}, "map": {}, "deep": [], "tuple": [], "anything_in_it": []},
]
