"""Whatever a server leaves out, nulls or nests: rows are there, or an error or a warning says that they are not."""

import json
import logging

import pytest

import burler
from burler import JsonPage
from burler.errors import DeclarationError, GraphQLError, PagingError
from burler.graphql import Cursor, Offset, PageNumber, Query, Rows
from burler.testing import run_tap

SHIPS = "query ($first: Int, $after: String) { ships(first: $first, after: $after) { nodes { id } %s } }"
INFO = "pageInfo { hasNextPage endCursor }"


def read(query, server, how="pages", **variables):
    """(stream, row) of all pages."""
    found = []
    for item in getattr(query, how)(server.client(retries=1), **variables):
        name, rows = item if isinstance(item, tuple) else (None, item)
        rows = json.loads(rows.data) if isinstance(rows, JsonPage) else rows if isinstance(rows, list) else [rows]
        found += [(name, row) for row in rows]
    return found


def connection(rows, more=False, cursor=None):
    return {"nodes": rows, "pageInfo": {"hasNextPage": more, "endCursor": cursor}}


both_ways = pytest.mark.parametrize("how", ["pages", "records"])


# ---- pages that variables count ----------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("main", ["orders", "orders.items", None])
@pytest.mark.parametrize(
    ("paging", "arguments"),
    [
        (Offset("offset", limit="limit"), "offset: $offset, limit: $limit"),
        (Offset("offset", limit="limit", until="short"), "offset: $offset, limit: $limit"),
        (Offset("offset", limit="limit"), "page: {from: $offset, sizes: [$limit]}"),
        (lambda sent, page: {"offset": sent["offset"] + page.rows, "limit": 2} if page.rows else None,
         "offset: $offset, limit: $limit"),
    ],
)  # fmt: skip
def test_offsets_count_the_list_that_is_paged_not_the_rows_in_it(server, how, main, paging, arguments):
    """Six orders of three items each: the second page begins at order 2, not at item 6."""
    orders = [{"id": n, "items": [{"sku": f"{n}-{m}"} for m in range(n % 4)]} for n in range(7)]
    server.answer = lambda query, variables: {
        "data": {"orders": orders[variables["offset"] :][: variables.get("limit", 2)]}
    }
    streams = {} if main == "orders.items" else {"items": "orders.items"}
    text = f"query ($offset: Int!, $limit: Int!) {{ orders({arguments}) {{ id items {{ sku }} }} }}"
    query = Query(text, rows=main, streams=streams, paging=paging, page_size=2)
    given = {} if isinstance(paging, Offset) else {"offset": 0, "limit": 2}
    found = read(query, server, how, **given)
    assert [row["sku"] for _, row in found if "sku" in row] == [
        one["sku"] for order in orders for one in order["items"]
    ]
    assert [row["id"] for _, row in found if "id" in row] == (list(range(7)) if main == "orders" else [])


@both_ways
@pytest.mark.parametrize(
    "paging",
    [
        Offset("offset", limit="limit"),
        Offset("offset", limit="limit", until="short"),
        Offset("offset", limit="limit", total="count"),
        PageNumber("page", size="limit"),
        PageNumber("page", size="limit", until="short"),
    ],
)
def test_rows_that_are_null_count_as_rows_of_their_page(server, how, paging, caplog):
    ports = [{"code": 0}, None, {"code": 2}, {"code": 3}, None, None, {"code": 6}]

    def answer(query, variables):
        begin = variables["offset"] if "offset" in variables else (variables["page"] - 1) * 2
        return {"data": {"ports": ports[begin:][:2], "count": 7}}

    server.answer = answer
    name = "page" if isinstance(paging, PageNumber) else "offset"
    text = f"query (${name}: Int!, $limit: Int!) {{ count ports({name}: ${name}, limit: $limit) {{ code }} }}"
    query = Query(text, rows="ports", paging=paging, page_size=2)
    assert [row["code"] for _, row in read(query, server, how)] == [0, 2, 3, 6]
    assert "3 rows left out, null at the server" in caplog.text


@both_ways
def test_of_two_lists_with_one_page_number_the_longer_one_counts(server, how):
    """Also of lists within a list, and where the stream that runs has come to its end first."""
    rows = {"media": [{"id": n} for n in range(2)], "staff": [{"id": n} for n in range(5)]}

    def answer(query, variables):
        begin = (variables["page"] - 1) * 2
        return {"data": {"Page": {name: listed[begin : begin + 2] for name, listed in rows.items()}}}

    server.answer = answer
    text = "query ($page: Int) { Page(page: $page) { media { id } staff { id } } }"
    query = Query(text, rows="Page.media", streams={"staff": "Page.staff"}, paging=PageNumber())
    found = read(query, server, how)
    assert [row["id"] for name, row in found if name is None] == [0, 1]
    assert [row["id"] for name, row in found if name == "staff"] == [0, 1, 2, 3, 4]


@both_ways
def test_lists_in_a_list_are_each_read_to_their_end_by_one_offset(server, how):
    boards = [[{"id": f"a{n}"} for n in range(5)], [{"id": "b0"}], []]
    server.answer = lambda query, variables: {
        "data": {"boards": [{"items": one[variables["offset"] :][:2]} for one in boards]}
    }
    text = "query ($offset: Int!, $limit: Int!) { boards { items(offset: $offset, limit: $limit) { id } } }"
    query = Query(text, rows="boards.items", paging=Offset(), page_size=2)
    assert sorted(row["id"] for _, row in read(query, server, how)) == ["a0", "a1", "a2", "a3", "a4", "b0"]


@both_ways
def test_a_function_is_not_given_a_number_that_it_may_take_for_another(server, how):
    """Which of the lists the function pages shows only when it has named its variables."""
    server.answer = lambda query, variables: {"data": {"boards": [{"items": [{"id": 1}, {"id": 2}]}]}}
    text = "query ($ids: [ID!], $page: Int) { boards(ids: $ids) { items(page: $page) { id } } }"

    def counts(sent, page):
        return {"page": 2} if page.rows else None

    with pytest.raises(PagingError, match=r"page 1: page.rows is not known(.|\n)*count with page.find"):
        read(Query(text, rows="boards.items", paging=counts), server, how, ids=["a"])
    pages = []

    def looks(sent, page):
        pages.append(None if len(pages) == 0 else page.rows)
        return {"page": sent.get("page", 1) + 1} if len(pages) < 3 else None

    read(Query(text, rows="boards.items", paging=looks), server, how, ids=["a"])
    assert pages == [None, 2, 2]


def test_an_end_before_the_total_and_null_for_a_page_are_said(server, caplog):
    text = (
        "query ($offset: Int, $limit: Int, $page: Int) { list(a: $offset, b: $limit, c: $page) { total rows { id } } }"
    )
    server.answer = lambda query, variables: {
        "data": {"list": {"total": 9, "rows": [{"id": 1}, {"id": 2}] if variables["offset"] == 0 else []}}
    }
    query = Query(text, rows="list.rows", paging=Offset(total="list.total"), page_size=2)
    with pytest.raises(PagingError, match=r"page 2: 'list.total' says that there are 9 rows, and none come after 2"):
        read(query, server)
    server.answer = lambda query, variables: {
        "data": {"list": {"rows": [{"id": 1}]} if variables["page"] == 1 else None}
    }
    caplog.clear()
    assert len(read(Query(text, rows="list.rows", paging=PageNumber()), server)) == 1
    assert "null in place of the rows of page 2" in caplog.text


@both_ways
def test_null_for_a_page_that_a_cursor_announced_is_an_error(server, how):
    server.answer = lambda query, variables: {
        "data": {"list": None if variables else {"next": "x", "rows": [{"id": 1}]}}
    }
    text = "query ($cursor: String) { list(cursor: $cursor) { next rows { id } } }"
    with pytest.raises(PagingError, match=r"'list.next' has another page, and null stands where its rows should be"):
        read(Query(text, rows="list.rows", paging=Cursor("list.next")), server, how)


def test_pages_that_are_counted_keep_their_size(server):
    """Page 2 of 50 rows is another one than page 2 of 100."""
    too_much = {"data": None, "errors": [{"message": "m", "extensions": {"code": "QUERY_TOO_COMPLEX"}}]}
    server.answer = lambda query, variables: too_much
    text = "query ($page: Int, $first: Int) { ships(page: $page, first: $first) { nodes { id } } }"
    for paging in (PageNumber(), lambda sent, page: None):
        server.asked.clear()
        with pytest.raises(GraphQLError, match=r"keep their size: say a smaller page_size="):
            read(Query(text, paging=paging, page_size=4), server)
        assert server.variables in ([{"page": 1, "first": 4}], [{"first": 4}])


# ---- connections -------------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize(
    "second",
    [{"ships": None}, {"ships": {"nodes": None}}, {"ships": connection(None)}, {"ships": connection(None, True, "b")}],
)
@pytest.mark.parametrize("asked", [INFO, ""])
def test_null_for_a_page_that_was_announced_is_an_error(server, how, second, asked):
    replies = [{"ships": connection([{"id": 1}], True, "a")}, second, {"ships": connection([{"id": 3}])}]

    def answer(query, variables):
        reply = json.dumps({"data": replies[{None: 0, "a": 1, "b": 2}[variables.get("after")]]})
        for name, alias in (("pageInfo", "page"), ("hasNextPage", "more"), ("endCursor", "cursor")):
            reply = reply if asked else reply.replace(name, f"burler_{alias}")
        return reply.encode()

    server.answer = answer
    with pytest.raises(PagingError, match=r"'ships' has another page, and null stands where its rows should be"):
        read(Query(SHIPS % asked), server, how)
    with pytest.raises(PagingError, match="has another page, and null"):
        Query(SHIPS % asked).page(server.client(), after="a")


@both_ways
def test_null_around_a_page_that_was_announced_is_an_error(server, how):
    server.answer = lambda query, variables: {
        "data": {"viewer": None if variables.get("after") else {"ships": connection([{"id": 1}], True, "a")}}
    }
    with pytest.raises(PagingError, match=r"'viewer.ships' has another page, and null"):
        read(Query((SHIPS % INFO).replace("{ ships", "{ viewer { ships") + "}"), server, how)


@both_ways
def test_null_for_a_first_page_is_no_rows_unless_it_says_that_there_are_more(server, how):
    server.answer = lambda query, variables: {"data": {"ships": connection(None)}}
    assert read(Query(SHIPS % INFO), server, how) == []
    server.answer = lambda query, variables: {"data": {"ships": connection(None, True, "a")}}
    with pytest.raises(PagingError, match="has another page, and null"):
        read(Query(SHIPS % INFO), server, how)


@both_ways
@pytest.mark.parametrize(
    "failed", [{"ships": {"nodes": None, "pageInfo": None}}, {"ships": None}, {"ships": connection(None)}]
)
@pytest.mark.parametrize("crew", ["", "crew { id }"])
def test_a_failed_page_is_an_error_whatever_on_error_says(server, how, failed, crew):
    server.answer = lambda query, variables: {
        "data": failed,
        "errors": [{"message": "boom", "path": ["ships", "nodes"]}],
    }
    text = (SHIPS % INFO).replace("{ id }", f"{{ id {crew} }}")
    streams = {"crew": "ships.crew"} if crew else {}
    with pytest.raises(GraphQLError, match=r"boom at ships.nodes.\nNo rows came along with it"):
        read(Query(text, rows="ships", streams=streams, on_error="warn"), server, how)


@both_ways
def test_a_page_of_null_rows_that_does_not_say_whether_there_are_more_is_an_error(server, how):
    server.answer = lambda query, variables: {"data": {"ships": {"nodes": [None], "pageInfo": None}}}
    with pytest.raises(PagingError, match="'ships' has rows and does not say whether there are more"):
        read(Query(SHIPS % INFO), server, how)


# ---- connections in rows -----------------------------------------------------------------------------------

CREWS = "{ ships(first: 9) { nodes { id crew(first: 1) { nodes { name } } } } }"


def page(rows, more=False, cursor=None):
    return {"nodes": rows, "burler_page": {"burler_more": more, "burler_cursor": cursor}}


def crews(server, node, first=None):
    crew = page([{"name": "a"}], True, "c1") if first is None else first
    ship = {"id": "s1", "number": "n1", "burler_type": "Ship", "crew": crew}
    server.answer = lambda query, variables: {"data": {"node": node} if "node(" in query else {"ships": page([ship])}}


@both_ways
@pytest.mark.parametrize("streams", [{}, {"crew": Rows("ships.crew", add={"ship": "id"})}])
@pytest.mark.parametrize(
    "node",
    [None, {}, {"burler_type": "Shuttle"}, {"crew": None}, {"crew": page(None)}, {"crew": page(None, True, "d")}],
)
def test_null_for_the_rest_of_a_connection_in_a_row_is_an_error(server, how, streams, node):
    crews(server, node)
    with pytest.raises(PagingError, match=r"'node.crew' of the object 's1' has another page, and null stands where"):
        read(Query(CREWS, rows="ships", streams=streams), server, how)


@both_ways
def test_null_for_a_connection_in_a_row_that_says_that_there_are_more_is_an_error(server, how):
    crews(server, {"crew": page([{"name": "b"}])}, first=page(None, True, "c1"))
    with pytest.raises(PagingError, match=r"'ships.crew' has another page, and null stands where"):
        read(Query(CREWS), server, how)
    crews(server, None, first=page(None))
    assert read(Query(CREWS), server, how)[0][1]["crew"] == []


@both_ways
def test_a_field_that_is_only_called_id_is_no_id(server, how):
    crews(server, {"crew": page([{"name": "b"}])})
    with pytest.raises(PagingError, match=r"'ships.crew' has more rows than the page of it"):
        read(Query(CREWS.replace("{ id ", "{ id: slug ")), server, how)
    rows = read(Query(CREWS.replace("{ id ", "{ id: slug number: id ")), server, how)
    assert rows[0][1]["crew"] == [{"name": "a"}, {"name": "b"}]
    assert server.variables[-1] == {"burlerId": "n1", "burlerAfter": "c1"}


@pytest.mark.parametrize(
    ("follow", "options", "fact"),
    [
        ("query ($id: ID!, $page: Int) { ship(id: $id) { crew(page: $page) { name } } }",
         {"rows": "ship.crew", "paging": PageNumber()}, "has paging= of its own"),
        ("query ($id: ID!) { ship(id: $id) { crew { name } } }", {"rows": "ship.crew"}, "in no connection"),
        ("query ($id: ID!) { ship(id: $id) { crew { nodes { pets { nodes { name } } } } } }",
         {"rows": "ship.crew.pets"}, "in no connection, or in one of several"),
        ("query ($id: ID!) { ship(id: $id) { crew(last: 5) { nodes { name } } } }", {}, "in the other direction"),
    ],
)  # fmt: skip
def test_a_follow_that_could_not_read_the_rest_is_refused(follow, options, fact):
    with pytest.raises(DeclarationError, match=rf"follow: the query for 'ships.crew' .*{fact}"):
        Query(CREWS, follow={"ships.crew": Query(follow, **options)})


# ---- an author's own way over a connection ------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize(
    "paging",
    [
        Cursor("ships.pageInfo.endCursor", variable="after"),
        lambda sent, page: {"after": page.find("ships.pageInfo.endCursor")} if page.rows == 2 else None,
    ],
)
def test_an_authors_own_way_over_a_connection_with_edges(server, how, paging):
    """It is not taken for one in a row, whose rest nobody could read."""
    rows = [{"role": f"r{n}", "node": {"id": n}} for n in range(5)]

    def answer(query, variables):
        begin = int(variables.get("after", 0))
        more = begin + 2 < 5
        info = {"hasNextPage": more, "endCursor": str(begin + 2) if more else None}
        return {"data": {"ships": {"edges": rows[begin : begin + 2], "pageInfo": info}}}

    server.answer = answer
    text = f"query ($after: String) {{ ships(after: $after) {{ edges {{ role node {{ id }} }} {INFO} }} }}"
    assert [row for _, row in read(Query(text, paging=paging), server, how)] == [
        {"id": n, "role": f"r{n}"} for n in range(5)
    ]


@both_ways
def test_connections_in_rows_are_whole_under_an_authors_own_way(shipyard, how):
    """The way counts ships; their crews are none of its pages."""
    text = "query ($o: Int, $n: Int) { list(offset: $o, limit: $n) { id crew(first: 2) { nodes { id } } } }"
    query = Query(text, rows="list", paging=Offset("o", limit="n"), page_size=3)
    assert [len(row["crew"]) for _, row in read(query, shipyard, how)] == list(range(7))
    one = "query ($id: ID!) { node(id: $id) { ... on Ship { id crew(first: 2) { nodes { id } } } } }"
    for rows in ("node", "node.crew"):

        def following(sent, page):
            return {"id": "5"} if sent["id"] == "6" else None

        found = [row for _, row in read(Query(one, rows=rows, paging=following), shipyard, how, id="6")]
        assert [len(row["crew"]) for row in found] == [6, 5] if rows == "node" else len(found) == 11


def test_nothing_is_warned_of_where_nothing_is_missing(shipyard, caplog):
    text = "query ($o: Int, $n: Int) { list(offset: $o, limit: $n) { id } }"
    read(Query(text, paging=Offset("o", limit="n"), page_size=3), shipyard)
    read(Query("{ ships(first: 2) { nodes { id } } }"), shipyard)
    assert [one.message for one in caplog.records if one.levelno >= logging.WARNING] == []


@both_ways
def test_a_way_that_ends_before_its_connection_does_is_said(server, how, caplog):
    server.answer = lambda query, variables: {"data": {"ships": connection([{"id": 1}], True, "a")}}
    text = f"query ($page: Int) {{ ships(page: $page) {{ nodes {{ id }} {INFO} }} }}"
    assert len(read(Query(text, paging=lambda sent, page: None), server, how)) == 1
    assert "reading ends, and 'ships' says that it has more rows" in caplog.text


# ---- several connections, several streams -------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize(
    ("rows", "streams"),
    [
        ("ships.crew.badges", {}),
        ("ships.crew.badges", {"ships": "ships"}),
        ("ships.crew.badges", {"crew": "ships.crew"}),
        ("ships.crew", {}),
        ("ships", {"badges": "ships.crew.badges"}),
        (None, {"badges": "ships.crew.badges"}),
    ],
)
@pytest.mark.parametrize("follow", [False, True])
def test_three_connections_in_one_another_are_whole(shipyard, how, rows, streams, follow):
    """Whichever of them is the stream that runs: crews in pages of 2, badges in pages of 1."""
    member = "id badges(first: 1) { nodes { id } }"
    text = f"{{ ships(first: 3) {{ nodes {{ id crew(first: 2) {{ nodes {{ {member} }} }} }} }} }}"
    more = (
        "query ($id: ID!, $after: String) "
        f"{{ member(shipId: $id, first: 2, after: $after) {{ nodes {{ {member} }} }} }}"
    )
    query = Query(text, rows=rows, streams=streams, follow={"ships.crew": more} if follow else {})
    found = read(query, shipyard, how)
    crew = {f"{s}-{m}": [f"{s}-{m}.{b}" for b in range(m % 4)] for s in range(7) for m in range(s)}
    badges = sorted(one for owned in crew.values() for one in owned)
    ids = {"ships": [str(s) for s in range(7)], "ships.crew": sorted(crew), "ships.crew.badges": badges}
    for name, path in {None: rows or "ships", **streams}.items():
        assert sorted(row["id"] for own, row in found if own == name) == ids[path], (name, path)
    for _, row in found:
        for one in [row, *row.get("crew", ())]:
            if "badges" in one:
                assert [badge["id"] for badge in one["badges"]] == crew[one["id"]]
        if "crew" in row:
            assert [one["id"] for one in row["crew"]] == [one for one in crew if one.startswith(f"{row['id']}-")]


def test_a_follow_that_does_not_ask_for_the_rows_of_a_stream_is_refused():
    text = "{ ships { nodes { id crew(first: 1) { nodes { id badges(first: 9) { nodes { id } } } } } } }"
    more = "query ($id: ID!) { member(shipId: $id, first: 9) { nodes { id } } }"
    for options in ({"rows": "ships.crew.badges"}, {"rows": "ships", "streams": {"badges": "ships.crew.badges"}}):
        with pytest.raises(DeclarationError, match=r"'ships.crew' does not ask for 'member.badges', where rows of"):
            Query(text, follow={"ships.crew": more}, **options)


@both_ways
@pytest.mark.parametrize("rows", ["account", "account.orders"])
def test_a_row_around_a_connection_comes_once_and_whole(server, paged, how, rows):
    """With all rows of other streams before the running one's."""
    orders = [{"id": str(n)} for n in range(3)]

    def answer(query, variables):
        made = paged(orders, 1, variables.get("burlerAfterAccountOrders"))
        info = {"burler_more": made["pageInfo"]["hasNextPage"], "burler_cursor": made["pageInfo"]["endCursor"]}
        account = {"id": "A", "orders": {"nodes": made["nodes"], "burler_page": info}}
        return {"data": {"account": {**account, "address": {"city": "X"}} if "city" in query else account}}

    server.answer = answer
    other = "account.orders" if rows == "account" else "account"
    text = "{ account { id address { city } orders(first: 1) { nodes { id } } } }"
    found = read(Query(text, rows=rows, streams={"other": other}), server, how)
    around, inside = (None, "other") if rows == "account" else ("other", None)
    assert [row for name, row in found if name == around] == [{"id": "A", "address": {"city": "X"}}]
    assert [row["id"] for name, row in found if name == inside] == ["0", "1", "2"]
    assert found[-1][0] is None


@both_ways
def test_a_list_in_a_row_is_whole_where_rows_of_another_stream_stand_in_it(shipyard, how):
    """The ship is one object, its crew a list in it, and the badges of the crew are a stream."""
    text = (
        "query ($id: ID!) { node(id: $id) { ... on Ship { id crew(first: 2) "
        "{ nodes { id badges(first: 9) { nodes { id } } } } } } }"
    )
    query = Query(text, rows="node", streams={"badges": "node.crew.badges"})
    found = read(query, shipyard, how, id="6")
    assert [row for name, row in found if name is None] == [{"id": "6", "crew": [{"id": f"6-{m}"} for m in range(6)]}]
    assert len([row for name, row in found if name == "badges"]) == sum(m % 4 for m in range(6))


@both_ways
def test_rows_wait_for_those_that_stand_beside_them(server, paged, how):
    """A bookmark of theirs says where all of the query begins the next time."""
    rows = {"ships": [{"id": str(n)} for n in range(5)], "ports": [{"id": str(n)} for n in range(7)]}
    fails = []

    def answer(query, variables):
        out = {}
        for name, listed in rows.items():
            if f"{name}(" in query:
                after = variables.get(f"burlerAfter{name.title()}")
                if (name, after) in fails:
                    return {"errors": [{"message": "boom"}]}
                made = paged(listed, 2, after)
                info = {"burler_more": made["pageInfo"]["hasNextPage"], "burler_cursor": made["pageInfo"]["endCursor"]}
                out[name] = {"nodes": made["nodes"], "burler_page": info}
        return {"data": out}

    server.answer = answer
    text = "{ ships(first: 2) { nodes { id } } ports(first: 2) { nodes { id } } }"
    query = Query(text, rows="ships", streams={"ports": "ports"})
    expected = [("ports", row) for row in rows["ports"]] + [(None, row) for row in rows["ships"]]
    assert read(query, server, how) == expected
    fails.append(("ports", "5"))
    found = []
    with pytest.raises(GraphQLError, match="boom"):
        for item in getattr(query, how)(server.client(retries=1)):
            found.append(item[0] if isinstance(item, tuple) else None)
    assert set(found) == {"ports"}


@both_ways
def test_rows_of_an_authors_own_way_wait_too(server, how):
    """Of the lists side by side one comes to its end later; only together they can be asked for."""
    server.answer = lambda query, variables: {
        "data": {"a": [{"id": 1}] if variables["page"] == 1 else [], "b": [{"id": 2}] if variables["page"] < 3 else []}
    }
    text = "query ($page: Int) { a(page: $page) { id } b(page: $page) { id } }"
    query = Query(text, rows="a", streams={"b": "b"}, paging=PageNumber())
    assert read(query, server, how) == [("b", {"id": 2}), ("b", {"id": 2}), (None, {"id": 1})]


@both_ways
def test_a_connection_that_leads_to_no_rows_is_nobodys_concern(shipyard, how):
    text = "{ ships(first: 9) { nodes { id } } other: ships(first: 2) { nodes { name } } list(limit: 1) { id } }"
    assert len(read(Query(text, rows="ships"), shipyard, how)) == 7


@both_ways
def test_a_reply_that_lacks_a_field_on_the_way_to_the_rows_is_an_error(server, how):
    server.answer = lambda query, variables: {"data": {"viewer": {}}}
    with pytest.raises(GraphQLError, match="the query asks for 'ships', and 'viewer' of the reply does not have it"):
        read(Query("{ viewer { ships { nodes { id } } } }"), server, how)
    for optional in ("ships @include(if: true) { nodes { id } }", "... on Owner { ships { nodes { id } } }"):
        assert read(Query(f"{{ viewer {{ {optional} }} }}"), server, how) == []


@both_ways
def test_a_page_without_rows_is_not_the_end(server, how):
    """Servers that leave rows out after they counted a page give such."""
    after = {
        None: ([], True, "a"),
        "a": ([{"id": 1}], True, "b"),
        "b": ([], True, "c"),
        "c": ([{"id": 2}], False, None),
    }
    server.answer = lambda query, variables: {"data": {"ships": connection(*after[variables.get("after")])}}
    assert [row["id"] for _, row in read(Query(SHIPS % INFO), server, how)] == [1, 2]


@both_ways
@pytest.mark.parametrize("says", [{"more": "list.more"}, {"total_pages": "count"}])
def test_null_for_a_page_that_the_server_counts_is_an_error(server, how, says):
    server.answer = lambda query, variables: {
        "data": {
            "count": 9,
            "list": {"more": variables["page"] < 6, "rows": [{"id": 1}] if variables["page"] < 3 else None},
        }
    }
    text = "query ($page: Int) { count list(page: $page) { more rows { id } } }"
    with pytest.raises(PagingError, match="has another page, and null stands where its rows should be"):
        read(Query(text, rows="list.rows", paging=PageNumber(**says)), server, how)


# ---- fields that would take the place of others --------------------------------------------------------------


def test_fields_of_edges_and_of_parents_do_not_take_the_place_of_a_rows_own():
    with pytest.raises(DeclarationError, match=r"edge of 'ships' and its node both have 'at'(.|\n)*'edge_at: at'"):
        Query("{ ships { edges { at node { id at } } } }")
    assert Query("{ ships { edges { edge_at: at node { id at } } } }").rows is None
    text = "{ ships { nodes { id crew { id name } } } }"
    with pytest.raises(
        DeclarationError, match=r"rows of 'crew' have a 'id' of their own(.|\n)*add={'parent_id': 'id'}"
    ):
        Query(text, rows="ships", streams={"crew": Rows("ships.crew", add={"id": "id"})})


# ---- more than was read -------------------------------------------------------------------------------------


def test_what_a_query_asks_beside_a_list_is_heard(server, caplog):
    """The list is no connection, nobody pages it, and the author has asked for what says that there is more."""
    server.answer = lambda query, variables: {"data": {"orders": {"items": [{"id": 1}, {"id": 2}], "hasMore": True}}}
    text = "query ($page: Int) { orders(page: $page) { items { id } hasMore } }"
    for paging, activations in ((None, 1), (lambda sent, page: None, 2)):  # one stands before the first rows of all
        query = Query(text, rows="orders.items", paging=paging)
        tap = burler.tap("tap-shop")
        tap.client(lambda config: server.client())
        tap.sync("orders", key_properties="id", schema={"properties": {"id": {}}})(
            lambda client, q=query: q.pages(client)
        )
        assert run_tap(tap).types.count("ACTIVATE_VERSION") == activations
    assert caplog.text.count("reading ends, and 'orders.hasMore' says that there are more") == 1


def test_a_way_that_ends_before_its_connection_does_makes_no_whole_table(server):
    server.answer = lambda query, variables: {"data": {"ships": connection([{"id": 1}], True, "a")}}
    text = f"query ($page: Int) {{ ships(page: $page) {{ nodes {{ id }} {INFO} }} }}"
    tap = burler.tap("tap-shop")
    tap.client(lambda config: server.client())

    @tap.sync("ships", key_properties="id", schema={"properties": {"id": {}}})
    def ships(client):
        return Query(text, paging=lambda sent, page: None).pages(client)

    assert run_tap(tap).types.count("ACTIVATE_VERSION") == 1
