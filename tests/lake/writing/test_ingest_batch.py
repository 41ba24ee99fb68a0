"""BATCH messages as input of a lake: their rows become its RECORDs."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from burler.errors import BatchError
from burler.lake import ingest, read_lines

SCHEMA = {
    "type": "SCHEMA",
    "stream": "users",
    "schema": {"properties": {"id": {"type": "integer"}}},
    "key_properties": ["id"],
}
RECEIVED = "2024-01-02T12:00:00.000000Z"


def lines(*messages: Any) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def record(number: int) -> dict[str, Any]:
    return {"type": "RECORD", "stream": "users", "record": {"id": number}}


def state(value: Any) -> dict[str, Any]:
    return {"type": "STATE", "value": {"at": value}}


def batch(path: Path, content: bytes, **more: Any) -> dict[str, Any]:
    path.write_bytes(content)
    return {"type": "BATCH", "stream": "users", "manifest": [f"file://{path}"], **more}


def rows(*ids: int) -> bytes:
    return b"".join(b'{"id":%d}\n' % number for number in ids)


def take(lake: Any, *messages: Any, **options: Any) -> Any:
    warnings: list[str] = []
    writer = lake.writer(**options.pop("settings", {}))
    return ingest(io.BytesIO(lines(*messages)), writer, clock=lake.clock, warn=warnings.append, **options)


def test_rows_of_a_batch_are_records_of_the_lake(lake: Any, tmp_path: Path) -> None:
    message = batch(tmp_path / "a", rows(2, 3), time_extracted="2024-01-01T00:00:00+01:00", version=7)
    done = take(lake, SCHEMA, record(1), message, state(3), record(4), state(4))
    assert lake.ids() == [1, 2, 3, 4]
    assert lake.states == [{"at": 4}]
    found = lake.messages()[1:]
    assert [row["time_extracted"] for row in found] == [
        RECEIVED, "2023-12-31T23:00:00.000000Z", "2023-12-31T23:00:00.000000Z", RECEIVED,
    ]  # fmt: skip
    assert [row.get("version") for row in found] == [None, 7, 7, None]
    assert (done.lines, done.records) == (6, {"users": 4})


def test_bytes_stay_and_a_batch_without_a_time_has_that_of_its_coming(lake: Any, tmp_path: Path) -> None:
    row = b'{ "id":1.0e0,"t":"\\ud83d\xc3\xa9" }'
    message = batch(tmp_path / "a", gzip.compress(row + b"\n"), encoding={"format": "jsonl", "compression": "gzip"})
    take(lake, SCHEMA, message)
    (path,) = [file.path for file in lake.load().files]
    _, line = read_lines(lake.store, path)
    expected = b'{"type":"RECORD","stream":"users","record":%s,"time_extracted":"%s"}'
    assert line.rstrip(b"\n") == expected % (row, RECEIVED.encode())


def test_files_whose_rows_nobody_counted_are_told_once(lake: Any, tmp_path: Path) -> None:
    warnings: list[str] = []
    plain = batch(tmp_path / "a", rows(1))
    known = batch(tmp_path / "b", rows(2), file_stats=[{"records": 1, "bytes": len(rows(2))}])
    data = io.BytesIO(lines(SCHEMA, known, plain, plain))
    ingest(data, lake.writer(), clock=lake.clock, warn=warnings.append)
    assert warnings == [
        f"line 3: stream 'users': rows not counted: file://{tmp_path}/a has no file_stats, so a cut at a line end is "
        "not seen"
    ]


def test_csv_is_read_by_the_schema(lake: Any, tmp_path: Path) -> None:
    take(lake, SCHEMA, batch(tmp_path / "a", b"id\n1\n2\n", format={"name": "csv"}))
    assert lake.ids() == [1, 2]
    assert lake.load().files[0].stats.clean


def test_files_of_the_lake_roll_within_a_batch(lake: Any, tmp_path: Path) -> None:
    take(lake, SCHEMA, batch(tmp_path / "a", rows(*range(50))), state(1), settings={"max_file_records": 20})
    assert [file.stats.records for file in lake.load().files] == [20, 20, 10]
    assert lake.states == [{"at": 1}]


@pytest.mark.parametrize(
    ("content", "more"),
    [
        (gzip.compress(rows(*range(30_000)))[:-500], {"compression": {"name": "gzip"}}),
        (b'{"id":0}\nbroken\n', {}),
        (b"", {"compression": {"name": "gzip"}}),
        (rows(0), {"file_stats": [{"records": 5, "bytes": 9}]}),
        (rows(0), {"manifest": ["file:///nowhere"]}),
        (rows(0), {"encoding": {"format": "jsonl"}, "format": {"name": "csv"}}),
        (rows(0), {"time_extracted": "0001-01-01T00:00:00+14:00"}),
    ],
)
def test_what_follows_an_unreadable_batch_is_not_acknowledged(
    lake: Any, tmp_path: Path, content: bytes, more: dict[str, Any]
) -> None:
    message = batch(tmp_path / "a", content, **more)
    with pytest.raises(BatchError, match=r"^line 4: stream 'users': "):
        take(lake, SCHEMA, record(-1), state(1), message, record(-2), state(2))
    assert lake.states == [{"at": 1}]
    assert lake.ids()[:1] == [-1]
    assert -2 not in lake.ids()
    assert lake.hidden() == []


def test_told_to_stop_in_the_middle_of_a_batch(lake: Any, tmp_path: Path) -> None:
    """What stands behind it in the same block is not looked at."""
    message = batch(tmp_path / "a", rows(*range(300_000)))
    pages: list[int] = []
    writer = lake.writer()
    write = writer.page

    def page(*given: Any) -> None:
        pages.append(given[2])
        write(*given)

    writer.page = page
    ingest(
        io.BytesIO(lines(SCHEMA, record(0), state(1), message, state(2), record(1))),
        writer,
        clock=lake.clock,
        should_stop=lambda: len(pages) > 1,
    )
    assert lake.states == [{"at": 1}]
    assert len(lake.ids()) == sum(pages) < 300_000


def test_options_reach_the_storage(lake: Any, tmp_path: Path) -> None:
    import fsspec

    with fsspec.open("memory://lake-input/a.jsonl", "wb") as file:
        file.write(rows(5))
    message = {"type": "BATCH", "stream": "users", "manifest": ["memory://lake-input/a.jsonl"]}
    take(lake, SCHEMA, message, storage_options={})
    assert lake.ids() == [5]
