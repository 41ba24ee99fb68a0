"""A tap that is another process, seen through a proxy on this machine."""

from __future__ import annotations

import base64
import json
import re
import socket
import sys
import threading
from pathlib import Path

import pytest

from support.cli import burler
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


BEGIN = """
import http.client, itertools, json, os, requests, socket, sys
if "--discover" in sys.argv:
    print(json.dumps({"streams": []}))
    sys.exit()
print(json.dumps({"type": "SCHEMA", "stream": "contacts", "schema": {}, "key_properties": []}))
print(json.dumps({"type": "RECORD", "stream": "contacts", "record": {}}), flush=True)
SOURCE, told = os.environ["SOURCE"], {}
proxy = os.environ["http_proxy"].removeprefix("http://")
"""
END = """
json.dump(told, open("told.json", "w"))
"""


def requests_of(program, folder, source, **env):
    """What a tap that makes requests has seen, and what verify says of them: (told, requests, all that is told)."""
    (folder / "tap.py").write_text(BEGIN + program + END)
    words = ["verify", "--exec", f"{sys.executable} tap.py", "--no-resume", "--no-behaviour", "--select", "H"]
    ended = burler(*words, "--format", "json", cwd=folder, SOURCE=source.url, **env)
    assert (folder / "told.json").exists(), (ended.stderr, ended.stdout)
    (run,) = json.loads(ended.stdout)["runs"]
    asked = run["streams"].get("(no stream)", {}).get("requests", {})
    return json.loads((folder / "told.json").read_text()), {n: one["statuses"] for n, one in asked.items()}, ended


EXCHANGES = """
body = os.urandom(1000).hex()
headers = {"X-Own": "\u00e4".encode("latin-1"), "Proxy-Authorization": "Basic abc"}
for method in ("GET", "POST", "PUT"):
    reply = requests.request(method, f"{SOURCE}/echo?a=b%20c", data=body, headers=headers, timeout=9)
    given = reply.json()
    told[method] = [reply.headers["X-Method"], given["body"] == body, given["headers"]["x-own"]]
    told[method] += ["proxy-authorization" in given["headers"]]
head = requests.head(f"{SOURCE}/echo", timeout=9)
told["HEAD"] = [int(head.headers["Content-Length"]) > 0, len(head.content)]
for query in ("", "&packed=1", "&chunked=1", "&packed=1&chunked=1"):
    told["rows" + query] = len(requests.get(f"{SOURCE}/rows?offset=0&limit=10{query}", timeout=9).json())
for size, chunked in itertools.product((100, 3 << 20), (False, True)):
    body = b"x" * size
    data = iter([body[:50], body[50:]]) if chunked else body
    reply = requests.post(f"{SOURCE}/echo", data=data, timeout=30)
    told[f"{size} {chunked}"] = reply.json()["body"] == body.decode()
told["moved"] = len(requests.get(f"{SOURCE}/moved", timeout=9).history)
connection = http.client.HTTPConnection(proxy, timeout=9)
connection.connect()
first = connection.sock
for at in range(3):
    connection.request("GET", f"{SOURCE}/contacts")
    told[f"again {at}"] = len(connection.getresponse().read()) > 100 and connection.sock is first
"""


def test_all_that_passes_arrives_whole(source, tmp_path):
    told, requests, _ = requests_of(EXCHANGES, tmp_path, source)
    assert source.lines[0] == "GET /echo?a=b%20c"
    assert [told.pop(method) for method in ("GET", "POST", "PUT")] == [
        [method, True, "ä", False] for method in ("GET", "POST", "PUT")
    ]
    assert told.pop("HEAD") == [True, 0] and told.pop("moved") == 1
    assert [told.pop(name) for name in list(told) if name.startswith("rows")] == [10] * 4
    assert len(told) == 7 and set(told.values()) == {True}
    assert requests == {
        "GET /echo": {"200": 1}, "POST /echo": {"200": 5}, "PUT /echo": {"200": 1}, "HEAD /echo": {"200": 1},
        "GET /rows": {"200": 4}, "GET /moved": {"302": 1}, "GET /contacts": {"200": 4},
    }  # fmt: skip


FAILURES = r"""
def error(call):
    try:
        return call().status_code
    except requests.RequestException as error:
        return type(error).__name__

told["broken"] = error(lambda: requests.get(f"{SOURCE}/contacts?broken=1", timeout=9))
reply = requests.get("http://127.0.0.1:9/nobody", timeout=9)
told["nobody"] = [reply.status_code, "can't be reached" in reply.text]
told["nobody in a tunnel"] = error(lambda: requests.get("https://127.0.0.1:9/contacts", timeout=9))
host, port = proxy.split(":")
for line in ("GET /contacts", "GET https://127.0.0.1/", "CONNECT nowhere"):
    with socket.create_connection((host, int(port)), timeout=9) as sock:
        sock.sendall(f"{line} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        with sock.makefile("rb") as file:
            told[line] = file.readline().decode()[:12]
tunnel = http.client.HTTPConnection(host, int(port), timeout=9)
tunnel.set_tunnel("127.0.0.1", int(SOURCE.rpartition(":")[2]))
tunnel.request("GET", "/in-a-tunnel")
told["tunnel"] = tunnel.getresponse().status
waits = socket.create_connection((host, int(port)), timeout=9)
waits.sendall(b"GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\n\r\n" % os.environ["SILENT"].encode())
waits.settimeout(0.3)
try:
    waits.recv(1)
except TimeoutError:
    told["silent"] = "waits"
"""


def test_what_goes_wrong_goes_wrong_for_the_tap_as_well(source, tmp_path):
    """And the proxy ends with the tap, also where it still waits for a server."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        told, requests, ended = requests_of(FAILURES, tmp_path, source, SILENT=str(silent.getsockname()[1]))
        asked, _address = silent.accept()
        with asked:
            asked.settimeout(9)
            while asked.recv(1000):
                pass  # it was hung up
    assert told == {
        "broken": "ChunkedEncodingError", "nobody": [502, True], "nobody in a tunnel": "ProxyError",
        "GET /contacts": "HTTP/1.1 400", "GET https://127.0.0.1/": "HTTP/1.1 400", "CONNECT nowhere": "HTTP/1.1 400",
        "tunnel": 404, "silent": "waits",
    }  # fmt: skip
    assert source.lines == ["GET /contacts?broken=1", "GET /in-a-tunnel"]
    assert requests.pop("GET /nobody") == {"lost": 1} and "GET /in-a-tunnel" not in requests
    assert "requests to 127.0.0.1 went through a tunnel (https)" in json.loads(ended.stdout)["unchecked"]["H702"]


# A proxy that was there before

OUTSIDE = """
told["example"] = requests.get("http://api.example.com/", timeout=9).json()
told["inside"] = len(requests.get(f"{SOURCE}/contacts", timeout=9).json())
told["environment"] = [value for value in os.environ.values() if "w%40rd" in value]
"""


def test_its_user_is_told_to_it_and_to_nobody_else(source, tmp_path):
    with listening(lambda asked: {"by": "the proxy outside"}) as outer:
        url = outer.url.replace("//", "//ann:w%40rd@")
        told, _, _ = requests_of(OUTSIDE, tmp_path, source, HTTP_PROXY=url, no_proxy="127.0.0.1, .inner.net")
    assert told == {"example": {"by": "the proxy outside"}, "inside": 10, "environment": []}
    (asked,) = outer.asked
    assert base64.b64decode(asked.headers["proxy-authorization"].removeprefix("Basic ")) == b"ann:w@rd"


def test_a_tunnel_goes_through_the_proxy_outside(source, tmp_path):
    """All that a tap sees behind it comes from that proxy."""
    heads = []

    def serve():
        near, _address = outer.accept()
        with near, near.makefile("rwb") as file:
            heads.append(b"".join(iter(file.readline, b"\r\n")).decode())
            file.write(b"HTTP/1.1 200 OK\r\n\r\n")
            file.flush()
            near.recv(1000)
            file.write(b"HTTP/1.1 207 Far\r\nContent-Length: 0\r\n\r\n")

    program = """
host, port = proxy.split(":")
tunnel = http.client.HTTPConnection(host, int(port), timeout=9)
tunnel.set_tunnel("far.example.com", 7)
tunnel.request("GET", "/")
told["status"] = tunnel.getresponse().status
"""
    with socket.create_server(("127.0.0.1", 0)) as outer:
        threading.Thread(target=serve, daemon=True).start()
        proxy = f"http://127.0.0.1:{outer.getsockname()[1]}"
        told, _, _ = requests_of(program, tmp_path, source, https_proxy=proxy, no_proxy="")
    assert told == {"status": 207} and heads[0].startswith("CONNECT far.example.com:7 HTTP/1.")


@pytest.mark.parametrize("url", ["socks5://127.0.0.1:1", "https://ann:secret-word@127.0.0.1:1", "http://:x"])
def test_a_proxy_that_we_cannot_talk_to_is_refused(url, tmp_path):
    (tmp_path / "tap.py").write_text("print('{}')")
    ended = burler("verify", "--exec", f"{sys.executable} tap.py", "--select", "H", cwd=tmp_path, all_proxy=url)
    assert ended.code == 2
    assert re.search(r"through an http:// proxy alone.*--ignore H", ended.stderr), ended.stderr
    assert "secret-word" not in ended.stderr + ended.stdout.decode()
