"""docs/graphql.md: its snippets run, and what they declare works against the server of the example."""

import re
from pathlib import Path

import pytest

from burler.graphql import SCALARS
from burler.testing import canary, run_tap
from tap_starships.data import Data
from tap_starships.server import Shipyard

PAGE = Path(__file__).resolve().parents[2] / "docs" / "graphql.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def scope():
    """The names that all snippets together have made."""
    found = {"__name__": "snippet"}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(block, "docs/graphql.md", "exec"), found)
    return found


def test_the_taps_of_the_page_read_the_shipyard(scope, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    token = canary("page")
    with Shipyard(Data(12, 30), token=token).running() as server:
        config = {"url": server.url, "access_token": token}
        out = run_tap(scope["tap"], config)
        again = run_tap(scope["tap"], config, state=out.states[-1])
        client = scope["client"](config)
        names = list(scope["NAMES"].records(client))
        ports = list(scope["PORTS"].records(client))
    assert not out.result.errors and not again.result.errors
    ships = server.data.ships()
    assert {row["id"] for row in out.records("ships")} == {ship.id for ship in ships}
    assert {(row["shipId"], row["id"]) for row in out.records("crew")} == {(s.id, m.id) for s in ships for m in s.crew}
    assert {row["id"] for row in out.records("log_entries")} == {one.id for s in ships for one in s.log}
    assert len(again.records("fleet")) < len(out.records("fleet")) == 12
    assert [[m["name"] for m in row["crew"]] for row in names] == [[m.name for m in ship.crew] for ship in ships]
    assert ports == server.data.ports


def test_what_the_tables_name_exists():
    for name in ("Int", "BigInt", "Long", "Float", "Decimal", "ID", "UUID", "URL", "DateTime", "Date", "JSON"):
        assert name in TEXT and name in SCALARS, name
