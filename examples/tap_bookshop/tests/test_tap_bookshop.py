"""tap_bookshop as its users run it, on SQLite and on PostgreSQL: what arrives, what comes again, what is dropped."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tap_bookshop
from burler.testing import run_tap
from support import postgres
from tap_bookshop import shop

FOLDER = Path(tap_bookshop.__file__).parent
ROOT = FOLDER.parents[1]


@pytest.fixture(scope="module")
def server():
    try:
        block = postgres.shared()
        started = block.__enter__()
    except postgres.Missing as missing:
        pytest.skip(str(missing))
    yield started
    block.__exit__(None, None, None)


class Shop:
    """A bookshop's database, and the names of the tap's streams there."""

    def __init__(self, url, prefix):
        self.url, self.prefix = url, prefix
        self.config = {"database_url": url}

    def records(self, out, table):
        return out.records(self.prefix + table)


@pytest.fixture(params=["sqlite", "postgresql"])
def bookshop(request, tmp_path):
    """Both kinds, with the shop's tables in them."""
    if request.param == "sqlite":
        made = Shop(f"sqlite:///{tmp_path}/bookshop.db", "")
    else:
        server = request.getfixturevalue("server")
        name = server.new_database()
        made = Shop(server.url(name).replace("postgresql:", "postgresql+psycopg:"), "public.")
    shop.make(made.url, count_books=300, orders=400)
    return made


def test_all_tables_arrive_with_their_values(bookshop):
    out = run_tap(tap_bookshop.tap, bookshop.config)
    assert not out.result.errors
    assert {m["stream"] for m in out.messages if m["type"] == "SCHEMA"} == {
        "sales", *(bookshop.prefix + table for table in ("authors", "books", "order_lines", "bestsellers"))
    }  # fmt: skip
    assert len(bookshop.records(out, "books")) == 300
    assert bookshop.records(out, "books")[4] == {
        "id": 5,
        "author_id": 6,
        "title": 'Book "5" – a café story',
        "price": 0.05,
        "in_print": True,
        "details": {"pages": 105, "tags": ["new", "blue"]},
        "updated_at": "2024-01-01T00:00:05.000005Z",
    }
    assert bookshop.records(out, "authors")[0] == {"id": 1, "name": "Author No. 1", "born": "1800-04-08"}
    lines = bookshop.records(out, "order_lines")
    assert len(lines) == len({(row["order_id"], row["line"]) for row in lines}) == 1000
    copies = {row["book_id"]: row["copies"] for row in out.records("sales")}
    assert copies == {row["book_id"]: row["copies"] for row in bookshop.records(out, "bestsellers")}
    assert sum(copies.values()) == sum(row["amount"] for row in lines)


def test_a_second_run_brings_changes_and_drops_what_is_gone(bookshop):
    first = run_tap(tap_bookshop.tap, bookshop.config)
    shop.change(bookshop.url)
    second = run_tap(tap_bookshop.tap, bookshop.config, state=first.states[-1])
    assert not second.result.errors
    changed = bookshop.records(second, "books")
    assert {row["id"] for row in changed if row["updated_at"] > "2024-01-01T00:06"} == {1, 301, 302}
    assert len(changed) == 302  # the last five minutes before the bookmark are the whole shop here
    authors = bookshop.prefix + "authors"
    kept = [m for m in second.messages if m.get("stream") == authors]
    assert [m["type"] for m in kept][-1] == "ACTIVATE_VERSION"
    assert len(bookshop.records(second, "authors")) == len(bookshop.records(first, "authors")) - 1
    assert {m["version"] for m in kept if m["type"] == "RECORD"} == {kept[-1]["version"]}
    assert not [m for m in second.messages if m["type"] == "ACTIVATE_VERSION" and m["stream"].endswith("books")]
    assert not [row for row in bookshop.records(second, "order_lines") if row["order_id"] == 1]


def test_a_table_that_was_killed_goes_on_under_its_version(bookshop, tmp_path):
    shop.make(bookshop.url, count_books=20, orders=20_000)
    config, state = tmp_path / "config.json", tmp_path / "state.json"
    config.write_text(json.dumps(bookshop.config))
    table = bookshop.prefix + "order_lines"
    command = [sys.executable, "-m", "burler", "run", str(FOLDER), "--config", str(config), "--select", table]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    first, position = [], None
    for line in process.stdout:  # the tap is ahead by what a pipe holds, and waits there
        message = json.loads(line)
        first.append(message)
        if message["type"] == "STATE":
            position = message["value"]["bookmarks"].get(table, {}).get("full_table")
            if position is not None and position["order_id"] > 5000:
                break
    os.kill(process.pid, signal.SIGKILL)
    process.stdout.close()
    process.wait()
    state.write_text(json.dumps(first[-1]["value"]))
    done = subprocess.run([*command, "--state", str(state)], capture_output=True, check=True)
    second = [json.loads(line) for line in done.stdout.splitlines()]
    rows = [m for m in (*first, *second) if m["type"] == "RECORD"]
    assert {m["version"] for m in rows} == {position["version"]}
    assert second[-2]["type"] == "ACTIVATE_VERSION" and second[-2]["version"] == position["version"]
    again = [m for m in second if m["type"] == "RECORD"]
    assert len(again) < 45_000
    assert {(m["record"]["order_id"], m["record"]["line"]) for m in rows} == {
        (row["order_id"], row["line"]) for row in shop._order_lines(20_000, 20)
    }


def test_the_commands_of_the_readme_work(tmp_path):
    """On a fresh machine, line by line."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    commands = [line[4:] for line in text.partition("## PostgreSQL")[0].splitlines() if line.startswith("    ")]
    assert len(commands) == 5
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for command in commands:
        command = re.sub(r"\bexamples/tap_bookshop", str(FOLDER), command)
        command = command.replace("burler ", f"{sys.executable} -m burler ", 1) if command[:6] == "burler" else command
        command = re.sub(r"^python", sys.executable, command)
        subprocess.run(command, shell=True, check=True, cwd=tmp_path, env=environment, capture_output=True)
    first, second = (
        [json.loads(line) for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()]
        for name in ("first.jsonl", "second.jsonl")
    )
    assert len([m for m in first if m["type"] == "RECORD" and m["stream"] == "books"]) == 500
    changed = [m["record"] for m in second if m["type"] == "RECORD" and m["stream"] == "books"]
    assert 3 <= len(changed) < 500
    assert {501, 502} <= {row["id"] for row in changed}
