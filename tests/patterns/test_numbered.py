"""Numbered pages and offsets: up to the end, never round and round, never past rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources import tap_of

from burler.errors import BurlerError
from burler.patterns import offsets, pages
from burler.testing import run_tap


def book(*found, end=()):
    """A source of numbered pages, the first of which is 1."""
    return lambda number: found[number - 1] if number <= len(found) else list(end)


ROWS = [{"id": i} for i in range(7)]


@pytest.mark.parametrize("end", [[], None])
def test_pages_come_up_to_the_first_that_is_empty_or_none(end):
    found = [ROWS[:3], ROWS[3:6], ROWS[6:]]
    assert list(pages(lambda number: found[number - 1] if number <= 3 else end)) == found
    assert list(pages(lambda number: found[number] if number < 3 else end, first=0)) == found
    assert list(pages(lambda _number: end)) == []


def test_a_source_that_does_not_look_at_the_number_is_an_error():
    out = []
    with pytest.raises(BurlerError, match="page 2 holds the same as page 1: does the request carry the number"):
        out += pages(lambda _number: list(ROWS))
    assert out == [ROWS], "what came before is out"


def test_a_source_that_begins_again_behind_its_end_is_an_error():
    found = [ROWS[:3], ROWS[3:]]
    with pytest.raises(BurlerError, match="page 3 holds the same as page 1"):
        list(pages(lambda number: found[(number - 1) % 2]))


def test_pages_may_repeat_if_that_is_said():
    found = [[{"n": 1}], [{"n": 1}]]
    assert list(pages(book(*found), may_repeat=True)) == found


def test_too_many_pages_are_an_error():
    assert len(list(pages(lambda n: [{"id": n}] if n <= 5 else [], most_pages=5))) == 5
    with pytest.raises(BurlerError, match=r"page 6 would be more than 5 pages \(most_pages\)"):
        list(pages(lambda n: [{"id": n}], most_pages=5))


def test_pages_of_bytes_end_with_an_empty_array():
    found = {1: b'[{"id": 1}]', 2: b'[{"id": 2}]', 3: b" []\n"}
    assert list(pages(found.__getitem__)) == [found[1], found[2]]
    with pytest.raises(BurlerError, match=r"page 2 holds the same as page 1.*Return None at the end"):
        list(pages(lambda _number: b'{"items": []}'))


def test_arrow_tables_are_pages():
    pyarrow = pytest.importorskip("pyarrow")
    tables = [pyarrow.table({"id": ids}) for ids in ([1, 2], [3], [])]
    assert [table.num_rows for table in pages(lambda number: tables[number - 1])] == [2, 1]
    with pytest.raises(BurlerError, match="page 2 holds the same"):
        list(pages(lambda _number: pyarrow.table({"id": [1]})))
    assert [table.num_rows for table in offsets(lambda offset, _size: tables[0 if offset < 2 else 2])] == [2]


@pytest.mark.parametrize("page", [iter([]), (row for row in ROWS), {"items": []}, "[]", 5, ({"id": 1},)])
def test_what_is_no_page_is_an_error(page):
    with pytest.raises(BurlerError, match="page 1: a page is a list of rows, not a value of type"):
        list(pages(lambda _number: page))


class Table:
    """A source of offsets that gives at most so many rows at a time."""

    def __init__(self, count, most):
        self.rows = [{"id": i} for i in range(count)]
        self.most = most
        self.asked = []

    def __call__(self, offset, size):
        self.asked.append((offset, size))
        return self.rows[offset : offset + min(size, self.most)]


@given(st.integers(0, 50), st.integers(1, 60), st.integers(1, 60))
def test_offsets_bring_each_row_once_though_the_source_gives_fewer_at_a_time(count, size, most):
    table = Table(count, most)
    assert [row for page in offsets(table, size) for row in page] == table.rows
    assert {asked for _offset, asked in table.asked} == {size}


def test_a_source_that_leaves_rows_out_of_pages_repeats_some_and_loses_none():
    """It counts rows before it filters them: a page of two stands for three."""
    seen = [{"id": i, "code": "x"} for i in range(9) if i % 3]

    def fetch(offset, size):
        return [row for row in seen if offset <= row["id"] < offset + size]

    found = [row["id"] for page in offsets(fetch, 3) for row in page]
    assert set(found) == {row["id"] for row in seen} and len(found) > len(seen)


def test_a_source_that_does_not_look_at_the_offset_is_an_error():
    with pytest.raises(BurlerError, match="offset 7 holds the same as offset 0"):
        list(offsets(lambda _offset, _size: list(ROWS)))


@pytest.mark.parametrize(("size", "page", "says"), [
    (0, [], "size is 0"), (True, [], "size is True"), (5, b"[]", "can't in bytes"), (5, {"a": 1}, "offset 0: a page is")
])  # fmt: skip
def test_what_makes_no_offsets_is_an_error(size, page, says):
    with pytest.raises(BurlerError, match=says):
        list(offsets(lambda _offset, _size: page, size))


def test_offsets_end_with_none():
    assert list(offsets(lambda offset, size: Table(5, 2)(offset, size) or None, 2)) == [
        [{"id": 0}, {"id": 1}], [{"id": 2}, {"id": 3}], [{"id": 4}]
    ]  # fmt: skip


def test_in_a_tap_that_runs():
    out = run_tap(tap_of(lambda _stream: pages(book(ROWS[:5], ROWS[5:])), replication_key=None, bookmark_strategy=None))
    assert out.records("rows") == ROWS
    out = run_tap(tap_of(lambda _stream: offsets(Table(7, 2)), replication_key=None, bookmark_strategy=None))
    assert out.records("rows") == ROWS
