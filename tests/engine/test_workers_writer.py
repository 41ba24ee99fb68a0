"""Workers and the one writer: bounded memory, errors of the sink, fairness."""

from __future__ import annotations

import threading
import time

import pytest
from parts import numbers, partitioned, row

from burler.errors import StorageError
from burler.singer.messages import Message, Records
from burler.testing import MemorySink, run_tap
from support.runs import run_into

WAIT = 20.0  # seconds after which a test has failed
ABCDEFGH = "abcdefgh"


WAIT = 20.0  # seconds after which a test has failed


ABCDEFGH = "abcdefgh"


def ours() -> set[threading.Thread]:
    """Threads of the engine that run now."""
    return {one for one in threading.enumerate() if one.name.startswith("burler-")}


# ---- the writer -----------------------------------------------------------------------------------------


class Gate(MemorySink):
    """Takes no rows until it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()

    def write(self, message: Message) -> None:
        if isinstance(message, Records):
            assert self.open.wait(WAIT)
        super().write(message)


def test_a_slow_writer_bounds_what_is_in_memory():
    made = [0] * 4
    sink = Gate()

    def rows(partition):
        for number in range(20_000):
            made[int(partition["account"])] = number + 1
            yield row(partition["account"], number)

    def look() -> None:
        last = -1
        while sum(made) != last:  # until nobody gets on any more
            last = sum(made)
            time.sleep(0.3)
        ahead.extend(made)
        sink.open.set()

    ahead: list[int] = []
    looking = threading.Thread(target=look)
    looking.start()
    result = run_into(partitioned("0123", rows, workers=4), {"page_max_rows": 500, "page_max_age_seconds": 0.1}, sink)
    looking.join()
    assert result.rows == {"rows": 80_000}
    assert max(ahead) <= 2 * 500
    assert min(ahead) > 0


class Failing(MemorySink):
    """Fails once at a page that the main thread writes, or another; then it would take everything again."""

    def __init__(self, *, on_main: bool, after: int) -> None:
        super().__init__()
        self.on_main, self.left = on_main, after
        self.failed = threading.Event()
        self.after_failure: list[Message] = []

    def write(self, message: Message) -> None:
        if self.failed.is_set():
            self.after_failure.append(message)
        if isinstance(message, Records):
            self.left -= 1
            if self.left <= 0 and not self.failed.is_set() and on_main_thread() is self.on_main:
                self.failed.set()
                raise StorageError("the disk is full")
        super().write(message)


def on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@pytest.mark.parametrize("on_main", [True, False])
@pytest.mark.parametrize("after", [1, 20])
def test_an_error_of_the_sink_ends_the_run_and_nothing_is_written_after_it(on_main: bool, after: int):
    """No row, and least of all a STATE: rows before it are missing."""
    sink, others = Failing(on_main=on_main, after=after), ours()

    def rows(partition):
        number = 0
        while not sink.failed.is_set():
            yield [row(partition["account"], number)]
            number += 1
            time.sleep(0.0005)
        for more in range(number, number + 100):
            yield [row(partition["account"], more)]
            time.sleep(0.0005)

    tap = partitioned(ABCDEFGH, rows, workers=4, bookmark_strategy="on_page")
    begun = time.monotonic()
    with pytest.raises(StorageError, match="the disk is full"):
        run_into(tap, {"page_max_rows": 10, "page_max_age_seconds": 0.02}, sink)
    assert time.monotonic() - begun < WAIT
    assert sink.closed
    deadline = time.monotonic() + WAIT
    while ours() - others and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ours() <= others
    assert sink.after_failure == []


# ---- fair -----------------------------------------------------------------------------------------------


def test_a_partition_that_never_waits_starves_no_other():
    done = threading.Event()

    def rows(partition):
        if partition["account"] == "busy":
            for number in range(3_000_000):
                if done.is_set():
                    return
                yield row("busy", number)
            raise AssertionError("the other one did not get its turn")
        for number in range(30):
            time.sleep(0.001)
            yield row(partition["account"], number)
        done.set()

    run = run_tap(partitioned(["busy", "quiet"], rows, workers=2), {"page_max_rows": 100})
    assert not run.result.errors
    assert numbers(run, "quiet") == list(range(30))
