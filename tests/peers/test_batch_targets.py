"""Two targets on the Singer SDK load burler's batch files: one that others wrote, into PostgreSQL, and one of our own.

What they hold afterwards is what a RECORD run of the same tap has brought.
"""

import json

import pytest
from batch_pipes import Files, Pipe, Tables, messages, own, without_nulls, write_source

STREAMS = ("orders", "kinds", "log")
COUNTS = {"orders": 130, "kinds": 40, "log": 30}
JSONL = {"format": "jsonl", "compression": "none"}
GZIP = {"format": "jsonl", "compression": "gzip"}
PARQUET = {"format": "parquet"}
FORMATS = pytest.mark.parametrize("encoding", [JSONL, GZIP, PARQUET], ids=["jsonl", "gzip", "parquet"])


def config(encoding, root, **more):
    return {"encoding": encoding, "storage": {"root": str(root)}, "batch_size": 25, **more}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    write_source(folder)
    return folder


@pytest.fixture(scope="module")
def expected(tmp_path_factory, peers, postgres, source):
    """What a run with RECORDs loads: into files, into PostgreSQL."""
    folder = tmp_path_factory.mktemp("records")
    pipe = Pipe(folder, peers)
    lines = pipe.tap(source, None)
    targets = {"files": Files(folder / "loaded", pipe), "tables": Tables(folder, pipe, postgres, "records")}
    for target in targets.values():
        pipe.load(target.command, lines)
    loaded = {kind: {name: own(target.rows(name)) for name in STREAMS} for kind, target in targets.items()}
    assert {name: len(rows) for name, rows in loaded["files"].items()} == COUNTS
    assert all(loaded["tables"][name] for name in STREAMS)
    return loaded


def check(pipe, encoding, root, source, expected, targets):
    """A BATCH run of the tap into each target; its messages."""
    lines = pipe.tap(source, config(encoding, root))
    said = messages(lines)
    batches = [message for message in said if message["type"] == "BATCH"]
    assert {message["type"] for message in said} == {"SCHEMA", "BATCH", "STATE"}
    assert {name: sum(one["size"] for one in batches if one["stream"] == name) for name in STREAMS} == COUNTS
    assert [one["size"] for one in batches if one["stream"] == "kinds"] == [25, 15]
    assert all(root in url for one in batches for url in one["manifest"])
    for kind, target in targets.items():
        assert json.loads(pipe.load(target.command, lines)) == said[-1]["value"]
        for name in STREAMS:
            found, wanted = own(target.rows(name)), expected[kind][name]
            if encoding["format"] == "parquet":  # in columns, null and absent are one
                found, wanted = without_nulls(found), without_nulls(wanted)
            assert found == wanted, (kind, name)
    return said


@FORMATS
def test_targets_load_batches_from_a_disk_as_they_load_records(tmp_path, peers, postgres, source, expected, encoding):
    pipe = Pipe(tmp_path, peers)
    tables = Tables(tmp_path, pipe, postgres, "disk_" + "_".join(encoding.values()))
    targets = {"files": Files(tmp_path / "loaded", pipe), "tables": tables}
    check(pipe, encoding, str(tmp_path / "batches"), source, expected, targets)


@FORMATS
def test_targets_load_batches_from_s3_as_they_load_records(
    tmp_path, peers, postgres, s3_server, source, expected, encoding
):
    pipe = Pipe(tmp_path, peers, s3_server.environment)
    tables = Tables(tmp_path, pipe, postgres, "s3_" + "_".join(encoding.values()))
    targets = {"files": Files(tmp_path / "loaded", pipe), "tables": tables}
    said = check(pipe, encoding, s3_server.url("batches"), source, expected, targets)
    assert s3_server.secret not in json.dumps(said)


def test_a_second_run_goes_on_from_the_state_of_the_target(tmp_path, peers, postgres):
    """Rows at or after the bookmark come again, and full tables whole; the tables are those of RECORD runs."""
    pipe = Pipe(tmp_path, peers)
    found = {}
    for kind, batches in {"records": None, "batches": config(GZIP, tmp_path / "batches")}.items():
        tables, state = Tables(tmp_path, pipe, postgres, f"twice_{kind}"), ""
        for later in (False, True):
            write_source(tmp_path / "source", later=later)
            lines = pipe.tap(tmp_path / "source", batches, state=state)
            state = pipe.load(tables.command, lines)
        found[kind] = {name: tables.rows(name) for name in STREAMS}
    assert sum(one["size"] for one in messages(lines) if one["type"] == "BATCH" and one["stream"] == "orders") == 61
    assert {name: len(rows) for name, rows in found["batches"].items()} == {"orders": 160, "kinds": 40, "log": 60}
    for name in STREAMS:
        assert own(found["batches"][name]) == own(found["records"][name]), name
    gone = {kind: [row["id"] for row in rows["kinds"] if row["_sdc_deleted_at"]] for kind, rows in found.items()}
    assert gone == {"records": [3_000_000_000, 3_000_000_001], "batches": []}  # see the next test


def test_why_activate_version_is_kept_back(tmp_path, peers, postgres, source):
    """The SDK stores no version of batched rows, so that ACTIVATE_VERSION drops them all. If this fails, it does now."""
    pipe = Pipe(tmp_path, peers)
    sent = pipe.tap(source, config(JSONL, tmp_path / "batches", activate_version=True))
    kinds = [message for message in messages(sent) if message.get("stream") == "kinds"]
    assert kinds[-1] == {"type": "ACTIVATE_VERSION", "stream": "kinds", "version": kinds[-2]["version"]}

    emptied = Tables(tmp_path, pipe, postgres, "emptied", hard_delete=True)
    pipe.load(emptied.command, sent)
    assert emptied.rows("kinds") == []
    assert len(emptied.rows("orders")) == 130  # an increment has no version

    # A target that is told to take no notice of versions, or has a use for them, may be sent them.
    deaf = Tables(tmp_path, pipe, postgres, "deaf", hard_delete=True, activate_version=False)
    pipe.load(deaf.command, sent)
    assert len(deaf.rows("kinds")) == 40
    files = Files(tmp_path / "loaded", pipe)
    pipe.load(files.command, sent)
    assert set(files.versions("kinds")) == {kinds[-1]["version"]}

    kept_back = pipe.tap(source, config(JSONL, tmp_path / "batches"))
    assert not [message for message in messages(kept_back) if message["type"] == "ACTIVATE_VERSION"]


def test_columns_of_the_sdk_are_empty_in_batched_rows(tmp_path, peers, source):
    pipe = Pipe(tmp_path, peers)
    records, batches = Files(tmp_path / "records", pipe), Files(tmp_path / "batches", pipe)
    pipe.load(records.command, pipe.tap(source, None))
    pipe.load(batches.command, pipe.tap(source, config(JSONL, tmp_path / "files")))
    assert {"_sdc_extracted_at", "_sdc_table_version"} < records.rows("kinds")[0].keys()
    assert not [name for row in batches.rows("kinds") for name in row if name.startswith("_sdc_")]


@pytest.mark.parametrize(
    ("encoding", "more", "error"),
    [
        ({"format": "csv"}, {}, "NotImplementedError: Unsupported batch encoding format: csv"),
        ({"format": "arrow"}, {}, "NotImplementedError: Unsupported batch encoding format: arrow"),
        ({"format": "jsonl", "compression": "zstd"}, {}, "UnicodeDecodeError"),
        (JSONL, {"dialect": "sip"}, "KeyError: 'encoding'"),
    ],
    ids=["csv", "arrow", "zstd", "dialect sip"],
)
def test_what_targets_on_the_sdk_refuse(tmp_path, peers, source, encoding, more, error):
    """They end with an error and no STATE: nothing is lost in silence."""
    pipe = Pipe(tmp_path, peers)
    files = Files(tmp_path / "loaded", pipe)
    lines = pipe.tap(source, config(encoding, tmp_path / "batches", **more))
    ended = pipe.ended(files.command, b"".join(lines))
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert error in ended.stderr.decode()


def test_open_objects_are_for_json_lines(tmp_path, peers, source):
    """In Parquet the SDK gives an object without declared names as its JSON text, a map as a list of pairs."""
    pipe = Pipe(tmp_path, peers)
    loaded = {}
    for name, encoding in {"records": None, "lines": JSONL, "columns": PARQUET}.items():
        files = Files(tmp_path / name, pipe)
        batches = None if encoding is None else config(encoding, tmp_path / "batches")
        pipe.load(files.command, pipe.tap(source, batches))
        loaded[name] = own(files.rows("open"))
    assert loaded["lines"] == loaded["records"]
    assert loaded["records"][1] == {"id": 1, "anything": {"a": [1, {"b": None}]}, "counts": {"x": 1, "y": 2}}
    in_columns = loaded["columns"][1]
    assert json.loads(in_columns["anything"]) == {"a": [1, {"b": None}]}
    assert in_columns["counts"] == [["x", 1], ["y", 2]]
