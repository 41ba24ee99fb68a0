"""Clients that are watched: everything goes on as it did, and is noted."""

from __future__ import annotations

import copy
import io
import json
import pickle
import sys
from pathlib import Path

import httpx
import pytest
import requests
from requests.adapters import HTTPAdapter

import burler
from burler.http import Client
from burler.testing import verify_tap

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


class Watched:
    """What was noted of a tap's requests, and what was found."""

    def __init__(self, client, use):
        tap = burler.tap("tap-watched")
        tap.client(lambda: client)

        @tap.sync("contacts", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
        def contacts(client):
            use(client)
            yield {"id": 1}

        verified = verify_tap(tap, select=["H"], resume=False)
        assert verified.runs[0].ended == "succeeded"
        self.unchecked = verified.unchecked
        self.codes = [one.code for one in verified.findings]
        self.requests = verified.runs[0].streams["contacts"].requests

    @property
    def noted(self):
        """Without what differs from run to run."""
        return {
            name: {key: value for key, value in one.items() if key not in ("seconds", "bytes")}
            for name, one in self.requests.items()
        }


@pytest.fixture
def session():
    with requests.Session() as client:
        client.trust_env = False
        yield client


def test_a_session_is_noted_and_answers_as_before(session, source):
    def use(client):
        assert client.get(f"{source.url}/contacts/7", timeout=9).json()["id"] == 7
        assert client.get(f"{source.url}/nothing?token=abcdef", timeout=(9, 9)).status_code == 404

    watched = Watched(session, use)
    assert watched.noted == {
        "GET /contacts/{id}": {"requests": 1, "statuses": {"200": 1}, "repeated": 0, "no_timeout": 0},
        "GET /nothing": {"requests": 1, "statuses": {"404": 1}, "repeated": 0, "no_timeout": 0},
    }
    assert watched.requests["GET /contacts/{id}"]["bytes"] == len('{"id": 7, "label_id": "a"}')


def test_redirects_and_logins_are_noted_step_by_step(session, source):
    def use(client):
        assert client.get(f"{source.url}/moved", timeout=9).history[0].status_code == 302
        digest = requests.auth.HTTPDigestAuth("user", "word")
        assert client.get(f"{source.url}/secure", auth=digest, timeout=9).ok

    watched = Watched(session, use)
    assert {name: one["statuses"] for name, one in watched.noted.items()} == {
        "GET /moved": {"302": 1},
        "GET /contacts": {"200": 1},
        "GET /secure": {"401": 1, "200": 1},
    }
    assert "H706" not in watched.codes


@pytest.mark.parametrize("way", ["requests", "httpx", "burler"])
def test_bodies_arrive_whole_however_they_come(way, source):
    def use(client):
        for query in ("", "&packed=1", "&chunked=1", "&packed=1&chunked=1"):
            reply = client.get(f"{source.url}/rows?offset=0&limit=10{query}")
            assert [row["id"] for row in reply.json()] == list(range(10))

    with {"requests": requests.Session, "httpx": httpx.Client, "burler": Client}[way]() as client:
        assert Watched(client, use).requests["GET /rows"]["bytes"] > 200


def test_a_streamed_body_comes_in_pieces_and_may_be_left(session, source):
    def use(clients):
        with clients[0].get(f"{source.url}/contacts?chunked=1", stream=True, timeout=9) as reply:
            assert next(reply.iter_content(1)) == b"["
        with clients[1].stream("GET", f"{source.url}/contacts?chunked=1") as reply:
            assert next(reply.iter_bytes(1)) == b"["

    with httpx.Client() as other:
        watched = Watched((session, other), use)
    assert "H706" not in watched.codes
    assert watched.noted["GET /contacts"]["repeated"] == 0


def test_a_body_that_breaks_off_is_no_answer(session, source):
    def use(client):
        for _ in range(2):
            with pytest.raises(requests.exceptions.ChunkedEncodingError):
                client.get(f"{source.url}/contacts?broken=1", timeout=9)

    watched = Watched(session, use)
    assert watched.codes == ["H706"]
    assert watched.noted["GET /contacts"]["repeated"] == 0


class Patient(HTTPAdapter):
    """Puts a timeout in."""

    def send(self, request, **settings):
        return super().send(request, **{**settings, "timeout": 5})


@pytest.mark.parametrize(
    ("timeout", "missing"),
    [(None, 1), ((5, None), 1), (5, 0), ((5, 5), 0), (requests.adapters.TimeoutSauce(total=5), 0)],
    ids=["none", "to connect only", "a number", "a pair", "urllib3's"],
)
def test_timeouts_of_requests(timeout, missing, session, source):
    watched = Watched(session, lambda client: client.get(f"{source.url}/contacts", timeout=timeout))
    assert watched.noted["GET /contacts"]["no_timeout"] == missing
    session.mount("http://", Patient())
    watched = Watched(session, lambda client: client.get(f"{source.url}/contacts", timeout=timeout))
    assert watched.noted["GET /contacts"]["no_timeout"] == 0


@pytest.mark.parametrize(("timeout", "missing"), [(None, 1), (5, 0), (httpx.Timeout(5, read=None), 1)], ids=str)
def test_timeouts_of_httpx(timeout, missing, source):
    with httpx.Client(timeout=timeout) as client:
        watched = Watched(client, lambda client: client.get(f"{source.url}/contacts"))
    assert watched.noted["GET /contacts"]["no_timeout"] == missing


def test_a_client_of_burlers_tries_again_and_is_noted_try_by_try(source):
    def use(client):
        assert client.get("/flaky", params={"page": 2}).status_code == 200
        assert client.with_options(headers={"X": "y"}).get("/contacts").status_code == 200

    with Client(source.url, sleep=lambda seconds: None) as client:
        watched = Watched(client, use)
    assert watched.noted["GET /flaky"] == {
        "requests": 2,
        "statuses": {"503": 1, "200": 1},
        "repeated": 0,
        "no_timeout": 0,
    }
    assert watched.noted["GET /contacts"]["requests"] == 1
    assert "H706" not in watched.codes


class Holder:
    def __init__(self, session):
        self.session = session


class Slim:
    __slots__ = ("empty", "session")

    def __init__(self, session):
        self.session = session


@pytest.mark.parametrize(
    "hold",
    [Holder, Slim, lambda s: Holder(Holder(s)), lambda s: {"api": s}, lambda s: s.get, lambda s: (1, [s])],
    ids=["object", "slots", "object in object", "dict", "method", "list"],
)
def test_a_session_is_found_in_what_holds_it(hold, session, source):
    held = hold(session)

    def use(client):
        assert client is held
        session.get(f"{source.url}/contacts", timeout=9)

    assert Watched(held, use).noted["GET /contacts"]["requests"] == 1


def test_a_client_of_another_kind_stays_as_it_is_and_is_named():
    other = object()

    def use(client):
        assert client is other

    said = Watched(other, use).unchecked["H704"]
    assert said.startswith("the requests of a client of type builtins.object can't be seen: ")


def test_it_is_taken_off_again(source):
    def use(clients):
        for client in clients:
            client.get(f"{source.url}/contacts")
        assert dict(session.adapters) != before[0]

    with requests.Session() as session, httpx.Client(mounts={"all://there": httpx.HTTPTransport()}) as client:
        before = dict(session.adapters), client._transport, dict(client._mounts)
        for held in ((session, client), [session, client, session]):  # twice is once
            assert (
                Watched(held, use if held[-1] is client else lambda clients: use(clients[:2])).noted["GET /contacts"][
                    "requests"
                ]
                == 2
            )
            assert (dict(session.adapters), client._transport, dict(client._mounts)) == before


def test_no_other_session_is_touched(session, source):
    def use(_client):
        requests.get(f"{source.url}/contacts", timeout=9)
        with requests.Session() as other:
            other.get(f"{source.url}/contacts", timeout=9)

    assert not Watched(session, use).requests


def test_an_adapter_is_what_it_was_in_all_else(session):
    def use(client):
        adapter = client.get_adapter("https://x")
        assert isinstance(adapter, HTTPAdapter)
        adapter.max_retries = 3
        assert adapter.max_retries == 3
        assert type(copy.deepcopy(client).get_adapter("https://x")) is HTTPAdapter
        assert type(pickle.loads(pickle.dumps(client)).get_adapter("https://x")) is HTTPAdapter
        assert "HTTPAdapter" in repr(adapter)

    Watched(session, use)


def test_a_lost_reply_is_noted_and_raised_as_before(session):
    def use(clients):
        with pytest.raises(requests.ConnectionError):
            clients[0].get("http://127.0.0.1:9/contacts", timeout=9)
        with pytest.raises(httpx.ConnectError):
            clients[1].get("http://127.0.0.1:9/contacts")
        with pytest.raises(requests.exceptions.InvalidURL):  # refused as before
            clients[0].get("http://[::1", timeout=9)

    with httpx.Client() as other:
        watched = Watched((session, other), use)
    assert watched.noted["GET /contacts"]["statuses"] == {"lost": 2}
    assert watched.noted["GET /contacts"]["requests"] == 2


def test_a_body_that_cannot_be_looked_at_is_taken_for_whole(session, source):
    class Odd(HTTPAdapter):
        def send(self, request, **settings):
            reply = super().send(request, **settings)
            reply.raw = io.BytesIO(reply.content)
            reply._content = reply._content_consumed = False
            return reply

    def use(client):
        for _ in range(2):
            assert len(client.get(f"{source.url}/contacts", timeout=9).json()) == 10

    session.mount("http://", Odd())
    watched = Watched(session, use)
    assert watched.noted["GET /contacts"]["repeated"] == 1
    assert "H706" not in watched.codes


def test_bodies_that_can_be_sent_once_are_sent(session, source):
    def use(clients):
        reply = clients[0].post(f"{source.url}/echo", data=iter([b"one", b"two"]), timeout=9)
        assert reply.json()["body"] == "onetwo"
        assert clients[1].post(f"{source.url}/echo", content=iter([b"one", b"two"])).json()["body"] == "onetwo"
        sent = clients[1].post(f"{source.url}/echo", json={"page": 1}).json()["body"]
        assert json.loads(sent) == {"page": 1}

    with httpx.Client() as other:
        assert Watched((session, other), use).noted["POST /echo"]["requests"] == 3


def test_the_streams_of_a_tap_are_told_apart(source):
    """What the two have in common is asked by both: that is no repetition."""
    tap = burler.tap("tap-verified")
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}

    @tap.client
    def client():
        return Client(source.url)

    @tap.stream("contacts", key_properties="id", schema=schema)
    def contacts(client):
        yield [{"id": row["id"]} for row in client.get("/contacts").json()]

    @tap.stream("rows", key_properties="id", schema=schema)
    def rows(client):
        client.get("/contacts")
        for offset in (0, 10):
            yield from client.get("/rows", params={"offset": offset, "limit": 10}).json()

    streams = verify_tap(tap, select=["H"], resume=False).runs[0].streams
    assert (streams["contacts"].rows, streams["rows"].rows) == (10, 20)
    assert {name: one["requests"] for name, one in streams["contacts"].requests.items()} == {"GET /contacts": 1}
    assert {name: one["requests"] for name, one in streams["rows"].requests.items()} == {
        "GET /contacts": 1,
        "GET /rows": 2,
    }
    assert streams["rows"].requests["GET /contacts"]["repeated"] == 0
