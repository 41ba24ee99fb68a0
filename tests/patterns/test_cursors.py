"""Pages that name the next one: where an interrupted run goes on, circles, tokens that go on in the next run."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources import FIELDS, lost_from_any_state, running, saved_by, tap_of

import burler
from burler.errors import StreamError
from burler.patterns import cursor_pages
from burler.testing import run_tap

PLAIN = {"replication_key": None, "bookmark_strategy": None, "replication_method": "LOG_BASED"}


class Pages:
    """Pages 0, 1, 2 ... of two rows; the cursor is text."""

    def __init__(self, count, fails_at=None):
        self.count = count
        self.fails_at = fails_at
        self.asked = []

    def __call__(self, cursor):
        self.asked.append(cursor)
        if len(self.asked) == self.fails_at:
            raise ConnectionError("gone")
        number = 0 if cursor is None else int(cursor.removeprefix("page "))
        rows = [{"id": 2 * number}, {"id": 2 * number + 1}]
        return rows, f"page {number + 1}" if number + 1 < self.count else None


def stream_of(**more):
    return running(**{"manual": False, **more})


def rows_of(items):
    return [row for item in items for row in (item if isinstance(item, list) else [item])]


def test_pages_come_in_their_order_and_the_cursor_is_gone_at_the_end():
    stream = stream_of()
    source = Pages(3)
    assert rows_of(cursor_pages(stream, source)) == [{"id": i} for i in range(6)]
    assert source.asked == [None, "page 1", "page 2"]
    assert stream.state == {}
    assert saved_by(stream) == [None, None, None], "a STATE may come behind each page"


def test_the_cursor_in_the_state_is_that_of_the_page_that_is_not_out_yet():
    stream = stream_of()
    pages = cursor_pages(stream, Pages(3))
    next(pages)
    assert stream.state == {}
    next(pages)
    assert stream.state == {"cursor": "page 1"}
    pages.close()
    assert stream.state == {"cursor": "page 1"}
    source = Pages(3)
    assert rows_of(cursor_pages(stream_of(state=stream.state), source)) == [{"id": i} for i in range(2, 6)]
    assert source.asked == ["page 1", "page 2"]


@pytest.mark.parametrize("form", [iter, list, tuple, lambda rows: (row for row in rows)])
def test_a_page_that_is_an_iterator_is_out_before_its_cursor_is_noted(form):
    stream = stream_of()

    def fetch(cursor):
        rows, following = Pages(2)(cursor)
        return form(rows), following

    states = [dict(stream.state) for _row in rows_of(cursor_pages(stream, fetch))]
    assert states == [{}] * 4
    stream = stream_of()
    seen = []
    for item in cursor_pages(stream, fetch):
        seen += [(row["id"], stream.state.get("cursor")) for row in (item if isinstance(item, list) else [item])]
    assert seen == [(0, None), (1, None), (2, "page 1"), (3, "page 1")]


def test_pages_of_bytes_go_through():
    assert list(cursor_pages(stream_of(), lambda _cursor: (b'[{"id": 1}]', None))) == [b'[{"id": 1}]']


def test_an_empty_page_is_not_the_end():
    def fetch(cursor):
        return ([], 0) if cursor is None else ([{"id": cursor}], cursor + 1 if cursor < 2 else None)

    assert rows_of(cursor_pages(stream_of(), fetch)) == [{"id": 0}, {"id": 1}, {"id": 2}]


@pytest.mark.parametrize("end", [None, "", False])
def test_what_says_that_there_is_no_next_page(end):
    stream = stream_of()
    assert rows_of(cursor_pages(stream, lambda _cursor: ([{"id": 1}], end))) == [{"id": 1}]
    assert stream.state == {}


# ---- circles -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("following", [{None: "a", "a": "a"}, {None: "a", "a": "b", "b": "c", "c": "a"}])
def test_pages_that_go_round_in_a_circle_are_an_error(following):
    out = []
    with pytest.raises(StreamError, match=r"stream 'rows': the pages go round in a circle: cursor 'a' came before"):
        for item in cursor_pages(stream_of(), lambda cursor: ([{"id": 1}], following[cursor])):
            out += item
    assert len(out) == len(following), "the rows of all pages are out"


def test_a_kept_cursor_belongs_to_the_circle_and_the_error_says_where_it_stands():
    stream = stream_of(state={"cursor": {"page": 1}})
    asked = []

    def fetch(cursor):
        asked.append(cursor)
        return [], {"page": 1}

    with pytest.raises(StreamError, match=r"bookmarks.rows.stream_state.cursor"):
        list(cursor_pages(stream, fetch))
    assert asked == [{"page": 1}]
    with pytest.raises(StreamError) as failed:
        list(cursor_pages(stream_of(), lambda _cursor: ([], 1), keep=False))
    assert "stream_state" not in str(failed.value)


@given(st.integers(0, 30), st.integers(1, 30))
def test_no_circle_goes_unseen(before, around):
    asked = []

    def fetch(cursor):
        asked.append(cursor)
        place = 0 if cursor is None else cursor
        return [], place + 1 if place < before + around else before + 1

    with pytest.raises(StreamError, match="circle"):
        list(cursor_pages(stream_of(), fetch))
    assert len(asked) == before + around + 1


# ---- keeping or not ------------------------------------------------------------------------------------


def test_keep_false_keeps_nothing():
    stream = stream_of(state={"cursor": "page 1"})
    source = Pages(3)
    list(cursor_pages(stream, source, keep=False))
    assert source.asked[0] is None
    assert stream.state == {"cursor": "page 1"} and saved_by(stream) == []


def test_a_cursor_that_has_expired_begins_anew_if_that_is_declared(caplog):
    class Gone(Exception):
        pass

    def fetch(cursor):
        if cursor == "old":
            raise Gone("410")
        return Pages(2)(cursor)

    with pytest.raises(Gone):
        list(cursor_pages(stream_of(state={"cursor": "old"}), fetch))
    assert rows_of(cursor_pages(stream_of(state={"cursor": "old"}), fetch, expired=Gone)) == [
        {"id": i} for i in range(4)
    ]
    assert "the cursor in the state has expired (410)" in caplog.text

    def always_gone(cursor):
        raise Gone("always")

    for state in ({"cursor": "old"}, {}):
        with pytest.raises(Gone, match="always"):
            list(cursor_pages(stream_of(state=state), always_gone, expired=(Gone, KeyError)))


def test_an_error_on_a_later_page_is_no_expired_cursor():
    source = Pages(3, fails_at=2)
    with pytest.raises(ConnectionError):
        list(cursor_pages(stream_of(state={"cursor": "page 0"}), source, expired=ConnectionError))
    assert source.asked == ["page 0", "page 1"]


def test_two_loops_with_one_key_are_an_error():
    stream = stream_of()
    list(cursor_pages(stream, Pages(1)))
    with pytest.raises(StreamError, match=r"another loop of this run .* stream.state\['cursor'\].*\n.*state_key"):
        cursor_pages(stream, Pages(1))
    list(cursor_pages(stream, Pages(1), state_key="cursor of b"))


# ---- tokens of changes ---------------------------------------------------------------------------------


class Changes:
    """A log of changes, two a page; the token says how many were read."""

    def __init__(self, log):
        self.log = log

    def __call__(self, token):
        at = int(token or 0)
        rows = self.log[at : at + 2]
        return [{"id": number} for number in rows], str(at + len(rows)), at + 2 < len(self.log)


def test_a_token_that_comes_with_the_last_page_is_where_the_next_run_goes_on():
    source = Changes([1, 2, 3])

    def rows(stream):
        yield from cursor_pages(stream, source, resume_at_end=True)

    tap = tap_of(rows, **PLAIN)
    out = run_tap(tap)
    assert [row["id"] for row in out.records("rows")] == [1, 2, 3]
    assert out.states[-1] == {"bookmarks": {"rows": {"stream_state": {"cursor": "3"}}}}
    again = run_tap(tap, state=out.states[-1])
    assert again.records("rows") == [] and again.states[-1] == out.states[-1]
    source.log += [4, 5, 6]
    more = run_tap(tap, state=again.states[-1])
    assert [row["id"] for row in more.records("rows")] == [4, 5, 6]


def test_without_resume_at_end_the_token_is_dropped():
    stream = stream_of()
    list(cursor_pages(stream, Changes([1, 2, 3])))
    assert stream.state == {}


def test_without_a_token_the_last_page_comes_again():
    stream = stream_of()
    list(cursor_pages(stream, Pages(3), resume_at_end=True))
    assert stream.state == {"cursor": "page 2"}
    longer = Pages(5)
    assert rows_of(cursor_pages(stream_of(state=stream.state), longer, resume_at_end=True))[0] == {"id": 4}
    single = stream_of()
    list(cursor_pages(single, Pages(1), resume_at_end=True))
    assert single.state == {}


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ([{"id": 1}], "gave a value of type list. It gives .rows, next cursor."),
        (([], 1, "yes"), "gave a value of type tuple"),
        (([],), "gave a value of type tuple"),
        (None, "gave a value of type NoneType"),
        (([], None, True), "says that there is a next page, and gave None as its cursor"),
        ((None, "a"), "gave None for its rows"),
        (({"items": []}, "a"), "gave one dict, not rows"),
    ],
)
def test_a_reply_that_is_none_is_an_error(reply, says):
    with pytest.raises(StreamError, match=says):
        list(cursor_pages(stream_of(), lambda _cursor: reply))


# ---- in a run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["LOG_BASED", "INCREMENTAL", "FULL_TABLE"])
@pytest.mark.parametrize("fails_at", range(1, 7))
def test_no_row_is_lost_whenever_the_run_is_killed(fails_at, method):
    options = {**PLAIN, "replication_method": method, "replication_key": "id" if method == "INCREMENTAL" else None}

    def tap(fails_at=None):
        return tap_of(lambda stream: cursor_pages(stream, Pages(5, fails_at)), **options)

    if method != "FULL_TABLE":
        assert lost_from_any_state(tap(fails_at), tap(), set(range(10))) == set()
        return
    broken = run_tap(tap(fails_at))
    whole = run_tap(tap(), state=broken.states[-1])
    versions = {m["version"] for m in whole.messages if m["type"] == "RECORD"}
    (version,) = versions
    assert [row["id"] for row in whole.records("rows")] == list(range(10)), "targets drop rows of other versions"
    assert whole.messages[-2] == {"type": "ACTIVATE_VERSION", "stream": "rows", "version": version}


def test_an_interrupted_run_goes_on_with_its_page():
    source = Pages(50, fails_at=31)
    tap = tap_of(lambda stream: cursor_pages(stream, source), **PLAIN)
    out = run_tap(tap)
    assert out.result.exit_code == 1
    assert out.states[-1]["bookmarks"]["rows"] == {"stream_state": {"cursor": "page 30"}}
    source.fails_at = None
    again = run_tap(tap, state=out.states[-1])
    assert [row["id"] for row in again.records("rows")] == list(range(60, 100))
    assert not again.states[-1].get("bookmarks")


def test_states_come_on_the_way_without_any_strategy():
    out = run_tap(tap_of(lambda stream: cursor_pages(stream, Pages(500)), **PLAIN), {"page_max_rows": 50})
    kept = [state.get("bookmarks", {}).get("rows", {}).get("stream_state", {}).get("cursor") for state in out.states]
    assert len([cursor for cursor in kept if cursor]) > 3
    assert kept[-1] is None


def test_a_full_table_that_should_go_on_at_its_end_begins_anew_and_says_so(caplog):
    tap = tap_of(lambda stream: cursor_pages(stream, Changes([1]), resume_at_end=True), replication_key=None,
                 bookmark_strategy=None)  # fmt: skip
    out = run_tap(tap)
    assert (
        "begins anew each run: it is a full table. For changes alone declare replication_method='LOG_BASED'"
        in caplog.text
    )
    assert len(run_tap(tap, state=out.states[-1]).records("rows")) == 1


def test_a_stream_with_a_signpost_keeps_no_cursor():
    """The bookmark would pass what changed between the interrupted run and the one that goes on."""
    source = Pages(3, fails_at=3)
    tap = tap_of(lambda stream: cursor_pages(stream, source), bookmark_strategy=None, signpost=True)
    out = run_tap(tap)
    assert out.result.exit_code == 1 and "stream_state" not in str(out.states)


@pytest.mark.parametrize("first", ["rows", "beside", "rows,beside"])
def test_a_stream_that_is_selected_later_gets_its_past(first):
    """A cursor is noted with the streams it is true of, where a function emits several."""
    source = Pages(4, fails_at=3)

    def rows(stream):
        for page in cursor_pages(stream, source):
            yield page
            yield "beside", [dict(row) for row in page]

    tap = tap_of(rows, **PLAIN)
    tap.stream("beside", emitted_by="rows", key_properties="id", schema=FIELDS)
    out = run_tap(tap, select=first)
    assert out.states[-1]["bookmarks"]["rows"]["stream_state"]["cursor"] == "page 2"
    source.fails_at = None
    rest = run_tap(tap, state=out.states[-1])
    for stream in ("rows", "beside"):
        assert {row["id"] for run in (out, rest) for row in run.records(stream)} == set(range(8)), stream
    assert (len(rest.records("rows")) == 4) == (first == "rows,beside")


def test_a_substream_keeps_no_cursor_since_its_state_is_one_for_all_parents(caplog):
    asked = []

    def children(stream, parent):
        def fetch(cursor):
            asked.append((parent["id"], cursor))
            if len(asked) == 2:
                raise ConnectionError("gone")
            return [{"id": parent["id"]}], "more" if cursor is None else None

        yield from cursor_pages(stream, fetch)

    tap = burler.tap("tap-families")
    tap.sync("parents", key_properties="id", replication_key="id", schema=FIELDS)(lambda: [{"id": 1}, {"id": 2}])
    tap.sync("children", parent="parents", schema=FIELDS)(children)
    caplog.set_level(logging.CRITICAL)
    out = run_tap(tap)
    assert asked == [(1, None), (1, "more"), (2, None), (2, "more")]
    assert "cursor" not in str(out.states)
