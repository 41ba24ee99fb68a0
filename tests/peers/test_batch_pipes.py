"""``burler batch pack`` and ``expand`` between taps and targets that burler has not made."""

import json
from pathlib import Path

import pytest
import same_taps
from batch_pipes import Files, Pipe, messages, own, parsed, without_nulls, write_source

SDK_TAP = Path(same_taps.__file__)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    write_source(folder)
    return folder


@pytest.fixture(scope="module")
def records(tmp_path_factory, peers, source):
    """The rows of a RECORD run of the tap, stream by stream."""
    found = {}
    for line in Pipe(tmp_path_factory.mktemp("records"), peers).tap(source, None):
        [message] = parsed([line.decode()])
        if message["type"] == "RECORD":
            found.setdefault(message["stream"], []).append(message["record"])
    assert found.keys() == {"orders", "kinds", "log", "open"}
    return found


def sdk_tap(pipe, batch_config=None):
    """The messages of a tap on the Singer SDK."""
    config = pipe.folder / "sdk-tap.json"
    config.write_text(json.dumps({} if batch_config is None else {"batch_config": batch_config}))
    return pipe.run([pipe.peers / "python", SDK_TAP, "singer-sdk", "--config", config], b"")


def old_target(pipe, old_peers, given):
    """A target that knows RECORDs alone loads messages: its rows of each stream, and its last STATE."""
    config, folder = pipe.folder / "old-target.json", pipe.folder / "old"
    folder.mkdir()
    config.write_text(json.dumps({"destination_path": str(folder), "do_timestamp_file": False}))
    said = pipe.run([old_peers / "target-jsonl", "--config", config], given)
    rows = {path.stem: parsed(path.read_text(encoding="utf-8").split("\n")) for path in folder.iterdir()}
    return rows, json.loads(said.splitlines()[-1])


def test_pack_gives_the_records_of_any_tap_to_a_target_as_files(tmp_path, peers):
    pipe = Pipe(tmp_path, peers)
    given = sdk_tap(pipe)
    loaded = Files(tmp_path / "records", pipe)
    last = pipe.load(loaded.command, [given])
    for form in ("jsonl", "parquet"):
        packed = pipe.burler("batch", "pack", "--format", form, "--storage", tmp_path / "files", given=given)
        assert {message["type"] for message in messages(packed.splitlines())} == {"SCHEMA", "BATCH", "STATE"}
        batches = Files(tmp_path / form, pipe)
        assert json.loads(pipe.load(batches.command, [packed])) == json.loads(last)
        for name in ("contacts", "companies"):
            assert own(batches.rows(name)) == own(loaded.rows(name))
            assert len(batches.rows(name)) == 3


def test_expand_gives_the_files_of_an_sdk_tap_to_a_target_of_records(tmp_path, peers, old_peers):
    pipe = Pipe(tmp_path, peers)
    storage = {"root": f"file://{tmp_path}/files"}
    given = sdk_tap(pipe, {"encoding": {"format": "jsonl", "compression": "gzip"}, "storage": storage, "batch_size": 2})
    assert [message["type"] for message in messages(given.splitlines())].count("BATCH") == 4
    expanded = pipe.burler("batch", "expand", given=given)
    rows, state = old_target(pipe, old_peers, expanded)
    assert rows == {name: parsed(list(map(json.dumps, same_taps.ROWS))) for name in ("contacts", "companies")}
    assert state == json.loads(given.splitlines()[-1])["value"]


@pytest.mark.parametrize(
    "encoding",
    [
        {"format": "jsonl", "compression": "zstd"},
        pytest.param({"format": "csv", "compression": "gzip"}, marks=pytest.mark.nightly),
        pytest.param({"format": "parquet", "compression": "snappy"}, marks=pytest.mark.nightly),
        pytest.param({"format": "arrow"}, marks=pytest.mark.nightly),
    ],
    ids=["jsonl", "csv", "parquet", "arrow"],
)
def test_expand_gives_files_of_every_kind_to_a_target_of_records(tmp_path, peers, old_peers, source, records, encoding):
    """What no target reads becomes what each one reads; the rows are those of a RECORD run."""
    pipe = Pipe(tmp_path, peers)
    given = b"".join(pipe.tap(source, {"encoding": encoding, "storage": {"root": str(tmp_path / "files")}}))
    rows, state = old_target(pipe, old_peers, pipe.burler("batch", "expand", given=given))
    assert state == json.loads(given.splitlines()[-1])["value"]
    if encoding["format"] == "jsonl":
        assert rows == records
    else:
        assert without_nulls(rows) == without_nulls(records)


def test_a_target_of_records_refuses_batches(tmp_path, peers, old_peers, source):
    """Which is why BATCH is never sent unasked."""
    pipe = Pipe(tmp_path, peers)
    lines = pipe.tap(source, {"storage": {"root": str(tmp_path / "files")}})
    config = tmp_path / "old-target.json"
    config.write_text(json.dumps({"destination_path": str(tmp_path)}))
    ended = pipe.ended([old_peers / "target-jsonl", "--config", config], b"".join(lines))
    assert (ended.returncode, ended.stdout) == (1, b"")
