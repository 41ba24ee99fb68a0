"""Lists that an author asks for request by request: what is left of one when the function has come to its end."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest

import burler
from burler.http import Cursor, SinglePage
from burler.patterns import cursor_pages, pages
from burler.testing import run_tap
from support.servers import client_of, warnings_of

ROWS = [{"id": number} for number in range(238)]
SCHEMA = {"properties": {"id": {"type": "integer"}}}
MORE = "says that there are more"


def source(asked):
    """``/counted`` names a total, ``/linked`` and ``/body`` the next page, ``/bare`` nothing; 100 rows a page."""
    page = int(asked.query.get("page") or (asked.json or {}).get("page") or 1)
    begin = int(asked.query.get("offset") or asked.query.get("cursor") or (page - 1) * 100)
    size = min(100, int(asked.query.get("limit") or 100))
    rows = ROWS[begin : begin + size]
    if asked.path == "/body":
        following = begin + 100 if begin + 100 < len(ROWS) else None
        return {"data": rows, "next_cursor": following and str(following), "has_more": following is not None}
    if asked.path == "/blind":  # which names a next page behind the last one as well
        return {"data": rows, "next_page": f"/blind?page={page + 1}"}
    headers = {"/counted": {"X-Total-Count": "238"}}.get(asked.path, {})
    if asked.path.startswith("/linked") and begin + 100 < len(ROWS):
        headers = {"Link": f'<{asked.path}?{urlencode({**asked.query, "page": page + 1})}>; rel="next"'}
    if asked.path.startswith("/things/"):
        thing = {"id": 7, "lines": [{"id": 1}], "next": "/things/8", "has_more": True}
        return 200, {"Link": '</things/8>; rel="next"', "X-Total-Count": "238"}, thing
    return 200, headers, rows


@pytest.fixture
def run(serve, caplog):
    """Runs a tap with one full table; gives the run and the warnings."""
    server = serve(source)

    def run_it(function, state=None, records_path=None, **options):
        tap = burler.tap("tap-shop")
        tap.client(lambda config: client_of(server, records_path=records_path))
        tap.sync("orders", key_properties="id", schema=SCHEMA, **options)(function)
        caplog.clear()
        out = run_tap(tap, state=state)
        assert out.result.exit_code == 0, out.result.errors
        return out, [one for one in warnings_of(caplog) if MORE in one]

    return run_it


def is_whole(out):
    """Whether the full table was said to be whole."""
    return out.types[-2] == "ACTIVATE_VERSION"


# What is cut


@pytest.mark.parametrize(
    "read",
    [
        lambda client: client.json("/counted"),
        lambda client: client.get("/counted").json(),
        lambda client: client.json("/linked"),
        lambda client: client.get("/linked", params={"limit": 100}).json(),
        lambda client: client.json("/body")["data"],
        lambda client: client.post("/body", json={}).json()["data"],
        lambda client: client.json("/linked", params={"page": 1}) + client.json("/linked", params={"page": 2}),
        lambda client: client.rows("/counted", params={"page": 1}),
    ],
)
def test_a_list_that_goes_on_is_told_and_is_no_whole_table(run, read):
    def orders(client):
        yield from read(client)

    out, told = run(orders)
    assert len(out.records("orders")) in (100, 200)
    assert not is_whole(out) and len(told) == 2
    assert "says that there are more" in told[0] and "and nobody asked for the rest" in told[0]
    assert told[1].startswith("stream 'orders': may be incomplete (")
    assert told[1].endswith(
        "No ACTIVATE_VERSION of orders follows, so that targets drop none for those that did not come."
    )


def test_an_endpoint_method_is_a_request_like_others(run, serve, caplog):
    @burler.http.endpoints(linked="/linked", verbs=("get",))
    class Shop(burler.http.Client):
        pass

    server = serve(source)
    tap = burler.tap("tap-shop")
    tap.client(lambda config: Shop(server.url))

    @tap.sync("orders", key_properties="id", schema=SCHEMA)
    def orders(client):
        return client.get_linked().json()

    out = run_tap(tap)
    assert not is_whole(out)
    told = "GET /linked: one page was read, though the header 'Link' says that there are more: 100 rows came"
    assert told in caplog.text


def orders_of(serve, answer, function, state=None, **options):
    """A run of one stream over a server of its own."""
    server = serve(answer)
    tap = burler.tap("tap-shop")
    tap.client(lambda config: client_of(server, records_path=options.pop("records_path", None)))
    tap.sync("orders", **{"key_properties": "id", "schema": SCHEMA, **options})(function)
    out = run_tap(tap, state=state)
    assert out.result.exit_code == 0, out.result.errors
    return out


def items(client):
    yield from client.json("/orders")["items"]


@pytest.mark.parametrize("total", [{"total": 9}, {"total_count": 9}, {"meta": {"total": 9}}])
def test_a_total_beside_the_only_list_counts_its_rows(serve, caplog, total):
    out = orders_of(serve, lambda asked: {"items": ROWS[:5], **total}, items)
    assert not is_whole(out)
    assert f"{MORE}: 5 of 9 rows came, and nobody asked for the rest" in caplog.text
    assert is_whole(orders_of(serve, lambda asked: {"items": ROWS[:9], **total}, items))


@pytest.mark.parametrize(
    ("facets", "total", "records_path", "whole"),
    [(3, 9, None, False), (3, 8, None, True), (3, 3, None, True), (3, 8, "items", False), (3, 4, "facets", False)],
)
def test_of_two_lists_a_total_counts_where_it_is_more_than_both(serve, facets, total, records_path, whole):
    """Nobody knows which of them it counts, unless somebody says where the rows are."""
    body = {"items": ROWS[:5], "total_count": total, "facets": [{"name": "a"}] * facets}
    assert is_whole(orders_of(serve, lambda asked: body, items, records_path=records_path)) is whole


def test_a_loop_over_the_smaller_of_two_lists_is_no_cut(serve, caplog):
    def answer(asked):
        page = int(asked.query["page"])
        rows = ROWS[(page - 1) * 100 : page * 100]
        return {"total": 238, "users": [{"id": n, "text": "x" * 2000} for n in range(5)], "items": rows}

    def orders(client):
        for page in (1, 2, 3):
            yield from client.json("/orders", params={"page": page})["items"]

    assert is_whole(orders_of(serve, answer, orders)) and MORE not in caplog.text


def test_null_that_ends_a_loop_behind_a_full_page_is_told(serve, caplog):
    def orders(client):
        page = 1
        while rows := client.json("/orders", params={"page": page})["items"]:
            yield from rows
            page += 1

    for last, whole in ((100, False), (38, True)):
        pages = {"1": ROWS[:100], "2": ROWS[100 : 100 + last]}
        caplog.clear()
        assert is_whole(orders_of(serve, lambda asked, p=pages: {"items": p.get(asked.query["page"])}, orders)) is whole
        assert ("'items' of the last one is null and no list" in caplog.text) is not whole


def test_a_304_taken_by_hand_closes_no_full_table(serve, caplog):
    """Else targets delete all rows, since none came."""

    def by_hand(client):
        reply = client.get("/orders", headers={"If-None-Match": '"a"'}, allow_statuses=(304,))
        if reply.status_code == 200:
            yield from reply.json()

    def who_says_so(client, stream):
        reply = client.get("/orders", headers={"If-None-Match": '"a"'}, allow_statuses=(304,))
        if reply.status_code == 304:
            stream.not_modified()
            return
        yield from reply.json()

    def answer(asked):
        return (304, {"ETag": '"a"'}, b"") if asked.headers.get("if-none-match") else ROWS[:2]

    out = orders_of(serve, answer, by_hand)
    assert "ACTIVATE_VERSION" not in out.types[1:]
    assert "GET /orders: answered 304 (nothing has changed), and its rows did not come" in caplog.text
    assert "No ACTIVATE_VERSION of orders follows" in caplog.text
    caplog.clear()
    out = orders_of(serve, answer, who_says_so)
    assert "ACTIVATE_VERSION" not in out.types[1:] and warnings_of(caplog) == []
    out = orders_of(serve, lambda asked: ROWS[:2], by_hand)
    assert is_whole(out) and warnings_of(caplog) == []


@pytest.mark.parametrize("link", ["skip", "token"])
@pytest.mark.parametrize("first", [0, 1])
def test_who_counts_what_was_asked_for_and_not_what_came_is_told(serve, caplog, link, first):
    """The source gives 25 rows at the most, and each reply names the next page."""

    def answer(asked):
        begin = int(asked.query.get("skip", first)) - first
        following = begin + 25 + first
        rows = ROWS[begin : begin + 25]
        more = f"/orders?limit=100&skip={following}" if link == "skip" else f"/orders?token={following}"
        return {"data": rows, "next": more if following <= len(ROWS) else None}

    def read(step):
        def orders(client):
            skip = first
            while rows := client.json("/orders", params={"limit": 100, "skip": skip})["data"]:
                yield rows
                skip += step or len(rows)

        return orders

    out = orders_of(serve, answer, read(100))
    assert not is_whole(out)
    assert (
        f"a page begins at row {25 + (first if link == 'skip' else 0)}, and the next that was asked for began at"
        in (caplog.text)
    )
    caplog.clear()
    out = orders_of(serve, answer, read(0))
    assert is_whole(out) and warnings_of(caplog) == []


# Runs that go on from a bookmark

TIMED = {"properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}
AT = {"replication_key": "at", "schema": TIMED}


def timed(first, last):
    """Rows, one a minute, from one number to another one."""
    return [{"id": n, "at": f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z"} for n in range(first, last)]


def orders_by_hand(client, stream):
    yield from client.json("/orders", params={"since": stream.bookmark})["items"]


BEFORE = {"bookmarks": {"orders": {"at": "2026-01-01T01:00:00Z"}}}


@pytest.mark.parametrize(
    ("headers", "beside"),
    [({"X-Total-Count": "81"}, {}), ({}, {"total": 81}), ({}, {"has_more": True}), ({}, {"next": "/orders?page=2"})],
)
def test_the_newest_of_a_list_that_was_not_read_to_the_bookmark_move_no_bookmark(serve, caplog, headers, beside):
    """50 of the 81 rows since then; the other 31 would never be asked for again."""
    rows = timed(61, 142)[::-1][:50]
    out = orders_of(serve, lambda asked: (200, headers, {**beside, "items": rows}), orders_by_hand, BEFORE, **AT)
    assert out.states[-1] == BEFORE
    assert f"{MORE}: 50 of 81 rows came" in caplog.text or f"{MORE}: 50 rows came" in caplog.text
    assert "Its bookmark stays at" in caplog.text


def test_a_paginator_of_the_author_s_own_is_judged_likewise(serve, caplog):
    """It stops at the bookmark on purpose, or before it."""

    def orders(client, stream):
        def following(request, reply):
            page = int((request.params or {}).get("page", 1))
            return {"page": page + 1} if page < last[0] else None

        return client.pages("/orders", paginator=following, records_path="items")

    rows = timed(0, 142)[::-1]

    def answer(asked):
        begin = (int(asked.query.get("page", 1)) - 1) * 50
        return {"total": 142, "items": rows[begin : begin + 50]}

    last = [1]
    for last[0], whole in ((1, False), (2, True)):
        caplog.clear()
        out = orders_of(serve, answer, orders, BEFORE, **AT)
        assert (out.states[-1] != BEFORE) is whole
        assert (MORE in caplog.text) is not whole


def test_who_has_read_the_newest_down_to_the_bookmark_hears_nothing(serve, caplog):
    rows = timed(0, 142)[::-1]
    bodies = {"1": rows[:50], "2": rows[50:100]}

    def orders(client, stream):
        for page in (1, 2, 3):
            for row in client.json("/orders", params={"page": page})["items"]:
                if row["at"] < stream.bookmark:
                    return
                yield row

    def answer(asked):
        return {"total": 142, "has_more": True, "items": bodies[asked.query["page"]]}

    out = orders_of(serve, answer, orders, BEFORE, **AT)
    assert len(out.records("orders")) == 82
    assert out.states[-1]["bookmarks"]["orders"]["at"] == "2026-01-01T02:21:00Z"
    assert warnings_of(caplog) == []


def test_the_oldest_of_what_is_new_are_told_and_the_next_run_goes_on_behind_them(serve, caplog):
    """The bookmark may move: what is left is newer."""
    body = {"total": 81, "items": timed(60, 110)}
    out = orders_of(serve, lambda asked: body, orders_by_hand, BEFORE, **AT)
    assert out.states[-1]["bookmarks"]["orders"]["at"] == "2026-01-01T01:49:00Z"
    assert f"{MORE}: 50 of 81 rows came" in caplog.text and "may be incomplete" not in caplog.text


def test_a_page_that_is_not_full_is_the_last_one_also_where_a_run_goes_on(serve, caplog):
    """The source names a next page for ever, so its author looks at the rows."""

    def orders(client, stream):
        page, rows = 1, []
        while page == 1 or len(rows) == 100:
            rows = client.json("/orders", params={"since": stream.bookmark, "limit": 100, "page": page})["items"]
            yield from rows
            page += 1

    body = {"next": "/orders?page=2", "items": timed(61, 66)[::-1]}
    out = orders_of(serve, lambda asked: body, orders, BEFORE, **AT)
    assert out.states[-1]["bookmarks"]["orders"]["at"] == "2026-01-01T01:05:00Z"
    assert warnings_of(caplog) == []


def test_keys_that_stand_elsewhere_are_told_at_least(serve, caplog):
    """Nobody knows how far its author has read."""

    def orders(client):
        yield from ({"id": row["id"], "at": row["meta"]["at"]} for row in client.json("/orders")["items"])

    body = {"has_more": True, "items": [{"id": row["id"], "meta": {"at": row["at"]}} for row in timed(61, 111)]}
    orders_of(serve, lambda asked: body, orders, BEFORE, **AT)
    assert f"{MORE}: 50 rows came" in caplog.text


# What is not


def loop_by_page(client):
    page = 1
    while rows := client.json("/counted", params={"page": page}):
        yield from rows
        page += 1


def loop_by_link(client):
    path = "/linked"
    while path:
        reply = client.get(path)
        yield from reply.json()
        path = reply.links.get("next", {}).get("url")


def loop_by_cursor(client):
    cursor = None
    while True:
        reply = client.json("/body", params={"cursor": cursor})
        yield from reply["data"]
        cursor = reply["next_cursor"]
        if not cursor:
            return


def loop_up_to_a_short_page(client):
    """The source names a next page for ever, so its author looks at the rows."""
    for page in range(1, 10):
        rows = client.json("/blind", params={"page": page})["data"]
        yield from rows
        if len(rows) < 100:
            return


def loop_of_rows(client):
    for page in (1, 2, 3):
        yield from client.rows("/counted", params={"page": page})


def loop_of_pages(client):
    for page in (1, 2, 3):
        yield from client.pages("/counted", params={"page": page})


def search_by_post(client):
    for page in (1, 2, 3):
        yield from client.json("/counted", method="POST", json={"query": "all", "page": page})


def loop_of_a_pattern(client):
    for page in pages(lambda number: client.json("/counted", params={"page": number})):
        yield from page


def loop_that_keeps_its_cursor(client, stream):
    def fetch(cursor):
        reply = client.json("/body", params={"cursor": cursor})
        return reply["data"], reply["next_cursor"]

    yield from cursor_pages(stream, fetch)


def pages_in_threads(client):
    """Page one says how many there are; threads of the author's own fetch the others."""
    yield from client.json("/counted")
    with ThreadPoolExecutor(2) as pool:
        for rows in pool.map(lambda page: client.json("/counted", params={"page": page}), (2, 3)):
            yield from rows


def pages_of_rows_in_threads(client):
    with ThreadPoolExecutor(2) as pool:
        for rows in pool.map(lambda page: list(client.rows("/counted", params={"page": page})), (1, 2, 3)):
            yield from rows


def first_page_and_then_the_rest(client):
    yield from client.json("/counted")
    yield from client.rows("/counted", params={"page": 2})
    yield from client.rows("/counted", params={"page": 3})


def a_total_first(client):
    assert client.head("/counted").headers["X-Total-Count"] == "238"
    assert client.get("/counted", params={"limit": 1}).headers["X-Total-Count"] == "238"
    yield from loop_by_page(client)


@pytest.mark.parametrize(
    "function",
    [
        loop_by_page,
        loop_by_link,
        loop_by_cursor,
        loop_up_to_a_short_page,
        loop_of_rows,
        loop_of_pages,
        search_by_post,
        loop_of_a_pattern,
        loop_that_keeps_its_cursor,
        pages_in_threads,
        pages_of_rows_in_threads,
        first_page_and_then_the_rest,
        a_total_first,
    ],
    ids=lambda function: function.__name__,
)
def test_a_loop_of_the_author_s_own_that_reads_all_is_no_cut(run, function):
    out, told = run(function)
    assert len(out.records("orders")) == 238
    assert told == [] and is_whole(out)


def look_at_single_things(client):
    for number in range(3):
        yield {"id": client.json(f"/things/{number}")["id"] + number}


def look_at_the_newest(client):
    assert client.json("/counted", params={"limit": 1})[0]["id"] == 0
    yield {"id": 1}


def ask_for_the_head(client):
    assert client.head("/linked").headers["Link"]
    yield {"id": 1}


def read_with_single_page(client):
    yield from client.rows("/linked", paginator=SinglePage())


@pytest.mark.parametrize(
    "function", [look_at_single_things, look_at_the_newest, ask_for_the_head, read_with_single_page]
)
def test_what_is_no_list_that_was_to_be_read_is_no_cut(run, function):
    out, told = run(function)
    assert told == [] and is_whole(out)


def test_a_request_in_a_hook_looks_something_up(serve, caplog):
    server = serve(source)
    tap = burler.tap("tap-shop")
    tap.client(lambda config: client_of(server))

    @tap.sync("orders", key_properties="id", schema=SCHEMA)
    def orders():
        yield {"id": 1}

    @tap.post_transform("orders")
    def named(record, client):
        client.json("/linked")
        list(client.pages("/counted"))
        return record

    out = run_tap(tap)
    assert is_whole(out) and "may be incomplete" not in caplog.text


def test_each_parent_s_call_is_a_question_of_its_own(serve, caplog):
    """One of three parents has more children than were read; the other two are whole."""

    def answer(asked):
        number = asked.query.get("order")
        if number is None:
            return [{"id": 0}, {"id": 1}, {"id": 2}]
        return 200, {"X-Total-Count": "3" if number == "1" else "2"}, [{"id": int(number) * 10 + n} for n in (0, 1)]

    server = serve(answer)
    tap = burler.tap("tap-shop")
    tap.client(lambda config: client_of(server))

    @tap.sync("orders", key_properties="id", schema=SCHEMA)
    def orders(client):
        return client.json("/orders")

    @tap.sync("lines", parent="orders", key_properties="id", schema=SCHEMA)
    def lines(client, parent):
        return client.json("/lines", params={"order": parent["id"]})

    out = run_tap(tap)
    ended = [one["stream"] for one in out.messages[3:] if one["type"] == "ACTIVATE_VERSION"][-1:]
    assert ended == ["orders"]
    assert "2 of 3 rows came" in caplog.text
    assert "stream 'lines': may be incomplete" in caplog.text and "stream 'orders': may be" not in caplog.text


def test_a_further_try_begins_with_nothing_said(run):
    tries = []

    def orders(client):
        tries.append(1)
        if len(tries) == 1:
            yield from client.rows("/linked", paginator=Cursor("next"))
            raise RuntimeError("once more")
        yield from client.rows("/linked")

    out, told = run(orders, retry_sync_on=RuntimeError)
    assert len(tries) == 2 and is_whole(out)
    assert [one.partition(":")[0] for one in told] == ["GET /linked"]


def test_nothing_is_kept_where_no_stream_runs(serve, caplog):
    caplog.set_level(logging.INFO)
    client = client_of(serve(source))
    assert len(client.json("/linked")) == 100
    assert MORE not in caplog.text


def test_a_list_of_partitions_that_goes_on_makes_no_whole_table(serve, caplog):
    server = serve(source)
    tap = burler.tap("tap-shop")
    tap.client(lambda config: client_of(server))

    @tap.sync("orders", key_properties="id", schema=SCHEMA)
    def orders(partition):
        yield {"id": partition["id"]}

    @tap.partitions("orders")
    def accounts(client):
        return client.json("/linked")

    out = run_tap(tap)
    assert len(out.records("orders")) == 100 and not is_whole(out)
    assert "stream 'orders': may be incomplete (GET /linked: the header 'Link' says" in caplog.text


def test_a_conditional_resource_that_goes_on_is_not_remembered(serve, caplog):
    """Else the next run would hear that nothing has changed, and never read the rest."""
    for total, whole in (("3", False), ("2", True)):
        server = serve(lambda asked, total=total: (200, {"ETag": '"a"', "X-Total-Count": total}, ROWS[:2]))
        tap = burler.tap("tap-shop")
        tap.client(lambda config, server=server: client_of(server))

        @tap.sync("orders", key_properties="id", schema=SCHEMA)
        def orders(client):
            return client.conditional("/orders")

        out = run_tap(tap)
        assert is_whole(out) is whole
        assert ("odf/etag" in str(out.states[-1])) is whole


def test_a_reply_without_a_body_is_no_page(serve, caplog):
    """304, a lost reply that is asked for again, an error that was allowed: whatever stands in their headers."""
    tries = []

    def answer(asked):
        tries.append(asked)
        if asked.headers.get("if-none-match") or asked.path == "/gone":
            return (304 if asked.path == "/orders" else 404), {"X-Total-Count": "238", "Link": '</x>; rel="next"'}, b""
        return (503 if len(tries) == 1 else 200), {"ETag": '"a"', "X-Total-Count": "2"}, ROWS[:2]

    server = serve(answer)
    for options in ({"source_state": True}, {}):
        tap = burler.tap("tap-shop")
        tap.client(lambda config: client_of(server))

        @tap.sync("orders", key_properties="id", schema=SCHEMA, **options)
        def orders(client, options=options):
            if not options:
                client.get("/gone", allow_statuses=(404,))
            yield from client.json("/orders")

        first = run_tap(tap)
        assert is_whole(first)
        run_tap(tap, state=first.states[-1])
    assert MORE not in caplog.text
