"""A small helpdesk with an HTTP API, to try the tap on: `python -m examples.tap_helpdesk.server`.

    GET /accounts                                   all accounts
    GET /accounts/ID/tickets?updated_since=TIME     tickets of an account, oldest change first, from TIME on
    GET /tickets/ID/comments                        comments of a ticket
    GET /events/months                              the months of which there are events
    GET /events?month=2024-01&since=TIME            events of a month, oldest first, from TIME on
    GET /agents                                     all agents; 304 if `If-None-Match` names what they are
    POST /changes?count=3                           changes some tickets and hires an agent

Lists come as JSON arrays of at most 100 rows; a `Link: <...>; rel="next"` header says where they go on.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from .data import MONTHS, Data, Row, Size
from .faults import Faults, Moods

_TICKETS = re.compile(r"/accounts/([^/]+)/tickets")
_COMMENTS = re.compile(r"/tickets/(\d+)/comments")
_STATUS = {"not found": 404, "error": 500, "busy": 503}


class Helpdesk(ThreadingHTTPServer):
    """The server. `data` and `faults` may be changed while it runs; `requests` counts what was answered."""

    daemon_threads = True  # one that sleeps keeps nobody waiting
    request_queue_size = 128

    def __init__(
        self, data: Data, faults: Faults | None = None, *, latency_seconds: float = 0.0, port: int = 0
    ) -> None:
        self.data = data
        self.latency_seconds = latency_seconds
        self.faults = faults or Faults()
        self.requests = 0
        self.count_lock = threading.Lock()
        self.closing = threading.Event()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def faults(self) -> Faults:
        """What goes wrong from now on."""
        return self.moods.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self.moods = Moods(faults)

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @contextmanager
    def running(self) -> Iterator[Helpdesk]:
        """Serve in a thread until the block ends."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.closing.set()  # slow replies wake up
            self.shutdown()
            self.server_close()
            thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone away is no event."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Helpdesk
    protocol_version = "HTTP/1.1"  # connections stay open
    wbufsize = -1  # head and body in one packet,
    disable_nagle_algorithm = True  # at once

    def do_GET(self) -> None:
        """Answer a request for rows."""
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        fault = self._wait(url.path)
        if fault:
            return self._send(_STATUS[fault], {"error": f"{fault}: {url.path}"})
        if url.path == "/agents":
            return self._agents()
        if url.path == "/events/months":
            return self._send(200, [{"month": month} for month in MONTHS])
        found = self._listed(url.path, query)
        if found is None:
            return self._send(404, {"error": f"not found: {url.path}"})
        rows, fields, since = found
        try:
            page, after = self.server.data.page(rows, fields, query.get(since, ""), query.get("after", ""))
        except (ValueError, TypeError):
            return self._send(400, {"error": "after: take the address in the Link header as it is"})
        link = {"Link": f'<{url.path}?{urlencode({**query, "after": after})}>; rel="next"'} if after else {}
        return self._send(200, page, **link)

    def do_POST(self) -> None:
        """Answer `/changes`."""
        url = urlsplit(self.path)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        count = dict(parse_qsl(url.query)).get("count", "1")
        if url.path != "/changes" or not count.isdecimal():
            return self._send(404, {"error": "POST /changes?count=3 is all there is"})
        return self._send(200, self.server.data.change(int(count)))

    def _wait(self, path: str) -> str:
        """Take as long as the network would; then say what goes wrong."""
        server = self.server
        with server.count_lock:
            server.requests += 1
        fault = server.moods.of(path)
        time.sleep(server.latency_seconds)
        if fault == "slow":
            server.closing.wait(server.faults.slow_seconds)
            return ""
        return fault

    def _listed(self, path: str, query: dict[str, str]) -> tuple[list[Row], tuple[str, ...], str] | None:
        """Return the rows under a path, what they are sorted by, and the parameter that says where to begin."""
        data = self.server.data
        if path == "/accounts":
            return data.accounts, ("id",), ""
        if path == "/events":
            return data.events.get(query.get("month", ""), []), ("at", "id"), "since"
        if match := _TICKETS.fullmatch(path):
            rows = data.tickets.get(match[1])
            return None if rows is None else (rows, ("updated_at", "id"), "updated_since")
        if match := _COMMENTS.fullmatch(path):
            rows = data.comments.get(int(match[1]))
            return None if rows is None else (rows, ("id",), "")
        return None

    def _agents(self) -> None:
        etag = self.server.data.agents_etag()
        if self.headers.get("If-None-Match") == etag:
            return self._send(304, None, ETag=etag)
        return self._send(200, self.server.data.agents, ETag=etag)

    def _send(self, status: int, body: Any, **headers: str) -> None:
        content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if body is not None:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: thousands of lines would hide the tap's own."""


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m examples.tap_helpdesk.server", description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=8764, help="0: any that is free")
    parser.add_argument("--seed", type=int, default=1, help="of the rows and of what fails")
    parser.add_argument("--latency-ms", type=float, default=20, help="before each reply")
    for name, default in vars(Size()).items():
        kind = {"action": "store_true"} if name == "even" else {"type": int, "default": default}
        parser.add_argument(f"--{name}", help="how many" if name != "even" else "as many for each account", **kind)
    for name, default in vars(Faults()).items():
        if name != "seed":
            text = "how long slow replies take" if name == "slow_seconds" else "share that fails, 0 to 1"
            parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=default, help=text)
    given = vars(parser.parse_args())
    size = Size(**{name: given[name] for name in vars(Size())})
    faults = Faults(**{name: given[name] for name in vars(Faults())})
    server = Helpdesk(Data(size, given["seed"]), faults, latency_seconds=given["latency_ms"] / 1000, port=given["port"])
    sys.stdout.write(f"helpdesk at {server.url}, Ctrl-C ends it\n")
    sys.stdout.flush()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
