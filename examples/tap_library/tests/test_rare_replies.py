"""Replies that datasette seldom or never gives, and what the tap makes of them: `responses` answers in its place."""

import json
import re

import pytest
import responses

import tap_library
from burler.testing import canary, run_tap

URL = "http://library.example"
TOKEN = canary("library-rare")
BOOK = {"isbn": "1", "title": "t", "author": 1, "year": None, "price": 1.5, "languages": "[]"}
BOOKS = [{**BOOK, "isbn": str(n), "updated_at": f"2024-05-0{n}T00:00:00Z"} for n in (1, 2, 3)]
AUTHORS = b'{"id": 1, "name": "Ana", "born": null, "died": null}\n{"id": 2, "name": "Bo", "born": 1970, "died": null}'


@pytest.fixture
def http():
    """Answers for this test alone; what is not among them is no answer."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        mock.get(f"{URL}/-/versions.json", json={"datasette": {"version": "0.65"}})
        yield mock


def run(select, state=None):
    config = {"base_url": URL, "access_token": TOKEN, "max_wait_seconds": 0.05}
    return run_tap(tap_library.tap, config, state=state, select=select)


def error_of(out, stream):
    assert set(out.result.errors) == {stream}
    text = str(out.result.errors[stream])
    assert TOKEN not in text
    return text


def asked(http, path):
    return [call.request for call in http.calls if call.request.url.startswith(URL + path)]


def page(rows, following=None):
    return {"rows": rows, "next": following and "x", "next_url": following}


def test_a_page_of_html_is_asked_for_once_more(http):
    """A proxy's error page with status 200; then the rows, as if nothing had been."""
    http.get(f"{URL}/library/authors.json", body="<html>busy</html>", content_type="text/html")
    http.get(f"{URL}/library/authors.json", body=AUTHORS)
    out = run("authors")
    assert not out.result.errors
    assert [row["name"] for row in out.records("authors")] == ["Ana", "Bo"]


def test_html_for_good_is_an_error_and_stops_no_other_stream(http):
    http.get(f"{URL}/library/authors.json", body="<html>sign in</html>", content_type="text/html")
    http.get(f"{URL}/library/books.json", json=page(BOOKS))
    out = run("authors,books")
    text = error_of(out, "authors")
    assert "/library/authors.json" in text and "<html>sign in" in text
    assert len(out.records("books")) == 3
    assert "ACTIVATE_VERSION" not in [m["type"] for m in out.messages if m.get("stream") == "authors"][2:]


def test_a_next_page_at_another_host_is_not_asked_for(http):
    http.get(f"{URL}/library/books.json", json=page(BOOKS[:2], "http://elsewhere.example/library/books.json?_next=x"))
    out = run("books")
    text = error_of(out, "books")
    assert "elsewhere.example" in text and "/library/books.json" in text
    assert len(out.records("books")) == 2
    assert all(call.request.url.startswith(URL) for call in http.calls)


def test_pages_that_go_in_a_circle_end(http):
    http.get(f"{URL}/library/books.json", json=page(BOOKS[:1], f"{URL}/library/books.json?_next=a"))
    out = run("books")
    assert "circle" in error_of(out, "books")
    assert len(asked(http, "/library/books.json")) <= 3


def test_a_book_that_is_gone_fails_its_summary_alone_and_the_next_run_begins_there(http):
    http.get(f"{URL}/library/books.json", json=page(BOOKS))
    http.get(re.compile(f"{URL}/library/books/[13].json"), json={"rows": [{"isbn": "x", "summary": "s"}]})
    http.get(f"{URL}/library/books/2.json", json={"ok": False, "error": "Record not found"}, status=404)
    out = run("books,summaries")
    assert "first parent books isbn=2" in error_of(out, "summaries")
    (failure,) = out.result.errors["summaries"].failures
    assert "404" in str(failure.error) and "/library/books/2.json" in str(failure.error)
    assert len(out.records("books")) == 3 and len(out.records("summaries")) == 2
    assert out.states[-1]["bookmarks"]["books"]["updated_at"] == BOOKS[1]["updated_at"]
    assert len(asked(http, "/library/books/2.json")) == 1  # 404 is an answer: no second try


def test_a_library_that_is_closed_for_hours_says_so(http):
    """503 with a Retry-After far beyond max_wait_seconds: no waiting, and the error says how long it asked for."""
    http.get(f"{URL}/library/authors.json", status=503, headers={"Retry-After": "7200"}, body="closed")
    text = error_of(run("authors"), "authors")
    assert "503" in text and "7200" in text.replace(",", "")
    assert len(asked(http, "/library/authors.json")) == 1


def test_a_304_that_nobody_asked_for_is_no_answer(http):
    http.get(f"{URL}/library/authors.json", status=304)
    out = run("authors")
    assert "304" in error_of(out, "authors")


def test_a_library_that_has_lost_its_etag_is_read_each_time(http):
    """The state forgets what it knew."""
    rows = [{"id": "central", "name": "Central", "address": None, "opened": None}]
    http.get(f"{URL}/library/branches.json", json=rows, headers={"ETag": '"1"'})
    first = run("branches")
    assert first.states[-1]["bookmarks"]["branches"]["source_state"][0]["value"] == '"1"'
    http.replace(responses.GET, f"{URL}/library/branches.json", json=rows)
    second = run("branches", first.states[-1])
    assert second.records("branches") == rows
    assert "source_state" not in second.states[-1]["bookmarks"]["branches"]
    run("branches", second.states[-1])
    sent = [request.headers.get("If-None-Match") for request in asked(http, "/library/branches.json")]
    assert sent == [None, '"1"', None]


def test_rooms_that_can_not_be_had_are_asked_for_again_with_the_branches(http):
    """The branches' ETag is not kept: with it, the next run would not even look at the rooms."""
    rows = [{"id": name, "name": name, "address": None, "opened": None} for name in ("central", "hill")]
    broken = {"hill"}

    def rooms(request):
        branch = request.params["branch"]
        return (
            (404, {}, "")
            if branch in broken
            else (200, {}, json.dumps([{"id": len(branch), "branch": branch, "name": "Attic"}]))
        )

    http.get(f"{URL}/library/branches.json", json=rows, headers={"ETag": '"1"'})
    http.add_callback(responses.GET, f"{URL}/library/rooms.json", rooms)
    first = run("branches,rooms")
    error_of(first, "rooms")
    assert [m["type"] for m in first.messages if m.get("stream") == "rooms"] == ["SCHEMA", "ACTIVATE_VERSION", "RECORD"]
    broken.clear()
    second = run("branches,rooms", first.states[-1])
    assert not second.result.errors
    assert [row["id"] for row in second.records("rooms")] == [7, 4] and len(second.records("branches")) == 2
    assert [request.headers.get("If-None-Match") for request in asked(http, "/library/branches.json")] == [None, None]


def test_a_redirect_to_another_host_gets_no_token(http):
    http.get(f"{URL}/library/authors.json", status=302, headers={"Location": "http://elsewhere.example/authors"})
    http.get("http://elsewhere.example/authors", body=AUTHORS)
    run("authors")
    assert [call.request.url for call in http.calls if "elsewhere" in call.request.url]
    for call in http.calls:
        if "elsewhere" in call.request.url:
            assert "Authorization" not in call.request.headers
        else:
            assert call.request.headers["Authorization"] == f"Bearer {TOKEN}"
