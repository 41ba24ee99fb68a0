"""A GraphQL server on this machine whose replies a test decides."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import graphql
import pytest

import burler


class Server(ThreadingHTTPServer):
    """``answer(query, variables)`` gives what the reply holds: a dict, bytes, or (status, either)."""

    daemon_threads = True

    def __init__(self):
        self.answer = lambda query, variables: {"data": {}}
        self.asked = []
        self.sleeps = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/graphql"

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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def do_GET(self):
        asked = dict(parse_qsl(urlsplit(self.path).query))
        self._reply(
            {key: json.loads(text) if text[:1] == "{" and key != "query" else text for key, text in asked.items()}
        )

    def _reply(self, asked):
        asked = {"query": None, "variables": {}, **asked, "method": self.command, "headers": dict(self.headers)}
        self.server.asked.append(asked)
        made = self.server.answer(asked["query"], asked["variables"])
        status, body = made if isinstance(made, tuple) else (200, made)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    """One server for a test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


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
