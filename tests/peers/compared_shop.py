"""The source of docs/comparison.md: a shop's orders since a moment, sorted by it, three a page."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

ORDERS = [
    {"id": number, "customer": name, "total": 4.5 * number, "updated_at": f"2026-01-0{number}T12:00:00Z"}
    for number, name in enumerate(("Ada", "Bo", "Cy", "Di", "Eve", "Flo", "Gil"), 1)
]
PAGE_ROWS = 3


class Shop(ThreadingHTTPServer):
    """The server; ``asked`` holds the path and query of each request, in order."""

    daemon_threads = True

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Shop

    def do_GET(self) -> None:
        """A page of orders."""
        self.server.asked.append(self.path)
        asked = parse_qs(urlsplit(self.path).query)
        since, page = asked.get("since", [""])[0], int(asked.get("page", ["1"])[0])
        found = [row for row in self.server.rows if row["updated_at"] >= since]
        following = page + 1 if len(found) > page * PAGE_ROWS else None
        reply = {"data": found[(page - 1) * PAGE_ROWS : page * PAGE_ROWS], "next_page": following}
        content = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextlib.contextmanager
def serving(rows: list[dict[str, Any]] = ORDERS) -> Iterator[Shop]:
    """The shop, until the block ends."""
    with Shop(list(rows)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
