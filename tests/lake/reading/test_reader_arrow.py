"""A lake as Arrow: what comes is exactly what each value says, by either way, or it is an error."""

from __future__ import annotations

import base64
import datetime as dt
import json
import logging
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_lakes import in_memory

from burler.errors import LakeError
from burler.lake import LakeWriter, Store, load, read
from burler.singer.messages import Schema, format_time

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


def lake_of(properties: dict[str, Any], rows: list[bytes], *, more: bytes = b"") -> Store:
    store = in_memory()
    with LakeWriter(store, "tap", emit_state=lambda _state: None) as writer:
        writer.schema(Schema("s", {"type": "object", "properties": properties}, ()))
        for row in rows:
            line = b'{"type":"RECORD","stream":"s","record":%s,"time_extracted":"%s"%s}\n'
            writer.page("s", line % (row, format_time(NOON).encode(), more), 1, [format_time(NOON)])
    return store


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).astimezone(dt.UTC)


def as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"))


PYTHON: dict[str, Any] = {
    "n": float,
    "d": lambda value: Decimal(value).quantize(Decimal("0.01")),
    "at": moment,
    "on": dt.date.fromisoformat,
    "o": lambda value: {"at": moment(value["at"]) if "at" in value else None, "x": value.get("x")},
    "l": list,
    "any": as_json,
    "b": base64.b64decode,
    "m": lambda value: sorted(value.items()),
    "dates": lambda value: [dt.date.fromisoformat(one) for one in value],
    "either": lambda value: value if isinstance(value, str) else json.dumps(value),
}
"""What a column holds, one value after the other; the others hold what JSON says."""


def reference(row: dict[str, Any], columns: dict[str, Any]) -> dict[str, Any]:
    found = {name: row.get(name) for name in columns}
    return {name: PYTHON.get(name, lambda one: one)(one) if one is not None else None for name, one in found.items()}


@given(st.data())
def test_arrow_is_what_a_slow_reference_gives(data: st.DataObject) -> None:
    columns = data.draw(st.sampled_from([PROPERTIES, {**PROPERTIES, **OTHERS}]))
    row = st.fixed_dictionaries({}, optional={name: VALUES[name] for name in columns})
    found = data.draw(st.lists(row, min_size=1, max_size=6))
    wanted = [reference(one, columns) for one in found]
    for more in (b"", b',"x-other":1'):  # the second is never clean
        got = pa.Table.from_batches(read(lake_of(columns, [encoded(one) for one in found], more=more)).arrow())
        rows = [{**one, "m": sorted(one["m"])} if one.get("m") else one for one in got.to_pylist()]
        assert rows == wanted


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
    assert "field 'more' is not in the schema and has no column: left out of 3 rows" in record.getMessage()
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
