"""What lies in a lake after a writer was there."""

from __future__ import annotations

import bz2
import datetime as dt
import errno
import functools
import gzip
import json
import logging
import os
import random
import subprocess
import sys
from typing import Any

import pytest

from burler.errors import BurlerError, LockLost, MessageError, StorageError, UsageError
from burler.lake import load, read_catalogue, read_singerlake
from burler.singer.messages import ActivateVersion, Records, Schema
from support.internals import hashing

NOON = dt.datetime(2024, 1, 2, 12, 0, 0, tzinfo=dt.UTC)


def test_one_page_becomes_one_file_at_its_place(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1, 2))
        assert lake.files() == []
    digest = hashing.schema_hash(hashing.schema_line(lake.schema()))
    (path,) = lake.files()
    folder = lake.path / "raw" / "tap-x" / "users" / digest
    assert path == folder / "users-20240102T120000Z-20240102T120000Z.singer.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    assert lines[0] == hashing.schema_line(lake.schema()) + b"\n"
    assert b"".join(lines[1:]) == lake.page("users", 1, 2).lines
    assert lake.hidden() == []


def test_zcat_and_head_prove_the_folder(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema(note={"maximum": 9223372036854775807, "x": "ü"}))
        writer.records(lake.page("users", *range(50)))
    (path,) = lake.files()
    line = subprocess.run(f"zcat '{path}' | head -1", shell=True, check=True, capture_output=True).stdout
    assert hashing.schema_hash(line.rstrip(b"\n")) == path.parent.name


def test_the_statistics(lake: Any) -> None:
    later = NOON + dt.timedelta(seconds=61, microseconds=5)
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1, at=later, version=9))
        writer.records(lake.page("users", 2, 3, at=NOON, version=3))
        writer.activate_version(ActivateVersion("users", 3))
        writer.activate_version(ActivateVersion("users", 9))
    (file,) = lake.load().files
    stats = file.stats
    assert stats.records == 3
    assert stats.bytes == len(gzip.decompress(lake.files()[0].read_bytes()))
    assert (stats.first, stats.last) == ("2024-01-02T12:00:00.000000Z", "2024-01-02T12:01:01.000005Z")
    assert (stats.activate_version, stats.versions, stats.clean, stats.sequence) == (9, (3, 9), True, 1)
    assert (stats.written, stats.stored_bytes) == ("2024-01-02T12:00:00.000000Z", lake.files()[0].stat().st_size)
    assert lake.files()[0].name == "users-20240102T120000Z-20240102T120101Z.singer.gz"
    kinds = [message["type"] for message in lake.messages()]
    assert kinds == ["SCHEMA", "RECORD", "RECORD", "RECORD", "ACTIVATE_VERSION", "ACTIVATE_VERSION"]


def test_one_unclean_record_makes_the_file_unclean_and_only_that_one(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1))
        writer.records(lake.page("users", {"id": 1.5}))
        writer.records(lake.page("users", 2))
        writer.flush()
        writer.records(lake.page("users", 3))
    assert [file.clean for file in lake.load().files] == [False, True]


def test_the_same_schema_again_goes_on_with_the_file(lake: Any) -> None:
    with lake.writer() as writer:
        for number in range(3):
            writer.schema(Schema("users", dict(reversed(lake.schema().schema.items())), ("id",)))
            writer.records(lake.page("users", number))
    assert [message["type"] for message in lake.messages()] == ["SCHEMA", "RECORD", "RECORD", "RECORD"]


def test_another_schema_begins_another_file_in_another_folder(lake: Any) -> None:
    one, two = lake.schema(), lake.schema(note={"type": "string"})
    with lake.writer() as writer:
        for schema, number in ((one, 1), (two, 2), (one, 3)):
            writer.schema(schema)
            writer.records(lake.page("users", number))
    assert [file.hash for file in lake.load().files] == [
        hashing.schema_hash(hashing.schema_line(s)) for s in (one, two, one)
    ]
    assert lake.ids() == [1, 2, 3]
    assert list(lake.load().versions.values()) == ["v1", "v2"]
    catalog = read_catalogue(lake.store, "tap-x")
    assert catalog is not None
    assert catalog["streams"][0]["schema"] == one.schema


def test_streams_have_files_of_their_own(lake: Any) -> None:
    with lake.writer() as writer:
        for stream in ("users", "orders"):
            writer.schema(lake.schema(stream))
        for number in range(4):
            writer.records(lake.page(("users", "orders")[number % 2], number))
    assert (lake.ids("users"), lake.ids("orders")) == ([0, 2], [1, 3])
    for stream in ("users", "orders"):
        assert {message["stream"] for message in lake.messages(stream)} == {stream}


def test_25000_rows_of_one_time_are_all_kept(lake: Any) -> None:
    with lake.writer(max_file_records=1000) as writer:
        writer.schema(lake.schema())
        for start in range(0, 25000, 2500):
            writer.records(lake.page("users", *range(start, start + 2500)))
    assert lake.ids() == list(range(25000))
    assert len(lake.files()) == 25
    assert {file.stats.records for file in lake.load().files} == {1000}
    assert len(list(lake.path.rglob("*-25.singer.gz"))) == 1


def test_a_taken_name_gets_a_number_and_is_not_touched(lake: Any) -> None:
    for number in (1, 2, 3):
        with lake.writer() as writer:
            writer.schema(lake.schema())
            writer.records(lake.page("users", number))
    assert {path.name.removeprefix("users-20240102T120000Z-20240102T120000Z") for path in lake.files()} == {
        ".singer.gz",
        "-2.singer.gz",
        "-3.singer.gz",
    }
    assert lake.ids() == [1, 2, 3]


def test_files_roll_by_bytes_between_lines(lake: Any) -> None:
    page = lake.page("users", *range(100))
    line = len(page.lines) // 100
    limit = len(hashing.schema_line(lake.schema())) + 1 + 10 * (line + 2)
    with lake.writer(max_file_bytes=limit) as writer:
        writer.schema(lake.schema())
        writer.records(page)
    assert lake.ids() == list(range(100))
    sizes = [file.stats.bytes for file in lake.load().files]
    assert max(sizes) <= limit
    assert min(sizes[:-1]) > limit - line - 3
    assert sum(file.stats.records for file in lake.load().files) == 100


@pytest.mark.parametrize(("short", "lines"), [(0, 10), (1, 9)])
def test_a_file_takes_what_fits_to_the_byte(lake: Any, short: int, lines: int) -> None:
    page = lake.page("users", *range(10, 50))
    limit = len(hashing.schema_line(lake.schema())) + 1 + len(page.lines) // 4 - short
    with lake.writer(max_file_bytes=limit) as writer:
        writer.schema(lake.schema())
        writer.records(page)
    assert [file.stats.records for file in lake.load().files][:4] == [lines] * 4
    assert lake.ids() == list(range(10, 50))


def test_a_line_greater_than_a_file_still_goes_in(lake: Any) -> None:
    with lake.writer(max_file_bytes=1) as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1, 2, 3))
    assert [file.stats.records for file in lake.load().files] == [1, 1, 1]


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_files_roll_by_records(lake: Any, kind: type) -> None:
    with lake.writer(max_file_records=3) as writer:
        writer.schema(lake.schema())
        for start in (0, 2, 4, 11):
            page = lake.page("users", *range(start, {0: 2, 2: 4, 4: 11, 11: 12}[start]))
            writer.records(Records(page.stream, kind(page.lines), page.count, page.time_extracted))
    assert [file.stats.records for file in lake.load().files] == [3, 3, 3, 3]
    assert lake.ids() == list(range(12))


def test_times_of_single_lines_make_the_name(lake: Any) -> None:
    times = [f"2024-01-02T12:00:{second:02d}.500000Z" for second in (5, 1, 9, 7)]
    lines = b"".join(
        b'{"type":"RECORD","stream":"users","record":{"id":%d},"time_extracted":"%s"}\n' % (n, time.encode())
        for n, time in enumerate(times)
    )
    with lake.writer(max_file_records=2) as writer:
        writer.schema(lake.schema())
        writer.page("users", lines, 4, times)
        writer.record_line("users", lines.splitlines(keepends=True)[0], NOON + dt.timedelta(days=1))
    assert [(file.stats.first[17:19], file.stats.last[17:19]) for file in lake.load().files] == [
        ("01", "05"),
        ("07", "09"),
        ("00", "00"),
    ]


def test_files_roll_by_age_while_nothing_comes(lake: Any) -> None:
    writer = lake.writer(max_file_age_seconds=60.0)
    writer.schema(lake.schema())
    writer.records(lake.page("users", 1))
    writer.state(lake.state(1))
    assert writer.next_due_seconds == 60.0
    lake.clock.forward(59.9)
    writer.tick()
    assert (lake.files(), lake.states) == ([], [])
    lake.clock.forward(0.2)
    assert writer.next_due_seconds == 0.0
    writer.tick()
    assert lake.ids() == [1]
    assert lake.states == [{"at": 1}]
    assert writer.next_due_seconds is None
    writer.close()
    writer.tick()


def test_files_roll_by_age_without_a_timer_too(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        for number in range(4):
            writer.records(lake.page("users", number))
            lake.clock.forward(31)
    assert [file.stats.records for file in lake.load().files] == [2, 2]


def test_a_stream_without_rows_is_known_and_has_no_file(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema(note={}))
        writer.schema(lake.schema())
        writer.state(lake.state(1))
        assert lake.states == [{"at": 1}]
    assert lake.files() == []
    snapshot = lake.load()
    assert list(snapshot.versions.values()) == ["v1", "v2"]
    assert snapshot.schema_lines[snapshot.hashes[1]] == hashing.schema_line(lake.schema())
    catalog = read_catalogue(lake.store, "tap-x")
    assert catalog is not None
    assert [entry["stream"] for entry in catalog["streams"]] == ["users"]


def test_a_file_of_nothing_but_activate_version(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.activate_version(ActivateVersion("users", 5))
        writer.state(lake.state(1))
        assert lake.states == []
    (file,) = lake.load().files
    assert file.path.endswith("/users-20240102T120000Z-20240102T120000Z.singer.gz")
    assert (file.stats.records, file.stats.activate_version, file.stats.versions) == (0, 5, None)
    assert file.clean
    assert lake.states == [{"at": 1}]


def test_data_before_its_schema_is_refused_and_harms_nothing(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1))
        with pytest.raises(MessageError, match="stream 'orders': data came before its SCHEMA"):
            writer.records(lake.page("orders", 1))
        with pytest.raises(MessageError):
            writer.activate_version(ActivateVersion("orders", 1))
        with pytest.raises(MessageError):
            writer.schema(Schema("users", {"x": float("nan")}))
        writer.records(lake.page("users", 2))
    assert lake.ids() == [1, 2]


def test_open_files_keep_a_bounded_number_of_bytes(lake: Any) -> None:
    """Ten streams that come by turns; what lies in open files is at no time more than the bound and one page."""
    source = random.Random(7)
    writer = lake.writer(max_open_bytes=200_000)
    streams = [f"s{number}" for number in range(10)]
    for stream in streams:
        writer.schema(lake.schema(stream, note={"type": "string"}))
    most = 0
    for number in range(100):
        note = source.randbytes(10_000).hex()  # 10 kB compressed
        writer.records(lake.page(streams[number % 10], {"id": number, "note": note}))
        most = max(most, sum(path.stat().st_size for path in lake.path.rglob(".tmp-*")))
    writer.close()
    assert 100_000 < most <= 220_000
    assert sorted(number for stream in streams for number in lake.ids(stream)) == list(range(100))
    assert len(lake.files()) < 100


def test_the_greatest_file_makes_room_and_no_state_goes_out_before_the_others(lake: Any) -> None:
    writer = lake.writer(max_open_bytes=20_000)
    for stream in ("users", "orders"):
        writer.schema(lake.schema(stream))
    writer.records(lake.page("users", 1))
    writer.state(lake.state(1))
    source = random.Random(7)
    writer.records(lake.page("orders", *({"id": n, "note": source.randbytes(10_000).hex()} for n in range(20))))
    writer.state(lake.state(2))
    assert lake.ids("orders") == list(range(20))
    assert lake.load("users").files == ()
    assert lake.states == []
    writer.close()
    assert lake.states == [{"at": 2}]


def test_names_equal_but_for_case_are_refused(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema("users"))
    for first in (True, False):
        writer = lake.writer()
        if first:
            writer.schema(lake.schema("orders"))
        with pytest.raises(UsageError, match="differ only in upper and lower case"):
            writer.schema(lake.schema("Users"))
    lake.tap_id = "TAP-x"
    with pytest.raises(UsageError, match="'TAP-x' and 'tap-x'"):
        lake.writer().schema(lake.schema("other"))
    lake.tap_id = "tap-y"
    writer = lake.writer()
    writer.schema(lake.schema("a"))
    with pytest.raises(UsageError):
        writer.schema(lake.schema("A"))


def test_an_error_while_writing_leaves_no_file_and_no_state(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = lake.writer()
    writer.schema(lake.schema())
    writer.records(lake.page("users", 1))
    writer.flush()
    writer.records(lake.page("users", *range(20000)))
    writer.state(lake.state(1))

    def full(fd: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match="Make room"):
        writer.flush()
    monkeypatch.undo()
    assert lake.states == []
    assert lake.hidden() == []
    assert lake.ids() == [1]
    writer.close()
    assert lake.ids() == [1]
    with pytest.raises(BurlerError, match="has ended"):
        writer.records(lake.page("users", 1))


FULL_DISK = """
import resource, signal, sys
from burler.errors import StorageError
from burler.lake import LakeWriter, open_store
from burler.singer.messages import *
import datetime as dt, random
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # a torn one would stay
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
states = []
writer = LakeWriter(open_store(sys.argv[1]), "tap-x", emit_state=states.append)
writer.schema(Schema("users", {"type": "object", "properties": {"id": {"type": "string"}}}))
try:
    for number in range(1000):
        line = b'{"type":"RECORD","stream":"users","record":{"id":"%s"}}\\n' % random.randbytes(500).hex().encode()
        writer.records(Records("users", line, 1, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)))
        writer.state(State({"n": number}))
    writer.close()
except StorageError as error:
    print(len(states), error)
    sys.exit(error.exit_code)
"""


def test_a_real_limit_of_the_file_size(lake: Any) -> None:
    """Stands for the full disk: the kernel refuses to write on, in the middle of a data file."""
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(lake.path)], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("0 ")
    assert "Make room" in done.stdout
    assert lake.hidden() == []
    assert lake.files() == []


def test_the_older_writer_is_fenced_and_nothing_is_lost(lake: Any) -> None:
    older, newer = lake.writer(writer_id="older"), lake.writer(writer_id="newer", clock=lake.impatient())
    for writer, number in ((older, 1), (newer, 2)):
        writer.schema(lake.schema())
        writer.records(lake.page("users", number))
        writer.state(lake.state(number))
    with pytest.raises(LockLost, match="newer, epoch 2"):
        older.flush()
    newer.close()
    assert lake.states == [{"at": 2}]
    assert lake.ids() == [2]
    # The fenced writer's file is there, in no manifest: data that will come again.
    assert len(lake.files()) == 2
    assert lake.hidden() == []


def test_bz2_and_plain_on_request(lake: Any) -> None:
    for compression, ending, read in (("bz2", ".singer.bz2", bz2.decompress), (None, ".singer", bytes)):
        with lake.writer(compression=compression) as writer:
            writer.schema(lake.schema())
            writer.records(lake.page("users", 1))
        (path,) = lake.files(f"**/*{ending}")
        assert read(path.read_bytes()).endswith(lake.page("users", 1).lines)
    assert lake.ids() == [1, 1]
    with pytest.raises(UsageError):
        lake.writer(compression="zip")


def test_without_isal_the_same_lines_are_written_and_read(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = []
    for absent in (False, True):
        if absent:
            monkeypatch.setitem(sys.modules, "isal", None)
        with lake.writer() as writer:
            writer.schema(lake.schema())
            writer.records(lake.page("users", *range(1000)))
        contents.append(gzip.decompress(lake.files()[0].read_bytes()))
        assert lake.ids()[:1000] == list(range(1000))
    assert contents[0] == contents[1]


def test_many_streams_do_not_need_many_open_files(lake: Any) -> None:
    with lake.writer(max_open_files=3) as writer:
        for number in range(10):
            writer.schema(lake.schema(f"s{number}"))
            writer.records(lake.page(f"s{number}", number))
            assert len(lake.hidden()) <= 3
    assert [lake.ids(f"s{number}") for number in range(10)] == [[number] for number in range(10)]


@pytest.mark.parametrize("name", ["max_file_bytes", "max_file_records", "max_file_age_seconds", "max_open_files"])
def test_settings_must_be_positive(lake: Any, name: str) -> None:
    with pytest.raises(UsageError, match=name):
        lake.writer(**{name: 0})


def test_a_lake_that_is_no_folder_is_a_usage_error(lake: Any) -> None:
    lake.path.mkdir()
    (lake.path / "raw").write_text("")
    with pytest.raises(UsageError) as caught:
        lake.writer().schema(lake.schema())
    assert caught.value.exit_code == 2


def test_an_error_in_the_block_commits_nothing(lake: Any) -> None:
    with pytest.raises(RuntimeError), lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1))
        raise RuntimeError
    assert lake.files() == []
    assert lake.hidden() == []


def test_catalogue_and_singerlake(lake: Any) -> None:
    for stream in ("users", "orders"):
        lake.clock = type(lake.clock)()
        with lake.writer(writer_id="me") as writer:
            writer.schema(Schema(stream, lake.schema().schema, ("id",), ("at",)))
            writer.records(lake.page(stream, 1))
            lake.clock.forward(5)
    catalog = read_catalogue(lake.store, "tap-x")
    assert catalog is not None
    assert [entry["tap_stream_id"] for entry in catalog["streams"]] == ["users", "orders"]
    assert catalog["streams"][0] == {
        "tap_stream_id": "users",
        "stream": "users",
        "key_properties": ["id"],
        "schema": lake.schema().schema,
        "metadata": [
            {
                "breadcrumb": [],
                "metadata": {"selected": True, "table-key-properties": ["id"], "valid-replication-keys": ["at"]},
            }
        ],
    }
    about = read_singerlake(lake.store)
    assert about is not None
    assert len(about.pop("lake_id")) == 32
    assert about == {
        "format": 1,
        "schema_hash": {"function": "farmhash-fingerprint64", "canonical": "burler-1", "encoding": "base58"},
        "taps": {
            "tap-x": {
                "owner": None,
                "description": None,
                "documentation": None,
                "status": {
                    "state": "complete",
                    "writer-id": "me",
                    "started": "2024-01-02T12:00:00.000000Z",
                    "ended": "2024-01-02T12:00:05.000000Z",
                    "link": None,
                },
            }
        },
    }


def test_what_people_wrote_into_the_descriptions_stays(lake: Any) -> None:
    def run() -> None:
        with lake.writer() as writer:
            writer.schema(lake.schema())
            writer.records(lake.page("users", 1))

    lake.writer = functools.partial(lake.writer, writer_id="me")
    run()
    about, catalog = lake.path / "raw" / "singerlake.json", lake.path / "raw" / "tap-x" / "catalogue.json"
    edited = json.loads(about.read_text())
    edited["taps"]["tap-x"]["owner"] = "us"
    edited["taps"]["tap-x"]["status"]["link"] = "https://jobs.example/1"
    edited["taps"]["tap-x"]["pager"] = [1]
    edited["more"] = 1
    about.write_text(json.dumps(edited))
    streams = json.loads(catalog.read_text())
    streams["streams"][0]["note"] = "x"
    streams["streams"].append({"tap_stream_id": "old", "schema": {"multipleOf": 0.01}})
    catalog.write_text(json.dumps(streams))
    run()
    assert json.loads(about.read_text()) == edited
    after = json.loads(catalog.read_text())
    assert [entry["tap_stream_id"] for entry in after["streams"]] == ["users", "old"]
    assert after["streams"][0]["note"] == "x"
    assert after["streams"][1]["schema"] == {"multipleOf": 0.01}


def test_nothing_is_rewritten_when_nothing_changes(lake: Any) -> None:
    for _ in range(2):
        with lake.writer() as writer:
            writer.schema(lake.schema())
    before = {path: path.stat().st_mtime_ns for path in lake.path.rglob("*.json")}
    with lake.writer() as writer:
        writer.schema(lake.schema())
    changed = {path.name for path, time in before.items() if path.stat().st_mtime_ns != time}
    assert changed == {"singerlake.json"}  # it says when the tap ran last


def test_the_status_tells_how_a_run_goes(lake: Any) -> None:
    def status() -> Any:
        about = read_singerlake(lake.store)
        return about and about["taps"]["tap-x"]["status"]

    writer = lake.writer(writer_id="first")
    assert status() is None
    writer.schema(lake.schema())
    assert (status()["state"], status()["writer-id"], status()["ended"]) == ("running", "first", None)
    writer.abort()
    assert (status()["state"], status()["ended"]) == ("failed", "2024-01-02T12:00:00.000000Z")
    first, second = lake.writer(writer_id="first"), lake.writer(writer_id="second")
    first.schema(lake.schema())
    second.schema(lake.schema())
    first.close()
    assert (status()["state"], status()["writer-id"]) == ("running", "second")
    second.close()
    assert status()["state"] == "complete"


def test_a_status_that_can_not_be_written_fails_no_run(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1))
        writer.state(lake.state(1))
        (lake.path / "raw" / "singerlake.json").write_text("{")
    assert (lake.ids(), lake.states) == ([1], [{"at": 1}])
    (message,) = caplog.messages
    assert "status in the lake could not be written" in message


@pytest.mark.parametrize("change", [{"schema_hash": {"encoding": "base85"}}, {"format": 2}])
def test_a_lake_of_other_rules_is_not_written_to(lake: Any, change: dict[str, Any]) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
    path = lake.path / "raw" / "singerlake.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UsageError):
        lake.writer().schema(lake.schema())


def test_duckdb_reads_the_files(lake: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    with lake.writer(max_file_records=400) as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", *range(1000)))
    paths = [lake.store.locate(file.path) for file in load(lake.store, "tap-x", "users").files]
    rows = duckdb.connect().execute(
        "select count(*), sum(record.id) from read_json($1, format='newline_delimited', compression='gzip', "
        "columns={type: 'VARCHAR', record: 'STRUCT(id BIGINT)', time_extracted: 'TIMESTAMP'}) where type = 'RECORD'",
        [paths],
    )
    assert rows.fetchone() == (1000, sum(range(1000)))


def test_importing_the_lake_loads_nothing_heavy() -> None:
    code = (
        "import sys, burler.lake; print([m for m in sys.modules if m.split('.')[0] in "
        "('isal', 'fsspec', 'pyarrow', 'requests', 'singer', 'jsonschema', 'pyspark', 'duckdb', 'orjson')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
