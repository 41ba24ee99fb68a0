"""``acknowledge_state_file``: a source is told only what a state file confirms, never more, never backwards."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from confirming import Beside, state
from hypothesis import given
from hypothesis import strategies as st
from taps import ids, make

from burler.testing import run_tap


@pytest.fixture
def started(tmp_path: Path) -> Any:
    """Begins a run; ends it."""
    begun: list[Beside] = []

    def start(**more: Any) -> Beside:
        begun.append(Beside(tmp_path / "state.json", **more))
        return begun[-1]

    yield start
    for one in begun:
        one.end()


@pytest.fixture
def beside(started: Any) -> Beside:
    return started()


# ---- what is told ---------------------------------------------------------------------------------------------


def test_what_is_written_is_not_told_before_the_file_says_it(beside: Beside):
    beside.say(1, 2, 3)
    assert beside.confirm(json.dumps({"bookmarks": {}})) == []
    assert beside.confirm(2) == [2]
    assert beside.confirm(2) == [2]
    beside.say(4)
    assert beside.confirm(3) == [2, 3]
    assert beside.confirm(4) == [2, 3, 4]


def test_the_file_is_looked_at_each_10_seconds_and_not_at_each_page(beside: Beside):
    beside.say(1, 2)
    assert beside.confirm(1) == [1]
    assert beside.confirm(2, seconds=9) == [1]
    assert beside.confirm(2, seconds=1) == [1, 2]


def test_at_the_end_it_is_looked_at_once_more(beside: Beside):
    beside.say(1)
    beside.confirm("{}")
    beside.say(2)
    beside.confirm(2, seconds=1)
    beside.end()
    assert beside.told == [2]


def test_what_this_run_has_never_said_is_never_told(beside: Beside):
    """A file of the future, of an older run, of another tap."""
    beside.say(1, 2, 3)
    for strange in (99, 0, "2", 2.5, None, [2], {"x": 2}):
        assert beside.confirm(strange) == []
    assert beside.confirm(json.dumps({"bookmarks": {"b": {"id": 2}}})) == []
    assert beside.confirm(json.dumps({"bookmarks": {"a": {"other": 2}}})) == []
    assert beside.confirm(2) == [2]


def test_a_file_that_has_said_it_before_this_run_did_confirms_it(beside: Beside):
    """A run that begins further back comes to where an older one had come."""
    beside.say(1, 2)
    for _ in range(5):
        assert beside.confirm(3) == []
    os.utime(beside.path, ns=(1, 1))
    for _ in range(3):
        beside.page()
    beside.say(3, 4)
    beside.page()
    assert beside.told == [3]


def test_it_never_goes_back(beside: Beside):
    beside.say(1, 2, 3)
    assert beside.confirm(3) == [3]
    assert beside.confirm(1) == [3]
    assert beside.confirm(2) == [3]


def test_a_bookmark_that_is_the_same_at_another_position_is_not_confirmed(beside: Beside):
    beside.say((5, {"lsn": "a"}), (5, {"lsn": "b"}), (5, {"lsn": "c"}))
    assert beside.confirm(5) == []
    assert beside.confirm(json.dumps(state(5, {"lsn": "b"}))) == [(5, {"lsn": "b"})]
    assert beside.confirm(json.dumps(state(5, {"lsn": "a"}))) == [(5, {"lsn": "b"})]


def test_what_was_there_when_the_run_began_counts_as_told(started: Any):
    beside = started(given=state(7))
    assert beside.confirm(7) == []
    beside.say(7, 8)
    assert beside.confirm(7) == []
    assert beside.confirm(8) == [8]


def test_a_file_of_the_target_s_lines(beside: Beside):
    beside.say(1, 2, 3)
    lines = json.dumps(state(1)) + "\n" + json.dumps(state(2)) + "\n"
    assert beside.confirm(lines + json.dumps(state(3))[:-5]) == [2]


def test_touched_lines_add_up(started: Any):
    beside = started(state_scope="touched")
    beside.say((1, {"lsn": "x"}), (2, {"lsn": "x"}))
    lines = json.dumps(state(1, {"lsn": "x"})) + "\n" + json.dumps(state(2)) + "\n"  # the position has not changed
    assert beside.confirm(lines) == [(2, {"lsn": "x"})]


def test_a_broken_file_stops_nothing(beside: Beside):
    beside.say(1, 2)
    assert beside.confirm("{") == []
    assert beside.confirm(1) == [1]
    beside.path.unlink()
    beside.page()
    assert beside.confirm(2) == [1, 2]


def test_an_error_of_the_function_is_one_of_its_stream(started: Any):
    beside = started(failing=[True])
    beside.say(1)
    beside.path.write_text(json.dumps(state(1)))
    run = beside.end()
    assert list(run.result.errors) == ["a"]
    assert beside.told == []


# ---- one warning ----------------------------------------------------------------------------------------------


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def test_one_warning_where_the_file_goes_on_saying_something_else(beside: Beside, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO):
        beside.say(1)
        for _ in range(29):
            beside.confirm(99)
        assert warned(caplog) == []
        for _ in range(60):
            beside.confirm(99)
        [said] = warned(caplog)
        assert "stream 'a'" in said
        assert str(beside.path) in said
        assert "5 minutes" in said
        beside.confirm(1)
        beside.say(2)
        for _ in range(40):
            beside.confirm(98)
        assert len(warned(caplog)) == 2


def test_no_warning_where_nothing_waits_or_the_file_is_only_late(beside: Beside, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO):
        for _ in range(100):
            beside.confirm(99)
        beside.say(1, 2)
        beside.confirm(1)
        for _ in range(100):
            beside.confirm(1)
        beside.confirm(2)
        for _ in range(100):
            beside.confirm(1)  # a file that was set back: nothing waits for it
    assert warned(caplog) == []


def test_the_setting_without_a_function_is_told(caplog: pytest.LogCaptureFixture, tmp_path: Path):
    with caplog.at_level(logging.INFO):
        run_tap(make(a=lambda: ids(1)))
        assert warned(caplog) == []
        run_tap(make(a=lambda: ids(1)), {"acknowledge_state_file": str(tmp_path / "x")})
    assert warned(caplog) == ["acknowledge_state_file is set, and no stream of this tap has an acknowledge function"]


# ---- any order of things --------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.just("say"), st.integers(0, 12)) | st.tuples(st.just("file"), st.integers(0, 14)), max_size=40
)


@given(steps=STEPS, first=st.none() | st.integers(0, 12))
def test_never_ahead_never_back_and_never_behind(tmp_path_factory: Any, steps: Any, first: int | None):
    """Against a slow model: the STATEs of the run in a list, and the place of the last one that was told."""
    beside = Beside(tmp_path_factory.mktemp("ack") / "state.json", given=state(first) if first is not None else None)
    said: list[int | None] = [first]
    place = 0
    for kind, number in steps:
        if kind == "say":
            beside.say(number)
            if said[-1] != number:
                said.append(number)
            continue
        before = list(beside.told)
        beside.confirm(number)
        matching = [at for at in range(place + 1, len(said)) if said[at] == number]
        if matching and number != said[place]:
            place = matching[-1]
            assert beside.told == [*before, number]
        else:
            assert beside.told == before
    assert not beside.end().result.errors
