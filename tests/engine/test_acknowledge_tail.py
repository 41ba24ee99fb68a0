"""Acknowledgements of a tail: in a thread of their own, while the source blocks, and whatever they do themselves."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import burler
from burler.testing import TapRun, run_tap
from support.clocks import MovedClock, until

CLIENT = object()


def state(**bookmarks: Any) -> dict[str, Any]:
    return {"bookmarks": {name: {"id": value} for name, value in bookmarks.items()}}


class Tail:
    """A tail whose source does what a test says, and blocks meanwhile; its acknowledge function is given."""

    def __init__(self, acknowledge: Callable[..., None], story: Callable[[Tail], Iterator[int]], **more: Any) -> None:
        self.clock = MovedClock()
        tap = burler.tap("tap-t")
        tap.client(lambda: CLIENT)
        tap.acknowledge("a")(acknowledge)

        @tap.tail("a", key_properties="id", replication_key="id", order="asc", schema={"properties": {"id": {}}})
        def events():
            for number in story(self):
                yield [{"id": number}]

        config = {
            "tail": True,
            "tail_max_rounds": 1,
            "state_message_min_interval_ms": 1,
            "page_max_age_seconds": 0.02,
            "page_max_rows": 1,
            **more,
        }
        self.run: TapRun = run_tap(tap, config, clock=self.clock)
        assert not self.run.result.errors

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    return [one for one in found if "acknowledge" in one]


def test_a_thread_of_its_own_calls_them_one_at_a_time():
    told: list[Any] = []

    def acknowledge(stream, bookmark, client):
        told.append((bookmark, stream.name, client is CLIENT, threading.current_thread().name))

    def story(tail):
        for number in range(1, 20):
            yield number
            tail.later(1)
            until(lambda number=number: told and told[-1][0] == number)

    Tail(acknowledge, story)
    until(lambda: not any(one.name == "burler-ack" for one in threading.enumerate()))
    assert [one[0] for one in told] == list(range(1, 20))
    assert {one[1:] for one in told} == {("a", True, "burler-ack")}


def test_rows_wait_for_no_function():
    hold, entered = threading.Event(), threading.Event()

    def acknowledge():
        entered.set()
        hold.wait(20)

    def story(tail):
        yield 1
        tail.later(1)
        assert entered.wait(20)
        for number in range(2, 1000):
            yield number
            tail.later(0.01)
        hold.set()

    begun = time.monotonic()
    tail = Tail(acknowledge, story)
    assert time.monotonic() - begun < 15
    assert len(tail.run.records("a")) == 999


def test_while_the_source_blocks_the_file_is_looked_at_and_told(tmp_path: Path):
    told: list[int] = []
    path = tmp_path / "state.json"

    def story(tail):
        yield 1
        tail.later(1)
        time.sleep(0.3)  # its STATE is out
        path.write_text(json.dumps(state(a=1)))
        yield 2
        tail.later(10)
        until(lambda: told == [1])
        path.write_text(json.dumps(state(a=2)))
        tail.later(9)
        time.sleep(0.05)
        assert told == [1]
        tail.later(1)
        until(lambda: told == [1, 2])

    Tail(lambda bookmark: told.append(bookmark), story, acknowledge_state_file=str(path))
    assert told == [1, 2]


def test_at_the_end_the_last_state_is_told_and_the_file_is_looked_at_once_more(tmp_path: Path):
    path = tmp_path / "state.json"
    for more in ({}, {"acknowledge_state_file": str(path)}):
        told: list[int] = []

        def story(tail):
            path.write_text("{}")
            yield 1
            tail.later(1)
            path.write_text(json.dumps(state(a=7)))
            yield 7

        Tail(lambda bookmark, told=told: told.append(bookmark), story, **more)
        assert told[-1] == 7


def test_one_that_fails_is_tried_again_and_all_goes_on(caplog: pytest.LogCaptureFixture):
    told: list[Any] = []
    fails = [True] * 3

    def acknowledge(bookmark):
        if fails:
            fails.pop()
            raise ConnectionError("broker gone")
        told.append(bookmark)

    def story(tail):
        yield 1
        tail.later(0.1)
        until(lambda: len(warned(caplog)) == 1)
        yield 2
        for number, seconds in ((2, 1), (3, 2)):
            tail.later(seconds)
            until(lambda number=number: len(warned(caplog)) == number)
        tail.later(3)
        time.sleep(0.05)
        assert told == []  # not before its wait is over
        tail.later(1)
        until(lambda: told == [2])
        until(lambda: "works again" in caplog.text)

    with caplog.at_level(logging.INFO):
        Tail(acknowledge, story)
    assert [one.rsplit(";", 1)[1] for one in warned(caplog)] == [
        f" tried again in {seconds} s. The run goes on" for seconds in (1, 2, 4)
    ]
    assert all("stream 'a'" in one and "ConnectionError: broker gone" in one for one in warned(caplog))
    assert all("test_acknowledge_tail.py" in one for one in warned(caplog))


def test_waits_grow_to_five_minutes(caplog: pytest.LogCaptureFixture):
    def acknowledge():
        raise SystemExit

    def story(tail):
        yield 1
        for number in range(1, 14):
            tail.later(300)
            until(lambda number=number: len(warned(caplog)) == number)

    with caplog.at_level(logging.INFO):
        Tail(acknowledge, story)
    waits = [one.split("tried again in ")[1].split(" s")[0] for one in warned(caplog)[:13]]
    assert waits == [str(min(2**n, 300)) for n in range(13)]
    assert "not told again" in warned(caplog)[-1]


def test_what_the_file_has_confirmed_is_tried_again_though_the_file_stays_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    told: list[Any] = []
    fails = [True]
    path = tmp_path / "state.json"

    def acknowledge(bookmark):
        if fails:
            fails.pop()
            raise ConnectionError
        told.append(bookmark)

    def story(tail):
        yield 1
        tail.later(0.1)
        path.write_text(json.dumps(state(a=1)))
        while not warned(caplog):
            tail.later(10)  # the file is looked at once more: at the last look the STATE may not have been out
            limit = time.monotonic() + 2
            while not warned(caplog) and time.monotonic() < limit:
                time.sleep(0.01)
        assert told == []  # from here on it waits a second
        tail.later(1)
        until(lambda: told == [1])

    Tail(acknowledge, story, acknowledge_state_file=str(path))


def test_one_that_does_not_come_back_is_told_once_and_left_behind(caplog: pytest.LogCaptureFixture):
    hold, entered, told = threading.Event(), threading.Event(), []

    def acknowledge(bookmark):
        told.append(bookmark)
        entered.set()
        hold.wait(30)

    def story(tail):
        yield 1
        tail.later(0.1)
        assert entered.wait(20)
        tail.later(59)
        time.sleep(0.05)
        assert warned(caplog) == []
        for _ in range(5):
            tail.later(60)
            until(lambda: warned(caplog))
        [said] = warned(caplog)
        assert said.startswith("stream 'a': its acknowledge function (")
        assert said.endswith(") has not come back for 60 s. Other acknowledgements wait for it; rows and STATE go on")
        threading.Timer(4, hold.set).start()  # later than the end waits for it
        yield 2

    with caplog.at_level(logging.INFO):
        begun = time.monotonic()
        Tail(acknowledge, story)
        assert time.monotonic() - begun < 15
    assert "left behind" in warned(caplog)[-1]
    hold.set()
    until(lambda: not any(one.name == "burler-ack" for one in threading.enumerate()))
    assert told == [1]  # it tells nobody any more, once it has come back
