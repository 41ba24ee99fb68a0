"""docs/credentials.md: its snippets run, and it names all there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import requests
from tokenserver import serving

import burler.http
from burler.http import Auth, Client
from burler.testing import canary, run_tap

PAGE = Path(__file__).parents[2] / "docs" / "credentials.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def server():
    with serving() as server:
        yield server


def snippet(number):
    scope = {"__name__": "snippet"}
    exec(compile(BLOCKS[number], PAGE.name, "exec"), scope)
    return scope


def rows_of(tap, config):
    """A stream is added to the page's tap, and run."""
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    tap.sync("rows", key_properties="id", schema=schema)(lambda client: client.json("/rows"))
    out = run_tap(tap, config)
    assert not out.result.errors, out.result.errors
    return out.records("rows")


def test_a_token(server):
    assert rows_of(snippet(0)["tap"], {"base_url": server.url, "access_token": server.new_token()}) == [{"id": 0}]


def test_a_function_that_logs_in(server):
    password = canary("password")
    assert rows_of(snippet(1)["tap"], {"base_url": server.url, "user": "ann", "password": password}) == [{"id": 0}]
    assert server.logins == [{"user": "ann", "password": password}]


def test_oauth(server):
    config = {"base_url": server.url, "refresh_token": server.refresh_token, **server.oauth()}
    assert rows_of(snippet(2)["tap"], config) == [{"id": 0}]
    assert len(server.asked) == 1


def test_credentials_of_ones_own(server):
    auth = snippet(3)["Signed"](canary("key"))
    assert isinstance(auth, Auth) and "canary" not in repr(auth)
    sent = []
    session = requests.Session()
    session.hooks["response"] = lambda response, **_more: sent.append(response.request.headers["X-Signature"])
    Client(server.url, auth=auth, session=session).get("/rows", allow_statuses=(401,))
    assert re.fullmatch("[0-9a-f]{64}", sent[0])


def test_the_page_has_no_other_snippet():
    assert len(BLOCKS) == 4


def test_all_functions_are_named():
    names = {name for name in burler.http.__all__ if isinstance(getattr(burler.http, name), type(snippet))}
    kinds = {name for name in names if getattr(burler.http, name).__module__.rpartition(".")[2] in
             ("client", "oauth", "assertion", "refreshing")} - {"endpoints"}  # fmt: skip
    assert kinds >= {"bearer", "basic", "api_key", "periodic", "one_time", "oauth2_refresh", "jwt_assertion"}
    for name in kinds:
        assert f"{name}(" in TEXT, name


def test_figures_are_those_of_the_code():
    """What is said of waits is tested in test_refresh_threads.py."""
    usual = inspect.signature(burler.http.oauth2_refresh).parameters
    assert f"takes {usual['limit_seconds'].default:g} seconds at the most" in TEXT
    assert usual["margin_seconds"].default == 60 and "a minute before it runs out" in TEXT
    assert "for the next 30 seconds" in TEXT and "five seconds at the most" in TEXT
