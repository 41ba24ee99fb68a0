"""Rows that come again in the next round, just as they went out: which are dropped, and which never are."""

from __future__ import annotations

import logging
from decimal import Decimal

import pytest

import burler
from burler.testing import FakeClock, run_tap

SCHEMA = {"properties": {"id": {"type": "integer"}, "at": {"type": "integer"}}}
OPEN = {"properties": {"id": {}, "at": {"type": ["null", "integer"]}, "value": {}, "part": {}}}
TOP, ALL = {}, {"lookback": 100}
"""A stream of which the rows at the bookmark come again, and one of which all of the last round do."""
FAILS = object()
"""As the last page of a round: it breaks off."""


def row(number, at, *value):
    return {"id": number, "at": at, **({"value": value[0]} if value else {})}


def rows(*pairs):
    return [row(number, at) for number, at in pairs]


def tail(*rounds, **options):
    """The rows that go out of a source that shows pages of rows in each round."""
    shown = iter(rounds)
    tap = burler.tap("tap-t")

    @tap.sync("rows", schema=OPEN, **{"key_properties": [], "replication_key": "at", "order": "none", **options})
    def found():
        for page in next(shown):
            if page is FAILS:
                raise ConnectionError("gone")
            yield [dict(one) for one in page]

    return run_tap(tap, {"tail": True, "tail_max_rounds": len(rounds)}, clock=FakeClock()).records("rows")


E = {"at": 7, "value": "login"}
ON, OFF = row(1, 7, "on"), row(1, 7, "off")
KEYED = {"key_properties": "id"}
CASES = {
    "a row of the boundary goes out once": (
        {"order": "asc"},
        [(rows((1, 5), (2, 7)), rows((1, 5), (2, 7))), (rows((2, 7)), []), (rows((2, 7), (3, 7)), rows((3, 7)))],
    ),
    "below the boundary it goes out however often it comes": (
        TOP, [(rows((1, 5), (2, 7)), rows((1, 5), (2, 7))), (rows((1, 5), (2, 7)), rows((1, 5)))],
    ),
    "all rows of a lookback are known": (
        ALL, [(rows((1, 5), (2, 7), (3, 1)), rows((1, 5), (2, 7), (3, 1))),
              (rows((3, 1), (1, 5), (2, 7), (4, 0)), rows((4, 0)))],
    ),
    "another value goes out": (TOP, [([ON], [ON]), ([OFF], [OFF]), ([OFF], [])]),
    "as many equal rows are dropped as came before": (
        TOP, [([E, E], [E, E]), ([E, E], []), ([E, E, E], [E]), ([E], []), ([E, E], [E])],
    ),
    "as many of a lookback": (
        ALL, [([E, E], [E, E]), ([E, E], []), ([E, E, E], [E]), ([E], []), ([E, E], [E])],
    ),
    "a row that one round of a lookback did not bring is news": (
        ALL,
        [(rows((1, 5), (2, 7)), rows((1, 5), (2, 7))), (rows((2, 7)), []), (rows((1, 5), (2, 7)), rows((1, 5)))],
    ),
    "lower rows alone forget the others": (
        TOP, [(rows((1, 7)), rows((1, 7))), (rows((2, 3)), rows((2, 3))), (rows((1, 7)), rows((1, 7)))],
    ),
    "a row that goes back to what it was goes out": (KEYED, [([ON], [ON]), ([OFF, ON], [OFF, ON]), ([ON], [])]),
    "rows without a bookmark go out and do not disturb": (
        TOP, [([row(0, None), row(1, 7)], [row(0, None), row(1, 7)]), ([row(1, 7), row(0, None)], [row(0, None)])],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_goes_out_in_each_round(name):
    options, rounds = CASES[name]
    assert tail(*[[page] for page, _out in rounds], **options) == [one for _page, out in rounds for one in out]


@pytest.mark.parametrize("options", [TOP, ALL])
def test_a_round_that_was_not_whole_forgets_nothing(options):
    first = rows((1, 7))
    assert tail([first], [FAILS], [first], **options) == first
    assert tail([first], [first, rows((2, 9)), FAILS], [first, rows((2, 9))], **options)[:2] == rows((1, 7), (2, 9))


@pytest.mark.parametrize(
    "before, now", [(1, 1.5), (1, True), ("1", 1), (None, ""), (Decimal("1.50"), Decimal("1.51")), ([1], [1, 2])]
)
def test_what_would_be_another_line_goes_out(before, now):
    for first, second in ((before, now), (now, before)):
        assert len(tail([[row(1, 7, first)]], [[row(1, 7, second)]])) == 2


def test_null_and_missing_are_two_things_and_two_spellings_of_a_number_one():
    assert len(tail([[row(1, 7)]], [[row(1, 7, None)]])) == 2
    assert len(tail([[row(1, 7, 1.0)]], [[row(1, 7, Decimal("1.0"))]])) == 1


def test_what_an_author_changes_in_a_row_after_it_is_out_does_not_change_what_went_out():
    mine, seen = row(1, 7, ["a"]), []
    tap = burler.tap("tap-t")

    @tap.sync("rows", schema=OPEN, key_properties="id", replication_key="at", order="none")
    def found():
        seen.append(1)
        if len(seen) == 2:
            mine["value"].append("b")
        yield [mine]

    out = run_tap(tap, {"tail": True, "tail_max_rounds": 3}, clock=FakeClock()).records("rows")
    assert [one["value"] for one in out] == [["a"], ["a", "b"]]


@pytest.mark.parametrize("keys", ["id", ["id", "part"]])
def test_key_properties_of_any_kind(keys):
    parts = [1, 1.5, "1", True, "é", 10**30]
    page = [{"id": i, "at": 1, "part": part} for i, part in enumerate(parts)]
    for options in (TOP, ALL):
        assert tail([page], [page], key_properties=keys, **options) == page


def test_beyond_a_number_the_oldest_are_forgotten_and_one_warning_says_so(caplog):
    page = [{"id": i, "at": 7} for i in range(100_005)]
    with caplog.at_level(logging.WARNING):
        out = tail([page], [page], [page])
    assert [one["id"] for one in out[100_005 : 100_005 + 5]] == list(range(5)) and len(out) < 100_100
    assert len([one for one in caplog.messages if "more than 100000 rows may come again" in one]) == 1


def test_a_row_that_does_not_fit_counts_and_is_told_once_however_often_it_comes(caplog):
    """Another one counts, and one more than may be ends the stream."""
    rounds = []
    tap = burler.tap("tap-x")

    @tap.sync("s", key_properties="id", replication_key="at", schema=SCHEMA, on_bad_record="skip")
    def rows():
        rounds.append(1)
        more = [{"id": 3, "at": "x"}] if len(rounds) > 4 else []
        return [{"id": 1, "at": "x"}, {"id": 2, "at": []}, {"id": 9, "at": len(rounds)}, *more]

    with caplog.at_level(logging.WARNING):
        out = run_tap(tap, {"tail": True, "tail_max_rounds": 4, "max_bad_records": 2}, clock=FakeClock())
    assert not out.result.errors and len(rounds) == 4
    assert len([text for text in caplog.messages if "row id=1" in text]) == 1
    out = run_tap(tap, {"tail": True, "tail_max_rounds": 1, "max_bad_records": 2}, clock=FakeClock())
    assert "max_bad_records" in str(out.result.errors["s"])


@pytest.mark.parametrize("more", [[], rows((1, 7))])
@pytest.mark.parametrize("options", [TOP, ALL, KEYED, {"order": "asc"}])
def test_a_row_at_the_boundary_that_an_error_cut_off_is_not_known(options, more):
    page = rows((2, 7), (4, 7))
    cut = [page[0], row(3, 7, object()), page[1]]
    assert tail([more], [cut], [page], **options) == [*more, *page]
