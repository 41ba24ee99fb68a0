"""``burler lake read`` as a process: into pipes, stopped, with broken files."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import singer
from tapprocess import PYTHON, environment, messages_of, shell

from support.cli import burler

ROWS = 3_000
FILES = 12
PAD = "x" * 200


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two streams, one of several files and megabytes; as some tap's messages bring them."""
    folder = tmp_path_factory.mktemp("lake")
    properties = {"id": {"type": "integer"}, "pad": {"type": "string"}, "at": {"type": "string", "format": "date-time"}}
    schema = {"type": "object", "properties": properties}
    lines = []
    for stream in ("few", "many"):
        lines.append({"type": "SCHEMA", "stream": stream, "schema": schema, "key_properties": ["id"]})
        for n in range(ROWS * FILES if stream == "many" else 3):
            row = {"id": n, "pad": PAD, "at": "2024-01-02T03:04:05Z"}
            lines.append({"type": "RECORD", "stream": stream, "record": row, "time_extracted": "2024-05-01T00:00:00Z"})
    text = "\n".join([*map(json.dumps, lines), ""]).encode()
    options = ("--tap-id", "tap-any", "--max-file-records", str(ROWS))
    done = burler("lake", "write", folder / "lake", *options, cwd=folder, stdin=text)
    assert done.code == 0, done.stderr
    return folder / "lake"


@contextmanager
def reading(lake: Path, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """``lake read``, killed at the end."""
    command = [PYTHON, "-m", "burler", "lake", "read", str(lake), *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def records(messages: list[dict[str, Any]], stream: str = "many") -> list[int]:
    return [one["record"]["id"] for one in messages if one["type"] == "RECORD" and one["stream"] == stream]


def test_singer_python_reads_every_line(lake: Path) -> None:
    done = burler("lake", "read", lake, cwd=lake.parent)
    assert done.code == 0, done.stderr
    found = [singer.parse_message(line) for line in done.stdout.decode().splitlines()]
    kinds = [type(one).__name__ for one in found if not isinstance(one, singer.StateMessage)]
    assert kinds == [
        *("SchemaMessage", *["RecordMessage"] * ROWS * FILES),  # the stream whose rows were committed first
        *("SchemaMessage", *["RecordMessage"] * 3),
    ]
    assert isinstance(found[-1], singer.StateMessage)
    rows = [one for one in found if isinstance(one, singer.RecordMessage)]
    assert len(rows) == ROWS * FILES + 3
    assert rows[0].time_extracted.isoformat() == "2024-05-01T00:00:00+00:00"
    assert found[0].key_properties == ["id"]
    assert "stream 'many': 36,000 rows of 12 files" in done.stderr
    assert 'METRIC: {"type":"counter","metric":"record_count","value":3,"tags":{"endpoint":"few"}}' in done.stderr


def test_a_pipe_with_the_state_of_the_last_run(lake: Path, tmp_path: Path) -> None:
    command = f"$BURLER lake read {lake} --stream few > out.jsonl && tail -n 1 out.jsonl > state.json"
    assert shell(command, tmp_path).code == 0
    assert records(messages_of((tmp_path / "out.jsonl").read_bytes()), "few") == [0, 1, 2]
    done = burler("lake", "read", lake, "--stream", "few", "--state", "state.json", cwd=tmp_path)
    assert [one["type"] for one in done.messages] == ["SCHEMA", "STATE"]
    assert done.messages[1] == json.loads((tmp_path / "state.json").read_text())


def test_the_catalog_that_it_prints_is_one_that_it_takes(lake: Path, tmp_path: Path) -> None:
    done = burler("lake", "read", lake, "--discover", cwd=tmp_path)
    catalog = json.loads(done.stdout)
    assert [one["tap_stream_id"] for one in catalog["streams"]] == ["many", "few"]
    assert singer.Catalog.from_dict(catalog).get_stream("few").is_selected()
    catalog["streams"][0]["metadata"][0]["metadata"]["selected"] = False
    (tmp_path / "catalog.json").write_text(json.dumps(catalog))
    done = burler("lake", "read", lake, "--catalog", "catalog.json", cwd=tmp_path)
    assert "selects no stream" not in done.stderr
    for option in ("--catalog", "--properties"):
        out = burler("lake", "read", lake, option, "catalog.json", "--columns", "at", cwd=tmp_path).messages
        assert [one.get("stream") for one in out] == ["few"] * 4 + [None]
        assert out[1]["record"] == {"id": 0, "at": "2024-01-02T03:04:05Z"}
    catalog["streams"][1]["metadata"][0]["metadata"]["selected"] = False
    (tmp_path / "catalog.json").write_text(json.dumps(catalog))
    done = burler("lake", "read", lake, "--catalog", "catalog.json", cwd=tmp_path)
    assert done.code == 0
    assert "--catalog selects no stream of this lake: nothing is read." in done.stderr


def test_batch_messages_of_a_lake(lake: Path, tmp_path: Path) -> None:
    done = shell(f"$BURLER lake read {lake} --stream few | $BURLER batch pack --storage ./files", tmp_path)
    assert done.code == 0, done.stderr
    assert [one["type"] for one in done.messages] == ["SCHEMA", "BATCH", "STATE"]
    done = shell(f"$BURLER lake read {lake} --stream few | $BURLER batch pack | $BURLER batch expand", tmp_path)
    assert records(done.messages, "few") == [0, 1, 2]


def test_stopped_lines_are_whole_and_the_state_is_safe(lake: Path, tmp_path: Path) -> None:
    with reading(lake, "--stream", "many") as process:
        assert process.stdout is not None
        begun = process.stdout.read(3_000_000)
        process.send_signal(signal.SIGTERM)
        rest, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    out = messages_of(begun + rest)
    ids = records(out)
    assert 0 < len(ids) < ROWS * FILES
    state = out[-1]["value"]
    covered = state["bookmarks"].get("many", {"sequence": 0})["sequence"] * ROWS
    assert covered <= len(ids) < covered + 3 * ROWS
    (tmp_path / "state.json").write_text(json.dumps(state))
    after = records(burler("lake", "read", lake, "--state", "state.json", "--stream", "many", cwd=tmp_path).messages)
    assert [*ids[:covered], *after] == list(range(ROWS * FILES))


def test_a_target_that_ends_early(lake: Path) -> None:
    with reading(lake) as process:
        assert process.stdout is not None
        process.stdout.read(100_000)
        process.stdout.close()
        process.stdout = None
        _, said = process.communicate(timeout=30)
    assert process.returncode == 4
    assert b"has gone" in said
    assert b"Traceback" not in said


def test_a_second_signal_ends_a_run_that_nobody_reads(lake: Path) -> None:
    with reading(lake) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM


def test_a_broken_file_is_named_with_the_cure(lake: Path, tmp_path: Path) -> None:
    copy = tmp_path / "lake"
    subprocess.run(["cp", "-r", str(lake), str(copy)], check=True)
    broken = sorted(copy.glob("raw/tap-any/many/*/*-5.singer.gz"))[0]
    broken.write_bytes(broken.read_bytes()[:-100])
    done = burler("lake", "read", copy, cwd=tmp_path)
    assert done.code == 1
    critical = done.one_critical()
    assert "stream 'many'" in critical
    assert broken.name in critical
    assert "Restore it from a copy" in critical
    assert records(done.messages, "few") == [0, 1, 2]
    state = done.messages[-1]["value"]["bookmarks"]
    assert state["many"]["sequence"] == 4
    assert set(range(4 * ROWS)) <= set(records(done.messages)) <= set(range(5 * ROWS))


def test_a_broken_manifest_fails_its_stream_alone(lake: Path, tmp_path: Path) -> None:
    copy = tmp_path / "lake"
    subprocess.run(["cp", "-r", str(lake), str(copy)], check=True)
    (copy / "raw/tap-any/many/manifest.json").write_text('{"x":')
    (tmp_path / "state.json").write_text('{"bookmarks": {"many": {"generation": "a", "sequence": 4}}}')
    done = burler("lake", "read", copy, "--state", "state.json", cwd=tmp_path)
    assert done.code == 1
    assert "stream 'many': " in done.one_critical()
    assert "Make it anew: burler lake rebuild" in done.one_critical()
    assert records(done.messages, "few") == [0, 1, 2]
    assert done.messages[-1]["value"]["bookmarks"]["many"] == {"generation": "a", "sequence": 4}
    done = burler("lake", "read", copy, "--discover", cwd=tmp_path)
    assert done.code == 1
    assert [one["stream"] for one in json.loads(done.stdout)["streams"]] == ["few"]
    assert "stream 'many': " in done.one_critical()


@pytest.mark.parametrize(
    ("args", "fact"),
    [
        (["nowhere"], "there is no lake at nowhere: no such folder. Is it spelled right?"),
        (["LAKE", "--stream", "none"], "no stream 'none' in this lake. It has: few, many."),
        (["LAKE", "--stream", "mny"], "no stream 'mny' in this lake. Did you mean 'many'? It has: few, many."),
        (["LAKE", "--tap", "tap-y"], "no tap 'tap-y' in this lake. Did you mean 'tap-any'? It has: tap-any."),
        (["LAKE", "--schema", "v7"], "no stream has the schema version 'v7'"),
        (["LAKE", "--since", "soon"], "since: 'soon' is no RFC 3339 date-time"),
        (["LAKE", "--since", "2024-05-02", "--until", "2024-05-01"], "nothing lies between"),
        (["LAKE", "--columns", "id,,pad"], "a name is empty"),
        (["LAKE", "--columns", "nope"], "has the field 'nope'. Fields: at, id, pad"),
        (["LAKE", "--state", "missing.json"], "state file missing.json can't be read"),
        (["LAKE", "--catalog", "missing.json"], "catalog missing.json can't be read"),
        (["LAKE", "--lake-options", "{"], "--lake-options"),
    ],
)
def test_what_can_not_be_is_told_before_anything_goes_out(
    lake: Path, tmp_path: Path, args: list[str], fact: str
) -> None:
    done = burler("lake", "read", *(str(lake) if one == "LAKE" else one for one in args), cwd=tmp_path)
    assert done.code == 2
    assert done.stdout == b""
    assert fact in done.one_critical()


def test_the_same_bytes_in_each_run(lake: Path, tmp_path: Path) -> None:
    """Fields of ``--columns`` come in one order, whatever Python's hashes are in a run."""
    runs = {
        burler("lake", "read", lake, "--stream", "few", "--columns", "at,pad", cwd=tmp_path, PYTHONHASHSEED=seed).stdout
        for seed in ("1", "2", "3")
    }
    assert len(runs) == 1
