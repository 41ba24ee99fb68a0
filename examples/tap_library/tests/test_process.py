"""tap_library as a process: wrong tokens, servers that go away, kills, limits, and the commands of its README."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tap_library
from burler.testing import canary, run_tap
from support import cli
from tap_library.data import Size

FOLDER = Path(tap_library.__file__).parent
ROOT = FOLDER.parents[1]
WAIT = (
    "until python -c \"import socket; socket.create_connection(('127.0.0.1', $PORT))\"; do sleep 0.1; done 2> /dev/null"
)


def at_night(*values):
    """Other places, at night."""
    return [pytest.param(value, marks=pytest.mark.nightly) for value in values]


def command(server, *arguments, **config):
    """What a shell would start: (arguments, environment)."""
    given = server.config(**config)
    environment = {f"TAP_LIBRARY_{key.upper()}": str(value) for key, value in given.items()}
    environment |= {"PATH": os.environ["PATH"], "NO_PROXY": "127.0.0.1"}
    return [sys.executable, "-m", "burler", *arguments], environment


def burler(server, *arguments, **config):
    _line, environment = command(server, *arguments, **config)
    return cli.burler(*arguments, **environment)


def read(lines):
    """(rows of each stream by their keys, values of all STATEs) of lines that a process printed."""
    rows, states, keys = {}, [], {}
    for message in map(json.loads, lines):
        if message["type"] == "SCHEMA":
            keys[message["stream"]] = message["key_properties"]
        elif message["type"] == "RECORD":
            row = message["record"]
            rows.setdefault(message["stream"], {})[tuple(row[name] for name in keys[message["stream"]])] = row
        elif message["type"] == "STATE":
            states.append(message["value"])
    return rows, states


def assert_whole(server, *parts):
    tables = {"books": "isbn", "loans": "id", "loan_events": "id", "authors": "id", "branches": "id", "rooms": "id"}
    for table, key in tables.items():
        wanted = {(row[key],): row for row in server.library.rows(table)}
        came = {}
        for part in parts:
            came |= part.get(table, {})
        assert set(came) == set(wanted), table
        for one, row in came.items():
            assert row == {name: wanted[one][name] for name in row}, table


def test_a_wrong_token_is_one_error(serve, tmp_path):
    server = serve(Size(2, 2, 2, 2, 2))
    wrong, report = canary("library-wrong"), tmp_path / "report.json"
    done = burler(server, "run", str(FOLDER), "--report", str(report), access_token=wrong)
    assert done.code == 1 and done.text == ""
    critical = done.lines("CRITICAL")
    assert len(critical) == 1 and "401" in critical[0] and f"{server.url}/-/versions.json" in critical[0], done.stderr
    assert "Traceback" not in done.stderr
    assert len(server.asked()) == 1  # asked once: it is no matter of trying again
    for text in (done.stderr, report.read_text() if report.exists() else "", server.log_path.name):
        assert wrong not in text and server.token not in text


def test_a_server_that_is_not_there_is_one_error(serve):
    server = serve(Size(1, 1, 1, 1, 1), own=True)
    server.stop()
    done = burler(server, "run", str(FOLDER), max_wait_seconds=0.2)
    assert done.code == 1 and done.text == ""
    critical = done.lines("CRITICAL")
    assert len(critical) == 1 and server.url in critical[0], done.stderr
    assert server.token not in done.stderr and "Traceback" not in done.stderr


def test_a_server_that_starts_again_in_the_middle_costs_no_row(serve, tmp_path):
    server = serve(Size(branches=4, authors=200, books=200, loans=200, events=2), own=True)
    report = tmp_path / "report.json"
    line, environment = command(server, "run", str(FOLDER), "--report", str(report), max_wait_seconds=60)
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True) as process:
        heard = []
        listening = threading.Thread(target=lambda: heard.extend(process.stderr), daemon=True)
        listening.start()
        lines = [process.stdout.readline() for _ in range(500)]
        server.stop()
        again = threading.Timer(0.7, server.start)
        again.start()
        lines += process.stdout.readlines()
        again.join()
        listening.join()
    said = "".join(heard)
    assert process.returncode == 0, said
    assert_whole(server, read(lines)[0])
    counts = json.dumps(json.loads(report.read_text()))
    assert re.search(r'"retries"', counts), counts
    assert server.token not in said + counts


@pytest.mark.parametrize("lines", [1, *at_night(120, 250), 400, *at_night(700)])
def test_killed_at_any_line_and_run_again_nothing_is_missing(serve, lines):
    server = serve()
    line, environment = command(server, "run", str(FOLDER))
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        got = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        got += process.stdout.read().splitlines(keepends=True)
    first, states = read(one.decode() for one in got if one.endswith(b"\n"))
    again = run_tap(tap_library.tap, server.config(), state=states[-1] if states else None)
    assert not again.result.errors
    second, _states = read(json.dumps(message) for message in again.messages)
    assert_whole(server, first, second)


@pytest.mark.parametrize("streams", ["books,summaries", *at_night("loans,loan_events")])
def test_stopped_while_it_waits_for_a_server_that_is_away_it_ends_soon(serve, streams):
    """SIGTERM between two tries, on the main thread and in workers; then the server is back, and the next run brings
    the rest."""
    server = serve(Size(branches=4, authors=5, books=300, loans=500, events=2), own=True)
    line, environment = command(server, "run", str(FOLDER), "--select", streams)
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True) as process:
        got = [process.stdout.readline() for _ in range(3)]
        server.stop()  # the tap can't be done: more than a pipe holds is still to come
        listening = threading.Thread(target=lambda: got.extend(process.stdout), daemon=True)
        listening.start()
        said = next(one for one in process.stderr if "retry 2 of" in one or "tap-library: succeeded" in one)
        assert "retry" in said, "it was done before the server ended"
        process.send_signal(signal.SIGTERM)
        said += process.stderr.read()
        assert process.wait(30) == 0, said
        listening.join()
    server.start()
    first, states = read(got)
    again = run_tap(tap_library.tap, server.config(), select=streams, state=states[-1])
    assert not again.result.errors
    second, _states = read(json.dumps(message) for message in again.messages)
    for table, key in {"books": "isbn", "summaries": "isbn", "loans": "id", "loan_events": "id"}.items():
        if table in streams.split(","):
            wanted = {row[key] for row in server.library.rows("books" if table == "summaries" else table)}
            assert {one for (one,) in {**first.get(table, {}), **second.get(table, {})}} == wanted, table


def test_a_library_that_limits_requests_is_not_asked_too_often(serve, tmp_path):
    """More requests than a window allows: the tap sees that from the headers, and waits; all rows arrive."""
    server = serve(Size(branches=2, authors=3, books=30, loans=40, events=1), requests=40, seconds=1.0)
    report = tmp_path / "report.json"
    done = burler(server, "run", str(FOLDER), "--report", str(report))
    assert done.code == 0, done.stderr
    assert_whole(server, read(done.text.splitlines())[0])
    refused = [line for line in server.asked() if line["status"] == 429]
    assert len(refused) <= 12  # four workers at a time may be on their way when a window ends


def test_discover_asks_nobody(serve):
    server = serve(Size(1, 1, 1, 1, 1))
    done = burler(server, "discover", str(FOLDER))
    assert done.code == 0, done.stderr
    found = {entry["tap_stream_id"]: entry for entry in json.loads(done.stdout)["streams"]}
    assert set(found) == set(tap_library.STREAMS)
    assert {
        name: entry["replication_method"] for name, entry in found.items() if "INCR" in entry["replication_method"]
    } == dict.fromkeys(("books", "summaries", "loans", "loan_events"), "INCREMENTAL")
    assert server.asked() == []


def test_the_commands_of_the_readme_do_what_it_says(tmp_path):
    """Each line of the README's shell blocks, but for those that install; the server has a port of its own."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    lines = [line[4:] for line in text.splitlines() if line.startswith("    ") and not line.startswith("     ")]
    lines = [line for line in lines if not re.match(r"python3? -m venv|\. \.venv|pip ", line)]
    assert sum("burler run" in line for line in lines) >= 3 and lines[0].startswith(
        "python -m examples.tap_library.server"
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    script = "set -e\n" + "\n".join(lines) + "\n"
    script = script.replace(" &\n", f" --port {port} --books 40 --loans 50 &\n{WAIT}\n", 1)
    script = script.replace("config.json\n", f"config.json\nsed -i s/8001/{port}/ config.json\n", 1)
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name, module in {"python": "", "burler": "-m burler"}.items():
        (binaries / name).write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
        (binaries / name).chmod(0o755)
    environment = {"PATH": f"{binaries}:{os.environ['PATH']}", "NO_PROXY": "127.0.0.1", "PORT": str(port)}
    with open(tmp_path / "said.txt", "w+") as said:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=tmp_path, env=environment, stdout=said, stderr=said, start_new_session=True
        )
        try:
            code = shell.wait(120)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)  # the server that it has left
            shell.wait()
        said.seek(0)
        assert code == 0, said.read()
    first, second, third = (
        read((tmp_path / f"{name}.jsonl").read_text().splitlines())[0] for name in ("first", "second", "third")
    )
    assert set(first) == set(tap_library.STREAMS) and len(first["books"]) == 40
    gone = {"branches", "rooms", "opening_hours", "closed_days"}
    assert set(second) == set(first) - gone and len(second["authors"]) == 250
    assert set(third) - set(second) == {"branches", "rooms", "closed_days"}
    assert len(third["branches"]) == 6 and len(third["books"]) >= 3 and len(third["loans"]) >= 5
