"""What a reader opens: by schema version, by time, with a manifest and without."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from faulty_store import FaultyStore

import burler.lake
from burler.errors import LakeError, UsageError
from burler.lake import LakeReading, read
from support.internals import hashing

NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
NAIVE = dt.datetime(2024, 5, 1, 10)  # noqa: DTZ001


@pytest.fixture
def hours(lake: Any) -> Any:
    """Three schema versions, two files each, an hour apart; ids tell the hour."""
    for version in range(3):
        with lake.writer(max_file_records=1) as writer:
            writer.schema(lake.schema(**{f"f{n}": {"type": "string"} for n in range(version)}))
            for n in (2 * version, 2 * version + 1):
                writer.records(lake.page("users", n, at=NOON + n * HOUR))
    lake.store = FaultyStore(lake.store)
    return lake


def opened(lake: Any) -> list[str]:
    """The data files that were opened, in order."""
    return [call.path.rpartition("/")[2] for call in lake.store.calls if call.operation == "open"]


def name(clock: str) -> str:
    return f"users-20240102T{clock}Z-20240102T{clock}Z.singer.gz"


def ids(reading: LakeReading) -> list[int]:
    return [row["id"] for row in reading.rows()]


def test_only_files_whose_time_can_match_are_opened(hours: Any) -> None:
    reading = read(hours.store, since=NOON + 2 * HOUR, until="2024-01-02T16:00:00Z")
    assert not opened(hours)
    assert ids(reading) == [2, 3]
    assert opened(hours) == [
        "users-20240102T140000Z-20240102T140000Z.singer.gz",
        "users-20240102T150000Z-20240102T150000Z.singer.gz",
    ]


def test_the_end_is_not_included_and_the_beginning_is(hours: Any) -> None:
    assert ids(read(hours.store, until=NOON)) == []
    assert not opened(hours)  # the manifest has the exact time
    assert ids(read(hours.store, since=NOON + 5 * HOUR)) == [5]
    assert ids(read(hours.store, since=NOON + 5 * HOUR + dt.timedelta(microseconds=1))) == []


def test_the_end_is_not_included_inside_of_a_file_either(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        for n in range(3):
            writer.records(lake.page("users", n, at=NOON + n * HOUR))
    assert ids(read(lake.store, until=NOON + 2 * HOUR)) == [0, 1]
    assert ids(read(lake.store, since=NOON + HOUR)) == [1, 2]


def test_without_a_manifest_names_tell_and_the_folder_is_listed_once(hours: Any) -> None:
    hours.manifest_path().unlink()
    reading = read(hours.store, "tap-x", "users", since=NOON + 4 * HOUR + dt.timedelta(seconds=0.5))
    assert ids(reading) == [5]  # 4 may be in the second of the file's name, so it is opened, and its row left out
    assert [call.path for call in hours.store.calls if call.operation == "files"] == ["raw/tap-x/users"]
    assert opened(hours) == [
        "users-20240102T160000Z-20240102T160000Z.singer.gz",
        "users-20240102T170000Z-20240102T170000Z.singer.gz",
    ]


@pytest.mark.parametrize(
    ("asked", "found"),
    [("v2", [2, 3]), ("v2..", [2, 3, 4, 5]), ("V3", [4, 5]), ("v1..", [0, 1, 2, 3, 4, 5]), (None, [0, 1, 2, 3, 4, 5])],
)
@pytest.mark.parametrize("listed", [False, True])
def test_a_schema_version_opens_its_folder_alone(hours: Any, asked: str | None, found: list[int], listed: bool) -> None:
    if listed:
        hours.manifest_path().unlink()
    assert ids(read(hours.store, schema=asked)) == found
    assert len(opened(hours)) == len(found)


def test_a_schema_version_by_its_hash_in_either_spelling(hours: Any) -> None:
    line = hashing.schema_line(hours.schema(f0={"type": "string"}))
    for spelled in (hashing.schema_hash(line), hashing.schema_hash(line, "base85")):
        assert ids(read(hours.store, schema=spelled)) == [2, 3]
        assert ids(read(hours.store, schema=f"{spelled}..")) == [2, 3, 4, 5]
    for wrong in ("v4", "v", "", "..", "1" * 11, hashing.schema_hash(b"other", "base85")):
        with pytest.raises(UsageError, match=r"no stream has the schema version .*v2 \(" + hashing.schema_hash(line)):
            read(hours.store, schema=wrong)


def test_columns_are_what_is_asked_for_in_that_order(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema(name={"type": "string"}, n={"type": "number"}))
        writer.records(lake.page("users", {"id": 1, "name": "a", "n": 1.5}, {"n": 0.25, "id": 2}))
    (page,) = read(lake.store, columns=["n", "name"]).pages()
    assert [json.loads(line)["record"] for line in page.lines.splitlines()] == [{"n": 1.5, "name": "a"}, {"n": 0.25}]
    assert b'"record":{"n":1.5,"name":"a"}' in page.lines
    assert (page.stream, page.count, page.hash) == ("users", 2, lake.load().files[0].hash)
    assert list(read(lake.store, columns=["n"]).rows()) == [{"n": Decimal("1.5")}, {"n": Decimal("0.25")}]
    with pytest.raises(UsageError, match=r"no field 'nome'. Fields: id, n, name"):
        read(lake.store, columns=["nome"])
    with pytest.raises(UsageError, match=r"give a list of names, as \['name'\]"):
        read(lake.store, columns="name")


def test_which_stream_is_meant(lake: Any) -> None:
    with lake.writer() as writer:
        for name in ("users", "orders"):
            writer.schema(lake.schema(name))
            writer.records(lake.page(name, 1))
    assert ids(read(str(lake.path), stream="orders")) == [1]
    with pytest.raises(UsageError, match=r"which stream\? .*tap-x/orders, tap-x/users"):
        read(lake.store)
    with pytest.raises(UsageError, match=r"no stream 'tap-x/nope' in this lake\..* It has: tap-x/orders, tap-x/users"):
        read(lake.store, "tap-x", "nope")
    with pytest.raises(UsageError, match=r"no stream 'nope' in this lake. It has: orders, users"):
        read(lake.store, stream="nope")
    with pytest.raises(UsageError, match="no lake at"):
        read(str(lake.path / "nope"))


def test_the_manifest_is_read_once(hours: Any) -> None:
    reading = read(hours.store, "tap-x", "users")
    assert read(hours.store, until=NOON + 3 * HOUR).schema == hours.schema(f0={"type": "string"})
    with hours.writer() as writer:
        writer.schema(hours.schema())
        writer.records(hours.page("users", 99))
    hours.manifest_path().write_text("broken")
    assert ids(reading) == ids(reading) == [0, 1, 2, 3, 4, 5]
    assert reading.schema == hours.schema(f0={"type": "string"}, f1={"type": "string"})
    with pytest.raises(LakeError, match="is broken"):
        read(hours.store, "tap-x", "users")


def test_the_schema_of_a_stream_without_files(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
    reading = read(lake.store)
    assert (reading.files, reading.schema, list(reading.pages())) == ((), lake.schema(), [])


def test_times_as_people_write_them(lake: Any) -> None:
    """Row 0 was extracted on that day, 1 a microsecond before ten, 2 at ten, 3 at twelve, 4 the next day."""
    ten, moment = dt.datetime(2024, 5, 1, 10, tzinfo=dt.UTC), dt.timedelta(microseconds=1)
    with lake.writer() as writer:
        writer.schema(lake.schema())
        for n, at in enumerate((ten - 10 * HOUR, ten - moment, ten, ten + 2 * HOUR, ten + 14 * HOUR)):
            writer.records(lake.page("users", n, at=at))
    for text in ("2024-05-01T12:00:00+02:00", "2024-05-01 10:00:00", "2024-05-01T10:00:00Z", " 2024-05-01t10:00:00z "):
        assert ids(read(lake.store, since=text)) == [2, 3, 4]
    assert ids(read(lake.store, since=dt.date(2024, 5, 1), until="2024-05-02")) == [0, 1, 2, 3]
    one_o_clock = dt.datetime(2024, 5, 1, 13, tzinfo=dt.timezone(HOUR))
    assert ids(read(lake.store, since=NAIVE, until=one_o_clock)) == [2]
    for wrong in ("soon", "2024-13-01", "2024-05-01T25:00:00Z", "9999-12-31T23:59:59-01:00", ""):
        with pytest.raises(UsageError, match=r"since: .*Write it as 2024-05-01"):
            read(lake.store, since=wrong)
    for until in ("2024-05-01T10:00:00.000000Z", "2024-05-01"):
        with pytest.raises(UsageError, match="nothing lies between"):
            read(lake.store, since=ten, until=until)


def test_a_manifest_or_folder_that_we_may_not_read_is_told_and_no_empty_stream(hours: Any) -> None:
    hours.store.fail("read", UsageError("Permission denied"), path="*/users/manifest.json")
    with pytest.raises(UsageError, match="Permission denied"):
        read(hours.store)
    hours.manifest_path().unlink()
    hours.store.fail("files", UsageError("Permission denied"), path="*/users")
    with pytest.raises(UsageError, match="Permission denied"):
        read(hours.store)


def test_activations_are_no_rows(lake: Any) -> None:
    from burler.singer.messages import ActivateVersion

    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.activate_version(ActivateVersion("users", 5))
        writer.records(lake.page("users", 1, 2, version=6))
        writer.activate_version(ActivateVersion("users", 6))
    (page,) = read(lake.store).pages()
    assert page.count == page.lines.count(b"\n") == 2
    assert ids(read(lake.store)) == [1, 2]


def python_singerlake(folder: Path, lake: Any) -> None:
    """The layout of python-singerlake: plain files, partition folders, a hash of its own, no manifest."""
    schema = json.dumps(lake.schema(name={"type": "string", "title": "Ü"}).to_wire(), ensure_ascii=False)
    for n, hour in enumerate((1, 13)):
        path = folder / f"raw/tap-x/users/gCqeDP4GvMJ/year=2024/month=1/day=2/hour={hour}"
        path.mkdir(parents=True)
        row = {
            "type": "RECORD",
            "stream": "users",
            "record": {"id": n},
            "time_extracted": f"2024-01-02T{hour:02}:00:00+00:00",
        }
        (path / name(f"{hour:02}0000").removesuffix(".gz")).write_text(f"{schema}\n{json.dumps(row)}\n")


def test_files_of_other_writers(lake: Any) -> None:
    shutil.rmtree(lake.path, ignore_errors=True)
    folder = lake.path / "raw/tap-x/users/opaque"
    folder.mkdir(parents=True)
    schema = json.dumps(lake.schema().to_wire())
    for n, (pack, ending) in enumerate([(bz2.compress, ".bz2"), (gzip.compress, ".gz"), (bytes, "")]):
        text = f'{schema}\n{{"type": "RECORD", "stream": "users", "record": {{"id": {n}}}}}\n'
        name = f"users-2024010{n + 1}T000000Z-2024010{n + 1}T000000Z.singer{ending}"
        (folder / name).write_bytes(pack(text.encode()))
    assert ids(read(lake.store)) == [0, 1, 2]
    lake.store = FaultyStore(lake.store)
    assert ids(read(lake.store, since="2024-01-03")) == [2]  # it does not say when it was read: the name does
    assert len(opened(lake)) == 1


def test_the_layout_of_python_singerlake(tmp_path: Path, lake: Any) -> None:
    python_singerlake(tmp_path, lake)
    assert ids(read(str(tmp_path))) == [0, 1]
    assert ids(read(str(tmp_path), until="2024-01-02T12:00:00Z")) == [0]
    for path in tmp_path.rglob("*.singer"):
        path.write_text(path.read_text().replace("Ü", "Ä"))
    with pytest.raises(LakeError, match="line 1 hashes to"):
        ids(read(str(tmp_path)))


def test_names_are_exported() -> None:
    assert {"LakeReading", "Page", "read"} <= set(burler.lake.__all__)
