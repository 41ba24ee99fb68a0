"""A target that others built on the Singer SDK loads what tap_library writes, and keeps what has not changed."""

import json
import subprocess
from pathlib import Path

import pytest

import tap_library
from burler.testing import canary
from support.cli import burler
from tap_library.data import Library, Size
from tap_library.server import Server

WHOLE = ("branches", "rooms", "opening_hours", "closed_days")


@pytest.fixture
def library(tmp_path):
    made = Library.make(tmp_path / "library.db", Size(branches=4, authors=20, books=15, loans=25, events=2))
    with Server(made, canary("library-peers")) as server:
        yield made, server


@pytest.fixture
def load(tmp_path, peers, postgres, library, monkeypatch):
    """tap | target, each time with the state that the target wrote last; the tap's messages."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    _made, server = library
    config, state = tmp_path / "config-target.json", tmp_path / "state.json"
    settings = {**postgres.settings, "default_target_schema": tmp_path.name, "hard_delete": True}
    config.write_text(json.dumps(settings))
    given = {"TAP_LIBRARY_BASE_URL": server.url, "TAP_LIBRARY_ACCESS_TOKEN": server.token}

    def once(*more):
        more += ("--state", state) if state.exists() else ()
        tap = burler("run", Path(tap_library.__file__).parent, *more, **given)
        assert tap.code == 0, tap.stderr
        target = [peers / "target-postgres", "--config", config]
        done = subprocess.run(target, input=tap.stdout, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        state.write_text(done.stdout.decode().splitlines()[-1])
        return tap.messages

    return once


@pytest.fixture
def stored(postgres, tmp_path):
    """The rows of a table at the target."""

    def read(table, columns="*"):
        rows = f"select {columns} from {tmp_path.name}.{table} order by 1, 2"
        [(found,)] = postgres.ask(f"select coalesce(json_agg(t), '[]')::text from ({rows}) t")
        return json.loads(found)

    return read


def test_the_target_keeps_what_has_not_changed(library, load, stored):
    """304: no row, no ACTIVATE_VERSION; then one branch is gone, and its rows go, and those of the others stay."""
    made, _server = library
    load()
    first = {name: stored(name) for name in WHOLE}
    assert [row["id"] for row in first["branches"]] == [row["id"] for row in made.rows("branches")]
    assert [len(first[name]) for name in WHOLE[1:]] == [len(made.rows("rooms")), len(made.rows("opening_hours")), 7]

    again = load()
    assert {name: stored(name) for name in WHOLE} == first  # to the second of _sdc_received_at
    assert {m["type"] for m in again if m.get("stream") in WHOLE} == {"SCHEMA"}

    made.remove("branches", "mill")
    third = load()
    assert [row["id"] for row in stored("branches")] == ["central", "harbour", "hill"]
    assert {row["branch"] for row in stored("rooms")} == {"central", "harbour", "hill"}
    assert stored("opening_hours") == first["opening_hours"] and stored("closed_days") == first["closed_days"]
    assert {m["stream"] for m in third if m["type"] == "ACTIVATE_VERSION"} == {
        "branches",
        "rooms",
        "authors",
        "overdue",
    }


@pytest.mark.nightly
def test_the_target_has_all_rows_of_all_streams(library, load, stored):
    made, _server = library
    load()
    made.change("books", 2)
    made.change("loans", 3)
    load()
    for name, columns in {
        "books": "isbn, title, year",
        "loans": "id, branch, member",
        "loan_events": "id, loan",
    }.items():
        wanted = [{column: row[column] for column in columns.split(", ")} for row in made.rows(name)]
        assert stored(name, columns) == wanted, name
    assert stored("summaries", "isbn, summary") == [
        {"isbn": row["isbn"], "summary": row["summary"]} for row in made.rows("books")
    ]
