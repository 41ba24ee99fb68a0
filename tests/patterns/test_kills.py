"""Whenever a run is killed, going on from what it had saved loses no row: every pattern, at every moment."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sources import lost_from_any_state, now, running, saved_by, tap_of

import burler
from burler.patterns import TooMuch, cursor_pages, full_request_incremental_emit, id_ranges, read_windows, windows
from burler.testing import run_tap

BEGIN = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


@dataclass(frozen=True)
class Source:
    """Rows at some hours after BEGIN; several may share one. It fails as it gives row ``fails_at``, if there is one."""

    hours: tuple[int, ...]
    as_list: bool
    fails_at: int | None = None

    def rows(self, wanted: Callable[[int], bool]) -> Any:
        """The rows whose hour is wanted, in no order of time, as a list or one by one."""
        found = self._each(wanted)
        return list(found) if self.as_list else found

    def _each(self, wanted):
        for i, hour in enumerate(self.hours):
            if wanted(hour):
                if i == self.fails_at:
                    raise ConnectionError("gone")
                yield {"id": i, "at": (BEGIN + hour * HOUR).isoformat(), "code": f"{hour:03}"}

    def between(self, window) -> Any:
        return self.rows(lambda hour: window.start_at <= BEGIN + hour * HOUR < window.end_at)

    def few_between(self, window) -> Any:
        found = list(self.between(window))
        if len(found) > 3 and window.end_at - window.start_at > HOUR:
            raise TooMuch
        return found


def each_window(stream, source, keep):
    for window in windows(stream, 7 * HOUR, start="2024-05-01", keep=keep, now=now):
        given = source.between(window)
        if source.as_list:
            yield given
        else:
            yield from given


def each_range(stream, source, keep):
    for ids in id_ranges(stream, 4, start="000", last=max(source.hours, default=None), keep=keep):
        yield from source.rows(lambda hour, ids=ids: ids.first <= hour <= ids.last)


def each_page(stream, source, _keep):
    def fetch(cursor):
        first = cursor or 0
        hours = sorted(set(source.hours))
        wanted = hours[first : first + 3]
        return source.rows(lambda hour: hour in wanted), first + 3 if first + 3 < len(hours) else None

    yield from cursor_pages(stream, fetch)


def shrinking(stream, source, keep):
    yield from read_windows(stream, source.few_between, 50 * HOUR, start="2024-05-01", keep=keep, now=now)


def newest(stream, source, _keep):
    yield from full_request_incremental_emit(stream, source.rows(lambda _hour: True))


# The function, where it notes its position, how the stream is declared.
BY_HAND: dict[str, Any] = {"replication_key": "at", "bookmark_strategy": "manual"}
AT_THE_END: dict[str, Any] = {"replication_key": "at", "bookmark_strategy": None}
PATTERNS: list[tuple[Any, str | None, dict[str, Any]]] = [
    (each_window, "bookmark", BY_HAND),
    (each_window, "state", AT_THE_END),
    (each_window, "state", {**AT_THE_END, "bookmark_strategy": "every_n(3)", "order": "none"}),
    (each_range, "bookmark", {"replication_key": "code", "bookmark_strategy": "manual"}),
    (each_range, "state", {"replication_key": None, "bookmark_strategy": None, "replication_method": "LOG_BASED"}),
    (each_page, "state", {"replication_key": None, "bookmark_strategy": None, "replication_method": "LOG_BASED"}),
    (each_page, "state", AT_THE_END),
    (shrinking, "bookmark", BY_HAND),
    (shrinking, "state", AT_THE_END),
    (newest, None, AT_THE_END),
]
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        "code": {"type": "string"},
    },
}

patterns = st.sampled_from(PATTERNS)
sources = st.builds(
    Source, st.lists(st.integers(0, 220), max_size=25).map(tuple), st.booleans(), st.none() | st.integers(0, 24)
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(patterns, sources, st.sampled_from([1, 2, 3, 5, 1000]))
def test_no_row_is_lost_by_a_run_that_goes_on_from_any_state(pattern, source, page):
    function, keep, options = pattern

    def tap(source):
        return tap_of(lambda stream: function(stream, source, keep), schema=SCHEMA, **options)

    mended = Source(source.hours, source.as_list)
    lost = lost_from_any_state(tap(source), tap(mended), set(range(len(source.hours))), {"page_max_rows": page})
    assert lost == set()


@given(patterns.filter(lambda pattern: pattern[1] is not None), sources, st.integers(0, 60))
def test_no_row_is_lost_when_what_stood_at_any_yield_is_all_that_was_saved(pattern, source, stops_at):
    """Without an engine: it takes the state as it stands when the function has just yielded something."""
    function, keep, options = pattern
    source = Source(source.hours, source.as_list)
    given = {
        "manual": options["bookmark_strategy"] == "manual",
        "replication_method": options.get("replication_method"),
    }
    if keep == "bookmark" and function is each_range:
        given["bookmark"] = "000"
    stream = running(**given)
    out, saved = set(), ({}, None)
    for count, item in enumerate(function(stream, source, keep)):
        out |= {row["id"] for row in (item if isinstance(item, list) else [item])}
        marks = [mark for mark in saved_by(stream) if mark is not None]
        saved = (copy.deepcopy(stream.state), marks[-1] if marks else given.get("bookmark"))
        if count == stops_at:
            break
    state, bookmark = saved
    again = running(**{**given, "state": state, "bookmark": bookmark})
    for item in function(again, source, keep):
        out |= {row["id"] for row in (item if isinstance(item, list) else [item])}
    assert out == set(range(len(source.hours)))


class NotFoundYet(Exception):
    """The source says: try again."""


@settings(max_examples=60)
@given(patterns, sources, st.sampled_from([1, 3, 1000]))
def test_a_retry_brings_what_is_missing(pattern, source, page):
    function, keep, options = pattern
    tries = []

    def rows(stream):
        tries.append(1)
        trying = source if len(tries) == 1 else Source(source.hours, source.as_list)
        try:
            yield from function(stream, trying, keep)
        except ConnectionError as error:
            raise NotFoundYet from error

    tap = tap_of(rows, schema=SCHEMA, retry_sync_on=NotFoundYet, **options)
    out = run_tap(tap, {"page_max_rows": page})
    assert not out.result.errors
    assert len(tries) == 1 + (source.fails_at is not None and source.fails_at < len(source.hours))
    assert {row["id"] for row in out.records("rows")} == set(range(len(source.hours)))


@given(patterns, sources, st.sets(st.integers(0, 24), max_size=3), st.sampled_from([1, 2, 5, 1000]))
def test_what_a_substream_failed_to_give_comes_with_the_next_run(pattern, source, fails, page):
    function, keep, options = pattern
    source = Source(source.hours, source.as_list)

    def tap(fails=()):
        made = tap_of(lambda stream: function(stream, source, keep), schema=SCHEMA, **options)

        @made.sync("children", parent="rows", key_properties="id", schema=SCHEMA)
        def children(parent):
            if parent["id"] in fails:
                raise ConnectionError("gone")
            yield {"id": parent["id"], "at": parent["at"], "code": parent["code"]}

        return made

    config = {"page_max_rows": page, "parent_buffer_rows": page}
    out = run_tap(tap(fails), config)
    rest = run_tap(tap(), config, state=out.states[-1])
    assert not rest.result.errors
    for stream in ("rows", "children"):
        found = {row["id"] for run in (out, rest) for row in run.records(stream)}
        assert found == set(range(len(source.hours))), stream


ROWS = [{"id": i, "at": (BEGIN + day * 24 * HOUR).isoformat()} for i, day in enumerate([0, 1, 25, 26, 60, 61, 90, 120])]


def months_at_a_time(fails, workers, today="2024-09-15"):
    """Windows of a month as partitions, some of which fail."""
    tap = burler.tap("tap-months")

    @tap.partitions("rows", order="asc", key="from")
    def months(stream):
        until = dt.datetime.fromisoformat(f"{today}T00:00:00Z")
        for window in windows(stream, "month", start="2024-04-20", keep=None, now=lambda: until):
            yield {"from": window.start, "to": window.end}

    @tap.sync("rows", key_properties="id", replication_key="at", workers=workers, schema=SCHEMA)
    def rows(partition):
        for row in ROWS:
            if partition["from"] <= row["at"].replace("+00:00", "Z") < partition["to"]:
                if row["id"] in fails:
                    raise ConnectionError("gone")
                yield dict(row)

    return tap


@settings(max_examples=30)
@given(st.sets(st.integers(0, 7), max_size=3), st.integers(1, 3))
def test_months_that_fail_come_again_and_leave_nothing_behind_in_the_state(fails, workers):
    assert lost_from_any_state(months_at_a_time(fails, workers), months_at_a_time((), 1), set(range(8))) == set()
    broken = run_tap(months_at_a_time(fails, workers))
    later = run_tap(months_at_a_time((), workers, "2024-09-20"), state=broken.states[-1])
    assert later.states[-1]["bookmarks"] == {"rows": {"at": ROWS[-1]["at"]}}


@settings(max_examples=settings.default.max_examples // 4)
@given(sources, sources, st.sampled_from([pattern for pattern in PATTERNS if pattern[0] is not newest]))
def test_accounts_as_partitions_each_go_on_where_they_were(one, other, pattern):
    function, keep, options = pattern
    given = {**options, "replication_key": options["replication_key"] or "at", "replication_method": "INCREMENTAL"}
    given = {name: value for name, value in given.items() if value is not None}
    failing = {"a": one, "b": other}

    def tap(shops):
        made = burler.tap("tap-accounts")
        made.partitions("rows")(lambda: [{"account": name} for name in shops])

        @made.sync("rows", key_properties="id", schema=SCHEMA, workers=2, **given)
        def rows(stream, partition):
            name = partition["account"]
            for item in function(stream, shops[name], keep):
                found = item if isinstance(item, list) else [item]
                yield [{**row, "id": 2 * row["id"] + (name == "b")} for row in found]

        return made

    whole = {name: Source(shop.hours, shop.as_list) for name, shop in failing.items()}
    wanted = {2 * i for i in range(len(one.hours))} | {2 * i + 1 for i in range(len(other.hours))}
    assert lost_from_any_state(tap(failing), tap(whole), wanted, {"page_max_rows": 3}) == set()
