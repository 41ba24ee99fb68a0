"""Care while real processes write: no row that was acknowledged is ever lost, and compaction doubles none."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from care_lakes import put

from burler.lake import care, open_store

ROWS = 120

# Writes the rows from a number on, a commit each, and prints each STATE; ends with exit code 3 when it is fenced out.
WRITER = """
import sys, datetime as dt
from burler.errors import LockLost
from burler.lake import LakeWriter, open_store
from burler.singer.messages import Schema, State
at = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
start, end = int(sys.argv[2]), int(sys.argv[3])
said = lambda state: print(state.value["at"], flush=True)
try:
    with LakeWriter(open_store(sys.argv[1]), "tap-x", emit_state=said) as writer:
        writer.schema(Schema("users", {"type": "object", "properties": {"id": {"type": "integer"}}}, ("id",)))
        for number in range(start, end):
            row = b'{"type":"RECORD","stream":"users","record":{"id":%d},' % number
            writer.record_line("users", row + b'"time_extracted":"2024-05-01T00:00:00.000000Z"}' + bytes([10]), at)
            writer.state(State({"at": number}))
            writer.flush()
except LockLost:
    sys.exit(3)
"""


def writer(path: Path, start: int, said: Any, end: int = ROWS) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(start), str(end)], stdout=said)


def acknowledged(said: Path) -> int:
    """The last number whose STATE came out; -1: none."""
    lines = said.read_text().split("\n")[:-1]
    return int(lines[-1]) if lines else -1


def test_compact_and_vacuum_beside_a_writer(lake: Any, tmp_path: Path) -> None:
    said = tmp_path / "states"
    rounds = rows = 0
    while rounds < 2 and rows < 10 * ROWS:  # on a busy machine one writer may be done before a second round
        with said.open("wb") as out:
            process = writer(lake.path, rows, out, rows + ROWS)
            try:
                while process.poll() is None:
                    if lake.manifest_path().exists():
                        store = open_store(str(lake.path))
                        rounds += bool(care.compact(store, below_bytes=4000).streams[0].files)
                        known = [one for one in care.check(store, fast=True).findings if one.kind == "missing"]
                        assert known == []
                    time.sleep(0.02)
            finally:
                process.kill()
                process.wait()
        rows += ROWS
        assert process.returncode == 0
        assert acknowledged(said) == rows - 1
    assert rounds > 1
    assert lake.ids() == list(range(rows))
    care.vacuum(lake.store, yes=True, older_than_seconds=0)
    assert lake.ids() == list(range(rows))
    assert care.check(lake.store).findings == ()


def test_rebuild_beside_writers(lake: Any, tmp_path: Path) -> None:
    """Writers are fenced out again and again, and go on from their last STATE: rows may come twice, none is missing."""
    said = tmp_path / "states"
    with said.open("wb") as out:
        for turn in range(4):
            start = acknowledged(said) + 1
            process = writer(lake.path, start, out, end=10**9)
            try:
                until(lambda start=start: acknowledged(said) >= start + 10, process)
                if turn % 2:
                    lake.manifest_path().unlink()
                # A rebuild that finds nothing to do fences nobody out. The writer may have been the first to take the
                # one file in, while there was no manifest: then there is a second one.
                for number in range(1 + turn % 2):
                    name = f"users-{{times}}-{100 + 2 * turn + number}.singer.gz"
                    put(lake, "users", name, [{"id": 0}], lake.clock.moment, lake.schema())
                    care.rebuild(open_store(str(lake.path)))
                assert process.wait(timeout=60) == 3
            finally:
                process.kill()
                process.wait()
        count = acknowledged(said) + 21
        assert writer(lake.path, acknowledged(said) + 1, out, end=count).wait(timeout=60) == 0
    assert acknowledged(said) == count - 1
    care.rebuild(lake.store)
    counts = Counter(lake.ids())
    assert set(range(count)) <= set(counts)
    # Of each turn: the row of a file that was published and not committed, one more in the writer's hands; and ours.
    assert sum(counts.values()) <= count + 2 * 4 + 6
    assert care.check(lake.store).findings == ()


def until(condition: Any, process: subprocess.Popen[bytes]) -> None:
    """Wait for something that a process does, with a generous limit."""
    for _ in range(6000):
        if condition():
            return
        assert process.poll() is None
        time.sleep(0.01)
    raise AssertionError("it takes too long")
