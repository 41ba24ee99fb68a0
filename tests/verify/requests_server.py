"""A source of contacts on this machine, with the habits that sources have."""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

CONTACTS = [{"id": number, "label_id": "a"} for number in range(30)]
ROWS = [{"id": number} for number in range(200)]
GREATEST_PAGE = 10


def answer(server, method, path, query, headers, body):
    """(status, headers, JSON) of a request."""
    asked = server.asked[path, tuple(sorted(query.items()))]
    page = int(query.get("page", 1))
    if path == "/contacts":
        return 200, {}, CONTACTS[(page - 1) * 10 : page * 10]
    if path == "/rows":
        begin = int(query["offset"])
        return 200, {}, ROWS[begin : begin + min(int(query["limit"]), GREATEST_PAGE)]
    if path == "/flaky":
        return (503, {}, {"error": "for a moment"}) if page == 2 and asked == 1 else (200, {}, CONTACTS[:10])
    if path == "/busy":
        return (429, {"Retry-After": "1"}, {}) if asked == 1 else (200, {}, CONTACTS[:10])
    if path == "/linked":
        return 200, {}, {"data": CONTACTS[:10], "next": "/linked?page=2" if page == 1 else None}
    if path == "/forbidden":
        return 403, {}, {"error": "no right to see contacts"}
    if path == "/moved":
        return 302, {"Location": "/contacts"}, {}
    if path == "/labels":
        return 200, {}, {"a": "friends"}
    if path == "/secure":
        if "authorization" in headers:
            return 200, {}, CONTACTS[:10]
        return 401, {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'}, {}
    if path == "/echo":
        return 200, {"X-Method": method}, {"body": body.decode("latin-1"), "headers": headers}
    if path.startswith("/contacts/"):
        return 200, {}, CONTACTS[int(path.rpartition("/")[2])]
    return 404, {}, {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self):
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        if self.headers.get("Transfer-Encoding"):
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            body = b"".join(pieces)
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked[url.path, tuple(sorted(query.items()))] += 1
        self.server.lines.append(f"{self.command} {self.path}")
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, more, found = answer(self.server, self.command, url.path, query, headers, body)
        content = json.dumps(found).encode()
        if query.get("packed"):
            content, more = gzip.compress(content), {**more, "Content-Encoding": "gzip"}
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **more}.items():
            self.send_header(name, value)
        if query.get("chunked"):
            self.send_header("Transfer-Encoding", "chunked")
            content = b"".join(b"1\r\n%c\r\n" % byte for byte in content[:20]) + (
                b"%x\r\n%b\r\n0\r\n\r\n" % (len(content) - 20, content[20:])
            )
        else:
            self.send_header("Content-Length", str(len(content) + (5 if query.get("broken") else 0)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.close_connection = self.close_connection or bool(query.get("broken"))

    do_GET = do_HEAD = do_POST = do_PUT = answer

    def log_message(self, *_args):
        pass


class Source(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.forget()

    def forget(self):
        """It has never been asked."""
        self.asked, self.lines = Counter(), []

    def handle_error(self, *_args):
        pass


@contextlib.contextmanager
def serving():
    source = Source()
    thread = threading.Thread(target=source.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield source
    finally:
        source.shutdown()
        source.server_close()
        thread.join(10)
