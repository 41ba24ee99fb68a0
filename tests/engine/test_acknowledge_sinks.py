"""``@tap.acknowledge`` with what really happens: a log that forgets, pipes that break, lakes, processes."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path
from typing import Any

from blocked import started, wait_for
from tapprocess import write_tap
from taps import FIELDS

import burler
from burler.errors import StorageError
from burler.singer.messages import Message, Records
from burler.testing import MemorySink
from support.cli import burler as burler_command
from support.runs import run_into

# ---- a log ----------------------------------------------------------------------------------------------


class Log:
    """A source that forgets what was acknowledged; entries come strictly after a place."""

    def __init__(self, count: int) -> None:
        self.entries = list(range(1, count + 1))
        self.acknowledged = 0

    def read(self, after: int) -> Any:
        for entry in list(self.entries):
            if entry > after:
                yield {"id": entry}

    def acknowledge(self, place: int) -> None:
        assert place >= self.acknowledged
        self.acknowledged = place
        self.entries = [entry for entry in self.entries if entry > place]


class Breaking(MemorySink):
    """Breaks at a page; what came before has arrived."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def write(self, message: Message) -> None:
        if isinstance(message, Records):
            self.left -= 1
            if self.left < 0:
                raise StorageError("the pipe is gone")
        super().write(message)


def test_a_log_is_read_to_its_end_whatever_breaks_on_the_way():
    log, arrived, state = Log(100), set(), None
    breaks = iter([3, 1, 0, 7, 2, 10_000])
    while log.entries:
        tap = burler.tap("tap-log")

        @tap.sync(
            "changes",
            replication_method=burler.LOG_BASED,
            replication_key="id",
            bookmark_strategy="every_n(5)",
            resume="exclusive",
            schema=FIELDS,
        )
        def changes(stream):
            yield from log.read(stream.bookmark or 0)

        tap.acknowledge("changes")(lambda bookmark: log.acknowledge(bookmark))
        sink = Breaking(next(breaks))
        with contextlib.suppress(StorageError):
            run_into(tap, {"page_max_rows": 5}, sink, state=state)
        arrived |= {m["record"]["id"] for m in sink.messages if m["type"] == "RECORD"}
        state = next((m["value"] for m in reversed(sink.messages) if m["type"] == "STATE"), state)
        assert set(range(1, log.acknowledged + 1)) <= arrived
    assert arrived == set(range(1, 101))


# ---- real sinks -------------------------------------------------------------------------------------------

SOURCE = """
import gzip, os, pathlib, sys, time
import burler
tap = burler.tap("tap-x")

@tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="every_n(10)", schema=SCHEMA)
def rows(stream):
    for number in range(100):
        if number == 55 and os.environ.get("BLOCK"):
            sys.stderr.write("BLOCKED\\n")
            time.sleep(600)
        yield {"id": number, "text": None}

@tap.acknowledge("rows")
def acknowledge(bookmark):
    held = 0
    for manifest in pathlib.Path("lake").rglob("*.json"):
        held += 1
    files = sum(1 for one in pathlib.Path("lake").rglob("*.gz") if not one.name.startswith("."))
    sys.stderr.write(f"ACK {bookmark} {files}\\n")
"""


def acknowledged(stderr: str) -> list[tuple[int, int]]:
    lines = [line.split() for line in stderr.splitlines() if line.startswith("ACK ")]
    return [(int(bookmark), int(files)) for _ack, bookmark, files in lines]


def rows_in(lake: Path) -> int:
    found = 0
    for path in lake.rglob("*.gz"):
        found += sum(b'"RECORD"' in line for line in gzip.decompress(path.read_bytes()).splitlines())
    return found


def test_a_lake_tells_of_what_is_committed(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps({"max_file_records": 20, "page_max_rows": 10}))
    app = write_tap(tmp_path, SOURCE)
    done = burler_command("run", app, "--config", "config.json", "--sink", "lake:lake", cwd=tmp_path)
    assert done.code == 0, done.stderr
    told = acknowledged(done.stderr)
    assert told[-1][0] == 99
    assert len(told) >= 3
    assert all(files * 20 >= bookmark + 1 - 20 and files >= 1 for bookmark, files in told)
    assert rows_in(tmp_path / "lake") == 100


def test_a_lake_that_is_killed_has_told_of_nothing_that_is_open(tmp_path: Path):
    """The file is open: no STATE has come, so the source keeps all."""
    with started(tmp_path, SOURCE, "--sink", f"lake:{tmp_path}/lake", BLOCK="1") as process:
        said = wait_for(process, b"BLOCKED", 1)
        process.kill()
        out, err = process.communicate(timeout=30)
    assert b"STATE" not in out
    assert acknowledged((said + err).decode()) == []


def test_stdout_tells_of_lines_that_were_written(tmp_path: Path):
    done = burler_command("run", write_tap(tmp_path, SOURCE), cwd=tmp_path)
    states = [m["value"]["bookmarks"]["rows"]["id"] for m in done.messages if m["type"] == "STATE"]
    told = [bookmark for bookmark, _files in acknowledged(done.stderr)]
    assert told[-1] == 99
    assert set(told) <= set(states)
