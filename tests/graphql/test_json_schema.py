"""Schemas from queries and what the server says of its types."""

import json
import threading

import graphql
import pytest

import burler
from burler.errors import CredentialsError, DeclarationError, NoAnswerError
from burler.graphql import SCALARS, Query, Rows, schema, schemas
from burler.testing import run_tap

TYPES = """
scalar DateTime
scalar Date
scalar Decimal
scalar BigInt
scalar JSON
scalar Weight
scalar Moment @specifiedBy(url: "https://scalars.graphql.org/andimarek/date-time")
scalar Key @specifiedBy(url: "https://tools.ietf.org/html/rfc4122")
enum Size { BIG SMALL }
interface Node { id: ID! }
interface Event { at: DateTime! }
type Docking implements Event { at: DateTime! port: Port! }
type Jump implements Event { at: DateTime! far: Decimal }
union Cargo = Port | Engine
type Engine { thrust: Float! cylinders: [Int!]! }
type Port { code: String! town: String }
type PageInfo { hasNextPage: Boolean! endCursor: String }
type Member implements Node { id: ID! name: String }
type MemberEdge { role: Size! node: Member }
type MemberPage { edges: [MemberEdge] pageInfo: PageInfo! }
type Ship implements Node {
  id: ID! name: String active: Boolean! length: Int mass: Float size: Size sizes: [Size]
  updatedAt: DateTime! built: Date price: Decimal odometer: BigInt! extra: JSON weight: Weight! seen: Moment key: Key
  engine: Engine engines: [Engine!] grid: [[Int]] events: [Event!]! cargo: Cargo
  crew(first: Int, after: String): MemberPage!
}
type ShipPage { nodes: [Ship] pageInfo: PageInfo! }
type Query { ships(first: Int, after: String): ShipPage ship: Ship node(id: ID!): Node }
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "schema.graphql"
    path.write_text(TYPES)
    return path


def properties(text, file, stream=None, query=None, **options):
    query = query or Query(f"{{ ships(first: 5) {{ nodes {{ {text} }} }} }}")
    made = schema(query, stream, file=file, **options).load(where="stream 'ships'")
    assert made["type"] == "object" and set(made) == {"type", "properties"}
    return made["properties"]


ENGINE = {
    "thrust": {"type": "number"},
    "cylinders": {"type": "array", "items": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id", {"id": {"type": "string"}}),
        ("name", {"name": {"type": ["null", "string"]}}),
        ("active", {"active": {"type": "boolean"}}),
        ("length mass", {"length": {"type": ["null", "integer"]}, "mass": {"type": ["null", "number"]}}),
        ("size", {"size": {"type": ["null", "string"], "enum": ["BIG", "SMALL", None]}}),
        ("sizes", {"sizes": {"type": ["null", "array"],
                             "items": {"type": ["null", "string"], "enum": ["BIG", "SMALL", None]}}}),
        ("updatedAt", {"updatedAt": {"type": "string", "format": "date-time"}}),
        ("built", {"built": {"type": ["null", "string"], "format": "date"}}),
        ("price odometer", {"price": {"type": ["null", "number"]}, "odometer": {"type": "integer"}}),
        ("extra weight", {"extra": {}, "weight": {}}),
        ("seen", {"seen": {"type": ["null", "string"], "format": "date-time"}}),
        ("key", {"key": {"type": ["null", "string"]}}),
        ("number: id __typename", {"number": {"type": "string"}, "__typename": {"type": "string"}}),
        ("engine { thrust cylinders }", {"engine": {"type": ["null", "object"], "properties": ENGINE}}),
        ("engines { thrust cylinders }",
         {"engines": {"type": ["null", "array"], "items": {"type": "object", "properties": ENGINE}}}),
        ("grid", {"grid": {"type": ["null", "array"],
                           "items": {"type": ["null", "array"], "items": {"type": ["null", "integer"]}}}}),
        ("engine { thrust } ... on Ship { engine { cylinders } id }",
         {"engine": {"type": ["null", "object"], "properties": ENGINE}, "id": {"type": "string"}}),
        ("events { at ... on Docking { port { code } } ... on Jump { far } }",
         {"events": {"type": "array", "items": {"type": "object", "properties": {
             "at": {"type": "string", "format": "date-time"},
             "port": {"type": "object", "properties": {"code": {"type": "string"}}},
             "far": {"type": ["null", "number"]}}}}}),
        ("cargo { kind: __typename ... on Port { town } ... on Engine { thrust } }",
         {"cargo": {"type": ["null", "object"], "properties": {
             "kind": {"type": "string"}, "town": {"type": ["null", "string"]}, "thrust": {"type": "number"}}}}),
        ("crew(first: 2) { edges { role node { id } } }",
         {"crew": {"type": "array", "items": {"type": "object", "properties": {
             "role": {"type": "string", "enum": ["BIG", "SMALL"]}, "id": {"type": "string"}}}}}),
    ],
)  # fmt: skip
def test_types_of_graphql_in_json_schema(file, text, expected):
    assert properties(text, file) == expected


def test_fields_under_a_directive_and_in_fragments(file):
    query = Query(
        "query ($all: Boolean!) { ships { nodes { ...F id @skip(if: $all) } } } "
        "fragment F on Node { id @include(if: $all) }"
    )
    assert properties("", file, query=query) == {"id": {"type": "string"}}


def test_the_author_says_what_a_scalar_is(file):
    assert properties(
        "weight odometer", file, scalars={"Weight": {"type": "number"}, "BigInt": {"type": "string"}}
    ) == {
        "weight": {"type": "number"},
        "odometer": {"type": "string"},
    }
    assert properties("size", file, enums=False) == {"size": {"type": ["null", "string"]}}
    with pytest.raises(TypeError):
        SCALARS["Weight"] = {}


def test_rows_of_other_streams_and_what_they_get(file):
    query = Query(
        "{ ships { nodes { id updatedAt crew(first: 2) { edges { node { id name } } } engines { thrust } } } }",
        rows="ships",
        streams={"crew": Rows("ships.crew", add={"shipId": "id", "at": "updatedAt"}), "engines": "ships.engines"},
    )
    at = {"type": "string", "format": "date-time"}
    assert properties("", file, query=query) == {"id": {"type": "string"}, "updatedAt": at}
    assert properties("", file, "crew", query) == {
        "id": {"type": "string"},
        "name": {"type": ["null", "string"]},
        "shipId": {"type": "string"},
        "at": at,
    }
    assert set(properties("", file, "engines", query)) == {"thrust"}
    assert list(schemas(query, "ships", file=file)) == ["ships", "crew", "engines"]
    with pytest.raises(DeclarationError, match=r"has no rows of a stream 'cruw'. Its other streams: 'crew', 'engines'"):
        properties("", file, "cruw", query)


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("{\n ships { nodes { nmae } } }", "line 2: Cannot query field 'nmae' on type 'Ship'. Did you mean 'name'"),
        ("query ($n: Int) { ships(named: $n) { nodes { id } } }", "Unknown argument 'named'"),
        ("query ($n: Strng) { ships(after: $n) { nodes { id } } }", "Unknown type 'Strng'"),
        ("{ ships { nodes { engine } } }", "must have a selection of subfields"),
        (
            "{ ship { crew { edges { node { id } } } events { nodes { at } } } }",
            "Cannot query field 'nodes' on type 'Event'",
        ),
    ],
)
def test_a_query_that_does_not_fit_the_server_is_told_at_discovery(file, query, fact):
    with pytest.raises(DeclarationError) as caught:
        properties("", file, query=Query(query, rows="ship" if "{ ship " in query else None))
    assert fact in str(caught.value) and "stream 'ships': GraphQL query (" in str(caught.value)


def test_a_query_that_says_how_a_connection_goes_on_is_held_against_the_server_too(file):
    text = "{ ships { nodes { id crew(first: 2) { edges { node { id } } } } } }"
    more = (
        "query ($id: ID!, $c: String) { node(id: $id) { ... on Ship { crew(after: $c) { edges { node { nmae } } } } } }"
    )
    with pytest.raises(DeclarationError, match="Cannot query field 'nmae' on type 'Member'"):
        properties("", file, query=Query(text, rows="ships", follow={"ships.crew": more}))


def test_a_connection_in_a_row_that_nothing_could_follow_is_told_at_discovery(tmp_path, file, caplog):
    without = tmp_path / "without.graphql"
    without.write_text(TYPES.replace(" node(id: ID!): Node }", " }"))
    nested = Query("{ ships { nodes { id crew(first: 2) { edges { node { id } } } } } }", rows="ships")
    properties("", file, query=nested)
    properties("id", without)
    assert not caplog.records
    properties("", without, query=nested)
    assert "no node(id:) by which the rest of 'ships.crew' could be read" in caplog.text


def test_the_json_of_an_introspection_is_a_file_too(file, tmp_path):
    data = graphql.introspection_from_schema(graphql.build_schema(TYPES))
    for number, document in enumerate((data, {"data": data})):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(document))
        assert properties("id built", path) == properties("id built", file)


def test_a_file_that_is_missing_or_none(tmp_path):
    with pytest.raises(DeclarationError, match=r"nothing.graphql can't be read: No such file"):
        properties("id", tmp_path / "nothing.graphql")
    for text in ("type {", '{"x": 1}', "[]", "\xff"):
        (tmp_path / "wrong").write_text(text, encoding="latin-1")
        with pytest.raises(DeclarationError, match="is no schema of GraphQL"):
            properties("id", tmp_path / "wrong")


def test_a_file_counts_from_the_folder_of_the_module():
    source = schema(Query("{ ships { nodes { id } } }"), file="types.graphql")
    assert source.file.parent.name == "graphql" and source.file.name == "types.graphql"


def make_tap(server, *queries):
    tap = burler.tap("tap-ships")
    tap.client(lambda: server.client())
    for name, query in queries:
        tap.sync(name, key_properties="id", schema=query.schema())(lambda client, query=query: query.pages(client))
    return tap


def test_the_server_is_asked_once_for_all_streams(server):
    server.types(TYPES, ships={"nodes": [{"id": "1", "name": "x"}], "pageInfo": {"hasNextPage": False}})
    one, two = Query("{ ships { nodes { id } } }"), Query("{ ships { nodes { id name } } }")
    out = run_tap(make_tap(server, ("one", one), ("two", two)))
    assert not out.result.errors
    assert out.records("one") == [{"id": "1"}] and out.records("two") == [{"id": "1", "name": "x"}]
    assert sum("__schema" in text for text in server.texts) == 1


def test_a_server_that_does_not_answer_holds_up_nobody_who_asks_another(server):
    server.types(TYPES)
    good, asked, hold = server.answer, threading.Event(), threading.Event()

    def slow(query, variables):
        asked.set()
        hold.wait(30)
        return good(query, variables)

    query = Query("{ ship { id } }")
    slowly = Query("{ ship { name } }", endpoint="/slow")
    loaded = []
    server.answer = slow
    waiting = threading.Thread(target=lambda: schema(slowly, client=server.client()).load(where="stream 'a'"))
    waiting.start()
    try:
        assert asked.wait(30)
        server.answer = good
        beside = threading.Thread(target=lambda: loaded.append(schema(query, client=server.client()).load()))
        beside.daemon = True
        beside.start()
        beside.join(20)
        assert loaded == [{"type": "object", "properties": {"id": {"type": "string"}}}]
    finally:
        hold.set()
        waiting.join(30)


def test_an_older_server_is_asked_in_the_older_words(server):
    server.types(TYPES)
    answer = server.answer
    error = {"errors": [{"message": "Cannot query field 'specifiedByURL' on type '__Type'."}]}
    server.answer = lambda query, variables: error if "specifiedByURL" in query else answer(query, variables)
    made = Query("{ ships { nodes { id seen } } }").schema(client=server.client()).load()
    assert made["properties"] == {"id": {"type": "string"}, "seen": {}}


def test_a_server_that_does_not_describe_itself(server):
    server.answer = lambda query, variables: (400, {"errors": [{"message": "introspection is off"}]})
    with pytest.raises(burler.BurlerError, match=r"introspection is off(.|\n)*file='schema.graphql'"):
        run_tap(make_tap(server, ("ships", Query("{ ships { nodes { id } } }"))))
    with pytest.raises(DeclarationError, match=r"which server\? Say client="):
        Query("{ ships { nodes { id } } }").schema().load()


def test_a_server_that_is_not_there_is_not_taken_for_one_that_does_not_describe_itself(server):
    query = Query("{ ships { nodes { id } } }")
    client = burler.http.Client("http://127.0.0.1:1/graphql", retries=0)
    with pytest.raises(NoAnswerError, match="refused"):
        query.schema(client=client).load()
    server.answer = lambda text, variables: (403, {"errors": [{"message": "no"}]})
    with pytest.raises(CredentialsError):
        query.schema(client=server.client()).load()
    assert len(server.asked) == 1


def test_discovery_by_a_function(server):
    server.types(TYPES, ships={"nodes": [{"id": "1", "name": None}], "pageInfo": {"hasNextPage": False}})
    query = Query("{ ships { nodes { id name } } }")
    tap = burler.tap("tap-ships")
    tap.client(lambda: server.client())
    tap.discover(lambda client: schemas(query, "ships", client=client))
    tap.sync("*", key_properties="id")(lambda client: query.pages(client))
    assert run_tap(tap).records("ships") == [{"id": "1", "name": None}]
