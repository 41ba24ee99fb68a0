"""Stopping, where the moment must be exact: the handler is called as a signal would."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest
from taps import make

import burler
from burler.errors import StorageError
from burler.testing import MemorySink, run_tap
from support.internals import signals
from support.runs import run_into


class SignalAt(MemorySink):
    """Signals as a page is written: no user code runs then."""

    def __init__(self, stopper: signals.Stopper, at: int) -> None:
        super().__init__()
        self._stopper = stopper
        self._at = at

    def write(self, message: Any) -> None:
        super().write(message)
        if len(self.messages) >= self._at and self._stopper.signal is None:
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("at", "currently", "marks"),
    [
        (1, "a", {}),  # at the first SCHEMA
        (2, "b", {"a": {"id": 2}}),  # at the page that was the last
        (4, "b", {"a": {"id": 2}}),  # at the STATE after it
        (5, "b", {"a": {"id": 2}}),  # at the second stream's SCHEMA
    ],
)
def test_a_signal_between_user_code_waits_for_the_page(at: int, currently: str, marks: dict[str, Any]):
    stopper = signals.Stopper()
    tap = make(a=lambda: [{"id": 1}, {"id": 2}], b=lambda: [{"id": 9}])
    sink = SignalAt(stopper, at)
    result = run_into(tap, {}, sink, stopper=stopper)
    assert result.stopped_by == signal.SIGTERM
    assert result.exit_code == 0
    last = [m["value"] for m in sink.messages if m["type"] == "STATE"][-1]
    assert last["currently_syncing"] == currently
    assert last.get("bookmarks", {}) == marks
    rest = run_tap(make(a=lambda: [], b=lambda: [{"id": 9}]), state=last)
    assert next(m["stream"] for m in rest.messages if m["type"] == "SCHEMA") == currently


def test_a_signal_that_does_not_interrupt_the_main_thread():
    """It may arrive just before a system call, or on another thread: Python runs no handler then by itself."""

    def send() -> None:
        time.sleep(0.1)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    sender = threading.Thread(target=send)

    def rows():
        yield {"id": 1}
        sender.start()
        time.sleep(60)

    begun = time.monotonic()
    stopper = signals.Stopper()
    run_ = run_tap(make(a=rows), stopper=stopper)
    sender.join()
    assert time.monotonic() - begun < 5
    assert run_.result.stopped_by == signal.SIGTERM
    assert run_.states[-1]["bookmarks"] == {"a": {"id": 1}}


def test_a_signal_while_a_thread_is_started():
    """A handler that started a thread itself would wait for a lock that the main thread holds."""

    def rows():
        yield {"id": 1}
        threading.Timer(0.05, lambda: signal.raise_signal(signal.SIGTERM)).start()
        while True:
            thread = threading.Thread(target=int)
            thread.start()
            thread.join()

    stopper = signals.Stopper()
    assert run_tap(make(a=rows), stopper=stopper).result.stopped_by == signal.SIGTERM


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGURG)]
    run_tap(make(a=lambda: [{"id": 1}]))
    assert signal.set_wakeup_fd(-1) == -1
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGURG)] == before


def test_no_thread_is_left_over():
    stopper = signals.Stopper()

    def rows():
        yield {"id": 1}
        signal.raise_signal(signal.SIGTERM)

    run_tap(make(a=rows), stopper=stopper)
    end = time.monotonic() + 5
    while any(thread.name.startswith("burler") for thread in threading.enumerate()):
        assert time.monotonic() < end, threading.enumerate()
        time.sleep(0.01)


def test_away_from_the_main_thread_a_run_works_without_handlers():
    runs: list[Any] = []
    thread = threading.Thread(target=lambda: runs.append(run_tap(make(a=lambda: [{"id": 1}]))))
    thread.start()
    thread.join()
    assert runs[0].records("a") == [{"id": 1}]


def test_stop_is_raised_only_in_user_code_and_only_once():
    stopper = signals.Stopper()
    with stopper.installed():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(signals.Stop):
            stopper.run(lambda: pytest.fail("not reached"), stopper.stop)


def test_a_sink_that_fails_while_user_code_blocks_ends_the_run():
    class Full(MemorySink):
        def tick(self) -> None:
            raise StorageError("disk full")

    def rows():
        yield {"id": 1}
        time.sleep(60)

    sink = Full()
    begun = time.monotonic()
    with pytest.raises(StorageError, match="disk full"):
        run_into(make(a=rows, b=lambda: []), {"page_max_age_seconds": 0.05}, sink)
    assert time.monotonic() - begun < 5
    assert sink.closed
    assert [m["type"] for m in sink.messages if m["type"] == "STATE"] == []


def test_nothing_is_written_after_the_sink_has_failed():
    class Full(MemorySink):
        def write(self, message: Any) -> None:
            if len(self.messages) >= 2:
                raise StorageError("disk full")
            super().write(message)

    sink = Full()
    with pytest.raises(StorageError):
        run_into(make(a=lambda: [{"id": 1}], b=lambda: [{"id": 1}]), {}, sink)
    assert [m["type"] for m in sink.messages] == ["SCHEMA", "RECORD"]


def test_a_sink_that_fails_once_gets_nothing_more_least_of_all_a_state():
    """The rows of the page that failed are lost; the sink would take a STATE that covers them."""

    class Hiccup(MemorySink):
        failed = False

        def write(self, message: Any) -> None:
            if len(self.messages) >= 2 and not self.failed:
                self.failed = True
                raise OSError("a hiccup")
            super().write(message)

    def rows():
        yield from ({"id": i} for i in range(500))

    sink = Hiccup()
    with pytest.raises(OSError, match="hiccup"):
        run_into(make(a=rows, b=rows), {"page_max_rows": 50}, sink)
    assert [m["type"] for m in sink.messages] == ["SCHEMA", *["RECORD"] * 10]  # the first page


# ---- a Stop that user code eats -------------------------------------------------------------------


def _eats(how: str, page: int) -> burler.Tap:
    """A tap whose fetch is interrupted at a page and, with a bare except, goes on as if there had been no rows."""
    tap = burler.tap("tap-eats")
    at = [page]
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}

    def fetch(number: int) -> list[dict[str, int]]:
        if number == at[0]:
            at[0] = -1
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
        return [{"id": number * 3 + i} for i in range(3)]

    def safely(number: int) -> list[dict[str, int]]:
        try:
            return fetch(number)
        except:  # noqa: E722  what the test is about
            return []

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=schema)
    def rows(stream):
        for number in range((stream.bookmark or 0) // 3, 40):
            if how == "pages":
                yield safely(number)
            else:
                yield from safely(number)

    return tap


@pytest.mark.parametrize("how", ["pages", "rows"])
@pytest.mark.parametrize("page", [0, 5, 39])
def test_what_user_code_yields_after_it_has_eaten_a_stop_does_not_count(how: str, page: int):
    """It stands behind the hole that the interrupted fetch left; the bookmark must not pass that."""
    tap = _eats(how, page)
    first = run_tap(tap)
    assert first.result.stopped_by == signal.SIGTERM
    assert [row["id"] for row in first.records("rows")] == list(range(page * 3))
    second = run_tap(tap, state=first.states[-1])
    out = {row["id"] for run in (first, second) for row in run.records("rows")}
    assert out == set(range(120))


def test_one_dict_again_and_again_is_refused():
    """Rows wait for their page: each would show what was written into the dict last."""
    tap = burler.tap("tap-reuse")

    @tap.sync("rows", schema={"type": "object", "properties": {"id": {"type": "integer"}}})
    def rows():
        row = {}
        for i in range(10):
            row["id"] = i
            yield row

    run = run_tap(tap)
    assert "yielded one and the same dict more than once" in str(run.result.errors["rows"])
    assert "test_stopping.py:" in str(run.result.errors["rows"]) and run.records("rows") == []


def test_a_stop_between_small_streams_leaves_no_state_behind():
    """A STATE that is big is put off between small streams; what is out by the end stands in the last one."""
    stopper = signals.Stopper()
    names = [f"s{number:02}" for number in range(30)]
    old = {"bookmarks": {f"old{number}": {"id": "x" * 30} for number in range(60)}}
    sink = SignalAt(stopper, at=2 * 10)
    run_into(make(**{name: lambda: [{"id": 1}] for name in names}), {}, sink, state=old, stopper=stopper)
    out = {message["stream"] for message in sink.messages if message["type"] == "RECORD"}
    states = [message["value"] for message in sink.messages if message["type"] == "STATE"]
    assert 0 < len(out) < 30
    assert out <= states[-1]["bookmarks"].keys()
