"""Token servers that refuse, fail or answer something else: what is said, and that it shows no secret."""

from __future__ import annotations

import json

import pytest
from tokenserver import answer, refusal, serving

from burler.errors import CredentialsError, DeclarationError, HttpError, NoAnswerError
from burler.http import Client, oauth2_client_credentials, oauth2_refresh
from burler.testing import canaries_in


@pytest.fixture
def server():
    with serving() as server:
        yield server


def client_of(server, auth, **more):
    return Client(server.url, auth=auth, sleep=lambda _seconds: None, **more)


@pytest.mark.parametrize(
    ("reply", "facts"),
    [
        (refusal(400, "invalid_grant", "used up"), ("400 invalid_grant: used up", "Log in again, and put")),
        (refusal(401, "invalid_client"), ("401 invalid_client", "client_auth='body'")),
        (refusal(403, "unauthorized_client"), ("403 unauthorized_client", "settings there")),
        (answer({"error": "bad_code", "error_description": "no"}), ("200 bad_code: no",)),
        (answer({"error": {"code": "E7", "message": "gone"}}, 400), ("400 E7: gone",)),
        (answer({"access_token": ""}), ("200 no access_token",)),
        (answer({"access_token": None}), ("200 no access_token",)),
        (answer({"access_token": "canary-s3cr3t-a b\n"}), ("the access token has spaces",)),
        (answer({"access_token": 12}), ("the access token is no text but int",)),
        (answer([1]), ("200 no access_token",)),
        (answer(b"<html>Login</html>", kind="text/html"), ("200 no access_token",)),
        (answer(b"", 404), ("404 no access_token", "Check token_url")),
    ],
)  # fmt: skip
def test_refusals_say_the_fact_and_the_cure(server, reply, facts):
    server.answers = [reply]
    client = client_of(server, oauth2_refresh(**server.oauth(), refresh_token=server.refresh_token))
    with pytest.raises(CredentialsError) as caught:
        client.get("/rows")
    text = str(caught.value)
    for fact in facts:
        assert fact in text, text
    assert f"oauth2_refresh ({server.token_url})" in text and len(text.splitlines()) <= 3
    assert not server.seen


@pytest.mark.parametrize("how", ["basic", "body"])
def test_a_server_that_repeats_what_it_was_sent_gives_no_secret_away(server, how):
    server.answers = [refusal(400, "odd", f"got {server.client_secret} and {server.refresh_token}")]
    auth = oauth2_refresh(**server.oauth(), refresh_token=server.refresh_token, client_auth=how)
    with pytest.raises(CredentialsError) as caught:
        client_of(server, auth).get("/rows")
    assert "400 odd: got *** and ***" in str(caught.value)
    assert not list(canaries_in(str(caught.value))) and not list(canaries_in(caught.value.body))


def test_a_form_as_reply_is_understood(server):
    token = server.new_token()
    server.answers = [answer(f"access_token={token}&expires_in=9".encode(), kind="application/x-www-form-urlencoded")]
    assert client_of(server, oauth2_client_credentials(**server.oauth())).json("/rows") == [{"id": 0}]


def test_a_token_server_that_recovers_is_asked_again(server):
    server.answers = [answer(b"", 503), answer(b"", 429), answer(b"", 500)]
    assert client_of(server, oauth2_client_credentials(**server.oauth())).json("/rows") == [{"id": 0}]
    assert len(server.asked) == 4


def test_a_token_server_that_does_not_recover_is_an_error_without_secrets(server):
    server.answers = [answer(json.dumps({"echo": server.refresh_token}).encode(), 503) for _ in range(9)]
    client = client_of(server, oauth2_refresh(**server.oauth(), refresh_token=server.refresh_token), retries=2)
    with pytest.raises(HttpError) as caught:
        client.get("/rows")
    assert caught.value.status == 503 and caught.value.attempts == 3
    with pytest.raises(NoAnswerError):
        client_of(server, oauth2_client_credentials(**server.oauth(token_url="http://127.0.0.1:1/t")), retries=0).get(
            "/"
        )


def test_a_token_server_that_sends_us_elsewhere_is_not_followed_with_the_secret(server):
    with serving() as other:
        server.answers = [(307, {"Location": other.token_url}, b"")]
        with pytest.raises(HttpError):
            client_of(server, oauth2_refresh(**server.oauth(), refresh_token=server.refresh_token)).get("/rows")
        assert not other.asked


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"token_url": "login.example.com"}, "token_url must begin with https://"),
        ({"token_url": None}, "token_url must begin with https://"),
        ({"client_auth": "header"}, "client_auth is 'basic' or 'body'"),
        ({"client_secret": None}, "client_secret is empty"),
        ({"client_id": ""}, "client_id is empty"),
        ({"client_secret": 7}, "client_secret must be a text"),
        ({"config": [("a", 1)]}, "config= must be the config"),
    ],
)
def test_arguments_that_can_not_work(server, change, fact):
    with pytest.raises(DeclarationError) as caught:
        oauth2_client_credentials(**{**server.oauth(), **change})
    assert fact in str(caught.value)
