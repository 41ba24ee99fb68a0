"""Queries in taps: what is selected is asked for, bookmarks become variables, streams come out of one query."""

import json
import pickle

import pytest

import burler
from burler.errors import GraphQLError
from burler.graphql import Query, Rows
from burler.patterns import cursor_pages
from burler.testing import run_tap

SHIPS = """
query Ships($since: String, $verbose: Boolean = false) {
  ships(since: $since, first: 50) {
    nodes {
      id name size at
      engine { thrust kind parts { code } }
      crew(first: 9) { edges { role node { id name } } }
      notes(long: $verbose) { text }
    }
    pageInfo { hasNextPage endCursor }
  }
  limits { left }
}
"""
STRING = {"type": ["null", "string"]}
PARTS = {"type": "array", "items": {"properties": {"code": STRING}}}
SHIP = {
    "properties": {
        "id": {"type": "integer"},
        "name": STRING,
        "size": STRING,
        "at": {"type": "string", "format": "date-time"},
        "engine": {
            "anyOf": [
                {"type": "null"},
                {"type": "object", "properties": {"thrust": STRING, "kind": STRING, "parts": PARTS}},
            ]
        },
        "notes": {"type": "object", "properties": {"text": STRING}},
    }
}  # fmt: skip
MEMBER = {"properties": {"id": {"type": "integer"}, "name": STRING, "role": STRING, "ship": {"type": "integer"}}}


def ship(number, at):
    return {
        "id": number,
        "name": f"S{number}",
        "at": at,
        "burler_type": "Ship",
        "engine": {"thrust": "t", "kind": "k", "parts": []},
        "notes": {"text": "n"},
        "crew": {
            "edges": [{"role": "r", "node": {"id": 10 * number + n, "name": "m"}} for n in range(2)],
            "burler_page": {"burler_more": False},
        },
    }


@pytest.fixture
def tap(server):
    rows = [ship(1, "2024-01-01T00:00:00Z"), ship(2, "2024-01-02T00:00:00Z")]

    def answer(query, variables):
        found = [row for row in rows if row["at"] >= variables.get("since", "")]
        return {"data": {"ships": {"nodes": found, "pageInfo": {"hasNextPage": False, "endCursor": None}}}}

    server.answer = answer
    query = Query(SHIPS, rows="ships", streams={"crew": Rows("ships.crew", add={"ship": "id"})})
    made = burler.tap("tap-ships")
    made.client(lambda: server.client())

    @made.sync("ships", key_properties="id", replication_key="at", schema=SHIP)
    def ships(client, stream):
        yield from query.pages(client, since=stream.bookmark)

    made.stream("crew", emitted_by="ships", key_properties="id", schema=MEMBER)
    made.rows = rows
    return made


def asked(server):
    """The selection of the last request, without white space and without what the pager adds."""
    text = " ".join(server.asked[-1]["query"].split())
    return text.replace(" burler_type: __typename", "").replace(
        " burler_page: pageInfo { burler_more: hasNextPage burler_cursor: endCursor }", ""
    )


def test_everything_is_asked_for_where_everything_is_selected(server, tap):
    out = run_tap(tap)
    assert not out.result.errors
    assert [row["id"] for row in out.records("ships")] == [1, 2]
    assert out.records("crew") == [
        {"role": "r", "id": 10 * s + n, "name": "m", "ship": s} for s in (1, 2) for n in (0, 1)
    ]
    assert out.types.index("STATE") > max(n for n, m in enumerate(out.messages) if m["type"] == "RECORD")
    assert "limits { left }" in asked(server)
    for field in (
        "name",
        "size",
        "thrust kind parts { code }",
        "role node { id name }",
        "notes(long: $verbose) { text }",
    ):
        assert field in asked(server)


def test_fields_that_nobody_selects_are_not_asked_for(server, tap):
    out = run_tap(tap, select="ships.name,ships.engine.kind,crew.name")
    assert not out.result.errors
    assert out.records("ships")[0] == {"id": 1, "at": "2024-01-01T00:00:00Z", "name": "S1", "engine": {"kind": "k"}}
    assert out.records("crew")[0] == {"id": 10, "name": "m"}
    assert asked(server) == (
        "query Ships($since: String) { ships(since: $since, first: 50, after: $burlerAfterShips) { nodes { id name at "
        "engine { kind } crew(first: 9) { edges { node { id name } } } } pageInfo { hasNextPage endCursor } } "
        "limits { left } }"
    ).replace("$since: String)", "$since: String, $burlerAfterShips: String)")


def test_a_stream_that_nobody_selects_is_not_asked_for(server, tap):
    out = run_tap(tap, select="!crew")
    assert len(out.records("ships")) == 2 and not out.records("crew")
    assert "crew" not in asked(server) and "nodes { id name size at engine" in asked(server)
    assert all(set(row) == {"id", "name", "at", "engine", "notes"} for row in out.records("ships"))


def test_the_other_stream_alone(server, tap):
    out = run_tap(tap, select="crew")
    assert not out.result.errors
    assert not out.records("ships") and len(out.records("crew")) == 4
    assert out.records("crew")[0]["ship"] == 1
    assert "thrust" not in asked(server) and "notes" not in asked(server)


def test_what_the_pager_needs_is_asked_for_whoever_selects_it(server):
    """The id of a ship whose crew has a second page; it does not go out."""

    def answer(query, variables):
        after = variables.get("burlerAfter")
        info = {"burler_more": not after, "burler_cursor": "c"}
        ship = {"burler_type": "Ship", "crew": {"nodes": [{"name": after or "first"}], "burler_page": info}}
        if "$burlerId" in query:
            return {"data": {"node": ship}}
        assert "nodes { id crew" in " ".join(query.split())
        return {"data": {"ships": {"nodes": [{**ship, "id": 7}], "burler_page": {"burler_more": False}}}}

    server.answer = answer
    crew = {"type": "array", "items": {"type": "object", "properties": {"name": STRING}}}
    query = Query("{ ships { nodes { id size crew(first: 1) { nodes { name } } } } }", rows="ships")
    tap = burler.tap("tap-ships")
    schema = {"properties": {"id": {"type": "integer"}, "size": STRING, "crew": crew}}
    tap.sync("ships", schema=schema)(lambda: query.pages(server.client()))
    out = run_tap(tap, select="ships.crew")
    assert not out.result.errors
    assert out.records("ships") == [{"crew": [{"name": "first"}, {"name": "c"}]}]
    assert server.variables[1] == {"burlerId": 7, "burlerAfter": "c"}


def test_a_variable_that_only_fields_use_that_are_gone_is_neither_declared_nor_sent(server):
    query = Query(SHIPS, rows="ships")
    tap = burler.tap("tap-ships")
    tap.client(lambda: server.client())
    tap.sync("ships", key_properties="id", schema=SHIP)(lambda client: query.pages(client, verbose=True))
    run_tap(tap, select="!ships.notes")
    assert "verbose" not in asked(server) and "verbose" not in server.variables[-1]
    run_tap(tap)
    assert "long: $verbose" in asked(server) and server.variables[-1]["verbose"] is True


def test_the_second_run_asks_from_the_bookmark_on(server, tap):
    first = run_tap(tap)
    assert "since" not in server.variables[-1]
    assert first.states[-1] == {"bookmarks": {"ships": {"at": "2024-01-02T00:00:00Z"}}}
    tap.rows.append(ship(3, "2024-01-03T00:00:00Z"))
    second = run_tap(tap, state=first.states[-1])
    assert server.variables[-1]["since"] == "2024-01-02T00:00:00Z"
    assert [row["id"] for row in second.records("ships")] == [2, 3]
    assert [row["ship"] for row in second.records("crew")] == [2, 2, 3, 3]
    assert second.states[-1]["bookmarks"]["ships"]["at"] == "2024-01-03T00:00:00Z"


def plain(server, **options):
    rows = [{"id": 1, "name": "a", "size": "s"}]
    server.answer = lambda query, variables: {"data": {"list": rows}}
    query = Query("{ list { id name size } }", **options)
    tap = burler.tap("tap-ships")
    tap.client(lambda: server.client())
    handle = tap.stream("ships", key_properties="id", schema=SHIP)
    handle.sync(lambda client: query.pages(client))
    return tap, handle


def test_functions_that_see_rows_get_all_of_their_fields(server):
    tap, handle = plain(server)
    seen = []
    handle.substream("notes", schema=MEMBER).sync(lambda parent: seen.append(parent) or [])
    run_tap(tap, select="notes,ships.id")
    assert seen == [{"id": 1, "name": "a", "size": "s"}]
    assert "name size" in asked(server)
    tap, handle = plain(server)
    handle.bookmark(lambda record: record["name"])
    run_tap(tap, select="ships.id")
    assert "name size" in asked(server)


def test_parents_that_nobody_selects_come_beside_streams_that_somebody_does(server, tap):
    seen = []
    tap.sync("logs", parent="ships", schema=MEMBER)(lambda parent: seen.append(parent["id"]) or [])
    out = run_tap(tap, select="logs,crew")
    assert not out.result.errors and not out.records("ships")
    assert seen == [1, 2] and len(out.records("crew")) == 4


def test_a_substream_of_an_emitted_stream_gets_its_whole_parents(server, tap):
    seen = []
    tap.sync("badges", parent="crew", schema=MEMBER)(lambda parent: seen.append(parent) or [])
    out = run_tap(tap, select="badges")
    assert not out.result.errors and not out.records("crew")
    assert [row["id"] for row in seen] == [10, 11, 20, 21]
    assert "edges { role node { id name } }" in asked(server)


def test_a_substream_alone_gets_its_parents(server):
    tap, handle = plain(server)
    handle.substream("notes", key_properties="id", schema=MEMBER).sync(lambda parent: [{"id": parent["id"]}])
    out = run_tap(tap, select="notes")
    assert not out.result.errors
    assert out.records("notes") == [{"id": 1}] and not out.records("ships")


def test_functions_that_are_no_sync_function_read_whole_rows(server):
    server.answer = lambda query, variables: {"data": {"list": [{"id": 1, "name": "a"}]}}
    query = Query("{ list { id name } }")
    tap = burler.tap("tap-ships")
    tap.client(lambda: server.client())
    tap.discover(lambda client: {row["name"]: SHIP for page in query.pages(client) for row in json.loads(page.data)})
    tap.sync("*", key_properties="id")(lambda client: query.pages(client))
    assert run_tap(tap).records("a") == [{"id": 1, "name": "a"}]


def test_the_author_decides_what_is_asked_for(server):
    tap, _handle = plain(server, prune=False)
    run_tap(tap, select="ships.name")
    assert asked(server) == "{ list { id name size } }"
    tap, _handle = plain(server, keep=["size"])
    assert run_tap(tap, select="ships.id").records("ships") == [{"id": 1}]
    assert asked(server) == "{ list { id size } }"


def test_fields_that_no_schema_describes_are_asked_for(server):
    tap = burler.tap("tap-ships")
    server.answer = lambda query, variables: {"data": {"list": [{"id": 1, "extra": {"a": {"b": 1}}}]}}
    query = Query("{ list { id extra { a { b } } } }")
    tap.sync("ships", schema={"properties": {"id": {}, "extra": {}}})(lambda: query.pages(server.client()))
    assert run_tap(tap).records("ships") == [{"id": 1, "extra": {"a": {"b": 1}}}]


def test_each_partition_asks_with_its_own_variables(server):
    server.answer = lambda query, variables: {"data": {"list": [{"id": variables["fleet"], "name": "x"}]}}
    query = Query("query ($fleet: Int!) { list(fleet: $fleet) { id name } }")
    tap = burler.tap("tap-ships")
    tap.client(lambda: server.client())
    tap.partitions("ships")(lambda: [{"fleet": n} for n in range(5)])

    @tap.sync("ships", key_properties="id", schema=SHIP, workers=3)
    def ships(client, partition):
        return query.pages(client, fleet=partition["fleet"])

    out = run_tap(tap)
    assert not out.result.errors
    assert sorted(row["id"] for row in out.records("ships")) == [0, 1, 2, 3, 4]


def test_rows_of_a_stream_that_nobody_declared_are_not_lost_in_silence(server):
    query = Query(SHIPS, rows="ships", streams={"crew": "ships.crew"})
    tap = burler.tap("tap-ships")
    tap.sync("ships", key_properties="id", schema=SHIP)(lambda: query.pages(server.client()))
    said = str(run_tap(tap).result.errors["ships"])
    assert "gives rows of 'crew', which the tap does not declare" in said and "emitted_by='ships'" in said


def test_a_run_that_was_interrupted_goes_on_with_its_page(server, paged):
    """The cursor stands in stream.state: burler.patterns.cursor_pages with one page of the query after the other."""
    rows = [{"id": n, "at": f"2024-01-0{n}T00:00:00Z"} for n in range(1, 8)]
    broken = [True]

    def answer(query, variables):
        if variables.get("after") == "4" and broken:
            broken.clear()
            return {"errors": [{"message": "down"}]}
        found = paged(rows, 2, variables.get("after"))
        return {"data": {"ships": {"nodes": found["nodes"], "pageInfo": found["pageInfo"]}}}

    server.answer = answer
    fields = "nodes { id at } pageInfo { hasNextPage endCursor }"
    query = Query(f"query ($after: String) {{ ships(first: 2, after: $after) {{ {fields} }} }}")
    tap = burler.tap("tap-ships")

    @tap.sync("ships", key_properties="id", replication_key="at", schema=SHIP)
    def ships(stream):
        yield from cursor_pages(stream, lambda cursor: query.page(server.client(), after=cursor))

    first = run_tap(tap)
    assert "down" in str(first.result.errors["ships"])
    assert [row["id"] for row in first.records("ships")] == [1, 2, 3, 4]
    second = run_tap(tap, state=first.states[-1])
    assert not second.result.errors
    assert [row["id"] for row in second.records("ships")] == [5, 6, 7]
    assert "cursor" not in json.dumps(second.states[-1])
    several = Query("{ a: ships { nodes { id } } b: ships { nodes { id } } }", rows="a", streams={"b": "b"})
    with pytest.raises(GraphQLError, match=r"page\(\) is for queries with one connection; it has 2"):
        several.page(server.client())


def test_a_query_travels_to_other_processes(server, tap):
    query = Query(SHIPS, rows="ships", streams={"crew": Rows("ships.crew", add={"ship": "id"})}, page_size=None)
    rows = list(query.records(server.client()))
    copy = pickle.loads(pickle.dumps(query))
    assert list(copy.records(server.client())) == rows and len(rows) == 6
    assert repr(copy) == repr(query) and "test_in_taps.py:" in repr(copy)


def test_an_error_names_stream_query_and_cure(server, tap):
    server.answer = lambda query, variables: {"errors": [{"message": "no such ship"}]}
    out = run_tap(tap)
    said = str(out.result.errors["ships"])
    assert "no such ship" in said and "GraphQL query 'Ships' (" in said
    assert json.dumps(out.states).count("at") == 0
