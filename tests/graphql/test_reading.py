"""Rows arrive whole, in order and as the server wrote them, however it pages them."""

import datetime as dt
import json
from decimal import Decimal

import pytest

from burler import JsonPage
from burler.errors import GraphQLError, PagingError
from burler.graphql import Cursor, Offset, PageNumber, Query


def ids(pages):
    return [row["id"] for page in pages for row in (json.loads(page.data) if isinstance(page, JsonPage) else page)]


def ships(count):
    return [{"id": str(n), "name": f"S{n}"} for n in range(count)]


@pytest.mark.parametrize(
    "style", ["nodes { id name }", "edges { node { id name } }", "edges { cursor node { id name } }"]
)
@pytest.mark.parametrize("size", [1, 3, 7, 50])
def test_a_connection_is_read_to_its_end_as_bytes(shipyard, style, size):
    query = Query(f"query Q($first: Int!) {{ ships(first: $first) {{ {style} }} }}", page_size=size)
    pages = list(query.pages(shipyard.client()))
    assert all(isinstance(page, JsonPage) for page in pages)
    assert ids(pages) == ["0", "1", "2", "3", "4", "5", "6"]
    assert len(shipyard.asked) == -(-7 // size)
    assert shipyard.variables[0] == {"first": size}


def test_bytes_of_rows_go_out_as_the_server_wrote_them(server):
    row = b'{"id":1, "x": 12345678901234567890.12345678901234567890, "y":1E400,"z": "\\u00fc"}'
    body = b'{"data":{"ships":{"nodes":[' + row + b", null ," + row + b'],"pageInfo":{"hasNextPage":false}}}}'
    server.answer = lambda query, variables: body
    query = Query("{ ships { nodes { id x y z } pageInfo { hasNextPage endCursor } } }")
    assert [page.data for page in query.pages(server.client())] == [b"[" + row + b"," + row + b"]"]


def test_text_that_only_python_reads_costs_no_row(server):
    """Half of a surrogate pair, NaN: whether such a value fits is said for its row alone."""
    row = b'{"id": 1, "z": "\\ud83d", "n": NaN}'
    server.answer = lambda query, variables: (
        b'{"data":{"ships":{"nodes":[' + row + b'],"pageInfo":{"hasNextPage":false}}}}'
    )
    query = Query("{ ships { nodes { id z n } pageInfo { hasNextPage endCursor } } }")
    assert [row["z"] for page in query.pages(server.client()) for row in page] == ["\ud83d"]


def test_rows_that_are_null_are_left_out_with_a_word(server, caplog):
    nodes = [{"id": 1}, None, {"id": 2}, None]
    server.answer = lambda query, variables: {
        "data": {"ships": {"edges": [*({"node": one} for one in nodes), None], "burler_page": {"burler_more": False}}}
    }
    query = Query("{ ships { edges { node { id } } } }")
    assert ids(query.pages(server.client())) == [1, 2]
    assert [row["id"] for row in query.records(server.client())] == [1, 2]
    assert [one.message for one in caplog.records if "3 rows left out" in one.message] != []


def test_pages_backwards(server, paged):
    rows = ships(5)

    def answer(query, variables):
        end = next((n for n, row in enumerate(rows) if row["id"] == variables.get("b")), len(rows))
        part = rows[max(0, end - 2) : end]
        info = {"burler_more": end > 2, "burler_cursor": part[0]["id"]}
        return {"data": {"ships": {"nodes": part, "burler_page": info}}}

    server.answer = answer
    query = Query("query ($b: String) { ships(last: 2, before: $b) { nodes { id } } }")
    assert ids(query.pages(server.client())) == ["3", "4", "1", "2", "0"]


def test_it_may_begin_at_a_cursor(shipyard):
    query = Query("query ($c: String) { ships(first: 3, after: $c) { nodes { id } } }")
    assert ids(query.pages(shipyard.client(), c="3")) == ["4", "5", "6"]


@pytest.mark.parametrize(
    ("paging", "head", "arguments", "requests"),
    [
        (Offset(until="short"), "$offset: Int, $limit: Int", "offset: $offset, limit: $limit", 3),
        (Offset(), "$offset: Int, $limit: Int", "offset: $offset, limit: $limit", 4),
        (PageNumber(), "$page: Int", "page: $page", 4),
        (lambda sent, page: {"offset": sent.get("offset", 0) + page.rows} if page.rows else None,
         "$offset: Int", "offset: $offset, limit: 3", 4),
    ],
)  # fmt: skip
def test_pages_by_variables(shipyard, paging, head, arguments, requests):
    query = Query(f"query ({head}) {{ list({arguments}) {{ id }} }}", paging=paging, page_size=3)
    assert ids(query.pages(shipyard.client())) == [str(n) for n in range(7)]
    assert len(shipyard.asked) == requests


def test_an_exact_number_of_pages_by_offset_and_total(server):
    rows = ships(6)

    def answer(query, variables):
        begin = variables["skip"]
        return {"data": {"list": {"rows": rows[begin : begin + variables["take"]], "total": 6}}}

    server.answer = answer
    query = Query(
        "query ($skip: Int, $take: Int) { list(skip: $skip, take: $take) { total rows { id } } }",
        rows="list.rows",
        paging=Offset("skip", limit="take", total="list.total"),
        page_size=3,
    )
    assert ids(query.pages(server.client())) == [str(n) for n in range(6)]
    assert server.variables == [{"skip": 0, "take": 3}, {"skip": 3, "take": 3}]


def test_a_cursor_of_the_servers_own_and_a_page_count(server):
    rows = ships(5)

    def answer(query, variables):
        begin = int(variables.get("cursor", 0))
        end = begin + 2
        return {"data": {"items_page": {"cursor": str(end) if end < 5 else None, "items": rows[begin:end], "pages": 3}}}

    server.answer = answer
    text = (
        "query ($cursor: String, $page: Int) { items_page(cursor: $cursor, page: $page) { cursor pages items { id } } }"
    )
    query = Query(text, rows="items_page.items", paging=Cursor("items_page.cursor"))
    assert ids(query.pages(server.client())) == [str(n) for n in range(5)]
    server.asked.clear()
    numbered = Query(text, rows="items_page.items", paging=PageNumber(total_pages="items_page.pages"))
    list(numbered.pages(server.client()))
    assert [one["page"] for one in server.variables] == [1, 2, 3]


def circle(info):
    return lambda query, variables: {"data": {"ships": {"nodes": [{"id": 1}], "pageInfo": info}}}


def test_pages_in_a_circle_are_an_error(server):
    query = Query("query Ships($c: String) { ships(after: $c) { nodes { id } pageInfo { hasNextPage endCursor } } }")
    server.answer = circle({"hasNextPage": True, "endCursor": "abc"})
    with pytest.raises(PagingError, match=r"page 2 of 'ships' leads to the cursor 'abc' a second time"):
        list(query.pages(server.client()))
    server.answer = circle({"hasNextPage": True, "endCursor": None})
    with pytest.raises(PagingError, match="there is another page, and not where it begins"):
        list(query.pages(server.client()))
    server.answer = lambda query, variables: {"data": {"list": [{"id": 1}], "next": "x"}}
    endless = Query("query ($cursor: String) { next list(c: $cursor) { id } }", rows="list", paging=Cursor("next"))
    with pytest.raises(PagingError, match=r'page 2 leads to variables that were sent before \(\{"cursor":"x"\}\)'):
        list(endless.pages(server.client()))


def test_rows_without_a_word_on_whether_there_are_more_are_an_error(server):
    nodes = [{"id": 1, "crew": {"nodes": [{"id": 2}], "burler_page": None}}]
    server.answer = lambda query, variables: {
        "data": {"ships": {"nodes": nodes if "crew" in query else [{"id": 1}], "burler_page": None}}
    }
    with pytest.raises(PagingError, match=r"'ships' has rows and does not say whether there are more"):
        list(Query("{ ships { nodes { id } } }").pages(server.client()))
    with pytest.raises(PagingError, match=r"'ships.crew' has rows and does not say whether"):
        list(Query("{ ships { nodes { id crew { nodes { id } } } } }").pages(server.client()))
    server.answer = lambda query, variables: {"data": {"ships": {"nodes": [], "burler_page": None}}}
    assert list(Query("{ ships { nodes { id } } }").pages(server.client())) == []


def test_a_server_that_caps_the_page_size_costs_no_row(server):
    """100 are asked for, 3 come: that is not yet the end."""
    server.answer = lambda query, variables: {"data": {"list": ships(7)[variables["offset"] :][:3]}}
    query = Query("query ($offset: Int, $limit: Int) { list(offset: $offset, limit: $limit) { id } }", paging=Offset())
    assert len(ids(query.pages(server.client()))) == 7


def test_null_in_place_of_a_connection_is_no_rows(server):
    server.answer = lambda query, variables: {"data": {"viewer": None}}
    query = Query("{ viewer { id ships { nodes { id } } } }")
    assert list(query.pages(server.client())) == [] and list(query.records(server.client())) == []
    server.answer = lambda query, variables: {"data": {"viewer": {"id": 1, "ships": None}}}
    assert list(query.pages(server.client())) == [] and list(query.records(server.client())) == []


def test_one_object_is_one_row(server):
    server.answer = lambda query, variables: {"data": {"viewer": {"id": 1}}}
    query = Query("{ viewer { id } }")
    assert ids(query.pages(server.client())) == [1]


def test_rows_in_lists_of_lists(server):
    """What the text can't say, the reply does: boards is a list, so are its groups."""
    server.answer = lambda query, variables: {
        "data": {"boards": [{"items": [{"id": 1}]}, None, {"items": [{"id": 2}]}]}
    }
    assert ids(Query("{ boards { items { id } } }", rows="boards.items").pages(server.client())) == [1, 2]


def test_variables_are_sent_as_values(server):
    server.answer = lambda query, variables: {"data": {"list": []}}
    query = Query(
        "query Q($since: DateTime, $day: Date, $amount: Decimal, $names: [String!], $variables: JSON, $none: Int, "
        "$naive: DateTime) "
        "{ list(g: $naive, a: $since, b: $day, c: $amount, d: $names, e: $variables, f: $none) { id } }"
    )
    at = dt.datetime(2024, 1, 2, 5, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    list(
        query.pages(
            server.client(),
            {"variables": {"at": at}},
            since=at,
            naive=dt.datetime(2024, 1, 2, 3),  # noqa: DTZ001
            day=dt.date(2024, 1, 2),
            amount=Decimal("0.10"),
            names=("a", '"} { id'),
            none=None,
        )
    )
    assert server.variables == [
        {
            "since": "2024-01-02T03:00:00Z",
            "naive": "2024-01-02T03:00:00Z",
            "day": "2024-01-02",
            "amount": 0.1,
            "names": ["a", '"} { id'],
            "variables": {"at": "2024-01-02T03:00:00Z"},
        }
    ]
    assert server.asked[0]["operationName"] == "Q"
    assert server.asked[0]["headers"]["Content-Type"] == "application/json"


def test_a_variable_that_is_missing_or_unknown_is_said_before_anything_is_sent(shipyard):
    query = Query("query Q($named: String!) { ships(first: 1, named: $named) { nodes { id } } }")
    with pytest.raises(GraphQLError, match=r"the variable \$named must have a value"):
        list(query.pages(shipyard.client()))
    with pytest.raises(GraphQLError, match=r"has no variable 'name'. Did you mean 'named'\?"):
        list(query.pages(shipyard.client(), name="x"))
    assert shipyard.asked == []


def test_one_reply_as_it_is(shipyard):
    query = Query("query Q($id: ID!) { node(id: $id) { id ... on Ship { name } } }")
    assert query.ask(shipyard.client(), id="3") == {"node": {"id": "3", "name": "S3"}}


def test_a_client_that_is_none(shipyard):
    query = Query("{ list { id } }")
    with pytest.raises(GraphQLError, match=r"sent with a burler.http.Client, not with str"):
        list(query.pages("http://127.0.0.1"))
