"""A list of which more was there than was read: where the reading of pages ends, it is said, in whatever place the
source says it; and nothing is said of a list that is whole."""

from __future__ import annotations

import logging

import pytest

import burler
from burler.http import Cursor, LinkHeader, NextUrl, Offset, PageNumber, SinglePage, UntilEmpty
from burler.testing import bind_stream, run_tap, verify_tap
from support.servers import client_of, warnings_of

ROWS = [{"id": number} for number in range(238)]
SCHEMA = {"properties": {"id": {"type": "integer"}}}


def shop(headers=lambda page: {}, *, beside=lambda page: {}, size=100, rows=ROWS):
    """A source with pages: ``?page=``, or ``?offset=``; the rows stand in a list, or under ``data`` beside others."""

    def answer(asked):
        page = int(asked.query.get("page", 1))
        begin = int(asked.query.get("offset", (page - 1) * size))
        found = rows[begin : begin + size]
        more = {name: value for name, value in headers(page).items() if value is not None}
        said = beside(page)
        return 200, more, {"data": found, **said} if said else found

    return answer


def said(caplog):
    """The only warning."""
    (one,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    return one


# Signs in headers


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"Link": '</orders?page=2>; rel="next"'}, "the header 'Link' says that there are more: 100 rows came"),
        ({"X-Total-Count": "238"}, "the header 'X-Total-Count' says that there are more: 100 of 238 rows came"),
        ({"X-Total": "238"}, "'X-Total' says that there are more: 100 of 238 rows came"),
        ({"X-WP-Total": "238"}, "'X-WP-Total' says that there are more: 100 of 238 rows came"),
        ({"X-Total-Pages": "3", "X-Page": "1"}, "'X-Total-Pages' says that there are more: 100 rows came"),
        ({"X-Total-Pages": "3"}, "'X-Total-Pages' says that there are more"),
        ({"X-Next-Page": "2"}, "'X-Next-Page' says that there are more"),
        ({"X-Has-More": "true"}, "'X-Has-More' says that there are more"),
        ({"Content-Range": "items 0-99/238"}, "'Content-Range' says that there are more"),
        ({"Content-Range": "0-99/238"}, "'Content-Range' says that there are more"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
@pytest.mark.parametrize("paginator", [Cursor("next"), NextUrl(("links", "next")), Cursor("header:X-Nxt"), None])
def test_a_header_that_says_there_is_more_is_a_warning(serve, caplog, headers, says, paginator):
    if paginator is None and "Link" in headers:
        paginator = LinkHeader(rel="later")
    client = client_of(serve(shop(lambda page: headers)))
    assert len(list(client.rows("/orders", paginator=paginator))) == 100
    assert "GET /orders: one page" in said(caplog)
    assert says.partition(":")[0] in said(caplog) and says.rpartition(": ")[2] in said(caplog)
    assert "or paginator=burler.http.SinglePage() if it is all" in said(caplog)


@pytest.mark.parametrize(
    ("beside", "place"),
    [
        (
            {"meta": {"pagination": {"page": 1, "pageCount": 3, "pageSize": 100, "total": 238}}},
            "meta.pagination.pageCount",
        ),
        ({"meta": {"pagination": {"total_pages": 3, "current_page": 1}}}, "meta.pagination.total_pages"),
        ({"meta": {"paging": {"total_count": 238}}}, "meta.paging.total_count"),
        ({"current_page": 1, "last_page": 3, "per_page": 100}, "last_page"),
        (
            {"additional_data": {"pagination": {"more_items_in_collection": True}}},
            "additional_data.pagination.more_items_in_collection",
        ),
        ({"exceededTransferLimit": True}, "exceededTransferLimit"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_signs_two_objects_deep_are_seen(serve, caplog, beside, place):
    client = client_of(serve(shop(beside=lambda page: beside)))
    assert len(list(client.rows("/orders", records_path="data"))) == 100
    assert f"'{place}' of the reply says that there are more" in said(caplog)


@pytest.mark.parametrize(
    "beside",
    [
        {"meta": {"pagination": {"page": 1, "pageCount": 1, "pageSize": 100, "total": 40}}},
        {"meta": {"paging": {"total_count": 40}}},
        {"current_page": 1, "last_page": 1, "per_page": 100},
        {"additional_data": {"pagination": {"more_items_in_collection": False}}},
        {"exceededTransferLimit": False},
    ],
)
def test_such_signs_of_a_whole_list_say_nothing(serve, caplog, beside):
    client = client_of(serve(shop(beside=lambda page: beside, rows=ROWS[:40])))
    assert len(list(client.rows("/orders", records_path="data"))) == 40
    assert not warnings_of(caplog)


def test_the_cure_names_the_paginator_that_follows(serve, caplog):
    for header, value, cure in [
        ("Link", '</a?page=2>; rel="next"', "Say paginator=burler.http.LinkHeader()"),
        ("X-Next-Page", "2", "Say paginator=burler.http.Cursor('header:X-Next-Page', param='page')"),
        ("X-Next-Cursor", "abc", "Say paginator=burler.http.Cursor('header:X-Next-Cursor', param='...')"),
    ]:
        client = client_of(serve(shop(lambda page, one={header: value}: one)))
        list(client.pages("/orders", paginator=Cursor("after")))
        assert cure in said(caplog)
        caplog.clear()


@pytest.mark.parametrize(
    "headers",
    [
        {"Link": '</orders?page=1>; rel="prev", </orders>; rel="first"'},
        {"X-Total-Count": "100"},
        {"X-Total-Count": "many", "X-Total": "-", "X-Total-Pages": "", "X-Next-Page": ""},
        {"X-Total-Pages": "1", "X-Page": "1"},
        {"Content-Range": "items 0-99/*"},
        {"Content-Range": "items 0-99/100"},
        {"Content-Range": "bytes 0-99/4711"},
        {"X-Has-More": "false", "X-Total-Count": "4711"},
        {"X-RateLimit-Remaining": "7", "X-Request-Id": "next", "Age": "3", "X-Offset": "100", "X-Page": "1"},
    ],
    ids=str,
)
def test_headers_that_say_nothing_of_the_kind(serve, caplog, headers):
    client = client_of(serve(shop(lambda page: headers)))
    assert len(list(client.rows("/orders", paginator=Cursor("next")))) == 100
    assert warnings_of(caplog) == []


@pytest.mark.parametrize("beside", [{"has_more": False}, {"isLast": True}, {"end_of_stream": True}])
def test_a_clear_word_that_there_is_no_more_outweighs_all(serve, caplog, beside):
    headers = {"X-Total-Count": "238", "Link": '</orders?page=2>; rel="next"'}
    client = client_of(serve(shop(lambda page: headers, beside=lambda page: beside)), records_path="data")
    assert len(list(client.rows("/orders", paginator=Cursor("after")))) == 100
    assert warnings_of(caplog) == []


@pytest.mark.parametrize(
    ("headers", "beside", "place"),
    [
        ({}, {"total": 238}, "'total' of the reply"),
        ({}, {"meta": {"total": 238}}, "'meta.total' of the reply"),
        ({}, {"@odata.count": 238}, "'@odata.count' of the reply"),
        ({}, {"recordsTotal": 238}, "'recordsTotal' of the reply"),
        ({}, {"recordsTotal": 900, "recordsFiltered": 238}, "'recordsFiltered' of the reply"),
        ({}, {"nbHits": 238}, "'nbHits' of the reply"),
        ({}, {"hits": {"total": {"value": 238, "relation": "eq"}}}, "'hits.total' of the reply"),
        ({}, {"hits": {"total": 238}}, "'hits.total' of the reply"),
        ({"X-Pagination": '{"TotalCount": 238, "PageSize": 100, "CurrentPage": 1}'}, {}, "the header 'X-Pagination'"),
        ({"Pagination": '{"total": 238}'}, {}, "the header 'Pagination'"),
    ],
    ids=str,
)
@pytest.mark.parametrize("whole", [False, True])
def test_a_total_by_itself_is_held_against_the_rows(serve, caplog, headers, beside, place, whole):
    shown = str(beside or headers)
    at = "hits.hits" if "hits" in beside else "data"

    def answer(asked):
        body = {**beside, "data": ROWS if whole else ROWS[:100]}
        if "hits" in beside:
            body = {"hits": {**beside["hits"], "hits": body["data"]}}
        return 200, headers, body

    assert len(list(client_of(serve(answer)).rows("/orders", records_path=at))) == (238 if whole else 100), shown
    if whole:
        assert warnings_of(caplog) == []
    else:
        assert f"{place} says that there are more: 100 of 238 rows came" in said(caplog)


@pytest.mark.parametrize(
    ("headers", "beside", "place"),
    [
        ({}, {"LastEvaluatedKey": {"id": {"S": "o-100"}}}, "'LastEvaluatedKey' of the reply"),
        ({}, {"LastEvaluatedKey": "o-100"}, "'LastEvaluatedKey' of the reply"),
        ({}, {"value": 1, "@odata.nextLink": "https://x/orders?$skiptoken=2"}, "'@odata.nextLink' of the reply"),
        ({"X-Pagination": '{"CurrentPage": 1, "TotalPages": 3}'}, {}, "the header 'X-Pagination'"),
        ({"X-Pagination": '{"next_page": 2}'}, {}, "the header 'X-Pagination'"),
        ({"X-Pagination": '{"HasNext": true}'}, {}, "the header 'X-Pagination'"),
    ],
    ids=str,
)
def test_other_names_of_a_further_page(serve, caplog, headers, beside, place):
    client = client_of(serve(lambda asked: (200, headers, {**beside, "data": ROWS[:100]})))
    assert len(list(client.rows("/orders", records_path="data"))) == 100
    assert f"{place} says that there are more: 100 rows came" in said(caplog)


@pytest.mark.parametrize(
    ("headers", "beside"),
    [
        ({}, {"total": 99}),
        ({}, {"total": "238.50"}),
        ({}, {"total": 238.5}),
        ({}, {"total": 238, "currency": "EUR"}),
        ({}, {"subtotal": 200, "tax": 38, "total": 238}),
        ({}, {"id": 7, "total": 238}),
        ({}, {"number": "A-7", "total": 238}),
        ({}, {"costs": {"total": 238}}),
        ({}, {"facets": {"brand": {"total_count": 238}}}),
        ({}, {"meta": {"unread": {"total_count": 238}, "total_count": 100}}),
        ({}, {"owner": {"repos": {"total_count": 238}}}),
        ({}, {"stats": {"total_rows": 238}}),
        ({}, {"meta": {"total_count": 238, "filter_count": 100}}),
        ({}, {"hits": {"total": {"value": 100, "relation": "eq"}}}),
        ({}, {"recordsTotal": 238, "recordsFiltered": 100}),
        ({}, {"LastEvaluatedKey": None}),
        ({}, {"LastEvaluatedKey": {}}),
        ({"X-Pagination": '{"TotalCount": 100, "TotalPages": 1, "nextPageLink": ""}'}, {}),
        ({"X-Pagination": '{"TotalCount": 238'}, {}),
        ({"X-Pagination": "[238]"}, {}),
        ({"X-Usage": '{"total": 238}'}, {}),
    ],
    ids=str,
)
def test_other_numbers_that_are_no_totals_of_rows(serve, caplog, headers, beside):
    client = client_of(serve(lambda asked: (200, headers, {**beside, "data": ROWS[:100]})))
    assert len(list(client.rows("/orders", records_path="data"))) == 100
    assert warnings_of(caplog) == []


def run_full_table(serve, answer, **options):
    """A run of a full table; whether it was said to be whole."""
    server = serve(answer)
    tap = burler.tap("tap-shop")
    tap.client(lambda config: client_of(server))

    @tap.sync("orders", key_properties="id", schema=SCHEMA)
    def orders(client):
        return client.pages("/orders", records_path="data", **options)

    out = run_tap(tap)
    assert out.result.exit_code == 0
    return out.types[-2] == "ACTIVATE_VERSION" and out.types.count("ACTIVATE_VERSION") == 2  # the first opens it


def test_a_total_by_itself_keeps_a_full_table_open(serve):
    assert not run_full_table(serve, shop(beside=lambda page: {"total": 238}))
    assert run_full_table(serve, shop(beside=lambda page: {"total": 238}), paginator=PageNumber())


def test_a_total_that_was_counted_up_to_a_limit_is_not_reached_there(serve, caplog):
    """Elasticsearch counts up to 10,000 unless it is told otherwise."""
    total = {"hits": {"total": {"value": 100, "relation": "gte"}}}
    assert not run_full_table(serve, shop(beside=lambda page: total))
    assert "'hits.total' of the reply says that there are more: 100 of 101 rows or more came" in caplog.text
    assert run_full_table(serve, shop(beside=lambda page: total), paginator=PageNumber())


@pytest.mark.parametrize("unit", ["", "items "])
def test_a_page_may_come_with_206_where_it_names_its_rows(serve, caplog, unit):
    """PostgREST answers so where it counts."""

    def answer(asked):
        begin = int(asked.query.get("offset", 0))
        rows = ROWS[begin : begin + 100]
        range_ = {"Content-Range": f"{unit}{begin}-{begin + len(rows) - 1}/238"}
        return 206 if begin + 100 < len(ROWS) else 200, range_, {"data": rows}

    assert not run_full_table(serve, answer)
    assert "the header 'Content-Range' says that there are more" in caplog.text
    assert run_full_table(serve, answer, paginator=Offset(100))


@pytest.mark.parametrize("by_hand", [False, True])
def test_an_error_that_is_allowed_is_no_end_where_a_page_led_there(serve, caplog, by_hand):
    """A token of the next page that is no longer good; else the table is closed behind its first page."""
    answers = {None: (200, {}, {"data": ROWS[:100], "next": "/orders?page=2"})}
    tap = burler.tap("tap-shop")
    server = serve(lambda asked: answers.get(asked.query.get("page"), (410, {}, {"error": "expired"})))
    tap.client(lambda config: client_of(server))

    @tap.sync("orders", key_properties="id", schema=SCHEMA)
    def orders(client):
        if not by_hand:
            yield from client.pages("/orders", records_path="data", paginator=NextUrl("next"), allow_statuses=(410,))
            return
        page = client.json("/orders")
        while page.get("data"):
            yield page["data"]
            page = client.json(page["next"], allow_statuses=(410,))

    out = run_tap(tap)
    assert len(out.records("orders")) == 100
    assert out.types.count("ACTIVATE_VERSION") == 1  # it opens the table
    assert "No ACTIVATE_VERSION of orders follows" in caplog.text


def test_a_status_that_the_paginator_takes_for_the_end_is_one(serve, caplog):
    def answer(asked):
        page = int(asked.query.get("page", 1))
        return {"data": ROWS[100 * page - 100 : 100 * page]} if page < 4 else (404, {}, {})

    assert run_full_table(serve, answer, paginator=PageNumber(end_statuses=(404,)))
    assert warnings_of(caplog) == []


@pytest.mark.parametrize("place", ["items.-1.id", "data.-1.number"])
def test_a_cursor_that_no_row_has_closes_no_full_table(serve, caplog, place):
    assert not run_full_table(serve, shop(beside=lambda page: {"page": page}), paginator=Cursor(place))
    assert "GET /orders: one page; nothing at" in caplog.text


def test_each_stream_on_an_endpoint_is_told_of_its_own_cut(serve, caplog):
    server = serve(shop(lambda page: {"X-Total-Count": "238"}))
    tap = burler.tap("tap-shop")
    tap.client(lambda config: client_of(server))
    for name in ("orders", "others"):
        tap.sync(name, key_properties="id", schema=SCHEMA)(lambda client: client.pages("/orders"))
    run_tap(tap)
    assert caplog.text.count("GET /orders: one page was read, though") == 2


# Pages whose rows are null


def null_behind(*counts, beside=lambda page: {}):
    """Pages of so many rows; what follows has null in their place."""

    def answer(asked):
        page = int(asked.query.get("page") or asked.query.get("cursor") or 1)
        begin = sum(counts[: page - 1])
        rows = ROWS[begin : begin + counts[page - 1]] if page <= len(counts) else None
        return {"data": rows, "next": page + 1 if page <= len(counts) else None, **beside(page)}

    return answer


@pytest.mark.parametrize(
    ("paginator", "counts"),
    [
        (PageNumber(), (100, 100)),
        (PageNumber(), (100,)),
        (PageNumber(size=100), (100, 100)),
        (UntilEmpty(PageNumber()), (100, 100)),
        (Cursor("next"), (100, 100)),
    ],
)
def test_null_behind_a_full_page_is_no_certain_end(serve, caplog, paginator, counts):
    """A source that fails in its middle writes so, too."""
    assert not run_full_table(serve, null_behind(*counts), paginator=paginator)
    told = warnings_of(caplog)
    pages = f"{len(counts) + 1} pages were read, though 'data' of the last one is null and no list"
    assert any(pages in one for one in told), told
    assert any("No ACTIVATE_VERSION of orders follows" in one for one in told)


@pytest.mark.parametrize("error", [{"error": "timeout"}, {"errors": [{"code": 7}]}, {"error": {"code": 7}, "total": 0}])
@pytest.mark.parametrize(
    ("paginator", "counts"),
    [(None, ()), (Cursor("next"), ()), (SinglePage(), ()), (PageNumber(), (100, 38)), (Cursor("next", more="m"), (9,))],
)
def test_null_beside_an_error_is_no_empty_table(serve, caplog, error, paginator, counts):
    """Though the status is 200; else targets would delete all that they have."""
    beside = lambda page: {**error, "m": False} if page > len(counts) else {"m": True}  # noqa: E731
    assert not run_full_table(serve, null_behind(*counts, beside=beside), paginator=paginator)
    assert "'data' of the last one is null and no list" in caplog.text


@pytest.mark.parametrize(
    ("paginator", "counts", "beside"),
    [
        (PageNumber(), (), {"error": None, "errors": []}),
        (PageNumber(), (100, 38), {}),
        (PageNumber(size=100), (38,), {}),
        (UntilEmpty(PageNumber()), (100, 38), {}),
        (PageNumber(), (100,), {"total": 100}),
        (PageNumber(), (100,), {"has_more": False}),
        (Cursor("next"), (100,), {"total_count": 100}),
        (Cursor("next"), (100, 38), {}),
        (PageNumber(), (), {}),
    ],
)
def test_null_behind_a_page_that_is_not_full_is_an_empty_list(serve, caplog, paginator, counts, beside):
    """Sources in Go write an empty list so."""
    assert run_full_table(serve, null_behind(*counts, beside=lambda page: beside), paginator=paginator)
    assert warnings_of(caplog) == []


def test_null_where_the_paginator_s_own_place_says_the_end(serve, caplog):
    answer = null_behind(100, 100, beside=lambda page: {"more": page < 3})
    assert run_full_table(serve, answer, paginator=Cursor("next", more="more"))
    assert warnings_of(caplog) == []


# Where the pages end


def test_totals_are_held_against_the_rows_of_all_pages(serve, caplog):
    headers = lambda page: {"X-Total-Count": "238", "X-Total-Pages": "3"}  # noqa: E731
    client = client_of(serve(shop(headers, beside=lambda page: {"total_count": 238, "total_pages": 3})))
    for paginator in (
        PageNumber(),
        PageNumber(size=100, until="short"),
        Offset(100),
        PageNumber(total_pages="total_pages"),
    ):
        assert len(list(client.rows("/orders", paginator=paginator, records_path="data"))) == 238
    assert warnings_of(caplog) == []


def test_a_cut_behind_the_first_page_is_told_as_well(serve, caplog):
    """The source gives no more than so many at once: the end is taken for one that it is not."""
    client = client_of(serve(shop(lambda page: {"X-Total-Count": "238"}, size=70)))
    assert len(list(client.rows("/orders", paginator=PageNumber(size=100, until="short")))) == 70
    assert "70 of 238 rows came" in said(caplog)
    caplog.clear()
    client = client_of(serve(shop(lambda page: {"X-Total-Count": "500"})))
    assert len(list(client.rows("/orders", paginator=PageNumber()))) == 238
    assert said(caplog) == (
        "GET /orders: 4 pages were read, though the header 'X-Total-Count' says that there are more: 238 of 500 rows "
        "came. Look at what ends its pages. If the source counts rows that it does not give, put "
        "burler.http.UntilEmpty(...) around your paginator"
    )
    caplog.clear()
    client = client_of(serve(shop(lambda page: {"X-Next-Page": str(page + 1) if page < 3 else ""})))
    once = lambda request, reply: {"page": 2} if "page" not in (request.params or {}) else None  # noqa: E731
    assert len(list(client.rows("/orders", paginator=once))) == 200
    assert "2 pages were read, though the header 'X-Next-Page' says that there are more" in said(caplog)


def test_rows_that_come_while_the_pages_are_read_are_no_cut(serve, caplog):
    """The newest stand first, and who reads from there on does not see what comes later."""
    client = client_of(serve(shop(lambda page: {"X-Total-Count": str(237 + page)})))
    assert len(list(client.rows("/orders", paginator=PageNumber()))) == 238
    assert warnings_of(caplog) == []


def test_a_page_behind_the_last_one_may_name_a_next_one(serve, caplog):
    headers = lambda page: {"Link": f'</orders?page={page + 1}>; rel="next"'}  # noqa: E731
    client = client_of(serve(shop(headers)))
    for paginator in (PageNumber(), Offset(100), UntilEmpty(LinkHeader())):
        assert len(list(client.rows("/orders", paginator=paginator))) == 238
    assert warnings_of(caplog) == []


def test_a_cursor_that_is_only_repeated_is_no_further_page(serve, caplog):
    def answer(asked):
        cursor = asked.query.get("cursor")
        return {"data": ROWS[:2], "cursor": cursor, "next": None if cursor else "c2"}

    client = client_of(serve(answer), records_path="data")
    assert len(list(client.rows("/orders", paginator=Cursor("next")))) == 4
    assert warnings_of(caplog) == []


def test_who_reads_backwards_has_read_the_next_page(serve, caplog):
    def answer(asked):
        page = int(asked.query.get("page", 3))
        links = {"prev": f"/orders?page={page - 1}" if page > 1 else None, "next": f"/orders?page={page + 1}"}
        return {"data": ROWS[:2], "links": links}

    client = client_of(serve(answer), records_path="data")
    assert len(list(client.rows("/orders", paginator=NextUrl("links.prev")))) == 6
    assert warnings_of(caplog) == []


def test_a_reading_that_begins_in_the_middle_has_no_total_to_reach(serve, caplog):
    client = client_of(serve(shop(lambda page: {"X-Total-Count": "238", "X-Total-Pages": "3"})))
    assert len(list(client.rows("/orders", paginator=PageNumber(), params={"page": 3}))) == 38
    assert len(list(client.rows("/orders", paginator=Offset(100), params={"offset": 200}))) == 38
    assert len(list(client.rows("/orders", paginator=LinkHeader(), params={"cursor": "abc"}))) == 100
    assert len(list(client.rows("/orders", paginator=Cursor("n", param="from_key"), params={"from_key": "b"}))) == 100
    assert warnings_of(caplog) == []
    caplog.clear()
    client = client_of(serve(shop(lambda page: {"X-Total-Count": "300"})))
    assert len(list(client.rows("/orders", paginator=Offset(100), params={"offset": 200}))) == 38
    assert "38 of 300 rows came" in said(caplog)


def test_an_end_that_is_an_error_does_not_hide_a_total(serve, caplog):
    inner = shop(lambda page: {"X-Total-Count": "238"})
    client = client_of(serve(lambda asked: 404 if asked.query.get("page") == "2" else inner(asked)))
    assert len(list(client.rows("/orders", paginator=PageNumber(end_statuses=[404])))) == 100
    assert "100 of 238 rows came" in said(caplog)


# What the author has said, and who leaves early


def test_who_says_that_one_page_is_all_hears_nothing(serve, caplog):
    headers = {"X-Total-Count": "238", "Link": '</orders?page=2>; rel="next"'}
    client = client_of(serve(shop(lambda page: headers, beside=lambda page: {"has_more": True})))
    assert len(list(client.rows("/orders", paginator=SinglePage(), records_path="data"))) == 100
    assert warnings_of(caplog) == []


def test_who_reads_until_a_page_is_empty_does_not_believe_totals(serve, caplog):
    client = client_of(serve(shop(lambda page: {"X-Total-Count": "4711"})))
    assert len(list(client.rows("/orders", paginator=UntilEmpty(PageNumber())))) == 238
    assert warnings_of(caplog) == []
    client = client_of(serve(shop(lambda page: {"X-Next-Page": "2"})))
    assert len(list(client.rows("/orders", paginator=UntilEmpty(Cursor("next"))))) == 100
    assert "'X-Next-Page' says that there are more" in said(caplog)


def test_who_leaves_the_pages_hears_nothing(serve, caplog):
    client = client_of(serve(shop(lambda page: {"X-Total-Count": "238"})))
    for _page in client.pages("/orders", paginator=Cursor("next")):
        break
    rows = client.rows("/orders", paginator=PageNumber())
    assert [next(rows)["id"] for _ in range(150)][-1] == 149
    rows.close()
    assert warnings_of(caplog) == []


# How often


def test_each_client_is_told_once(serve, caplog):
    """It is no matter of the process: another client, another run, and the cut is told again."""
    server = serve(shop(lambda page: {"X-Total-Count": "238"}))
    for _ in range(2):
        client = client_of(server)
        for _ in range(3):
            list(client.pages("/orders"))
            list(client.with_options(timeout_seconds=5).pages("/orders"))
    assert len(warnings_of(caplog)) == 2
    with bind_stream(burler.tap("tap-shop"), "orders"):  # in one run, such as a tail's with a new client
        for _ in range(2):
            client = client_of(server)
            for _ in range(3):
                list(client.pages("/orders"))
    assert len(warnings_of(caplog)) == 4


def test_each_run_is_told_once_also_with_one_client_for_all(serve, caplog):
    client = client_of(serve(shop(lambda page: {"X-Total-Count": "238"})))
    tap = burler.tap("tap-shop")

    @tap.sync("orders", key_properties="id", schema=SCHEMA)
    def orders():
        for _ in range(3):
            yield from client.rows("/orders")

    for number in (1, 2):
        run_tap(tap)
        told = [one for one in warnings_of(caplog) if one.startswith("GET /orders: one page was read")]
        assert len(told) == number
    with bind_stream(tap, "orders"):
        list(client.pages("/orders"))
    assert len([one for one in warnings_of(caplog) if one.startswith("GET /orders: one page was read")]) == 3


def test_verify_calls_it_an_error(serve):
    for headers in ({"X-Total-Count": "238"}, {"Link": '</orders?page=2>; rel="next"'}):
        server = serve(shop(lambda page, one=headers: one))
        tap = burler.tap("tap-shop")
        tap.client(lambda config, server=server: client_of(server))

        @tap.sync("orders", key_properties="id", schema=SCHEMA)
        def orders(client):
            return client.pages("/orders", paginator=Cursor("next"))

        found = {one.code: one for one in verify_tap(tap, select=["H709"]).findings}
        assert str(found["H709"].severity) == "error"
        assert f"its '{next(iter(headers))}' says that there is more" in found["H709"].message


TIMED = {"properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("options", [{}, {"replication_key": "at", "schema": TIMED}])
def test_verify_tells_the_cause_alone(serve, options, by_hand):
    """burler holds back the closing version, or the bookmark: that is no fault of its own."""
    rows = [{"id": n, "at": f"2026-01-01T00:{n // 60:02}:{n % 60:02}Z"} for n in range(238)][::-1]
    server = serve(shop(lambda page: {"X-Total-Count": "238"}, rows=rows))
    tap = burler.tap("tap-shop")
    tap.client(lambda config: client_of(server))

    @tap.sync("orders", **{"key_properties": "id", "schema": SCHEMA, **options})
    def orders(client):
        return client.json("/orders") if by_hand else client.pages("/orders", paginator=Cursor("next"))

    found = {one.code for one in verify_tap(tap, select=["H", "M212", "B"]).findings}
    assert found == {"H709"}


def test_verify_tells_what_only_burler_has_seen(serve):
    """Null behind a full page names no further page that somebody could have asked for."""
    server = serve(null_behind(100))
    tap = burler.tap("tap-shop")
    tap.client(lambda config: client_of(server))

    @tap.sync("orders", key_properties="id", schema=SCHEMA)
    def orders(client):
        return client.pages("/orders", paginator=PageNumber(), records_path="data")

    (found,) = verify_tap(tap, select=["H", "M212", "B"]).findings
    assert (found.code, found.stream) == ("H709", "orders")
    assert "GET /orders: 'data' of the last one is null and no list" in found.message


def test_verify_sees_a_total_beside_a_key_in_the_query(serve):
    server = serve(shop(beside=lambda page: {"total": 238}))
    tap = burler.tap("tap-shop")
    tap.client(lambda config: __import__("requests").Session())

    @tap.sync("orders", key_properties="id", schema=SCHEMA)
    def orders(client):
        return client.get(f"{server.url}/orders", params={"api_key": "s3cr3t-0123456789", "limit": 100}).json()["data"]

    (found,) = verify_tap(tap, select=["H709"]).findings
    assert "its 'total' says that there is more" in found.message and "s3cr3t" not in str(found)
