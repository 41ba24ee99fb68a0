"""CSV as it should be, written cell by cell without any haste: what the encoder's columns are held against."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

HOSTILE = [
    "", " ", " a ", '"', '""', ",", "|", "\t", "\x01", "\n", "\r", "\r\n", "a\nb", 'say "hi", you', "\\N", "\\.",
    "NULL", "null", "\ufeffbom", "\x00", "a\x00b", "\x1f\x7f", "Ünïcödé", "😀", "\u2028\u0085", "-", "0", "1e5", "true",
    "'", "\\", "\\\\", '\\"', "{}", "[1]", "=cmd()", "x" * 5000, '"' * 3000,
]  # fmt: skip
texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=12), st.text(alphabet='a,"\n\r\\ |', max_size=8))
numbers = st.one_of(
    st.sampled_from(["-0", "0", "-0.0", "1E400", "1.10", "1" + "0" * 30, "-1e-7", "12345678901234567890.123", "1E+2"]),
    st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?", fullmatch=True).filter(str.isascii),
)
WHOLE = ["-0", "0", "-0.0", "1E400", "3.00", "1" + "0" * 30, "1E+2", "12345678901234567890123"]
documents = st.one_of(
    numbers,
    st.sampled_from(
        ["true", "false", '"\\ud83d"', '{"a": [1.10, {"b": "x,\\"y\\""}]}', '{"line": "a\\nb"}', "[]", "{}"]
    ),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), texts),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
        max_leaves=6,
    ).map(lambda value: json.dumps(value, ensure_ascii=False)),
)


@st.composite
def json_texts(draw: Any) -> str:
    """Text as JSON source, escaped in one of the ways that JSON allows."""
    return json.dumps(draw(texts), ensure_ascii=draw(st.booleans()))


# What a column of each kind takes: its schema, and the JSON source text of its values.
KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "text": ({"type": ["null", "string"]}, json_texts()),
    "moment": ({"type": "string", "format": "date-time"}, st.just('"2024-01-02T03:04:05.123456789+02:00"')),
    "integer": ({"type": "integer"}, st.one_of(st.sampled_from(WHOLE), st.integers().map(str))),
    "number": ({"anyOf": [{"type": "number"}, {"type": "null"}]}, numbers),
    "boolean": ({"type": ["boolean", "null"]}, st.sampled_from(["true", "false"])),
    "object": ({"type": "object", "properties": {"a": {"type": "integer"}}}, documents.filter(lambda d: d[0] == "{")),
    "array": ({"type": ["null", "array"]}, documents.filter(lambda d: d[0] == "[")),
    "open": ({}, documents.filter(lambda d: d != "null")),
    "scalar": ({"type": ["string", "integer", "boolean"]}, st.one_of(json_texts(), numbers, st.just("true"))),
}
NAMES = [
    "id",
    "a b",
    'q"uote',
    "com,ma",
    "line\nend",
    "back\\slash",
    "",
    " spaced ",
    "null",
    "Ünïcode",
    "\ufeffbom",
    "pipe|",
    "x" * 300,
]


@st.composite
def tables(draw: Any) -> tuple[dict[str, Any], dict[str, str], list[dict[str, str]]]:
    """A schema, the kind of each column, and rows as JSON source text by field."""
    name = st.one_of(st.sampled_from(NAMES), st.text(max_size=5))
    names = draw(st.lists(name, min_size=1, max_size=draw(st.sampled_from([1, 5])), unique=True))
    kinds = {name: draw(st.sampled_from(sorted(KINDS))) for name in names}
    schema = {"type": "object", "properties": {name: KINDS[kind][0] for name, kind in kinds.items()}}
    row = st.fixed_dictionaries(
        {}, optional={name: st.one_of(st.just("null"), KINDS[kind][1]) for name, kind in kinds.items()}
    )
    return schema, kinds, draw(st.lists(row, min_size=1, max_size=6))


def line_of(row: dict[str, str], space: str = "") -> str:
    """A row as JSON."""
    return "{" + ",".join(f"{json.dumps(name)}:{space}{text}" for name, text in row.items()) + "}"


def slow_csv(kinds: dict[str, str], rows: list[dict[str, str]], options: dict[str, Any]) -> bytes:
    """The file, without header, written by the rules of docs/batch.md."""
    quote, null = options.get("quote_char", '"'), options.get("null", "")

    def cell(kind: str, source: str | None) -> str:
        if source is None or source == "null":
            return null
        if kind in ("integer", "number", "boolean"):
            return source
        is_text = kind in ("text", "moment", "scalar") and source.startswith('"')
        text = json.loads(source) if is_text else source
        return quote + text.replace(quote, quote + quote) + quote

    made = [
        options.get("delimiter", ",").join(cell(kind, row.get(name)) for name, kind in kinds.items()) for row in rows
    ]
    return "".join(row + options.get("line_end", "\n") for row in made).encode()


def expected(kinds: dict[str, str], rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The rows as they must come back: all fields, numbers and documents as their source text."""

    def value(kind: str, source: str | None) -> Any:
        if source is None or source == "null":
            return None
        if kind == "scalar" and not source.startswith('"'):
            return json.dumps(source)
        return json.dumps(json.loads(source)) if kind in ("text", "moment", "scalar") else source

    return [{name: value(kind, row.get(name)) for name, kind in kinds.items()} for row in rows]


def sources(lines: bytes, kinds: dict[str, str]) -> list[dict[str, Any]]:
    """Rows of JSON lines in the form of ``expected``."""
    found = []
    for line in lines.split(b"\n")[:-1]:
        row = json.loads(line, parse_int=Number, parse_float=Number)
        assert list(row) == list(kinds)
        found.append({name: _source(name, row[name], kinds, line) for name in row})
    return found


class Number(str):
    """The source text of a number."""


def _source(name: str, value: Any, kinds: dict[str, str], line: bytes) -> Any:
    if value is None:
        return None
    if kinds[name] in ("text", "moment", "scalar"):
        return json.dumps(value)
    return _raw(line, name)


def _raw(line: bytes, name: str) -> str:
    """The source text of a field's value."""
    text, decode, at = line.decode(), json.JSONDecoder().raw_decode, 1
    while True:
        key, at = decode(text, at)
        assert text[at] == ":"
        end = decode(text, at + 1)[1]
        if key == name:
            return text[at + 1 : end]
        at = end + 1
