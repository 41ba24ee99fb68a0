"""Pages that are fetched ahead: their order, errors, and an early end."""

import threading

import pytest

from support.internals import sql_ahead
from support.internals import sql_ahead as ahead


def numbers(count, closed=None):
    try:
        yield from range(count)
    finally:
        if closed is not None:
            closed.append(threading.current_thread().name)


def no_cancel():
    pytest.fail("nothing is to be cancelled")


def test_items_come_in_order_from_another_thread():
    closed = []
    assert list(sql_ahead.fetch_ahead(numbers(50, closed), no_cancel)) == list(range(50))
    assert closed == ["burler-sql"]


def test_an_error_comes_behind_the_items_before_it():
    def broken():
        yield 1
        yield 2
        raise KeyError("gone")

    got = []
    with pytest.raises(KeyError, match="gone"):
        for item in sql_ahead.fetch_ahead(broken(), no_cancel):
            got.append(item)
    assert got == [1, 2]


def test_no_more_than_its_depth_is_fetched_ahead():
    made = []

    def counted():
        for i in range(100):
            made.append(i)
            yield i

    ahead = sql_ahead.fetch_ahead(counted(), lambda: None, depth=2)
    assert next(ahead) == 0
    for _ in range(200):
        if len(made) >= 4:
            break
        threading.Event().wait(0.01)
    threading.Event().wait(0.05)
    assert len(made) == 4  # one is out, two wait, one is in the thread's hand
    ahead.close()


def test_an_early_end_cancels_what_blocks_and_waits_for_the_thread():
    released = threading.Event()

    def blocking():
        yield 1
        released.wait(30)
        yield 2

    cancelled = []

    def cancel():
        cancelled.append(True)
        released.set()

    ahead = sql_ahead.fetch_ahead(blocking(), cancel)
    assert next(ahead) == 1
    ahead.close()
    assert cancelled
    assert not [thread for thread in threading.enumerate() if thread.name == "burler-sql"]


def test_an_item_that_does_not_come_is_waited_for_so_long_and_no_longer():
    may_end = threading.Event()
    clock = iter(range(0, 10_000, 100))

    def silent():
        yield 1
        may_end.wait(20)

    got = []
    with pytest.raises(sql_ahead.NothingCame):
        for item in sql_ahead.fetch_ahead(silent(), may_end.set, patience_seconds=500, monotonic=lambda: next(clock)):
            got.append(item)
    assert got == [1] and may_end.is_set()


def test_the_time_that_is_taken_between_items_does_not_count():
    now = [0.0]
    got = []
    for item in sql_ahead.fetch_ahead(numbers(50), no_cancel, patience_seconds=5, monotonic=lambda: now[0]):
        got.append(item)
        now[0] += 100
    assert got == list(range(50))


def test_a_server_that_answers_nothing_any_more_is_left_behind(monkeypatch):
    """To cancel asks it over a connection of its own, which hangs as well."""
    monkeypatch.setattr(ahead, "_STEP_SECONDS", 0.02)
    may_end = threading.Event()
    asked = []

    def silent():
        yield 1
        may_end.wait(30)

    def cancel():
        asked.append(threading.current_thread().name)
        may_end.wait(30)

    items = sql_ahead.fetch_ahead(silent(), cancel)
    assert next(items) == 1
    items.close()
    assert not may_end.is_set() and asked == ["burler-sql-cancel"]
    may_end.set()
