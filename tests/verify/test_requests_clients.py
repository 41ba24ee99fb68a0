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
from burler.testing import run_tap
from support.internals import context, requests_asked, requests_clients, requests_watch

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
    return requests_watch.RequestWatch(lambda: "contacts")


@pytest.fixture
def session(watch):
    with requests.Session() as client:
        client.trust_env = False
        yield requests_clients.watch_client(client, watch)


def noted(watch):
    """What was noted, without what differs from run to run."""
    return {
        name: {key: value for key, value in one.items() if key not in ("seconds", "bytes")}
        for name, one in watch.to_json("contacts").items()
    }


def test_a_session_is_noted_and_answers_as_before(session, source, watch):
    assert session.get(f"{source.url}/contacts/7", timeout=9).json()["id"] == 7
    assert session.get(f"{source.url}/nothing?token=abcdef", timeout=(9, 9)).status_code == 404
    assert noted(watch) == {
        "GET /contacts/{id}": {"requests": 1, "statuses": {"200": 1}, "repeated": 0, "no_timeout": 0},
        "GET /nothing": {"requests": 1, "statuses": {"404": 1}, "repeated": 0, "no_timeout": 0},
    }
    assert watch.to_json("contacts")["GET /contacts/{id}"]["bytes"] == len('{"id": 7, "label_id": "a"}')


def test_redirects_and_logins_are_noted_step_by_step(session, source, watch):
    reply = session.get(f"{source.url}/moved", timeout=9)
    assert reply.history[0].status_code == 302
    digest = requests.auth.HTTPDigestAuth("user", "word")
    assert session.get(f"{source.url}/secure", auth=digest, timeout=9).ok
    assert {name: one["statuses"] for name, one in noted(watch).items()} == {
        "GET /moved": {"302": 1},
        "GET /contacts": {"200": 1},
        "GET /secure": {"401": 1, "200": 1},
    }
    assert not watch.failures


@pytest.mark.parametrize("query", ["", "?packed=1", "?chunked=1", "?packed=1&chunked=1"])
@pytest.mark.parametrize("way", ["requests", "httpx", "burler"])
def test_bodies_arrive_whole_however_they_come(way, query, source, watch):
    url = f"{source.url}/rows{query or '?'}&offset=0&limit=10"
    with {"requests": requests.Session, "httpx": httpx.Client, "burler": Client}[way]() as client:
        reply = requests_clients.watch_client(client, watch).get(url)
        assert [row["id"] for row in reply.json()] == list(range(10))
    (series,) = watch.lists.series.values()
    assert series.rows == {0: 10}
    assert watch.to_json("contacts")["GET /rows"]["bytes"] > 50


def test_a_streamed_body_comes_in_pieces_and_may_be_left(session, source, watch):
    with session.get(f"{source.url}/contacts?chunked=1", stream=True, timeout=9) as reply:
        assert next(reply.iter_content(1)) == b"["
    with httpx.Client() as client:
        requests_clients.watch_client(client, watch)
        with client.stream("GET", f"{source.url}/contacts?chunked=1") as reply:
            assert next(reply.iter_bytes(1)) == b"["
    assert not watch.failures
    assert watch.endpoints["contacts", "GET /contacts"].repeated == 0


def test_a_body_that_breaks_off_is_no_answer(session, source, watch):
    for _ in range(2):
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            session.get(f"{source.url}/contacts?broken=1", timeout=9)
    (failure,) = watch.failures.values()
    assert (failure.status, failure.endpoint) == (None, "GET /contacts")
    assert noted(watch)["GET /contacts"]["repeated"] == 0


@pytest.mark.parametrize(
    ("timeout", "missing"),
    [(None, 1), ((5, None), 1), (5, 0), ((5, 5), 0), (requests.adapters.TimeoutSauce(total=5), 0)],
    ids=["none", "to connect only", "a number", "a pair", "urllib3's"],
)
def test_timeouts_of_requests(timeout, missing, session, source, watch):
    session.get(f"{source.url}/contacts", timeout=timeout)
    assert noted(watch)["GET /contacts"]["no_timeout"] == missing


@pytest.mark.parametrize(("timeout", "missing"), [(None, 1), (5, 0), (httpx.Timeout(5, read=None), 1)], ids=str)
def test_timeouts_of_httpx(timeout, missing, source, watch):
    with httpx.Client(timeout=timeout) as client:
        requests_clients.watch_client(client, watch).get(f"{source.url}/contacts")
    assert noted(watch)["GET /contacts"]["no_timeout"] == missing


def test_an_adapter_that_puts_a_timeout_in_is_not_blamed(source, watch):
    class Patient(HTTPAdapter):
        def send(self, request, **settings):
            return super().send(request, **{**settings, "timeout": 5})

    with requests.Session() as session:
        session.mount("http://", Patient())
        requests_clients.watch_client(session, watch).get(f"{source.url}/contacts")
    assert noted(watch)["GET /contacts"]["no_timeout"] == 0


def test_a_client_of_burlers_tries_again_and_is_noted_try_by_try(source, watch):
    with Client(source.url, sleep=lambda seconds: None) as client:
        assert requests_clients.watch_client(client, watch).get("/flaky", params={"page": 2}).status_code == 200
        assert client.with_options(headers={"X": "y"}).get("/contacts").status_code == 200
    assert noted(watch)["GET /flaky"] == {
        "requests": 2,
        "statuses": {"503": 1, "200": 1},
        "repeated": 0,
        "no_timeout": 0,
    }
    assert noted(watch)["GET /contacts"]["requests"] == 1
    assert not watch.failures


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
def test_a_session_is_found_in_what_holds_it(hold, source, watch):
    with requests.Session() as session:
        held = hold(session)
        assert requests_clients.watch_client(held, watch) is held
        session.get(f"{source.url}/contacts", timeout=9)
    assert noted(watch)["GET /contacts"]["requests"] == 1
    assert watch.unknown == []


def test_a_client_of_another_kind_stays_as_it_is(watch):
    client = object()
    assert requests_clients.watch_client(client, watch) is client
    assert requests_clients.watch_client(None, watch) is None
    assert watch.unknown == ["builtins.object"]


def test_undo_takes_it_off_again(source, watch):
    with requests.Session() as session, httpx.Client(mounts={"all://there": httpx.HTTPTransport()}) as client:
        before = dict(session.adapters), client._transport, dict(client._mounts)
        for _ in range(2):  # twice is once
            requests_clients.watch_client((session, client), watch)
        session.get(f"{source.url}/contacts", timeout=9)
        client.get(f"{source.url}/contacts")
        assert noted(watch)["GET /contacts"]["requests"] == 2
        assert dict(session.adapters) != before[0]
        watch.undo()
        assert (dict(session.adapters), client._transport, client._mounts) == before
        session.get(f"{source.url}/contacts", timeout=9)
        client.get(f"{source.url}/contacts")
    assert noted(watch)["GET /contacts"]["requests"] == 2


def test_no_other_session_is_touched(source, session, watch):
    requests.get(f"{source.url}/contacts", timeout=9)
    with requests.Session() as other:
        other.get(f"{source.url}/contacts", timeout=9)
    assert noted(watch) == {}


def test_an_adapter_is_what_it_was_in_all_else(session):
    adapter = session.get_adapter("https://x")
    assert isinstance(adapter, HTTPAdapter)
    adapter.max_retries = 3
    assert adapter.max_retries == 3
    assert type(copy.deepcopy(session).get_adapter("https://x")) is HTTPAdapter
    assert type(pickle.loads(pickle.dumps(session)).get_adapter("https://x")) is HTTPAdapter
    assert "HTTPAdapter" in repr(adapter)


def test_a_lost_reply_is_noted_and_raised_as_before(session, source, watch):
    with pytest.raises(requests.ConnectionError):
        session.get("http://127.0.0.1:9/contacts", timeout=9)
    with httpx.Client() as client, pytest.raises(httpx.ConnectError):
        requests_clients.watch_client(client, watch).get("http://127.0.0.1:9/contacts")
    assert noted(watch)["GET /contacts"]["statuses"] == {"lost": 2}
    assert watch.endpoints["contacts", "GET /contacts"].requests == 2


def test_a_body_that_cannot_be_looked_at_is_taken_for_whole(source, watch):
    class Odd(HTTPAdapter):
        def send(self, request, **settings):
            reply = super().send(request, **settings)
            reply.raw = io.BytesIO(reply.content)
            reply._content = reply._content_consumed = False
            return reply

    with requests.Session() as session:
        session.mount("http://", Odd())
        requests_clients.watch_client(session, watch)
        for _ in range(2):
            assert len(session.get(f"{source.url}/contacts", timeout=9).json()) == 10
    assert noted(watch)["GET /contacts"]["repeated"] == 1
    assert not watch.failures


def test_an_address_that_is_none_is_refused_as_before(session, watch):
    watch.answered(watch.begin(requests_asked.Asked("GET", "http://[::1")), 200, {}).end()
    with pytest.raises(requests.exceptions.InvalidURL):
        session.get("http://[::1", timeout=9)


def test_bodies_that_can_be_sent_once_are_sent(session, source, watch):
    reply = session.post(f"{source.url}/echo", data=iter([b"one", b"two"]), timeout=9)
    assert reply.json()["body"] == "onetwo"
    with httpx.Client() as client:
        requests_clients.watch_client(client, watch)
        assert client.post(f"{source.url}/echo", content=iter([b"one", b"two"])).json()["body"] == "onetwo"
        assert client.post(f"{source.url}/echo", json={"page": 1}).json()["body"] == json.dumps({"page": 1}).replace(
            " ", ""
        )
    assert noted(watch)["POST /echo"]["requests"] == 3


def test_the_streams_of_a_tap_are_told_apart(source):
    tap = burler.tap("tap-verified")
    watch = requests_watch.RequestWatch(lambda: getattr(context.running(), "name", None))

    @tap.client
    def client(config):
        client = Client(source.url)
        return requests_clients.watch_client(client, watch)

    @tap.stream("contacts", key_properties="id", schema={"type": "object", "properties": {"id": {"type": "integer"}}})
    def contacts(client):
        yield from client.get("/contacts").json()

    @tap.stream("rows", key_properties="id", schema={"type": "object", "properties": {"id": {"type": "integer"}}})
    def rows(client):
        for offset in (0, 10):
            yield from client.get("/rows", params={"offset": offset, "limit": 10}).json()

    run = run_tap(tap)
    assert len(run.records("contacts")) == 10
    assert len(run.records("rows")) == 20
    assert set(watch.streams) == {"contacts", "rows"}
    assert watch.to_json("contacts")["GET /contacts"]["requests"] == 1
    assert watch.to_json("rows")["GET /rows"]["requests"] == 2
