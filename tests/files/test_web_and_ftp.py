"""Real servers: what they say and do not say, and what is shown of their addresses."""

from __future__ import annotations

import json
import threading
import traceback

import pytest
from filebox import ORDER, ids, tap_of

from burler.errors import FileError
from burler.files import read
from burler.testing import canary, run_tap
from support.servers import serving

WITH_NAME = {"properties": {**ORDER["properties"], "_file": {"type": "string"}}}


def noted(state):
    entries = state["bookmarks"]["orders"].get("source_state")
    return json.loads(entries[0]["value"])["files"] if entries else 0


# ---- a real web server -------------------------------------------------------------------------------


class Web:
    """Files, and what the server says of them."""

    def __init__(self):
        self.files, self.headers, self.status, self.sized = {}, {}, 200, True

    def answer(self, asked):
        if self.status != 200:
            return self.status
        if asked.path in self.files:
            if self.sized:
                return 200, {"Content-Type": "text/csv", **self.headers}, self.files[asked.path]
            return lambda connection: self.unsized(connection, self.files[asked.path])
        names = [name[len(asked.path) :] for name in self.files if name.startswith(asked.path)]
        if not names or not asked.path.endswith("/"):
            return 404
        return 200, {"Content-Type": "text/html"}, "".join(f'<a href="{name}">x</a>' for name in names).encode()

    @staticmethod
    def unsized(connection, body):
        connection.send_response(200)
        connection.send_header("Connection", "close")
        connection.end_headers()
        connection.wfile.write(body if connection.command == "GET" else b"")
        connection.close_connection = True


@pytest.fixture
def web():
    pytest.importorskip("aiohttp")
    said = Web()
    with serving(said.answer) as server:
        yield said, server.url


@pytest.mark.parametrize("sized", [True, False])
def test_a_page_of_the_web_without_a_validator_is_read_in_each_run(web, sized):
    server, url = web
    server.sized, server.files["/in/a.csv"] = sized, b"id\n1\n"
    tap = tap_of(f"{url}/in/a.csv", declared={"replication_key": "id"})
    first = run_tap(tap)
    server.files["/in/a.csv"] = b"id\n2\n"
    assert ids(first) == [1] and ids(run_tap(tap, state=first.states[-1])) == [2]


def test_an_address_that_its_server_does_not_know(web):
    _, url = web
    with pytest.raises(FileError, match=r"no file fits .*\n  Is the address right\? Its server knows none \(404\)"):
        list(read(f"{url}/gone.csv"))


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
