"""Substreams in real processes: memory, kill -9 and SIGTERM at any moment, the command line."""

from __future__ import annotations

import itertools
import json
import random
import re
import signal
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tapprocess import PYTHON, environment, python, write_tap

NIGHTLY = pytest.mark.nightly
"""The same as the others here, only longer."""

BIG = """
import sys
import burler
from support.runs import print_memory

tap = burler.tap("tap-big")

@tap.sync("parents", key_properties="id", replication_key="id", bookmark_strategy="every_n(1000)", schema=SCHEMA)
def parents():
    for i in range(int(sys.argv[1])):
        yield {"id": i, "text": "x" * 100}

@tap.sync("children", parent="parents", schema=SCHEMA)
def children(parent):
    for i in range(5):
        yield {"id": i, "text": "y" * 100}

print_memory(tap)
"""


@pytest.mark.nightly
def test_memory_does_not_grow_with_the_number_of_parents(tmp_path: Path):
    assert _grown_by(tmp_path, BIG, 2_000, 20_000, rows_each=6) < 8_000


def test_many_big_parents_take_little_memory(tmp_path: Path):
    """300 parents of 1 MB; 100 of them may be read ahead by count, 2 MB by size."""
    assert _grown_by(tmp_path, BIG_ROWS, 5, 300, rows_each=2) < 30_000


def _grown_by(folder: Path, source: str, few: int, many: int, rows_each: int) -> int:
    """How many kilobytes more it takes with more parents."""
    path = write_tap(folder, source, "tap_big.py")
    used = {}
    for count in (few, many):
        ended = python(path, str(count), cwd=folder, timeout=120)
        assert ended.code == 0, ended.stderr
        told = json.loads(ended.stdout)
        assert told["rows"] == rows_each * count
        used[count] = told["kilobytes"]
    return used[many] - used[few]


BIG_ROWS = """
import sys
import burler
from support.runs import print_memory

tap = burler.tap("tap-big")

@tap.sync("parents", key_properties="id", schema=SCHEMA)
def parents():
    for i in range(int(sys.argv[1])):
        yield {"id": i, "text": "x" * 1_000_000}

@tap.sync("children", parent="parents", schema=SCHEMA)
def children(parent):
    yield {"id": parent["id"], "text": "y"}

print_memory(tap)
"""


KILLED = """
import time
import burler

tap = burler.tap("tap-killed")

@tap.sync("parents", key_properties="id", replication_key="id", bookmark_strategy="every_n(20)", schema=SCHEMA)
def parents(stream):
    for i in range(stream.bookmark or 0, 600):
        yield {"id": i, "text": "x"}
        time.sleep(0.001)

@tap.sync("children", parent="parents", schema=SCHEMA)
def children(parent):
    for i in range(parent["id"] % 4):
        yield {"id": 1000 * i + parent["id"], "text": "y"}
        time.sleep(0.001)

if __name__ == "__main__":
    tap.cli()
"""


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=NIGHTLY)], ids=["kill -9", "SIGTERM"]
)
def test_nothing_is_lost_when_the_process_is_ended(tmp_path: Path, number: signal.Signals):
    """Again and again; what stands behind the last STATE that got out counts for nothing."""
    path = write_tap(tmp_path, KILLED, "tap_killed.py")
    state = tmp_path / "state.json"
    kept: set[tuple[str, int]] = set()
    done = False
    for count in [*random.Random(7).sample(range(1, 250), 5), None]:
        code, lines = _lines(path, state, number, count)
        states = [i for i, message in enumerate(lines) if message["type"] == "STATE"]
        if states:
            kept |= {(m["stream"], m["record"]["id"]) for m in lines[: states[-1]] if m["type"] == "RECORD"}
            state.write_text(json.dumps(lines[states[-1]]["value"]))
            done = "currently_syncing" not in lines[states[-1]]["value"]
        if done:
            break
        assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0)
    assert done
    expected = {("parents", i) for i in range(600)}
    assert kept == expected | {("children", 1000 * k + i) for i in range(600) for k in range(i % 4)}


def _lines(path: Path, state: Path, number: signal.Signals, count: int | None) -> tuple[int, list[dict[str, Any]]]:
    """The tap gets the signal once so many lines have come: its exit code, and all whole lines."""
    given = ["--state", str(state)] if state.exists() else []
    with subprocess.Popen(
        [PYTHON, str(path), *given], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
    ) as process:
        assert process.stdout is not None
        out = b"".join(itertools.islice(process.stdout, count))
        if count is not None:
            process.send_signal(number)
        out += process.stdout.read()
    return process.returncode, [json.loads(line) for line in out.split(b"\n")[:-1]]


def test_the_command_line_tells_of_a_childs_error_in_one_message(tmp_path: Path):
    source = textwrap.dedent(KILLED).replace("time.sleep(0.001)", "")
    path = write_tap(tmp_path, source.replace('parent["id"] % 4', '{}[5] if parent["id"] == 5 else 1'), "tap_killed.py")
    ended = python(path, cwd=tmp_path)
    assert ended.code == 1
    assert re.match(
        r"CRITICAL children: parent parents id=5 \(tap_killed\.py:\d+\): KeyError: 5$", ended.one_critical()
    )
    kids = [m["record"]["id"] for m in ended.messages if m["type"] == "RECORD" and m["stream"] == "children"]
    assert kids == [i for i in range(600) if i != 5]
    assert ended.messages[-1]["value"]["bookmarks"]["parents"] == {"id": 5}
