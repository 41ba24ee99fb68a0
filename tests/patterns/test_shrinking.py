"""Windows that shrink until the source can take them: all rows come once, and none from a window that was too much."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources import NOW, lost_from_any_state, now, running, saved_by, tap_of

from burler.errors import StreamError
from burler.patterns import TooMuch, read_windows
from burler.testing import run_tap

BEGIN = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
MINUTE, HOUR, DAY = dt.timedelta(minutes=1), dt.timedelta(hours=1), dt.timedelta(days=1)


class Shop:
    """A source with rows at some minutes after BEGIN that gives less than ``most`` at a time, one way or another."""

    def __init__(self, minutes, most, *, says="raises"):
        self.rows = [{"id": i, "at": (BEGIN + minute * MINUTE).isoformat()} for i, minute in enumerate(sorted(minutes))]
        self.most = most
        self.says = says
        self.asked = []

    def within(self, window):
        """The rows of a window as an honest source would give them."""
        return [row for row in self.rows if window.start_at <= dt.datetime.fromisoformat(row["at"]) < window.end_at]

    def __call__(self, window):
        self.asked.append((window.start, window.end))
        found = self.within(window)
        if len(found) < self.most:
            return found
        if self.says == "raises":
            raise TooMuch(f"{len(found)} rows")
        return found[: self.most] if self.says == "cuts" else self.breaks_off(found)

    def breaks_off(self, found):
        yield from found[: self.most]
        raise TooMuch("there is more")


def rows_of(items):
    return [row for item in items for row in (item if isinstance(item, list) else [item])]


def read(stream, shop, size=DAY, **more):
    most = shop.most if shop.says == "cuts" else None
    return read_windows(stream, shop, size, most_rows=most, end=BEGIN + 10 * DAY, now=now, smallest=MINUTE, **more)


# Whatever lies in one minute fits; the source can say no to anything longer.
minutes = st.lists(st.integers(0, 10 * 24 * 60 - 1), unique=True, max_size=60)
sizes = st.sampled_from(["day", "week", "month", HOUR, DAY, 7 * DAY, dt.timedelta(hours=7, seconds=1), 100 * DAY])


@given(minutes, st.integers(2, 10), sizes, st.sampled_from(["raises", "cuts", "breaks off"]))
def test_all_rows_come_once_however_often_a_window_shrinks(minutes, most, size, says):
    shop = Shop(minutes, most, says=says)
    stream = running(bookmark="2024-05-01T00:00:00Z")
    assert rows_of(read(stream, shop, size)) == shop.rows
    assert saved_by(stream) == sorted(saved_by(stream)), "what is noted goes forward"
    assert saved_by(stream)[-1] == "2024-05-10T12:30:15Z", "and not beyond now"
    read_well = [window for window in shop.asked if len(shop.within(Span(*window))) < most]
    edges = [start for start, _end in read_well] + [read_well[-1][1]]
    assert edges == ["2024-05-01T00:00:00Z", *(end for _start, end in read_well)], "no gap, and none over another"


class Span:
    def __init__(self, start, end):
        self.start_at, self.end_at = dt.datetime.fromisoformat(start), dt.datetime.fromisoformat(end)


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(2, 4))
def test_windows_of_days_shrink_to_a_day(days, most):
    per_day = {day: [i for i, other in enumerate(days) if other == day][: most - 1] for day in days}

    def fetch(window):
        begin, end = (dt.date.fromisoformat(text) for text in (window.start, window.end))
        found = [row for day, row in per_day.items() if begin <= BEGIN.date() + day * DAY < end]
        rows = [{"id": i} for ids in found for i in ids]
        if len(rows) >= most:
            raise TooMuch
        return rows

    found = read_windows(running(bookmark="2024-05-01", replication_key="day"), fetch, "month", dates=True, now=now)
    assert sorted(row["id"] for row in rows_of(found)) == sorted(i for ids in per_day.values() for i in ids)


def test_a_window_is_halved_and_grows_again_once_two_in_a_row_have_fitted():
    shop = Shop([0, 1, 2, 3], most=2)
    list(read_windows(running(bookmark="2024-05-01T00:00:00Z"), shop, 8 * MINUTE, end=BEGIN + 24 * MINUTE, now=now))
    lengths = [(dt.datetime.fromisoformat(b) - dt.datetime.fromisoformat(a)) // MINUTE for a, b in shop.asked]
    assert lengths == [8, 4, 2, 1, 1, 2, 1, 1, 2, 2, 4, 4, 8]


@pytest.mark.parametrize("says", ["raises", "cuts", "breaks off"])
def test_the_smallest_window_that_is_too_much_is_an_error_that_names_it(says):
    shop = Shop([0, 100, 101, 102], most=2, says=says)
    stream = running(bookmark="2024-05-01T00:00:00Z")
    out = []
    with pytest.raises(StreamError) as failed:
        for item in read_windows(
            stream, shop, DAY, most_rows=2 if says == "cuts" else None, smallest=HOUR, now=now, end="2024-05-02"
        ):
            out.append(item)
    assert "stream 'rows': the window from 2024-05-01T01:30:00Z to 2024-05-01T02:30:00Z is too much" in str(
        failed.value
    )
    assert ("2 rows or more (most_rows)" if says == "cuts" else "TooMuch") in str(failed.value)
    assert rows_of(out) == shop.rows[:1], "what came before that window is out"
    assert saved_by(stream)[-1] == "2024-05-01T01:30:00Z"


def test_halves_are_whole_seconds_where_there_is_room():
    lengths = []

    def fetch(window):
        lengths.append((window.end_at - window.start_at).total_seconds())
        if lengths[-1] > 0.5:
            raise TooMuch
        return []

    given = {"end": "2024-05-01T00:00:15Z", "smallest": dt.timedelta(seconds=0.1), "now": now}
    next(iter(read_windows(running(bookmark="2024-05-01T00:00:00Z"), fetch, HOUR, **given)), None)
    assert lengths[:5] == [15, 7, 3, 1, 0.5]


def test_most_rows_takes_as_many_as_a_sign_that_there_are_more():
    stream = running(bookmark="2024-05-01T00:00:00Z")
    shop = Shop([0, 600], most=3)
    list(read_windows(stream, shop, DAY, most_rows=3, end="2024-05-02", now=now))
    assert len(shop.asked) == 1
    shop = Shop([0, 600], most=3)
    list(read_windows(running(bookmark="2024-05-01T00:00:00Z"), shop, DAY, most_rows=2, end="2024-05-02", now=now))
    assert len(shop.asked) > 1


class Refused(Exception):
    def __init__(self, status):
        super().__init__(f"HTTP {status}")
        self.status = status


@pytest.mark.parametrize(
    "too_much",
    [Refused, (KeyError, Refused), lambda error: getattr(error, "status", 0) == 413],
    ids=["class", "tuple", "function"],
)
def test_which_errors_say_too_much_is_for_the_author_to_say(too_much):
    def fetch(window):
        if window.end_at - window.start_at > HOUR:
            raise Refused(413)
        return [{"id": window.start_at.hour}]

    found = read_windows(
        running(bookmark="2024-05-01T00:00:00Z"), fetch, DAY, too_much=too_much, end="2024-05-02", now=now
    )
    assert len({row["id"] for row in rows_of(found)}) == 24


@pytest.mark.parametrize("too_much", [Refused, (KeyError, Refused), lambda _error: False])
def test_too_much_itself_always_says_so(too_much):
    shop = Shop([0, 600, 1200], most=2)
    found = read_windows(
        running(bookmark="2024-05-01T00:00:00Z"), shop, DAY, too_much=too_much, end="2024-05-02", now=now
    )
    assert rows_of(found) == shop.rows


def test_other_errors_come_through_at_once():
    asked = []

    def fetch(window):
        asked.append(window)
        raise Refused(500)

    with pytest.raises(Refused, match="500"):
        list(
            read_windows(
                running(bookmark="2024-05-01T00:00:00Z"), fetch, too_much=lambda error: error.status == 413, now=now
            )
        )
    assert len(asked) == 1


def test_pages_of_bytes_go_through_and_cant_be_counted():
    stream = running(bookmark="2024-05-01T00:00:00Z")
    given = {"end": "2024-05-02", "now": now}
    assert list(read_windows(stream, lambda _w: b'[{"id": 1}]', **given)) == [b'[{"id": 1}]']
    with pytest.raises(StreamError, match="most_rows can't count the rows in bytes"):
        list(read_windows(running(bookmark="2024-05-01"), lambda _w: b"[]", most_rows=5, **given))


def test_arrow_tables_are_counted():
    pyarrow = pytest.importorskip("pyarrow")
    lengths = []

    def fetch(window):
        lengths.append(window.end_at - window.start_at)
        return pyarrow.table({"id": [1, 2, 3] if lengths[-1] > HOUR else [1]})

    list(read_windows(running(bookmark="2024-05-01"), fetch, DAY, most_rows=3, end="2024-05-02", now=now))
    assert lengths[0] == DAY and min(lengths) <= HOUR


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "fetch for 2024-05-01T00:00:00Z to 2024-05-02T00:00:00Z gave None for its rows"),
        ({"items": []}, "gave one dict, not rows"),
        ("[]", "gave a value of type str"),
        (5, "gave a value of type int"),
    ],
)
def test_a_fetch_function_that_gives_no_rows_is_an_error(given, says):
    with pytest.raises(StreamError, match=says):
        list(read_windows(running(bookmark="2024-05-01"), lambda _w: given, end="2024-05-02", now=now))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"most_rows": 0}, "most_rows is 0"),
        ({"most_rows": True}, "most_rows is True"),
        ({"smallest": dt.timedelta(0)}, "smallest is 0:00:00"),
        ({"smallest": HOUR, "dates": True}, "smallest is 1:00:00; it must be 1 day"),
        ({"size": "decade"}, r"read_windows\(\): size 'decade'"),
    ],
)
def test_what_makes_no_windows_is_an_error(wrong, says):
    with pytest.raises(StreamError, match=says):
        read_windows(running(bookmark="2024-05-01"), list, **wrong)


def test_fetch_can_not_note_its_window_before_the_rows_are_out():
    stream = running(bookmark="2024-05-09T00:00:00Z")

    def fetch(window):
        window.done()
        return [{"id": 1}]

    found = read_windows(stream, fetch, DAY, now=now)
    next(found)
    assert saved_by(stream) == []


@pytest.mark.parametrize("keep", ["bookmark", "state"])
@pytest.mark.parametrize("fails_at", range(1, 14))
def test_no_row_is_lost_whenever_the_run_is_killed(fails_at, keep):
    def source(fails_at=None):
        shop = Shop(range(0, 9 * 24 * 60, 600), most=4)

        def rows(stream):
            def fetch(window):
                if len(shop.asked) == fails_at:
                    raise ConnectionError("gone")
                return shop(window)

            given = {"start": "2024-05-01", "keep": keep, "now": lambda: NOW, "overlap": HOUR}
            yield from read_windows(stream, fetch, 4 * DAY, **given)

        return tap_of(rows, bookmark_strategy="manual" if keep == "bookmark" else None), {
            row["id"] for row in shop.rows
        }

    whole, wanted = source()
    assert lost_from_any_state(source(fails_at)[0], whole, wanted) == set()


def test_an_interrupted_run_goes_on_at_the_window_it_was_in():
    asked = []

    def rows(stream):
        def fetch(window):
            asked.append(window.start)
            if len(asked) == 3:
                raise ConnectionError("gone")
            return [{"id": len(asked), "at": window.start}]

        yield from read_windows(stream, fetch, DAY, start="2024-05-01", end="2024-05-05", now=now)

    tap = tap_of(rows)
    out = run_tap(tap)
    run_tap(tap, state=out.states[-1])
    assert [start[8:10] for start in asked] == ["01", "02", "03", "03", "04"]
