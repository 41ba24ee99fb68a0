"""Pages that are fetched ahead: their order, errors, and an early end."""

import threading

import pytest

from burler.sql.ahead import fetch_ahead


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
    assert list(fetch_ahead(numbers(50, closed), no_cancel)) == list(range(50))
    assert closed == ["burler-sql"]


def test_an_error_comes_behind_the_items_before_it():
    def broken():
        yield 1
        yield 2
        raise KeyError("gone")

    got = []
    with pytest.raises(KeyError, match="gone"):
        for item in fetch_ahead(broken(), no_cancel):
            got.append(item)
    assert got == [1, 2]


def test_no_more_than_its_depth_is_fetched_ahead():
    made = []

    def counted():
        for i in range(100):
            made.append(i)
            yield i

    ahead = fetch_ahead(counted(), lambda: None, depth=2)
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

    ahead = fetch_ahead(blocking(), cancel)
    assert next(ahead) == 1
    ahead.close()
    assert cancelled
    assert not [thread for thread in threading.enumerate() if thread.name == "burler-sql"]
