"""A tap that is another process, seen through a proxy on this machine."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from burler.errors import UsageError
from burler.spec import Findings, Limits
from support.internals import proxy_outside, requests_check, requests_watch, rules_requests, verify_proxy

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
    return requests_watch.RequestWatch(lambda: None)


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


TAP = """
import requests, sys
for page in (1, 2, 4):
    rows = requests.get(sys.argv[1] + "/contacts", params={"page": page}).json()
    print(len(rows))
requests.get(sys.argv[1] + "/forbidden")
"""


def test_a_process_is_noted_and_judged(source, watch, proxy):
    command = [sys.executable, "-c", TAP, source.url]
    done = subprocess.run(command, env={**os.environ, **proxy}, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["10", "10", "0"]
    assert statuses(watch) == {"GET /contacts": {"200": 3}, "GET /forbidden": {"403": 1}}
    findings = Findings({rule.code: rule for rule in rules_requests.REQUEST_RULES})
    unchecked = requests_check.check_requests(watch, {"contacts": 20}, findings, Limits())
    assert sorted(one.code for one in findings) == ["H704", "H710"]
    assert set(unchecked) == {"H701", "H712"}


COMMAND = """
import json, requests, sys
if "--discover" in sys.argv:
    print(json.dumps({"streams": []}))
else:
    rows = requests.get("URL/contacts", params={"page": 1}).json()
    print(json.dumps({"type": "SCHEMA", "stream": "contacts", "schema": {}, "key_properties": []}))
    print(json.dumps({"type": "RECORD", "stream": "contacts", "record": rows[0]}))
"""


def test_requests_of_a_command_are_of_no_stream_and_say_so(source, tmp_path):
    (tmp_path / "tap.py").write_text(COMMAND.replace("URL", source.url))
    words = ["verify", "--exec", f"{sys.executable} tap.py", "--no-resume", "--no-behaviour"]
    for form in ("text", "json"):
        command = [sys.executable, "-m", "burler", *words, "--format", form]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        if form == "json":
            assert list(json.loads(done.stdout)["runs"][0]["streams"]) == ["contacts", "(no stream)"]
        else:
            table = [line.split("  ")[0] for line in done.stdout.splitlines() if line.endswith("  1")]
            assert table == ["(no stream)"], done.stdout


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
    (series,) = watch.lists.series.values()
    assert series.rows == {0: 10}


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
    connection.set_tunnel("127.0.0.1", source.server_address[1])
    connection.request("GET", "/contacts")
    assert len(connection.getresponse().read()) > 100
    connection.close()
    assert dict(watch.tunnels) == {"127.0.0.1": 1}
    assert watch.to_json(None) == {}
    unchecked = requests_check.check_requests(watch, {}, Findings({}), Limits())
    assert unchecked["H704"].startswith("requests to 127.0.0.1 went through a tunnel (https)")


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
    outer = requests_watch.RequestWatch(lambda: "outer")
    with (
        verify_proxy.watching_proxy(outer, outside={}) as first,
        verify_proxy.watching_proxy(watch, outside=first) as second,
    ):
        session = requests.Session()
        session.trust_env, session.proxies = False, {"http": second["http_proxy"]}
        assert len(session.get(f"{source.url}/contacts", timeout=9).json()) == 10
        host, port = second["https_proxy"].removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=9)
        connection.set_tunnel("127.0.0.1", source.server_address[1])
        connection.request("GET", "/contacts")
        assert connection.getresponse().status == 200
        connection.close()
        session.close()
    assert list(outer.to_json("outer")) == list(watch.to_json(None)) == ["GET /contacts"]
    assert outer.tunnels == watch.tunnels


def test_its_user_is_told_to_it_and_to_nobody_else():
    way = proxy_outside.Outside.of(
        {"HTTP_PROXY": "http://ann:w%40rd@proxy.example.com:8080", "no_proxy": "localhost, .inner.net"}
    )
    given = dict(way.headers("http://api.example.com/"))
    assert base64.b64decode(given["Proxy-Authorization"].removeprefix("Basic ")) == b"ann:w@rd"
    assert way.headers("http://localhost:80/") == way.headers("http://a.inner.net/") == []
    assert "w%40rd" not in repr(way)


@pytest.mark.parametrize("url", ["socks5://127.0.0.1:1", "https://ann:secret-word@127.0.0.1:1", "http://:x"])
def test_a_proxy_that_we_cannot_talk_to_is_refused(url, watch):
    with pytest.raises(UsageError, match=r"through an http:// proxy alone.*--ignore H") as raised:
        verify_proxy.watching_proxy(watch, outside={"all_proxy": url}).__enter__()
    assert "secret-word" not in str(raised.value)
