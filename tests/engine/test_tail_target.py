"""A tail in front of a target that writes on each STATE: how fresh its table is, and what a kill of either side costs.

The target keeps rows and STATE in one SQLite file, in one transaction for each STATE, and throws away what no STATE
followed: so whatever a STATE says too early is missing in the table.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import tapprocess

TARGET = """
import json, sqlite3, sys, time

db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("pragma journal_mode=wal")
db.execute("create table if not exists landed (stream text, key text, record text, at real, unique (stream, key))")
db.execute("create table if not exists state (one integer primary key, value text)")
keys, waiting = {}, []
for line in sys.stdin:
    if not line.endswith("\\n"):
        break  # the tap was killed in the middle of it
    message = json.loads(line)
    if message["type"] == "SCHEMA":
        keys[message["stream"]] = message["key_properties"]
    elif message["type"] == "RECORD":
        name, record = message["stream"], message["record"]
        waiting.append((name, json.dumps([record[key] for key in keys[name]]), json.dumps(record)))
    elif message["type"] == "STATE":
        db.execute("begin immediate")
        for row in waiting:
            db.execute("insert into landed values (?, ?, ?, ?) on conflict do nothing", (*row, time.time()))
        db.execute("insert or replace into state values (1, ?)", (json.dumps(message["value"]),))
        db.execute("commit")
        waiting.clear()
        print(json.dumps(message["value"]), flush=True)
"""

TAP = """
import json, os, pathlib
import burler

tap = burler.tap("tap-files")
FOLDER = pathlib.Path(os.environ["FOLDER"])
ROW = {"properties": {"id": {"type": "integer"}, "at": {"type": "number"}, "shop": {"type": "string"}}}


def lines(name, place):
    with (FOLDER / name).open("rb") as file:
        file.seek(place)
        for line in file:
            if not line.endswith(b"\\n"):
                return
            place += len(line)
            yield place, json.loads(line)


@tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=ROW)
def rows(stream):
    return [row for _, row in lines("rows", 0) if row["id"] >= (stream.bookmark or 0)]


@tap.sync("parts", key_properties=["id", "part"], parent="rows",
          schema={"properties": {"id": {"type": "integer"}, "part": {"type": "integer"}}})
def parts(parent):
    return [{"id": parent["id"], "part": part} for part in range(2)]


tap.partitions("sales", key="shop")(lambda: [{"shop": "a"}, {"shop": "b"}])


@tap.sync("sales", key_properties=["shop", "id"], replication_key="id", schema=ROW)  # in no order
def sales(stream, partition):
    found = [row for _, row in lines("rows", 0) if row["id"] >= (stream.bookmark or 0)]
    return [{**row, **partition} for row in reversed(found)]


@tap.tail("events", key_properties="id", schema=ROW, replication_method="LOG_BASED")
def events(stream):
    place = stream.state.get("place", 0)
    while not stream.stopping:
        for place, row in lines("events", place):
            yield row
            stream.state = {"place": place}
        stream.wait(0.02)
"""
KINDS = ("rows", "parts", "sales", "events")


class Growing:
    """The source: two files, of which each gets a line now and then, until told to stop."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder
        self.count = 0
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._grow, daemon=True)
        for name in ("rows", "events"):
            (folder / name).touch()

    def __enter__(self) -> Growing:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _grow(self) -> None:
        with (self.folder / "rows").open("ab", buffering=0) as one, (self.folder / "events").open("ab", 0) as two:
            while not self._over.wait(self._seconds):
                line = json.dumps({"id": self.count + 1, "at": time.time()}).encode() + b"\n"
                one.write(line)
                two.write(line)
                self.count += 1


class Table:
    """What the target has stored."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def ask(self, query: str, *given: object) -> list[tuple]:
        with contextlib.closing(sqlite3.connect(self.path, timeout=30)) as db:
            try:
                return db.execute(query, given).fetchall()
            except sqlite3.OperationalError:
                return []  # no such table yet

    def keys(self, stream: str) -> list:
        return sorted(json.loads(key) for (key,) in self.ask("select key from landed where stream = ?", stream))

    def state(self) -> str:
        return next((value for (value,) in self.ask("select value from state")), "{}")

    def count(self) -> int:
        return next((count for (count,) in self.ask("select count(*) from landed")), 0)


def wanted(count):
    ids = range(1, count + 1)
    return {
        "rows": [[i] for i in ids],
        "parts": [[i, part] for i in ids for part in range(2)],
        "sales": sorted([shop, i] for i in ids for shop in "ab"),
        "events": [[i] for i in ids],
    }


class Pair:
    """tap | target, two processes and a pipe between them; the tap begins where the target's table says."""

    def __init__(self, folder: Path, *, state_ms: int, poll_ms: int) -> None:
        self.table = Table(folder / "table.db")
        tap, target, state = folder / "tap_files.py", folder / "target.py", folder / "state.json"
        tap.write_text(TAP)
        target.write_text(TARGET)
        state.write_text(self.table.state())
        self._log = folder / "tap.log"
        log = self._log.open("ab")
        self.printed = folder / "printed.jsonl"
        with log, self.printed.open("ab") as printed:
            self.tap = subprocess.Popen(
                [
                    *(sys.executable, "-m", "burler", "run", tap, "--state", state, "--tail"),
                    *("--state-message-min-interval-ms", str(state_ms)),
                    *("--new-record-polling-interval-ms", str(poll_ms)),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                env=tapprocess.environment(FOLDER=str(folder)),
            )
            assert self.tap.stdout is not None
            with self.tap.stdout as pipe:
                command = [sys.executable, target, self.table.path]
                self.target = subprocess.Popen(command, stdin=pipe, stdout=printed)

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *error: object) -> None:
        for process in (self.tap, self.target):
            process.kill()
            process.wait(30)

    def runs(self):
        """Whether the tap has got as far as its streams: a signal before that ends it at once."""
        return b": start" in self._log.read_bytes()

    def wait_for(self, whether, what):
        limit = time.monotonic() + 60
        while not whether():
            assert self.tap.poll() is None and self.target.poll() is None, f"one has ended, before {what}"
            assert time.monotonic() < limit, f"a minute, and not yet {what}"
            time.sleep(0.02)

    def end(self):
        """SIGTERM to the tap, and both end by themselves."""
        self.tap.send_signal(signal.SIGTERM)
        assert self.tap.wait(30) == 0
        assert self.target.wait(30) == 0


def holds_all(table, source):
    count = source.count
    return count and all(table.keys(name) == keys for name, keys in wanted(count).items())


def test_the_table_is_as_fresh_as_configured(tmp_path):
    """A row is in the table at the latest one polling interval and one STATE interval after it is in the source, and
    a few seconds for the machine; no STATE comes more often than configured (two kinds of streams, one clock)."""
    begun = time.monotonic()
    with Growing(tmp_path, 0.02) as source, Pair(tmp_path, state_ms=400, poll_ms=200) as pair:
        pair.wait_for(lambda: len(pair.table.keys("rows")) >= 60, "60 rows are stored")
        source.__exit__()
        pair.wait_for(lambda: holds_all(pair.table, source), "all rows are stored, while the tap runs")
        seconds = time.monotonic() - begun
        states = len(pair.printed.read_bytes().splitlines())
        pair.end()
    assert states <= seconds / 0.4 + 1
    # The first rows were there before the tap had started: they are as old as the source.
    started = pair.table.ask("select min(at) from landed")[0][0]
    late = [
        landed - json.loads(record)["at"]
        for record, landed in pair.table.ask("select record, at from landed where stream != 'parts'")
        if json.loads(record)["at"] > started
    ]
    assert late
    assert max(late) < 0.4 + 0.2 + 20
    assert sorted(late)[len(late) // 2] < 0.4 + 0.2 + 5


def test_without_a_due_state_the_table_waits(tmp_path):
    """The other way round: with an hour between STATEs nothing is stored until the tap ends, then all of it is."""
    with Growing(tmp_path, 0.01) as source, Pair(tmp_path, state_ms=3_600_000, poll_ms=100) as pair:
        pair.wait_for(lambda: source.count >= 150 and pair.runs(), "the source has 150 rows and the tap runs")
        assert pair.table.count() == 0
        source.__exit__()
        pair.end()
    stored = {name: pair.table.keys(name) for name in KINDS}
    assert all(
        stored[name] == keys[: len(stored[name])] for name, keys in wanted(source.count).items() if name != "sales"
    )
    assert json.loads(pair.table.state()) == json.loads(pair.printed.read_bytes().splitlines()[-1])


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_killed_at_random_and_begun_again_nothing_is_missing(tmp_path, seed):
    """kill -9 for the tap, the target, or both; the next pair begins with the state that the target has stored."""
    choice = random.Random(seed)
    whom = ["tap", "target", "both"]
    choice.shuffle(whom)
    with Growing(tmp_path, 0.01) as source:
        for victim in whom:
            with Pair(tmp_path, state_ms=choice.choice([20, 150]), poll_ms=choice.choice([10, 60])) as pair:
                before = pair.table.count()
                pair.wait_for(lambda pair=pair, before=before: pair.table.count() > before, "anything is stored")
                time.sleep(choice.random())
                if victim in ("tap", "both"):
                    pair.tap.kill()
                if victim in ("target", "both"):
                    pair.target.kill()
                if victim == "target":
                    assert pair.tap.wait(30) == 4  # the reader has gone
                else:
                    assert pair.target.wait(30) in (0, -signal.SIGKILL)
        with Pair(tmp_path, state_ms=50, poll_ms=50) as pair:
            source.__exit__()
            pair.wait_for(lambda: holds_all(pair.table, source), "every row of the source is stored")
            pair.end()
    assert {name: pair.table.keys(name) for name in KINDS} == wanted(source.count)
    places = json.loads(pair.table.state())["bookmarks"]
    assert places["rows"]["id"] == source.count
    assert places["events"]["stream_state"]["place"] == os.stat(tmp_path / "events").st_size  # noqa: PTH116
