"""A server that makes exports and takes its time: `python -m examples.tap_warehouse.server`.

    POST /exports {"table": "stock"}    begins to make one: 202 and {"id": ...}
    GET /exports/ID                     {"state": "running"}, {"state": "done", "parts": [...]} or {"state": "failed"}
    DELETE /exports/ID                  gives it up
    GET /files/ID.parquet               what was made

All of it asks for the header `Authorization: Bearer open-sesame`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import io
import itertools
import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow
import pyarrow.parquet

TOKEN = "open-sesame"


def stock(articles: int, seed: int = 0) -> pyarrow.Table:
    """The stock as a table, the same for the same seed."""
    chance = random.Random(seed)
    counted = dt.datetime(2024, 5, 31, 18)  # noqa: DTZ001  the warehouse writes no zone, and means UTC
    return pyarrow.table(
        {
            "article": pyarrow.array(range(1, articles + 1), pyarrow.int32()),
            "name": [f"article {number}" for number in range(1, articles + 1)],
            "price": pyarrow.array(
                [Decimal(chance.randrange(1, 1_000_000)).scaleb(-2) for _ in range(articles)], pyarrow.decimal128(12, 2)
            ),
            "pieces": pyarrow.array([chance.choice([None, 0, 7, 400]) for _ in range(articles)], pyarrow.int64()),
            "counted_at": pyarrow.array([counted] * articles, pyarrow.timestamp("us")),
        }
    )


class Exports(ThreadingHTTPServer):
    """The server. `seconds` is how long an export takes; `broken` lets the next ones fail."""

    daemon_threads = True

    def __init__(self, *, articles: int = 1000, seconds: float = 3.0, port: int = 0) -> None:
        self.articles, self.seconds, self.broken = articles, seconds, False
        self.jobs: dict[str, float] = {}
        self.log: list[str] = []
        self.numbers = itertools.count(1)
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"

    def made(self) -> bytes:
        """The export."""
        sink = io.BytesIO()
        pyarrow.parquet.write_table(stock(self.articles), sink, compression="zstd")
        return sink.getvalue()

    @contextmanager
    def running(self) -> Iterator[Exports]:
        """Serve in a thread, as long as the block lasts."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            thread.join()
            self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Exports
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self._may("POST"):
            job = f"e{next(self.server.numbers)}"
            self.server.jobs[job] = time.monotonic() + self.server.seconds
            self._json(202, {"id": job})

    def do_DELETE(self) -> None:
        if self._may("DELETE"):
            self.server.jobs.pop(self.path.rpartition("/")[2], None)
            self._json(200, {})

    def do_GET(self) -> None:
        if not self._may("GET"):
            return
        job = self.path.rpartition("/")[2].removesuffix(".parquet")
        if job not in self.server.jobs:
            self._json(404, {"error": "there is no such export"})
        elif self.path.startswith("/files/"):
            self._send(200, self.server.made(), "application/vnd.apache.parquet")
        elif time.monotonic() < self.server.jobs[job]:
            self._json(200, {"state": "running"})
        elif self.server.broken:
            self._json(200, {"state": "failed", "error": "out of paper"})
        else:
            data = self.server.made()
            part = {"url": f"/files/{job}.parquet", "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            self._json(200, {"state": "done", "parts": [part]})

    def _may(self, verb: str) -> bool:
        self.server.log.append(f"{verb} {self.path}")
        if self.headers.get("Authorization") == f"Bearer {TOKEN}":
            return True
        self._json(401, {"error": "who are you?"})
        return False

    def _json(self, status: int, value: object) -> None:
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing: the tap's own log says enough."""


def main() -> None:
    """Serve until the process is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8768)
    parser.add_argument("--seconds", type=float, default=3.0, help="that an export takes")
    parser.add_argument("--articles", type=int, default=1000)
    given = parser.parse_args()
    server = Exports(articles=given.articles, seconds=given.seconds, port=given.port)
    print(f"exports at {server.url}", flush=True)  # noqa: T201
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
