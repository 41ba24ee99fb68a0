"""What a shaper says of its rows, held against the slow check that reads every line."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burler.lake import CleanCheck
from burler.singer.messages import record_prefix_suffix
from support.internals import shape
from support.strategies import cases, plain_schemas, schemas

NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
NODES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "choice": {"type": ["string", "null"], "enum": ["a", "b", None]},
    "whole": {"type": "integer"},
    "small": {"type": "integer", "minimum": 0, "maximum": 10**6},
    "below": {"type": ["integer", "null"], "exclusiveMaximum": 100},
    "number": {"type": "number"},
    "truth": {"type": ["boolean", "null"]},
    "time": {"type": "string", "format": "date-time"},
    "date": {"type": ["null", "string"], "format": "date"},
    "texts": {"type": "array", "items": {"type": ["string", "null"]}},
    "wholes": {"type": ["null", "array"], "items": {"type": "integer"}},
    "inner": {
        "type": ["null", "object"],
        "properties": {
            "n": {"type": "integer"},
            "f": {"type": "number"},
            "t": {"type": "string", "format": "date-time"},
        },
    },
}


class Handing(shape.Output):
    """Hands on what is in the buffer once it is as much as a pipe holds."""

    def __init__(self, *around: bytes, take: Callable[[shape.Output], None]) -> None:
        super().__init__(bytearray(), *around)
        self.most_bytes, self.take = 56 * 1024, take

    def flush(self) -> None:
        if self.count:
            self.take(self)
        del self.buffer[:]
        self.count = 0


class Asked:
    """What came out of a shaper, a buffer at a time, with what was said of it."""

    def __init__(self, schema: dict[str, Any], rules: shape.Rules, version: int | None = None) -> None:
        self.check = CleanCheck(schema)
        self.shaper = shape.Shaper("s", schema, rules=rules)
        self.prefix, self.suffix = record_prefix_suffix("s", NOON, version)
        self.said: list[tuple[bytes, bool]] = []

    def shape(self, rows: list[dict[str, Any]]) -> Asked:
        def take(output: shape.Output) -> None:
            known = output.vouched
            self.said.append((bytes(output.buffer), known is not None and self.check.vouched(output.buffer, known)))

        output = Handing(self.prefix, self.suffix, take=take)
        self.shaper.shape(rows, output)
        output.flush()
        return self

    @property
    def all_vouched(self) -> bool:
        """Whether everything that came out was vouched for, and something did."""
        return bool(self.said) and all(said for _, said in self.said)


@given(cases(st.one_of(plain_schemas(), plain_schemas(), schemas())), st.sampled_from([None, 7]))
def test_what_is_vouched_for_is_clean(case: Any, version: int | None) -> None:
    schema, pages, rules, _, _ = case
    asked = Asked(schema, shape.Rules(**{**rules, "on_bad_record": "skip", "max_bad_records": 10**6}), version)
    for page in pages:
        asked.shape(page)
    for lines, said in asked.said:
        if said:
            assert CleanCheck(schema).page(lines), lines


ROW: dict[str, Any] = {
    "text": "x",
    "whole": 5,
    "small": 7,
    "number": 1.5,
    "truth": True,
    "time": "2024-01-02T03:04:05Z",
    "date": dt.date(2024, 1, 2),
    "texts": ["a", None],
    "wholes": [1, 2**63 - 1],
    "inner": {"n": 1, "f": 2.5, "t": "2024-01-02T03:04:05.5Z"},
    "choice": "a",
    "below": 99,
}


def of(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: NODES[name] for name in names}}


def asked(row: dict[str, Any], schema: dict[str, Any] | None = None) -> Asked:
    return Asked(schema or of(*ROW), shape.Rules(on_bad_record="skip", max_bad_records=9)).shape(
        [dict(ROW), row, dict(ROW)]
    )


def test_plain_rows_are_vouched_for() -> None:
    assert asked(dict(ROW)).all_vouched
    assert asked({}).all_vouched
    assert asked({**ROW, "unknown": 1}).all_vouched  # it is dropped
    assert asked({**ROW, "text": "x" * 3000}).all_vouched


@pytest.mark.parametrize("name", sorted(ROW))
def test_each_kind_of_field_alone(name: str) -> None:
    assert Asked(of(name), shape.Rules()).shape([{name: ROW[name]}]).all_vouched


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("whole", 2**63),
        ("whole", -(2**63) - 1),
        ("below", -(2**63) - 1),
        ("wholes", [2**63]),
        ("number", 2**64),
        ("number", Decimal("1E+300")),
        ("number", Decimal("0.1")),
        ("inner", {"n": 2**63}),
        ("inner", {"f": Decimal("0.1")}),
        ("text", "1" * 1200),
        ("text", "[" * 1200),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_only_the_line_shows_is_not_vouched_for(name: str, value: Any) -> None:
    found = asked({**ROW, name: value})
    assert b"".join(lines for lines, _ in found.said).count(b"\n") == 3
    assert not found.all_vouched


def test_fields_beside_those_of_the_schema_are_not_vouched_for() -> None:
    schema = {**of("whole"), "additionalProperties": True}
    found = Asked(schema, shape.Rules()).shape([{"whole": 1}, {"whole": 1, "more": 2}])
    assert b'"more":2' in found.said[0][0]
    assert not found.all_vouched


def test_schemas_that_differ_do_not_trust_each_other() -> None:
    one = Asked(of("whole"), shape.Rules())
    one.check = CleanCheck(of("text"))
    assert not one.shape([{"whole": 1}]).all_vouched


def test_lines_of_several_pages_in_one_buffer_are_not_vouched_for() -> None:
    one = Asked(of("whole"), shape.Rules())
    output = shape.Output(bytearray(), one.prefix, one.suffix)
    one.shaper.shape([{"whole": 1}], output)
    assert output.vouched is not None
    one.shaper.shape([{"whole": 2}], output)
    assert output.vouched is None


def test_whole_numbers_beyond_64_bits_come_out_as_before() -> None:
    for schema in (of("whole"), of("below"), of("wholes")):
        (name,) = schema["properties"]
        value: Any = [10**30] if name == "wholes" else -(10**30)
        found = Asked(schema, shape.Rules()).shape([{name: value}, {name: value}])
        assert b"".join(lines for lines, _ in found.said).count(str(10**30).encode()) == 2
