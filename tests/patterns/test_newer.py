"""Everything is asked for; what is at or after the bookmark goes out."""

from __future__ import annotations

import datetime as dt
import logging
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources import lost_from_any_state, running, tap_of

from burler.errors import StreamError
from burler.patterns import full_request_incremental_emit
from burler.testing import run_tap


def emitted(rows, *, key=None, **stream):
    """What comes of rows; lists laid flat."""
    given = iter(rows) if isinstance(rows, list) else rows
    found = full_request_incremental_emit(running(manual=False, **stream), given, key)
    return [row for item in found for row in (item if isinstance(item, list) else [item])]


def test_rows_at_or_after_the_bookmark_come_in_their_order():
    rows = [{"id": 1, "at": "2024-05-03T00:00:00Z"}, {"id": 2, "at": "2024-05-01T00:00:00Z"},
            {"id": 3, "at": "2024-05-02T00:00:00Z"}]  # fmt: skip
    assert [row["id"] for row in emitted(rows, bookmark="2024-05-02T00:00:00Z")] == [1, 3]
    assert emitted(rows) == rows


def test_what_counts_is_the_moment_not_how_it_is_written():
    rows = [{"at": "2024-05-02T02:00:00+02:00"}, {"at": "2024-05-01T23:59:59.9Z"}, {"at": "2024-05-02T00:00:00.000Z"}]
    assert emitted(rows, bookmark="2024-05-02T00:00:00Z") == [rows[0], rows[2]]
    moment = {"at": dt.datetime(2024, 5, 2, tzinfo=dt.UTC)}
    assert emitted([moment], bookmark="2024-05-02T00:00:00Z") == [moment]


fractions = st.sampled_from(["", ".0", ".5", ".50", ".4999999", ".500000", ".500001", ".500000000001", ".000"])
written = st.builds(
    "2024-05-01T00:00:0{}{}{}".format, st.integers(0, 2), fractions, st.sampled_from(["Z", "z", "+00:00"])
)


@given(written, written)
def test_digits_of_a_second_count_as_far_as_they_go(bookmark, value):
    def exactly(text):
        return Decimal(re.sub("Z|z|[+]00:00", "", text[17:]))

    row = {"at": value}
    assert emitted([row], bookmark=bookmark) == ([row] if exactly(value) >= exactly(bookmark) else [])


@pytest.mark.parametrize(
    ("bookmark", "before", "at"),
    [
        (5, 4, 5),
        (5, Decimal("4.99"), 5.0),
        ("2024-05-02", "2024-05-01", dt.date(2024, 5, 2)),
        ("b", "a", "b"),
    ],
)
def test_any_kind_that_a_bookmark_may_be(bookmark, before, at):
    assert emitted([{"at": before}, {"at": at}], bookmark=bookmark) == [{"at": at}]


def test_rows_without_a_key_come_and_are_counted(caplog):
    caplog.set_level(logging.INFO)
    rows = [{"id": 1}, {"id": 2, "at": None}, {"id": 3, "at": 1}, {"id": 4, "at": 9}]
    assert [row["id"] for row in emitted(rows, bookmark=5)] == [1, 2, 4]
    assert "stream 'rows': of 4 rows asked for 3 are new; 2 have no 'at' and come" in caplog.text


def test_a_list_comes_out_as_a_list_and_an_empty_one_not_at_all():
    pages = [[{"at": 1}, {"at": 5}], [{"at": 2}], {"at": 7}, []]
    stream = running(bookmark=5)
    assert list(full_request_incremental_emit(stream, pages)) == [[{"at": 5}], {"at": 7}]
    assert list(full_request_incremental_emit(stream, [{"at": 1}, {"at": 5}])) == [[{"at": 5}]]
    assert list(full_request_incremental_emit(stream, iter([{"at": 1}, {"at": 5}]))) == [{"at": 5}]
    assert list(full_request_incremental_emit(stream, [])) == []


def test_the_key_may_be_another_field_or_a_function():
    rows = [{"at": 1, "meta": {"at": 9}, "seen": 9}, {"at": 9, "meta": {"at": 1}, "seen": 1}]
    assert emitted(rows, bookmark=5, key="seen") == rows[:1]
    assert emitted(rows, bookmark=5, key=lambda row: row["meta"]["at"]) == rows[:1]


def test_without_any_key_the_error_says_so():
    with pytest.raises(StreamError, match=r"stream 'rows': full_request_incremental_emit.. needs a key"):
        full_request_incremental_emit(running(replication_key=None), [])


@pytest.mark.parametrize("page", [b"[]", "text", 5, ["a"], [None]])
def test_what_has_no_rows_to_look_at_is_an_error(page):
    with pytest.raises(StreamError, match=r"takes rows .* lists of rows"):
        emitted([page])


def test_a_single_page_that_is_no_list_of_rows_is_an_error():
    for rows, says in ((b"[]", "takes rows"), ({"items": []}, "one dict"), (None, "gave None")):
        with pytest.raises(StreamError, match=says):
            emitted(rows)


def test_kinds_that_do_not_compare_are_an_error():
    with pytest.raises(StreamError, match=r"'at' is a number \(5\) where the bookmark is text \('abc'\)"):
        emitted([{"at": 5}], bookmark="abc")
    with pytest.raises(StreamError, match="only values of one kind"):
        emitted([{"at": "abc"}], bookmark="2024-05-01T00:00:00Z")
    with pytest.raises(StreamError, match="has no order"):
        emitted([{"at": 1}], bookmark=[1])


def test_a_value_without_a_place_in_an_order_is_left_to_the_engine():
    rows = [{"at": float("nan")}, {"at": [1]}]
    assert emitted(rows, bookmark=5) == rows


@pytest.mark.parametrize(
    ("values", "new"),
    [
        (["2024-05-01", "2024-05-02", "2024-05-03"], 2),  # days: that of the start date is one of them
        ([1, 2, 3], 3),  # it says nothing of numbers
        (["a", "b"], 2),
        (["2024-05-02T11:00:00Z", "2024-05-02T12:00:00Z"], 1),
    ],
)
def test_a_start_date_fits_any_key(values, new):
    date = "2024-05-02T12:00:00Z"
    assert len(emitted([{"at": value} for value in values], bookmark=date, start_date=date)) == new


def test_of_a_full_table_all_rows_come():
    assert len(emitted([{"at": 1}, {"at": 9}], bookmark=5, replication_method="FULL_TABLE")) == 2


# ---- in a run ------------------------------------------------------------------------------------------


class Moving:
    """A source whose rows change between runs; each change carries the next number."""

    def __init__(self, rows):
        self.rows = dict(enumerate(rows))

    def __call__(self, fails_at=None):
        for i, (row, change) in enumerate(self.rows.items()):
            if i == fails_at:
                raise ConnectionError("gone")
            yield {"id": row, "code": str(change), "seq": change}


SEQ = {"type": "object", "properties": {"id": {"type": "integer"}, "code": {}, "seq": {"type": "integer"}}}


@given(st.permutations(range(12)), st.lists(st.integers(0, 11), max_size=5), st.none() | st.integers(0, 11))
def test_every_change_arrives_whatever_is_killed_in_between(order, changes, fails_at):
    source = Moving(order)

    def tap(fails_at=None):
        def rows(stream):
            return full_request_incremental_emit(stream, source(fails_at))

        return tap_of(rows, replication_key="seq", schema=SEQ, bookmark_strategy=None)

    assert lost_from_any_state(tap(fails_at), tap(), set(range(12))) == set()
    out = run_tap(tap(fails_at))
    target = {row["id"]: row["seq"] for row in out.records("rows")}
    state = out.states[-1]
    for number, row in enumerate(changes, 100):
        source.rows[row] = number
        out = run_tap(tap(), state=state)
        assert not out.result.errors
        target |= {row["id"]: row["seq"] for row in out.records("rows")}
        state = out.states[-1]
    if changes:
        assert target == source.rows
