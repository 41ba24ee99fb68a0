"""tap_helpdesk as its users run it, against its server: what arrives, what is reported, what comes again."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import tap_helpdesk
from burler.testing import run_tap
from tap_helpdesk.data import Data, Size
from tap_helpdesk.faults import Faults
from tap_helpdesk.server import Helpdesk

FOLDER = Path(tap_helpdesk.__file__).parent
STREAMS = ("accounts", "tickets", "comments", "events", "agents")
SMALL = Size(accounts=6, tickets=30, comments=3, events=130, agents=5)


@pytest.fixture
def serve(monkeypatch):
    """Start servers that end with the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    blocks = []

    def start(size=SMALL, faults=None, **more):
        server = Helpdesk(Data(size), faults, **more)
        blocks.append(server.running())
        return blocks[-1].__enter__()

    yield start
    for block in blocks:
        block.__exit__(None, None, None)


def run(server, state=None, select=None, **config):
    return run_tap(
        tap_helpdesk.tap, {"base_url": server.url, "retry_pause_seconds": 0, **config}, state=state, select=select
    )


def command(server, *arguments, **config):
    """What a shell would start: (arguments, environment)."""
    given = {"base_url": server.url, "retry_pause_seconds": 0, **config}
    environment = {f"TAP_HELPDESK_{key.upper()}": str(value) for key, value in given.items()}
    environment |= {"PATH": os.environ["PATH"], "NO_PROXY": "127.0.0.1"}
    return [sys.executable, "-m", "burler", *arguments], environment


def burler(server, *arguments, **config):
    line, environment = command(server, *arguments, **config)
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)


def read(lines):
    """(rows of each stream, values of all STATEs) of lines that a process printed."""
    rows, states = {name: [] for name in STREAMS}, []
    for line in lines:
        message = json.loads(line)
        if message["type"] == "RECORD":
            rows[message["stream"]].append(message["record"])
        elif message["type"] == "STATE":
            states.append(message["value"])
    return rows, states


def all_rows(data):
    """What the server holds."""
    return {
        "accounts": data.accounts,
        "tickets": [row for rows in data.tickets.values() for row in rows],
        "comments": [row for rows in data.comments.values() for row in rows],
        "events": [row for rows in data.events.values() for row in rows],
        "agents": data.agents,
    }


def by_id(rows):
    return {row["id"]: row for row in rows}


def assert_whole(server, *parts):
    """The rows of some runs together are those of the server."""
    for name, rows in all_rows(server.data).items():
        assert by_id(row for part in parts for row in part[name]) == by_id(rows), name


def failing(server):
    """Ids of the tickets whose comments can't be had, and of the accounts whose tickets can't."""
    faults, data = server.faults, server.data
    tickets = {
        row["id"]
        for rows in data.tickets.values()
        for row in rows
        if row["comment_count"] and faults.lasting(f"/tickets/{row['id']}/comments")
    }
    return tickets, {name for name in data.tickets if faults.lasting(f"/accounts/{name}/tickets")}


def test_all_rows_arrive_once(serve):
    server = serve()
    out = run(server)
    assert not out.result.errors
    for name, rows in all_rows(server.data).items():
        assert sorted(out.records(name), key=lambda row: row["id"]) == sorted(rows, key=lambda row: row["id"])


def test_each_account_has_a_bookmark_of_its_own_and_finished_months_leave_none(serve):
    server = serve()
    bookmarks = run(server).states[-1]["bookmarks"]
    saved = {name: entry["updated_at"] for name, entry in bookmarks["tickets"]["partitions"].items()}
    assert saved == {name: rows[-1]["updated_at"] for name, rows in server.data.tickets.items()}
    assert bookmarks["events"] == {"at": server.data.events["2024-06"][-1]["at"]}
    (kept,) = bookmarks["agents"]["source_state"]
    assert (kept["kind"], kept["value"]) == ("odf/etag", server.data.agents_etag())


def test_any_number_of_workers_gives_the_same_rows_and_state(serve):
    server = serve(latency_seconds=0.002)
    one = run(server, partition_workers=1)
    for workers in (2, 16):
        many = run(server, partition_workers=workers)
        for name in STREAMS:
            assert Counter(map(str, many.records(name))) == Counter(map(str, one.records(name)))
        bookmarks = many.states[-1]["bookmarks"]
        for name in ("tickets", "events"):
            assert bookmarks[name] == one.states[-1]["bookmarks"][name]


def test_nothing_new(serve):
    """Tables come whole, but agents say that nothing has changed; of the rest, what stands at its bookmark."""
    server = serve()
    first = run(server)
    before = server.requests
    second = run(server, first.states[-1])
    assert not second.result.errors
    expected = {
        row["id"]
        for rows in server.data.tickets.values()
        for row in rows
        if row["updated_at"] == rows[-1]["updated_at"]
    }
    assert {row["id"] for row in second.records("tickets")} == expected
    assert {row["ticket"] for row in second.records("comments")} <= expected
    assert {row["at"] for row in second.records("events")} == {server.data.events["2024-06"][-1]["at"]}
    assert second.records("accounts") == server.data.accounts
    assert second.records("agents") == []
    kinds = [message["type"] for message in second.messages if message.get("stream") == "agents"]
    assert kinds == ["SCHEMA"]  # no ACTIVATE_VERSION: it would empty the table
    versions = [out.states[-1]["bookmarks"]["agents"]["version"] for out in (first, second)]
    assert versions[0] == versions[1]
    # Of events, the months there are and the last of them; the other five are done.
    assert server.requests - before <= 1 + 1 + len(server.data.accounts) + len(expected) + 2 + 1


def test_what_has_changed_comes_with_the_next_run(serve):
    server = serve()
    first = run(server)
    changed = set(server.data.change(5))
    second = run(server, first.states[-1])
    boundary = {
        row["id"]
        for row in second.records("tickets")
        if row["updated_at"]
        in {e["updated_at"] for e in first.states[-1]["bookmarks"]["tickets"]["partitions"].values()}
    }
    assert {row["id"] for row in second.records("tickets")} - boundary == changed - boundary
    assert changed <= {row["id"] for row in second.records("tickets")}
    assert {row["ticket"] for row in second.records("comments")} >= changed
    assert by_id(second.records("agents")) == by_id(server.data.agents)
    kinds = [message["type"] for message in second.messages if message.get("stream") == "agents"]
    assert kinds == ["SCHEMA", *["RECORD"] * len(server.data.agents), "ACTIVATE_VERSION"]


def test_a_busy_server_is_asked_again(serve):
    server = serve(faults=Faults(busy=1.0))
    out = run(server)
    assert not out.result.errors
    assert_whole(server, {name: out.records(name) for name in STREAMS})


def test_comments_that_can_not_be_had_are_named_and_come_with_the_next_run(serve, tmp_path):
    """404, 500 and replies that take too long, in a real process; then the server is well again."""
    server = serve(faults=Faults(seed=4, not_found=0.04, errors=0.04, slow=0.01, slow_seconds=60))
    missing, _accounts = failing(server)
    assert len({server.faults.lasting(f"/tickets/{ticket}/comments") for ticket in missing}) == 3  # of each kind
    report, state = tmp_path / "report.json", tmp_path / "state.json"
    more = {"timeout_seconds": 0.5, "max_failures": 1000}
    done = burler(server, "run", str(FOLDER), "--report", str(report), "--out-file", str(state), **more)
    assert done.returncode == 1, done.stderr
    first, states = read(done.stdout.splitlines())
    whole = all_rows(server.data)
    for name in ("accounts", "tickets", "events", "agents"):
        assert by_id(first[name]) == by_id(whole[name])
    healthy = [row for row in whole["comments"] if row["ticket"] not in missing]
    assert by_id(first["comments"]) == by_id(healthy)
    reported = report.read_text()
    for ticket in missing:
        assert f"/tickets/{ticket}/comments" in reported
    assert done.stderr.count("CRITICAL") <= 12 and "'comments'" in done.stderr
    assert json.loads(state.read_text()) == states[-1]

    server.faults = Faults()
    again = run(server, states[-1])
    assert not again.result.errors
    second = {name: again.records(name) for name in STREAMS}
    assert {row["ticket"] for row in second["comments"]} >= missing
    assert_whole(server, first, second)
    assert_only_documented_repeats(server, states[-1], missing, second["tickets"])
    third = run(server, again.states[-1])
    assert not {row["ticket"] for row in third.records("comments")} & (missing - boundary(server))


def boundary(server):
    """Tickets that stand at the bookmark of an account that is done."""
    return {
        row["id"]
        for rows in server.data.tickets.values()
        for row in rows
        if row["updated_at"] == rows[-1]["updated_at"]
    }


def assert_only_documented_repeats(server, state, missing, again):
    """Of an account that is whole, tickets at its bookmark come again; else those from the first missing one on."""
    came = {row["id"] for row in again}
    for account, rows in server.data.tickets.items():
        bad = [row for row in rows if row["id"] in missing]
        saved = state["bookmarks"]["tickets"]["partitions"].get(account, {}).get("updated_at", "")
        if bad:
            assert saved <= bad[0]["updated_at"]
        else:
            assert saved == rows[-1]["updated_at"]
        assert {row["id"] for row in rows if row["updated_at"] >= saved} == {row["id"] for row in rows} & came


def test_an_account_that_fails_stops_no_other(serve):
    server = serve(Size(accounts=12, tickets=8, even=True), Faults(seed=1, broken_accounts=0.25))
    _tickets, broken = failing(server)
    assert 1 < len(broken) < 11
    first = run(server)
    assert set(first.result.errors) == {"tickets"}
    failures = first.result.errors["tickets"].failures
    assert {failure.where for failure in failures} == {f"partition {name}" for name in broken}
    assert {row["account"] for row in first.records("tickets")} == set(server.data.tickets) - broken
    server.faults = Faults()
    second = run(server, first.states[-1])
    assert not second.result.errors
    parts = [{name: out.records(name) for name in STREAMS} for out in (first, second)]
    assert_whole(server, *parts)
    assert len([row for row in parts[1]["tickets"] if row["account"] not in broken]) <= len(boundary(server))


@pytest.mark.parametrize(
    "lines", [1, 333, *(pytest.param(other, marks=pytest.mark.nightly) for other in (60, 200, 500, 900))]
)
def test_killed_at_any_line_and_resumed_nothing_is_missing(serve, lines):
    """SIGKILL once so many lines were read; the next run begins with the last whole STATE among them."""
    server = serve()
    line, environment = command(server, "run", str(FOLDER))
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        got = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        got += process.stdout.read().splitlines(keepends=True)
    whole = [one.decode() for one in got if one.endswith(b"\n")]
    first, states = read(whole)
    again = run(server, states[-1] if states else None)
    assert not again.result.errors
    assert_whole(server, first, {name: again.records(name) for name in STREAMS})


def test_streams_that_nobody_selects_are_not_asked_for(serve):
    server = serve()
    done = burler(server, "run", str(FOLDER), "--select", "tickets,!tickets.subject")
    assert done.returncode == 0, done.stderr
    rows, _states = read(done.stdout.splitlines())
    assert by_id(rows["tickets"]) == {
        row["id"]: {key: value for key, value in row.items() if key != "subject"}
        for row in all_rows(server.data)["tickets"]
    }
    assert not any(rows[name] for name in STREAMS if name != "tickets")
    assert server.requests == 1 + len(server.data.accounts)


def test_comments_selected_later_get_their_past(serve):
    server = serve()
    first = run(server, select="tickets")
    second = run(server, first.states[-1])
    assert by_id(second.records("comments")) == by_id(all_rows(server.data)["comments"])


def test_comments_alone(serve):
    server = serve()
    out = run(server, select="comments")
    assert not out.result.errors and out.records("tickets") == []
    assert by_id(out.records("comments")) == by_id(all_rows(server.data)["comments"])
    again = run(server, out.states[-1], select="comments")
    assert {row["ticket"] for row in again.records("comments")} <= boundary(server)


def test_discover_names_all_streams(serve):
    server = serve()
    done = burler(server, "discover", str(FOLDER))
    assert done.returncode == 0, done.stderr
    assert {entry["tap_stream_id"] for entry in json.loads(done.stdout)["streams"]} == set(STREAMS)
    assert server.requests == 0


def test_a_helpdesk_that_is_not_there_is_one_line_a_stream(serve, tmp_path):
    server = serve()
    gone = Helpdesk(Data(Size(accounts=1, tickets=1)))
    gone.server_close()
    done = burler(gone, "run", str(FOLDER))
    assert done.returncode == 1
    critical = [line for line in done.stderr.splitlines() if " CRITICAL " in line]
    assert len(critical) == 4 and all("the connection was refused" in line for line in critical), done.stderr
    assert "Traceback" not in done.stderr
    assert server.requests == 0
