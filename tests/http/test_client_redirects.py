"""Redirects, and who may see credentials."""

from __future__ import annotations

import contextlib
import socket
import tracemalloc

import pytest
import requests
from clocks import Clock

from burler.errors import CredentialsError, HttpError
from burler.http import Auth, Client, api_key, mask_url
from burler.testing import canary
from support.servers import serving, session_of

TOKEN, KEY = canary("redirects"), canary("redirects-key")


@contextlib.contextmanager
def two_servers(answer):
    """``answer(asked, other's url)`` is the first server's; the second one always says ``[]``."""
    with serving(lambda asked: []) as other, serving(lambda asked: answer(asked, other.url)) as home:
        yield home, other


def to(where, status=302):
    return status, {"Location": where}, b""


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("where", ["/new", "new", "//{host}/new", "{url}/new"])
def test_a_redirect_is_followed_with_credentials_on_the_same_server(status, where):
    def answer(asked):
        target = where.format(url=server.url, host=server.url.removeprefix("http://"))
        return to(target, status) if asked.path == "/old" else [1]

    with (
        serving(answer) as server,
        Client(server.url, token=TOKEN, headers={"X-A": "1"}, params={"p": "1"}) as client,
    ):
        reply = client.get("/old", params={"q": "1"})
        assert reply.json() == [1]
        assert reply.url == f"{server.url}/new"
        assert [one.status_code for one in reply.history] == [status]
    old, new = server.asked
    assert (new.path, new.query) == ("/new", {})
    assert new.headers["authorization"] == old.headers["authorization"] == f"Bearer {TOKEN}"
    assert new.headers["x-a"] == "1"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_another_server_sees_no_credentials(status):
    with (
        two_servers(lambda asked, other: to(f"{other}/files/1?sig=2", status)) as (home, other),
        Client(home.url, token=TOKEN, headers={"X-Api-Key": KEY, "X-Plain": KEY}, params={"api_key": KEY}) as client,
    ):
        client.session.cookies.set("session", KEY, domain="127.0.0.1", path="/none")
        client.get("/a", headers={"X-Own-Token": KEY, "Range": "bytes=0-5", "X-Request": KEY}, params={"token": KEY})
    assert home.asked[0].headers["authorization"] == f"Bearer {TOKEN}"
    [seen] = other.asked
    assert KEY not in repr(seen)
    assert TOKEN not in repr(seen)
    assert (seen.path, seen.query) == ("/files/1", {"sig": "2"})
    assert seen.headers["range"] == "bytes=0-5"
    assert seen.headers["user-agent"].startswith("burler/")


def test_back_home_the_credentials_come_again():
    def answer(asked):
        return to(f"{other.url}/b") if asked.path == "/a" else [1]

    with (
        serving(answer) as home,
        serving(lambda asked: to(f"{home.url}/c")) as other,
        Client(home.url, auth=api_key(KEY, param="api_key")) as client,
    ):
        assert client.json("/a") == [1]
    assert other.asked[0].query == {}
    assert [asked.query for asked in home.asked] == [{"api_key": KEY}] * 2


def test_a_whole_url_of_another_server_gets_only_what_the_request_says():
    with (
        two_servers(lambda asked, other: []) as (home, other),
        Client(home.url, token=TOKEN, headers={"X-A": "1"}, params={"p": "1"}) as client,
    ):
        client.get(f"{other.url}/a", headers={"X-B": "2"}, params={"q": "3"})
    [seen] = other.asked
    assert "authorization" not in seen.headers
    assert "x-a" not in seen.headers
    assert (seen.headers["x-b"], seen.query) == ("2", {"q": "3"})


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("http://127.0.0.1:{port}", "http://localhost:{port}/a"),
        ("http://127.0.0.1:{port}", "http://127.0.0.1:{port}@localhost:{port}/a"),
        ("http://localhost:{port}", "http://127.0.0.1:{port}/a"),
    ],
)
def test_another_name_of_the_same_machine_is_another_server(base, path):
    with serving(lambda asked: []) as server:
        port = server.url.rpartition(":")[2]
        with Client(base.format(port=port), token=TOKEN) as client:
            client.get(path.format(port=port))
    assert TOKEN not in server.asked[0].headers.get("authorization", "")


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("http://LOCALHOST:{port}", "http://localhost:{port}/a"),
        ("http://localhost:{port}", "HTTP://LocalHost:{port}/a"),
    ],
)
def test_the_case_of_a_host_does_not_matter(base, path):
    with serving(lambda asked: []) as server:
        port = server.url.rpartition(":")[2]
        with Client(base.format(port=port), token=TOKEN) as client:
            client.get(path.format(port=port))
    assert server.asked[0].headers["authorization"] == f"Bearer {TOKEN}"


def test_credentials_that_are_missing_after_a_redirect_are_explained():
    """http:// was given for https://, or an old name: the other place refuses, and the error says why."""
    with (
        serving(lambda asked: 401) as other,
        serving(lambda asked: to(f"{other.url}/a")) as home,
        Client(home.url, token=TOKEN) as client,
        pytest.raises(CredentialsError) as caught,
    ):
        client.get("/a")
    assert str(caught.value).splitlines()[0] == (
        f"GET {other.url}/a: 401 Unauthorized, where a redirect from {home.url} led, without the credentials."
    )
    assert len(other.asked) == 1
    assert "base_url" in str(caught.value).splitlines()[-1]


@pytest.mark.parametrize(("status", "method"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
def test_a_post_that_is_redirected(status, method):
    with (
        serving(lambda asked: to("/new", status) if asked.path == "/old" else [1]) as server,
        Client(server.url) as client,
    ):
        client.post("/old", json={"a": 1})
    new = server.asked[1]
    assert new.method == method
    assert new.json == ({"a": 1} if method == "POST" else None)
    assert ("content-type" in new.headers) == (method == "POST")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_what_writes_is_never_redirected_to_another_server(status, method):
    with (
        two_servers(lambda asked, other: to(f"{other}/a", status)) as (home, other),
        Client(home.url, **Clock().options) as client,
        pytest.raises(HttpError) as caught,
    ):
        client.request(method, "/a", json={"secret": KEY})
    assert other.asked == []
    assert len(home.asked) == 1
    assert f"it redirects a {method} to another server, '{other.url}/a'" in str(caught.value)
    assert "base_url" in str(caught.value)


@pytest.mark.parametrize(
    "form", ["http://{other}\\@{home}/x", "http://{other}%5C@{home}/x", "http://{home}\\@{other}/x"]
)
def test_addresses_that_programs_read_in_different_ways_give_nothing_away(form):
    """What stands behind ``\\`` is the host for some, a part of the path for others."""

    def answer(asked, other):
        if asked.path == "/a":
            return to(form.format(other=other.removeprefix("http://"), home=home.url.removeprefix("http://")), 307)
        return []

    with (
        two_servers(answer) as (home, other),
        Client(home.url, token=TOKEN, **Clock().options) as client,
        contextlib.suppress(HttpError),
    ):
        client.put("/a", data=KEY.encode(), headers={"X-Key": KEY})
    assert TOKEN not in repr(other.asked)
    assert KEY not in repr(other.asked)


def test_an_error_at_a_place_that_nobody_wrote_says_what_led_there():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/x?token={KEY}"
        with (
            serving(lambda asked: to(nobody)) as server,
            Client(server.url, retries=0) as client,
            pytest.raises(HttpError) as caught,
        ):
            client.get("/login", params={"token": KEY})
    assert str(caught.value).splitlines()[0] == (
        f"GET {mask_url(nobody)}: the connection was refused, where a redirect from {server.url}/login?token=*** led."
    )
    with (
        serving(lambda asked: 404 if asked.path == "/new" else to("/new")) as server,
        Client(server.url) as client,
        pytest.raises(HttpError) as caught,
    ):
        client.get("/old")
    assert str(caught.value).splitlines()[0] == (
        f"GET {server.url}/new: 404 Not Found, where a redirect from {server.url}/old led."
    )


def test_the_body_of_a_redirect_is_not_read_whole_with_an_authors_session_either():
    """requests reads it before it gives the reply."""
    redirect, session = (302, {"Location": "/new"}, bytes(30_000_000)), requests.Session()
    with (
        serving(lambda asked: [1] if asked.path == "/new" else redirect) as server,
        Client(server.url, session=session, max_response_bytes=1000) as client,
    ):
        tracemalloc.start()
        assert client.json("/old") == [1]
        _now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 4_000_000
    session.close()


def test_see_other_leads_anywhere_by_get():
    with (
        two_servers(lambda asked, other: to(f"{other}/job/1", 303)) as (home, other),
        Client(home.url, token=TOKEN) as client,
    ):
        client.post("/exports", json={"secret": KEY})
    assert (other.asked[0].method, other.asked[0].body) == ("GET", b"")
    assert "authorization" not in other.asked[0].headers


def test_put_and_delete_keep_their_method():
    with (
        serving(lambda asked: to("/new") if asked.path == "/old" else []) as server,
        Client(server.url) as client,
    ):
        client.put("/old", data=b"x")
        client.delete("/old")
        client.head("/old")
    assert [asked.method for asked in server.asked] == ["PUT", "PUT", "DELETE", "DELETE", "HEAD", "HEAD"]
    assert server.asked[1].body == b"x"


def test_a_body_that_can_be_sent_once_only_is_not_redirected():
    with (
        serving(lambda asked: to("/new", 307)) as server,
        Client(server.url) as client,
        pytest.raises(HttpError, match="the body can't be sent again"),
    ):
        client.put("/old", data=iter([b"x"]))


@pytest.mark.parametrize("where", ["file:///etc/passwd", "ftp://127.0.0.1/a", "javascript:alert(1)", "data:,x"])
def test_other_addresses_are_not_followed(where):
    with (
        serving(lambda asked: to(where)) as server,
        Client(server.url) as client,
        pytest.raises(HttpError, match="which is no web address"),
    ):
        client.get("/a")


@pytest.mark.parametrize("where", ["http://", "http://[::1", "//", "http://127.0.0.1:99999/", "http:///x", "\x01"])
def test_broken_addresses_are_one_clear_error(where):
    with (
        serving(lambda asked: to(where)) as server,
        Client(server.url, retries=0) as client,
        pytest.raises(HttpError) as caught,
    ):
        client.get("/a")
    assert len(str(caught.value).splitlines()) <= 3
    assert ("redirect" in str(caught.value)) or ("this is no address" in str(caught.value))


def test_a_circle_is_said():
    def answer(asked):
        return to("/b?token=" + KEY if asked.path == "/a" else "/a")

    clock = Clock()
    with (
        serving(answer) as server,
        Client(server.url, retries=1, **clock.options) as client,
        pytest.raises(HttpError) as caught,
    ):
        client.get("/a")
    url = server.url
    assert str(caught.value).splitlines()[0] == (
        f"GET {url}/a: it redirects in a circle: {url}/a -> {url}/b?token=*** -> {url}/a, after 2 tries."
    )
    assert len(clock.waits) == 1


def test_too_many_redirects_are_said():
    def answer(asked):
        return to(f"/{int(asked.path[1:]) + 1}")

    with serving(answer) as server, Client(server.url, retries=0, max_redirects=3) as client:
        with pytest.raises(HttpError, match="more than 3 redirects, one after the other"):
            client.get("/0")
        assert len(server.asked) == 4


def test_a_circle_that_opens_is_no_error():
    """A page that sends everybody to the login while it starts."""
    count = iter(range(100))
    with (
        serving(lambda asked: to("/a") if next(count) < 15 else [1]) as server,
        Client(server.url, **Clock().options) as client,
    ):
        assert client.json("/a") == [1]


def test_an_allowed_redirect_is_given_as_it_is():
    with serving(lambda asked: to("/b")) as server, Client(server.url) as client:
        reply = client.get("/a", allow_statuses=(302,))
    assert (reply.status_code, reply.headers["Location"]) == (302, "/b")
    assert len(server.asked) == 1


def test_a_redirect_without_an_address_is_an_error():
    with (
        serving(lambda asked: 302) as server,
        Client(server.url) as client,
        pytest.raises(HttpError, match="302 Found"),
    ):
        client.get("/a")


def test_addresses_in_utf8_are_read():
    with (
        serving(lambda asked: to("/é".encode().decode("latin-1")) if asked.path == "/a" else [1]) as server,
        Client(server.url) as client,
    ):
        assert client.json("/a") == [1]
    assert server.asked[1].path == "/%C3%A9"


class Renewing(Auth):
    """Credentials that say each time that they are others now."""

    def __init__(self):
        self.asked = 0

    def apply(self, prepared):
        prepared.headers["X-Token"] = f"t{self.asked}"

    def refused(self, response):
        self.asked += 1
        return True


def test_credentials_are_renewed_once_a_request():
    auth = Renewing()
    with serving(lambda asked: 401) as server, Client(server.url, auth=auth, **Clock().options) as client:
        for _ in range(2):
            with pytest.raises(CredentialsError):
                client.post("/a", json={"a": 1})
    assert [asked.headers["x-token"] for asked in server.asked] == ["t0", "t1", "t1", "t2"]
    assert [asked.json for asked in server.asked] == [{"a": 1}] * 4
    assert auth.asked == 2


def test_what_another_server_refuses_renews_nothing():
    auth = Renewing()
    with serving(lambda asked: 401) as other, serving(lambda asked: to(f"{other.url}/a")) as home:
        with Client(home.url, auth=auth) as client, pytest.raises(CredentialsError):
            client.get("/a")
        with Client(home.url, auth=auth) as client, pytest.raises(CredentialsError):
            client.get(f"{other.url}/a")
    assert auth.asked == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://x.io", "https://x.io:443/a", True),
        ("http://x.io:80", "http://X.io/", True),
        ("http://x.io", "https://x.io", False),
        ("https://x.io", "https://x.io:8443", False),
        ("https://x.io", "https://x.io.evil.example", False),
        ("https://x.io", "https://x.io@evil.example", False),
        ("https://x.io", "https://evil.example/https://x.io", False),
        ("https://x.io", "https://evil.example#@x.io", False),
        ("https://x.io", "https://evil.example\\@x.io", False),
        ("https://bücher.example", "https://xn--bcher-kva.example", True),
    ],
)
def test_who_is_the_same_server(one, other, same):
    sent = []

    def anywhere(request):
        sent.append(request.headers.get("Authorization"))
        return b"[]"

    with (
        Client(one, token=TOKEN, session=session_of(anywhere)) as client,
        contextlib.suppress(HttpError),  # of an address that is none
    ):
        client.get(other)
    assert sent in ([[f"Bearer {TOKEN}"]] if same else [[None], []])


# Cookies


def session_with(**cookies):
    """A session as authors make it: ``session.cookies.set(name, value)``, which says no domain."""
    session = requests.Session()
    for name, value in cookies.items():
        session.cookies.set(name, value)
    return session


def test_cookies_of_an_authors_session_go_to_the_source_alone():
    with (
        two_servers(lambda asked, other: to(f"{other.replace('127.0.0.1', 'localhost')}/b")) as (home, other),
        Client(home.url, session=session_with(sid=KEY)) as client,
    ):
        client.get("/a")
        client.get(f"{other.url}/c")
        client.with_options(base_url="").get(f"{other.url}/d")
    assert home.asked[0].headers["cookie"] == f"sid={KEY}"
    assert [asked.path for asked in other.asked] == ["/b", "/c", "/d"]
    assert KEY not in repr(other.asked)


def test_cookies_that_the_source_set_stay_with_it():
    """Another port of the same machine is another server; cookies know nothing of ports."""

    def answer(asked, other):
        return (200, {"Set-Cookie": f"sid={KEY}; Path=/"}, b"[]") if asked.path == "/login" else to(f"{other}/b")

    with two_servers(answer) as (home, other), Client(home.url) as client:
        client.get("/login")
        client.get("/a")
    assert home.asked[1].headers["cookie"] == f"sid={KEY}"
    assert KEY not in repr(other.asked)


def test_without_a_base_url_cookies_go_where_their_domain_says():
    session = session_with(sid=KEY)
    session.cookies.set("plain", "1", domain="127.0.0.1")
    with serving(lambda asked: []) as server, Client(session=session) as client:
        client.get(f"{server.url}/a")
    assert server.asked[0].headers["cookie"] == "plain=1"
