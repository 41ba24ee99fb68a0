"""Bookmark strategies: when a STATE comes, and what it says; also those that authors save themselves, and their own."""

from __future__ import annotations

import json
import threading
from typing import Any

import pyarrow as pa
import pytest
from taps import ids, make

import burler
from burler.errors import StreamError
from burler.singer.messages import Message, State
from burler.testing import MemorySink, run_tap
from support.runs import run_into

WAIT = 20.0


def one(fn: Any, strategy: Any, **options: Any) -> burler.Tap:
    """A tap with the stream ``a``; nothing is said of its order."""
    return make(a=(fn, {"order": None, "bookmark_strategy": strategy, **options}))


def said(run: Any) -> list[Any]:
    """The bookmark in each STATE."""
    return [state.get("bookmarks", {}).get("a", {}).get("id") for state in run.states]


def wire(run: Any) -> list[Any]:
    """Rows as their ids, and STATEs as ``(bookmark,)``, in order."""
    out: list[Any] = []
    for message in run.messages:
        if message["type"] == "RECORD":
            out.append(message["record"]["id"])
        if message["type"] == "STATE":
            out.append((message["value"].get("bookmarks", {}).get("a", {}).get("id"),))
    return out


# ---- every_seconds --------------------------------------------------------------------------------------


class Telling(MemorySink):
    """Says when a STATE has come."""

    def __init__(self) -> None:
        super().__init__()
        self.told = threading.Event()

    def write(self, message: Message) -> None:
        super().write(message)
        if isinstance(message, State):
            self.told.set()


def test_every_seconds_even_while_the_function_blocks():
    sink, came = Telling(), []

    def rows():
        yield from ids(1, 2, 3)
        came.append(sink.told.wait(WAIT))
        came.append(sink.messages[-1]["value"])
        yield from ids(4)

    run_into(one(rows, "every_seconds(0.05)"), {"page_max_age_seconds": 0.02}, sink)
    assert came == [True, {"bookmarks": {"a": {"id": 3}}, "currently_syncing": "a"}]


def test_every_seconds_without_a_row_is_no_state():
    gone = threading.Event()

    def rows():
        gone.wait(0.3)
        yield from ids(1)

    run = run_tap(one(rows, "every_seconds(0.01)"), {"page_max_age_seconds": 0.02})
    assert wire(run)[0] == 1


def test_every_seconds_that_never_pass_is_one_state_at_the_end():
    run = run_tap(one(lambda: ids(*range(5000)), "every_seconds(3600)"))
    assert set(said(run)) == {4999}
    assert wire(run)[:5000] == list(range(5000))


def test_every_seconds_asks_for_order():
    run = run_tap(one(lambda: ids(2, 1), "every_seconds(3600)"))
    assert "every_seconds" in str(run.result.errors["a"])
    assert said(run)[-1] is None


# ---- on_page ---------------------------------------------------------------------------------------------


PAGES: dict[str, Any] = {
    "lists": lambda rows: rows,
    "bytes": lambda rows: json.dumps(rows).encode(),
    "lines": lambda rows: b"\n".join(json.dumps(row).encode() for row in rows) + b"\n",
    "tables": pa.Table.from_pylist,
    "batches": pa.RecordBatch.from_pylist,
    "named": lambda rows: ("a", rows),
}


@pytest.mark.parametrize("kind", PAGES)
def test_on_page_is_a_state_behind_each_page(kind: str):
    pages = [ids(1, 2), ids(2, 3), ids(4, 5, 6)]

    def rows():
        for page in pages:
            yield PAGES[kind](page)

    run = run_tap(one(rows, "on_page"))
    assert wire(run) == [1, 2, (2,), 2, 3, (3,), 4, 5, 6, (6,), (6,)]


def test_on_page_takes_a_long_list_as_one_page():
    run = run_tap(one(lambda: iter([ids(*range(2500)), ids(2500)]), "on_page"), {"page_max_rows": 100})
    assert said(run) == [2499, 2500, 2500]


def test_on_page_with_single_rows_is_a_state_behind_what_was_gathered():
    def rows():
        yield from ids(*range(20))

    run = run_tap(one(rows, "on_page"), {"page_max_rows": 5})
    assert said(run) == [4, 9, 14, 19, 19]


def test_an_empty_page_is_no_state():
    def rows():
        yield []
        yield ids(1)
        yield []
        yield []

    run = run_tap(one(rows, "on_page"))
    assert wire(run)[:2] == [1, (1,)]
    assert len(run.states) == 2


def test_waiting_for_the_first_page_is_no_page():
    def rows():
        threading.Event().wait(0.3)
        yield ids(1)

    assert wire(run_tap(one(rows, "on_page"), {"page_max_age_seconds": 0.02})) == [1, (1,), (1,)]


def test_on_page_without_order_paces_the_functions_own_state():
    def rows(stream):
        for number in range(3):
            yield ids(9 - number)
            stream.state["page"] = number

    run = run_tap(one(rows, "on_page", order="none"))
    assert said(run) == [None, None, None, 9]
    pages = [state.get("bookmarks", {}).get("a", {}).get("stream_state", {}).get("page") for state in run.states]
    assert pages[-1] == 2
    assert pages == sorted(pages, key=lambda page: -1 if page is None else page)


# ---- manual ----------------------------------------------------------------------------------------------


def test_manual_with_a_value():
    """The one that docs/bookmarks.md shows: chunks that have no order in themselves."""

    def rows(stream):
        for low in range(stream.bookmark or 0, 6, 3):
            yield from ids(low + 2, low, low + 1)
            stream.save_bookmark(low + 3)

    run = run_tap(one(rows, "manual"))
    assert wire(run) == [2, 0, 1, (3,), 5, 3, 4, (6,), (6,)]


def test_manual_without_a_value_is_the_greatest_that_is_out():
    def rows(stream):
        yield from ids(5, 9, 7)
        stream.save_bookmark()
        yield from ids(99)

    assert wire(run_tap(one(rows, "manual"))) == [5, 9, 7, (9,), 99, (9,)]


def test_manual_never_called_moves_nothing():
    run = run_tap(one(lambda: ids(1, 2, 3), "manual"), state={"bookmarks": {"a": {"id": 0}}})
    assert said(run) == [0]
    assert said(run_tap(one(lambda: ids(1), "manual"))) == [None]


def test_manual_may_go_back():
    def rows(stream):
        yield from ids(5)
        stream.save_bookmark(3)

    run = run_tap(one(rows, "manual"), state={"bookmarks": {"a": {"id": 4}}})
    assert said(run) == [3, 3]


def test_manual_keeps_what_was_saved_when_the_function_fails():
    def rows(stream):
        yield from ids(5, 6)
        stream.save_bookmark(6)
        yield from ids(7)
        raise ConnectionError("gone")

    run = run_tap(one(rows, "manual"))
    assert said(run)[-1] == 6
    assert [row["id"] for row in run.records("a")] == [5, 6, 7]


@pytest.mark.parametrize("wrong", ["text", float("nan"), [1], None, True])
def test_manual_with_a_value_that_is_no_bookmark_ends_the_stream(wrong: Any):
    def rows(stream):
        yield from ids(5)
        stream.save_bookmark(wrong)
        yield from ids(6)

    run = run_tap(one(rows, "manual"), state={"bookmarks": {"a": {"id": 1}}})
    assert isinstance(run.result.errors["a"], StreamError)
    assert said(run)[-1] == 1


def test_a_value_needs_manual_and_no_value_does_not():
    def rows(stream):
        yield from ids(1)
        stream.save_bookmark(1)

    run = run_tap(one(rows, "every_n(1000)"))
    assert "save_bookmark(value) needs bookmark_strategy='manual'" in str(run.result.errors["a"])

    def asks(stream):
        yield from ids(1, 2)
        stream.save_bookmark()
        yield from ids(3)

    assert wire(run_tap(one(asks, "every_n(1000)"))) == [1, 2, (2,), 3, (3,)]
    assert wire(run_tap(one(asks, "end_of_sync"))) == [1, 2, (None,), 3, (3,)]


def test_states_of_manual_come_however_big_they_are():
    """The author asks for them; the rule that lines of STATE may not outweigh rows is for all others."""

    def rows(stream):
        stream.state["long"] = "x" * 5000
        for number in range(5):
            yield from ids(number)
            stream.save_bookmark(number)

    assert said(run_tap(one(rows, "manual"))) == [0, 1, 2, 3, 4, 4]


# ---- made by users ---------------------------------------------------------------------------------------


class Thirds:
    """A STATE after every third row at the latest."""

    needs_order = True

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def is_due(self, since: Any) -> bool:
        self.asked.append(since)
        return bool(since.rows >= 3)


def test_a_strategy_of_ones_own():
    strategy = Thirds()
    run = run_tap(one(lambda: iter([ids(n) for n in range(7)]), strategy), {"page_max_rows": 1})
    assert said(run) == [2, 5, 6]
    assert [since.rows for since in strategy.asked][:6] == [1, 2, 3, 1, 2, 3]
    assert [since.pages for since in strategy.asked][:3] == [1, 2, 3]
    assert all(0 <= since.seconds < WAIT for since in strategy.asked)
    assert isinstance(run_tap(one(lambda: ids(2, 1), Thirds())).result.errors["a"], StreamError)


def test_a_strategy_that_says_nothing_of_order_asks_for_none():
    class Bare:
        def is_due(self, since):
            return True

    run = run_tap(one(lambda: ids(2, 1), Bare()), {"page_max_rows": 1})
    assert not run.result.errors
    assert said(run)[-1] == 2
    assert wire(run)[:4] == [2, (None,), 1, (2,)]


def test_a_strategy_that_fails_ends_its_stream_with_its_name():
    class Broken:
        needs_order = True

        def is_due(self, since):
            raise ValueError("no idea")

    tap = make(a=(lambda: ids(1, 2), {"order": None, "bookmark_strategy": Broken()}), b=lambda: ids(7))
    run = run_tap(tap, {"page_max_rows": 1})
    assert "its bookmark strategy" in str(run.result.errors["a"])
    assert "no idea" in str(run.result.errors["a"])
    assert run.records("b") == ids(7)
    out = [row["id"] for row in run.records("a")]
    assert (said(run)[-1] or 0) <= (out[-1] if out else 0)


def test_a_strategy_of_ones_own_is_held_back_where_states_outweigh_rows():
    def rows(stream):
        stream.state["long"] = "x" * 5000
        for number in range(200):
            yield ids(number)

    class Always(Thirds):
        def is_due(self, since):
            return True

    run = run_tap(one(rows, Always()), {"page_max_rows": 1})
    assert 2 <= len(run.states) < 20
    assert said(run)[-1] == 199
