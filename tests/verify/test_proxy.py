"""A tap that is another process, seen through a proxy on this machine."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import sys
from pathlib import Path

import pytest
import requests

from burler.errors import UsageError
from support.cli import burler
from support.internals import verify_proxy
from support.servers import serving as listening

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def server():
    from requests_server import serving

    with serving() as found:
        yield found


@pytest.fixture
def source(server):
    server.forget()
    return server


@pytest.fixture
def watch():
    return verify_proxy.RequestWatch(lambda: None)


@pytest.fixture
def proxy(watch):
    with verify_proxy.watching_proxy(watch, outside={}) as environment:
        yield environment


@pytest.fixture
def session(proxy):
    with requests.Session() as client:
        client.trust_env = False
        client.proxies = {"http": proxy["http_proxy"], "https": proxy["https_proxy"]}
        yield client


def statuses(watch):
    return {name: dict(one["statuses"]) for name, one in watch.to_json(None).items()}


COMMAND = """
import json, requests, sys
if "--discover" in sys.argv:
    print(json.dumps({"streams": []}))
else:
    print(json.dumps({"type": "SCHEMA", "stream": "contacts", "schema": {}, "key_properties": []}))
    for page in (1, 2, 4):
        for row in requests.get("URL/contacts", params={"page": page}).json():
            print(json.dumps({"type": "RECORD", "stream": "contacts", "record": row}))
    requests.get("URL/forbidden")
    try:
        requests.get("https://127.0.0.1:PORT/contacts", timeout=9)  # a tunnel to what speaks no TLS
    except requests.ConnectionError:
        pass
"""


def test_a_command_is_noted_and_judged(source, tmp_path):
    """Its requests are of no stream, and say so."""
    port = str(source.port)
    (tmp_path / "tap.py").write_text(COMMAND.replace("URL", source.url).replace("PORT", port))
    words = ["verify", "--exec", f"{sys.executable} tap.py", "--no-resume", "--no-behaviour", "--select", "H"]
    ended = burler(*words, "--format", "json", "--report", "found.txt", cwd=tmp_path)
    told = json.loads(ended.stdout)
    (run,) = told["runs"]
    assert list(run["streams"]) == ["contacts", "(no stream)"] and run["streams"]["contacts"]["rows"] == 20
    asked = run["streams"]["(no stream)"]["requests"]
    assert {name: one["statuses"] for name, one in asked.items()} == {
        "GET /contacts": {"200": 3},
        "GET /forbidden": {"403": 1},
    }
    assert sorted(one["code"] for one in told["findings"]) == ["H704", "H710"]
    assert {"H701", "H712"} <= told["unchecked"].keys()
    table = [line.split("  ")[0] for line in (tmp_path / "found.txt").read_text().splitlines() if line.endswith("  4")]
    assert table == ["(no stream)"]


def test_all_methods_and_headers_pass(session, source, watch):
    body = os.urandom(1000).hex().encode()
    headers = {"X-Own": "ä".encode("latin-1"), "Proxy-Authorization": "Basic abc"}
    for method in ("GET", "POST", "PUT"):
        reply = session.request(method, f"{source.url}/echo?a=b%20c", data=body, headers=headers, timeout=9)
        assert reply.headers["X-Method"] == method
        assert reply.json()["body"] == body.decode()
        assert reply.json()["headers"]["x-own"] == "ä"
        assert "proxy-authorization" not in reply.json()["headers"]
    assert source.lines[0] == "GET /echo?a=b%20c"
    reply = session.head(f"{source.url}/echo", timeout=9)
    assert int(reply.headers["Content-Length"]) > 0
    assert reply.content == b""
    assert statuses(watch)["HEAD /echo"] == {"200": 1}
    assert not watch.failures


@pytest.mark.parametrize("query", ["", "&packed=1", "&chunked=1", "&packed=1&chunked=1"])
def test_bodies_arrive_whole_however_they_come(query, session, source, watch):
    rows = session.get(f"{source.url}/rows?offset=0&limit=10{query}", timeout=9).json()
    assert len(rows) == 10
    assert statuses(watch) == {"GET /rows": {"200": 1}}


@pytest.mark.parametrize("size", [100, 3 << 20], ids=["small", "big"])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_bodies_go_out_whole_however_they_come(size, chunked, session, source):
    body = b"x" * size
    data = iter([body[:50], body[50:]]) if chunked else body
    reply = session.post(f"{source.url}/echo", data=data, timeout=30)
    assert reply.json()["body"] == body.decode()


def test_one_connection_is_used_again(proxy, source):
    connection = http.client.HTTPConnection(proxy["http_proxy"].removeprefix("http://"), timeout=9)
    connection.connect()
    first = connection.sock
    for _ in range(3):
        connection.request("GET", f"{source.url}/contacts")
        assert len(connection.getresponse().read()) > 100
        assert connection.sock is first
    connection.close()


def test_redirects_are_left_to_the_tap(session, source, watch):
    assert len(session.get(f"{source.url}/moved", timeout=9).history) == 1
    assert statuses(watch) == {"GET /moved": {"302": 1}, "GET /contacts": {"200": 1}}


def test_a_body_that_breaks_off_breaks_off(session, source, watch):
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        session.get(f"{source.url}/contacts?broken=1", timeout=9)
    (failure,) = watch.failures.values()
    assert failure.status is None


def test_nobody_answers(session, watch):
    reply = session.get("http://127.0.0.1:9/contacts", timeout=9)
    assert (reply.status_code, "can't be reached" in reply.text) == (502, True)
    assert statuses(watch) == {"GET /contacts": {"lost": 1}}
    with pytest.raises(requests.exceptions.ProxyError):
        session.get("https://127.0.0.1:9/contacts", timeout=9)


def test_a_tunnel_is_counted_and_not_looked_into(proxy, watch, source):
    host, port = proxy["https_proxy"].removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=9)
    connection.set_tunnel("127.0.0.1", source.port)
    connection.request("GET", "/contacts")
    assert len(connection.getresponse().read()) > 100
    connection.close()
    assert dict(watch.tunnels) == {"127.0.0.1": 1}
    assert watch.to_json(None) == {}


@pytest.mark.parametrize("line", ["GET /contacts", "GET https://127.0.0.1/", "CONNECT nowhere"])
def test_what_is_no_request_to_a_proxy(line, proxy):
    host, port = proxy["http_proxy"].removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=9) as sock:
        sock.sendall(f"{line} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        with sock.makefile("rb") as file:
            assert file.readline().startswith(b"HTTP/1.1 400")


def test_it_ends_though_a_tap_waits(watch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with verify_proxy.watching_proxy(watch, outside={}) as environment:
            host, port = environment["http_proxy"].removeprefix("http://").split(":")
            sock = socket.create_connection((host, int(port)), timeout=9)
            sock.sendall(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n\r\n" % silent.getsockname()[1])
            asked, _address = silent.accept()
            asked.recv(10)
        with sock, asked:
            assert sock.recv(10) == b""  # it was hung up


# A proxy that was there before


def test_what_is_passed_on_goes_through_the_proxy_of_the_environment(watch, source):
    outer = verify_proxy.RequestWatch(lambda: "outer")
    with (
        verify_proxy.watching_proxy(outer, outside={}) as first,
        verify_proxy.watching_proxy(watch, outside=first) as second,
    ):
        session = requests.Session()
        session.trust_env, session.proxies = False, {"http": second["http_proxy"]}
        assert len(session.get(f"{source.url}/contacts", timeout=9).json()) == 10
        host, port = second["https_proxy"].removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=9)
        connection.set_tunnel("127.0.0.1", source.port)
        connection.request("GET", "/contacts")
        assert connection.getresponse().status == 200
        connection.close()
        session.close()
    assert list(outer.to_json("outer")) == list(watch.to_json(None)) == ["GET /contacts"]
    assert outer.tunnels == watch.tunnels


def test_its_user_is_told_to_it_and_to_nobody_else(watch, source):
    with listening(lambda asked: {"by": "the proxy outside"}) as outer:
        url = outer.url.replace("//", "//ann:w%40rd@")
        outside = {"HTTP_PROXY": url, "no_proxy": "127.0.0.1, .inner.net"}
        with verify_proxy.watching_proxy(watch, outside=outside) as inner, requests.Session() as session:
            session.trust_env, session.proxies = False, {"http": inner["http_proxy"]}
            assert session.get("http://api.example.com/", timeout=9).json() == {"by": "the proxy outside"}
            assert len(session.get(f"{source.url}/contacts", timeout=9).json()) == 10
    (asked,) = outer.asked
    assert base64.b64decode(asked.headers["proxy-authorization"].removeprefix("Basic ")) == b"ann:w@rd"
    assert "w%40rd" not in repr(inner)


@pytest.mark.parametrize("url", ["socks5://127.0.0.1:1", "https://ann:secret-word@127.0.0.1:1", "http://:x"])
def test_a_proxy_that_we_cannot_talk_to_is_refused(url, watch):
    with pytest.raises(UsageError, match=r"through an http:// proxy alone.*--ignore H") as raised:
        verify_proxy.watching_proxy(watch, outside={"all_proxy": url}).__enter__()
    assert "secret-word" not in str(raised.value)
