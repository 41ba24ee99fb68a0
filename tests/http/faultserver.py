"""A source that fails in every way a source can, on real sockets: seeded, so that a run can be had again.

    with FaultServer(streams={"part-0": 1000}, kinds=KINDS, rate=0.4, seed=7) as server:
        Client(server.url, timeout_seconds=0.5).pages("/rows/part-0")

``/rows/NAME?page=N`` gives a page as a JSON array of ``{"id": ..., "stream": NAME, "text": ...}``; a ``Link`` header
leads to the next. Which request fails, and how, is drawn from the seed, the path and how often it was asked for: it
does not depend on the order in which threads come.
"""

from __future__ import annotations

import gzip
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from email.utils import formatdate
from typing import Any
from urllib.parse import urlsplit

from support.servers import Asked, Connection, serving

ROW_TEXT = 'some text with ünïcode, "quotes" and 12345678901234567890.123456789'
MIB = 1024 * 1024


class FaultServer:
    """The server; ``url`` is there once it is entered.

    Args:
        streams: rows by the name of each stream.
        kinds: which faults there are; see ``KINDS``.
        rate: the share of requests that fail, from 0 to 1.
        in_a_row: so many faults of one page, one after the other, at the most.
        most: so many faults in all; then the source has recovered. None: it never does.
        lasting: streams that fail for ever, each with its fault.
        stall_seconds: how long a stalled reply keeps its connection open, at the most.
    """

    def __init__(
        self,
        *,
        streams: Mapping[str, int] | None = None,
        page_size: int = 100,
        kinds: Collection[str] = (),
        rate: float = 0.3,
        seed: int = 0,
        in_a_row: int = 3,
        most: int | None = None,
        lasting: Mapping[str, str] | None = None,
        stall_seconds: float = 10.0,
    ) -> None:
        self.streams = dict(streams or {"things": 1000})
        self.page_size = page_size
        self.kinds = tuple(kinds)
        self.rate, self.seed, self.in_a_row, self.most = rate, seed, in_a_row, most
        self.lasting = dict(lasting or {})
        self.stall_seconds = stall_seconds
        self.requests: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.url = ""
        self._lock = threading.Lock()
        self._asked: Counter[str] = Counter()
        self._row: Counter[str] = Counter()

    def __enter__(self) -> FaultServer:
        self._running = serving(self._answer)
        self.url = self._running.__enter__().url
        return self

    def __exit__(self, *_error: object) -> None:
        self._running.__exit__(None, None, None)

    def _answer(self, asked: Asked) -> Any:
        self.seen.append((asked.method, asked.raw, asked.headers))
        if asked.path.rpartition("/")[2] not in self.streams:
            return 404, {"Content-Type": "application/json"}, b'{"error": "no such stream"}'
        kind = self.draw(asked.raw)
        return lambda connection: (KINDS[kind] if kind else _Reply.answer)(_Reply(self, asked, connection))

    def rows(self, name: str) -> list[dict[str, object]]:
        """All rows of a stream."""
        return [{"id": i, "stream": name, "text": ROW_TEXT} for i in range(self.streams[name])]

    def draw(self, path: str) -> str | None:
        """The fault of the next request for a path; None for an answer."""
        name = urlsplit(path).path.rpartition("/")[2]
        with self._lock:
            self.requests[path] += 1
            kind = self.lasting.get(name) or self._drawn(path)
            if kind is not None:
                self.faults[kind] += 1
            return kind

    def _drawn(self, path: str) -> str | None:
        self._asked[path] += 1
        drawn = random.Random(f"{self.seed} {path} {self._asked[path]}")
        spent = self.most is not None and self.faults.total() >= self.most
        if not self.kinds or spent or self._row[path] >= self.in_a_row or drawn.random() >= self.rate:
            self._row[path] = 0
            return None
        self._row[path] += 1
        return drawn.choice(self.kinds)


class _Reply:
    """What comes of a request, on its connection."""

    def __init__(self, faults: FaultServer, asked: Asked, connection: Connection) -> None:
        self.faults, self.asked, self.connection = faults, asked, connection

    def answer(self, *, wait_seconds: float = 0.0) -> None:
        """The page that was asked for."""
        time.sleep(wait_seconds)
        body, headers = self.page()
        self.send(200, body, headers)

    def page(self) -> tuple[bytes, dict[str, str]]:
        """The body of a page, and where the next one is."""
        number, size = int(self.asked.query.get("page", "0")), self.faults.page_size
        rows = self.faults.rows(self.asked.path.rpartition("/")[2])
        more = len(rows) > (number + 1) * size
        headers = {"Link": f'<{self.asked.path}?page={number + 1}>; rel="next"'} if more else {}
        return json.dumps(rows[number * size : (number + 1) * size]).encode(), headers

    def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None, *, length: int | None = None):
        """A reply; ``length`` where the header is to lie."""
        self.connection.send(status, body, {"Content-Type": "application/json", **(headers or {})}, length=length)

    def begin(self, **headers: str) -> Any:
        """A reply that says no length; gives the file for its body."""
        self.connection.send_response(200)
        for name, value in headers.items():
            self.connection.send_header(name.replace("_", "-"), value)
        self.connection.end_headers()
        return self.connection.wfile

    def stall(self) -> None:
        """Send nothing until the other side has had enough."""
        self.connection.wfile.flush()
        self.connection.stall(self.faults.stall_seconds)

    def end(self, *, reset: bool = False) -> None:
        """Close the connection, with a reset if wanted."""
        self.connection.wfile.flush()
        self.connection.end(reset=reset)


def _late(h: _Reply) -> None:
    h.answer(wait_seconds=0.05)


def _stalls(h: _Reply) -> None:
    body, headers = h.page()
    h.send(200, body[: len(body) // 2], headers, length=len(body))
    h.stall()


def _silent(h: _Reply) -> None:
    h.stall()


def _half(h: _Reply) -> None:
    body, headers = h.page()
    h.send(200, body[: len(body) // 2], headers, length=len(body))
    h.end()


def _chunked(h: _Reply, body: bytes, *, whole: bool) -> None:
    out = h.begin(Transfer_Encoding="chunked")
    for at in range(0, len(body), 1000):
        piece = body[at : at + 1000]
        out.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
    if whole:
        out.write(b"0\r\n\r\n")
    else:
        h.end()


def _half_chunked(h: _Reply) -> None:
    body, _headers = h.page()
    _chunked(h, body[: len(body) // 2], whole=False)


def _html(h: _Reply) -> None:
    h.send(200, b"<html><body>We will be back soon</body></html>", {"Content-Type": "text/html"})


def _bad_json(h: _Reply) -> None:
    body, headers = h.page()
    h.send(200, body[: len(body) * 2 // 3], headers)


def _loop(h: _Reply) -> None:
    h.send(302, b"", {"Location": h.asked.raw})


def _huge(h: _Reply) -> None:
    """More than anybody wants, without saying how much."""
    out = h.begin(Transfer_Encoding="chunked")
    piece = b"100000\r\n" + b" " * MIB + b"\r\n"
    for _ in range(1000):
        out.write(piece)
    out.write(b"0\r\n\r\n")


def _huge_said(h: _Reply) -> None:
    h.send(200, b"[", length=1 << 40)
    h.stall()


_BOMB = gzip.compress(bytes(64 * MIB), 9)


def _bomb(h: _Reply) -> None:
    h.send(200, _BOMB, {"Content-Encoding": "gzip"})


def _bad_gzip(h: _Reply) -> None:
    body, headers = h.page()
    packed = bytearray(gzip.compress(body))
    packed[len(packed) // 2] ^= 0xFF
    packed[-8] ^= 0xFF  # the checksum, so that it never fits by chance
    h.send(200, bytes(packed), {**headers, "Content-Encoding": "gzip"})


def _half_gzip(h: _Reply) -> None:
    """Cut off, and nothing but the gzip itself says so: an old proxy that gave up."""
    packed = gzip.compress(h.page()[0])
    h.begin(Content_Encoding="gzip", Connection="close").write(packed[: len(packed) // 2])
    h.end()


def _garbage(h: _Reply) -> None:
    h.connection.wfile.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
    h.end()


def _status(status: int, headers: Callable[[], Mapping[str, str]] = dict) -> Callable[[_Reply], None]:
    return lambda h: h.send(status, b'{"error": "try later"}', headers())


KINDS: dict[str, Callable[[_Reply], None]] = {
    "429": _status(429),
    "429-after": _status(429, lambda: {"Retry-After": "1"}),
    "429-long": _status(429, lambda: {"Retry-After": "5000"}),
    "429-date": _status(429, lambda: {"Retry-After": formatdate(time.time() + 1, usegmt=True)}),
    "500": _status(500),
    "502": _status(502),
    "503": _status(503),
    "503-after": _status(503, lambda: {"Retry-After": "0"}),
    "drop": lambda h: h.end(),
    "reset": lambda h: h.end(reset=True),
    "late": _late,
    "silent": _silent,
    "stalls": _stalls,
    "half": _half,
    "half-chunked": _half_chunked,
    "html": _html,
    "empty": lambda h: h.send(200, b""),
    "bad-json": _bad_json,
    "loop": _loop,
    "huge": _huge,
    "huge-said": _huge_said,
    "bomb": _bomb,
    "bad-gzip": _bad_gzip,
    "half-gzip": _half_gzip,
    "garbage": _garbage,
}
SLOW = ("silent", "stalls")
"""Those that hold a client up until its time is over."""
PASSING = tuple(kind for kind in KINDS if kind != "429-long")
"""Those that a client with the usual patience gets over."""
