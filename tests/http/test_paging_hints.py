"""What is said where one page was read and there may be more."""

from __future__ import annotations

import logging

import pytest

from burler.http import Cursor, LinkHeader, NextUrl, SinglePage
from support.servers import client_of, warnings_of


@pytest.mark.parametrize(
    ("beside", "names"),
    [
        ({"paging": {"next": "http://x/2"}}, "paging.next"),
        ({"has_more": True}, "has_more"),
        ({"nextPageToken": "abc"}, "nextPageToken"),
        ({"@odata.nextLink": "http://x/2"}, "@odata.nextLink"),
        ({"_links": {"next": {"href": "/2"}}}, "_links.next"),
        ({"meta": {"total_pages": 3}}, "meta.total_pages"),
        ({"next_page": 2}, "next_page"),
        ({"cursor": "abc"}, "cursor"),
        ({"isLast": False}, "isLast"),
        ({"truncated": True}, "truncated"),
        ({"page": 1, "pages": "3"}, "pages"),
        ({"meta": {"page": {"number": 1}}, "total": 30, "limit": 1}, "total"),
        ({"totalResults": 2}, "totalResults"),
        ({"links": [{"rel": "self", "href": "/1"}, {"rel": "next", "href": "/2"}]}, "links"),
        ({"offset": "itr7/rec9"}, "offset"),
        ({"paging": {"next": {"after": "20"}}}, "paging.next"),
    ],
)
@pytest.mark.parametrize("asked", ["pages", "rows"])
def test_more_pages_than_the_usual_paginator_sees_are_told(serve, caplog, beside, names, asked):
    """A full table would be cut to its first page, and nobody would know."""
    client = client_of(serve(lambda asked: {"data": [{"id": 1}], **beside}), records_path="data")
    for paginator in (None, LinkHeader()):
        asking = {"paginator": paginator}
        assert len(list(getattr(client, asked)("/things", **asking))) == 1
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == 1
    assert f"GET /things: one page was read, though '{names}' of the reply says that there are more" in told[0]
    place = f"['{names}']" if names.startswith("@") else f"'{names}'"  # a name with a dot in it
    assert (f"Say paginator=burler.http.NextUrl({place}), or" in told[0]) == ("http://x/2" in str(beside))
    assert "http://" not in told[0]
    caplog.clear()
    assert len(list(getattr(client, asked)("/others", paginator=SinglePage()))) == 1
    assert warnings_of(caplog) == []


@pytest.mark.parametrize(
    "body",
    [
        {"data": [{"id": 1, "next": "b"}], "next": None, "has_more": False, "meta": {"total_pages": 1, "next": ""}},
        {"data": {"next": "x", "items": []}},
        {"data": [{"id": 1}], "next": "https://x/2", "has_more": False},
        {"data": [{"id": 1}], "cursor": "abc", "paging": {"hasNextPage": False}},
        {"data": [{"id": 1}], "cursor": "abc", "done": True},
        {"data": [{"id": 1}], "page": 3, "pages": 3, "total": 1, "limit": 5, "offset": 0, "next": "  "},
        {
            "data": [{"id": 1}],
            "price": 12,
            "total": 4711,
            "links": [{"rel": "prev", "href": "/0"}],
            "n" * 500: 7,
            "nexts": [1],
        },
        {"data": [], "links": {"next": None}, "text": "more", "count": 7, "more_info": "see below"},
        {"data": [{"id": 1}], "": 1, "\ud800": {"": {"": "next"}}},
        [{"id": 1, "has_more": True}],
        {"id": 1, "has_more": True, "next": "Tuesday"},
    ],
)
def test_nothing_is_told_where_no_further_page_is_named(serve, caplog, body):
    list(client_of(serve(lambda asked: body), records_path="data" if "data" in body else "").pages("/things"))
    assert warnings_of(caplog) == []


def test_a_next_page_beside_rows_that_stand_deeper_is_seen(serve, caplog):
    body = {"d": {"results": [{"id": 1, "text": "x" * 20_000}], "__next": "http://x/2"}}
    list(client_of(serve(lambda asked: body), records_path="d.results").pages("/things"))
    assert "'d.__next' of the reply says that there are more" in caplog.text


def test_each_endpoint_is_told_of_but_not_each_of_a_thousand_parents(serve, caplog):
    client = client_of(serve(lambda asked: {"data": [], "has_more": True}), records_path="data")
    for path in ["/a", "/b", "/b?x=1", *(f"/b/{number}/c" for number in range(50))]:
        list(client.pages(path))
    assert len(warnings_of(caplog)) == 3
    for number in range(50):
        list(client.pages(f"/b/{number}/d", endpoint="/b/{id}/d"))
    assert len(warnings_of(caplog)) == 4
    for letter in "abcdefghijklmnopqrstuvwxyz":
        list(client.pages(f"/of/{letter}"))
    assert len(warnings_of(caplog)) == 10


@pytest.mark.parametrize(
    ("paginator", "beside", "said"),
    [
        (
            Cursor("paging.nxt"),
            {"paging": {"next": "c2"}},
            "'paging.next' says that there are more. Names there: 'next'",
        ),
        (Cursor("cursr"), {"cursor": "c2"}, "though 'cursor' says that there are more"),
        (NextUrl("weitr"), {"weiter": "/2"}, "Names there: 'data', 'weiter'"),
        (Cursor("meta.after"), {"meta": {"seite": 1}}, "Names there: 'seite'"),
        (NextUrl("links.next"), {"links": {"next": None}, "total_pages": 2}, "though 'total_pages' says"),
        (NextUrl(("links", "next")), {"links": {}, "has_more": True}, "though 'has_more' says"),
        (Cursor("header:X-Nxt"), {"has_more": True}, "nothing at 'header:X-Nxt'"),
        (Cursor("header:X-Seiter"), {}, "'x-seite'"),
    ],
)
def test_a_misspelt_place_is_a_warning(serve, caplog, paginator, beside, said):
    server = serve(lambda asked: (200, {"X-Seite": "2"}, {"data": [{"id": 1}], **beside}))
    client = client_of(server, records_path="data")
    for _ in range(2):
        assert len(list(client.rows("/things", paginator=paginator))) == 1
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == 1 and told[0].startswith("GET /things: one page; nothing at '") and said in told[0]


@pytest.mark.parametrize(
    ("paginator", "body"),
    [
        (Cursor("next_page_token"), {"data": [{"id": 1}], "kind": "list", "prev_page_token": "a"}),
        (Cursor("next"), {"data": [{"id": 1}], "nxt": None}),
        (Cursor("meta.next"), {"data": [], "meta": {"count": 0}}),
        (Cursor("meta.next"), {"data": [{"id": 1}], "meta": {"next": None, "count": 1}}),
        (Cursor("next", more="has_more"), {"data": [{"id": 1}], "next": "c2", "has_more": False}),
        (Cursor("next", more="more"), {"data": [{"id": 1}], "more": 0, "total_pages": 9}),
        (Cursor("data.-1.id", more="has_more"), {"data": [], "has_more": False}),
        (Cursor("next", end_values=["-"]), {"data": [{"id": 1}], "next": "-"}),
        (NextUrl("paging.next.link"), {"data": [{"id": 1}]}),
        (Cursor("header:X-Next"), {"data": [{"id": 1}]}),
    ],
)
def test_a_source_that_leaves_its_cursor_out_behind_the_last_page_is_no_warning(serve, caplog, paginator, body):
    list(client_of(serve(lambda asked: body), records_path="data").pages("/things", paginator=paginator))
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []


@pytest.mark.parametrize(
    ("paginator", "beside"),
    [
        (NextUrl("paging.next"), {"paging": {}}),
        (NextUrl("paging.next"), {"paging": {"prev": None, "total": 1, "limit": 100}}),
        (NextUrl("paging.next"), {"paging": {"cursors": {"before": "MTA", "after": "MTA"}}}),
        (NextUrl("paging.next"), {"paging": {"previous": "http://x/1", "self": "http://x/2", "page": 2}}),
        (NextUrl("links.next"), {"links": {"self": "http://x/1", "first": "http://x/1", "last": "http://x/1"}}),
        (Cursor("meta.next_cursor"), {"meta": {"count": 1, "limit": 100, "request_id": "ab12"}}),
        (Cursor("paging.next.after"), {"paging": {"prev": {"before": "a"}}}),
    ],
)
def test_a_source_that_leaves_the_place_out_beside_other_names_is_no_warning(serve, caplog, paginator, beside):
    """Nothing else there could lead on."""
    client = client_of(serve(lambda asked: {"data": [{"id": 1}], **beside}), records_path="data")
    assert len(list(client.rows("/things", paginator=paginator))) == 1
    assert warnings_of(caplog) == []


def test_where_a_next_page_should_be_named_and_nothing_is_there_the_log_says_so_once(serve, caplog):
    caplog.set_level(logging.INFO)
    server = serve(lambda asked: {"items": [], "pagination": {"nxt": None}})
    client = client_of(server)
    for path in ("/things", "/things", "/things/1", "/things/2"):
        list(client.pages(path, paginator=Cursor("pagination.next"), records_path="items"))
    said = [record.getMessage() for record in caplog.records if "one page" in record.getMessage()]
    assert said == [
        f"GET {path}: one page; nothing at 'pagination.next' of the reply names a next one. Names there: 'nxt'"
        for path in ("/things", "/things/1")
    ]
    caplog.clear()
    list(client.pages("/others", paginator=Cursor("pagination.nxt"), records_path="items"))
    assert "one page" not in caplog.text
