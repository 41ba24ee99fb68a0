"""tap_starships as its users run it, against its server: what arrives, what comes again, what is asked for."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import requests

import tap_starships
from burler.testing import canary, run_tap, without_times
from tap_starships.data import Data
from tap_starships.server import Faults, Shipyard

FOLDER = Path(tap_starships.__file__).parent
ROOT = FOLDER.parent.parent
STREAMS = ("ships", "crew", "log_entries", "ports")
TOKEN = canary("shipyard")


@pytest.fixture
def serve(monkeypatch):
    """Start servers that end with the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = []

    def start(faults=None, *, ships=20, crew=8):
        block = Shipyard(Data(ships, crew), faults, token=TOKEN).running()
        running.append(block)
        return block.__enter__()

    yield start
    for block in running:
        block.__exit__(None, None, None)


def config(server, **more):
    return {"url": server.url, "access_token": TOKEN, "page_size": 6, **more}


def run(server, state=None, *, select=None, **more):
    return run_tap(tap_starships.tap, config(server, **more), state=state, select=select)


def burler(server, *arguments, **more):
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "TAP_STARSHIPS_URL": server.url}
    environment |= {"TAP_STARSHIPS_ACCESS_TOKEN": TOKEN}
    environment |= {f"TAP_STARSHIPS_{name.upper()}": str(value) for name, value in more.items()}
    command = [sys.executable, "-m", "burler", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def time_of(moment):
    return moment.isoformat().replace("+00:00", "Z")


def canonical(bookmark):
    """A bookmark as rows spell it: it keeps the server's own spelling."""
    return bookmark.replace("+00:00", "Z")


def all_rows(data, since=None):
    """The rows of each stream, as they should arrive."""
    ships = data.ships(since)
    return {
        "ships": [
            {
                "id": ship.id,
                "name": ship.name,
                "shipClass": ship.kind,
                "massTons": float(ship.mass_tons),
                "odometer": ship.odometer,
                "updatedAt": time_of(ship.updated_at),
            }
            for ship in ships
        ],
        "crew": [
            {"id": one.id, "name": one.name, "rank": one.rank, "joined": one.joined.isoformat(), "shipId": ship.id}
            for ship in ships
            for one in ship.crew
        ],
        "log_entries": [
            {
                "kind": "Jump" if one.port is None else "Docking",
                "id": one.id,
                "at": time_of(one.at),
                **({"port": one.port} if one.port is not None else {"lightYears": float(one.light_years)}),
                "shipId": ship.id,
            }
            for ship in ships
            for one in ship.log
        ],
        "ports": data.ports,
    }


def ordered(rows):
    """Rows in the order of their ids, numbers with a fraction as floats."""
    exact = ("massTons", "lightYears")
    plain = [{key: float(value) if key in exact else value for key, value in row.items()} for row in rows]
    return sorted(plain, key=lambda row: row.get("id") or row["code"])


def assert_rows(out, expected):
    assert not out.result.errors
    for name in STREAMS:
        assert ordered(out.records(name)) == ordered(expected[name]), name


def test_all_rows_of_all_streams_arrive_and_fit_their_schemas(serve):
    server = serve()
    out = run(server)
    assert_rows(out, all_rows(server.data))
    schemas = {m["stream"]: m["schema"] for m in out.messages if m["type"] == "SCHEMA"}
    seen = set()
    for message in out.messages:
        if message["type"] == "SCHEMA":
            seen.add(message["stream"])
        elif message["type"] == "RECORD":
            assert message["stream"] in seen
            jsonschema.validate(message["record"], schemas[message["stream"]])
    assert max(len(ship.crew) for ship in server.data.ships()) > 5  # some crews have a second page
    assert [query for query, _variables in server.queries if "node(id: $burlerId)" in query]


def test_messages_of_a_small_shipyard(serve):
    """The whole output of a first run, and of a second one after a change."""
    server = serve(ships=2, crew=7)
    first = run(server, select="ships,crew,log_entries")
    server.data.change(1)
    second = run(server, first.states[-1], select="ships,crew,log_entries")
    lines = [json.dumps(one, default=float) for one in without_times(first.messages + second.messages)]
    assert lines == (FOLDER / "tests" / "expected.jsonl").read_text(encoding="utf-8").splitlines()


def test_a_second_run_brings_what_has_changed(serve):
    server = serve()
    first = run(server)
    bookmark = first.states[-1]["bookmarks"]["ships"]["updatedAt"]
    assert bookmark == server.data.ships()[-1].updated_at.isoformat(), "as the server spells it"
    changed = server.data.change(3)
    server.queries.clear()
    second = run(server, first.states[-1])
    assert server.queries[1][1]["since"] == bookmark
    since = server.data.ships()[-1 - len(set(changed))].updated_at
    assert {row["id"] for row in second.records("ships")} >= set(changed)
    expected = all_rows(server.data)
    from_bookmark = [row for row in expected["ships"] if row["updatedAt"] >= canonical(bookmark)]
    assert ordered(second.records("ships")) == ordered(from_bookmark)
    assert (
        time_of(since)
        <= canonical(second.states[-1]["bookmarks"]["ships"]["updatedAt"])
        == from_bookmark[-1]["updatedAt"]
    )
    ids = {row["id"] for row in from_bookmark}
    assert ordered(second.records("crew")) == ordered([row for row in expected["crew"] if row["shipId"] in ids])


def test_only_what_is_selected_is_asked_for(serve):
    server = serve()
    out = run(server, select="ships.name,crew.rank")
    assert not out.result.errors
    assert set(out.records("ships")[0]) == {"id", "name", "updatedAt"}
    assert set(out.records("crew")[0]) == {"id", "rank"}
    asked = "\n".join(query for query, _variables in server.queries if "__schema" not in query)
    for name in ("massTons", "odometer", "shipClass", "log {", "joined", "ports"):
        assert name not in asked, name
    assert "rank" in asked


def test_a_server_that_throttles_and_limits_costs_no_row(serve):
    server = serve(Faults(throttle_every=9, most_cost=30))
    out = run(server, page_size=20)
    assert_rows(out, all_rows(server.data))
    assert server.refused > 3
    assert min(variables["first"] for query, variables in server.queries if "first" in variables) == 5


def test_a_field_that_fails_fails_its_stream_and_the_bookmark_stays(serve):
    server = serve(Faults(broken=1))
    first = server.data.ships()
    out = run(server)
    assert set(out.result.errors) == {"ships"}
    said = str(out.result.errors["ships"])
    assert "the scales are broken" in said and "massTons [SCALES]" in said
    place = [ship.id for ship in first].index("ship-001")
    saved = (out.states[-1]["bookmarks"].get("ships") or {}).get("updatedAt", "")
    assert canonical(saved) <= time_of(first[place].updated_at)
    assert len(out.records("ports")) == 25
    server.faults = Faults()
    again = run(server, out.states[-1])
    got = {row["id"] for row in (*out.records("ships"), *again.records("ships"))}
    assert got == {ship.id for ship in first}


def test_without_the_mass_the_broken_scales_are_nobodys_business(serve):
    server = serve(Faults(broken=3))
    out = run(server, select="!ships.massTons")
    assert not out.result.errors and len(out.records("ships")) == 20


def test_a_wrong_token_is_one_error_without_the_token(serve, caplog):
    server = serve()
    server.token = "another"
    done = burler(server, "run", str(FOLDER))
    assert done.returncode == 1
    assert "401" in done.stderr and "Traceback" not in done.stderr
    assert TOKEN not in done.stderr + done.stdout


def test_a_server_that_does_not_describe_itself_names_the_cure(serve):
    done = burler(serve(Faults(closed=True)), "discover", str(FOLDER))
    assert done.returncode == 1 or done.returncode == 2
    assert "introspection is off" in done.stderr and "file='schema.graphql'" in done.stderr


@pytest.mark.parametrize("lines", [60, 230, *(pytest.param(n, marks=pytest.mark.nightly) for n in (5, 150))])
def test_killed_at_any_line_and_resumed_nothing_is_missing(serve, lines):
    """SIGKILL once so many lines were read; the next run begins with the last whole STATE among them."""
    server = serve(ships=30)
    environment = {**os.environ, "TAP_STARSHIPS_URL": server.url, "TAP_STARSHIPS_ACCESS_TOKEN": TOKEN}
    environment |= {"NO_PROXY": "127.0.0.1", "TAP_STARSHIPS_PAGE_SIZE": "4"}
    command = [sys.executable, "-m", "burler", "run", str(FOLDER)]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        got = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        got += process.stdout.read().splitlines(keepends=True)
    messages = [json.loads(line) for line in got if line.endswith(b"\n")]
    states = [message["value"] for message in messages if message["type"] == "STATE"]
    again = run(server, states[-1] if states else None)
    assert not again.result.errors
    for name, expected in all_rows(server.data).items():
        rows = [m["record"] for m in messages if m["type"] == "RECORD" and m["stream"] == name] + again.records(name)
        keys = {row.get("id") or row["code"] for row in rows}
        assert keys == {row.get("id") or row["code"] for row in expected}, name


def commands_of_the_readme():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^    (.+)$", text, re.MULTILINE)
    return [line for line in lines if not line.startswith("pip ")]


def test_the_readme_s_commands_work(tmp_path, monkeypatch):
    """As a newcomer types them, but with a port that is free."""
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = commands_of_the_readme()
    servers = [line for line in commands if line.endswith("&")]
    assert len(servers) == 2 and len(commands) == 8
    line = [sys.executable, "-m", *servers[0].rstrip(" &").split()[2:], "--port", "0"]
    with subprocess.Popen(line, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = re.search(r"http://\S+?(?=/graphql)", process.stdout.readline())[0]
            for command in commands:
                if command in servers:
                    continue
                if command.startswith("curl"):
                    requests.post(url + "/changes?count=3", timeout=10).raise_for_status()
                    continue
                done = subprocess.run(
                    command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, done.stderr
                if command.startswith("cp "):
                    sample = json.loads((tmp_path / "config.json").read_text())
                    (tmp_path / "config.json").write_text(json.dumps({**sample, "url": f"{url}/graphql"}))
        finally:
            process.terminate()
            process.wait()
    first = [json.loads(one) for one in (tmp_path / "first.jsonl").read_text().splitlines()]
    second = [json.loads(one) for one in (tmp_path / "second.jsonl").read_text().splitlines()]
    count = [sum(m["type"] == "RECORD" and m["stream"] == "ships" for m in messages) for messages in (first, second)]
    assert count[0] == 40 and 3 <= count[1] <= 6
    assert {m["stream"] for m in first if m["type"] == "RECORD"} == set(STREAMS)
