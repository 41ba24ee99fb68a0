"""The bookmark: what a STATE may say, in order and out of order."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal

import msgspec
import pytest

import burler
from burler.errors import StreamError, UnsortedStreamError
from burler.testing import run_tap
from support.internals import bookmark

UTC = dt.UTC


def tracker(*pages, initial=None, sorted_rows=True):
    it = bookmark.BookmarkTracker("a", "at", initial=initial, sorted_rows=sorted_rows)
    for page in pages:
        it.observe(list(page))
    return it


def test_sorted_rows_are_safe_at_any_row():
    it = tracker([1, 2], [2, 2, 5], [])
    assert it.safe == 5
    it.complete()
    assert it.safe == 5


def test_unsorted_rows_count_when_complete():
    it = tracker([5, 1], [3], initial=2, sorted_rows=False)
    assert it.safe == 2
    it.complete()
    assert it.safe == 5


@pytest.mark.parametrize("sorted_rows", [True, False])
def test_it_never_goes_back(sorted_rows):
    it = tracker([1, 2, 3], initial=9, sorted_rows=sorted_rows)
    it.complete()
    assert it.safe == 9
    it = tracker([1, 2], initial=2, sorted_rows=sorted_rows)
    it.complete()
    assert it.safe == 2


def test_nothing_says_nothing():
    it = tracker([None, msgspec.UNSET], [None])
    it.complete()
    assert it.safe is None
    it = tracker([None, 3, msgspec.UNSET, 4, None], initial=1)
    assert it.safe == 4


@pytest.mark.parametrize("day", [lambda n: dt.datetime(2024, 1, n, tzinfo=dt.UTC), lambda n: dt.date(2024, 1, n)])
def test_days_that_are_no_text_break_the_order_between_pages(day):
    pages = [[day(n) for n in some] for some in ((3, 4, 5), (5, 6, 7), (6, 8, 9))]
    assert tracker(*pages[:2]).safe == bookmark.key_text(day(7))
    with pytest.raises(UnsortedStreamError, match=r"2024-01-07.* back to '2024-01-06"):
        tracker(*pages)


@pytest.mark.parametrize(
    "pages",
    [
        [[1, 3, 2]],
        [[1, 3], [2]],
        [[3], [None, 2]],
        [[1, 2, 3], [3, 5, 4, 6]],
        [[3.5, 3.4]],
        [["b", "a"]],
        [[2, Decimal("1.5")]],
    ],
)
def test_broken_order_names_both_values_and_falls_back(pages):
    with pytest.raises(UnsortedStreamError) as caught:
        tracker(*pages)
    flat = [value for page in pages for value in page if value is not None]
    before, after = next((a, b) for a, b in itertools.pairwise(flat) if b < a)
    text = str(caught.value)
    assert f"'at' went from {bookmark.key_text(before)!r} back to {bookmark.key_text(after)!r}" in text
    assert text.startswith("stream 'a': order 'asc' is declared")
    assert len(text.splitlines()) <= 3
    it = bookmark.BookmarkTracker("a", "at", initial=0 if not isinstance(flat[0], str) else "", sorted_rows=True)
    with pytest.raises(UnsortedStreamError):
        for page in pages:
            it.observe(page)
    it.complete()
    assert it.safe in (0, "")


EARLY_TO_LATE = [
    ["2024-01-01T00:00:00Z"],
    ["2024-01-01T00:00:00.000000001Z"],
    [
        "2024-01-01T00:00:00.1Z",
        "2024-01-01T00:00:00.10Z",
        "2024-01-01T02:00:00.1+02:00",
        "2024-01-01 00:00:00.100z",
        "2024-01-01T00:00:00.1000000Z",
    ],
    ["2024-01-01T00:00:00.12Z"],
    ["2024-01-01T00:00:00.1200001Z"],
    ["2024-01-01T00:00:00.5Z", dt.datetime(2024, 1, 1, 0, 0, 0, 500_000, UTC)],
    ["2024-01-01T00:00:01Z", "2023-12-31T19:00:01-05:00", dt.datetime(2024, 1, 1, 0, 0, 1, tzinfo=UTC)],
    [
        dt.datetime(2024, 1, 1, 3, 0, 2, tzinfo=dt.timezone(dt.timedelta(hours=3))),
        "2024-01-01T00:00:02.000Z",
        "2024-01-01T00:00:02.00000000Z",
    ],
]


def test_date_times_compare_by_the_moment_whatever_their_form():
    for i, row in enumerate(EARLY_TO_LATE):
        for j, other in enumerate(EARLY_TO_LATE):
            for one in row:
                for two in other:
                    (kind, first), (kind2, second) = bookmark.comparable(one), bookmark.comparable(two)
                    assert kind == kind2 == "a date-time"
                    assert (first < second, first == second) == (i < j, i == j), (one, two)
    flat = [value for row in EARLY_TO_LATE for value in row]
    assert tracker(flat).safe == bookmark.key_text(EARLY_TO_LATE[-1][0])
    with pytest.raises(UnsortedStreamError):
        tracker(["2024-01-01T00:00:00.5Z", "2024-01-01T00:00:00.49Z"])
    assert tracker(["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.1Z"]).safe == "2024-01-01T00:00:00.1Z"


def test_numbers_and_text_compare_as_such():
    assert tracker([9, 10]).safe == 10
    assert tracker(["10", "9"]).safe == "9"
    assert tracker([1, 1.5, Decimal("1.75"), 2]).safe == 2
    assert tracker([2**70, 2**70 + 1]).safe == 2**70 + 1
    assert tracker([dt.date(2024, 1, 2), "2024-01-03"]).safe == "2024-01-03"
    assert tracker([dt.date(2024, 1, 2)]).safe == "2024-01-02"


@pytest.mark.parametrize(
    ("pages", "initial", "kinds"),
    [
        ([[1, "x"]], None, ("text", "a number")),
        ([[1], ["2024-01-01T00:00:00Z"]], None, ("a date-time", "a number")),
        ([["2024-01-01T00:00:00Z"]], "2024-01-01", ("a date-time", "a date")),
        ([["2024-01-01"]], "2024-01-01T00:00:00Z", ("a date", "a date-time")),
        ([[dt.date(2024, 1, 1), "x"]], None, ("text", "a date")),
        ([["x"], [dt.date(2024, 1, 1)]], None, ("a date", "text")),
        ([["2024-01-01", dt.date(2024, 1, 1), "x"]], None, ("text", "a date")),
        ([[5]], "5", ("a number", "text")),
        ([["x", "2024-01-01T00:00:00Z"]], None, ("a date-time", "text")),
    ],
)
def test_kinds_are_not_mixed(pages, initial, kinds):
    with pytest.raises(StreamError) as caught:
        tracker(*pages, initial=initial)
    assert f"'at' is {kinds[0]}" in str(caught.value) and f"where it was {kinds[1]} before" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (float("nan"), "no finite number"),
        (Decimal("Infinity"), "no finite number"),
        (dt.datetime(2024, 1, 1), "a date-time without a zone"),  # noqa: DTZ001
        (True, "of type bool"),
        ([1], "of type list"),
        ({"a": 1}, "of type dict"),
        (b"x", "of type bytes"),
    ],
)
def test_what_has_no_order_is_refused(value, kind):
    for page in ([value], [value, value]):
        with pytest.raises(StreamError) as caught:
            tracker(page)
        assert f"stream 'a': 'at' is {kind}" in str(caught.value)
    if isinstance(value, float):
        with pytest.raises(StreamError):
            tracker([1.0, value, 2.0])
    if isinstance(value, dt.datetime):
        with pytest.raises(StreamError):
            tracker([dt.datetime(2024, 1, 1, tzinfo=UTC), value])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dt.datetime(2024, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))), "2024-01-01T00:00:00Z"),
        (dt.datetime(2024, 1, 1, 0, 0, 0, 5, UTC), "2024-01-01T00:00:00.000005Z"),
        (dt.date(2024, 1, 1), "2024-01-01"),
        (msgspec.UNSET, None),
        (Decimal("5.00"), 5),
        (Decimal("1.5"), 1.5),
        (Decimal("1.1"), 1.1),
        (5, 5),
        ("x", "x"),
    ],
)
def test_key_text(value, text):
    got = bookmark.key_text(value)
    assert (got, type(got)) == (text, type(text))


def test_a_rounded_bookmark_lies_before_the_row_never_after_it():
    far = "9" * 320 + ".5"  # beyond all floats
    for digits in (
        "0.30000000000000004441", "1.00000000000000011", "-1.00000000000000012", "123456789012345678.9", far, f"-{far}",
    ):  # fmt: skip
        value = Decimal(digits)
        text = bookmark.key_text(value)
        assert Decimal(repr(text)) <= value
        assert bookmark.comparable(text)[0] == "a number"


# ---- as a tap ------------------------------------------------------------------------------------


def make(rows, *, kind=None, **options):
    tap = burler.tap("tap-x")
    tap.sync("a", replication_key="at", **options)(lambda: iter(rows))
    tap.schema("a", {"type": "object", "properties": {"at": kind or {"type": ["null", "integer"]}}})
    return tap


def test_every_n_saves_on_the_way():
    run = run_tap(make([{"at": n} for n in range(1, 6)], bookmark_strategy="every_n(2)"))
    assert [state["bookmarks"]["a"]["at"] for state in run.states] == [2, 4, 5]
    assert run.types == ["SCHEMA", "RECORD", "RECORD", "STATE", "RECORD", "RECORD", "STATE", "RECORD", "STATE"]


def test_unsorted_rows_save_at_the_end_only():
    run = run_tap(make([{"at": n} for n in (5, 1, 3)]), state={"bookmarks": {"a": {"at": 2}}})
    assert [state["bookmarks"]["a"]["at"] for state in run.states] == [5]


def test_a_stream_that_loses_its_order_goes_back_to_where_it_began():
    rows = [{"at": n} for n in (3, 4, 5, 6, 1, 9)]
    run = run_tap(make(rows, bookmark_strategy="every_n(2)"), state={"bookmarks": {"a": {"at": 2}}})
    assert "went from 6 back to 1" in str(run.result.errors["a"])
    assert run.states[-1]["bookmarks"]["a"]["at"] == 2


def test_bookmarks_of_decimal_numbers_stay_numbers():
    tap = make([{"at": Decimal("1.25")}, {"at": "2.50"}], kind={"type": "number"})
    state = run_tap(tap).states[-1]
    assert state["bookmarks"]["a"] == {"at": 2.5}
    assert run_tap(make([{"at": 3.5}], kind={"type": "number"}), state=state).states[-1]["bookmarks"]["a"] == {
        "at": 3.5
    }
