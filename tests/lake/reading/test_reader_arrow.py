"""A lake as Arrow: what comes is exactly what each value says, by either way, or it is an error."""

from __future__ import annotations

import datetime as dt
import json
import logging
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burler.errors import LakeError
from burler.lake import LakeWriter, load, read
from burler.singer.messages import Schema, format_time
from support.internals import column_types, column_values, columnar_nodes, lake_arrow, memory_store

pa = pytest.importorskip("pyarrow")
NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)

PROPERTIES = {
    "id": {"type": "integer"},
    "n": {"type": ["null", "number"]},
    "d": {"type": "number", "multipleOf": 0.01},
    "ok": {"type": "boolean"},
    "s": {"type": "string"},
    "at": {"type": "string", "format": "date-time"},
    "on": {"type": "string", "format": "date"},
    "o": {"type": "object", "properties": {"x": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}},
    "l": {"type": "array", "items": {"type": "number"}},
    "none": {"type": "null"},
}
OTHERS = {
    "any": {},
    "b": {"type": "string", "contentEncoding": "base64"},
    "m": {"type": "object", "additionalProperties": {"type": "integer"}},
    "dates": {"type": "array", "items": {"type": "string", "format": "date"}},
    "either": {"type": ["string", "number"]},
}
times = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)).flatmap(  # noqa: DTZ001
    lambda moment: st.sampled_from(["Z", "+00:00", "-05:30"]).map(lambda zone: moment.isoformat() + zone)
)
VALUES: dict[str, Any] = {
    "id": st.integers(-(2**63), 2**63 - 1),
    "n": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20) | st.none(),
    "d": st.decimals(-1000, 1000, places=2) | st.integers(-5, 5),
    "ok": st.booleans(),
    "s": st.text(max_size=8),
    "at": times,
    "on": st.dates().map(dt.date.isoformat),
    "o": st.fixed_dictionaries({}, optional={"x": st.integers(-5, 5) | st.none(), "at": times}) | st.none(),
    "l": st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.none(), max_size=3),
    "none": st.none(),
    "any": st.recursive(st.none() | st.text(max_size=3) | st.integers(0, 9), lambda one: st.lists(one, max_size=2)),
    "b": st.sampled_from(["AAEC", ""]),
    "m": st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2),
    "dates": st.lists(st.dates().map(dt.date.isoformat), max_size=2),
    "either": st.text(max_size=3) | st.integers(0, 9),
}


def encoded(row: dict[str, Any]) -> bytes:
    def plain(value: Any) -> Any:
        return value if not isinstance(value, Decimal) else float(value)

    return json.dumps({name: plain(value) for name, value in row.items()}, separators=(",", ":")).encode()


def lake_of(properties: dict[str, Any], rows: list[bytes], *, more: bytes = b"") -> memory_store.MemoryStore:
    store = memory_store.MemoryStore()
    with LakeWriter(store, "tap", emit_state=lambda _state: None) as writer:
        writer.schema(Schema("s", {"type": "object", "properties": properties}, ()))
        for row in rows:
            line = b'{"type":"RECORD","stream":"s","record":%s,"time_extracted":"%s"%s}\n'
            writer.page("s", line % (row, format_time(NOON).encode(), more), 1, [format_time(NOON)])
    return store


def reference(properties: dict[str, Any], rows: list[bytes]) -> Any:
    """One value after the other, by the rules of ``burler.columns``."""
    schema = json.loads(json.dumps({"type": "object", "properties": properties}, sort_keys=True))  # as a lake has it
    record = columnar_nodes.with_json(column_types.record_type(schema), schema)
    convert, report = column_values.converter(record, ()), column_values.Report(Counter(), Counter())
    columns = column_types.arrow_schema(record)
    values = [convert(row, report) for row in rows]
    return pa.Table.from_pylist([_named(one, columns) for one in values], schema=columns)


def _named(value: Any, columns: Any) -> Any:
    return value if isinstance(value, dict) else dict(zip(columns.names, value, strict=True))


@pytest.mark.parametrize("columns", [PROPERTIES, {**PROPERTIES, **OTHERS}], ids=["plain", "all"])
def test_arrow_is_what_a_slow_reference_gives(columns: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ways: Counter[str] = Counter()
    plain = {name: getattr(lake_arrow._Table, name) for name in ("quickly", "exactly")}

    def quickly(table: lake_arrow._Table, lines: bytes) -> Any:
        made = plain["quickly"](table, lines)
        ways["quickly"] += made is not None
        return made

    def exactly(table: lake_arrow._Table, lines: bytes, count: int) -> Any:
        ways["exactly"] += 1
        return plain["exactly"](table, lines, count)

    monkeypatch.setattr(lake_arrow._Table, "quickly", quickly)
    monkeypatch.setattr(lake_arrow._Table, "exactly", exactly)
    row = st.fixed_dictionaries({}, optional={name: VALUES[name] for name in columns})

    @settings(deadline=None)
    @given(st.lists(row, min_size=1, max_size=6))
    def check(found: list[dict[str, Any]]) -> None:
        rows = [encoded(one) for one in found]
        wanted = reference(columns, rows)
        for more in (b"", b',"x-other":1'):  # the second is never clean
            got = pa.Table.from_batches(read(lake_of(columns, rows, more=more)).arrow(), wanted.schema)
            assert got.equals(wanted)

    check()
    assert ways["exactly"] >= 30
    assert (ways["quickly"] > 10) == (columns is PROPERTIES)


def test_columns_and_times_narrow_it(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="burler.lake")
    with lake.writer() as writer:
        writer.schema(lake.schema(name={"type": "string"}, any={}))
        writer.records(lake.page("users", {"id": 1, "name": "a", "any": [1]}))
        writer.records(lake.page("users", {"id": 2, "name": "b", "any": "x"}, at=NOON + dt.timedelta(hours=1)))
    row = {"id": 2, "name": "b", "any": '"x"'}
    for names in (["name", "id"], ["any"]):
        (batch,) = read(lake.store, since=NOON + dt.timedelta(minutes=1), columns=names).arrow()
        assert batch.schema.names == names
        assert batch.to_pylist() == [{name: row[name] for name in names}]
    assert not caplog.records  # what nobody asked for is not missed


@pytest.mark.usefixtures("values_in_logs")
def test_a_value_that_its_column_cannot_hold_is_named() -> None:
    store = lake_of({"id": {"type": "integer"}}, [b'{"id":1}', b'{"id":"no number"}'])
    with pytest.raises(LakeError, match=r"s-2024.*stream 's': field 'id': \"no number\" can't be held") as caught:
        list(read(store).arrow())
    assert "pages() and rows() give" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3
    assert [row["id"] for row in read(store).rows()] == [1, "no number"]


def test_fields_without_a_column_are_told_of_once(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    for n in range(3):
        with lake.writer() as writer:
            writer.schema(lake.schema())
            writer.records(lake.page("users", {"id": n, "more": 2}, {"id": n}))
    with caplog.at_level(logging.WARNING, logger="burler.lake"):
        batches = list(read(lake.store).arrow())
    assert [batch.to_pylist() for batch in batches] == [[{"id": n}, {"id": n}] for n in range(3)]
    (record,) = caplog.records
    assert "field 'more' is not in the schema and has no column: left out of 3 row(s)" in record.getMessage()
    assert "batch_config" not in record.getMessage()


def test_each_schema_version_has_its_own_columns(lake: Any) -> None:
    for fields in ({}, {"name": {"type": "string"}}):
        with lake.writer() as writer:
            writer.schema(lake.schema(**fields))
            writer.records(lake.page("users", 1))
    assert [batch.schema.names for batch in read(lake.store).arrow()] == [["id"], ["id", "name"]]
    assert [batch.schema.names for batch in read(lake.store, schema="v2").arrow()] == [["id", "name"]]
    with pytest.raises(LakeError, match="has none of the columns name"):
        list(read(lake.store, columns=["name"]).arrow())
    assert [batch.schema.names for batch in read(lake.store, schema="v2..", columns=["name"]).arrow()] == [["name"]]


def test_a_schema_without_fields_has_no_columns(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(Schema("users", {"type": "object"}, ()))
        writer.records(lake.page("users", 1))
    with pytest.raises(LakeError, match="declares no properties") as caught:
        list(read(lake.store).arrow())
    assert "pages() and rows()" in str(caught.value)
    assert load(lake.store, "tap-x", "users").files
