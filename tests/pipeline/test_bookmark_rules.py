"""The bookmark's rules beyond the plain order: exclusive sources, holds, retries, signposts, authors who save."""

from __future__ import annotations

import datetime as dt
import logging
from decimal import Decimal

import msgspec
import pytest

from burler.errors import StreamError, UnsortedStreamError
from support.internals import bookmark

UTC = dt.UTC
NOON = dt.datetime(2024, 5, 2, 12, tzinfo=UTC)


def tracker(*pages, initial=None, sorted_rows=True, **more):
    it = bookmark.BookmarkTracker("a", "at", initial=initial, sorted_rows=sorted_rows, **more)
    for page in pages:
        it.observe(list(page))
    return it


# ---- exclusive sources ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pages", "safe"),
    [
        ([[1]], 0),
        ([[1, 1], [1]], 0),
        ([[1, 2]], 1),
        ([[1, 1], [1, 2, 2], [2]], 1),
        ([[1], [2]], 1),
        ([[1, 2], [5], [5]], 2),
        ([[1, None, 2, None]], 1),
        ([list(range(1, 20))], 18),
        ([list(range(1, 20)) + [19] * 20], 18),
    ],
)
def test_of_an_exclusive_source_a_value_is_safe_once_a_greater_one_followed(pages, safe):
    it = tracker(*pages, initial=0, exclusive=True)
    assert it.safe == safe
    it.complete()
    assert it.safe == max(value for page in pages for value in page if value is not None)


def test_an_exclusive_source_without_order_moves_at_the_end_as_all_do():
    it = tracker([3, 1], initial=0, sorted_rows=False, exclusive=True)
    assert it.safe == 0
    it.complete()
    assert it.safe == 3


def test_an_exclusive_source_that_has_only_just_begun_has_no_bookmark():
    assert tracker(["b", "b"], exclusive=True).safe is None


# ---- holds ------------------------------------------------------------------------------------------


def test_a_hold_is_where_the_bookmark_stops_and_the_least_counts():
    it = tracker([1, 2])
    it.hold(5)
    it.observe([3, 4])
    assert it.safe == 4
    it.observe([5, 6])
    assert it.safe == 5
    it.hold(4)
    it.hold(6)
    assert it.safe == 4
    it.complete()
    assert it.safe == 4


@pytest.mark.parametrize("value", [None, msgspec.UNSET, float("nan"), "text", [1], True])
def test_what_can_not_be_compared_holds_the_bookmark_where_the_run_began(value):
    it = tracker([1, 2], initial=1)
    it.hold(value)
    it.observe([3])
    it.complete()
    assert it.safe == 1


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("value", ["1", "2024-01-01T00:00:00Z", dt.date(2024, 1, 1)])
def test_a_hold_of_another_kind_than_the_rows_that_follow_holds_where_the_run_began(value, exclusive):
    """A row that is missing has its value as the source gave it, not as the schema has it."""
    it = tracker(exclusive=exclusive)
    it.hold(value)
    assert it.safe is None
    it.observe([1, 2])
    it.hold(1)
    it.complete()
    assert it.safe is None
    it = tracker(initial=1, exclusive=exclusive, sorted_rows=False)
    it.hold(value)
    it.observe([3, 2])
    it.complete()
    assert it.safe == 1


def test_holds_of_several_kinds_hold_where_the_run_began():
    it = tracker()
    it.hold("1")
    it.hold(1)
    it.observe([1, 2])
    assert it.safe is None


def test_a_hold_before_any_row_counts_as_well():
    it = tracker()
    it.hold(2)
    it.observe([1, 2, 3])
    assert it.safe == 2
    it = tracker()
    it.hold(None)
    it.observe([1])
    assert it.safe is None


def test_a_hold_below_the_beginning_keeps_the_bookmark_there():
    it = tracker(initial=5)
    it.hold(3)
    it.observe([4, 6, 7])
    it.complete()
    assert it.safe == 5


@pytest.mark.parametrize("sorted_rows", [True, False])
def test_rows_that_are_missing_come_again_from_an_exclusive_source(sorted_rows):
    it = tracker([1, 2], initial=0, sorted_rows=sorted_rows, exclusive=True)
    it.hold(4)
    it.observe([3, 4, 5, 6])
    it.complete()
    assert it.safe == 3


def test_a_hold_never_moves_a_bookmark_on():
    it = tracker(initial=5, exclusive=True, manual=True)
    it.hold(1)
    it.save(1)
    assert it.safe == 1


def test_a_text_that_looks_like_a_day_holds_a_key_of_text():
    it = tracker(["2024", "2024-01-02"], ["2025", "x"])
    it.hold("2024-01-03")
    assert it.safe == "2024-01-03"
    it = tracker(["2024-01-02"])
    it.hold("2024-01-01b")
    it.observe(["2024-01-03"])
    assert it.safe == "2024-01-01b"


def test_a_hold_that_comes_after_its_rows_sets_an_exclusive_source_back():
    it = tracker([1, 2, 3, 4], initial=0, exclusive=True)
    assert it.safe == 3
    it.hold(3)  # safe already: it stays
    assert it.safe == 3
    it.hold(2)  # what is below is no longer known
    it.complete()
    assert it.safe == 0


def test_a_hold_of_a_date_time_is_understood_in_every_form():
    it = tracker(["2024-05-01T00:00:00Z"])
    it.hold(dt.datetime(2024, 5, 2, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))))
    it.observe(["2024-05-02T00:00:00.000001Z"])
    assert it.safe == "2024-05-02T00:00:00Z"


# ---- retries ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("exclusive", [True, False])
def test_a_retry_begins_anew_and_what_was_safe_stays_safe(exclusive):
    it = tracker([1, 2, 3], initial=0, exclusive=exclusive)
    safe = it.safe
    it.restart()
    it.observe([1, 2])
    assert it.safe == safe
    it.observe([3, 4])
    assert it.safe == (3 if exclusive else 4)


def test_without_a_retry_the_same_rows_break_the_order():
    with pytest.raises(UnsortedStreamError):
        tracker([1, 2, 3]).observe([1])


def test_a_retry_does_not_mend_an_order_that_broke():
    it = tracker(initial=0)
    with pytest.raises(UnsortedStreamError):
        it.observe([2, 1])
    it.restart()
    it.observe([1, 2])
    it.complete()
    assert it.safe == 0


# ---- an order that breaks ---------------------------------------------------------------------------


def test_a_broken_order_may_be_a_warning_once_and_the_bookmark_moves_at_the_end(caplog):
    with caplog.at_level(logging.WARNING):
        it = tracker([1, 5], [4, 6], [2, 9, 3], initial=0, on_unsorted="end_of_sync")
    assert [record.getMessage() for record in caplog.records] == [
        "stream 'a': order 'asc' is declared, but 'at' went from 5 back to 4. It goes on; its bookmark stays where "
        "this run began, and moves when the stream is complete"
    ]
    assert it.safe == 0
    it.complete()
    assert it.safe == 9


def test_before_it_broke_the_order_was_as_good_as_any():
    it = tracker([1, 5], initial=0, on_unsorted="end_of_sync")
    assert it.safe == 5


def test_the_error_tells_of_the_way_to_go_on():
    with pytest.raises(UnsortedStreamError, match=r"from 5 back to 4\..*\n.*on_unsorted='end_of_sync'"):
        tracker([1, 5, 4])


# ---- an author who saves ------------------------------------------------------------------------------


@pytest.mark.parametrize("sorted_rows", [True, False])
def test_manual_moves_where_its_author_says_and_nowhere_else(sorted_rows):
    it = tracker([1, 2, 3], initial=1, sorted_rows=sorted_rows, manual=True)
    assert it.safe == 1
    it.save()
    assert it.safe == 3
    it.observe([4, 5])
    it.complete()
    assert it.safe == 3
    it.save(4)
    assert it.safe == 4


def test_manual_may_go_back_before_the_beginning():
    it = tracker([7], initial=5, manual=True)
    it.save(2)
    assert it.safe == 2


def test_manual_without_a_row_saves_where_it_began():
    it = tracker(initial=5, manual=True)
    it.save()
    assert it.safe == 5
    it = tracker(manual=True)
    it.save()
    assert it.safe is None


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("x", "'at' is text .'x'. where it was a number before"),
        (None, "'at' is of type NoneType"),
        (float("inf"), "'at' is no finite number"),
        ([], "'at' is of type list"),
    ],
)
def test_manual_saves_bookmarks_only(value, says):
    it = tracker([1], manual=True)
    with pytest.raises(StreamError, match=f"stream 'a': {says}"):
        it.save(value)
    assert it.safe is None


def test_manual_takes_a_value_before_any_row():
    it = tracker(manual=True)
    it.save(dt.datetime(2024, 5, 1, tzinfo=UTC))
    assert it.safe == "2024-05-01T00:00:00Z"
    with pytest.raises(StreamError, match=r"a number .* where it was a date-time"):
        it.observe([5])


def test_what_is_missing_holds_an_author_who_saves_too():
    it = tracker([1, 2, 3], initial=0, manual=True)
    it.hold(2)
    it.save(3)
    assert it.safe == 2
    it.hold(None)
    assert it.safe == 0


# ---- signposts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "initial", "safe"),
    [
        (["2024-05-02T11:00:00Z"], None, "2024-05-02T11:00:00Z"),
        (["2024-05-02T11:00:00Z", "2024-05-02T12:00:00.000001Z"], None, "2024-05-02T12:00:00.000000Z"),
        ([NOON, NOON + dt.timedelta(days=900)], None, "2024-05-02T12:00:00Z"),
        (["2024-05-02T15:00:00Z"], "2024-05-02T14:00:00Z", "2024-05-02T14:00:00Z"),
        (["2024-05-01", "2024-05-02"], None, "2024-05-02"),
        (["2024-05-01", "2024-05-03"], None, "2024-05-02"),
        ([dt.date(2025, 1, 1)], "2024-06-01", "2024-06-01"),
    ],
)
@pytest.mark.parametrize("sorted_rows", [True, False])
def test_no_bookmark_passes_the_signpost_nor_is_moved_back_by_it(values, initial, safe, sorted_rows):
    it = tracker(values, initial=initial, sorted_rows=sorted_rows, signpost=NOON)
    it.complete()
    assert it.safe == safe
    assert bookmark.comparable(it.greatest)[1] >= bookmark.comparable(it.safe)[1]


def test_the_signpost_of_days_is_a_day_in_utc_and_one_before_for_exclusive_sources():
    late = dt.datetime(2024, 5, 2, 1, tzinfo=dt.timezone(dt.timedelta(hours=3)))  # still the first in UTC
    it = tracker(["2024-05-04"], signpost=late)
    it.complete()
    assert it.safe == "2024-05-01"
    it = tracker(["2024-05-04"], signpost=late, exclusive=True)
    it.complete()
    assert it.safe == "2024-04-30"


@pytest.mark.parametrize(
    ("pages", "says"),
    [
        ([[5]], "is a number .5.; signpost=True needs date-times or dates"),
        ([["x"]], "is text .'x'.; signpost=True"),
        ([["2024-01-01"], ["2024-01-01a"]], "is text .'2024-01-01a'.; signpost=True"),
    ],
)
def test_a_signpost_needs_a_key_in_time(pages, says):
    with pytest.raises(StreamError, match=f"stream 'a': 'at' {says}"):
        tracker(*pages, signpost=NOON)


def test_an_author_who_saves_does_not_pass_the_signpost_either():
    it = tracker(manual=True, signpost=NOON)
    it.save("2030-01-01T00:00:00Z")
    assert it.safe == "2024-05-02T12:00:00Z"
    with pytest.raises(StreamError, match="signpost"):
        tracker(manual=True, signpost=NOON).save(5)


# ---- kinds of values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 30])  # a long page is looked at as a whole
@pytest.mark.parametrize(
    "texts",
    [
        ["2024-01-01", "2024-01-02", "2024-01-02-b"],
        ["2024-01-01", "x", "y"],
        ["a", "b", "c"],
        ["1", "2024-01-01", "2024-02-30"],
    ],
)
def test_text_that_looks_like_dates_at_first_is_text(texts, size):
    values = [text for text in sorted(texts) for _ in range(size)]
    assert tracker(values).safe == max(texts)
    assert tracker(*([text] * size for text in sorted(texts))).safe == max(texts)
    assert tracker(values[1:], initial=values[0]).safe == max(texts)
    assert tracker(["2024-01-01"] * size, ["2024-01-01-x"], ["2024-01-02"] * size).safe == "2024-01-02"


@pytest.mark.parametrize("where", ["first", "middle", "last"])
@pytest.mark.parametrize("size", [1, 30])
@pytest.mark.parametrize(
    ("textual", "value", "says"),
    [
        ("date", "2024-01-01x", "text that is no date "),
        ("date", "2024", "text that is no date "),
        ("date", "2023-01-01\n2023-01-01", "text that is no date "),
        ("date-time", "2024-01-01T00:00:00Z\n2024-01-01T00:00:00Z", "text that is no date-time "),
        ("date-time", "2024", "text that is no date-time "),
        ("date-time", "2024-01-01T00:00:00", "text that is no date-time "),
        ("decimal", "1,5", "text that is no number "),
        ("decimal", "NaN", "text that is no number "),
        ("decimal", "1e2000", "a number of over 1,000 digits "),
        ("decimal", "2024-01-01", "text that is no number "),
    ],
)
def test_a_format_of_the_schema_holds_for_every_value(textual, value, says, size, where):
    good = [{"date": "2024-01-01", "decimal": "1.5"}.get(textual, "2024-01-01T00:00:00Z")] * size
    page = {"first": [value, *good], "middle": [*good, value, *good], "last": [*good, value]}[where]
    with pytest.raises(StreamError, match=f"'at' is {says}"):
        tracker(page, textual=textual, sorted_rows=False)


@pytest.mark.parametrize("size", [1, 30])
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (1.5, float("nan")),
        (1.5, float("-inf")),
        (1, float("inf")),
        (Decimal(1), Decimal("NaN")),
        (Decimal(1), Decimal("sNaN")),
        (Decimal(1), Decimal("-Infinity")),
        (Decimal(1), Decimal("1E+5000")),
        (1, Decimal("NaN")),
        ("a", "2024-01-01T00:00:00Z"),
        ("2024-01-01", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00Z", "2024-01-01"),
        (dt.datetime(2024, 1, 1, tzinfo=UTC), dt.datetime(2024, 1, 1)),  # noqa: DTZ001
        (dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=UTC)),
    ],
)
def test_what_has_no_place_among_the_others_is_found_in_the_middle_of_a_page(good, bad, size):
    with pytest.raises(StreamError):
        tracker([*[good] * size, bad, *[good] * size], sorted_rows=False)


def test_of_a_long_page_what_counts_is_a_day_and_a_moment_of_the_calendar():
    """In the middle, the form will do; a bookmark is always checked."""
    for good, odd in (("2024-01-01", "2024-02-30"), ("2024-01-01T00:00:00Z", "2024-02-30T00:00:00Z")):
        for textual in (None, "date-time" if "T" in good else "date"):
            it = tracker([good] * 30, textual=textual)
            try:
                it.observe([good] * 30 + [odd])
            except StreamError:
                assert it.safe == good
            else:
                assert textual is None and "T" not in good  # it is text
                assert it.safe == odd


def test_a_fraction_of_zeros_is_none():
    without, zeros = "2024-01-01T00:00:05Z", "2024-01-01T00:00:05.000000Z"
    assert tracker([zeros] * 30, [without] * 30, [zeros] * 20 + [without] * 20).safe == zeros
    assert tracker([without] * 30 + [zeros] * 30, initial=zeros).newer == 0


def test_dates_of_a_schema_don_t_turn_into_text():
    it = tracker(["2024-01-01"], textual="date")
    with pytest.raises(StreamError, match="where it was a date before"):
        it.observe(["2024-01-01T00:00:00Z"])


@pytest.mark.parametrize("size", [1, 30])
def test_decimals_as_text_compare_as_numbers_and_keep_their_digits(size):
    it = tracker(["9.5"] * size, ["10.123456789012345678901"] * size, textual="decimal", initial="9")
    assert it.safe == "10.123456789012345678901"
    assert it.newer == 2 * size
    with pytest.raises(UnsortedStreamError):
        it.observe(["10.123456789012345678900"] * size)


@pytest.mark.parametrize("size", [1, 30])
def test_numbers_of_all_types_compare_exactly(size):
    third = Decimal("0.1000000000000000055511151231257827021181583404541015625")  # what the float 0.1 is
    assert tracker([0.1] * size, [third] * size, [0.1] * size).safe == 0.1
    with pytest.raises(UnsortedStreamError):
        tracker([0.1] * size, [Decimal("0.1")] * size)
    big = 2**53
    with pytest.raises(UnsortedStreamError):
        tracker([big + 1] * size, [float(big)] * size)
    assert tracker([float(big)] * size, [big, big + 1] * 1).safe == big + 1


@pytest.mark.parametrize("value", [Decimal("1E+5000"), 10**1000, Decimal("-1E+99999999")])
def test_a_number_that_fills_a_page_is_no_bookmark(value):
    with pytest.raises(StreamError, match="a number of over 1,000 digits"):
        tracker([value] * 30)
    with pytest.raises(StreamError, match="a number of over 1,000 digits"):
        tracker([value])


def test_date_times_of_one_zone_compare_by_the_moment_and_not_by_its_clock():
    zoneinfo = pytest.importorskip("zoneinfo")
    try:
        zone = zoneinfo.ZoneInfo("Europe/Berlin")
    except zoneinfo.ZoneInfoNotFoundError:
        pytest.skip("no time zones here")
    first = dt.datetime(2024, 10, 27, 2, 30, tzinfo=zone)  # summer time
    second = dt.datetime(2024, 10, 27, 2, 10, fold=1, tzinfo=zone)  # 40 minutes later
    for size in (1, 30):
        assert tracker([first] * size + [second] * size).safe == "2024-10-27T01:10:00Z"
        with pytest.raises(UnsortedStreamError):
            tracker([second] * size + [first] * size)


def test_lines_inside_a_text_fool_nobody():
    """A page of texts is looked at as one text, a line each."""
    odd = ["2024-01-01\n2024-01-02", "2024-01-01T00:00:00Z\n2024-01-01T00:00:00Z", "a\n2024-01-01T00:00:00Z"]
    for value in odd:
        assert bookmark.comparable(value)[0] == "text"
        it = tracker([value] * 30)
        assert it.safe == value
        it.observe(["b"])  # it is text


# ---- what is counted --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sorted_rows", [True, False])
@pytest.mark.parametrize("size", [1, 30])
@pytest.mark.parametrize(
    ("initial", "values"),
    [
        (2, [1, 2, 2, 3, 4]),
        (2.5, [1, 2, 2, 3, 4]),
        (2, [1.5, 2.0, 2.25, 3.0, 4.5]),
        (2, [Decimal(1), Decimal("2.0"), 2, Decimal("2.1"), 5]),
        ("2024-01-02", ["2024-01-01", "2024-01-02", "2024-01-03"]),
        ("2024-01-02", [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 3)]),
        ("2024-01-02T00:00:00.5Z", [f"2024-01-02T00:00:00.{n}00000Z" for n in range(1, 9)]),
        ("2024-01-02T00:00:00.5000001Z", [dt.datetime(2024, 1, 2, 0, 0, 0, n, UTC) for n in (500_000, 500_001)]),
        ("2024-01-02T00:00:00.5Z", [dt.datetime(2024, 1, 2, 0, 0, 0, n, UTC) for n in (500_000, 500_001)]),
        ("b", ["a", "b", "c", "cc"]),
    ],
)
def test_rows_are_new_if_they_lie_behind_the_bookmark(initial, values, size, sorted_rows):
    page = [value for value in values for _ in range(size)]
    begin = bookmark.comparable(initial)[1]
    new = sum(bookmark.comparable(value)[1] > begin for value in page)
    assert 0 < new < len(page)
    it = tracker(page, initial=initial, sorted_rows=sorted_rows)
    assert it.newer == new
    it.observe(page[-1:])
    assert it.newer == new + 1
    assert tracker([None, *page, None], initial=initial, sorted_rows=sorted_rows).newer == new
    assert tracker([None, *page]).newer == len(page)


def test_the_greatest_value_is_the_beginning_until_a_row_is_greater():
    it = tracker(initial=5, sorted_rows=False)
    it.observe([3, 1])
    assert it.greatest == 5
    it.observe([Decimal("7.5")])
    it.observe([6])
    assert it.greatest == 7.5
