"""Processes that write one stream together, some of them killed: what the driver has committed stays, and no more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from burler.errors import LockLost
from burler.lake import LakeDriver, LockSettings, WrittenFile, care, load, open_store, read_lines
from burler.singer.messages import Schema
from support.internals import manifest

SCHEMA = Schema("s", {"properties": {"id": {"type": "integer"}}})
FILE_ROWS = 4

# Writes rows id = start, start + 1, ... in files of four; a line on stdout names each file that is done.
WORKER = """
import datetime as dt, json, os, sys
from burler.lake import RollSettings, open_store
from burler.lake import PartWriter
from burler.singer.messages import Schema
path, start, count, rows = sys.argv[1], *map(int, sys.argv[2:])
writer = PartWriter(open_store(path), "t", settings=RollSettings(max_file_records=rows))
writer.schema(Schema("s", {"properties": {"id": {"type": "integer"}}}))
moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
def tell(files):
    for file in files:
        os.write(1, json.dumps(file.to_wire()).encode() + b"\\n")
for number in range(start, start + count):
    writer.record_line("s", b'{"type":"RECORD","stream":"s","record":{"id":%d}}\\n' % number, moment)
    tell(writer.drain())
tell(writer.close())
"""


@pytest.fixture
def workers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Those that are begun; none outlives the test."""
    begun: list[subprocess.Popen[bytes]] = []
    yield begun
    for worker in begun:
        assert worker.stdout is not None
        worker.kill()
        worker.wait()
        worker.stdout.close()


def begin(path: Path, start: int, count: int) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-c", WORKER, str(path), str(start), str(count), str(FILE_ROWS)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE)


def files(lines: bytes) -> list[WrittenFile]:
    """What a worker has told; a torn line is none."""
    whole = lines[: lines.rfind(b"\n") + 1]
    return [WrittenFile.from_wire(json.loads(line)) for line in whole.splitlines()]


def one(worker: subprocess.Popen[bytes]) -> WrittenFile:
    assert worker.stdout is not None
    return WrittenFile.from_wire(json.loads(worker.stdout.readline()))


def rest(worker: subprocess.Popen[bytes]) -> list[WrittenFile]:
    """What else it tells until its end."""
    assert worker.stdout is not None
    told = files(worker.stdout.read())
    worker.wait(60)
    return told


def committed(path: Path) -> list[int]:
    store = open_store(str(path))
    lines = [line for file in load(store, "t", "s").files for line in list(read_lines(store, file.path))[1:]]
    return sorted(json.loads(line)["record"]["id"] for line in lines)


def on_disk(path: Path) -> list[Path]:
    return [found for found in path.rglob("*.singer.gz") if not found.name.startswith(".")]


def test_workers_are_killed_and_the_driver_commits_what_it_was_told_of(
    tmp_path: Path, workers: list[subprocess.Popen[bytes]]
) -> None:
    """All rows have one time, so all workers reach for the same names."""
    with LakeDriver(open_store(str(tmp_path)), "t") as driver:
        driver.begin(SCHEMA)
        workers += [begin(tmp_path, 0, 40), begin(tmp_path, 1000, 100_000), begin(tmp_path, 2_000_000, 100_000)]
        told = [one(worker) for worker in workers for _ in range(3)]
        driver.commit(told[:4])
        for victim in workers[1:]:
            os.kill(victim.pid, signal.SIGKILL)
        for worker in workers:
            told += rest(worker)
        driver.commit(told)
        assert workers[0].returncode == 0
    rows = committed(tmp_path)
    assert set(range(40)) <= set(rows)
    assert len(rows) == sum(file.stats.records for file in told) == len(set(rows))
    assert len({file.name for file in told}) == len(told)
    # What the killed ones had published and nobody was told of, check finds and rebuild adopts.
    store = open_store(str(tmp_path))
    orphans = len(on_disk(tmp_path)) - len(told)
    assert [found.kind for found in care.check(store).findings] == ["orphan"] * orphans
    care.rebuild(store)
    assert len(committed(tmp_path)) == len(rows) + FILE_ROWS * orphans
    assert care.check(store).findings == ()


def test_the_driver_goes_away_and_another_commits_the_same_files_once(
    tmp_path: Path, workers: list[subprocess.Popen[bytes]]
) -> None:
    """It has committed some of them before."""
    store = open_store(str(tmp_path))
    first = LakeDriver(store, "t", locks=LockSettings(ttl_seconds=0.3))
    first.begin(SCHEMA)
    workers += [begin(tmp_path, 0, 20), begin(tmp_path, 100, 20)]
    told = [file for worker in workers for file in rest(worker)]
    first.commit(told[:3])
    second = LakeDriver(open_store(str(tmp_path)), "t", locks=LockSettings(timeout_seconds=0.0))
    with second, pytest.raises(LockLost):  # the first lives
        second.begin(SCHEMA)
    first.close()
    with LakeDriver(open_store(str(tmp_path)), "t") as third:
        third.commit(told)
        third.commit(told)
    assert committed(tmp_path) == [*range(20), *range(100, 120)]
    assert json.loads((tmp_path / "raw/t/s/manifest.json").read_bytes())["sequence"] == 2


def test_a_driver_that_was_taken_over_commits_nothing_of_its_workers(
    tmp_path: Path, workers: list[subprocess.Popen[bytes]]
) -> None:
    store = open_store(str(tmp_path))
    with LakeDriver(store, "t") as driver:
        driver.begin(SCHEMA)
        workers.append(begin(tmp_path, 0, 12))
        told: list[Any] = rest(workers[0])
        driver.commit(told[:1])
        manifest.claim(store, "t", "s", hash=told[0].hash, writer_id="another")
        with pytest.raises(LockLost):
            driver.commit(told)
    assert committed(tmp_path) == [0, 1, 2, 3]
