"""Two targets on the Singer SDK load burler's batch files: one that others wrote, into PostgreSQL, and one of our own.

What they hold afterwards is what a RECORD run of the same tap has brought.
"""

import json

import pytest
from batch_pipes import Files, Pipe, Tables, messages, own, without_nulls, write_source

COUNTS = {"orders": 130, "kinds": 40, "log": 30}
JSONL = {"format": "jsonl", "compression": "none"}
GZIP = {"format": "jsonl", "compression": "gzip"}
PARQUET = {"format": "parquet"}
FORMATS = {"": JSONL, "_gzip": GZIP, "_parquet": PARQUET}


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
    assert {"_sdc_extracted_at", "_sdc_table_version"} < targets["files"].rows("kinds")[0].keys()
    streams = (*COUNTS, "open")
    loaded = {kind: {name: own(target.rows(name)) for name in streams} for kind, target in targets.items()}
    assert {name: len(loaded["files"][name]) for name in COUNTS} == COUNTS
    assert all(loaded["tables"].values())
    return loaded


def check(pipe, root, source, expected, targets):
    """BATCH runs of the tap, in each format, into each target; all messages."""
    runs = {suffix: pipe.tap(source, config(encoding, root), suffix=suffix) for suffix, encoding in FORMATS.items()}
    for suffix, lines in runs.items():
        said = messages(lines)
        batches = [message for message in said if message["type"] == "BATCH"]
        assert {message["type"] for message in said} == {"SCHEMA", "BATCH", "STATE"}
        sizes = {name: [one["size"] for one in batches if one["stream"] == name + suffix] for name in COUNTS}
        assert sizes == {"orders": [25] * 5 + [5], "kinds": [25, 15], "log": [25, 5]}
        assert all(root in url for one in batches for url in one["manifest"])
    lines = [line for lines in runs.values() for line in lines]
    for kind, target in targets.items():
        assert json.loads(pipe.load(target.command, lines)) == messages(lines)[-1]["value"]
        for suffix, encoding in FORMATS.items():
            for name in COUNTS:
                found, wanted = own(target.rows(name + suffix)), expected[kind][name]
                if encoding == PARQUET:  # in columns, null and absent are one
                    found, wanted = without_nulls(found), without_nulls(wanted)
                assert found == wanted, (kind, name, encoding)
    return lines


def test_targets_load_batches_from_a_disk_as_they_load_records(tmp_path, peers, postgres, source, expected):
    pipe = Pipe(tmp_path, peers)
    targets = {"files": Files(tmp_path / "loaded", pipe), "tables": Tables(tmp_path, pipe, postgres, "disk")}
    check(pipe, str(tmp_path / "batches"), source, expected, targets)
    # What the SDK adds to RECORDs it does not add to rows of files.
    rows = targets["files"].rows("kinds")
    assert not [name for row in rows for name in row if name.startswith("_sdc_")]
    # Objects whose names nobody has declared: in Parquet they are text, and maps are lists of pairs.
    for suffix in ("", "_gzip"):
        for kind, target in targets.items():
            assert own(target.rows(f"open{suffix}")) == expected[kind]["open"]
    in_lines, in_columns = (targets["files"].rows(name)[1] for name in ("open", "open_parquet"))
    assert in_lines == {"id": 1, "anything": {"a": [1, {"b": None}]}, "counts": {"x": 1, "y": 2}}
    assert json.loads(in_columns["anything"]) == in_lines["anything"]
    assert in_columns["counts"] == [["x", 1], ["y", 2]]


@pytest.mark.nightly
def test_targets_load_batches_from_s3_as_they_load_records(tmp_path, peers, postgres, s3_server, source, expected):
    pipe = Pipe(tmp_path, peers, s3_server.environment)
    targets = {"files": Files(tmp_path / "loaded", pipe), "tables": Tables(tmp_path, pipe, postgres, "s3")}
    lines = check(pipe, s3_server.url("batches"), source, expected, targets)
    assert s3_server.secret.encode() not in b"".join(lines)


@pytest.mark.nightly
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
        found[kind] = {name: tables.rows(name) for name in COUNTS}
    assert sum(one["size"] for one in messages(lines) if one["type"] == "BATCH" and one["stream"] == "orders") == 61
    assert {name: len(rows) for name, rows in found["batches"].items()} == {"orders": 160, "kinds": 40, "log": 60}
    for name in COUNTS:
        assert own(found["batches"][name]) == own(found["records"][name]), name
    gone = {kind: [row["id"] for row in rows["kinds"] if row["_sdc_deleted_at"]] for kind, rows in found.items()}
    assert gone == {"records": [3_000_000_000, 3_000_000_001], "batches": []}  # see the next test


@pytest.mark.nightly
def test_why_activate_version_is_kept_back(tmp_path, peers, postgres, source):
    """The SDK stores no version of batched rows: ACTIVATE_VERSION drops them all. If this fails, it has learned it."""
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

    kept_back = pipe.tap(source, config(JSONL, tmp_path / "batches"))
    assert not [message for message in messages(kept_back) if message["type"] == "ACTIVATE_VERSION"]


@pytest.mark.parametrize(
    ("encoding", "more", "error"),
    [
        ({"format": "csv"}, {}, "NotImplementedError: Unsupported batch encoding format: csv"),
        pytest.param(
            {"format": "arrow"},
            {},
            "NotImplementedError: Unsupported batch encoding format: arrow",
            marks=pytest.mark.nightly,
        ),
        pytest.param({"format": "jsonl", "compression": "zstd"}, {}, "UnicodeDecodeError", marks=pytest.mark.nightly),
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
