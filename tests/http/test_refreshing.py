"""Tokens that a function of the author's renews: when it is called, with what, and what it may give."""

from __future__ import annotations

import time

import pytest
import requests
from tokenserver import serving

from burler.errors import BurlerError, CredentialsError, DeclarationError
from burler.http import Client, bearer, one_time, periodic
from burler.testing import canaries_in, canary


@pytest.fixture
def server():
    with serving() as server:
        yield server


class Clock:
    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds

    def arguments(self):
        return {"now": self, "monotonic": self}


class Refresh:
    """A refresh function that counts its calls; each gives a new token of the server's."""

    __name__ = "Refresh"

    def __init__(self, server):
        self.server = server
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.server.new_token()


def client_of(server, auth, **more):
    return Client(server.url, auth=auth, sleep=lambda _seconds: None, **more)


# ---- periodic and one_time -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time_given", "seconds"), [({"minutes": 25}, 1500), ({"min": 2}, 120), ({"seconds": 7}, 7), ({}, 1500)]
)
def test_a_token_is_renewed_every_so_often(server, time_given, seconds):
    clock, refresh = Clock(), Refresh(server)
    client = client_of(server, periodic(refresh, **time_given, **clock.arguments()))
    assert refresh.calls == 0, "not before it is needed"
    for calls in (1, 2, 3):
        client.get("/rows")
        clock.seconds += seconds - 1
        client.get("/rows")
        assert refresh.calls == calls
        clock.seconds += 1


def test_a_token_that_says_it_lasts_less_is_renewed_earlier(server):
    clock, calls = Clock(), []

    def refresh():
        calls.append(1)
        return {"access_token": server.new_token(), "expires_in": 300}

    client = client_of(server, periodic(refresh, minutes=25, **clock.arguments()))
    client.get("/rows")
    clock.seconds += 239
    client.get("/rows")
    assert len(calls) == 1
    clock.seconds += 1
    client.get("/rows")
    assert len(calls) == 2


def test_a_token_that_says_it_lasts_longer_is_renewed_all_the_same(server):
    clock, calls = Clock(), []

    def refresh():
        calls.append(1)
        return {"access_token": server.new_token(), "expires_in": 86400}

    client = client_of(server, periodic(refresh, minutes=25, **clock.arguments()))
    client.get("/rows")
    clock.seconds += 25 * 60
    client.get("/rows")
    assert len(calls) == 2


def test_one_time_is_once(server):
    clock, refresh = Clock(), Refresh(server)
    client = client_of(server, one_time(refresh, **clock.arguments()))
    for _ in range(3):
        client.get("/rows")
        clock.seconds += 86400
    assert refresh.calls == 1


@pytest.mark.parametrize("make", [periodic, one_time])
def test_a_401_calls_it_once_more_and_then_fails(server, make):
    refresh = Refresh(server)
    client = client_of(server, make(refresh))
    client.get("/rows")
    server.valid.clear()
    client.get("/rows")
    assert refresh.calls == 2
    server.uses = 0
    server.valid.clear()
    with pytest.raises(CredentialsError, match=r"The new token of \w+\(Refresh .*\) was refused, too"):
        client.get("/rows")
    assert refresh.calls == 3


def test_one_time_may_be_once_whatever_the_server_says(server):
    refresh = Refresh(server)
    client = client_of(server, one_time(refresh, on_refusal=False))
    client.get("/rows")
    server.valid.clear()
    with pytest.raises(CredentialsError):
        client.get("/rows")
    assert refresh.calls == 1


def test_the_function_gets_the_config_and_a_client_without_credentials(server):
    config = {"user": "ann"}
    server.rows_limit = 3
    tried = []

    def log_in(config, client):
        tried.append((config["user"], len(client.get("/session", allow_statuses=(401,)).content) > 0))
        return server.new_token()

    assert len(client_of(server, one_time(log_in, config=config)).json("/rows")) == 3
    assert tried == [("ann", True)]
    assert server.seen[0] == ("/session", None, 401)
    assert config["access_token"] in server.valid and "refresh_token" not in config


def test_a_function_may_put_the_token_into_the_config_itself(server):
    config = {"access_token": canary("old")}

    def refresh(config):
        config["access_token"] = server.new_token()

    client = client_of(server, periodic(refresh, config=config))
    client.get("/rows")
    assert server.seen[-1][1] == f"Bearer {config['access_token']}"
    server.valid.clear()
    client.get("/rows")
    assert [status for _path, _token, status in server.seen] == [200, 401, 200]


def test_a_function_that_gives_nothing_leaves_the_headers_alone(server):
    session = requests.Session()

    def refresh():
        session.headers["Authorization"] = f"Bearer {server.new_token()}"

    client = client_of(server, one_time(refresh), session=session)
    client.get("/rows", allow_statuses=(401,))  # the headers were put together before the function was called
    client.get("/rows")
    assert server.seen[-1][2] == 200


def test_a_token_that_it_puts_there_and_no_header_can_hold_is_an_error(server):
    config = {}
    auth = one_time(lambda config: config.update(access_token=canary("token") + "\n"), config=config)
    with pytest.raises(DeclarationError, match="the access token has spaces or a line break around it"):
        client_of(server, auth).get("/rows")


@pytest.mark.parametrize("given", [5, "", [], {"token": "x"}, {"access_token": ""}, b"bytes"])
def test_what_is_no_token_is_an_error(server, given):
    with pytest.raises(CredentialsError, match="the access token"):
        client_of(server, one_time(lambda: given)).get("/rows")


@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (lambda: periodic(lambda catalog: ""), "unknown parameter 'catalog'"),
        (lambda: periodic(lambda config: ""), "Give it: config=config"),
        (lambda: periodic(lambda: "", minutes=0), "above 0"),
        (lambda: periodic(lambda: "", seconds=float("nan")), "above 0"),
        (lambda: periodic(lambda: "", minutes="25"), "above 0"),
        (lambda: periodic(lambda: "", minutes=True), "above 0"),
        (lambda: periodic(lambda: "", minutes=1, min=1), "give one of"),
        (lambda: periodic("token"), "must be a function"),
        (lambda: one_time(lambda: "", config=("a",)), "config= must be the config"),
    ],
)
def test_what_can_not_work_is_refused_when_it_is_declared(make, fact):
    with pytest.raises(DeclarationError) as caught:
        make()
    assert fact in str(caught.value)


def test_an_error_of_the_function_is_one_without_secrets(server):
    secret = canary("login")

    def refresh():
        bearer(secret)
        raise KeyError(f"no {secret}")

    with pytest.raises(CredentialsError) as caught:
        client_of(server, one_time(refresh)).get("/rows")
    text = str(caught.value)
    assert (
        text.startswith("one_time(refresh ") and "test_refreshing.py:" in text and "failed: KeyError: 'no ***'" in text
    )
    assert not list(canaries_in(text))


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), BurlerError("of its own")])
def test_whatever_the_function_raises_ends_nobody_else(server, error):
    def refresh():
        raise error

    with pytest.raises(BurlerError) as caught:
        client_of(server, one_time(refresh)).get("/rows")
    assert (caught.value is error) == isinstance(error, BurlerError)


def test_a_function_that_uses_the_client_it_renews_is_told_so(server):
    def refresh():
        return client.json("/rows")[0]

    client = client_of(server, one_time(refresh, limit_seconds=20))
    began = time.monotonic()
    with pytest.raises(DeclarationError, match="Let the function ask for 'client'"):
        client.get("/rows")
    assert time.monotonic() - began < 15, "it did not wait for itself"
