"""``burler.batch.expand``: the rows of BATCH files in place of their messages (BATCH proposal)."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from piped import SCHEMA, TIME, Piped, batch, expanded, file, lines, record, rows, state

from burler.batch import expand
from burler.errors import BatchError


def test_rows_stand_where_the_batch_stood(tmp_path: Path) -> None:
    url = file(tmp_path / "a.jsonl", rows(2, 3))
    out = expanded(SCHEMA, record(1), batch(url), state(3), record(4), state(4))
    assert out.ids == [1, 2, 3, 4]
    assert [message["type"] for message in out.messages] == [
        "SCHEMA", "RECORD", "RECORD", "RECORD", "STATE", "RECORD", "STATE",
    ]  # fmt: skip
    assert (out.done.lines, out.done.batches, out.done.records) == (6, 1, 2)
    assert out.warnings == []


def test_a_row_is_as_it_stands_in_the_file(tmp_path: Path) -> None:
    row = '{ "id" : 1.0e2,\t"n": 12345678901234567890123.450, "t":"\\u00e9é\\ud83d", "d": {"b":[], "a":null} }'.encode()
    url = file(tmp_path / "a.jsonl", row + b"\n")
    out = expanded(SCHEMA, batch(url, version=7))
    prefix = b'{"type":"RECORD","stream":"users","record":'
    suffix = f',"time_extracted":"{TIME}","version":7}}\n'.encode()
    assert out.raw == lines(SCHEMA) + prefix + row + suffix


@pytest.mark.parametrize(
    ("packed", "keys"),
    [
        (False, {}),
        (False, {"format": None, "compression": None}),
        (False, {"format": {"name": "jsonl"}, "compression": {"name": None, "options": {}, "enabled": False}}),
        (False, {"format": {"name": "jsonl"}, "compression": {"name": "gzip", "enabled": False}}),
        (False, {"encoding": {"format": "jsonl"}}),
        (False, {"encoding": {"format": "jsonl", "compression": "none"}}),
        (False, {"encoding": {"format": "jsonl", "compression": None}}),
        (True, {"format": {"name": "jsonl", "options": {}}, "compression": {"name": "gzip"}}),
        (True, {"encoding": {"format": "jsonl", "compression": "gzip"}}),
        (
            True,
            {
                "format": {"name": "jsonl", "options": {}},
                "compression": {"name": "gzip", "options": {}, "enabled": True},
                "encoding": {"format": "jsonl", "compression": "gzip"},
            },
        ),
        (True, {"encoding": {"format": "jsonl", "compression": "gzip"}, "tap_says": [1], "size": 5}),
    ],
)
def test_both_dialects_and_what_they_leave_out(tmp_path: Path, packed: bool, keys: dict[str, Any]) -> None:
    url = file(tmp_path / "a", rows(1, 2), packed=packed)
    message = {"type": "batch", "stream": "users", "manifest": [url], **keys}
    out = expanded(SCHEMA, message)
    assert out.error is None, out.error
    assert out.ids == [1, 2]
    assert all("time_extracted" not in message and "version" not in message for message in out.of("RECORD"))


def test_files_packed_though_the_message_says_they_are_not(tmp_path: Path) -> None:
    url = file(tmp_path / "a.json.gz", rows(1, 2), packed=True)
    message = {**batch(url), "encoding": {"format": "jsonl", "compression": "none"}}
    out = expanded(SCHEMA, message, message)
    assert out.ids == [1, 2, 1, 2]
    assert len(out.warnings) == 1
    assert "packed with gzip" in out.warnings[0]


def test_several_files_none_and_empty_ones(tmp_path: Path) -> None:
    urls = [file(tmp_path / f"{n}.jsonl", content) for n, content in enumerate((rows(1, 2), b"", rows(3)))]
    out = expanded(SCHEMA, batch(*urls), batch(), state(1))
    assert out.ids == [1, 2, 3]
    assert out.done.batches == 2
    assert out.messages[-1] == state(1)


@pytest.mark.parametrize("processes", [1, 2])
def test_files_whose_rows_nobody_counted_are_told(tmp_path: Path, processes: int) -> None:
    plain = [file(tmp_path / f"{n}.jsonl", rows(n)) for n in range(3)]
    packed = file(tmp_path / "p.jsonl.gz", rows(4), packed=True)
    size = len(rows(0))
    known = [
        batch(plain[0], file_stats=[{"records": 1, "bytes": size}]),
        batch(plain[0], file_stats=[{"bytes": size}]),
        batch(plain[0], size=1),
        batch(packed, compression={"name": "gzip"}),
    ]
    out = expanded(SCHEMA, *known, processes=processes)
    assert (out.done.records, out.done.uncounted, out.done.first_uncounted) == (4, 0, "")
    out = expanded(SCHEMA, *known, batch(*plain), batch(plain[0]), processes=processes)
    assert (out.done.records, out.done.uncounted, out.done.first_uncounted) == (8, 4, plain[0])
    assert not out.warnings


def test_fewer_rows_than_size_says_are_told(tmp_path: Path) -> None:
    url = file(tmp_path / "a.jsonl", rows(1, 2))
    out = expanded(SCHEMA, batch(url, size=3))
    assert out.ids == [1, 2]
    (warning,) = out.warnings
    assert "a file has fewer rows than the 'size' of its message: it may be cut off" in warning


def test_more_rows_than_size_says_are_all_read(tmp_path: Path) -> None:
    url = file(tmp_path / "a.jsonl", rows(1, 2, 3))
    out = expanded(SCHEMA, batch(url, size=2), batch(url, size=3))
    assert out.ids == [1, 2, 3, 1, 2, 3]
    assert len(out.warnings) == 1
    assert out.warnings[0].startswith("line 2: stream 'users': a file has more rows than the 'size'")


def test_versions_and_streams_interleaved(tmp_path: Path) -> None:
    orders = {**SCHEMA, "stream": "orders"}
    urls = [file(tmp_path / f"{n}.jsonl", rows(n)) for n in range(4)]
    activate = {"type": "ACTIVATE_VERSION", "stream": "users", "version": 2}
    out = expanded(
        SCHEMA,
        orders,
        batch(urls[0], version=1),
        {**batch(urls[1]), "stream": "orders"},
        batch(urls[2], version=2),
        activate,
        {**batch(urls[3]), "stream": "orders"},
    )
    told = [(m["stream"], m["record"]["id"], m.get("version")) for m in out.of("RECORD")]
    assert told == [("users", 0, 1), ("orders", 1, None), ("users", 2, 2), ("orders", 3, None)]
    assert out.messages.index(activate) == 5


def test_a_schema_counts_from_its_place_on(tmp_path: Path) -> None:
    """CSV is read by the schema that stands before the message."""
    url = file(tmp_path / "a.csv", b"id,name\n1,5\n")
    other = {**SCHEMA, "schema": {"properties": {"id": {"type": "string"}, "name": {"type": "integer"}}}}
    message = batch(url, format={"name": "csv", "options": {"delimiter": ",", "quote_char": '"'}})
    out = expanded(SCHEMA, message, other, message)
    assert [m["record"] for m in out.of("RECORD")] == [{"id": 1, "name": "5"}, {"id": "1", "name": 5}]


UNREADABLE = [
    ({"manifest": ["file:///nowhere/a.jsonl"]}, "/nowhere/a.jsonl"),
    ({"manifest": ["gopher://x/a.jsonl"]}, "gopher"),
    ({"compression": {"name": "gzip"}}, "gzip"),
    ({"format": {"name": "parquet"}}, "arquet"),
    ({"format": {"name": "arrow"}}, "rrow"),
    ({"format": {"name": "avro"}}, "avro"),
    ({"compression": {"name": "lzma"}}, "lzma"),
    ({"encoding": {"format": "jsonl", "compression": "gzip"}, "compression": {"name": None}}, "contradicts"),
    ({"encoding": {"format": "parquet"}, "format": {"name": "jsonl"}}, "contradicts"),
    ({"manifest": "file:///a"}, "manifest"),
    ({"manifest": [5]}, "manifest"),
    ({"size": -1}, "size"),
    ({"time_extracted": "yesterday"}, "time_extracted"),
    ({"file_stats": [{"records": 2, "bytes": 9}]}, "bytes"),
]


@pytest.mark.parametrize(
    ("wrong", "fact", "processes"), [*((*one, 1) for one in UNREADABLE), *((*one, 2) for one in UNREADABLE[:4])]
)
def test_nothing_follows_a_batch_that_cannot_be_read(
    tmp_path: Path, wrong: dict[str, Any], fact: str, processes: int
) -> None:
    good = file(tmp_path / "good.jsonl", rows(1, 2))
    out = expanded(SCHEMA, batch(good), state(2), {**batch(good), **wrong}, state(9), record(9), processes=processes)
    assert isinstance(out.error, BatchError), out.error
    assert out.error.exit_code == 1
    text = str(out.error)
    assert text.startswith("line 4: stream 'users': ")
    assert fact in text
    assert text.count("\n") <= 2
    assert out.ids == [1, 2]
    assert out.messages[-1] == state(2)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_file_that_breaks_off_gives_its_rows_and_nothing_behind(tmp_path: Path, processes: int) -> None:
    content = gzip.compress(
        b"".join(b'{"id":%d,"x":"%s"}\n' % (n, os.urandom(40).hex().encode()) for n in range(50_000))
    )
    (tmp_path / "a.jsonl.gz").write_bytes(content[: len(content) // 2])
    message = batch(f"file://{tmp_path}/a.jsonl.gz", compression={"name": "gzip"})
    out = expanded(SCHEMA, message, state(1), processes=processes)
    assert isinstance(out.error, BatchError)
    assert "a.jsonl.gz" in str(out.error)
    assert out.ids == list(range(len(out.ids)))
    assert 1_000 < len(out.ids) < 50_000
    assert out.of("STATE") == []


@pytest.mark.parametrize("stats", [{"records": 3, "bytes": 2}, {"records": 1, "bytes": 2}])
def test_a_file_with_other_rows_than_the_message_says(tmp_path: Path, stats: dict[str, int]) -> None:
    url = file(tmp_path / "a.jsonl", rows(1, 2))
    stats["bytes"] = (tmp_path / "a.jsonl").stat().st_size
    out = expanded(SCHEMA, batch(url, file_stats=[stats]), state(1))
    assert "2 rows" in str(out.error)
    assert out.of("STATE") == []


def test_what_a_url_is_signed_with_is_not_shown() -> None:
    from burler.testing import canary

    secret = canary("signature")
    url = f"http://127.0.0.1:1/a.jsonl?X-Amz-Signature={secret}&sig=2"
    out = expanded(SCHEMA, batch(url))
    assert "http://127.0.0.1:1/a.jsonl" in str(out.error)
    assert secret not in str(out.error)
    broken = json.dumps({"type": "BATCH", "manifest": [url]}).encode()[:-3]
    out = expanded(SCHEMA, broken)
    assert str(out.error).startswith("line 2: it is no JSON")
    assert secret[-8:] not in str(out.error)


class Pieces:
    """A source that gives its bytes in pieces of these sizes, then all."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.data, self.sizes = data, sizes

    def read(self, _size: int) -> bytes:
        size = self.sizes.pop(0) if self.sizes else len(self.data)
        given, self.data = self.data[:size], self.data[size:]
        return given


@given(sizes=st.lists(st.integers(1, 300), max_size=9), ended=st.booleans())
def test_however_the_bytes_arrive(tmp_path_factory: Any, sizes: list[int], ended: bool) -> None:
    message = batch(file(tmp_path_factory.getbasetemp() / "arrive.jsonl", rows(5)))
    data = lines(SCHEMA, record(1), b"", message, state(1), record(2), message, b"x")
    data = data if ended else data[:-1]
    assert Piped(expand, Pieces(data, sizes)).raw == Piped(expand, data).raw


def test_messages_go_on_while_the_tap_is_idle(tmp_path: Path) -> None:
    """Each line is out before the next comes in."""
    reading, writing = os.pipe()
    seen = threading.Event()
    out: list[bytes] = []
    buffer: list[bytes] = []

    def flush() -> None:
        out.extend(buffer)
        buffer.clear()
        seen.set()

    thread = threading.Thread(target=lambda: expand(reading, buffer.append, flush=flush))
    thread.start()
    url = file(tmp_path / "a.jsonl", rows(1))
    try:
        for count, message in enumerate((SCHEMA, batch(url), state(1)), 1):
            os.write(writing, lines(message))
            for _ in range(100):
                if b"".join(out).count(b"\n") == count:
                    break
                seen.wait(0.1)
                seen.clear()
            assert b"".join(out).count(b"\n") == count
    finally:
        os.close(writing)
        thread.join(10)
        os.close(reading)


@pytest.mark.parametrize("processes", [1, 2])
def test_told_to_stop_in_the_middle_of_a_file(tmp_path: Path, processes: int) -> None:
    url = file(tmp_path / "a.jsonl", rows(*range(300_000)))
    out: list[bytes] = []

    def should_stop() -> bool:
        return any(b'"RECORD"' in part for part in out)

    expand(io.BytesIO(lines(SCHEMA, batch(url), state(1))), out.append, should_stop=should_stop, processes=processes)
    raw = b"".join(out)
    assert raw.endswith(b"\n")
    assert 1 < raw.count(b"\n") < 300_000
    assert b"STATE" not in raw


MEMORY = r"""
import re, sys
from pathlib import Path
from burler.batch import expand
count = 0
def write(data):
    global count
    count += data.count(b"\n")
expand(0, write, processes=int(sys.argv[1]))
most = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
print(count, int(most[1]) // 1024)
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_a_big_file_takes_little_memory(tmp_path: Path, processes: int) -> None:
    """100 MB of JSON lines in 80 MB."""
    row = json.dumps({"id": 1, "name": "x" * 80, "more": list(range(20))}).encode() + b"\n"
    count = 100_000_000 // len(row)
    with gzip.open(tmp_path / "a.jsonl.gz", "wb", compresslevel=1) as out:
        for _ in range(100):
            out.write(row * (count // 100))
    count = count // 100 * 100
    messages = lines(SCHEMA, batch(f"file://{tmp_path}/a.jsonl.gz", compression={"name": "gzip"}))
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(processes)], input=messages, capture_output=True, timeout=120, check=True
    )
    written, megabytes = map(int, done.stdout.split())
    assert written == count + 1
    assert megabytes <= 80
