"""A source that forgets what was acknowledged, a tail, and a target that stores late: whoever is killed, nothing is
lost where only a file with what is stored counts."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from blocked import started

SOURCE = """
import os, pathlib, time
import burler

real = time.monotonic
time.monotonic = lambda: 200 * real()  # the file is looked at each 10 seconds
tap = burler.tap("tap-log")
FORGOTTEN = pathlib.Path("forgotten")

def forgotten():
    return int(FORGOTTEN.read_text()) if FORGOTTEN.exists() else 0

@tap.tail("changes", key_properties="id", replication_key="id", order="asc", resume="exclusive", schema=SCHEMA)
def changes(stream):
    number = max(stream.bookmark or 0, forgotten())
    while not stream.wait(0.002):
        for _ in range(5):
            number += 1
            yield {"id": number, "text": "x" * 300}

@tap.ack("changes")
def acknowledge(bookmark):
    assert bookmark > forgotten()
    pathlib.Path("forgotten.new").write_text(str(bookmark))
    os.replace("forgotten.new", "forgotten")
"""


class Target:
    """Stores at each third STATE, and prints it then into a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "stored.jsonl"
        self.stored: set[int] = set()
        self._waiting: list[int] = []
        self._states = 0

    def take(self, line: bytes) -> None:
        message: dict[str, Any] = json.loads(line)
        if message["type"] == "RECORD":
            self._waiting.append(message["record"]["id"])
        elif message["type"] == "STATE":
            self._states += 1
            if self._states % 3 == 0:
                self.stored.update(self._waiting)
                self._waiting.clear()
                with self.path.open("a") as file:
                    file.write(json.dumps(message["value"]) + "\n")

    def dies(self) -> None:
        """With what it has not stored."""
        self._waiting.clear()


def forgotten(folder: Path) -> int:
    path = folder / "forgotten"
    return int(path.read_text()) if path.exists() else 0


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_nothing_is_lost_whoever_is_killed(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    chance, target = random.Random(seed), Target(tmp_path)
    config = {"tail": True, "state_message_min_interval_ms": 4000, "acknowledge_state_file": "stored.jsonl"}
    ways = ["tap killed", "tap stopped", "target dies"] * 2
    chance.shuffle(ways)
    for how in ways:
        given = ("--state", "stored.jsonl") if target.path.exists() else ()
        enough = chance.randrange(50, 400)
        with started(tmp_path, SOURCE, *given, config=config) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            for count, line in enumerate(process.stdout):
                if how == "tap killed" and not line.endswith(b"\n"):
                    break  # SIGKILL cuts a line in its middle
                target.take(line)
                if count >= enough and how == "target dies":
                    break
                if count == enough:
                    process.send_signal(signal.SIGKILL if how == "tap killed" else signal.SIGTERM)
            process.stdout.close()
            said = process.stderr.read().decode()
            process.wait(30)
        target.dies()
        assert "Traceback" not in said, said
        assert "acknowledge function" not in said, said
        assert set(range(1, forgotten(tmp_path) + 1)) <= target.stored, f"{how}: rows are lost"
    assert target.stored == set(range(1, max(target.stored) + 1))
    assert forgotten(tmp_path) > 0
