"""Whatever comes, and wherever it stops: the bookmark is as a slow reference has it, and a next run loses no row."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from burler.errors import UnsortedStreamError
from support.internals import bookmark

DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
# Each makes values of one kind from whole numbers, in the same order.
KINDS = {
    "int": lambda n: n,
    "float": lambda n: n / 4,
    "Decimal": lambda n: Decimal(n) / 4,
    "mixed numbers": lambda n: (n, float(n), Decimal(n))[n % 3],
    "text": lambda n: f"k{n + 500:04}",
    "date text": lambda n: (DAY + dt.timedelta(days=n)).date().isoformat(),
    "date": lambda n: (DAY + dt.timedelta(days=n)).date(),
    "datetime": lambda n: DAY + dt.timedelta(milliseconds=500 * n),
    "datetime text": lambda n: (DAY + dt.timedelta(milliseconds=500 * n)).isoformat().replace("+00:00", "Z"),
    "datetime in zones": lambda n: (DAY + dt.timedelta(seconds=n)).astimezone(dt.timezone(dt.timedelta(hours=n % 5))),
    "decimal text": lambda n: f"{n}.50",
}
TEXTUAL = {"date text": "date", "datetime text": "date-time", "decimal text": "decimal"}

numbers = st.integers(0, 40)
page = st.one_of(st.lists(st.one_of(numbers, st.none()), max_size=6), st.lists(numbers, min_size=8, max_size=30))
event = st.one_of(
    st.tuples(st.just("page"), page),
    st.tuples(st.just("page"), page),
    st.tuples(st.just("page"), page),
    st.tuples(st.just("hold"), st.one_of(numbers, st.none())),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("save"), st.one_of(numbers, st.none())),
)
made = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(sorted(KINDS)),
        "initial": st.one_of(st.none(), numbers),
        "sorted_rows": st.booleans(),
        "exclusive": st.booleans(),
        "manual": st.booleans(),
        "rising": st.booleans(),
        "on_unsorted": st.sampled_from(["error", "end_of_sync"]),
        "known": st.booleans(),
    }
)


class Slow:
    """The rules, said as plainly as can be, of whole numbers; None stands below all."""

    def __init__(self, initial, sorted_rows, exclusive, manual, on_unsorted):
        self.initial, self.sorted, self.exclusive, self.manual = initial, sorted_rows, exclusive, manual
        self.on_unsorted = on_unsorted
        self.tries = [[]]
        self.holds = []
        self.saved = initial
        self.complete = self.broken = False

    def observe(self, values):
        values = [value for value in values if value is not None]
        tried = self.tries[-1] + values
        if self.sorted and tried != sorted(tried):
            if self.on_unsorted == "error":
                self.broken = True
                raise UnsortedStreamError("a", "")
            self.sorted = False
        self.tries[-1] = tried

    @property
    def seen(self):
        return [value for tried in self.tries for value in tried]

    def save(self, value):
        self.saved = greatest([self.initial, *self.seen]) if value is None else value

    def safe(self):
        if self.broken:
            return self.initial
        if self.manual:
            safe = self.saved
        elif self.complete:
            safe = greatest([self.initial, *self.seen])
        elif not self.sorted:
            safe = self.initial
        elif self.exclusive:
            followed = [value for tried in self.tries for value in tried if value < tried[-1]]
            safe = greatest([self.initial, *followed])
        else:
            safe = greatest([self.initial, *self.seen])
        floor = least([safe, self.initial])
        for hold in self.holds:
            safe = floor if hold is None else greatest([floor, least([safe, hold])])
        return safe


def greatest(values):
    return max((value for value in values if value is not None), default=None)


def least(values):
    return None if None in values else min(values)


def form(kind, value):
    return None if value is None else KINDS[kind](value)


def rank(value, textual):
    return bookmark.comparable(value, textual)[1]


def tracker_of(setup):
    """The tracker, the reference, and what turns a whole number into a value."""
    kind = setup["kind"]
    options = {key: setup[key] for key in ("sorted_rows", "exclusive", "manual", "on_unsorted")}
    textual = TEXTUAL.get(kind) if setup["known"] or kind == "decimal text" else None
    first = form(kind, setup["initial"])
    initial = first
    if isinstance(first, dt.date | Decimal):  # as a state has it
        initial = float(first) if isinstance(first, Decimal) else first.isoformat()
    it = bookmark.BookmarkTracker("a", "at", initial=initial, textual=textual, **options)
    return it, Slow(setup["initial"], **options), textual


@given(setup=made, events=st.lists(event, max_size=12), ends=st.booleans())
def test_the_bookmark_is_what_the_rules_say(setup, events, ends):
    it, slow, textual = tracker_of(setup)
    kind = setup["kind"]
    exact = not (setup["exclusive"] and any(what == "hold" and value is not None for what, value in events))

    def compare():
        expected, got = form(kind, slow.safe()), it.safe
        if expected is None or got is None:
            assert got is None or not exact
            assert expected is None or not exact
        elif exact:
            assert rank(got, textual) == rank(expected, textual), (got, expected)
        else:
            assert rank(got, textual) <= rank(expected, textual), (got, expected)

    for what, value in events:
        if what == "page":
            values = sorted(value, key=lambda one: -1 if one is None else one) if setup["rising"] else value
            try:
                slow.observe(values)
            except UnsortedStreamError:
                try:
                    it.observe([form(kind, one) for one in values])
                except UnsortedStreamError:
                    compare()
                    it.complete()
                    compare()
                    return
                raise AssertionError("the order broke unseen") from None
            it.observe([form(kind, one) for one in values])
        elif what == "hold":
            it.hold(form(kind, value))
            slow.holds.append(value)
        elif what == "restart":
            it.restart()
            slow.tries.append([])
        elif setup["manual"]:
            it.save(*([] if value is None else [form(kind, value)]))
            slow.save(value)
        compare()
    if ends:
        it.complete()
        slow.complete = True
        compare()
    seen = slow.seen
    assert it.newer == sum(setup["initial"] is None or one > setup["initial"] for one in seen)
    assert it.without_value == sum(value.count(None) for what, value in events if what == "page")
    wanted = form(kind, greatest([setup["initial"], *seen]))
    assert (it.greatest is None) == (wanted is None)
    assert wanted is None or rank(it.greatest, textual) == rank(wanted, textual)


@given(
    kind=st.sampled_from(sorted(KINDS)),
    source=st.lists(numbers, min_size=1, max_size=40),
    cuts=st.lists(st.integers(1, 12), max_size=12),
    stops=st.integers(0, 60),
    missing=st.sets(st.integers(0, 39), max_size=3),
    again=st.integers(0, 40),
    exclusive=st.booleans(),
    sorted_rows=st.booleans(),
    initial=st.one_of(st.none(), numbers),
    signpost=st.one_of(st.none(), numbers),
)
def test_a_run_that_stops_anywhere_leaves_no_gap(
    kind, source, cuts, stops, missing, again, exclusive, sorted_rows, initial, signpost
):
    """A source of sorted rows (or not), read in pages; some rows can't be had, one try fails, then the run stops. What
    is out, and what the next run asks for, is the whole."""
    textual = TEXTUAL.get(kind)
    in_time = kind in ("date text", "date", "datetime", "datetime text")
    post = None
    if signpost is not None and in_time:
        post = DAY + (dt.timedelta(days=signpost) if "date" in kind and "time" not in kind else dt.timedelta(0))
        post += dt.timedelta(milliseconds=500 * signpost) if "time" in kind else dt.timedelta(hours=5)
    begin = form(kind, initial)
    if isinstance(begin, dt.date | Decimal):
        begin = float(begin) if isinstance(begin, Decimal) else begin.isoformat()
    it = bookmark.BookmarkTracker(
        "a", "at", initial=begin, sorted_rows=sorted_rows, exclusive=exclusive, signpost=post, textual=textual
    )
    floor = None if begin is None else rank(begin, textual)
    values = [form(kind, one) for one in (sorted(source) if sorted_rows else source)]
    ranks = [rank(value, textual) for value in values]
    # What the source gives from the bookmark on.
    rows = [i for i, one in enumerate(ranks) if floor is None or (one > floor if exclusive else one >= floor)]
    lost = {row for row in missing if row in rows}
    out: set[int] = set()
    before = floor
    for limit in (again, stops):  # a try that fails, and the one after it
        it.restart()
        at = 0
        for size in [*cuts, 100]:
            lot = rows[at : min(at + size, limit)]
            for row in lot:
                if row in lost:
                    it.hold(values[row])
            it.observe([values[row] for row in lot])
            out |= set(lot) - lost
            at += len(lot)
            safe = it.safe
            if safe is not None and before is not None:
                assert rank(safe, textual) >= before or lost, "it went back"
            if safe is not None:
                before = rank(safe, textual)
            _no_gap(it, rows, ranks, out, floor, exclusive, textual)
            if at >= min(limit, len(rows)):
                break
    if stops >= len(rows):
        it.complete()
        _no_gap(it, rows, ranks, out, floor, exclusive, textual)
    if post is not None and it.safe is not None and (floor is None or rank(it.safe, textual) > floor):
        day = "date" in kind and "time" not in kind
        assert rank(it.safe, textual) <= rank(post.date() if day else post, None)


def _no_gap(it, rows, ranks, out, floor, exclusive, textual):
    safe = it.safe
    mark = None if safe is None else rank(safe, textual)
    assert floor is None or mark >= floor
    for row in rows:
        again = mark is None or (ranks[row] > mark if exclusive else ranks[row] >= mark)
        assert row in out or again or ranks[row] == floor, f"row {row} ({ranks[row]!r}) is lost at {safe!r}"
