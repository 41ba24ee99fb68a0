"""A source of contacts on this machine, with the habits that sources have."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections import Counter

from support import servers

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


class Source:
    """What it was asked for, in order: ``lines`` with methods, ``asked`` counted."""

    def __init__(self):
        self.url, self.port = "", 0
        self.forget()

    def forget(self):
        """It has never been asked."""
        self.asked, self.lines = Counter(), []

    def reply(self, request):
        """A body may come packed, in small pieces, or break off: by the query."""
        query = {name: value for name, value in request.query.items() if value}
        self.asked[request.path, tuple(sorted(query.items()))] += 1
        self.lines.append(f"{request.method} {request.raw}")
        status, more, found = answer(self, request.method, request.path, query, request.headers, request.body)
        content, more = json.dumps(found).encode(), {"Content-Type": "application/json", **more}
        if query.get("packed"):
            content, more = gzip.compress(content), {**more, "Content-Encoding": "gzip"}

        def in_pieces(connection):
            connection.send_response(status)
            for name, value in {**more, "Transfer-Encoding": "chunked"}.items():
                connection.send_header(name, value)
            connection.end_headers()
            pieces = [content[at : at + 1] for at in range(min(20, len(content)))] + [content[20:]]
            connection.wfile.write(b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece))
            connection.wfile.write(b"0\r\n\r\n")

        def broken_off(connection):
            connection.send(status, content, more, length=len(content) + 5)
            connection.wfile.flush()
            connection.end()

        if query.get("chunked"):
            return in_pieces
        return broken_off if query.get("broken") else (status, more, content)


@contextlib.contextmanager
def serving():
    """The source, until the block ends."""
    source = Source()
    with servers.serving(source.reply) as running:
        source.url, source.port = running.url, running.port
        yield source
