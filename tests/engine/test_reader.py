"""A million rows into a pipe, and what may become of its reader. See also ``test_signals`` and ``cli/test_stdout``."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tapprocess import PYTHON, environment, shell, without_times, write_tap

NIGHTLY = pytest.mark.nightly
"""The same as the others here, only longer."""

ROWS = 1_000_000
LINES = 1 + ROWS + 10 + 1  # SCHEMA; a STATE for each 100,000 rows; one at the end
SOURCE = """
import burler
tap = burler.tap("tap-million")

@tap.sync("rows", key_properties="id", replication_key="id", order="asc", bookmark_strategy="every_n(100000)")
def rows():
    for first in range(0, 1_000_000, 1000):
        yield [{"id": i, "text": "x"} for i in range(first, first + 1000)]

tap.schema("rows", SCHEMA)
"""
LAST = {"type": "STATE", "value": {"bookmarks": {"rows": {"id": ROWS - 1}}}}
GONE = "WARNING the program reading our output has gone; stopped."

RECORD = (
    rb'\{"type":"RECORD","stream":"rows","record":\{"id":(\d+),"text":"x"\},'
    rb'"time_extracted":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"\}'
)

# Looks at each byte of each line: one that is lost may leave valid JSON. Rests after some of what it reads.
SLOW = f"""
import os, random, re, time
record = re.compile({RECORD!r}).fullmatch
rng = random.Random(7)
ids, others, rest = 0, [], b""
while chunk := os.read(0, rng.choice([100, 4096, 65536, 1 << 20])):
    lines = (rest + chunk).split(b"\\n")
    rest = lines.pop()
    for line in lines:
        found = record(line)
        if found is None:
            others.append(line)
        else:
            assert int(found[1]) == ids, line
            ids += 1
    if rng.random() < 0.02:
        time.sleep(rng.choice([0.001, 0.01, 0.05]))
assert rest == b"", rest
print(ids)
for line in others:
    print(line.decode())
"""


def test_a_million_rows_are_a_million_lines(tmp_path: Path):
    write_tap(tmp_path, SOURCE)
    ended = shell("$BURLER run tap_x.py | wc -l", tmp_path)
    assert ended.code == 0, ended.stderr
    assert int(ended.stdout) == LINES
    assert ended.lines("WARNING") == []


@pytest.mark.nightly
def test_a_slow_reader_gets_every_row_and_the_last_state(tmp_path: Path):
    write_tap(tmp_path, SOURCE)
    (tmp_path / "slow.py").write_text(SLOW)
    ended = shell(f"$BURLER run tap_x.py | {PYTHON} slow.py", tmp_path)
    assert ended.code == 0, ended.stderr
    ids, *others = ended.stdout.decode().splitlines()
    assert int(ids) == ROWS
    messages = [json.loads(line) for line in others]
    assert [message["type"] for message in messages] == ["SCHEMA", *["STATE"] * 11]
    assert messages[-1] == LAST


@pytest.fixture
def million(tmp_path: Path) -> Iterator[Callable[[int], subprocess.Popen[bytes]]]:
    """Starts the tap with a descriptor as its stdout, which is closed here; kills what is left of it."""
    path = write_tap(tmp_path, SOURCE)
    runs: list[subprocess.Popen[bytes]] = []

    def start(stdout: int) -> subprocess.Popen[bytes]:
        command = [PYTHON, "-m", "burler", "run", str(path)]
        runs.append(subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, env=environment()))
        os.close(stdout)
        return runs[-1]

    yield start
    for run in runs:
        run.kill()
        run.communicate()


def ended_without_reader(run: subprocess.Popen[bytes]) -> None:
    """It ends soon, with code 4 and one line that says why."""
    begun = time.monotonic()
    _out, err = run.communicate(timeout=20)
    assert run.returncode == 4, err.decode()
    assert time.monotonic() - begun < 5
    log = without_times(err.decode())
    assert [line for line in log.splitlines() if not line.startswith("INFO ")] == [GONE]
    assert re.search(r"^INFO stream 'rows': unfinished, ", log, re.MULTILINE), log


@pytest.mark.parametrize("lines", [1, pytest.param(12_345, marks=NIGHTLY), pytest.param(500_000, marks=NIGHTLY)])
def test_a_reader_that_closes_has_whole_lines_up_to_there(million: Callable[..., subprocess.Popen[bytes]], lines: int):
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as pipe:
        run = million(theirs)
        taken = [pipe.readline() for _ in range(lines)]
    ended_without_reader(run)
    assert all(line.endswith(b"\n") for line in taken)
    messages = [json.loads(line) for line in taken]
    assert messages[0]["type"] == "SCHEMA"
    out = 0
    for line, message in zip(taken, messages, strict=True):
        if message["type"] == "RECORD":
            found = re.fullmatch(RECORD, line.rstrip(b"\n"))
            assert found is not None, line
            assert int(found[1]) == out
            out += 1
        elif message["type"] == "STATE":
            assert message["value"]["bookmarks"] == {"rows": {"id": out - 1}}, "STATE tells of what is out, not more"


@pytest.mark.parametrize("number", [pytest.param(signal.SIGKILL, marks=NIGHTLY), signal.SIGTERM])
def test_a_reader_that_is_killed_in_the_middle(million: Callable[..., subprocess.Popen[bytes]], tmp_path: Path, number):
    got = tmp_path / "got.jsonl"
    ours, theirs = os.pipe()
    with got.open("wb") as file:
        reader = subprocess.Popen(["cat"], stdin=ours, stdout=file)
    os.close(ours)
    run = million(theirs)
    end = time.monotonic() + 20
    while got.stat().st_size < 5_000_000 and time.monotonic() < end:
        time.sleep(0.01)
    reader.send_signal(number)
    assert reader.wait(10) == -number
    ended_without_reader(run)
    whole, _, torn = got.read_bytes().rpartition(b"\n")  # cat may die between two writes of a line
    messages = [json.loads(line) for line in whole.split(b"\n")]
    ids = [message["record"]["id"] for message in messages if message["type"] == "RECORD"]
    assert 10_000 < len(ids) < ROWS
    assert ids == list(range(len(ids)))
    assert len(torn) < 200


def test_a_reader_that_is_stopped_and_goes_on_loses_nothing(million: Callable[..., subprocess.Popen[bytes]]):
    """Longer than ten seconds would be the same: only a signal to the tap starts that clock."""
    ours, theirs = os.pipe()
    reader = subprocess.Popen(["wc", "-l"], stdin=ours, stdout=subprocess.PIPE)
    os.close(ours)
    reader.send_signal(signal.SIGSTOP)
    run = million(theirs)
    for _ in range(4):
        time.sleep(0.4)
        assert run.poll() is None
        reader.send_signal(signal.SIGCONT)
        time.sleep(0.02)
        reader.send_signal(signal.SIGSTOP)
    reader.send_signal(signal.SIGCONT)
    out, _ = reader.communicate(timeout=60)
    assert int(out) == LINES
    assert run.wait(10) == 0
