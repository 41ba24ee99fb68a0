"""What the client sends, to whom, and what it gives back."""

from __future__ import annotations

import datetime as dt
import json
import logging
import threading
from decimal import Decimal

import backoff
import msgspec
import pytest
import requests
import responses
from clocks import Clock

import burler
from burler.errors import DeclarationError, HttpError
from burler.http import Client, oauth2_client_credentials
from burler.testing import canary, run_tap
from support.servers import serving

TOKEN, ONE, TWO, PASSWORD, QUERY = map(canary, ("token", "one", "two", "password", "query"))


@pytest.fixture
def server():
    with serving(lambda asked: [{"id": 1}]) as server:
        yield server


def test_the_smallest_use(server):
    with Client(server.url, token=TOKEN) as client:
        assert client.get("/contacts", params={"since": "2024"}).json() == [{"id": 1}]
    [asked] = server.asked
    assert (asked.method, asked.path, asked.query) == ("GET", "/contacts", {"since": "2024"})
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["accept"].startswith("application/json")
    assert asked.headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("base", "path", "arrives"),
    [
        ("", "/a", "/a"),
        ("/", "/a", "/a"),
        ("/api/v1", "/a", "/api/v1/a"),
        ("/api/v1/", "a", "/api/v1/a"),
        ("/api/v1/", "/a/", "/api/v1/a/"),
        ("/graphql", "", "/graphql"),
        ("/api", "?page=2", "/api?page=2"),
        ("/api", "/a?page=2", "/api/a?page=2"),
        ("/api?version=3", "/a", "/api/a?version=3"),
        ("/api", "//elsewhere.example/a", "/api/elsewhere.example/a"),
        ("/api", "/a b/ü", "/api/a%20b/%C3%BC"),
        ("/api", "/a#part", "/api/a"),
    ],
)
def test_a_path_stands_behind_the_base_url(server, base, path, arrives):
    with Client(server.url + base) as client:
        client.get(path)
    assert server.paths == [arrives]


def test_a_whole_url_stands_for_itself(server):
    with Client(server.url + "/api/v1") as client:
        client.get(f"{server.url}/files/1?part=2", params={"page": 3})
    assert server.paths == ["/files/1?part=2&page=3"]


def test_a_parameter_that_the_url_carries_is_not_added_again(server):
    with Client(server.url, params={"size": 10}) as client:
        client.get("/a?page=2&size=5", params={"page": 3, "q": "x"})
    assert server.asked[0].pairs == [("page", "2"), ("size", "5"), ("q", "x")]


def test_values_of_params_become_text(server):
    zone = dt.timezone(dt.timedelta(hours=2))
    params = {
        "none": None,
        "yes": True,
        "no": False,
        "number": 1,
        "exact": Decimal("1.10"),
        "utc": dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "zone": dt.datetime(2024, 1, 2, 3, 4, 5, 600, tzinfo=zone),
        "day": dt.date(2024, 1, 2),
        "many": ["a", None, 2],
        "empty": [],
        "hard": "a&b=c ü/?",
    }
    with Client(server.url) as client:
        client.get("/a", params=params)
    assert server.asked[0].pairs == [
        ("yes", "true"),
        ("no", "false"),
        ("number", "1"),
        ("exact", "1.10"),
        ("utc", "2024-01-02T03:04:05Z"),
        ("zone", "2024-01-02T03:04:05.000600+02:00"),
        ("day", "2024-01-02"),
        ("many", "a"),
        ("many", "2"),
        ("hard", "a&b=c ü/?"),
    ]


def test_params_and_headers_of_the_client_come_with_every_request(server):
    with Client(server.url, params={"version": 3, "page": 1}, headers={"X-Account": 7, "Accept": "text/csv"}) as client:
        client.get("/a", params={"page": 2}, headers={"x-account": 8})
        client.get("/b?version=4", headers={"Accept": None})
    first, second = server.asked
    assert first.query == {"page": "2", "version": "3"}
    assert (first.headers["x-account"], first.headers["accept"]) == ("8", "text/csv")
    assert second.pairs == [("version", "4"), ("page", "1")]
    assert second.headers["x-account"] == "7"
    assert "accept" not in second.headers


def test_bodies(server):
    at = dt.datetime(2024, 1, 2, tzinfo=dt.UTC)
    with Client(server.url) as client:
        client.post("/a", json={"n": Decimal("1.10"), "at": at, "big": 2**70})
        client.put("/a", data={"a": "b c"})
        client.patch("/a", data=b"raw", headers={"Content-Type": "text/plain"})
        client.delete("/a")
        client.post("/a", json=[], headers={"content-type": "application/vnd.api+json"})
        assert client.head("/a").content == b""
    post, put, patch, delete, typed, head = server.asked
    assert post.body == b'{"n":1.10,"at":"2024-01-02T00:00:00Z","big":1180591620717411303424}'
    assert post.headers["content-type"] == "application/json"
    assert (put.body, put.headers["content-type"]) == (b"a=b+c", "application/x-www-form-urlencoded")
    assert (patch.body, patch.headers["content-type"]) == (b"raw", "text/plain")
    assert (delete.method, delete.body) == ("DELETE", b"")
    assert (typed.body, typed.headers["content-type"]) == (b"[]", "application/vnd.api+json")
    assert head.method == "HEAD"


def test_json_keeps_every_digit():
    body = b'{"a": 12345678901234567890.12345678901234567890, "b": 1e400, "c": 123456789012345678901, "d": 1}'
    with serving(lambda asked: b"\xef\xbb\xbf" + body) as server, Client(server.url) as client:
        found = client.json("/a")
    assert found["a"] == Decimal("12345678901234567890.12345678901234567890")
    assert found["b"] == Decimal("1e400")
    assert (found["c"], type(found["d"])) == (123456789012345678901, int)


def test_json_of_a_reply_that_has_none():
    replies = {"/gone": 404, "/none": 204, "/said": (404, {}, {"error": "x"}), "/nan": b'{"a": NaN}'}
    with serving(lambda asked: replies[asked.path]) as server, Client(server.url) as client:
        assert client.json("/none") is None
        assert client.json("/gone", allow_statuses=(404,)) is None
        assert client.json("/said", allow_statuses=(404,)) == {"error": "x"}
        assert repr(client.json("/nan")) == "{'a': nan}"


def test_json_with_a_check_of_ones_own():
    replies = iter([b'{"state": "busy"}', b'{"state": "done"}'])

    def check(response):
        if b"busy" in response.content:
            raise ValueError("busy")

    with serving(lambda asked: next(replies)) as server, Client(server.url, **Clock().options) as client:
        assert client.json("/job", check=check) == {"state": "done"}


def test_json_by_post(server):
    with Client(server.url) as client:
        assert client.json("/search", method="post", json={"q": 1}) == [{"id": 1}]
    assert server.asked[0].json == {"q": 1}


def test_the_user_agent_names_burler_and_the_tap(server):
    tap = burler.tap("tap-crm")

    @tap.sync("contacts", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def contacts():
        with Client(server.url) as client:
            yield client.get("/a").content

    assert run_tap(tap).records("contacts") == [{"id": 1}]
    with Client(server.url) as client, Client(server.url, user_agent="mine/1") as named:
        client.get("/a")
        named.get("/a")
    found = [asked.headers["user-agent"] for asked in server.asked]
    assert found == [f"burler/{burler.__version__} (tap-crm)", f"burler/{burler.__version__}", "mine/1"]


def test_one_connection_serves_request_after_request():
    ports = set()
    with serving(lambda asked: []) as server:
        original = server.answer

        def answer(asked):
            ports.add(threading.get_ident())  # the server has a thread for each connection
            return original(asked)

        server.answer = answer
        with Client(server.url) as client:
            for _ in range(20):
                client.get("/a")
    assert len(ports) == 1


def test_connections_of_all_workers_stay_open(caplog):
    """As many as ask at once, and not a warning for each that is closed again."""
    ports, all_there = set(), threading.Barrier(40, timeout=20)

    def answer(asked):
        ports.add(asked.port)
        all_there.wait()
        return []

    with serving(answer) as server, Client(server.url) as client:
        for _ in range(3):
            threads = [threading.Thread(target=client.get, args=("/a",)) for _ in range(40)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert len(server.asked) == 120
    assert len(ports) == 40
    assert "pool is full" not in caplog.text


def test_each_request_is_one_metric_line(server, caplog, metrics_of_requests):
    caplog.set_level(logging.INFO, logger="burler")
    with Client(server.url + "/api", **Clock().options) as client:
        client.get("/contacts/17/notes", endpoint="/contacts/{id}/notes", params={"token": QUERY})
        client.get(f"{server.url}/api/contacts?cursor=2")
        client.get("/")
        server.answer = lambda asked: 404
        client.get("/gone", allow_statuses=(404,))
        server.answer = lambda asked: (200, {"Content-Encoding": "gzip"}, b"broken")
        with pytest.raises(HttpError):
            client.get("/broken", retry=False)
    lines = [record.getMessage() for record in caplog.records]
    points = [json.loads(line.removeprefix("METRIC: ")) for line in lines if line.startswith("METRIC: ")]
    assert [(point["type"], point["metric"]) for point in points] == [("timer", "http_request_duration")] * 5
    assert [point["tags"] for point in points] == [
        {"endpoint": "/contacts/{id}/notes", "http_status_code": 200, "status": "succeeded"},
        {"endpoint": "/contacts", "http_status_code": 200, "status": "succeeded"},
        {"endpoint": "/", "http_status_code": 200, "status": "succeeded"},
        {"endpoint": "/gone", "http_status_code": 404, "status": "failed"},
        {"endpoint": "/broken", "http_status_code": 200, "status": "failed"},
    ]


def test_what_a_stream_asks_for_is_counted(server):
    tap = burler.tap("tap-crm")
    found = []

    @tap.sync("contacts", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def contacts(stream):
        with Client(server.url) as client:
            yield client.get("/a").content
            client.get("/b")
        found.append(stream.tally.to_json())

    run_tap(tap)
    assert found == [{"bytes": 2 * len('[{"id": 1}]'), "requests": 2}]


def test_with_options_shares_connections_and_limits(server):
    clock = Clock()
    with Client(server.url, headers={"A": "1"}, requests_per_second=1, **clock.options) as client:
        other = client.with_options(headers={**client.headers, "B": "2"}, base_url=server.url + "/v2")
        client.get("/a")
        other.get("/a")
        assert other.session is client.session
        assert clock.waits == [1.0]
        free = client.with_options(requests_per_second=None)
        free.get("/a")
        free.get("/a")
        assert clock.waits == [1.0]
        closed = []
        client.session.close = lambda: closed.append("session")
        other.close()
        assert closed == []
        client.close()
        assert closed == ["session"]
        del client.session.close
    assert [(asked.path, asked.headers.get("b")) for asked in server.asked[:2]] == [("/a", None), ("/v2/a", "2")]
    assert server.asked[1].headers["a"] == "1"
    assert server.asked[2].headers.get("b") is None


def test_another_account_has_cookies_of_its_own():
    def answer(asked):
        return 200, {"Set-Cookie": f"sid={asked.headers['authorization'][-4:]}; Path=/"}, b"[]"

    with serving(answer) as server, Client(server.url, token="token-of-ann") as ann:
        ann.get("/a")
        bob = ann.with_options(token="token-of-bob")
        for client in (bob, bob, ann, bob.with_options(headers={"X-A": "1"})):
            client.get("/b")
    cookies = [asked.headers.get("cookie") for asked in server.asked]
    assert cookies == [None, None, "sid=-bob", "sid=-ann", "sid=-bob"]
    assert len({asked.port for asked in server.asked}) == 1


def test_with_options_changes_credentials(server):
    with Client(server.url, token=ONE) as client:
        client.with_options(token=TWO).get("/a")
        client.with_options(auth=("user", PASSWORD)).get("/a")
        client.with_options(auth=None).get("/a")
        client.get("/a")
    kinds = [asked.headers.get("authorization", "").replace(ONE, "1") for asked in server.asked]
    assert kinds[0] == f"Bearer {TWO}"
    assert kinds[1].startswith("Basic ")
    assert kinds[2:] == ["", "Bearer 1"]


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"base_url": "api.example.com"}, "base_url 'api.example.com' has no 'https://'"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"timeout_seconds": None}, "timeout_seconds"),
        ({"timeout_seconds": (1, 2, 3)}, "timeout_seconds"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds"),
        ({"retries": -1}, "retries must be a whole number from 0 on"),
        ({"retries": 2.5}, "retries must be a whole number from 0 on, not 2.5"),
        ({"retries": float("inf")}, "retries must be a whole number from 0 on, not inf"),
        ({"max_redirects": 1.5}, "max_redirects must be a whole number from 0 on, not 1.5"),
        ({"max_redirects": True}, "max_redirects must be a whole number from 0 on, not True"),
        ({"max_response_bytes": 2.5}, "max_response_bytes must be a whole number of bytes above 0, not 2.5"),
        ({"max_response_bytes": float("inf")}, "max_response_bytes must be a whole number of bytes above 0, not inf"),
        ({"max_wait_seconds": float("nan")}, "max_wait_seconds must be a number from 0 on"),
        ({"retry_statuses": [429, 2.5]}, "retry_statuses must be a collection of whole numbers"),
        ({"retries": "3"}, "retries"),
        ({"max_wait_seconds": None}, "max_wait_seconds"),
        ({"requests_per_second": 0}, "requests_per_second must be a number above 0"),
        ({"requests_per_minute": -1}, "requests_per_minute"),
        ({"max_response_bytes": 0}, "max_response_bytes"),
        ({"retry_statuses": 429}, "retry_statuses must be a collection of whole numbers"),
        ({"retry_statuses": ["429"]}, "retry_statuses"),
        ({"pool_size": 0}, "pool_size must be a number of connections above 0"),
        ({"pool_size": True}, "pool_size"),
        ({"timeout_seconds": float("inf")}, "timeout_seconds must be seconds above 0"),
        ({"timeout_seconds": (1, 1e10)}, "timeout_seconds must be seconds above 0"),
        ({"requests_per_minute": float("inf")}, "requests_per_minute must be a number above 0"),
        ({"headers": {5: "a"}}, "headers has a name that is no text: 5"),
        ({"verify": "/no/ca.pem"}, "verify='/no/ca.pem' is not there"),
        ({"cert": ("/", "/no/key.pem")}, "cert='/no/key.pem' is not there"),
        ({"headers": ["a"]}, "headers must be a mapping"),
        ({"backoff_strategy": backoff.expo()}, "backoff_strategy must be a function"),
        ({"token": "a", "auth": ("a", "b")}, "token and auth are both given"),
        ({"auth": 17}, "auth"),
        ({"base_url": "", "token": "a"}, "without a base_url"),
        ({"base_url": "", "headers": {"X-Api-Key": "a"}}, "the header 'X-Api-Key' without a base_url"),
    ],
)
def test_settings_that_can_not_work_are_refused(options, fact):
    with pytest.raises(DeclarationError, match=r"burler\.http\.Client: ") as caught:
        Client(**{"base_url": "https://api.example.com", **options})
    assert fact in str(caught.value)


def test_with_options_refuses_what_is_none(server):
    with Client(server.url) as client:
        with pytest.raises(DeclarationError, match=r"'retrys'\. Did you mean 'retries'"):
            client.with_options(retrys=1)
        with pytest.raises(DeclarationError, match="pool_size"):
            client.with_options(pool_size=1)
        with pytest.raises(DeclarationError, match="timeout_seconds"):
            client.get("/a", timeout_seconds=-1)
        for size in (2.5, 0, "3", True, float("nan")):
            with pytest.raises(DeclarationError, match="max_response_bytes must be a whole number of bytes above 0"):
                client.get("/a", max_response_bytes=size)
            with pytest.raises(DeclarationError, match="max_bytes must be a whole number of bytes above 0"):
                client.download("/a", "a.bin", max_bytes=size)


def test_a_subclass_may_name_its_backoff_strategy():
    seen = []

    def steps():
        seen.append("asked")
        yield 0.5

    class Shop(Client):
        backoff_strategy = steps

    with (
        serving(lambda asked: 503) as server,
        Shop(server.url, **Clock().options) as client,
        pytest.raises(HttpError, match="after 2 tries"),
    ):
        client.get("/a")
    assert seen == ["asked"]


def test_an_authors_session_is_used_and_stays_open(server):
    session = requests.Session()
    session.headers["X-Mine"] = "1"
    session.params = {"mine": "2"}
    session.auth = ("user", PASSWORD)
    session.cookies.set("chip", "3")
    with Client(server.url, session=session) as client:
        client.get("/a")
    client.get("/still")
    session.close()
    first = server.asked[0]
    assert (first.headers["x-mine"], first.query["mine"], first.headers["cookie"]) == ("1", "2", "chip=3")
    assert first.headers["authorization"].startswith("Basic ")
    assert len(server.asked) == 2


def test_a_token_server_gets_nothing_of_the_client_and_waits_for_none_of_its_limits(server):
    """All workers may stand in the row of the client's limits, and wait for the token."""
    clock = Clock()
    session = requests.Session()
    session.headers["X-Tenant"], session.params, session.auth = ONE, {"tenant": ONE}, ("ann", PASSWORD)
    session.cookies.set("sid", ONE)
    session.cookies.set("sid", TWO, domain="127.0.0.1")
    with serving(lambda asked: {"access_token": TOKEN}) as tokens:
        auth = oauth2_client_credentials(token_url=f"{tokens.url}/token", client_id="x", client_secret=QUERY)
        options = {"headers": {"X-Own": ONE}, "params": {"own": ONE}, "requests_per_minute": 1, **clock.options}
        with Client(server.url, session=session, auth=auth, **options) as client:
            client.get("/a")
            auth.refused(client.get("/b"))
            client.get("/c")
    assert [asked.headers["authorization"] for asked in server.asked] == [f"Bearer {TOKEN}"] * 3
    assert len(tokens.asked) == 2
    assert not any(value in repr(tokens.asked) for value in (ONE, TWO, PASSWORD))
    assert clock.passed == 120


def test_a_token_of_the_source_itself_does_not_wait_in_the_row_of_its_requests():
    clock = Clock()
    with serving(lambda asked: {"access_token": TOKEN} if asked.path == "/token" else []) as server:
        auth = oauth2_client_credentials(token_url=f"{server.url}/token", client_id="x", client_secret=QUERY)
        with Client(server.url, auth=auth, requests_per_minute=1, **clock.options) as client:
            client.get("/a")
    assert [asked.path for asked in server.asked] == ["/token", "/a"]
    assert clock.passed == 0


def test_cookies_are_kept():
    with (
        serving(lambda asked: (200, {"Set-Cookie": "chip=7; Path=/"}, [])) as server,
        Client(server.url) as client,
    ):
        client.get("/a")
        client.get("/a")
    assert [asked.headers.get("cookie") for asked in server.asked] == [None, "chip=7"]


def test_an_auth_object_of_requests_works(server):
    class Stamp(requests.auth.AuthBase):
        def __call__(self, request):
            request.headers["X-Stamp"] = "1"
            return request

    with Client(server.url, auth=Stamp()) as client:
        client.get("/a")
    assert server.asked[0].headers["x-stamp"] == "1"


def test_what_goes_wrong_in_an_authors_own_credentials_is_not_taken_for_the_source(server):
    def own(request):
        raise ValueError("a bug of the author's")

    with Client(server.url, auth=own) as client, pytest.raises(ValueError, match="a bug of the author's"):
        client.get("/a")
    assert server.asked == []


def test_credentials_in_the_base_url_are_no_part_of_any_url(server):
    url = server.url.replace("//", f"//ann:{PASSWORD}@")
    with Client(url) as client:
        client.get("/a")
        assert "ann" not in client.base_url
    assert server.asked[0].headers["authorization"].startswith("Basic ")


def test_netrc_files_are_not_read(server, tmp_path, monkeypatch):
    """They would take the place of a token in silence."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ann password nothing-at-all\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with Client(server.url) as client, Client(server.url, token=TOKEN) as with_token:
        client.get("/a")
        with_token.get("/a")
    assert [asked.headers.get("authorization") for asked in server.asked] == [None, f"Bearer {TOKEN}"]


@pytest.mark.parametrize("how", ["option", "environment"])
def test_proxies(server, monkeypatch, how):
    """The proxy is asked for a host that nobody could reach."""
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    if how == "environment":
        monkeypatch.setenv("HTTP_PROXY", server.url)
        monkeypatch.setenv("http_proxy", server.url)
    given = {"proxies": {"http": server.url}} if how == "option" else {}
    with Client("http://nowhere.invalid", **given) as client:
        assert client.json("/a") == [{"id": 1}]
    assert server.asked[0].headers["host"] == "nowhere.invalid"


def test_a_proxy_that_has_no_address_is_said(server):
    with Client(server.url, proxies={"http": "http:///x"}) as client, pytest.raises(HttpError) as caught:
        client.get("/a")
    assert "the address of its proxy is none" in str(caught.value)
    assert "proxies=" in str(caught.value)


def test_the_package_responses_stands_in_for_a_server():
    with responses.RequestsMock() as mocked, Client("https://api.example.com", token=TOKEN) as client:
        mocked.get("https://api.example.com/a", json=[{"id": 1}], headers={"Link": "<x>"})
        assert client.json("/a") == [{"id": 1}]
        assert mocked.calls[0].request.headers["Authorization"] == f"Bearer {TOKEN}"


def test_nothing_that_is_printed_shows_a_secret(server):
    token = TOKEN
    client = Client(f"{server.url}/?api_key={token}", token=token, headers={"X-Key": token}, params={"t": token})
    request = burler.http.Request("GET", f"/a?token={token}", headers={"X-Key": token}, json={"secret": token})
    assert token not in repr(client) + repr(request) + repr(client.auth) + repr(client._sender.options)
    client.close()


def test_a_request_can_be_made_and_changed(server):
    request = burler.http.Request("GET", "/a", params={"page": 1})
    with Client(server.url) as client:
        client.send(request.replace(params={"page": 2}))
        with pytest.raises(TypeError):
            client.get("/a", prams={})
    assert server.paths == ["/a?page=2"]
    assert request.params == {"page": 1}


def test_what_a_check_refuses_is_asked_for_again():
    replies = iter([b"busy", b"busy", b"done"])

    def check(response):
        if response.content != b"done":
            raise msgspec.ValidationError("not done")  # a ValueError, too

    clock = Clock()
    with serving(lambda asked: next(replies)) as server, Client(server.url, **clock.options) as client:
        assert client.get("/job", check=check).content == b"done"
    assert len(clock.waits) == 2


def test_a_check_sees_replies_whose_status_is_allowed():
    replies = iter([(400, {}, b"throttled"), (400, {}, b"said")])

    def check(response):
        if response.content == b"throttled":
            raise ValueError("throttled")

    with serving(lambda asked: next(replies)) as server, Client(server.url, **Clock().options) as client:
        assert client.get("/a", check=check, allow_statuses=(400,)).content == b"said"


def test_a_check_may_say_how_long_the_source_wants_us_to_wait():
    class Throttled(ValueError):
        reason = "THROTTLED"
        retry_after_seconds = 17.0

    replies = iter([b"no", b"yes"])
    clock = Clock()

    def check(response):
        if response.content == b"no":
            raise Throttled("too many points")

    tap = burler.tap("tap-x")
    found = []

    @tap.sync("a", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def rows(stream):
        with serving(lambda asked: next(replies)) as server, Client(server.url, **clock.options) as client:
            client.get("/a", check=check)
        found.append(stream.tally.to_json()["retries"])
        return []

    run_tap(tap)
    assert clock.waits == [17.0]
    assert found == [{"THROTTLED": 1}]


@pytest.mark.parametrize("sign", ["/", "#", "?"])
def test_a_password_in_the_base_url_that_is_not_encoded_is_refused_and_not_shown(sign):
    secret = f"pa{sign}{canary('ss')}"
    with pytest.raises(DeclarationError, match="base_url has a sign in its user or password") as caught:
        Client(f"http://me:{secret}@127.0.0.1:1/x")
    assert "canary" not in str(caught.value)
    Client("http://127.0.0.1:80/users/@me").close()
