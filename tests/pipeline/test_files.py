"""Files of BATCH hold what RECORDs hold: each type of a column, as Arrow gives it and as rows give it."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from urllib.parse import urlsplit

import pytest

import burler
from burler.testing import run_tap

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

UTC, US = dt.UTC, "us"
NOON = dt.datetime(2024, 1, 2, 12, tzinfo=UTC)
MOMENT = {"type": ["null", "string"], "format": "date-time"}
CENTS = {"type": ["null", "number"], "multipleOf": 0.01}
MAP = {"type": ["null", "object"], "additionalProperties": {"type": ["null", "integer"]}}
POINT = {"type": ["null", "object"], "properties": {"x": {"type": "integer"}, "y": {"type": ["null", "string"]}}}


def dictionary(values):
    return pa.array(values).dictionary_encode()


COLUMNS = {
    "integers": (lambda: pa.array([1, -2, None, 2**63 - 1]), {"type": ["null", "integer"]}),
    "small integers": (lambda: pa.array([1, 255], pa.uint8()), {"type": "integer"}),
    "unsigned that fit": (lambda: pa.array([0, 2**63 - 1], pa.uint64()), {"type": "integer"}),
    "whole floats as integers": (lambda: pa.array([1.0, None, -0.0]), {"type": ["null", "integer"]}),
    "whole decimals as integers": (lambda: pa.array([Decimal("7.00"), None]), {"type": ["null", "integer"]}),
    "wide integers": (lambda: pa.array([2**64 - 1], pa.uint64()), {"type": "integer", "maximum": 2**64}),
    "floats": (lambda: pa.array([1.5, None, -0.0, 5e-324, 1.7e308]), {"type": ["null", "number"]}),
    "single floats": (lambda: pa.array([0.1, None], pa.float32()), {"type": ["null", "number"]}),
    "integers as numbers": (lambda: pa.array([1, 2**53]), {"type": "number"}),
    "decimals as numbers": (lambda: pa.array([Decimal("0.47"), Decimal("3.00")]), {"type": "number"}),
    "decimals": (lambda: pa.array([Decimal("1.10"), None], pa.decimal128(12, 2)), CENTS),
    "integers as decimals": (lambda: pa.array([1, None, -7], pa.int32()), CENTS),
    "booleans": (lambda: pa.array([True, None, False]), {"type": ["null", "boolean"]}),
    "text": (lambda: pa.array(['a"\\\n', None, "", "é😀"]), {"type": ["null", "string"]}),
    "large text": (lambda: pa.array(["a", None], pa.large_string()), {"type": ["null", "string"]}),
    "text with a limit": (lambda: pa.array(["abc", None]), {"type": ["null", "string"], "maxLength": 3}),
    "chosen text": (lambda: pa.array(["on", "off"]), {"type": "string", "enum": ["on", "off"]}),
    "dictionaries": (lambda: dictionary(["a", None, "a"]), {"type": ["null", "string"]}),
    "integers as text": (lambda: pa.array([1, None]), {"type": ["null", "string"]}),
    "decimals as text": (lambda: pa.array([Decimal("1.10"), None]), {"type": ["null", "string"]}),
    "integers in a union with text": (lambda: pa.array([1, None]), {"type": ["null", "integer", "string"]}),
    "text in a union with integers": (lambda: pa.array(["x", None]), {"type": ["null", "integer", "string"]}),
    "times of day": (lambda: pa.array([dt.time(1, 2, 3, 4), None]), {"type": ["null", "string"], "format": "time"}),
    "dates as text": (lambda: pa.array([dt.date(2024, 1, 2), None]), {"type": ["null", "string"]}),
    "moments": (lambda: pa.array([NOON, None], pa.timestamp(US, "UTC")), MOMENT),
    "moments in seconds": (lambda: pa.array([NOON], pa.timestamp("s", "UTC")), MOMENT),
    "moments elsewhere": (lambda: pa.array([NOON], pa.timestamp("ms", "Europe/Berlin")), MOMENT),
    "whole nanoseconds": (lambda: pa.array([1_000, None], pa.timestamp("ns", "UTC")), MOMENT),
    "the first and the last moment": (
        lambda: pa.array([-62_135_596_800, 253_402_300_799], pa.timestamp("s", "UTC")), MOMENT
    ),
    "moments as burler writes them": (lambda: pa.array(["2024-01-02T03:04:05Z", None]), MOMENT),
    "days": (lambda: pa.array([dt.date(1, 1, 1), None]), {"type": ["null", "string"], "format": "date"}),
    "days of 64 bits": (
        lambda: pa.array([dt.date(2024, 1, 2)], pa.date64()), {"type": "string", "format": "date"}
    ),
    "days as text": (lambda: pa.array(["2024-02-29"]), {"type": "string", "format": "date"}),
    "bytes": (lambda: pa.array([b"\x00\xff", None]), {"type": ["null", "string"], "contentEncoding": "base64"}),
    "bytes of one length": (
        lambda: pa.array([b"ab"], pa.binary(2)), {"type": "string", "contentEncoding": "base64"}
    ),
    "structs": (lambda: pa.array([{"x": 1, "y": "a"}, None, {"x": 2, "y": None}]), POINT),
    "structs without a field": (lambda: pa.array([{"x": 1}, None]), POINT),
    "lists": (
        lambda: pa.array([[1, None], None, []]), {"type": ["null", "array"], "items": {"type": ["null", "integer"]}}
    ),
    "lists of structs": (
        lambda: pa.array([[{"x": 1}, None], [], None]), {"type": ["null", "array"], "items": POINT}
    ),
    "fixed lists": (
        lambda: pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)), {"type": "array", "items": {"type": "number"}}
    ),
    "maps": (lambda: pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int32())), MAP),
    "open objects": (lambda: pa.array([{"x": 1, "y": [1.5, None]}, None]), {"type": ["null", "object"]}),
    "lists of anything": (lambda: pa.array([["a", None], None]), {"type": ["null", "array"]}),
    "numbers of anything": (lambda: pa.array([1.5, None]), {}),
    "only nulls": (lambda: pa.nulls(2), {"type": ["null", "integer"]}),
}  # fmt: skip


INTEGER, NUMBER, TEXT = ({"type": ["null", name]} for name in ("integer", "number", "string"))
DAY = {**TEXT, "format": "date"}
EXACT = {**TEXT, "format": "singer.decimal", "scale": 3}
BASE64 = {**TEXT, "contentEncoding": "base64"}
PLACE = {"type": ["null", "object"], "properties": {"x": {"type": "integer"}, "y": TEXT, "p": MOMENT}}
MAPS = {"type": ["null", "object"], "additionalProperties": NUMBER}
BERLIN = dt.timezone(dt.timedelta(hours=1))

ROWS = {
    "integers": (INTEGER, [1, None, -(2**63), 2**63 - 1]),
    "integers as text": (INTEGER, ["12", 3]),
    "whole floats": (INTEGER, [1.0, 2]),
    "wide integers": ({"type": "integer", "maximum": 10**30}, [10**30, -1]),
    "numbers": (NUMBER, [1.5, 2, None, -0.0, 5e-324]),
    "cents": (CENTS, [0.1, Decimal("1.10"), 3, None, -12.34]),
    "exact numbers in text": (EXACT, ["1.5", Decimal("2.125"), 7, None]),
    "booleans": ({"type": ["null", "boolean"]}, [True, None, False]),
    "text": (TEXT, ["", None, 'a"\\\n\0', "é😀"]),
    "text or integers": ({"type": ["null", "string", "integer"]}, ["a", None]),
    "moments": (MOMENT, ["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.123456Z", None]),
    "moments elsewhere": (MOMENT, ["2024-01-02T03:04:05+02:00", NOON.astimezone(BERLIN)]),
    "datetimes": (MOMENT, [NOON, None]),
    "the first and the last moment": (MOMENT, ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"]),
    "days": (DAY, ["2024-02-29", dt.date(1, 1, 1), None]),
    "bytes": (BASE64, [b"\0\xff", "AAE=", None]),
    "objects": (PLACE, [{"x": 1, "y": "a", "p": "2024-01-02T03:04:05Z"}, None, {"x": 2}]),
    "lists": ({"type": ["null", "array"], "items": INTEGER}, [[1, None], None, [], [3]]),
    "lists of objects": ({"type": "array", "items": PLACE}, [[{"x": 1}, None], [], [{"x": 2, "y": "b"}]]),
    "maps": (MAPS, [{"a": 1, "b": None}, None, {}, {"a": 0.5}]),
    "anything": ({}, ["7", 7, None, {"a": [1.50, Decimal("1.50")]}, 'a"\n']),
    "text or objects": ({"type": ["null", "string", "object"]}, ["7", {"x": 1}, None]),
    "open objects": ({"type": ["null", "object"]}, [{"x": 1}, None]),
    "lists of anything": ({"type": ["null", "array"]}, [[1, "a"], None, []]),
    "only nulls": (PLACE, [None, None]),
}


def is_said(value, record):
    """Whether a value of a file is that of a RECORD."""
    if isinstance(value, dict):
        return isinstance(record, dict) and all(is_said(part, record.get(name)) for name, part in value.items())
    if isinstance(value, list) and isinstance(record, dict):  # a map
        return len(value) == len(record) and all(is_said(part, record[name]) for name, part in value)
    if isinstance(value, list) and isinstance(record, list):
        return len(value) == len(record) and all(map(is_said, value, record))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode() == record
    if isinstance(value, dt.datetime):
        return value == dt.datetime.fromisoformat(record)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat() == record
    if isinstance(value, str) and value != record:  # a column of JSON
        return json.loads(value) == record
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return not isinstance(record, bool) and float(value) == float(record)
    return value is record or value == record


def pages_of():
    """For each stream: its field, and its pages."""
    for name, (make, node) in COLUMNS.items():
        batch = pa.RecordBatch.from_arrays([make()], names=["v"])
        yield (
            f"columns, {name}",
            node,
            [batch, batch.slice(1 if len(batch) > 1 else 0), pa.Table.from_batches([batch] * 2)],
        )
    for name, (node, values) in ROWS.items():
        rows = [{"v": value} for value in values]
        yield f"rows, {name}", node, [[*rows, {}] if "null" in node.get("type", "null") else rows]


def run(**config):
    tap = burler.tap("tap-x")
    for name, node, pages in pages_of():
        schema = {"type": "object", "properties": {"v": node}}
        tap.sync(name.replace(" ", "-"), schema=schema)(lambda pages=pages: iter(pages))
    out = run_tap(tap, config)
    assert not out.result.errors
    return out


def test_files_hold_what_records_hold(tmp_path):
    encoding = {"format": "parquet", "compression": "none"}
    files = run(batch_config={"encoding": encoding, "storage": {"root": str(tmp_path)}, "dialect": "sip"})
    records, rows = run(), {}
    for message in files.messages:
        if message["type"] == "BATCH":
            for url in message["manifest"]:
                rows.setdefault(message["stream"], []).extend(pq.ParquetFile(urlsplit(url).path).read().to_pylist())
    for stream in records.result.rows:
        wanted = records.records(stream)
        assert len(rows.get(stream, [])) == len(wanted) > 0, stream
        for row, record in zip(rows[stream], wanted, strict=True):
            assert is_said(row["v"], record.get("v")), (stream, row, record)
