"""Credentials that stay as they are: what the server sees, what is refused, and that nothing shows them."""

from __future__ import annotations

import base64
import traceback

import pytest
import requests
from requests.auth import HTTPDigestAuth
from tokenserver import serving

import burler
from burler.errors import CredentialsError, DeclarationError
from burler.http import Client, api_key, basic, bearer
from burler.testing import canaries_in, canary, run_tap
from support.servers import echoed


@pytest.fixture
def server():
    with serving() as server:
        yield server


def seen_of(server, auth, path="/rows"):
    """What the server saw of a request with these credentials, which it refuses unless they are a token of its own."""
    with Client(server.url, auth=auth) as client:
        client.get(path, allow_statuses=(401,))
    return server.seen[-1]


def test_a_bearer_token(server):
    token = server.new_token()
    assert seen_of(server, bearer(token)) == ("/rows", f"Bearer {token}", 200)
    with Client(server.url, token=token) as client:
        assert client.json("/rows") == [{"id": 0}]


def test_a_token_with_another_word_or_none(server):
    token = canary("token")
    assert seen_of(server, bearer(token, scheme="Token"))[1] == f"Token {token}"
    assert seen_of(server, bearer(token, scheme=""))[1] == token


@pytest.mark.parametrize("password", ["simple-one", "with:colon", "Grüße, 🌍", ""])
def test_user_and_password(server, password):
    value = f"{canary('password')}{password}" if password else ""
    pair = base64.b64decode(seen_of(server, basic("ann", value))[1].removeprefix("Basic "))
    assert pair.decode() == f"ann:{value}"
    assert seen_of(server, ("ann", value))[1] == seen_of(server, basic("ann", value))[1]


def test_a_key_in_a_header_of_ones_own():
    prepared = requests.Request("GET", "http://x/", auth=api_key("abcd-key", header="X-Key")).prepare()
    assert prepared.headers["X-Key"] == "abcd-key"
    assert requests.Request("GET", "http://x/", auth=api_key("abcd-key")).prepare().headers["X-API-Key"] == "abcd-key"
    scheme = api_key("abcd-key", header="Authorization", scheme="SSWS")
    assert requests.Request("GET", "http://x/", auth=scheme).prepare().headers["Authorization"] == "SSWS abcd-key"


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/rows", "/rows?api_key=a%2Bb%26c"),
        ("/rows?a=1", "/rows?a=1&api_key=a%2Bb%26c"),
        ("/rows?api_key=a%2Bb%26c&page=2", "/rows?api_key=a%2Bb%26c&page=2"),  # as a next URL may have it
    ],
)
def test_a_key_in_the_query_comes_once(server, path, asked):
    assert seen_of(server, api_key("a+b&c", param="api_key"), path)[0] == asked


def test_auth_objects_of_requests_and_functions_work(server):
    def signed(prepared):
        prepared.headers["Authorization"] = "signed " + prepared.path_url
        return prepared

    assert seen_of(server, signed)[1] == "signed /rows"
    with Client(server.url, auth=HTTPDigestAuth("a", "b")) as client, Client(server.url) as without:
        assert repr(client.auth) == "ForeignAuth(HTTPDigestAuth)"
        assert without.auth is None


def test_an_auth_function_that_gives_another_request_is_followed(server):
    def another(prepared):
        other = prepared.copy()
        other.headers["Authorization"] = "other"
        return other

    assert seen_of(server, another)[1] == "other"


@pytest.mark.parametrize("auth", ["a token alone", ("one",), ("a", "b", "c"), 5, HTTPDigestAuth, {"user": "x"}])
def test_what_is_no_auth_is_refused_with_what_would_be(auth):
    with pytest.raises(DeclarationError, match=r"It takes bearer\(token\)"):
        Client("http://127.0.0.1:1", auth=auth)


@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (lambda: bearer(None), "the token is empty. Is it in the config?"),
        (lambda: bearer(""), "the token is empty"),
        (lambda: bearer(5), "the token is no text but int"),
        (lambda: bearer("canary-s3cr3t-line-0123456789abcdef\n"), "has spaces or a line break around it"),
        (lambda: bearer("canary-s3cr3t-two\nlines"), "has signs that no header can hold"),
        (lambda: api_key("canary-s3cr3t-ключ"), "has signs that no header can hold"),
        (lambda: api_key(None, param="key"), "the key is empty"),
        (lambda: api_key("k", header="X", param="x"), "one of header= and param="),
        (lambda: basic("a:b", "c"), "user name with a colon"),
        (lambda: basic("a", None), "the password must be a text, not NoneType"),
    ],
)
def test_what_can_not_be_sent_is_refused_without_showing_it(make, fact):
    with pytest.raises(DeclarationError) as caught:
        make()
    assert fact in str(caught.value)


def test_a_refused_token_is_one_clear_error(server):
    with Client(server.url, auth=bearer(canary("wrong"))) as client, pytest.raises(CredentialsError) as caught:
        client.get("/rows")
    assert caught.value.status == 401
    assert "Is the token right" in str(caught.value)
    assert len(server.seen) == 1


def test_keys_are_masked_in_errors_logs_and_reprs(server, caplog):
    """The server repeats the token in its refusal, requests and urllib3 repeat the URL."""
    caplog.set_level("DEBUG")
    caplog.set_level("WARNING", logger="urllib3")  # its DEBUG lines are masked by the filter of a run of its own only
    key, token = canary("key"), canary("token")
    shown = []
    for auth, url in (
        (api_key(key, param="opaque"), server.url),
        (bearer(token), server.url),
        (bearer(token), "http://127.0.0.1:1"),
        (api_key(key, param="opaque"), "http://127.0.0.1:1"),
        (basic("ann", canary("password")), server.url),
    ):
        with Client(url, auth=auth, retries=1, sleep=lambda _seconds: None) as client:
            shown += [repr(auth), repr(client), repr(client.auth)]
            try:
                client.get("/rows")
            except CredentialsError as error:
                shown += [str(error), repr(error), error.url, error.body.decode(), traceback.format_exc()]
            except Exception as error:
                shown += ["".join(traceback.format_exception(error))]
    assert len(shown) > 20
    assert not [find for text in shown for find in canaries_in(text)]


def test_a_password_is_masked_in_base64_too():
    password = canary("password")
    basic("ann", password)
    for user in ("a", "ab", "abc", "abcd"):
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        said = echoed(f"<{pair}>")
        assert "***" in said and not list(canaries_in(said)), user


def run_that_shows(config, text):
    """The error of a stream that ends with a text."""
    tap = burler.tap("tap-shows")

    @tap.sync("rows", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def rows():
        raise RuntimeError(echoed(text))

    return str(run_tap(tap, config).result.errors["rows"])


def test_a_password_of_a_config_is_masked_in_base64_though_nobody_has_made_credentials_of_it():
    password = canary("other")
    pair = base64.b64encode(f"u:{password}".encode()).decode()
    said = run_that_shows({"password": password}, f"<{pair}>")
    assert "***" in said and not list(canaries_in(said))


def test_tokens_that_were_fetched_stay_hidden_when_another_run_begins():
    token, password = canary("fetched"), canary("another run")
    bearer(token)
    assert "<***> [***]" in run_that_shows({"password": password}, f"<{token}> [{password}]")
