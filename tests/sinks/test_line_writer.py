"""The writer that owns stdout, on pipes that are full, closed or do not block."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import os
import threading
import time
from collections.abc import Iterator

import pytest

from burler.errors import OutputClosed, StorageError
from burler.singer.messages import ActivateVersion, Records, Schema, State
from support.internals import stdout_sink


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for fd in (read, write):
        with contextlib.suppress(OSError):
            os.close(fd)


def drain(read: int, into: bytearray, pause: float = 0.0) -> threading.Thread:
    def work() -> None:
        while chunk := os.read(read, 10_000):
            into.extend(chunk)
            time.sleep(pause)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def page(text: bytes) -> Records:
    return Records("s", text, 1, dt.datetime.now(dt.UTC))


def test_all_of_it_arrives_in_order(pipe: tuple[int, int]):
    read, write = pipe
    got = bytearray()
    thread = drain(read, got)
    writer = stdout_sink.LineWriter(write)
    lines = [b"%d %s\n" % (i, b"x" * (i * 37 % 200_000)) for i in range(200)]
    for line in lines:
        writer.write(line)
    writer.flush()
    os.close(write)
    thread.join()
    assert bytes(got) == b"".join(lines)


def test_rows_wait_until_flushed_and_schema_and_state_flush(pipe: tuple[int, int]):
    read, write = pipe
    os.set_blocking(read, False)
    sink = stdout_sink.StdoutSink(stdout_sink.LineWriter(write))
    sink.write(Schema("s", {}, ()))
    assert os.read(read, 1000).startswith(b'{"type":"SCHEMA"')
    sink.write(page(b"one\n"))
    sink.write(ActivateVersion("s", 1))
    with pytest.raises(BlockingIOError):
        os.read(read, 100)
    sink.tick()
    assert os.read(read, 1000).count(b"\n") == 2
    sink.write(page(b"two\n"))
    sink.write(State({"x": 1}))
    assert os.read(read, 1000) == b'two\n{"type":"STATE","value":{"x":1}}\n'
    sink.write(page(b"three\n"))
    sink.close(complete=True)
    assert os.read(read, 1000) == b"three\n"


def test_the_state_file_comes_after_the_rows_and_before_the_line(pipe: tuple[int, int]):
    read, write = pipe
    seen: list[bytes] = []
    sink = stdout_sink.StdoutSink(stdout_sink.LineWriter(write), lambda value: seen.append(os.read(read, 1000)))
    sink.write(page(b"one\n"))
    sink.write(State({"x": 1}))
    assert seen == [b"one\n"]
    assert os.read(read, 1000).startswith(b'{"type":"STATE"')


def test_the_buffer_may_be_used_again_at_once(pipe: tuple[int, int]):
    read, write = pipe
    writer = stdout_sink.LineWriter(write)
    lines = bytearray(b"one\n")
    writer.write(lines)
    lines[:] = b"two\n"
    writer.flush()
    assert os.read(read, 100) == b"one\n"


@pytest.mark.parametrize("taken", [0, 1, 100_000])
def test_a_reader_that_goes_away_in_the_middle(pipe: tuple[int, int], taken: int):
    read, write = pipe

    def leave() -> None:
        left = taken
        while left > 0:
            left -= len(os.read(read, left))
        time.sleep(0.05)
        os.close(read)

    thread = threading.Thread(target=leave)
    thread.start()
    writer = stdout_sink.LineWriter(write)
    for _ in range(2):  # the second is what close() tries at the end
        with pytest.raises(OutputClosed):
            writer.write(b"x" * 999_999 + b"\n")
        assert writer.blocked_since is None
    thread.join()


def test_a_pipe_that_does_not_block(pipe: tuple[int, int]):
    read, write = pipe
    os.set_blocking(write, False)
    got = bytearray()
    text = b"".join(b"%07d\n" % i for i in range(100_000))
    thread = drain(read, got, pause=0.001)
    writer = stdout_sink.LineWriter(write)
    writer.write(text)
    writer.flush()
    os.close(write)
    thread.join()
    assert bytes(got) == text


@pytest.mark.parametrize("blocking", [True, False])
def test_a_write_without_progress_shows(pipe: tuple[int, int], blocking: bool):
    """The time that a watchdog reads stands still while nothing is taken, however the pipe blocks."""
    read, write = pipe
    os.set_blocking(write, blocking)
    size = fcntl.fcntl(write, fcntl.F_GETPIPE_SZ)
    writer = stdout_sink.LineWriter(write)

    def work() -> None:
        writer.write(b"x" * (size + 300_000))
        writer.flush()

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.2)
    since = writer.blocked_since
    assert since is not None
    time.sleep(1.3)
    assert writer.blocked_since == since
    got = bytearray()
    while len(got) < size + 300_000:
        got += os.read(read, 1 << 20)
    thread.join()
    assert writer.blocked_since is None


def test_a_full_disk():
    fd = os.open("/dev/full", os.O_WRONLY)
    try:
        writer = stdout_sink.LineWriter(fd)
        writer.write(b"x\n")
        for _ in range(2):
            with pytest.raises(StorageError, match="stdout can't be written: No space left"):
                writer.flush()
    finally:
        os.close(fd)


def test_a_closed_descriptor(pipe: tuple[int, int]):
    _read, write = pipe
    os.close(write)
    writer = stdout_sink.LineWriter(write)
    writer.write(b"x\n")
    with pytest.raises(StorageError, match="Bad file descriptor"):
        writer.flush()
