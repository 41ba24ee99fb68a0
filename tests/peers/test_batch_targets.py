"""Two targets on the Singer SDK load burler's batch files: one that others wrote, into PostgreSQL, and one of our own.

What they hold afterwards is what a RECORD run of the same tap has brought.
"""

import json

import pytest
from batch_pipes import Files, Pipe, Tables, messages, own, without_nulls, write_source

STREAMS = ("orders", "kinds", "log")
JSONL, GZIP, PARQUET = (
    {"format": "jsonl", "compression": "none"},
    {"format": "jsonl", "compression": "gzip"},
    {"format": "parquet"},
)
COUNTS = {"orders": 130, "kinds": 40, "log": 30}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    write_source(folder)
    return folder


@pytest.fixture(scope="module")
def expected(tmp_path_factory, peers, postgres, source):
    """What a run with RECORDs loads: of the SDK's own class, and in PostgreSQL."""
    folder = tmp_path_factory.mktemp("records")
    pipe = Pipe(folder, peers)
    lines = pipe.tap(source, None)
    files, tables = Files(folder / "loaded", pipe), Tables(folder, pipe, postgres, "records")
    states = [pipe.load(target.command, lines) for target in (files, tables)]
    assert states[0] == states[1]
    loaded = {name: own(files.rows(name)) for name in STREAMS}
    assert {name: len(rows) for name, rows in loaded.items()} == COUNTS
    return {"files": loaded, "tables": {name: own(tables.rows(name)) for name in STREAMS}, "state": states[0]}


def config(encoding, root, **more):
    return {"encoding": encoding, "storage": {"root": root}, "batch_size": 25, **more}


def equal(found, wanted, encoding):
    """Rows are the same; in columns, null and absent are one."""
    if encoding["format"] == "parquet":
        found, wanted = without_nulls(found), without_nulls(wanted)
    return found == wanted


def check(pipe, encoding, root, source, expected, files, tables):
    lines = pipe.tap(source, config(encoding, root))
    said = messages(lines)
    batches = [message for message in said if message["type"] == "BATCH"]
    assert not [message for message in said if message["type"] == "RECORD"]
    assert {name: sum(m["size"] for m in batches if m["stream"] == name) for name in STREAMS} == COUNTS
    assert [m["size"] for m in batches if m["stream"] == "kinds"] == [25, 15]
    assert all(url.startswith(root if "://" in root else f"file://{root}") for m in batches for url in m["manifest"])
    for target in (files, tables):
        assert json.loads(pipe.load(target.command, lines)) == json.loads(expected["state"]) | {}
    for name in STREAMS:
        assert equal(own(files.rows(name)), expected["files"][name], encoding), name
        assert equal(own(tables.rows(name)), expected["tables"][name], encoding), name
    return said


@pytest.mark.parametrize("encoding", [JSONL, GZIP, PARQUET], ids=["jsonl", "gzip", "parquet"])
def test_targets_load_batches_from_a_disk_as_they_load_records(tmp_path, peers, postgres, source, expected, encoding):
    pipe = Pipe(tmp_path, peers)
    name = "disk_" + "_".join(encoding.values())
    files, tables = Files(tmp_path / "loaded", pipe), Tables(tmp_path, pipe, postgres, name)
    check(pipe, encoding, str(tmp_path / "batches"), source, expected, files, tables)


@pytest.mark.parametrize("encoding", [JSONL, GZIP, PARQUET], ids=["jsonl", "gzip", "parquet"])
def test_targets_load_batches_from_s3_as_they_load_records(
    tmp_path, peers, postgres, s3_server, source, expected, encoding
):
    pipe = Pipe(tmp_path, peers, s3_server.environment)
    name = "s3_" + "_".join(encoding.values())
    files, tables = Files(tmp_path / "loaded", pipe), Tables(tmp_path, pipe, postgres, name)
    said = check(pipe, encoding, s3_server.url("batches"), source, expected, files, tables)
    assert s3_server.secret not in json.dumps(said)
