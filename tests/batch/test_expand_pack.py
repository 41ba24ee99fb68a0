"""``expand(pack(messages))``: the same rows in the same order of each stream, the same versions, the same last STATE,
whatever the files are made of."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import re
from decimal import Decimal
from typing import Any

import pytest
from batch_same import ENCODINGS
from hypothesis import given
from hypothesis import strategies as st
from piped import config

from burler.batch import expand, pack


class Number(str):
    """A number of JSON as its text, digit for digit."""


def exact(text: str | bytes) -> Any:
    """A JSON document with the texts of its numbers."""
    return json.loads(text, parse_float=Number, parse_int=Number)


# ---- what fields hold: a schema, and a strategy for JSON texts ---------------------------------------------

HOSTILE = [
    "",
    " ",
    ",",
    '"',
    '""',
    "\n",
    "\r\n",
    "a\nb",
    "a,b;c\td",
    "\\",
    "\\N",
    "null",
    "NULL",
    "true",
    "0",
    "1.50",
    "'",
]
TEXTS = st.sampled_from(
    [*HOSTILE, "\ufeffx", "é", "日本", "🎉", "\x00", "\x7f", "e\u0301", "=1+1", "\u2028"]
) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def as_object(fields: dict[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in fields.items()) + "}"


def in_json(text: str) -> st.SearchStrategy[str]:
    return st.booleans().map(lambda ascii_only: json.dumps(text, ensure_ascii=ascii_only))


STRINGS = TEXTS.flatmap(in_json)
INTEGERS = st.sampled_from([0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)]).map(str) | st.integers(-1000, 1000).map(str)
FLOATS = st.sampled_from(
    ["0.1", "1.10", "-0.0", "1e22", "1E+2", "5e-324", "12345678901234567890.123", "7"]
) | st.floats(allow_nan=False, allow_infinity=False).map(repr)
CENTS = st.sampled_from(["0.01", "0.10", "-1.5", "3", "123456789012345678901234567890123456.78", "1e2"]) | st.integers(
    -(10**20), 10**20
).map(lambda n: str(Decimal(n).scaleb(-2)))
MOMENTS = st.sampled_from(
    [
        "2024-02-29T23:59:59Z", "1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z",
        "2024-01-02T03:04:05.1+05:30", "2024-01-02T03:04:05.123456789Z", "2024-01-02T03:04:05-11:00",
    ]
)  # fmt: skip
DAYS = st.dates().map(lambda day: day.isoformat())
ANYTHING = st.recursive(
    st.sampled_from(["null", "true", "false", "1.50", "12345678901234567890123", "1e400"]) | STRINGS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]")
        | st.dictionaries(TEXTS, inner, max_size=3).map(as_object)
    ),
    max_leaves=4,
)


def in_base64(data: bytes) -> str:
    return json.dumps(base64.b64encode(data).decode())


def nullable(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.just("null") | texts


def fields(of: dict[str, Any]) -> st.SearchStrategy[str]:
    """An object of some of these fields, in any order."""
    some = st.fixed_dictionaries({}, optional={name: nullable(texts) for name, (_, texts) in of.items()})
    return some.flatmap(lambda found: st.permutations(list(found.items())).map(lambda items: as_object(dict(items))))


INNER = {
    "id": ({"type": "integer"}, INTEGERS),
    "text": ({"type": "string"}, STRINGS),
    "price": ({"type": "number", "multipleOf": 0.01}, CENTS),
    "at": ({"type": "string", "format": "date-time"}, MOMENTS.map(json.dumps)),
    "any": ({}, ANYTHING),
}


def node(schema: dict[str, Any]) -> dict[str, Any]:
    said = schema.get("type")
    return {**schema, "type": ["null", said] if isinstance(said, str) else ["null", *said]} if said else schema


def record_of(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {name: node(schema) for name, (schema, _) in of.items()}}


LISTED = st.lists(nullable(STRINGS), max_size=3).map(lambda items: "[" + ",".join(items) + "]")
OBJECTS = st.lists(fields(INNER), max_size=2).map(lambda items: "[" + ",".join(items) + "]")
FIELDS: dict[str, Any] = {
    "integer": ({"type": "integer"}, INTEGERS),
    "huge": ({"type": "integer", "minimum": -(10**37), "maximum": 10**37}, st.integers(-(10**37), 10**37).map(str)),
    "number": ({"type": "number"}, FLOATS),
    "price": ({"type": "number", "multipleOf": 0.01}, CENTS),
    "boolean": ({"type": "boolean"}, st.sampled_from(["true", "false"])),
    "text": ({"type": "string"}, STRINGS),
    "at": ({"type": "string", "format": "date-time"}, MOMENTS.map(json.dumps)),
    "day": ({"type": "string", "format": "date"}, DAYS.map(json.dumps)),
    "time": ({"type": "string", "format": "time"}, st.just('"23:59:60Z"')),
    "bytes": ({"type": "string", "contentEncoding": "base64"}, st.binary(max_size=9).map(in_base64)),
    "list": ({"type": "array", "items": {"type": ["null", "string"]}}, LISTED),
    "objects": ({"type": "array", "items": record_of(INNER)}, OBJECTS),
    "object": (record_of(INNER), fields(INNER)),
    "map": (
        {"type": "object", "additionalProperties": {"type": ["null", "integer"]}},
        st.dictionaries(TEXTS, nullable(INTEGERS), max_size=3).map(as_object),
    ),
    "open": ({"type": "object"}, st.dictionaries(TEXTS, ANYTHING, max_size=3).map(as_object)),
    "tuple": ({"type": "array"}, st.lists(ANYTHING, max_size=3).map(lambda items: "[" + ",".join(items) + "]")),
    "any": ({}, ANYTHING),
    "union": ({"type": ["string", "integer", "boolean"]}, STRINGS | INTEGERS | st.just("true")),
    "nothing": ({"type": "null"}, st.just("null")),
    'hostile "name",\n': ({"type": "string"}, STRINGS),
}  # fmt: skip
SCHEMA = record_of({name: field for name, field in FIELDS.items() if name != "nothing"})
SCHEMA["properties"]["nothing"] = {"type": "null"}


# ---- what counts as equal, written once --------------------------------------------------------------------


def held(value: Any, schema: Any, form: str) -> Any:
    """What a value is, as far as a format holds it; for what went in and what came out. JSON lines hold all of it, csv
    texts of scalars (so what a union has is text), columns their values. Absent is null."""
    kind = kind_of(schema)
    if value is None or form == "jsonl":
        return value
    if kind == "union":
        return str(value).lower() if isinstance(value, bool) else str(value)
    if kind == "object" and form != "csv":
        return {name: held(value.get(name), part, form) for name, part in schema["properties"].items()}
    if kind == "array" and form != "csv":
        return [held(item, schema["items"], form) for item in value]
    if form == "csv" or kind not in _COLUMNS:
        return value
    return _COLUMNS[kind](value)


def kind_of(schema: dict[str, Any]) -> str:
    said = schema.get("type", [])
    types = [name for name in ([said] if isinstance(said, str) else said) if name != "null"]
    if len(types) > 1:
        return "union"
    kind = types[0] if types else "any"
    if kind == "number" and "multipleOf" in schema:
        return "decimal"
    if kind == "object" and "additionalProperties" in schema:
        return "map"
    if (kind == "object" and "properties" not in schema) or (kind == "array" and "items" not in schema):
        return "any"
    return str(schema.get("format") or schema.get("contentEncoding") or kind)


def _moment(text: str) -> dt.datetime:
    found = re.fullmatch(r"(.{19})(?:\.(\d{1,6})\d*)?(Z|[+-]\d\d:\d\d)", text)
    assert found, text
    return dt.datetime.fromisoformat(f"{found[1]}.{(found[2] or '').ljust(6, '0')}{found[3]}")


_COLUMNS: dict[str, Any] = {
    "integer": lambda number: (int, int(number)),
    "number": lambda number: (float, float(number)),
    "decimal": lambda number: (Decimal, Decimal(number)),
    "date-time": _moment,
    "base64": base64.b64decode,
    "map": lambda given: {name: None if number is None else int(number) for name, number in given.items()},
}


# ---- messages -------------------------------------------------------------------------------------------------

STREAMS = ["users", "Größe/ (x)", "a--b"]
ROWS = st.tuples(
    st.just("row"),
    st.sampled_from(STREAMS),
    fields(FIELDS),
    st.booleans(),  # a new version
    st.sampled_from([None, "2024-01-02T03:04:05Z", "2024-01-02T03:04:05.000001+01:00"]),
)
STEPS = st.lists(
    ROWS | ROWS | st.tuples(st.sampled_from(["state", "activate", "schema"]), st.sampled_from(STREAMS)), max_size=14
)


def messages_of(steps: list[Any], versioned: bool) -> bytes:
    """Lines of a tap that does such steps."""
    schemas = {
        stream: json.dumps({"type": "SCHEMA", "stream": stream, "schema": SCHEMA, "key_properties": []})
        for stream in STREAMS
    }
    out, versions = list(schemas.values()), dict.fromkeys(STREAMS, 1)
    for number, (kind, stream, *more) in enumerate(steps):
        name, said = json.dumps(stream), ""
        if kind == "row":
            record, is_new, time = more
            versions[stream] += is_new
            said = f',"version":{versions[stream]}' if versioned else ""
            said += f',"time_extracted":"{time}"' if time else ""
            out.append(f'{{"type":"RECORD","stream":{name},"record":{record}{said}}}')
        elif kind == "activate":
            out.append(f'{{"type":"ACTIVATE_VERSION","stream":{name},"version":{versions[stream]}}}')
        elif kind == "schema":
            out.append(schemas[stream])
        else:
            out.append(f'{{"type":"STATE","value":{{"at":{number}.10}}}}')
    return "".join(line + "\n" for line in out).encode()


def story(lines: bytes, stream: str, form: str) -> list[Any]:
    """All that is said of a stream, in order."""
    told: list[Any] = []
    for line in lines.split(b"\n")[:-1]:
        message = exact(line)
        if message.get("stream") != stream or message["type"] == "SCHEMA":
            continue
        row = message.get("record")
        if row is not None:
            row = row_bytes(line) if form == "jsonl" else held_row(row, form)
        told.append((message["type"], row, message.get("version")))
    return told


def held_row(row: dict[str, Any], form: str) -> dict[str, Any]:
    assert row.keys() <= SCHEMA["properties"].keys()
    return {name: held(row.get(name), schema, form) for name, schema in SCHEMA["properties"].items()}


def row_bytes(line: bytes) -> bytes:
    """The ``record`` of a RECORD as it stands there: in what tap and expansion write here, it comes third."""
    import msgspec

    return bytes(msgspec.json.decode(line, type=dict[str, msgspec.Raw])["record"])


def states(lines: bytes) -> list[tuple[Any, dict[str, int]]]:
    """Each STATE with the number of rows of each stream before it."""
    found, rows = [], dict.fromkeys(STREAMS, 0)
    for line in lines.split(b"\n")[:-1]:
        message = exact(line)
        if message["type"] == "RECORD":
            rows[message["stream"]] += 1
        if message["type"] == "STATE":
            found.append((message["value"], dict(rows)))
    return found


@given(encoding=st.sampled_from(ENCODINGS), steps=STEPS, versioned=st.booleans(), batch_size=st.integers(1, 5))
def test_expand_of_pack_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    encoding: tuple[str, str],
    steps: list[Any],
    versioned: bool,
    batch_size: int,
) -> None:
    form, compression = encoding
    given_config = config(
        tmp_path_factory.mktemp("files"), form, compression, batch_size=batch_size, activate_version=True
    )
    before = messages_of(steps, versioned)
    middle: list[bytes] = []
    pack(io.BytesIO(before), middle.append, given_config, warn=no_warning)
    after: list[bytes] = []
    expand(io.BytesIO(b"".join(middle)), after.append, warn=no_warning)
    assert b'"RECORD"' not in b"".join(middle)
    assert b'"BATCH"' not in b"".join(after)
    came = b"".join(after)
    for stream in STREAMS:
        assert story(came, stream, form) == story(before, stream, form)
    wanted = {value["at"]: rows for value, rows in states(before)}
    found = states(came)
    assert [value for value, _ in found[-1:]] == [value for value, _ in states(before)[-1:]]
    for value, rows in found:
        assert all(rows[stream] >= count for stream, count in wanted[value["at"]].items()), "a STATE ahead of rows"


def no_warning(text: str) -> None:
    raise AssertionError(text)
