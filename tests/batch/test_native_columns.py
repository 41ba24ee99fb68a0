"""Parquet and Arrow files of a source that are read as rows: whole, and with the values that stand in them."""

import datetime as dt
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from native_taps import tap_of

import burler
from burler.testing import run_tap

SCHEMA = {
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "at": {"type": ["null", "string"], "format": "date-time"},
    }
}


def run(path, **options):
    return run_tap(tap_of(burler.batch_files(path, **options), schema=SCHEMA))


def test_parquet_times_of_96_bits_are_right_in_every_year(tmp_path):
    moments = pa.array([dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1)], pa.timestamp("us"))  # noqa: DTZ001
    pq.write_table(
        pa.table({"id": [1, 2], "at": moments}), tmp_path / "a.parquet", use_deprecated_int96_timestamps=True
    )
    found = run(tmp_path / "a.parquet").records("orders")
    assert [row["at"] for row in found] == ["9999-12-31T00:00:00Z", "0001-01-01T00:00:00Z"]


def test_an_arrow_stream_that_breaks_off_between_two_batches_is_an_error(tmp_path):
    out, ends = io.BytesIO(), []
    table = pa.table({"id": [1, 2, 3, 4]})
    with pa.ipc.new_stream(out, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=2):
            writer.write_batch(batch)
            ends.append(out.tell())
    path = tmp_path / "a.arrow"
    path.write_bytes(out.getvalue())
    assert [row["id"] for row in run(path).records("orders")] == [1, 2, 3, 4]
    for end in ends:
        path.write_bytes(out.getvalue()[:end])
        cut = run(path)
        assert "a.arrow': it is broken off" in str(cut.result.errors["orders"])


@pytest.mark.parametrize("make", ["new_file", "new_stream"])
def test_an_arrow_file_whose_texts_lie_outside_of_it_is_an_error(tmp_path, make):
    out = io.BytesIO()
    table = pa.table({"id": [1, 2], "name": ["value of it", "b"]})
    with getattr(pa.ipc, make)(out, table.schema) as writer:
        writer.write_table(table)
    data, ends = out.getvalue(), b"\0\0\0\0\x0b\0\0\0\x0c\0\0\0"
    assert data.count(ends) == 1
    path = tmp_path / "a.arrow"
    path.write_bytes(data.replace(ends, b"\0\0\0\0\x0b\0\0\0\x0c\0\0\x40"))
    assert "a.arrow': it is damaged or broken off" in str(run(path).result.errors["orders"])


def test_arrow_times_without_a_zone_are_utc_as_in_parquet(tmp_path, caplog):
    table = pa.table({"id": [1], "at": pa.array([dt.datetime(2024, 5, 1)], pa.timestamp("us"))})  # noqa: DTZ001
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as out:
        out.write_table(table)
    assert run(tmp_path / "a.arrow").records("orders") == [{"id": 1, "at": "2024-05-01T00:00:00Z"}]
    assert "'at' have no zone; they are taken as UTC" in caplog.text
