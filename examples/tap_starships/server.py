"""A small shipyard with a GraphQL server, to try the tap on: `python -m examples.tap_starships.server`.

POST /graphql       queries; the header `Authorization: Bearer TOKEN` is asked for
GET /graphql        the same, as `?query=...&variables=...`
POST /changes?count=3   changes some ships
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from .api import schema
from .data import Data

TOKEN = "shipyard"


@dataclass(frozen=True)
class Faults:
    """What goes wrong.

    Attributes:
        throttle_every: of so many queries one is told to come again (THROTTLED); 0: none.
        most_cost: rows that a query may ask for, those in its rows among them; 0: any number.
        broken: how many ships have scales that give an error instead of a mass.
        closed: the server does not describe its types.
    """

    throttle_every: int = 0
    most_cost: int = 0
    broken: int = 0
    closed: bool = False


class Shipyard(ThreadingHTTPServer):
    """The server. `faults` may be changed while it runs; `queries` holds what was asked: (query, variables)."""

    daemon_threads = True

    def __init__(self, data: Data, faults: Faults | None = None, *, token: str = TOKEN, port: int = 0) -> None:
        self.data = data
        self.faults = faults or Faults()
        self.token = token
        self.show = False
        self.queries: list[tuple[str, dict[str, Any]]] = []
        self.refused = 0
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://127.0.0.1:{self.server_address[1]}/graphql"

    @contextmanager
    def running(self) -> Iterator[Shipyard]:
        """Serve in a thread until the block ends."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            self.server_close()
            thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone away is no event."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def answer(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body of the reply to a query."""
        query, variables = asked.get("query"), asked.get("variables") or {}
        if not isinstance(query, str):
            return 400, _error("no query", "BAD_REQUEST")
        with self.lock:
            self.queries.append((query, variables))
            if self.show:
                sys.stdout.write(f"{query}\n{json.dumps(variables)}\n\n")
                sys.stdout.flush()
            faults, number = self.faults, len(self.queries)
            throttled = faults.throttle_every and number % faults.throttle_every == 0
            rows = 1 if "node(id" in query else int(variables.get("first", 1))
            cost = rows * (6 if "crew" in query else 1)
            too_much = faults.most_cost and cost > faults.most_cost
            self.refused += bool(throttled or too_much)
        if throttled:
            bucket = {"currentlyAvailable": 9, "restoreRate": 100, "maximumAvailable": 1000}
            cost_said = {"requestedQueryCost": 10, "throttleStatus": bucket}
            return 200, {**_error("Throttled", "THROTTLED"), "extensions": {"cost": cost_said}}
        if too_much:
            return 200, _error(f"Query cost is {cost}, more than {faults.most_cost}", "MAX_COST_EXCEEDED")
        if faults.closed and "__schema" in query:
            return 400, _error("introspection is off", "GRAPHQL_VALIDATION_FAILED")
        broken = {ship.id for ship in sorted(self.data.ships(), key=lambda ship: ship.id)[: faults.broken]}
        result = schema.execute_sync(
            query,
            variables,
            {"data": self.data, "broken": broken},
            operation_name=asked.get("operationName"),
        )
        body: dict[str, Any] = {"data": result.data}
        if result.errors:
            body["errors"] = [error.formatted for error in result.errors]
        return 400 if result.data is None and result.errors else 200, body


def _error(message: str, code: str) -> dict[str, Any]:
    return {"data": None, "errors": [{"message": message, "extensions": {"code": code}}]}


class _Handler(BaseHTTPRequestHandler):
    server: Shipyard
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer a query, or `/changes`."""
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if url.path == "/changes":
            count = dict(parse_qsl(url.query)).get("count", "1")
            return self._send(200, self.server.data.change(int(count) if count.isdecimal() else 1))
        return self._answer(url.path, body)

    def do_GET(self) -> None:
        """Answer a query that stands in the address."""
        url = urlsplit(self.path)
        asked: dict[str, Any] = dict(parse_qsl(url.query))
        for name in ("variables", "extensions"):
            if name in asked:
                asked[name] = json.loads(asked[name])
        return self._answer(url.path, json.dumps(asked).encode())

    def _answer(self, path: str, body: bytes) -> None:
        if path != "/graphql":
            return self._send(404, _error("POST /graphql", "NOT_FOUND"))
        if self.headers.get("Authorization") != f"Bearer {self.server.token}":
            return self._send(401, _error("who are you?", "UNAUTHENTICATED"))
        try:
            asked = json.loads(body)
        except ValueError:
            return self._send(400, _error("no JSON", "BAD_REQUEST"))
        return self._send(*self.server.answer(asked))

    def _send(self, status: int, body: Any) -> None:
        content = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: thousands of lines would hide the tap's own."""


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m examples.tap_starships.server", description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=8766, help="0: any that is free")
    parser.add_argument("--token", default=TOKEN, help="what the tap has to show")
    parser.add_argument("--seed", type=int, default=1, help="of the rows")
    parser.add_argument("--ships", type=int, default=40, help="how many")
    parser.add_argument("--crew", type=int, default=8, help="of a ship, at most")
    parser.add_argument("--throttle-every", type=int, default=0, help="of so many queries one is told to come again")
    parser.add_argument("--most-cost", type=int, default=0, help="rows that a query may ask for")
    parser.add_argument("--broken", type=int, default=0, help="how many ships' scales are broken")
    parser.add_argument("--closed", action="store_true", help="do not describe the types")
    parser.add_argument("--show", action="store_true", help="print each query with its variables")
    given = parser.parse_args()
    faults = Faults(given.throttle_every, given.most_cost, given.broken, given.closed)
    server = Shipyard(Data(given.ships, given.crew, given.seed), faults, token=given.token, port=given.port)
    server.show = given.show
    sys.stdout.write(f"shipyard at {server.url}, Ctrl-C ends it\n")
    sys.stdout.flush()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
