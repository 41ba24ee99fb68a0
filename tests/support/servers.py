"""A web server whose replies are made by a function of the test, over real sockets: the one that tests share.

    with serving(lambda asked: rows[asked.path]) as server:
        Client(server.url).get("/things")
        assert server.paths == ["/things"]

What the function gives is sent: bytes, or what becomes JSON; a number is a status without a body; ``(status, headers,
body)`` is all of a reply. A function in place of them is called with the connection, for replies that no honest server
gives: ``lambda connection: connection.end(reset=True)``.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import logging
import socket
import struct
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
import urllib3

from burler.errors import HttpError
from burler.http import Client


@dataclass
class Asked:
    """One request as it came. ``query`` has the last value of each name, ``pairs`` all of them in their order."""

    method: str
    path: str
    raw: str
    """The path with its query, as it came."""
    pairs: list[tuple[str, str]]
    headers: dict[str, str]
    """By their names in small letters."""
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
class Server:
    """Where it is, and what it was asked for. ``answer`` may be changed while it runs."""

    answer: Answer
    url: str = ""
    port: int = 0
    open: int = 0
    """Connections."""
    asked: list[Asked] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for, with their queries as they came."""
        return ["?".join(filter(None, (one.path, "&".join(map("=".join, one.pairs))))) for one in self.asked]


class Connection(BaseHTTPRequestHandler):
    """One connection: ``send`` a reply, or ``end`` it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    state: Server

    def send(self, status: int, body: bytes, headers: dict[str, Any] | None = None, *, length: int | None = None):
        """A reply; ``length`` where its header is to lie. A header's value may be a list: one header each."""
        (self.send_response_only if "Date" in (headers or {}) else self.send_response)(status)
        bare = status in (204, 304)
        size = {} if bare else {"Content-Length": str(len(body) if length is None else length)}
        for name, value in {**size, **(headers or {})}.items():
            for one in value if isinstance(value, list) else [value]:
                self.send_header(name, one)
        self.end_headers()
        if self.command != "HEAD" and not bare:
            self.wfile.write(body)

    def end(self, *, reset: bool = False) -> None:
        """Close the connection, with a reset if wanted."""
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()

    def stall(self, seconds: float) -> None:
        """Send nothing until the other side has had enough."""
        self.connection.settimeout(seconds)
        with contextlib.suppress(OSError):
            self.connection.recv(1)
        self.end()

    def setup(self) -> None:
        self.state.open += 1
        super().setup()

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self.state.open -= 1

    def _body(self) -> bytes:
        if not self.headers.get("Transfer-Encoding"):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _do(self) -> None:
        url, state = urlsplit(self.path), self.state
        body = self._body()
        headers = {name.lower(): value for name, value in self.headers.items()}
        pairs = parse_qsl(url.query, keep_blank_values=True)
        asked = Asked(self.command, url.path, self.path, pairs, headers, body, self.client_address[1])
        state.asked.append(asked)
        # Whoever goes in a circle should fail, and not hang.
        given = state.answer(asked) if len(state.asked) < _MOST_ASKED else 418
        if callable(given):
            given(self)
            return
        if not isinstance(given, tuple):
            given = (given, {}, b"") if isinstance(given, int) else (200, {}, given)
        status, more, content = given
        self.send(status, content if isinstance(content, bytes) else json.dumps(content).encode(), more)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _do

    def log_message(self, *_args: Any) -> None:
        pass


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, *given: Any) -> None:
        self.connections: set[Any] = set()
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End the connections on which another request could come."""
        for one in tuple(self.connections):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_args: Any) -> None:
        """Whoever asked has gone."""


@contextlib.contextmanager
def serving(answer: Answer, *, address: str = "127.0.0.1", port: int = 0, tls: Any = None) -> Iterator[Server]:
    """Run a server on a port of this machine, a free one if none is named; ``tls`` is an ``ssl.SSLContext``."""
    state = Server(answer)
    listening = _Listening((address, port), type("Connection", (Connection,), {"state": state, "wbufsize": -1}))
    if tls is not None:
        listening.socket = tls.wrap_socket(listening.socket, server_side=True)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    state.port = listening.server_address[1]
    state.url = f"http{'s' if tls else ''}://{address}:{state.port}"
    try:
        yield state
    finally:
        listening.shutdown()
        listening.hang_up()
        listening.server_close()
        thread.join(10)


def client_of(server, **options):
    """A client of a server that waits for nothing."""
    return Client(server.url, sleep=lambda seconds: None, **options)


def echoed(text, **options):
    """What the error of a client shows of a reply that says a text."""
    with serving(lambda asked: (400, {}, text.encode())) as server, Client(server.url, retries=0, **options) as client:
        try:
            client.get("/echo")
        except HttpError as error:
            return str(error)
    raise AssertionError("no error")


def session_of(answer):
    """A session of requests that asks no server: a function gives the body for each prepared request, or the raw reply
    (``urllib3.HTTPResponse``)."""

    class Answering(requests.adapters.HTTPAdapter):
        def send(self, request, **_options):
            given = answer(request)
            if isinstance(given, bytes):
                headers = {"Content-Length": str(len(given))}
                given = urllib3.HTTPResponse(io.BytesIO(given), headers, 200, preload_content=False)
            return self.build_response(request, given)

    session = requests.Session()
    session.trust_env = False
    for scheme in ("http://", "https://"):
        session.mount(scheme, Answering())
    return session


def warnings_of(caplog):
    """What is above INFO, where METRIC lines stand."""
    return [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]


def collect_sockets() -> None:
    """fsspec leaves connections to FTP open, pyspark those to its JVM: what they leave to the garbage collector goes
    now, and not in the test of somebody else later."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


CONFIG: Any = None
"""pytest's, where tests run in this process."""


def leaves_sockets(port: int) -> None:
    """werkzeug's server at this port leaves a socket open now and then: that is no fault of burler's."""
    if CONFIG is not None:
        place = rf"Exception ignored in. <socket.socket .*laddr=\('127.0.0.1', {port}\)"
        CONFIG.addinivalue_line("filterwarnings", f"ignore:{place}:pytest.PytestUnraisableExceptionWarning")
