"""Parquet and Arrow files pass if their columns hold what the schema says, each value exactly."""

import logging
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from native_taps import TYPES, batches, config_of, put, rows_in, table, tap_of

from burler import batch_files
from burler.testing import run_tap

HOLDS = {
    "int64": (pa.int64(), {"type": "integer"}, None),
    "int8": (pa.int8(), {"type": "integer"}, None),
    "uint32": (pa.uint32(), {"type": "integer"}, None),
    "uint64": (pa.uint64(), {"type": "integer"}, "column 'v' is uint64, where the schema asks for integers"),
    "uint64 for big ones": (pa.uint64(), {"type": "integer", "maximum": 10**20}, None),
    "double for integers": (pa.float64(), {"type": "integer"}, "column 'v' is double"),
    "float": (pa.float32(), {"type": "number"}, None),
    "int32 for numbers": (pa.int32(), {"type": "number"}, None),
    "int64 for numbers": (pa.int64(), {"type": "number"}, "column 'v' is int64, where the schema asks for double"),
    "decimal": (pa.decimal128(20, 2), {"type": "number", "multipleOf": 0.01}, None),
    "decimal with more digits": (pa.decimal128(20, 3), {"type": "number", "multipleOf": 0.01}, r"decimal\(38, 2"),
    "a big decimal": (pa.decimal256(60, 2), {"type": "number", "multipleOf": 0.01}, r"is decimal256\(60, 2\)"),
    "double for decimal": (pa.float64(), {"type": "number", "multipleOf": 0.01}, "is double"),
    "text": (pa.string(), {"type": "string"}, None),
    "large text": (pa.large_string(), {"type": ["null", "string"]}, None),
    "a dictionary of text": (pa.dictionary(pa.int8(), pa.string()), {"type": "string"}, None),
    "text for a date-time": (pa.string(), {"type": "string", "format": "date-time"}, "asks for timestamps in UTC"),
    "text for anything": (pa.string(), {}, "the schema lets it hold anything"),
    "text for an open object": (pa.string(), {"type": "object"}, "the schema lets it hold anything"),
    "microseconds": (pa.timestamp("us", "UTC"), {"type": "string", "format": "date-time"}, None),
    "nanoseconds": (pa.timestamp("ns", "UTC"), {"type": "string", "format": "date-time"}, r"timestamp\[ns, tz=UTC\]"),
    "no zone": (pa.timestamp("us"), {"type": "string", "format": "date-time"}, r"timestamp\[us\]"),
    "another zone": (pa.timestamp("us", "Europe/Rome"), {"type": "string", "format": "date-time"}, "tz=Europe/Rome"),
    "dates": (pa.date32(), {"type": "string", "format": "date"}, None),
    "truth": (pa.bool_(), {"type": "boolean"}, None),
    "numbers for truth": (pa.int8(), {"type": "boolean"}, "is int8, where the schema asks for bool"),
    "bytes": (pa.binary(), {"type": "string", "contentEncoding": "base64"}, None),
    "text for bytes": (pa.string(), {"type": "string", "contentEncoding": "base64"}, "asks for bytes"),
    "nulls": (pa.null(), {"type": ["null", "integer"]}, None),
    "a list": (pa.list_(pa.int32()), {"type": "array", "items": {"type": "integer"}}, None),
    "a list of text": (pa.list_(pa.string()), {"type": "array", "items": {"type": "integer"}}, "its items is string"),
    "a list of anything": (pa.list_(pa.string()), {"type": "array", "items": {}}, "'v', its items holds string, and"),
    "a struct": (
        pa.struct([("a", pa.int64())]), {"type": "object", "properties": {"a": {"type": "integer"}}}, None,
    ),
    "a struct with more": (
        pa.struct([("a", pa.int64()), ("b", pa.int64())]),
        {"type": "object", "properties": {"a": {"type": "integer"}}},
        "'v' has the fields a, b, and the schema a",
    ),
    "a map": (
        pa.map_(pa.string(), pa.int64()), {"type": "object", "additionalProperties": {"type": "integer"}}, None,
    ),
    "a map of text": (
        pa.map_(pa.string(), pa.string()), {"type": "object", "additionalProperties": {"type": "integer"}}, "values",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HOLDS)
def test_columns_pass_if_each_value_fits_the_schema_exactly(tmp_path, caplog, case):
    kind, node, said = HOLDS[case]
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "v": node}}
    data = pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.null()).cast(kind)})
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), data.schema) as out:
        out.write_table(data)
    with caplog.at_level(logging.INFO):
        run = run_tap(tap_of(batch_files(tmp_path / "a.arrow"), schema=schema), config_of(tmp_path))
    if said is None:
        assert "written anew" not in caplog.text
        assert batches(run)[0]["manifest"] == [f"file://{tmp_path / 'a.arrow'}"]
    else:
        assert not batches(run)
        assert re.search(said, caplog.text), caplog.text


def test_a_parquet_file_with_naive_times_is_written_anew(tmp_path, caplog):
    naive = TYPES.set(3, pa.field("at", pa.timestamp("ms")))
    pq.write_table(table().cast(naive), tmp_path / "a.parquet")
    with caplog.at_level(logging.INFO):
        run = run_tap(tap_of(batch_files(tmp_path / "a.parquet")), config_of(tmp_path))
    assert "column 'at' is timestamp[ms], where the schema asks for timestamps in UTC" in caplog.text
    assert [row["at"] for row in rows_in(run, tmp_path)] == [
        "2024-01-01T00:00:00Z", "2024-01-02T10:00:00.500000Z", None,
    ]  # fmt: skip


def test_the_same_file_with_a_zone_passes(tmp_path):
    run = run_tap(tap_of(batch_files(put(tmp_path, "a.parquet"))), config_of(tmp_path))
    assert batches(run)[0]["manifest"] == [f"file://{tmp_path}/a.parquet"]
