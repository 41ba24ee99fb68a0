"""Acknowledgements in whole tail runs."""

from __future__ import annotations

import json
import logging
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from blocked import started, wait_for
from tapprocess import PYTHON, environment, write_tap
from taps import ids, make

import burler
from burler.testing import FakeClock, run_tap
from support.clocks import until

CLIENT = object()


def state(**bookmarks: Any) -> dict[str, Any]:
    return {"bookmarks": {name: {"id": value} for name, value in bookmarks.items()}}


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def test_a_tail_tells_while_its_function_blocks():
    """The main thread stands in the source, for hours if it likes: it goes on once it was told."""
    told: list[tuple[int, str]] = []
    tap = make()
    tap.stream("a", key_properties="id", replication_key="id", order="asc", schema={"properties": {"id": {}}})

    @tap.tail("a")
    def events():
        for number in range(1, 4):
            yield {"id": number}
            until(lambda number=number: told and told[-1][0] == number)

    @tap.ack("a")
    def acknowledge(bookmark):
        told.append((bookmark, threading.current_thread().name))

    settings = {"tail": True, "tail_max_rounds": 1, "state_message_min_interval_ms": 1}
    run = run_tap(tap, settings)
    assert not run.result.errors
    assert told == [(1, "burler-ack"), (2, "burler-ack"), (3, "burler-ack")]


def test_a_tail_goes_on_where_its_acknowledge_function_fails(caplog: pytest.LogCaptureFixture):
    rounds = [0]

    def rows():
        rounds[0] += 1
        yield {"id": rounds[0]}

    tap = make(a=rows)

    @tap.acknowledge("a")
    def acknowledge():
        raise ConnectionError("broker gone")

    with caplog.at_level(logging.INFO):
        run = run_tap(tap, {"tail": True, "tail_max_rounds": 20}, clock=FakeClock())
    assert not run.result.errors
    assert run.result.exit_code == 0
    assert run.records("a") == ids(*range(1, 21))
    assert run.states[-1] == state(a=20)
    assert "broker gone" in warned(caplog)[0]
    assert "not told again" in warned(caplog)[-1]


def test_what_it_is_told_goes_back_where_the_state_does():
    """A run that begins at that STATE reads these rows again: the source must still have them."""
    told: list[int] = []

    def rows():
        yield [{"id": 5}]
        yield [{"id": 9}]
        yield [{"id": 3}]  # against order="asc"

    tap = make()
    more: dict[str, Any] = {"order": "asc", "bookmark_strategy": "on_page"}
    tap.sync("a", key_properties="id", replication_key="id", schema={"properties": {"id": {}}}, **more)(rows)
    tap.acknowledge("a")(lambda bookmark: told.append(bookmark))
    run = run_tap(tap, state=state(a=2))
    assert told == list(dict.fromkeys(one["bookmarks"]["a"]["id"] for one in run.states)) == [5, 9, 2]


@pytest.mark.parametrize("confirmed", [False, True])
def test_polled_streams_of_a_tail_are_told_of_the_last_state(confirmed: bool, tmp_path: Path):
    told: list[int] = []
    rounds = [0]
    path = tmp_path / "state.json"

    def rows():
        rounds[0] += 1
        path.write_text(json.dumps(state(a=rounds[0] - 2)))
        yield {"id": rounds[0]}

    tap = make(a=rows)
    tap.acknowledge("a")(lambda bookmark: told.append(bookmark))
    more = {"acknowledge_state_file": str(path)} if confirmed else {}
    run = run_tap(tap, {"tail": True, "tail_max_rounds": 50, **more}, clock=FakeClock())
    assert not run.result.errors
    assert told == sorted(set(told))
    said = {one["bookmarks"]["a"]["id"] for one in run.states}
    assert set(told) <= said
    if not confirmed:
        assert told[-1] == 50
    else:
        assert all(one <= 48 for one in told)


def test_functions_of_the_author_are_refused_the_old_way_in_plain_runs():
    """There an error is one of the stream: nobody looks at a log of a run that ended well."""
    tap = burler.tap("tap-t")

    @tap.sync("a", replication_key="id", schema={"properties": {"id": {}}})
    def rows():
        yield {"id": 1}

    @tap.acknowledge("a")
    def acknowledge():
        raise ConnectionError

    assert list(run_tap(tap).result.errors) == ["a"]


LEFT = """
import pathlib, sys, time
import burler
tap = burler.tap("tap-x")
made = [0]
gone = pathlib.Path(__file__).with_name("gone")

@tap.tail("rows", key_properties="id", replication_key="id", order="asc")
def rows(stream):
    while True:
        made[0] += 1
        yield {"id": made[0]}
        time.sleep(0.01)

@tap.acknowledge("rows")
def acknowledge(bookmark):
    print("TOLD", file=sys.stderr, flush=True)
    while not gone.exists():
        time.sleep(0.01)
    seen = 0
    while seen != made[0]:
        seen = made[0]
        time.sleep(1)
    print("BACK", file=sys.stderr, flush=True)
tap.schema("rows", SCHEMA)
"""
"""Its acknowledge function is told of one STATE, and comes back once the reader is gone and no row comes any more."""


def test_nothing_is_told_once_the_reader_is_gone(tmp_path: Path):
    """Nor the newest STATE that went out before: what came of it, nobody knows."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"tail": True, "state_message_min_interval_ms": 1, "page_max_age_seconds": 0.02}))
    command = [PYTHON, "-m", "burler", "run", str(write_tap(tmp_path, LEFT)), "--config", str(config)]
    errors = tmp_path / "stderr"
    with errors.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment())
    try:
        assert process.stdout is not None
        until(lambda: "TOLD" in errors.read_text())
        said = 0
        while said < 3:  # at least one of them is newer than what it was told of
            line = process.stdout.readline()
            assert line, errors.read_text()
            said += json.loads(line)["type"] == "STATE"
        process.stdout.close()
        (tmp_path / "gone").touch()
        assert process.wait(20) != 0
    finally:
        process.kill()
        process.wait()
    lines = errors.read_text().splitlines()
    assert [line for line in lines if line in ("TOLD", "BACK")] == ["TOLD", "BACK"]


HANGS = """
import sys, time
import burler
tap = burler.tap("tap-x")

@tap.HOW("rows", key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
def rows(stream):
    yield {"id": 1}
    while HOW == "tail" and not stream.wait(0.05):
        pass

@tap.acknowledge("rows")
def acknowledge():
    print("TOLD", file=sys.stderr, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("how", ["sync", "tail"])
def test_a_function_that_hangs_does_not_keep_a_process_that_is_told_to_end(how: str, tmp_path: Path):
    source = HANGS.replace("@tap.HOW", f"@tap.{how}").replace("HOW", repr(how))
    with started(tmp_path, source, config={"tail": how == "tail", "state_message_min_interval_ms": 1}) as process:
        wait_for(process, b"TOLD", 1)
        process.terminate()
        assert process.wait(8) == 0
