"""Windows of time: where they begin and end, and what is noted behind each."""

from __future__ import annotations

import datetime as dt

import pytest
from sources import FIELDS, NOW, now, running, saved_by, tap_of

from burler.errors import BurlerError, StreamError
from burler.patterns import Window, windows
from burler.testing import run_tap

DAY = dt.timedelta(days=1)


def spans(found):
    return [(window.start, window.end) for window in found]


def test_windows_go_from_the_bookmark_to_now():
    stream = running(bookmark="2024-05-08T10:00:00Z")
    assert spans(windows(stream, DAY, now=now)) == [
        ("2024-05-08T10:00:00Z", "2024-05-09T10:00:00Z"),
        ("2024-05-09T10:00:00Z", "2024-05-10T10:00:00Z"),
        ("2024-05-10T10:00:00Z", "2024-05-10T12:30:15Z"),  # now, in whole seconds
    ]
    assert saved_by(stream) == ["2024-05-09T10:00:00Z", "2024-05-10T10:00:00Z", "2024-05-10T12:30:15Z"]


def test_without_now_it_is_the_time_of_this_machine():
    begin = dt.datetime.now(dt.UTC) - dt.timedelta(days=3)
    found = list(windows(running(bookmark=begin.isoformat()), DAY))
    assert len(found) == 3 and found[-1].end_at <= dt.datetime.now(dt.UTC)
    assert found[-1].end_at > begin + dt.timedelta(days=3, seconds=-2)


def test_a_window_has_text_and_datetimes_in_its_zone():
    (window,) = windows(None, "day", start="2024-05-01", end="2024-05-02", zone="Europe/Berlin")
    assert (window.start, window.end) == ("2024-04-30T22:00:00Z", "2024-05-01T22:00:00Z")
    assert window.start_at.isoformat() == "2024-05-01T00:00:00+02:00"
    assert window == Window(window.start, window.end, window.start_at, window.end_at)
    assert "start='2024-04-30T22:00:00Z'" in repr(window) and "_save" not in repr(window)
    with pytest.raises(BurlerError, match="dates=True"):
        window.last_day  # noqa: B018


def test_windows_of_dates_are_written_as_dates_and_know_their_last_day():
    found = list(windows(None, "month", start="2024-01-15", end="2024-03-02", dates=True))
    assert [(w.start, w.end, w.last_day) for w in found] == [
        ("2024-01-15", "2024-02-01", "2024-01-31"),
        ("2024-02-01", "2024-03-01", "2024-02-29"),
        ("2024-03-01", "2024-03-02", "2024-03-01"),
    ]
    assert found[0].start_at == dt.date(2024, 1, 15)


def test_a_window_is_noted_when_the_next_one_is_asked_for():
    stream = running(bookmark="2024-05-08T00:00:00Z")
    found = windows(stream, DAY, now=now)
    next(found)
    assert saved_by(stream) == []
    next(found)
    assert saved_by(stream) == ["2024-05-09T00:00:00Z"]
    found.close()
    assert saved_by(stream) == ["2024-05-09T00:00:00Z"]


def test_a_body_that_was_left_early_is_not_noted():
    stream = running(bookmark="2024-05-08T00:00:00Z")
    with pytest.raises(ZeroDivisionError):
        for window in windows(stream, DAY, now=now):
            if window.start.startswith("2024-05-09"):
                raise ZeroDivisionError
    assert saved_by(stream) == ["2024-05-09T00:00:00Z"]


def test_done_says_so_before_the_body_is_left():
    stream = running(bookmark="2024-05-08T00:00:00Z")
    for window in windows(stream, DAY, now=now):
        window.done()
        break
    assert saved_by(stream) == ["2024-05-09T00:00:00Z"]


def test_an_old_window_that_is_done_again_does_not_go_back():
    stream = running(bookmark="2024-05-08T00:00:00Z")
    found = windows(stream, DAY, now=now)
    first, second = next(found), next(found)
    second.done()
    first.done()
    assert saved_by(stream)[-1] == "2024-05-10T00:00:00Z"


@pytest.mark.parametrize(
    ("stream", "begins"),
    [
        ({"bookmark": "2024-05-09T00:00:00Z", "start_date": "2024-05-01T00:00:00Z"}, "2024-05-09T00:00:00Z"),
        ({"bookmark": "2024-05-01T00:00:00Z", "start_date": "2024-05-01T00:00:00Z"}, "2024-05-01T00:00:00Z"),
        ({"start_date": "2024-05-02T00:00:00Z"}, "2024-05-02T00:00:00Z"),
        ({}, "2024-04-01T00:00:00Z"),
    ],
)
def test_the_first_window_begins_at_the_bookmark_or_start_date_or_start(stream, begins):
    assert next(windows(running(**stream), start="2024-04-01", now=now)).start == begins


def test_without_anything_to_begin_at_the_error_says_what_is_missing():
    with pytest.raises(StreamError, match=r"stream 'rows': windows.. has nowhere to begin: no bookmark .* start_date"):
        windows(running(), now=now)
    with pytest.raises(StreamError, match=r"nowhere to begin: nothing is noted in stream.state, .* start_date"):
        windows(running(bookmark="2024-05-01"), keep="state", now=now)
    with pytest.raises(BurlerError, match="has nowhere to begin: no start= is given"):
        windows(None, now=now)


def test_a_bookmark_at_or_beyond_the_end_gives_no_window():
    stream = running(bookmark="2024-05-10T12:30:15Z")
    assert list(windows(stream, now=now)) == []
    assert list(windows(running(bookmark="2030-01-01T00:00:00Z"), now=now)) == []
    assert saved_by(stream) == []


# ---- what is noted -------------------------------------------------------------------------------------


def test_what_is_noted_never_passes_now():
    """Of a future, more may come: appointments, say."""
    stream = running(bookmark="2024-05-10T00:00:00Z")
    found = list(windows(stream, DAY, end="2024-05-13T00:00:00Z", now=now))
    assert found[-1].end == "2024-05-13T00:00:00Z"
    assert saved_by(stream) == ["2024-05-10T12:30:15Z"] * 3


def test_today_is_read_and_read_again():
    stream = running(bookmark="2024-05-09", replication_key="day")
    assert spans(windows(stream, DAY, dates=True, now=now)) == [
        ("2024-05-09", "2024-05-10"),
        ("2024-05-10", "2024-05-11"),
    ]
    assert saved_by(stream) == ["2024-05-10", "2024-05-10"]
    again = running(bookmark="2024-05-10", replication_key="day")
    assert spans(windows(again, DAY, dates=True, now=now)) == [("2024-05-10", "2024-05-11")]


def test_today_is_that_of_the_zone():
    late = dt.datetime(2024, 5, 10, 23, 0, tzinfo=dt.UTC)
    tokyo = list(windows(None, DAY, start="2024-05-10", dates=True, zone="Asia/Tokyo", now=lambda: late))
    assert tokyo[-1].end == "2024-05-12"
    lima = running(bookmark="2024-05-10", replication_key="day")
    early = dt.datetime(2024, 5, 11, 1, 0, tzinfo=dt.UTC)
    assert [w.end for w in windows(lima, DAY, dates=True, zone="America/Lima", now=lambda: early)] == ["2024-05-11"]
    assert saved_by(lima) == ["2024-05-10"]


def test_a_delay_ends_windows_before_now():
    stream = running(bookmark="2024-05-10T00:00:00Z")
    assert spans(windows(stream, delay=dt.timedelta(minutes=30), now=now)) == [
        ("2024-05-10T00:00:00Z", "2024-05-10T12:00:15Z")
    ]
    days = running(bookmark="2024-05-08", replication_key="day")
    found = list(windows(days, DAY, dates=True, delay=dt.timedelta(hours=13), now=now))
    assert found[-1].end == "2024-05-10" and saved_by(days)[-1] == "2024-05-09"


def test_overlapping_windows_begin_earlier_and_go_on_all_the_same():
    stream = running(bookmark="2024-05-08T00:00:00Z")
    found = spans(windows(stream, DAY, overlap=dt.timedelta(days=3), end="2024-05-10", now=now))
    assert found == [
        ("2024-05-05T00:00:00Z", "2024-05-09T00:00:00Z"),
        ("2024-05-06T00:00:00Z", "2024-05-10T00:00:00Z"),
    ]
    assert saved_by(stream) == ["2024-05-09T00:00:00Z", "2024-05-10T00:00:00Z"]


def test_a_start_date_that_was_moved_behind_the_bookmark_hides_nothing():
    stream = running(bookmark="2024-05-01T00:00:00Z", start_date="2024-05-05T00:00:00Z")
    assert next(windows(stream, DAY, overlap=DAY, now=now)).start == "2024-05-01T00:00:00Z"


def test_no_overlap_reaches_before_the_start_date():
    stream = running(bookmark="2024-05-08T12:00:00Z", start_date="2024-05-08T00:00:00Z")
    assert next(windows(stream, DAY, overlap=DAY, now=now)).start == "2024-05-08T00:00:00Z"
    first = running(bookmark="2024-05-08T00:00:00Z", start_date="2024-05-08T00:00:00Z")
    assert spans(windows(first, DAY, overlap=2 * DAY, end="2024-05-10", now=now)) == [
        ("2024-05-08T00:00:00Z", "2024-05-09T00:00:00Z"),
        ("2024-05-08T00:00:00Z", "2024-05-10T00:00:00Z"),
    ]


@pytest.mark.parametrize(
    ("key", "more", "saved"),
    [
        ("at", {"dates": True, "zone": "Europe/Berlin"}, "2024-05-08T22:00:00Z"),  # midnight in Berlin
        ("day", {"zone": "Europe/Berlin"}, "2024-05-09"),
        ("at", {}, "2024-05-09T00:00:00Z"),
        ("day", {"dates": True}, "2024-05-09"),
    ],
)
def test_the_bookmark_has_the_kind_of_its_key_whatever_windows_are_made_of(key, more, saved):
    stream = running(bookmark="2024-05-08", replication_key=key, schema=FIELDS, start_date="2024-05-08T00:00:00Z")
    found = windows(stream, DAY, now=now, **more)
    next(found).done()
    assert saved_by(stream)[0] == saved


def test_formats_in_unions_count():
    fields = {"at": {"anyOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]}}
    stream = running(bookmark="2024-05-08", start_date="2024-05-08T00:00:00Z", schema={"properties": fields})
    next(windows(stream, DAY, dates=True, now=now)).done()
    assert saved_by(stream) == ["2024-05-09T00:00:00Z"]


def test_a_key_without_a_schema_is_of_the_kind_that_its_bookmark_has():
    stream = running(bookmark="2024-05-08T10:00:00Z", schema={"properties": {"at": {}}})
    next(windows(stream, DAY, dates=True, now=now)).done()
    assert saved_by(stream) == ["2024-05-09T00:00:00Z"]


# ---- where it is noted ---------------------------------------------------------------------------------


def test_keep_state_notes_it_in_the_streams_state_and_goes_on_there():
    stream = running(bookmark="2024-05-09T00:00:00Z", start_date="2024-05-01T00:00:00Z", manual=False)
    for window in windows(stream, DAY, keep="state", now=now):
        if window.end > "2024-05-04":
            break
    assert stream.state == {"window_end": "2024-05-03T00:00:00Z"}
    assert saved_by(stream) == [None, None]  # a STATE may come; the bookmark is the rows' own
    again = running(bookmark="2024-05-01T00:00:00Z", manual=False, state=stream.state)
    assert next(windows(again, DAY, keep="state", now=now)).start == "2024-05-03T00:00:00Z"
    other_field = running(bookmark="2024-05-09T00:00:00Z", manual=False, state=stream.state)
    assert next(windows(other_field, DAY, keep="state", now=now)).start == "2024-05-03T00:00:00Z"


def test_keep_state_vouches_for_no_bookmark():
    """Where the bookmark is the author's own to move, a plain save_bookmark() would move it."""
    stream = running(bookmark="2024-05-01T00:00:00Z")
    list(windows(stream, start="2024-05-01", keep="state", now=now))
    assert stream.state == {"window_end": "2024-05-10T12:30:15Z"} and saved_by(stream) == []


def test_keep_none_notes_nothing():
    stream = running(bookmark="2024-05-01T00:00:00Z", manual=False)
    assert len(list(windows(stream, keep=None, now=now))) == 2
    assert stream.state == {} and saved_by(stream) == []


@pytest.mark.parametrize("keep", ["bookmark", "state"])
def test_a_full_table_begins_at_the_beginning_each_time_and_notes_nothing(keep):
    given = {"replication_method": "FULL_TABLE", "start_date": "2024-05-05T00:00:00Z", "manual": False}
    stream = running(bookmark="2024-05-09T00:00:00Z", state={"window_end": "2024-05-09T00:00:00Z"}, **given)
    assert next(windows(stream, DAY, keep=keep, now=now)).start == "2024-05-05T00:00:00Z"
    assert saved_by(stream) == [] and stream.state == {"window_end": "2024-05-09T00:00:00Z"}


def test_the_bookmark_can_be_moved_by_hand_only_where_that_is_declared():
    with pytest.raises(StreamError, match=r"needs bookmark_strategy='manual'.*\n.*keep='state'"):
        windows(running(manual=False, bookmark="2024-05-01"), now=now)


def test_two_loops_in_one_run_would_take_each_others_place():
    stream = running(bookmark="2024-05-01T00:00:00Z")
    list(windows(stream, now=now))
    with pytest.raises(StreamError, match=r"another loop of this run notes .* the bookmark too.*\n.*state_key"):
        windows(stream, now=now)
    for account in "ab":
        list(windows(stream, start="2024-05-01", now=now, keep="state", state_key=f"window_end {account}"))
    with pytest.raises(StreamError, match=r"stream.state.'window_end a'."):
        windows(stream, start="2024-05-01", now=now, keep="state", state_key="window_end a")
    assert len(list(windows(stream, now=now, keep=None))) == len(list(windows(stream, now=now, keep=None))) == 2


def test_a_retry_may_run_the_same_loop_again():
    stream = running(bookmark="2024-05-01T00:00:00Z")
    list(windows(stream, now=now))
    stream.state = {}  # as the engine does for a further try
    assert len(list(windows(stream, now=now))) == 2


# ---- wrong input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"size": "fortnight"}, r"stream 'rows': windows\(\): size 'fortnight' is unknown"),
        ({"size": dt.timedelta(0)}, "size is 0:00:00"),
        ({"overlap": -DAY}, "overlap is -1 day"),
        ({"overlap": 5}, "overlap is 5; it must be a timedelta"),
        ({"delay": -DAY}, "delay is -1 day"),
        ({"end": "tomorrow"}, "end is 'tomorrow'"),
        ({"zone": "Europe/Nowhere"}, "zone 'Europe/Nowhere' is unknown"),
        ({"keep": "file"}, "keep='file' is unknown. Known: 'bookmark', 'state', None"),
        ({"now": lambda: dt.datetime(2024, 1, 1)}, r"now\(\) gave datetime.datetime\(2024"),  # noqa: DTZ001
        ({"now": lambda: "2024-01-01"}, r"now\(\) gave '2024-01-01'"),
        ({"dates": True, "size": dt.timedelta(hours=36)}, "whole days"),
        ({"size": lambda start: start}, "that begins at 2024-05-01T00:00:00Z"),
    ],
)
def test_what_makes_no_windows_is_an_error_with_the_streams_name(wrong, says):
    stream = running(bookmark="2024-05-01T00:00:00Z")
    with pytest.raises(StreamError, match=says):
        list(windows(stream, **{"now": now, **wrong}))


@pytest.mark.parametrize("bookmark", [17, "abc", 1.5, True])
def test_a_bookmark_that_is_no_time_is_an_error(bookmark):
    with pytest.raises(StreamError, match=r"the bookmark is .*For numbers there is id_ranges"):
        windows(running(bookmark=bookmark), now=now)


# ---- in a run ------------------------------------------------------------------------------------------


def quiet(stream):
    """A source without a row."""
    for _window in windows(stream, DAY, start="2024-05-01", now=now):
        yield []


def test_an_empty_source_does_not_begin_at_the_beginning_every_night():
    tap = tap_of(quiet)
    out = run_tap(tap)
    assert out.states[-1] == {"bookmarks": {"rows": {"at": "2024-05-10T12:30:15Z"}}}
    again = run_tap(tap, state=out.states[-1])
    assert again.states[-1] == out.states[-1]


def test_in_a_run_each_window_that_is_out_is_in_the_state():
    def source(stream):
        for window in windows(stream, DAY, start="2024-05-01", now=now):
            if window.start > "2024-05-04":
                raise ConnectionError("gone")
            yield {"id": 1, "at": window.start}

    out = run_tap(tap_of(source))
    assert out.result.exit_code == 1
    assert [row["at"][:10] for row in out.records("rows")] == ["2024-05-01", "2024-05-02", "2024-05-03"]
    assert out.states[-1]["bookmarks"]["rows"]["at"] == "2024-05-04T00:00:00Z"


def test_the_declared_lookback_goes_back_for_the_first_window_and_not_in_the_state():
    def source(stream):
        for window in windows(stream, DAY, now=now):
            yield {"id": 1, "at": window.start}
            if window.start >= "2024-05-04":
                raise ConnectionError("gone")

    tap = tap_of(source, lookback=dt.timedelta(days=3))
    state = {"bookmarks": {"rows": {"at": "2024-05-06T00:00:00Z"}}}
    out = run_tap(tap, state=state)
    assert [row["at"][:10] for row in out.records("rows")] == ["2024-05-03", "2024-05-04"]
    assert out.states[-1]["bookmarks"]["rows"]["at"] == "2024-05-06T00:00:00Z", "each broken run would go further back"


def test_the_declared_lookback_counts_for_what_is_kept_in_the_state_too():
    starts = []

    def source(stream):
        for window in windows(stream, DAY, start="2024-05-01", keep="state", now=now):
            starts.append(window.start)
            yield []

    tap = tap_of(source, lookback=dt.timedelta(hours=2), bookmark_strategy=None)
    out = run_tap(tap)
    assert out.states[-1]["bookmarks"]["rows"] == {"stream_state": {"window_end": "2024-05-10T12:30:15Z"}}
    del starts[:]
    again = run_tap(tap, state=out.states[-1])
    assert starts == ["2024-05-10T10:30:15Z"]
    assert again.states[-1] == out.states[-1]


def test_a_lookback_in_numbers_counts_days_for_a_key_that_is_a_date():
    starts = []

    def source(stream):
        for window in windows(stream, DAY, dates=True, now=now):
            starts.append(window.start)
            yield []
            if len(starts) == 2:
                raise ConnectionError("gone")

    tap = tap_of(source, replication_key="day", lookback=3)
    out = run_tap(tap, state={"bookmarks": {"rows": {"day": "2024-05-08"}}})
    assert starts == ["2024-05-05", "2024-05-06"]
    assert out.states[-1]["bookmarks"]["rows"]["day"] == "2024-05-08"


def test_a_lookback_to_the_beginning_of_time_moves_nothing_forward():
    """How far the saved bookmark lies behind can't be told then: what is noted is where the window ends."""

    def source(stream):
        for window in windows(stream, "year", now=now):
            yield []
            if window.start >= "2020":
                raise ConnectionError("gone")

    tap = tap_of(source, lookback=dt.timedelta(days=999_999))
    out = run_tap(tap, state={"bookmarks": {"rows": {"at": "2024-05-08T00:00:00Z"}}})
    assert out.states[-1]["bookmarks"]["rows"]["at"] == "2020-01-01T00:00:00Z"


def test_a_retry_that_is_given_an_earlier_bookmark_notes_what_is_out_and_no_more():
    """The lookback says nothing of that bookmark: it is not the saved one less so much."""
    tries = []

    def source(stream):
        tries.append(stream.bookmark)
        if len(tries) == 1:
            raise KeyError("file is gone")
        for window in windows(stream, DAY, now=now):
            yield []
            if len(tries) == 2 and window.start >= "2024-04-02":
                raise ConnectionError("gone")

    given = {"retry_sync_on": KeyError, "setup_retry": lambda: "2024-04-01T00:00:00Z", "lookback": dt.timedelta(days=9)}
    out = run_tap(tap_of(source, **given), state={"bookmarks": {"rows": {"at": "2024-05-06T00:00:00Z"}}})
    assert tries == ["2024-04-27T00:00:00Z", "2024-04-01T00:00:00Z"]
    assert out.states[-1]["bookmarks"]["rows"]["at"] == "2024-04-02T00:00:00Z"


def test_a_stream_that_is_selected_later_gets_its_past():
    def source(stream):
        for window in windows(stream, DAY, start="2024-05-08", keep="state", now=now):
            yield {"id": window.start_at.day, "at": window.start}
            yield "beside", {"id": window.start_at.day}

    tap = tap_of(source, replication_key=None, bookmark_strategy=None, replication_method="LOG_BASED")
    tap.stream("beside", emitted_by="rows", key_properties="id", schema=FIELDS)
    out = run_tap(tap, select="rows")
    assert [row["id"] for row in run_tap(tap, state=out.states[-1]).records("beside")] == [8, 9, 10]
    both = run_tap(tap)
    assert both.states[-1]["bookmarks"]["rows"]["stream_state"]["window_end_streams"] == ["beside", "rows"]
    assert run_tap(tap, state=both.states[-1]).records("beside") == []


def test_a_substream_can_note_nothing():
    def children(stream):
        yield from ({"id": 1} for _ in windows(stream, DAY, start="2024-05-09", keep="state", now=now))

    tap = tap_of(lambda stream: iter([{"id": 1, "at": "2024-05-01T00:00:00Z"}]), bookmark_strategy=None)
    tap.sync("children", parent="rows", key_properties="id", schema=FIELDS)(children)
    out = run_tap(tap)
    assert "keep='state' would mix parents up" in str(out.result.errors["children"].failures[0].error)


def test_the_time_given_is_what_the_tests_here_take_it_for():
    assert now() is NOW
