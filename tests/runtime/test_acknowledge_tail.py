"""Acknowledgements of a tail: in a thread of their own, while the source blocks, and whatever they do themselves."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from taps import make

from burler.testing import FakeClock
from support.internals import acknowledging, sessions, settings

LOGGER = acknowledging.logger.name
CLIENT = object()


def state(**bookmarks: Any) -> dict[str, Any]:
    return {"bookmarks": {name: {"id": value} for name, value in bookmarks.items()}}


def until(true: Callable[[], Any], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it has not come"
        time.sleep(0.002)


class Beside:
    """The acknowledgements of a tail with the streams ``a`` and ``b``, and no run around them."""

    def __init__(self, function: Callable[..., None], **more: Any) -> None:
        tap = make(a=lambda: [], b=lambda: [])
        tap.client(lambda: CLIENT)
        for name in "ab":
            tap.acknowledge(name)(function)
        session = sessions.Session(tap, {})
        session.catalog()
        self.clock = FakeClock()
        self.failures: list[BaseException] = []
        self.engine: Any = SimpleNamespace(
            session=session,
            plan=(),
            state={},
            settings=settings.Settings(tail=True, **more),
            clock=self.clock,
            broken=False,
            client_of=lambda _stream: session.clients.get(),
            stopper=SimpleNamespace(fail=self.failures.append),
            stream_failed=lambda name, error: self.failures.append(error),
        )
        self.acknowledgements = acknowledging.Acknowledgements(self.engine)
        self.say = self.acknowledgements.state_is_out

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.acknowledgements.tick()


@contextmanager
def tailing(function: Callable[..., None], **more: Any) -> Iterator[Beside]:
    """Started; ended again."""
    beside = Beside(function, **more)
    beside.acknowledgements.start()
    try:
        yield beside
    finally:
        beside.acknowledgements.close()
        assert not beside.failures
        until(lambda: not any(one.name == "burler-ack" for one in threading.enumerate()))


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING and one.name == LOGGER]


# ---- where ----------------------------------------------------------------------------------------------------


def test_a_thread_of_its_own_calls_them_one_at_a_time():
    told: list[Any] = []
    inside, most = [0], [0]

    def acknowledge(stream, bookmark, client):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.002)
        inside[0] -= 1
        told.append((stream.name, bookmark, client is CLIENT, threading.current_thread().name))

    with tailing(acknowledge) as beside:
        for number in range(1, 30):
            beside.say(state(a=number, b=number))
            assert not beside.acknowledgements.waiting
            beside.acknowledgements.call()  # between pages: nothing there
            time.sleep(0.001)
        until(lambda: [one[:2] for one in told[-2:]] == [("a", 29), ("b", 29)])
    assert {one[2:] for one in told} == {(True, "burler-ack")}
    assert most == [1]
    for name in "ab":
        numbers = [number for stream, number, *_ in told if stream == name]
        assert numbers == sorted(set(numbers))


def test_writing_a_state_waits_for_no_function_and_reads_no_file(tmp_path: Path, monkeypatch: Any):
    hold, entered = threading.Event(), threading.Event()

    def acknowledge():
        entered.set()
        hold.wait(20)

    with tailing(acknowledge) as beside:
        beside.say(state(a=1))
        assert entered.wait(20)
        begun = time.monotonic()
        for number in range(2, 1000):
            beside.say(state(a=number))
            beside.acknowledgements.tick()
            beside.acknowledgements.call()
        assert time.monotonic() - begun < 5
        hold.set()


def test_while_the_source_blocks_the_file_is_looked_at_and_told(tmp_path: Path):
    told: list[int] = []
    path = tmp_path / "state.json"
    with tailing(lambda bookmark: told.append(bookmark), acknowledge_state_file=str(path)) as beside:
        beside.say(state(a=1))
        beside.say(state(a=2))
        path.write_text(json.dumps(state(a=1)))
        beside.later(0)
        until(lambda: told == [1])
        path.write_text(json.dumps(state(a=2)))
        beside.later(9)
        time.sleep(0.05)
        assert told == [1]
        beside.later(1)
        until(lambda: told == [1, 2])


def test_at_the_end_the_last_state_is_told_and_the_file_is_looked_at_once_more(tmp_path: Path):
    for more in ({}, {"acknowledge_state_file": str(tmp_path / "state.json")}):
        told: list[int] = []
        with tailing(lambda bookmark, told=told: told.append(bookmark), **more) as beside:
            (tmp_path / "state.json").write_text("{}")
            beside.later(0)
            beside.say(state(a=1))
            beside.say(state(a=7))
            (tmp_path / "state.json").write_text(json.dumps(state(a=7)))
        assert told[-1] == 7


# ---- functions that fail, and that don't come back --------------------------------------------------------------


def test_one_that_fails_is_tried_again_and_all_goes_on(caplog: pytest.LogCaptureFixture):
    told: list[Any] = []
    fails = [True] * 3

    def acknowledge(stream, bookmark):
        if stream.name == "a" and fails:
            fails.pop()
            raise ConnectionError("broker gone")
        told.append((stream.name, bookmark))

    with caplog.at_level(logging.INFO, logger=LOGGER), tailing(acknowledge) as beside:
        beside.say(state(a=1, b=1))
        until(lambda: told == [("b", 1)])
        beside.say(state(a=2, b=2))  # not before its wait is over
        until(lambda: told == [("b", 1), ("b", 2)])
        assert len(warned(caplog)) == 1
        for seconds, left in ((1, 1), (2, 0)):
            beside.later(seconds)
            until(lambda left=left: len(fails) == left)
        until(lambda: len(warned(caplog)) == 3)
        beside.later(3)
        time.sleep(0.05)
        assert told == [("b", 1), ("b", 2)]
        beside.later(1)
        until(lambda: told == [("b", 1), ("b", 2), ("a", 2)])
        until(lambda: "works again" in caplog.records[-1].getMessage())
    assert [one.rsplit(";", 1)[1] for one in warned(caplog)] == [
        f" tried again in {seconds} s. The run goes on" for seconds in (1, 2, 4)
    ]
    assert all("stream 'a'" in one and "ConnectionError: broker gone" in one for one in warned(caplog))
    assert all("test_acknowledge_tail.py" in one for one in warned(caplog))


def test_waits_grow_to_five_minutes(caplog: pytest.LogCaptureFixture):
    calls = []

    def acknowledge():
        calls.append(1)
        raise SystemExit

    with caplog.at_level(logging.INFO, logger=LOGGER), tailing(acknowledge) as beside:
        beside.say(state(a=1))
        for number in range(1, 14):
            until(lambda number=number: len(warned(caplog)) == number)
            beside.later(300)
        until(lambda: len(warned(caplog)) == 14)
    waits = [one.split("tried again in ")[1].split(" s")[0] for one in warned(caplog)[:14]]
    assert waits == [str(min(2**n, 300)) for n in range(14)]
    assert "not told again" in warned(caplog)[-1]


def test_what_the_file_has_confirmed_is_tried_again_though_the_file_stays_as_it_is(tmp_path: Path):
    told: list[Any] = []
    fails = [True]

    def acknowledge(bookmark):
        if fails:
            fails.pop()
            raise ConnectionError
        told.append(bookmark)

    path = tmp_path / "state.json"
    path.write_text(json.dumps(state(a=1)))
    with tailing(acknowledge, acknowledge_state_file=str(path)) as beside:
        beside.say(state(a=1))
        beside.later(0)
        until(lambda: not fails)
        until(lambda: beside.acknowledgements._waits)
        assert told == []
        beside.later(1)
        until(lambda: told == [1])


def test_one_that_does_not_come_back_is_told_once_and_left_behind(caplog: pytest.LogCaptureFixture):
    hold, entered, told = threading.Event(), threading.Event(), []

    def acknowledge(stream, bookmark):
        told.append((stream.name, bookmark))
        entered.set()
        hold.wait(30)

    beside = Beside(acknowledge)
    beside.clock.is_fake = False  # no test of time, as far as the acknowledgements can see
    with caplog.at_level(logging.INFO, logger=LOGGER):
        beside.acknowledgements.start()
        beside.say(state(a=1, b=1))
        assert entered.wait(20)
        beside.later(59)
        assert warned(caplog) == []
        for _ in range(5):
            beside.later(60)
        [said] = warned(caplog)
        assert said.startswith("stream 'a': its acknowledge function (")
        assert said.endswith(") has not come back for 60 s. Other acknowledgements wait for it; rows and STATE go on")
        begun = time.monotonic()
        beside.acknowledgements.close(0.2)
        assert 0.15 < time.monotonic() - begun < 10
    assert "left behind" in warned(caplog)[-1]
    hold.set()
    until(lambda: not any(one.name == "burler-ack" for one in threading.enumerate()))
    assert told == [("a", 1)]  # it tells nobody any more, once it has come back


def test_after_an_error_of_the_sink_nothing_is_told_but_what_the_file_says(tmp_path: Path):
    for more, expected in (({}, []), ({"acknowledge_state_file": str(tmp_path / "state.json")}, [1])):
        told: list[int] = []
        (tmp_path / "state.json").write_text(json.dumps(state(a=1)))
        with tailing(lambda bookmark, told=told: told.append(bookmark), **more) as beside:
            beside.engine.broken = True
            beside.say(state(a=1))
        assert told == expected


def test_a_stream_that_is_found_later_is_told_too():
    told: list[Any] = []
    with tailing(lambda stream, bookmark: told.append((stream.name, bookmark))) as beside:
        session = beside.engine.session
        known = session.specs
        session.specs = {"b": known["b"]}
        beside.say(state(a=1, b=1))
        until(lambda: told == [("b", 1)])
        session.specs = dict(known)
        beside.say(state(a=2, b=1))
        until(lambda: told == [("b", 1), ("a", 2)])
