"""``acknowledge_state_file`` in whole runs, and as a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from parts import key_of, partitioned
from tapprocess import write_tap
from taps import FIELDS, ids, make

import burler
from burler.testing import FakeClock, run_tap
from support.cli import burler as burler_command


def state(bookmark: Any, position: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"bookmarks": {"a": {"id": bookmark, **({"stream_state": position} if position else {})}}}


def test_a_run_is_told_what_a_target_confirms_meanwhile(tmp_path: Path):
    path, clock, told = tmp_path / "state.json", FakeClock(), []

    def rows():
        for number in range(1, 7):
            yield ids(number)
            if number % 2 == 0:  # the target has stored what came two rows ago
                path.write_text(json.dumps(state(number - 1)))
            clock.advance(5)

    tap = make(a=(rows, {"bookmark_strategy": "on_page"}))
    tap.acknowledge("a")(lambda bookmark: told.append(bookmark))
    run = run_tap(tap, {"acknowledge_state_file": str(path)}, clock=clock)
    assert [one["bookmarks"]["a"]["id"] for one in run.states] == [1, 2, 3, 4, 5, 6, 6]
    assert told == sorted(set(told))
    assert told[-1] == 5
    assert set(told) <= {1, 3, 5}


def test_partitions_are_confirmed_each_for_itself(tmp_path: Path):
    path, told = tmp_path / "state.json", []
    tap = partitioned({"x": [1, 2], "y": [3, 4]})

    @tap.acknowledge("rows")
    def acknowledge(stream, bookmark):
        told.append((stream.partition["account"], bookmark))

    parts = {key_of("x"): {"id": 2}, key_of("y"): {"id": 3}, key_of("z"): {"id": 1}}
    path.write_text(json.dumps({"bookmarks": {"rows": {"partitions": parts}}}))
    run = run_tap(tap, {"acknowledge_state_file": str(path)})
    assert not run.result.errors
    assert told == [("x", 2)]


def test_without_the_setting_a_run_is_told_as_ever(tmp_path: Path):
    told: list[Any] = []
    tap = make(a=lambda: ids(1, 2))
    tap.acknowledge("a")(lambda bookmark: told.append(bookmark))
    run_tap(tap)
    assert told == [2]


class Log:
    """A source that forgets what was acknowledged."""

    def __init__(self, count: int) -> None:
        self.entries = list(range(1, count + 1))


@pytest.mark.parametrize("behind", [0, 1, 3])
def test_a_target_that_dies_before_it_has_stored_loses_nothing(behind: int, tmp_path: Path):
    """The source forgets what was acknowledged; the target is some STATEs behind, and dies with them each time."""
    path, log, stored = tmp_path / "state.json", Log(40), set()
    saved: dict[str, Any] = {}
    for _ in range(60):
        clock, arrived = FakeClock(), []
        tap = burler.tap("tap-log")

        @tap.sync("a", replication_key="id", bookmark_strategy="on_page", resume="exclusive", schema=FIELDS)
        def changes(stream, clock=clock, arrived=arrived):
            for entry in [one for one in log.entries if stream.bookmark is None or one > stream.bookmark][:8]:
                yield ids(entry)
                arrived.append(entry)
                clock.advance(10)
                if len(arrived) > behind:
                    done = arrived[len(arrived) - 1 - behind]
                    stored.update(one for one in arrived if one <= done)
                    path.write_text(json.dumps(state(done)))

        @tap.acknowledge("a")
        def forget(bookmark):
            assert set(range(1, bookmark + 1)) <= stored
            log.entries = [one for one in log.entries if one > bookmark]

        run_tap(tap, {"acknowledge_state_file": str(path)}, state=saved, clock=clock)
        saved = json.loads(path.read_text()) if path.exists() else {}
    assert stored >= set(range(1, 41 - behind))
    assert not [one for one in log.entries if one <= 39 - behind - 1]


SOURCE = """
import json, os, sys, time
import burler
tap = burler.tap("tap-x")

@tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="every_n(1)", schema=SCHEMA)
def rows(stream):
    yield [{"id": 1, "text": None}]
    yield [{"id": 2, "text": None}]
    with open("stored.json.new", "w") as file:
        json.dump({"bookmarks": {"rows": {"id": 1}}}, file)
    os.rename("stored.json.new", "stored.json")
    yield [{"id": 3, "text": None}]

@tap.acknowledge("rows")
def acknowledge(bookmark):
    sys.stderr.write(f"ACK {bookmark}\\n")
"""


@pytest.mark.parametrize("how", ["config", "flag"])
def test_as_a_program(how: str, tmp_path: Path):
    """With files as they are; only the last look falls into so short a run."""
    (tmp_path / "config.json").write_text(
        json.dumps({"acknowledge_state_file": "stored.json"} if how == "config" else {})
    )
    more = ("--acknowledge-state-file", "stored.json") if how == "flag" else ()
    app = write_tap(tmp_path, SOURCE)
    done = burler_command("run", app, "--config", "config.json", *more, cwd=tmp_path)
    assert done.code == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("ACK")] == ["ACK 1"]
