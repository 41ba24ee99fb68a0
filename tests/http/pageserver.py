"""A server whose replies are made by a function of the test, over real sockets."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from burler.http import Client


@dataclass
class Asked:
    """One request as it came. ``query`` has the last value of each name, ``pairs`` all of them in their order."""

    method: str
    path: str
    pairs: list[tuple[str, str]]
    headers: dict[str, str]
    body: bytes
    port: int
    """Of the connection it came on, at the other end."""

    @property
    def query(self) -> dict[str, str]:
        return dict(self.pairs)

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


Answer = Callable[[Asked], Any]
_MOST_ASKED = 5000


@dataclass
class PageServer:
    """Its ``answer`` gives what is sent: a body (bytes, or what becomes JSON), a status, or (status, headers, body)."""

    answer: Answer
    url: str = ""
    asked: list[Asked] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for, with their queries as they came."""
        return ["?".join(filter(None, (one.path, "&".join(map("=".join, one.pairs))))) for one in self.asked]


def _whole(given: Any) -> tuple[int, dict[str, Any], Any]:
    if isinstance(given, tuple):
        return given
    return (given, {}, b"") if isinstance(given, int) else (200, {}, given)


@contextlib.contextmanager
def serving(answer: Answer) -> Iterator[PageServer]:
    """Run a server on a free port of this machine."""
    state = PageServer(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def _do(self) -> None:
            url = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            pairs = parse_qsl(url.query, keep_blank_values=True)
            asked = Asked(self.command, url.path, pairs, headers, body, self.client_address[1])
            state.asked.append(asked)
            # Whoever goes in a circle should fail, and not hang.
            status, more, content = _whole(state.answer(asked) if len(state.asked) < _MOST_ASKED else 418)
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in more.items():
                for one in value if isinstance(value, list) else [value]:
                    self.send_header(name, one)
            if status not in (204, 304):
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD" and status not in (204, 304):
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _do

        def log_message(self, *_args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_args: Any) -> None:
            pass

    listening = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{listening.server_address[1]}"
    try:
        yield state
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join(10)


def client_of(server, **options):
    """A client of a server that waits for nothing."""
    return Client(server.url, sleep=lambda seconds: None, **options)


def warnings_of(caplog):
    """What is above INFO, where METRIC lines stand."""
    return [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]
