"""Secrets that no config holds: in URLs that a source gave, and in what a client was made with."""

from __future__ import annotations

import logging

import pytest
import requests

from burler.errors import HttpError, PagingError
from burler.http import Client, NextUrl, Offset, mask_url
from burler.testing import canary
from support.servers import echoed, serving

PASSWORD = "hunter2-pw"  # a word that no part of a URL is masked for


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


GIVEN = {
    "headers": lambda url, key: Client(url, headers={"X-API-Key": key}),
    "bearer": lambda url, key: Client(url, headers={"Authorization": f"Bearer {key}"}),
    "cookie": lambda url, key: Client(url, headers={"Cookie": f"lang=en; sid={key}"}),
    "params": lambda url, key: Client(url, params={"api_key": [key]}),
    "query": lambda url, key: Client(f"{url}?key={key}"),
    "session": lambda url, key: Client(url, session=session_of(key)),
    "options": lambda url, key: Client(url).with_options(headers={"X-API-Key": key}),
}


def session_of(key):
    session = requests.Session()
    session.headers["X-API-Key"] = key
    return session


@pytest.mark.parametrize("how", GIVEN)
def test_what_a_client_was_given_is_hidden_where_the_source_repeats_it(how):
    key = canary(f"given by {how}")
    with (
        serving(lambda asked: (400, {}, f"key {key} is bad".encode())) as server,
        GIVEN[how](server.url, key) as client,
        pytest.raises(HttpError) as caught,
    ):
        client.get("/a")
    assert "key *** is bad" in str(caught.value)


def test_words_that_are_no_secrets_stay_in_the_lines():
    params = {"key": "customers", "code": "EUR", "token_type": "Bearer", "auth": "none", "pin": 12345}
    words = "customers, EUR, Bearer, none, 12345, text/csv"
    assert words in echoed(words, params=params, headers={"Accept": "text/csv"})


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
    assert shown[:100] in echoed(body)


@pytest.mark.parametrize("code", ["NOT_FOUND", "INVALID_GRANT", "E1042", "rate limit exceeded for this key"])
def test_the_code_of_an_error_is_shown(code):
    assert f'{{"code": "{code}"}}' in echoed(f'{{"code": "{code}"}}')
    assert '{"code": "***"}' in echoed('{"code": "0.AXoAabcdefghijklmnopqrstuvwxyz"}')
