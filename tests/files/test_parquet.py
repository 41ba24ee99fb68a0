"""Parquet files."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from filebox import error, ids, rows, tap_of

from burler.files import read
from burler.testing import run_tap


def put(box, name, table, **options):
    pq.write_table(table, box[name], **options)


def test_columns_are_found_by_name_whatever_their_order_and_width(box):
    put(box, "a.parquet", pa.table({"id": pa.array([1], pa.int32()), "name": ["a"], "total": pa.array([1.5])}))
    put(box, "b.parquet", pa.table({"total": pa.array([Decimal("2.50")]), "id": pa.array([2], pa.int64())}))
    put(box, "c.parquet", pa.table({"id": pa.array([3], pa.uint8()), "name": pa.array(["c"]).dictionary_encode()}))
    assert rows(box["*.parquet"], order="name") == [
        {"id": 1, "name": "a", "total": 1.5},
        {"id": 2, "total": 2.5},
        {"id": 3, "name": "c"},
    ]


def test_timestamps_without_a_zone_are_utc_with_one_warning_a_column(box, caplog):
    moment = dt.datetime(2024, 5, 1, 12)  # noqa: DTZ001
    schema = {
        "properties": {
            "id": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "deep": {
                "type": "object",
                "properties": {"days": {"type": "array", "items": {"type": "string", "format": "date-time"}}},
            },
        }
    }
    deep = pa.array([{"days": [moment]}], pa.struct([("days", pa.list_(pa.timestamp("us")))]))
    for name in "ab":
        put(box, f"{name}.parquet", pa.table({"id": [1], "at": pa.array([moment], pa.timestamp("ms")), "deep": deep}))
    found = rows(box["*.parquet"], schema=schema)
    assert found == [{"id": 1, "at": "2024-05-01T12:00:00Z", "deep": {"days": ["2024-05-01T12:00:00Z"]}}] * 2
    warned = [record.getMessage() for record in caplog.records if "have no zone" in record.getMessage()]
    assert len(warned) == 2 and "'at'" in warned[0] and "'deep'" in warned[1]


def old_times(box, *moments, kind="us"):
    """A file of the 96-bit timestamps of Hive, Impala and older Sparks."""
    table = pa.table({"id": list(range(len(moments))), "at": pa.array(moments, pa.timestamp(kind))})
    put(box, "a.parquet", table, use_deprecated_int96_timestamps=True)


def test_nanoseconds_and_the_end_of_time_in_one_file(box):
    """Impala writes such files. pyarrow does not, so the 96 bits are put in place here."""
    old_times(box, *range(1, 1001), kind="ns")
    path = box.folder / "a.parquet"
    pq.write_table(
        pq.read_table(path), path, use_deprecated_int96_timestamps=True, use_dictionary=False, compression="none"
    )
    data, day = path.read_bytes(), 2_440_588
    at = (500).to_bytes(8, "little") + day.to_bytes(4, "little")
    assert data.count(at) == 1
    path.write_bytes(data.replace(at, (0).to_bytes(8, "little") + (day + 2_932_896).to_bytes(4, "little")))
    found = [row["at"] for row in rows(box["a.parquet"])]
    assert found[499] == "9999-12-31T00:00:00Z"
    del found[499]
    assert [int(at.rstrip("Z").partition(".")[2].ljust(9, "0")) for at in found] == [*range(1, 500), *range(501, 1001)]


def test_nested_columns_maps_and_a_dot_in_a_name(box):
    schema = {
        "properties": {
            "a.b": {"type": "integer"},
            "a": {"type": "object", "properties": {"b": {"type": "integer"}, "c": {"type": "integer"}}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        }
    }
    table = pa.table(
        {"a.b": [1], "a": [{"b": 2, "c": 3}], "m": pa.array([[("x", 4)]], pa.map_(pa.string(), pa.int64()))}
    )
    put(box, "a.parquet", table)
    found = run_tap(tap_of(box["*.parquet"], schema=schema, key=()))
    assert not found.result.errors
    assert found.records("orders") == [{"a.b": 1, "a": {"b": 2, "c": 3}, "m": {"x": 4}}]


def test_only_selected_and_unknown_columns_are_read(box, caplog):
    put(box, "a.parquet", pa.table({"id": [1], "name": ["n" * 99], "total": [1.0], "colour": ["red"]}))
    path = box.folder / "a.parquet"
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(1)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    data = bytearray(path.read_bytes())
    data[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(data)
    assert run_tap(tap_of(box["*.parquet"])).result.errors, "the name can't be read"
    caplog.clear()
    out = run_tap(tap_of(box["*.parquet"]), select="orders.total")
    assert out.records("orders") == [{"id": 1, "total": 1}] and "colour" in caplog.text


def test_no_column_of_the_stream_is_an_error(box):
    put(box, "a.parquet", pa.table({"x": [1]}))
    assert "none of its columns is a field of the stream" in error(box["a.parquet"])


def test_a_big_row_group_comes_in_batches(box):
    put(box, "a.parquet", pa.table({"id": list(range(50_000))}))
    sizes = [batch.num_rows for batch in read(box["a.parquet"])]
    assert sum(sizes) == 50_000 and max(sizes) <= 10_000


def test_duckdb_reads_the_same_rows(box):
    duckdb.execute(
        "copy (select i::int as id, 'n' || i as name, (i / 7)::decimal(18, 4) as total, i % 2 = 0 as paid,"
        f" timestamptz '2024-01-01 00:00:00+00' + to_seconds(i) as at from range(30000) t(i)) to '{box['a.parquet']}'"
    )
    wanted = duckdb.execute(
        f"select id, name, total, paid, epoch_us(\"at\") from read_parquet('{box['a.parquet']}') order by id"
    ).fetchall()
    out = run_tap(tap_of(box["*.parquet"]))
    assert ids(out) == list(range(30_000))
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    found = [
        (
            row["id"],
            row["name"],
            Decimal(str(row["total"])),
            row["paid"],
            (dt.datetime.fromisoformat(row["at"]) - epoch) // dt.timedelta(microseconds=1),
        )
        for row in out.records("orders")
    ]
    assert found == wanted
