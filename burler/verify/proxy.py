"""A forward proxy on this machine, through which a tap that is another process sends its requests, to be noted.

    with watching_proxy(watch) as environment:
        subprocess.run(command, env={**os.environ, **environment})

It sees requests to ``http://``; those to ``https://`` pass through it as they are, encrypted, and are counted for each
host (``RequestWatch.tunnels``). Whether a request has a timeout (H701) and whether certificates are looked at (H712)
shows nowhere on the wire. Replies are passed on while they come; only a request's body of up to 1 MiB is held.

Where the environment names a proxy already, what is passed on goes through it: an HTTP proxy, with or without a user.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from burler.verify.proxy_bodies import PIECE, chunked, chunks, of_length
from burler.verify.proxy_outside import Outside
from burler.verify.requests_asked import Asked
from burler.verify.requests_body import Reading
from burler.verify.requests_noted import Going
from burler.verify.requests_watch import RequestWatch

_HELD = 1 << 20
_HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
_UNSEEN = {
    "H701": "whether a request has a timeout does not show on the wire; it is seen in taps made with burler alone",
    "H712": "whether certificates are looked at does not show on the wire; it is seen in taps made with burler alone",
}


@contextlib.contextmanager
def watching_proxy(watch: RequestWatch, *, outside: Mapping[str, str] | None = None) -> Iterator[dict[str, str]]:
    """Run the proxy; gives the variables that make a process use it.

    Args:
        outside: the environment that says how this machine gets to the network; None: the process's own.

    Raises:
        UsageError: it names a proxy that we can't talk to (SOCKS, or over TLS).
    """
    way = Outside.of(os.environ if outside is None else outside)
    server = _Server(("127.0.0.1", 0), _Handler)
    server.watch, server.way = watch, way
    for code, reason in _UNSEEN.items():
        watch.unchecked.setdefault(code, reason)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        names = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
        yield {**dict.fromkeys(names, url), "NO_PROXY": "", "no_proxy": ""}
    finally:
        server.shutdown()
        server.server_close()
        server.hang_up()
        thread.join(10)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    watch: RequestWatch
    way: Outside

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def holding(self, sock: socket.socket) -> Iterator[socket.socket]:
        """Close a connection at the end, ours or its own."""
        with self._lock:
            self._open.add(sock)
        try:
            yield sock
        finally:
            with self._lock:
                self._open.discard(sock)
            sock.close()

    def hang_up(self) -> None:
        """End all that is under way."""
        with self._lock:
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_args: Any) -> None:
        """The tap has gone away, or was ended."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def handle(self) -> None:
        """All requests of one connection."""
        with self.server.holding(self.request):
            super().handle()

    def do_CONNECT(self) -> None:
        """A tunnel."""
        host, _, port = self.path.rpartition(":")
        self.close_connection = True
        if not host or not port.isdecimal():
            return self._refuse(400, "CONNECT wants HOST:PORT")
        self.server.watch.tunnelled(host.strip("[]").lower())
        try:
            far = self.server.way.tunnel(host.strip("[]"), int(port))
        except OSError as error:
            return self._refuse(502, f"{host} can't be reached: {error.strerror or error}")
        with self.server.holding(far):
            self.send_response_only(200, "Connection established")
            self.end_headers()
            back = threading.Thread(target=_pump, args=(far.recv, self.connection), daemon=True)
            back.start()
            _pump(self.rfile.read1, far)
            back.join()

    def _pass_on(self) -> None:
        """Any other request."""
        parts = urlsplit(self.path)
        if parts.scheme.lower() != "http" or not parts.hostname:
            self.close_connection = True
            return self._refuse(400, "this is a proxy: ask it for a whole http:// address, or CONNECT")
        body, rest = self._body()
        headers = [(name, value) for name, value in self.headers.items() if name.lower() not in self._own(self.headers)]
        asked = Asked(self.command, self.path, dict(headers), body if rest is None else rest)
        going = self.server.watch.begin(asked)
        try:
            far, target = self.server.way.connect(self.path)
        except OSError as error:
            self.server.watch.lost(going)
            self.close_connection = True
            return self._refuse(502, f"{parts.hostname} can't be reached: {error.strerror or error}")
        with self.server.holding(far):
            self._exchange(far, target, headers, body, rest, going)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = _pass_on

    def _exchange(
        self,
        far: socket.socket,
        target: str,
        headers: list[tuple[str, str]],
        body: bytes | None,
        rest: Iterator[bytes] | None,
        going: Going,
    ) -> None:
        watch = self.server.watch
        reply = http.client.HTTPResponse(far, method=self.command)
        try:
            self._send(far, target, headers, body, rest)
            reply.begin()
        except (OSError, http.client.HTTPException) as error:
            watch.lost(going)
            self.close_connection = True
            if isinstance(error, http.client.RemoteDisconnected | ConnectionError):
                return None  # to the tap it looks as it did to us
            return self._refuse(502, f"the reply is none: {type(error).__name__}")
        with contextlib.closing(reply):
            reading = watch.answered(going, reply.status, dict(reply.getheaders()))
            try:
                self._answer(reply, reading)
            except (OSError, http.client.HTTPException):
                self.close_connection = True
        return None

    def _send(
        self,
        far: socket.socket,
        target: str,
        headers: list[tuple[str, str]],
        body: bytes | None,
        rest: Iterator[bytes] | None,
    ) -> None:
        lines = [f"{self.command} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        lines += [f"{name}: {value}" for name, value in self.server.way.headers(self.path)]
        if rest is not None and "content-length" not in {name.lower() for name, _ in headers}:
            lines.append("Transfer-Encoding: chunked")
        elif body is not None and rest is None:
            lines = [line for line in lines if not line.lower().startswith("content-length:")]
            lines.append(f"Content-Length: {len(body)}")
        far.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + (body or b""))
        for piece in rest or ():
            far.sendall(piece)

    def _body(self) -> tuple[bytes | None, Iterator[bytes] | None]:
        """The request's body and, where it is too long to be held, what comes behind its beginning as it is sent."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            pieces = chunks(self.rfile)
            held, size = [], 0
            for piece in pieces:
                held.append(piece)
                size += len(piece)
                if size > _HELD:
                    return b"", chunked(itertools.chain(held, pieces))
            return b"".join(held), None
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            return None, None
        if int(length) <= _HELD:
            return self.rfile.read(int(length)), None
        return b"", of_length(self.rfile, int(length))

    def _answer(self, reply: http.client.HTTPResponse, reading: Reading) -> None:
        bodyless = self.command == "HEAD" or reply.status in (204, 304)
        length = reply.getheader("Content-Length")
        chunked = not bodyless and length is None and self.request_version != "HTTP/1.0"
        self.send_response_only(reply.status, reply.reason)
        own = self._own(reply.headers)
        for name, value in reply.getheaders():
            if name.lower() not in own:
                self.send_header(name, value)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        if self.close_connection or (length is None and not chunked and not bodyless):
            self.close_connection = True
            self.send_header("Connection", "close")
        if bodyless or reply.length == 0:
            reading.end()
            return self.end_headers()
        self.end_headers()
        try:
            while piece := reply.read1(PIECE):
                reading.feed(piece)
                if reply.length == 0:
                    reading.end()  # before the tap has it all, and goes on, or ends
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        except BaseException:
            reading.broke()
            raise
        if reply.length:  # it ended early: so does ours
            self.close_connection = True
            return reading.broke()
        reading.end()
        if chunked:
            self.wfile.write(b"0\r\n\r\n")
        return None

    def _own(self, headers: Any) -> frozenset[str]:
        """Headers that are between two neighbours."""
        named = ",".join(headers.get_all("Connection") or ())
        return _HOP_BY_HOP | {"expect"} | {name.strip().lower() for name in named.split(",")}

    def _refuse(self, status: int, text: str) -> None:
        body = f"burler verify: {text}\n".encode("utf-8", "replace")
        with contextlib.suppress(OSError):
            self.send_response_only(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        """Nothing: the watch notes."""


def _pump(read: Any, to: socket.socket) -> None:
    """Pass on what comes from one side of a tunnel to the other, until it ends."""
    with contextlib.suppress(OSError, ValueError):
        while piece := read(PIECE):
            to.sendall(piece)
    with contextlib.suppress(OSError):
        to.shutdown(socket.SHUT_WR)
