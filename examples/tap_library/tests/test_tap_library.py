"""tap_library as its users run it, against datasette: what arrives, what comes again, what does not."""

import json
from pathlib import Path

import pytest

import tap_library
from burler.testing import run_tap
from tap_library.data import Size

HERE = Path(__file__).parent
STREAMS = tap_library.STREAMS
WHOLE = ("branches", "opening_hours", "closed_days")  # each a single resource that says whether it has changed
PATHS = {
    "branches": ["/library/branches.json"],
    "opening_hours": ["/library/opening_hours.json"],
    "closed_days": ["/library/holidays.json", "/library/closings.json"],
}
KEYS = {"books": "isbn", "summaries": "isbn", "overdue": "loan", "opening_hours": ("branch", "weekday")}


def run(server, state=None, select=None, **config):
    out = run_tap(tap_library.tap, server.config(**config), state=state, select=select)
    assert not out.result.errors, out.result.errors
    return out


def key(stream, row):
    names = KEYS.get(stream, "id")
    return row[names] if isinstance(names, str) else tuple(row[name] for name in names)


def by_key(stream, rows):
    found = {key(stream, row): row for row in rows}
    assert len(found) == len(rows), f"{stream}: a row came twice"
    return found


def held(library):
    """The rows of each stream, from the library's own file."""
    tables = {name: library.rows(name) for name in STREAMS if name not in ("closed_days", "summaries", "books")}
    books = library.rows("books")
    return {
        **tables,
        "books": [{name: value for name, value in book.items() if name != "summary"} for book in books],
        "summaries": [{"isbn": book["isbn"], "summary": book["summary"]} for book in books],
        "closed_days": library.rows("holidays") + library.rows("closings"),
    }


def assert_whole(server, *parts):
    """The rows of some runs together, the last one of each key, are those of the library's file."""
    for name, rows in held(server.library).items():
        came = {key(name, row): row for part in parts for row in part.records(name)}
        assert came == {key(name, row): row for row in rows}, name


def kinds(out, stream):
    return [message["type"] for message in out.messages if message.get("stream") == stream]


def states_of(out, stream):
    return json.dumps(out.states[-1]["bookmarks"][stream])


def test_a_first_run_brings_what_the_file_holds_each_row_once(serve):
    server = serve()
    out = run(server)
    for name, rows in held(server.library).items():
        assert by_key(name, out.records(name)) == by_key(name, rows), name
        assert rows
    bookmarks = out.states[-1]["bookmarks"]
    assert bookmarks["books"]["updated_at"] == max(row["updated_at"] for row in server.library.rows("books"))
    assert {name: entry["updated_at"] for name, entry in bookmarks["loans"]["partitions"].items()} == {
        branch["id"]: max(row["updated_at"] for row in server.library.rows("loans", "branch = ?", branch["id"]))
        for branch in server.library.rows("branches")
    }


def test_pages_are_followed_by_each_kind_of_paginator(serve):
    """Three pages of 100 and 200 rows: the header, the body's URL, the body's token, and by number."""
    server = serve(Size(branches=1, authors=250, books=450, loans=900, events=1))
    out = run(server, select="authors,books,loans,overdue,!books.price")
    asked = [line["path"] for line in server.asked()]
    rows = held(server.library)
    for name, page_rows in {"authors": 100, "books": 200, "loans": 200, "overdue": 100}.items():
        assert len(rows[name]) > 2 * page_rows / (2 if name == "overdue" else 1)
        assert asked.count(f"/library/{name}.json") in (
            -(-len(rows[name]) // page_rows),
            len(rows[name]) // page_rows + 1,
        )
        assert len(out.records(name)) == len(by_key(name, out.records(name))) == len(rows[name])


def test_golden_messages_of_a_small_library(serve):
    """tests/expected.jsonl: the messages of a first run, of one that finds nothing new, and of one that does."""
    server = serve(Size(branches=2, authors=3, books=4, loans=5, events=2))
    messages, state = [], None
    for change in ((), (), ("books", "loans", "branches", "closings")):
        for table in change:
            server.library.change(table)
        out = run(server, state, partition_workers=1)
        messages += out.messages
        state = out.states[-1]
    came = [json.dumps(message, ensure_ascii=False) for message in timeless(messages)]
    assert came == (HERE / "expected.jsonl").read_text(encoding="utf-8").splitlines()


def timeless(messages):
    """What is the same whenever and wherever it is run: the versions of each stream counted from 1, no times, and no
    digests of an address."""
    versions = {}

    def numbered(stream, node):
        if "version" in node:
            known = versions.setdefault(stream, [])
            if node["version"] not in known:
                known.append(node["version"])
            node = {**node, "version": known.index(node["version"]) + 1}
        if "source_state" in node:
            node = {**node, "source_state": [{**entry, "for": "..."} for entry in node["source_state"]]}
        return node

    for message in messages:
        if message["type"] == "STATE":
            value = message["value"]
            bookmarks = {stream: numbered(stream, entry) for stream, entry in value["bookmarks"].items()}
            yield {**message, "value": {**value, "bookmarks": bookmarks}}
        else:
            yield numbered(message["stream"], {name: v for name, v in message.items() if name != "time_extracted"})


def test_a_second_run_brings_what_has_changed(serve):
    server = serve()
    first = run(server)
    changed = {name: set(server.library.change(name, 3)) for name in ("books", "loans")}
    second = run(server, first.states[-1])
    newest = first.states[-1]["bookmarks"]
    boundary = {
        "books": {row["isbn"] for row in first.records("books") if row["updated_at"] == newest["books"]["updated_at"]},
        "loans": {
            row["id"]
            for row in first.records("loans")
            if row["updated_at"] == newest["loans"]["partitions"][row["branch"]]["updated_at"]
        },
    }
    for name in ("books", "loans"):
        came = set(by_key(name, second.records(name)))
        assert changed[name] <= came <= changed[name] | boundary[name]
    assert set(by_key("summaries", second.records("summaries"))) == set(by_key("books", second.records("books")))
    assert {row["loan"] for row in second.records("loan_events")} >= changed["loans"]
    assert_whole(server, first, second)


@pytest.mark.parametrize("stream", WHOLE)
def test_what_has_not_changed_is_not_sent_again(serve, stream):
    """304: SCHEMA alone, the state byte for byte as it was, and no ACTIVATE_VERSION, which would empty the table."""
    server = serve()
    first = run(server, select=stream)
    assert first.records(stream)
    server.asked()
    second = run(server, first.states[-1], select=stream)
    assert kinds(second, stream) == ["SCHEMA"]
    assert states_of(second, stream) == states_of(first, stream)
    assert json.loads(states_of(first, stream))["source_state"]
    asked = [line for line in server.asked() if line["path"] in PATHS[stream]]
    assert [(line["path"], line["status"]) for line in asked] == [(path, 304) for path in PATHS[stream]]


@pytest.mark.parametrize("stream", WHOLE)
def test_what_has_changed_is_read_anew_and_then_not_again(serve, stream):
    server = serve()
    first = run(server, select=stream)
    table = {"closed_days": "closings"}.get(stream, stream)
    server.library.change(table)
    second = run(server, first.states[-1], select=stream)
    if stream == "closed_days":  # the holidays are the same: only the other source is read
        assert by_key(stream, second.records(stream)) == by_key(stream, server.library.rows("closings"))
        assert "ACTIVATE_VERSION" not in kinds(second, stream)
    else:
        assert by_key(stream, second.records(stream)) == by_key(stream, server.library.rows(stream))
        assert kinds(second, stream)[-1] == "ACTIVATE_VERSION"
    assert states_of(second, stream) != states_of(first, stream)
    third = run(server, second.states[-1], select=stream)
    assert kinds(third, stream) == ["SCHEMA"] and states_of(third, stream) == states_of(second, stream)


@pytest.mark.parametrize("stream", WHOLE)
def test_another_selection_is_read_in_full(serve, stream):
    """A 304 would speak of the fields that were asked for last time."""
    server = serve()
    first = run(server, select=stream)
    field = {"branches": "address", "opening_hours": "closes", "closed_days": "reason"}[stream]
    server.asked()
    second = run(server, first.states[-1], select=f"{stream},!{stream}.{field}")
    assert len(second.records(stream)) == len(first.records(stream))
    assert all(field not in row for row in second.records(stream))
    asked = [line for line in server.asked() if line["path"] in PATHS[stream]]
    assert [line["status"] for line in asked] == [200] * len(PATHS[stream])
    assert not any("if-none-match" in line or "if-modified-since" in line for line in asked)
    third = run(server, second.states[-1], select=f"{stream},!{stream}.{field}")
    assert third.records(stream) == []


@pytest.mark.parametrize("stream", WHOLE)
def test_ignored_source_states_are_not_even_sent(serve, stream):
    server = serve()
    first = run(server, select=stream)
    server.asked()
    second = run(server, first.states[-1], select=stream, ignore_source_state=True)
    assert second.records(stream) == first.records(stream)
    asked = [line for line in server.asked() if line["path"] in PATHS[stream]]
    assert not any("if-none-match" in line or "if-modified-since" in line for line in asked)
    assert run(server, second.states[-1], select=stream).records(stream) == []


def test_rooms_of_branches_that_have_not_changed_stay(serve):
    server = serve()
    first = run(server, select="branches,rooms")
    assert by_key("rooms", first.records("rooms")) == by_key("rooms", server.library.rows("rooms"))
    server.asked()
    second = run(server, first.states[-1], select="branches,rooms")
    assert kinds(second, "branches") == kinds(second, "rooms") == ["SCHEMA"]
    assert states_of(second, "rooms") == states_of(first, "rooms")
    assert "/library/rooms.json" not in [line["path"] for line in server.asked()]
    server.library.change("branches")
    third = run(server, second.states[-1], select="branches,rooms")
    assert by_key("rooms", third.records("rooms")) == by_key("rooms", server.library.rows("rooms"))
    assert kinds(third, "rooms")[-1] == "ACTIVATE_VERSION"


def test_rooms_selected_later_come_although_no_branch_has_changed(serve):
    server = serve()
    first = run(server, select="branches")
    second = run(server, first.states[-1], select="branches,rooms")
    assert by_key("rooms", second.records("rooms")) == by_key("rooms", server.library.rows("rooms"))
    third = run(server, second.states[-1], select="branches,rooms")
    assert third.types == ["SCHEMA", "SCHEMA", "STATE"]


def test_rooms_alone_stay_too(serve):
    server = serve()
    first = run(server, select="rooms")
    assert by_key("rooms", first.records("rooms")) == by_key("rooms", server.library.rows("rooms"))
    assert first.records("branches") == []
    second = run(server, first.states[-1], select="rooms")
    assert second.types == ["SCHEMA", "STATE"] and second.states[-1] == first.states[-1]


def test_a_day_that_is_taken_back_goes_once_both_sources_are_read(serve):
    """One source changed: the version of the table stays. Both: a new one, and what is gone is dropped."""
    server = serve()
    first = run(server, select="closed_days")
    server.library.remove("closings", "closing-1")
    second = run(server, first.states[-1], select="closed_days")
    version = {m["version"] for m in first.messages if m["type"] == "RECORD"}
    assert {m["version"] for m in second.messages if m["type"] == "RECORD"} == version
    assert "ACTIVATE_VERSION" not in second.types
    server.library.change("holidays")
    server.library.change("closings")
    third = run(server, second.states[-1], select="closed_days")
    assert by_key("closed_days", third.records("closed_days")) == by_key(
        "closed_days", held(server.library)["closed_days"]
    )
    assert third.types[-2:] == ["ACTIVATE_VERSION", "STATE"]
    assert {m["version"] for m in third.messages if m["type"] == "RECORD"}.isdisjoint(version)


def test_any_number_of_workers_gives_the_same(serve):
    server = serve()
    one = run(server, select="loans,loan_events", partition_workers=1)
    many = run(server, select="loans,loan_events", partition_workers=8)
    for name in ("loans", "loan_events"):
        assert by_key(name, many.records(name)) == by_key(name, one.records(name))
    assert many.states[-1] == one.states[-1]
