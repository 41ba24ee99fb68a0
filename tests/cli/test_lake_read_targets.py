"""A lake into targets that others built: what they hold is what the tap itself would have loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tapprocess import PYTHON, burler, environment

_PEERS = Path(__file__).parents[1] / "peers"
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "price": {"type": "number", "multipleOf": 0.01},
        "at": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture(scope="module")
def peers() -> Path:
    """The bin folder of the environment that has the Singer SDK."""
    sys.path.append(str(_PEERS))
    try:
        import peers_environment
    finally:
        sys.path.remove(str(_PEERS))
    try:
        return peers_environment.make()
    except peers_environment.NotInstalled as error:
        pytest.skip(f"the peers can't be installed: {error}")


@pytest.fixture(scope="module")
def old_peers(peers: Path) -> Path:
    """The bin folder of the environment with a target on singer-python."""
    import peers_environment

    try:
        return peers_environment.make_old()
    except peers_environment.NotInstalled as error:
        pytest.skip(f"the old peers can't be installed: {error}")


def tap_lines() -> Iterator[dict[str, Any]]:
    """What some tap says: two streams, a schema that grows, a full table with versions."""
    yield {"type": "SCHEMA", "stream": "things", "schema": SCHEMA, "key_properties": ["id"]}
    for n in range(300):
        yield row("things", n, n)
    grown = {**SCHEMA, "properties": {**SCHEMA["properties"], "more": {"type": "string"}}}
    yield {"type": "SCHEMA", "stream": "things", "schema": grown, "key_properties": ["id"]}
    for n in range(300, 500):
        yield row("things", n, n, more="é \U0001f600")
    yield {"type": "SCHEMA", "stream": "kinds", "schema": SCHEMA, "key_properties": ["id"]}
    for n in range(50):
        yield {**row("kinds", n, n), "version": 1_700_000_000_000}
    yield {"type": "ACTIVATE_VERSION", "stream": "kinds", "version": 1_700_000_000_000}
    yield {"type": "STATE", "value": {"bookmarks": {}}}


def row(stream: str, id: int, n: int, **more: Any) -> dict[str, Any]:
    record = {
        "id": id,
        "name": None if n % 7 == 0 else f'n{n} "q"',
        "price": n / 4,
        "at": f"2024-01-02T03:04:{n % 60:02}.123456Z",
        "tags": [str(n)],
        "place": {"city": "X"},
        **more,
    }
    return {"type": "RECORD", "stream": stream, "record": record, "time_extracted": "2024-05-01T00:00:00.000000Z"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tap's messages, and a lake that has them."""
    folder = tmp_path_factory.mktemp("source")
    text = "\n".join([*map(json.dumps, tap_lines()), ""]).encode()
    (folder / "tap.jsonl").write_bytes(text)
    done = burler("lake", "write", "lake", "--tap-id", "tap-any", "--max-file-records", "70", cwd=folder, stdin=text)
    assert done.code == 0, done.stderr
    return folder


def through(commands: list[list[str]], cwd: Path) -> bytes:
    """A pipe of programs; all must end well. Gives what the last one prints."""
    running: list[subprocess.Popen[bytes]] = []
    for command in commands:
        before = running[-1].stdout if running else None
        running.append(
            subprocess.Popen(
                command, cwd=cwd, stdin=before, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_plain()
            )
        )
        if before is not None:
            before.close()
    out, said = running[-1].communicate(timeout=120)
    for one in running[:-1]:
        assert one.stderr is not None
        told = one.stderr.read()
        one.stderr.close()
        assert one.wait(30) == 0, told.decode()
    assert running[-1].returncode == 0, said.decode()
    return out


def _plain() -> dict[str, str]:
    """Warnings of other people's programs are no errors of ours."""
    own = {**environment(), "PYTHONWARNINGS": "default", "PATH": os.environ["PATH"]}
    own.pop("PYTHONPATH", None)  # jsonschema 4, where the suite runs beside it, is not for them
    return own


def loaded(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows by stream, less what targets add about the load itself."""
    out: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        out[path.name.partition("-2")[0].removesuffix(".jsonl")] = [
            {
                name: value
                for name, value in one.items()
                if not name.startswith("_sdc_") or name.endswith("extracted_at")
            }
            for one in rows
        ]
    return out


def read(source: Path, *args: str) -> list[str]:
    return [PYTHON, "-m", "burler", "lake", "read", str(source / "lake"), *args]


def sdk_target(peers: Path, folder: Path) -> list[str]:
    folder.mkdir()
    config = folder.with_suffix(".json")
    config.write_text(json.dumps({"folder": str(folder)}))
    return [str(peers / "python"), str(_PEERS / "programs" / "target_files.py"), "--config", str(config)]


def test_a_target_of_the_sdk_loads_a_lake_as_it_loads_the_tap(source: Path, tmp_path: Path, peers: Path) -> None:
    direct, replayed = tmp_path / "direct", tmp_path / "replayed"
    through([["cat", str(source / "tap.jsonl")], sdk_target(peers, direct)], tmp_path)
    state = through([read(source), sdk_target(peers, replayed)], tmp_path)
    wanted = loaded(direct)
    assert {name: len(rows) for name, rows in wanted.items()} == {"kinds": 50, "things": 500}
    assert loaded(replayed) == wanted
    assert json.loads(state.splitlines()[-1])["bookmarks"]["things"]["sequence"] == 8


def test_a_target_of_the_sdk_is_brought_up_to_date(source: Path, tmp_path: Path, peers: Path) -> None:
    """The target's own STATE, given back to the next run, brings the rest and nothing twice."""
    target = sdk_target(peers, tmp_path / "loaded")
    first = through([read(source, "--stream", "things"), target], tmp_path)
    (tmp_path / "state.json").write_bytes(first.splitlines()[-1])
    second = through([read(source, "--state", str(tmp_path / "state.json")), target], tmp_path)
    assert {name: len(rows) for name, rows in loaded(tmp_path / "loaded").items()} == {"kinds": 50, "things": 500}
    assert set(json.loads(second.splitlines()[-1])["bookmarks"]) == {"kinds", "things"}


def test_a_target_on_singer_python_loads_a_lake(source: Path, tmp_path: Path, old_peers: Path) -> None:
    folder = tmp_path / "loaded"
    folder.mkdir()
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"destination_path": str(folder), "do_timestamp_file": False}))
    target = [str(old_peers / "target-jsonl"), "--config", str(config)]
    out = through([read(source, "--stream", "things", "--columns", "name,place"), target], tmp_path)
    rows = loaded(folder)["things"]
    assert rows[1] == {"id": 1, "name": 'n1 "q"', "place": {"city": "X"}}
    assert [one["id"] for one in rows] == list(range(500))
    assert json.loads(out.splitlines()[-1])["bookmarks"]["things"]["sequence"] == 8
