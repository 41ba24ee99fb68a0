"""Several processes on one lake, some of them killed: no acknowledged commit is ever lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from burler.lake import load, open_store, read_lines

# Commits rows id = start, start + 1, ... and prints each STATE once it is out. "variant" makes the schema differ.
WRITER = """
import datetime as dt, itertools, os, sys
from burler.errors import BurlerError
from burler.lake import LakeWriter, open_store
from burler.lake import LockSettings
from burler.singer.messages import Records, Schema, State
path, variant, start, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
def out(state):
    os.write(1, b"%d\\n" % state.value["n"])
try:
    writer = LakeWriter(open_store(path), "t", emit_state=out, writer_id=sys.argv[5],
                        locks=LockSettings(ttl_seconds=float(sys.argv[6])))
    writer.schema(Schema("s", {"properties": {"id": {"type": "integer"}}, "variant": variant}))
    for number in range(start, start + count):
        line = b'{"type":"RECORD","stream":"s","record":{"id":%d}}\\n' % number
        writer.records(Records("s", line, 1, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)))
        writer.state(State({"n": number}))
        writer.flush()
    writer.close()
except BurlerError as error:
    print(type(error).__name__, error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


def begin(
    path: Path, variant: int, start: int, count: int, name: str = "w", *, ttl: float = 300
) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-c", WRITER, str(path), str(variant), str(start), str(count), name, str(ttl)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def committed(path: Path) -> list[int]:
    store = open_store(str(path))
    files = load(store, "t", "s").files
    lines = [line for file in files for line in list(read_lines(store, file.path))[1:]]
    return [json.loads(line)["record"]["id"] for line in lines]


def ids_of(out: bytes) -> list[int]:
    return list(map(int, out.split()))


def lock_of(path: Path) -> Path:
    (found,) = path.glob("raw/t/s/*/singerlake.lock")
    return found


def test_two_processes_on_one_schema_take_turns(tmp_path: Path) -> None:
    first = begin(tmp_path, 0, 0, 60, "first")
    assert first.stdout is not None
    seen = [int(first.stdout.readline())]
    assert json.loads(lock_of(tmp_path).read_bytes())["writer-id"] == "first"
    second = begin(tmp_path, 0, 1_000_000, 5, "second")
    out = first.stdout.read()  # communicate() passes over the lines that readline() has read ahead
    _, err = first.communicate(timeout=60)
    second_out, second_err = second.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0), (err, second_err)
    assert sorted([*seen, *ids_of(out)]) == list(range(60))
    assert ids_of(second_out) == list(range(1_000_000, 1_000_005))
    assert committed(tmp_path) == [*range(60), *range(1_000_000, 1_000_005)]
    assert not list(tmp_path.rglob("singerlake.lock"))


def test_the_lock_of_a_killed_process_is_taken_over_at_once(tmp_path: Path) -> None:
    killed = begin(tmp_path, 0, 0, 100_000, "killed")
    assert killed.stdout is not None
    seen = [int(killed.stdout.readline()) for _ in range(3)]
    os.kill(killed.pid, signal.SIGKILL)
    out, _ = killed.communicate()
    assert json.loads(lock_of(tmp_path).read_bytes())["writer-id"] == "killed"
    next_one = begin(tmp_path, 0, 1_000_000, 2, "next")
    next_out, err = next_one.communicate(timeout=100)  # a third of the ttl
    assert next_one.returncode == 0, err
    assert set(seen) | set(ids_of(out)) | set(ids_of(next_out)) <= set(committed(tmp_path))
    manifest = json.loads((tmp_path / "raw/t/s/manifest.json").read_bytes())
    assert [entry["epoch"] for entry in manifest["writers"].values()] == [2]


@pytest.mark.nightly
def test_storm(tmp_path: Path) -> None:
    """Writers of four schemas of one stream; half of them are killed at a random moment. What a kill leaves at each
    point of a write test_kill_points shows in every push."""
    source = random.Random(14)
    acknowledged: set[int] = set()
    sent: set[int] = set()
    fenced = 0
    for round_number in range(4):
        writers = []
        for variant in range(4):
            start = (round_number * 4 + variant) * 1000
            sent |= set(range(start, start + 30))
            writers.append(begin(tmp_path, variant, start, 30, f"{round_number}-{variant}"))
        for victim in source.sample(writers, 2):
            assert victim.stdout is not None
            acknowledged |= {int(victim.stdout.readline()) for _ in range(source.randrange(1, 15))}
            time.sleep(source.uniform(0, 0.005))
            os.kill(victim.pid, signal.SIGKILL)
        for writer in writers:
            out, err = writer.communicate(timeout=60)
            assert writer.returncode in (0, -signal.SIGKILL, 3), err
            fenced += writer.returncode == 3
            acknowledged |= set(map(int, out.split()))
    found = committed(tmp_path)
    assert acknowledged <= set(found) <= sent
    assert len(found) == len(set(found))
    assert len(acknowledged) >= 8 * 30
    assert fenced == 0
    document: dict[str, Any] = json.loads((tmp_path / "raw/t/s/manifest.json").read_bytes())
    assert document["sequence"] == len(document["files"])
    assert sorted(document["versions"].values()) == ["v1", "v2", "v3", "v4"]
    # What a killed writer published but did not commit, a new manifest finds.
    (tmp_path / "raw/t/s/manifest.json").unlink()
    begin(tmp_path, 0, 900_000, 1).communicate(timeout=30)
    on_disk = len(list(tmp_path.rglob("*.singer.gz")))
    assert len(committed(tmp_path)) == on_disk
    assert set(found) | {900_000} <= set(committed(tmp_path))
