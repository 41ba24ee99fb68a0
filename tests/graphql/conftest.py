"""A GraphQL server on this machine whose replies a test decides."""

import json

import graphql
import pytest
from requests.structures import CaseInsensitiveDict

import burler
from support.servers import serving


class Server:
    """``answer(query, variables)`` gives what the reply holds: a dict, bytes, or (status, either)."""

    def __init__(self):
        self.answer = lambda query, variables: {"data": {}}
        self.asked = []
        self.sleeps = []
        self.url = ""

    def reply(self, asked):
        """The reply to a request, which is written down."""
        if asked.method == "GET":
            sent = {key: json.loads(text) if text[:1] == "{" and key != "query" else text for key, text in asked.pairs}
        else:
            sent = asked.json
        sent = {
            "query": None,
            "variables": {},
            **sent,
            "method": asked.method,
            "headers": CaseInsensitiveDict(asked.headers),
        }
        self.asked.append(sent)
        made = self.answer(sent["query"], sent["variables"])
        status, body = made if isinstance(made, tuple) else (200, made)
        return status, {"Content-Type": "application/json"}, body

    def client(self, **options):
        """A client that does not really wait; ``sleeps`` says for how long it would have."""
        return burler.http.Client(self.url, sleep=self.sleeps.append, **options)

    def types(self, text, **roots):
        """Answer by graphql-core, with types in GraphQL's own language and values (or functions) for the root."""
        types = graphql.build_schema(text)

        def answer(query, variables):
            result = graphql.graphql_sync(types, query, roots, variable_values=variables)
            body = {"data": result.data}
            if result.errors:
                body["errors"] = [error.formatted for error in result.errors]
            return body

        self.answer = answer

    @property
    def variables(self):
        """Of each request, in order."""
        return [one["variables"] for one in self.asked]

    @property
    def texts(self):
        """Of each request, without white space that means nothing."""
        return [" ".join(str(one["query"]).split()) for one in self.asked]


@pytest.fixture
def server(monkeypatch):
    """One server for a test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = Server()
    with serving(made.reply) as running:
        made.url = f"{running.url}/graphql"
        yield made


def page(rows, first, after, *, key=lambda row: str(row["id"]), style="nodes"):
    """A connection over rows, whose cursors are the keys of the rows."""
    keys = [key(row) for row in rows]
    begin = keys.index(after) + 1 if after is not None else 0
    part = rows[begin : begin + first]
    return {
        "nodes": part,
        "edges": [{"cursor": key(row), "node": row} for row in part],
        "pageInfo": {
            "hasNextPage": begin + first < len(rows),
            "endCursor": key(part[-1]) if part else None,
            "hasPreviousPage": begin > 0,
            "startCursor": key(part[0]) if part else None,
        },
    }


@pytest.fixture
def paged():
    """``page`` for tests."""
    return page


TYPES = """
scalar Cursor
interface Node { id: ID! }
type PageInfo { hasNextPage: Boolean! endCursor: String hasPreviousPage: Boolean! startCursor: String }
type Badge implements Node { id: ID! }
type BadgePage { nodes: [Badge] pageInfo: PageInfo! }
type Member implements Node { id: ID! name: String badges(first: Int!, after: String): BadgePage }
type MemberEdge { cursor: String node: Member role: String }
type MemberPage { edges: [MemberEdge] nodes: [Member] pageInfo: PageInfo! }
type Engine { parts(first: Int!, after: String): BadgePage }
type Ship implements Node { id: ID! name: String engine: Engine crew(first: Int!, after: String): MemberPage }
type ShipEdge { cursor: String node: Ship }
type ShipPage { edges: [ShipEdge] nodes: [Ship] pageInfo: PageInfo! }
type Fleet { id: ID! ships(first: Int!, after: String): ShipPage }
type Query {
  ships(first: Int!, after: String, named: String, since: String): ShipPage
  fleets: [Fleet]
  list(offset: Int, limit: Int, page: Int): [Ship]
  node(id: ID!): Node
  member(shipId: ID!, first: Int!, after: String): MemberPage
}
"""


@pytest.fixture
def shipyard(server, paged):
    """A server with ships, crews of different sizes, and badges in crews."""
    nodes = {}

    def badges(member):
        rows = [{"__typename": "Badge", "id": f"{member}.{n}"} for n in range(int(member[-1]) % 4)]
        return lambda _info, first, after=None: paged(rows, first, after)

    def crew(ship, count):
        rows = []
        for n in range(count):
            name = f"{ship}-{n}"
            row = {"__typename": "Member", "id": name, "name": f"M{n}", "badges": badges(name)}
            nodes[name] = row
            rows.append(row)

        def resolve(_info, first, after=None):
            found = paged(rows, first, after)
            for edge in found["edges"]:
                edge["role"] = f"role of {edge['node']['id']}"
            return found

        return resolve

    for n in range(7):
        parts = [{"id": f"part {n} {m}"} for m in range(3)]
        nodes[str(n)] = {
            "__typename": "Ship",
            "id": str(n),
            "name": f"S{n}",
            "crew": crew(f"{n}", n),
            "engine": {"parts": lambda _info, first, after=None, parts=parts: paged(parts, first, after)},
        }
    rows = [nodes[str(n)] for n in range(7)]
    server.types(
        TYPES,
        ships=lambda _info, first, after=None, **_more: paged(rows, first, after),
        fleets=[
            {"id": "f1", "ships": lambda _info, first, after=None: paged(rows[:3], first, after)},
            {"id": "f2", "ships": lambda _info, first, after=None: paged(rows[3:], first, after)},
        ],
        list=lambda _info, offset=0, limit=100, page=None: (
            rows[offset : offset + limit] if page is None else rows[(page - 1) * 3 : page * 3]
        ),
        node=lambda _info, id: nodes.get(id),
        member=lambda _info, shipId, first, after=None: nodes[shipId]["crew"](_info, first, after),
    )
    return server
