"""Real servers: what they say and do not say, and what is shown of their addresses."""

from __future__ import annotations

import http.server
import json
import threading
import traceback
from contextlib import contextmanager

import pytest
from filebox import ORDER, ids, tap_of

from burler.errors import FileError
from burler.files import read
from burler.testing import canary, run_tap

WITH_NAME = {"properties": {**ORDER["properties"], "_file": {"type": "string"}}}


def noted(state):
    entries = state["bookmarks"]["orders"].get("source_state")
    return json.loads(entries[0]["value"])["files"] if entries else 0


# ---- a real web server -------------------------------------------------------------------------------


class Web:
    """Files, and what the server says of them."""

    def __init__(self):
        self.files, self.headers, self.status, self.sized = {}, {}, 200, True


@contextmanager
def serving():
    web = Web()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.partition("?")[0]
            index = path.endswith("/") and any(name.startswith(path) for name in web.files)
            status = web.status if web.status != 200 else 200 if index or path in web.files else 404
            links = "".join(f'<a href="{name[len(path) :]}">x</a>' for name in web.files if name.startswith(path))
            body = links.encode() if index else web.files.get(path, b"")
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if index else "text/csv")
            for name, value in {} if index else web.headers.items():
                self.send_header(name, value)
            if web.sized or index or status != 200:
                self.send_header("Content-Length", str(len(body) if status == 200 else 0))
            self.end_headers()
            if self.command == "GET" and status == 200:
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield web, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def web():
    pytest.importorskip("aiohttp")
    with serving() as served:
        yield served


@pytest.mark.parametrize("sized", [True, False])
def test_a_page_of_the_web_without_a_validator_is_read_in_each_run(web, sized):
    server, url = web
    server.sized, server.files["/in/a.csv"] = sized, b"id\n1\n"
    tap = tap_of(f"{url}/in/a.csv", declared={"replication_key": "id"})
    first = run_tap(tap)
    server.files["/in/a.csv"] = b"id\n2\n"
    assert ids(first) == [1] and ids(run_tap(tap, state=first.states[-1])) == [2]


@pytest.mark.parametrize("pattern", ["/in/a.csv", "/in/*.csv", "/in/**/*.csv"])
@pytest.mark.parametrize("status", [401, 500, 503])
def test_a_web_server_that_fails_is_no_empty_one(web, pattern, status):
    server, url = web
    server.headers["ETag"], server.files["/in/a.csv"] = '"1"', b"id\n1\n"
    tap = tap_of(f"{url}{pattern}", declared={"replication_key": "id"})
    first = run_tap(tap)
    assert ids(first) == [1] and noted(first.states[-1]) == 1
    server.status = status
    second = run_tap(tap, state=first.states[-1])
    assert f"can't be listed: HTTP {status}" in str(second.result.errors["orders"]) and noted(second.states[-1]) == 1
    server.status = 200
    third = run_tap(tap, state=second.states[-1])
    assert not third.result.errors and ids(third) == []
    server.headers["ETag"] = '"2"'
    assert ids(run_tap(tap, state=third.states[-1])) == [1]


def test_a_signed_address_of_a_real_server(web, caplog):
    server, url = web
    caplog.set_level("DEBUG", logger="burler")
    secret = canary("sig")
    server.headers["ETag"], server.files["/in/a.csv"] = '"1"', b"id\n1\n"
    tap = tap_of(f"{url}/in/a.csv?sig={secret}", schema=WITH_NAME, add="_file", declared={"replication_key": "id"})
    first = run_tap(tap)
    assert first.records("orders") == [{"id": 1, "_file": "a.csv"}]
    assert ids(run_tap(tap, state=first.states[-1])) == []
    for prefix in ("", "simplecache::"):
        for path in ("nothing.csv", "*/nothing.csv"):
            with pytest.raises(FileError) as raised:
                list(read(f"{prefix}{url}/{path}?sig={secret}"))
            assert secret not in "".join(traceback.format_exception(raised.value)).partition("list(read")[2]
    with pytest.raises(FileError) as raised:
        list(read(f"zip://*.csv::{url}/nothing.zip?sig={secret}"))
    assert secret not in str(raised.value) + json.dumps(first.messages) + caplog.text


# ---- a real FTP server -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_file_of_an_ftp_server_that_was_replaced(box):
    pytest.importorskip("pyftpdlib")
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import ThreadedFTPServer

    authorizer = DummyAuthorizer()
    authorizer.add_anonymous(str(box.folder))
    handler = type("Handler", (FTPHandler,), {"authorizer": authorizer})
    server = ThreadedFTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        box.put("in/a.csv", "id\n1\n", at=1_000_000)
        tap = tap_of(
            f"ftp://127.0.0.1:{server.address[1]}/in/*.csv",
            settle_seconds=60,
            now=lambda: 1_000_100.0,
            declared={"replication_key": "id"},
        )
        first = run_tap(tap)
        assert ids(first) == [1] and ids(run_tap(tap, state=first.states[-1])) == []
        box.put("in/a.csv", "id\n9\n", at=1_000_020)
        assert ids(run_tap(tap, state=first.states[-1])) == [9]
        box.put("in/a.csv", "id\n8\n", at=1_000_090)
        assert ids(run_tap(tap, state=first.states[-1])) == [], "settle_seconds holds it"
    finally:
        server.close_all()
        thread.join(5)
