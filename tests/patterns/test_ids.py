"""Ranges of integer keys: they cover what is there once, keep the form of keys, and never note more than there is."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources import lost_from_any_state, running, saved_by, tap_of

from burler.errors import StreamError
from burler.patterns import IdRange, id_ranges
from burler.testing import run_tap


def ends(found):
    return [(ids.first, ids.last) for ids in found]


@given(st.integers(-50, 50), st.integers(-50, 200), st.integers(1, 60))
def test_ranges_hold_each_key_once(first, last, size):
    found = ends(id_ranges(None, size, start=first, last=last))
    assert [key for a, b in found for key in range(a, b + 1)] == list(range(first, last + 1))
    assert all(b - a + 1 == size for a, b in found[:-1])


def test_ranges_begin_at_the_bookmark_itself():
    """A row with that key may have changed, or have come late: it comes again."""
    stream = running(bookmark=100)
    assert ends(id_ranges(stream, 50, last=210)) == [(100, 149), (150, 199), (200, 210)]
    assert saved_by(stream) == [149, 199, 210]
    assert ends(id_ranges(running(), 2, start=5, last=7)) == [(5, 6), (7, 7)]


def test_a_range_is_noted_when_the_next_one_is_asked_for():
    stream = running(bookmark=1)
    with pytest.raises(ZeroDivisionError):
        for ids in id_ranges(stream, 10, last=99):
            if ids.first > 20:
                raise ZeroDivisionError
    assert saved_by(stream) == [10, 20]


def test_an_old_range_that_is_done_again_does_not_go_back():
    stream = running(bookmark=1)
    found = id_ranges(stream, 10, last=99)
    first, second = next(found), next(found)
    second.done()
    first.done()
    assert saved_by(stream) == [10, 20, 20]
    assert first == IdRange(1, 10) and "_save" not in repr(first)


def test_the_greatest_key_may_be_asked_of_the_source_once():
    asked = []

    def greatest():
        asked.append(1)
        return 25

    assert len(list(id_ranges(running(), 10, last=greatest))) == 3
    assert asked == [1]


@pytest.mark.parametrize("last", [lambda: None, 4, "4"])
def test_a_source_without_newer_rows_gives_no_range_and_moves_nothing(last):
    stream = running(bookmark=5)
    assert list(id_ranges(stream, last=last)) == []
    assert saved_by(stream) == []


@pytest.mark.parametrize(
    ("bookmark", "last", "saved"),
    [
        ("000098", 120, ["000107", "000117", "000120"]),
        ("101", "120", ["110", "120"]),
        (98.0, Decimal(120), [107, 117, 120]),
        (10**30, str(10**30 + 4), [10**30 + 4]),
    ],
)
def test_keys_keep_their_form(bookmark, last, saved):
    stream = running(bookmark=bookmark)
    list(id_ranges(stream, 10, last=last))
    assert saved_by(stream) == saved


def test_the_form_of_the_first_bookmark_is_that_of_start():
    stream = running()
    list(id_ranges(stream, 10, start="0001", last=12))
    assert saved_by(stream) == ["0010", "0012"]


@pytest.mark.parametrize("kind", ["string", ["null", "string"]])
def test_a_key_that_is_text_in_the_schema_has_a_bookmark_of_text(kind):
    stream = running(schema={"properties": {"at": {"type": kind}}})
    list(id_ranges(stream, 5, last=8))
    assert saved_by(stream) == ["4", "8"]
    decimal = running(schema={"properties": {"at": {"type": kind, "format": "singer.decimal"}}})
    list(id_ranges(decimal, 10, start=1, last=12))
    assert saved_by(decimal) == ["10", "12"]


@pytest.mark.parametrize(("bookmark", "last"), [("98", 120), ("9", "10"), ("-5", 3), ("-05", "005")])
def test_text_that_does_not_sort_as_numbers_do_is_refused(bookmark, last):
    """As text '96' stands behind '213': a bookmark might pass what is missing."""
    stream = running(bookmark=bookmark)
    with pytest.raises(StreamError, match=r"'at' is text, and from .* different lengths.*\n.*singer.decimal"):
        id_ranges(stream, last=last)
    assert list(id_ranges(running(bookmark=bookmark, replication_key=None), last=last))


def test_a_start_date_says_nothing_of_numbers():
    stream = running(bookmark="2024-01-01T00:00:00Z", start_date="2024-01-01T00:00:00Z")
    assert ends(id_ranges(stream, start=3, last=9)) == [(3, 9)]


def test_keep_state_goes_on_there():
    stream = running(manual=False, bookmark=70)
    for ids in id_ranges(stream, 10, start=1, last=99, keep="state"):
        if ids.first > 30:
            break
    assert stream.state == {"last_id": 30} and saved_by(stream) == [None] * 3
    for of_another_field in (70, "2024-05-01T00:00:00Z"):
        again = running(manual=False, bookmark=of_another_field, state=stream.state)
        assert next(id_ranges(again, 10, last=99, keep="state")).first == 30


def test_keep_state_takes_text_of_any_length_since_no_bookmark_counts():
    stream = running(manual=False, schema={"properties": {"at": {"type": "string"}}})
    assert len(list(id_ranges(stream, 50, last="120", keep="state"))) == 3
    assert stream.state == {"last_id": 120}


def test_a_full_table_begins_at_start_each_time():
    stream = running(bookmark=50, replication_method="FULL_TABLE", manual=False)
    assert ends(id_ranges(stream, 100, last=99)) == [(0, 99)]
    assert saved_by(stream) == []


@pytest.mark.parametrize(
    ("bookmark", "given", "says"),
    [
        ("abc", {}, "the bookmark is 'abc'; it must be an integer, or text of digits"),
        (1.5, {}, "the bookmark is 1.5"),
        (float("nan"), {}, "the bookmark is nan"),
        (True, {}, "the bookmark is True"),
        ("٣", {}, "the bookmark is"),
        (None, {"last": "x"}, "last is 'x'"),
        (None, {"last": float("inf")}, "last is inf"),
        (None, {"start": None}, "start is None"),
        (None, {"size": 0}, "size is 0; it must be 1 or more"),
        (None, {"size": True}, "size is True"),
        (None, {"keep": "nowhere"}, "keep='nowhere' is unknown"),
    ],
)
def test_what_makes_no_ranges_is_an_error_with_the_streams_name(bookmark, given, says):
    with pytest.raises(StreamError, match=rf"stream 'rows': id_ranges\(\): {says}"):
        id_ranges(running(bookmark=bookmark), **{"last": 9, **given})


KEYS = [1, 2, 3, 7, 20, 21, 22, 23, 60, 61, 99]


def source(fails_at=None):
    def rows(stream):
        for ids in id_ranges(stream, 5, last=max(KEYS)):
            for key in KEYS:
                if key == fails_at:
                    raise ConnectionError("gone")
                if ids.first <= key <= ids.last:
                    yield {"id": key}

    return tap_of(rows, replication_key="id", order=None)


@pytest.mark.parametrize("fails_at", [None, *KEYS])
def test_no_row_is_lost_whenever_the_run_is_killed(fails_at):
    assert lost_from_any_state(source(fails_at), source(), set(KEYS)) == set()


def test_the_next_run_asks_for_the_last_key_again_and_no_more():
    out = run_tap(source())
    assert [row["id"] for row in out.records("rows")] == KEYS
    again = run_tap(source(), state=out.states[-1])
    assert [row["id"] for row in again.records("rows")] == [99]


def test_a_lookback_goes_back_for_the_first_range_and_not_in_the_state():
    def rows(stream):
        for ids in id_ranges(stream, 5, last=200):
            yield {"id": ids.first}
            if ids.first > 80:
                raise ConnectionError("gone")

    out = run_tap(tap_of(rows, replication_key="id", lookback=20), state={"bookmarks": {"rows": {"id": 100}}})
    assert [row["id"] for row in out.records("rows")] == [80, 85]
    assert out.states[-1]["bookmarks"]["rows"]["id"] == 100


def test_a_lookback_counts_for_what_is_kept_in_the_state_too():
    def rows(stream):
        yield from ({"id": ids.first} for ids in id_ranges(stream, 50, last=120, keep="state"))

    tap = tap_of(rows, replication_key="id", lookback=20, bookmark_strategy=None)
    state = {"bookmarks": {"rows": {"stream_state": {"last_id": 100}}}}
    out = run_tap(tap, state=state)
    assert [row["id"] for row in out.records("rows")] == [80]
    assert out.states[-1]["bookmarks"]["rows"]["stream_state"] == {"last_id": 120}
