"""Which rows came, as numbers: in memory, then in a temporary file, found again in several passes."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.internals import rowlog

QUICK = settings(suppress_health_check=list(HealthCheck))
KEYS = st.one_of(
    st.integers(-3, 12),
    st.sampled_from(
        ["a", "b", "", 1.5, None, True, False, [1], {"a": [1]}, 10**30, -(2**63), ("a", 1), (-1, 1), (-2, 1)]
    ),
)
PAGES = st.lists(st.lists(KEYS, min_size=1, max_size=6), max_size=8)


def as_text(key):
    """A key as JSON tells it from others: 1 is not true, and not "1"."""
    return repr(key)


def filled(pages, most):
    log, line = rowlog.RowLog(most, least=1), 0
    for page in pages:
        log.add(rowlog.numbers_of(page), range(line + 1, line + 1 + len(page)), [float(line)] * len(page))
        line += len(page)
    return log


@QUICK
@given(PAGES, st.integers(1, 20), st.integers(0, 5))
def test_rows_that_came_before_are_found(pages, most, start):
    log = filled(pages, most)
    rows = [key for page in pages for key in page]
    first, expected = {}, set()
    for line, key in list(enumerate(rows, 1))[start:]:
        if as_text(key) in first:
            expected.add((first[as_text(key)], line))
        else:
            first[as_text(key)] = line
    assert log.count == len(rows)
    assert sorted(log.repeated(start)) == sorted(expected)
    log.close()


@QUICK
@given(PAGES, PAGES, st.integers(1, 20), st.integers(0, 5))
def test_rows_that_another_run_lacks_are_found(pages, others, most, start):
    one, other = filled(pages, most), filled(others, most)
    there = {as_text(key) for page in others for key in page}
    rows = list(enumerate((key for page in pages for key in page), 1))[start:]
    expected = [line for line, key in rows if as_text(key) not in there]
    numbers = []
    found = list(one.missing_in(other, start, numbers=numbers))
    assert sorted(line for line, _mark in found) == expected
    assert len(numbers) == len(found)
    for log in (one, other):
        log.close()


@pytest.mark.parametrize("beside", [1, "x", None, (1, 2)], ids=["number", "text", "null", "pair"])
def test_a_number_does_not_depend_on_the_keys_beside_it(beside):
    assert rowlog.numbers_of([5, beside])[0] == rowlog.numbers_of([5])[0] == 5
    assert rowlog.numbers_of(["5", beside])[0] == rowlog.numbers_of(["5"])[0]


def test_nested_and_long_keys_have_a_number():
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert len(rowlog.numbers_of([deep, 10**400, {"a": []}])) == 3


def test_rows_with_the_same_place_before_a_row_are_known():
    log = rowlog.RowLog(2, least=1)
    for row, mark in ((1, 1.0), (2, math.nan), (3, 3.0), (1, 4.0)):
        log.add([row], [row], [mark])
    assert log.found_before(4, {1: 1.0, 2: math.nan, 3: 2.0}) == {1, 2}
    assert log.found_before(1, {1: 1.0, 2: math.nan}) == {1}
    log.close()


def test_many_rows_are_held_in_a_file():
    log = rowlog.RowLog(1000, least=1000)
    for start in range(0, 50_000, 500):
        log.add(list(range(start, start + 500)), range(start, start + 500))
        assert len(log._part.rows) < 1000
    log.add([7], [50_000])
    assert list(log.repeated()) == [(7, 50_000)]
    log.close()


@QUICK
@given(PAGES, st.integers(1, 20))
def test_rows_that_come_again_at_the_same_place_are_counted(pages, most):
    log, seen, again, count = rowlog.RowLog(most, least=1), set(), 0, 0
    for at, page in enumerate(pages):
        mark = math.nan if at % 3 == 2 else float(at % 2)
        log.add(rowlog.numbers_of(page), range(len(page)), [mark] * len(page))
        for key in page:
            place = (as_text(key), str(mark))
            again, count = again + (place in seen), count + 1
            seen.add(place)
    different = len({key for key, _mark in seen})
    assert log.again() == (again if 2 * different < count else 0)
    assert log.at(1.0, 10**6) == {
        number for key, mark in seen if mark == "1.0" for number in rowlog.numbers_of([eval(key)])
    }
    assert log.has_any(log.at(1.0, 1)) == any(mark == "1.0" for _key, mark in seen)
    log.close()
