"""Replies with errors: none is overlooked, those that pass are waited out, and a page that is too much gets smaller."""

import hashlib
import json

import pytest

import burler
from burler.errors import CredentialsError, GraphQLError, HttpError, SourceError
from burler.graphql import Offset, PageNumber, Query
from burler.http import bearer
from burler.testing import bind_stream, canary

SHIPS = "query Ships($first: Int!) { ships(first: $first) { nodes { id mass } pageInfo { hasNextPage endCursor } } }"


def good(rows=({"id": 1},), **more):
    return {"data": {"ships": {"nodes": list(rows), "pageInfo": {"hasNextPage": False}}}, **more}


def refusal(code, message="no", **more):
    return {"data": None, "errors": [{"message": message, "extensions": {"code": code}}], **more}


def in_turn(server, *replies):
    """Answer with these, one after the other, the last one for ever."""
    left = list(replies)
    server.answer = lambda query, variables: left.pop(0) if len(left) > 1 else left[0]


def read(server, query=None, variables=None, **client):
    return list((query or Query(SHIPS)).records(server.client(**client), variables))


def test_errors_without_data_fail_with_what_the_server_says(server):
    error = {
        "message": "Cannot query field 'mess'",
        "locations": [{"line": 5, "column": 9}],
        "extensions": {"code": "GRAPHQL_VALIDATION_FAILED"},
    }
    in_turn(
        server,
        {
            "errors": [
                error,
                {"message": "and this", "path": ["a", 1], "locations": [{"line": 99}]},
                "text",
                {},
                {"message": "more"},
            ]
        },
    )
    with pytest.raises(GraphQLError) as caught:
        read(server)
    said = str(caught.value)
    assert "GraphQL query 'Ships' (" in said and "test_errors.py:" in said
    assert "Cannot query field 'mess' near 'mass' [GRAPHQL_VALIDATION_FAILED]; and this at a.1; text" in said
    assert "text; and 2 more" in said
    assert caught.value.errors[0] == error
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [400, 422])
def test_errors_of_the_query_in_a_refusal_are_read(server, status):
    in_turn(server, (status, refusal("GRAPHQL_PARSE_FAILED", "Syntax Error")))
    with pytest.raises(GraphQLError, match="Syntax Error"):
        read(server)
    assert len(server.asked) == 1


def test_a_refusal_that_is_none_of_graphql_is_an_http_error(server):
    in_turn(server, (400, {"message": "go away"}))
    with pytest.raises(HttpError, match="go away"):
        read(server, retries=1)
    in_turn(server, (401, refusal("UNAUTHENTICATED")))
    with pytest.raises(CredentialsError):
        read(server)


def test_refused_credentials_in_a_good_reply_name_the_cure(server):
    in_turn(server, refusal("UNAUTHENTICATED", "who?"))
    with pytest.raises(GraphQLError, match="Look whether the credentials are right"):
        read(server)


def test_a_field_that_failed_fails_the_stream_unless_the_author_says_otherwise(server, caplog):
    error = {"message": "scales broken", "path": ["ships", "nodes", 0, "mass"], "extensions": {"code": "SCALES"}}
    in_turn(server, good([{"id": 1, "mass": None}, {"id": 2, "mass": 5}], errors=[error]))
    with pytest.raises(GraphQLError, match=r"scales broken at ships.nodes.0.mass \[SCALES\](.|\n)*on_error='warn'"):
        read(server)
    caplog.clear()
    rows = read(server, Query(SHIPS, on_error="warn"))
    assert rows == [{"id": 1, "mass": None}, {"id": 2, "mass": 5}]
    assert any("rows go out with null where the server failed: scales broken" in one.message for one in caplog.records)


@pytest.mark.parametrize("read_as", ["pages", "records"])
def test_a_page_that_failed_as_a_whole_is_never_taken_for_an_empty_one(server, read_as):
    error = {"message": "gone wrong", "path": ["ships"]}
    in_turn(server, {"data": {"ships": None}, "errors": [error]})
    query = Query(SHIPS, on_error="warn")
    with pytest.raises(GraphQLError, match="gone wrong"):
        list(getattr(query, read_as)(server.client()))


@pytest.mark.parametrize("code", ["THROTTLED", "RATE_LIMITED", "too_many_requests"])
@pytest.mark.parametrize("status", [200, 400])
def test_a_server_that_throttles_is_asked_again(server, code, status):
    in_turn(server, (status, refusal(code)), (status, refusal(code)), good())
    assert read(server) == [{"id": 1}]
    assert len(server.asked) == 3
    assert server.asked[0] == server.asked[2]


def test_kinds_of_errors_in_other_places_are_known(server):
    by_type = {"data": None, "errors": [{"type": "RATE_LIMITED", "message": "x"}]}
    only_text = {"errors": [{"message": "Throttled"}]}
    partial = {"data": {"ships": None}, "errors": [{"message": "x", "extensions": {"code": "THROTTLED"}}]}
    in_turn(server, by_type, only_text, partial, good())
    assert read(server) == [{"id": 1}]
    in_turn(server, refusal("BUSY"), good())
    assert read(server, Query(SHIPS, retry_codes=["busy"])) == [{"id": 1}]


def test_it_waits_until_the_bucket_has_filled(server):
    status = {"currentlyAvailable": 10, "restoreRate": 50, "maximumAvailable": 1000}
    cost = {"cost": {"requestedQueryCost": 210, "throttleStatus": status}}
    in_turn(server, refusal("THROTTLED", extensions=cost), good())
    assert read(server) == [{"id": 1}]
    assert sum(server.sleeps) >= 4
    server.sleeps.clear()
    retry = {"data": None, "errors": [{"message": "x", "extensions": {"code": "THROTTLED", "retryAfter": 7}}]}
    in_turn(server, retry, good())
    assert read(server) == [{"id": 1}]
    assert sum(server.sleeps) >= 7


def test_a_server_that_throttles_for_ever_is_one_error(server):
    in_turn(server, refusal("THROTTLED", "slow down"))
    with pytest.raises(GraphQLError, match=r"slow down(.|\n)*Ask less often") as caught:
        read(server, retries=3)
    assert len(server.asked) == 4
    assert caught.value.errors[0]["message"] == "slow down"


@pytest.mark.parametrize(
    "body", [b"<html>maintenance</html>", b'{"data": {"ships"', b"[]", b"{}", b"", b'{"data": null}']
)
def test_a_reply_that_is_none_is_asked_for_again_and_then_an_error(server, body):
    in_turn(server, body, good())
    assert read(server) == [{"id": 1}]
    in_turn(server, body)
    with pytest.raises(HttpError):
        read(server, retries=2)


@pytest.mark.parametrize("read_as", ["pages", "records"])
@pytest.mark.parametrize(
    ("data", "fact"),
    [
        ([], "'data' of the reply should be an object and is list"),
        ("x", "'data' of the reply should be an object and is a string"),
        ({}, "the query asks for 'fleet', and 'data' of the reply does not have it"),
        ({"fleet": 5}, "'fleet' of the reply should be an object and is an integer"),
        ({"fleet": {"ships": "x"}}, "'fleet.ships' of the reply should be a connection and is a string"),
        ({"fleet": {"ships": {}}}, "'nodes' of 'fleet.ships' should be a list and is not there"),
        ({"fleet": {"ships": {"nodes": {"a": 1}}}}, "'nodes' of 'fleet.ships' should be a list and is dict"),
        ({"fleet": {"ships": {"nodes": [{"id": 1}], "pageInfo": {"hasNextPage": "n"}}}}, "does not say as connections"),
        ({"fleet": {"ships": {"nodes": [{"id": 1}], "pageInfo": []}}}, "does not say whether there are more"),
        ({"fleet": {"ships": {"nodes": [{"id": 1}], "pageInfo": {"hasNextPage": True, "endCursor": {}}}}},
         "does not say as connections"),
    ],
)  # fmt: skip
def test_a_reply_of_another_shape_is_one_error(server, data, fact, read_as):
    in_turn(server, {"data": data})
    query = Query("{ fleet { ships { nodes { id } pageInfo { hasNextPage endCursor } } } }")
    with pytest.raises(SourceError) as caught:
        list(getattr(query, read_as)(server.client(retries=1)))
    assert fact in str(caught.value)


def test_a_field_that_a_directive_leaves_out_may_be_missing(server):
    in_turn(server, {"data": {}})
    assert read(server, Query("query ($a: Boolean!) { ships @include(if: $a) { nodes { id } } }"), {"a": False}) == []


def limited(most, code="MAX_COST_EXCEEDED", rows=20):
    """A server that gives 20 rows, at most so many at once."""

    def answer(query, variables):
        first, begin = variables["first"], int(variables.get("after") or 0)
        if first > most:
            return refusal(code) if isinstance(code, str) else (code, b"timeout")
        part = [{"id": n} for n in range(begin, min(rows, begin + first))]
        info = {"hasNextPage": begin + first < rows, "endCursor": str(begin + first)}
        return {"data": {"ships": {"nodes": part, "pageInfo": info}}}

    return answer


PAGED = (
    "query ($first: Int!, $after: String) "
    "{ ships(first: $first, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } }"
)


@pytest.mark.parametrize("code", ["MAX_COST_EXCEEDED", "QUERY_TOO_COMPLEX", 502, 504])
def test_a_page_that_is_too_much_is_asked_for_in_smaller_ones(server, code):
    server.answer = limited(6, code)
    rows = read(server, Query(PAGED, page_size=16), retries=1)
    assert [row["id"] for row in rows] == list(range(20))
    sizes = [one["first"] for one in server.variables]
    assert min(sizes) == 4 and sizes[0] == 16
    assert sizes.count(8) <= 4  # tried again now and then, not each time


def test_pages_grow_again_once_they_fit(server):
    server.answer = limited(3)
    query = Query(PAGED, page_size=16)
    pages = query.pages(server.client())
    next(pages)
    server.answer = limited(100, rows=200)
    assert sum(len(json.loads(page.data)) for page in pages) == 198
    assert server.variables[-1]["first"] == 16


@pytest.mark.parametrize("until", ["short", "empty"])
def test_an_offset_keeps_its_place_when_pages_shrink(server, until):
    def answer(query, variables):
        if variables["limit"] > 3:
            return refusal("MAX_COST_EXCEEDED")
        return {"data": {"list": [{"id": n} for n in range(11)][variables["offset"] :][: variables["limit"]]}}

    server.answer = answer
    text = "query ($offset: Int, $limit: Int) { list(offset: $offset, limit: $limit) { id } }"
    assert [row["id"] for row in read(server, Query(text, paging=Offset(until=until), page_size=8))] == list(range(11))


def test_a_page_that_can_not_be_smaller_is_an_error_with_the_cure(server):
    server.answer = lambda query, variables: refusal("MAX_COST_EXCEEDED", "too dear")
    with pytest.raises(GraphQLError, match=r"too dear(.|\n)*smallest page is too much"):
        read(server, Query(PAGED, page_size=4))
    assert [one["first"] for one in server.variables] == [4, 2, 1]
    with pytest.raises(GraphQLError, match=r"too dear(.|\n)*Make the number of rows a variable"):
        read(server, Query("{ ships(first: 50) { nodes { id } } }"))
    numbered = Query("query ($page: Int) { list(page: $page) { id } }", paging=PageNumber())
    with pytest.raises(GraphQLError, match="too dear"):
        read(server, numbered)


def test_what_a_server_repeats_of_a_secret_stands_in_no_error(server, caplog):
    token, variable = canary("graphql"), canary("variable")
    bearer(token)
    bearer(variable)
    error = {"message": f"no ship for {variable}", "extensions": {"headers": [f"Bearer {token}"], "apiKey": "abcdefgh"}}
    in_turn(server, {"errors": [error]})
    with pytest.raises(GraphQLError) as caught:
        read(server, token=token)
    assert "no ship for ***" in str(caught.value)
    assert caught.value.errors[0]["extensions"] == {"headers": ["Bearer ***"], "apiKey": "***"}
    for body in (f"<html>{token}".encode(), {"data": token}, {"data": {"ships": variable}}):
        in_turn(server, body)
        with pytest.raises(SourceError) as caught:
            read(server, token=token, retries=0)
        assert token not in str(caught.value) and variable not in str(caught.value)
    assert token not in caplog.text and variable not in caplog.text


def test_queries_may_be_sent_in_the_address(server):
    in_turn(server, good())
    assert read(server, Query(SHIPS, method="GET", page_size=3)) == [{"id": 1}]
    assert server.asked[0]["method"] == "GET"
    assert server.asked[0]["variables"] == {"first": 3} and server.asked[0]["query"].startswith("query Ships(")


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_text_that_the_server_stores_is_sent_once(server, method):
    stored = {}

    def answer(query, variables):
        asked = server.asked[-1]
        digest = asked["extensions"]["persistedQuery"]["sha256Hash"]
        if query is None and digest not in stored:
            return {"errors": [{"message": "PersistedQueryNotFound"}]}
        assert hashlib.sha256((query or stored[digest]).encode()).hexdigest() == digest
        stored.setdefault(digest, query)
        return good()

    server.answer = answer
    query = Query(SHIPS, persisted=True, method=method)
    for _ in range(2):
        assert list(query.records(server.client())) == [{"id": 1}]
    assert [one["query"] is None for one in server.asked] == [True, False, True]


def test_what_went_wrong_is_counted_for_the_report(server):
    tap = burler.tap("tap-starships")
    error = {"message": "scales broken", "path": ["ships", "nodes", 0, "mass"], "extensions": {"code": "SCALES"}}
    in_turn(server, refusal("THROTTLED"), good([{"id": 1, "mass": None}], errors=[error]))
    query = Query(SHIPS, on_error="warn")

    @tap.sync("ships", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def ships():
        return query.pages(server.client())

    with bind_stream(tap, "ships", selected=frozenset(["ships"])) as run:
        assert len(list(ships())) == 1
    counts = run.tally.to_json()
    assert counts["graphql_errors"] == {"SCALES": 1}
    assert counts["retries"] == {"throttled": 1} and counts["requests"] == 2


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_secrets_in_variables_show_in_no_error(server, method, caplog):
    """GET sends them in the URL, and a server may repeat them; a cursor is none, whatever it is called."""
    key, inner = canary("api-key"), canary("inner")
    text = (
        "query Q($apiKey: String, $login: Login, $pageToken: String) "
        "{ ships(key: $apiKey, by: $login, after: $pageToken) { nodes { id } pageInfo { hasNextPage endCursor } } }"
    )
    query = Query(text, method=method)
    given = {"apiKey": key, "login": {"password": [inner]}, "pageToken": "cursor-of-the-page"}
    in_turn(server, (500, f"no {key} and {inner} at cursor-of-the-page".encode()))
    with pytest.raises(HttpError) as caught:
        read(server, query, given, retries=2)
    said = f"{caught.value} {caught.value.url} {caplog.text}"
    assert key not in said and inner not in said and "cursor-of-the-page" in str(caught.value)
    assert caught.value.url == server.url and f"{method} {server.url}: 500" in str(caught.value)
    assert json.dumps(server.variables).count(key) == 3  # it is sent all the same
    in_turn(server, refusal("X", f"bad key {key}, {inner}"))
    with pytest.raises(GraphQLError) as failed:
        read(server, query, given)
    assert key not in str(failed.value) and inner not in str(failed.value)
