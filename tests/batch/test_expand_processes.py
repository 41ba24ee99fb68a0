"""``expand(processes=N)``: files are read ahead by worker processes, and come out as if one had read them all."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from piped import SCHEMA, Piped, batch, expanded, file, lines, record, rows, state

from burler.batch import expand
from burler.errors import BatchError, StorageError
from support.servers import serving

ORDERS = {**SCHEMA, "stream": "orders"}
PACKED = {"compression": {"name": "gzip"}}


def many(folder: Path, count: int = 6, size: int = 20_000) -> list[Any]:
    """Messages with files of different sizes, the biggest first."""
    messages: list[Any] = [SCHEMA, ORDERS]
    for number in range(count):
        first = number * size
        content = rows(*range(first, first + (size if number % 2 == 0 else 3)))
        url = file(folder / f"{number}.jsonl.gz", content, packed=True)
        messages += [
            record(-number),
            {**batch(url, **PACKED), "stream": ("users", "orders")[number % 2]},
            state(number),
        ]
    return messages


def test_the_output_is_that_of_one_process(tmp_path: Path) -> None:
    messages = many(tmp_path)
    one, three = expanded(*messages), expanded(*messages, processes=3)
    assert three.error is None, three.error
    assert three.raw == one.raw
    assert three.done == one.done
    assert three.done.records == 60_009


def test_files_of_one_message_are_read_by_several(tmp_path: Path) -> None:
    urls = [file(tmp_path / f"{n}.jsonl", rows(*range(n * 100, n * 100 + 100))) for n in range(9)]
    out = expanded(SCHEMA, batch(*urls, version=3), batch(), state(1), processes=4)
    assert out.ids == list(range(900))
    assert (out.done.batches, out.done.records) == (2, 900)
    assert {message["version"] for message in out.of("RECORD")} == {3}


def test_no_room_for_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that says where there is none, and no STATE of what is not out."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    out = expanded(SCHEMA, batch(file(tmp_path / "a", rows(1))), state(1), processes=2)
    assert isinstance(out.error, StorageError)
    assert "temporary files" in str(out.error) and "TMPDIR" in str(out.error)
    assert out.of("STATE") == []


def test_an_error_waits_for_its_turn(tmp_path: Path) -> None:
    """Files before the broken one are out, with their STATE, though it was read before them."""
    good = file(tmp_path / "good.jsonl.gz", rows(*range(60_000)), packed=True)
    bad = file(tmp_path / "bad.jsonl.gz", gzip.compress(rows(1))[:-3])
    out = expanded(SCHEMA, batch(good, **PACKED), state(1), batch(bad, **PACKED), state(2), b"BATCH?", processes=3)
    assert isinstance(out.error, BatchError), out.error
    assert str(out.error).startswith(f"line 4: stream 'users': batch file 'file://{tmp_path}/bad.jsonl.gz': ")
    assert len(out.of("RECORD")) == 60_000
    assert out.of("STATE") == [state(1)]


def test_a_broken_line_waits_for_the_files_before_it(tmp_path: Path) -> None:
    good = file(tmp_path / "good.jsonl.gz", rows(*range(30_000)), packed=True)
    out = expanded(SCHEMA, batch(good, **PACKED), state(1), b'{"type":"BATCH"', state(2), processes=2)
    assert str(out.error).startswith("line 4: it is no JSON")
    assert len(out.of("RECORD")) == 30_000
    assert out.of("STATE") == [state(1)]


def test_what_workers_remark_is_said_once(tmp_path: Path) -> None:
    url = file(tmp_path / "a.jsonl", rows(1), packed=True)
    message = {**batch(url), "encoding": {"format": "jsonl", "compression": "none"}}
    out = expanded(SCHEMA, message, message, message, processes=2)
    assert out.ids == [1, 1, 1]
    assert len(out.warnings) == 1
    assert "packed with gzip" in out.warnings[0]


def test_a_missing_package_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s3fs.py").write_text("raise ModuleNotFoundError('no', name='s3fs')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    out = expanded(SCHEMA, batch("s3://bucket/a.jsonl"), processes=2)
    assert "needs the package 's3fs'" in str(out.error)
    assert out.error is not None
    assert getattr(out.error, "exit_code", None) == 2


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    def count() -> int:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    before = count()
    for _ in range(2):
        assert expanded(*many(tmp_path, 2, 10), processes=2).error is None
        assert isinstance(expanded(SCHEMA, batch("file:///nowhere"), processes=2).error, BatchError)
    assert count() <= before


def test_a_source_without_a_descriptor_and_a_pipe_give_the_same(tmp_path: Path) -> None:
    data = lines(*many(tmp_path, 4, 100))
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    try:
        assert Piped(expand, reading, processes=2).raw == Piped(expand, data).raw
    finally:
        os.close(reading)


class Source:
    """Blocks one by one; how many were asked for."""

    def __init__(self, blocks: list[bytes]) -> None:
        self.blocks, self.taken = blocks, 0

    def read(self, _size: int) -> bytes:
        self.taken += 1
        return self.blocks.pop(0) if self.blocks else b""


@contextlib.contextmanager
def waiting_server(content: bytes) -> Iterator[tuple[str, threading.Event]]:
    """The URL of a file whose server answers once the event is set."""
    go_on = threading.Event()

    def answer(_asked: Any) -> bytes:
        go_on.wait(60)
        return content

    with serving(answer) as server:
        yield server.url, go_on


@pytest.mark.parametrize(
    ("many", "most"),
    [
        ("batches", 2 + 2 * 2 + 2),  # each worker has one, twice as many wait; in front of them SCHEMA and a BATCH
        ("lines", 2 + 8),
    ],
)
def test_input_is_read_no_further_than_is_needed(many: str, most: int) -> None:
    """While workers wait for their files, what has been read by then waits in memory."""
    asked: list[int] = []
    idle: list[int] = []
    with waiting_server(rows(1)) as (url, go_on):
        message = lines(batch(f"{url}/a.jsonl"))
        block = message if many == "batches" else lines(record(2, pad="x" * 1000)) * 1000
        source = Source([lines(SCHEMA), message, *[block] * 60])

        def tick() -> None:
            asked.append(source.taken)
            if asked[-9:] == [source.taken] * 9:
                idle.append(source.taken)
                go_on.set()

        out = Piped(expand, source, processes=2, tick=tick, allow=[url])
    assert out.error is None, out.error
    assert len(out.ids) == (61 if many == "batches" else 60_001)
    assert 2 < idle[0] <= most


@pytest.mark.nightly
def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that wait for their turn lie in temporary files, 64 MiB a file; it takes that much to see it."""
    lasting = file(tmp_path / "big.jsonl.gz", b'{"id":1,"t":"%s"}\n' % (b"x" * 10_000) * 60_000, packed=True)
    sizes: list[int] = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def lying() -> int:
        found = 0
        for path in tmp_path.glob("burler-*/*"):
            with contextlib.suppress(FileNotFoundError):
                found += path.stat().st_size
        return found

    with waiting_server(rows(1)) as (url, go_on):

        def tick() -> None:
            sizes.append(lying())
            if sizes[-1] > 50 << 20 and sizes[-40:] == [sizes[-1]] * 40:
                go_on.set()

        count = 0

        def write(data: bytes) -> None:
            nonlocal count
            count += data.count(b'"RECORD"')

        messages = [SCHEMA, batch(f"{url}/a"), batch(lasting, **PACKED), state(1)]
        threading.Timer(50, go_on.set).start()
        expand(io.BytesIO(lines(*messages)), write, processes=2, tick=tick, allow=[url, str(tmp_path)])
    assert count == 60_001
    assert 50 << 20 < max(sizes) < 70 << 20
