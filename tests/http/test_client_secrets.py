"""Secrets that no config holds: in URLs that a source gave, and in what a client was made with."""

from __future__ import annotations

import logging

import pytest
import requests

from burler.errors import HttpError, PagingError
from burler.http import Client, NextUrl, Offset, mask_url
from burler.testing import canary
from support.internals import config_secrets, config_watched, http_masking
from support.servers import serving

KEY, PASSWORD = canary("given"), "hunter2-pw"  # a word that no part of a URL is masked for


def endpoint_of(caplog):
    """The endpoints of METRIC lines."""
    points = [record.getMessage() for record in caplog.records if record.getMessage().startswith("METRIC")]
    return [point.partition('"endpoint":"')[2].partition('"')[0] for point in points]


def test_metric_lines_show_no_user_and_no_session_of_a_url(caplog, metrics_of_requests):
    caplog.set_level(logging.INFO)

    def answer(asked):
        if asked.path == "/go":
            return 302, {"Location": f"http://ann:{PASSWORD}@{host}/x"}, b""
        return []

    with serving(answer) as server, Client(server.url) as client:
        host = server.url.removeprefix("http://").replace("127.0.0.1", "localhost")
        client.get("/go")
        client.get("/login;jsessionid=4711-abc;lang=en")
    assert endpoint_of(caplog) == ["/go", f"http://***@{host}/x", "/login;jsessionid=***;lang=en"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://x.io/a;jsessionid=1?b=2", "https://x.io/a;jsessionid=***?b=2"),
        ("https://x.io/a;b=1;phpsessid=2/c;token=3", "https://x.io/a;b=1;phpsessid=***/c;token=***"),
        ("/a;jsessionid=", "/a;jsessionid="),
        ("/a;v=1.1/b", "/a;v=1.1/b"),
        (
            "https://u:p@x.io/a?ASPSESSIONID=5&SESSID=6&lesson=7",
            "https://***@x.io/a?ASPSESSIONID=***&SESSID=***&lesson=7",
        ),
        (";" * 5000 + "a" * 5000, ";" * 5000 + "a" * 5000),
    ],
)
def test_urls_are_shown_without_what_looks_secret(url, shown):
    assert mask_url(url) == shown


@pytest.mark.parametrize(
    "target",
    [
        "ftp://h/x?access_token={}",
        "ftp://u:{}@h/x",
        "http://[bad/x?access_token={}",
        "http://u:{}@\u2100.example/x",
        {"href": "/x", "access_token": "{}"},
    ],
)
def test_a_next_url_that_is_none_is_shown_masked(target):
    text = "S3CR3T-1"
    given = {key: one.format(text) for key, one in target.items()} if isinstance(target, dict) else target.format(text)
    with (
        serving(lambda asked: {"items": [1], "next": given}) as server,
        Client(server.url) as client,
        pytest.raises(PagingError, match="next URL") as caught,
    ):
        list(client.pages("/a", paginator=NextUrl("next"), records_path="items"))
    assert text not in str(caught.value)


def test_the_warning_of_an_offset_shows_its_path_masked(caplog):
    with serving(lambda asked: {"items": [], "total": 5}) as server, Client(server.url) as client:
        list(client.pages("/a?sig=S3CR3T-2", paginator=Offset(3, total="total"), records_path="items"))
    assert "GET /a?sig=***: one page was read, though 'total' of the reply says that there are more" in caplog.text


def given(url, how):
    """A client that was given a key, in one of the ways there are."""
    session = requests.Session()
    session.headers["X-API-Key"] = KEY
    return {
        "headers": lambda: Client(url, headers={"X-API-Key": KEY}),
        "bearer": lambda: Client(url, headers={"Authorization": f"Bearer {KEY}"}),
        "cookie": lambda: Client(url, headers={"Cookie": f"lang=en; sid={KEY}"}),
        "params": lambda: Client(url, params={"api_key": [KEY]}),
        "query": lambda: Client(f"{url}?key={KEY}"),
        "session": lambda: Client(url, session=session),
        "options": lambda: Client(url).with_options(headers={"X-API-Key": KEY}),
    }[how]()


@pytest.fixture
def nothing_known(monkeypatch):
    """No secret was hidden before."""
    with monkeypatch.context() as patch:
        patch.setattr(config_watched.no_secrets, "_added", {})
        config_watched.no_secrets._gather()
        yield
    config_watched.no_secrets._gather()


@pytest.mark.parametrize("how", ["headers", "bearer", "cookie", "params", "query", "session", "options"])
def test_what_a_client_was_given_is_hidden_where_the_source_repeats_it(how, nothing_known):
    assert config_secrets.masked(KEY) == KEY
    with (
        serving(lambda asked: (400, {}, f"key {KEY} is bad".encode())) as server,
        given(server.url, how) as client,
        pytest.raises(HttpError) as caught,
    ):
        client.get("/a")
    assert "key *** is bad" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key", "customers"),
        ("code", "EUR"),
        pytest.param("Accept", KEY, id="Accept-the key"),
        ("token_type", "Bearer"),
        ("auth", "none"),
        ("pin", 12345),
    ],
)
def test_words_that_are_no_secrets_stay_in_the_lines(name, value):
    assert http_masking.secrets_in(name, value) == []


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ('{"api_key": 1234567890, "n": 1234567890}', '{"api_key": ***, "n": 1234567890}'),
        ('{"tokens": 12345678, "auth_id": 12345678}', '{"tokens": 12345678, "auth_id": 12345678}'),
        (
            "<r><access_token>abcdefgh</access_token><n>abcd</n></r>",
            "<r><access_token>***</access_token><n>abcd</n></r>",
        ),
        ("<s:password>abcdefgh", "<s:password>***"),
        ('{"token":"abc\\', '{"token":"***"'),
        ("Authorization: Bearer abcdefghij.kl", "Authorization: Bearer ***"),
        ("the bearer of this is right", "the bearer of this is right"),
        ("<" * 20_000, "<" * 20_000),
    ],
)
def test_secrets_by_name_are_masked_in_bodies_of_other_forms(body, shown):
    assert http_masking.mask_text(body) == shown


@pytest.mark.parametrize("code", ["NOT_FOUND", "INVALID_GRANT", "E1042", "rate limit exceeded for this key"])
def test_the_code_of_an_error_is_shown(code):
    assert http_masking.mask_text(f'{{"code": "{code}"}}') == f'{{"code": "{code}"}}'
    assert http_masking.mask_text('{"code": "0.AXoAabcdefghijklmnopqrstuvwxyz"}') == '{"code": "***"}'
