"""Names that want to get out of the lake, on each kind of store; how folders spell schema hashes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from memory_lakes import in_memory
from s3_lakes import s3_lake

from burler.errors import UsageError
from burler.lake import ingest, read_lines, read_singerlake, schema_message, streams
from support.internals import hashing

NAMES = [
    "../../../escape",
    "..",
    ".",
    "/etc/x",
    "_x",
    ".x",
    "a\0b",
    "a\nb",
    "😀",
    "n" * 300,
    "ü" * 300,
    "con",
    "aux.txt",
    "x.",
    "x ",
    "%2F",
    "%2f..",
    "a\\b",
    "a?b#c*[d]",
    "catalogue.json",
    "manifest.json",
    "singerlake.lock",
    "x.singer.gz",
    "-rf",
    "s3://other/x",
]


@pytest.fixture(params=["local", "memory", "s3"])
def any_lake(lake: Any, request: pytest.FixtureRequest) -> Any:
    """The same lake on each kind of store."""
    if request.param == "memory":
        lake.store = in_memory()
    elif request.param == "s3":
        lake.store = s3_lake(request.getfixturevalue("s3_server"))
    return lake


def test_hostile_names_of_streams_stay_inside_and_come_back(any_lake: Any) -> None:
    lake, names = any_lake, NAMES
    if lake.store.url.startswith("s3:"):
        names = NAMES[::3]  # how they are spelled is the same everywhere
    with lake.writer(max_open_files=3) as writer:
        for number, name in enumerate(names):
            writer.schema(lake.schema(name))
            writer.records(lake.page(name, number))
    assert [lake.ids(name) for name in names] == [[number] for number in range(len(names))]
    assert sorted(name for _, name in streams(lake.store)) == sorted(names)
    stored = [file.path for file in lake.store.files("raw", hidden=True)]
    assert all(path.startswith("raw/tap-x/") for path in stored if path != "raw/singerlake.json" and "/." not in path)
    parts = {part for path in stored for part in path.split("/")}
    assert not parts & {"", ".", ".."}
    assert max(len(part.encode()) for part in parts) <= 255
    if lake.path.exists():
        assert sorted(path.name for path in lake.path.parent.iterdir()) == ["lake"]
        assert [path.name for path in lake.path.iterdir()] == ["raw"]


TAPS = ["../..", ".", "con", "%2F", "😀", "t" * 300, "a/b"]


def test_hostile_tap_ids_stay_inside(any_lake: Any) -> None:
    lake = any_lake
    for lake.tap_id in TAPS:
        with lake.writer() as writer:
            writer.schema(lake.schema())
            writer.records(lake.page("users", 1))
        assert lake.ids() == [1]
    assert sorted(streams(lake.store)) == sorted((tap, "users") for tap in TAPS)
    assert {len(file.path.split("/")) for file in lake.store.files("raw") if file.path.endswith(".gz")} == {5}


def test_of_two_names_that_differ_in_case_alone_the_second_is_refused(any_lake: Any) -> None:
    lake = any_lake
    writer = lake.writer()
    writer.schema(lake.schema("Users"))
    writer.records(lake.page("Users", 1))
    with pytest.raises(UsageError, match="'users' and 'Users' differ only in upper and lower case"):
        writer.schema(lake.schema("users"))
    lake.tap_id = "TAP-X"
    with pytest.raises(UsageError, match="'TAP-X' and 'tap-x'"):
        lake.writer().schema(lake.schema())


# --- base85


def test_a_lake_that_spells_hashes_as_the_text_does(any_lake: Any) -> None:
    lake = any_lake
    with lake.writer(encoding="base85") as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1))
    about = read_singerlake(lake.store)
    assert about is not None
    assert about["schema_hash"] == {
        "function": "farmhash-fingerprint64",
        "canonical": "burler-1",
        "encoding": "base85",
    }
    line = hashing.schema_line(lake.schema())
    (file,) = lake.load().files
    assert file.hash == hashing.schema_hash(line, "base85")
    assert next(read_lines(lake.store, file.path))[:-1] == line
    with lake.writer() as writer:  # without being told again
        writer.schema(lake.schema())
        writer.records(lake.page("users", 2))
    assert lake.ids() == [1, 2]
    assert lake.load().versions == {hashing.schema_hash(line, "base85"): "v1"}
    assert schema_message(lake.store, lake.load(), hashing.schema_hash(line, "base85")) == lake.schema()
    manifest = json.loads(lake.store.read("raw/tap-x/users/manifest.json").data)
    assert manifest["schemas"][hashing.schema_hash(line, "base85")]["base85"] == hashing.schema_hash(line, "base85")


def test_schemas_without_data_are_known_by_the_lakes_own_spelling(lake: Any) -> None:
    with lake.writer(encoding="base85") as writer:
        writer.schema(lake.schema())
    assert list(lake.load().versions) == [hashing.schema_hash(hashing.schema_line(lake.schema()), "base85")]


def test_a_lake_keeps_the_spelling_it_was_made_with(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
    with pytest.raises(UsageError, match="you ask for base85"):
        lake.writer(encoding="base85").schema(lake.schema())
    with lake.writer(encoding="base58") as writer:
        writer.schema(lake.schema())


def test_where_singerlake_json_is_gone_the_folders_say_how_they_are_spelled(lake: Any) -> None:
    with lake.writer(encoding="base85") as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1))
    (lake.path / "raw" / "singerlake.json").unlink()
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 2))
    assert lake.ids() == [1, 2]
    assert len(lake.load().hashes) == 1


def test_windows_has_no_folders_of_base85(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(UsageError, match="no folder on Windows"):
        lake.writer(encoding="base85").schema(lake.schema())


def test_an_unknown_spelling_is_named(lake: Any) -> None:
    with pytest.raises(UsageError, match=r"encoding 'hex' is unknown\. Known: base58, base85"):
        lake.writer(encoding="hex").schema(lake.schema())


def test_each_spelling_leads_to_the_other() -> None:
    for number in range(40):
        line = b"%d" % number
        here, there = hashing.schema_hash(line), hashing.schema_hash(line, "base85")
        assert (hashing.other_spelling(here), hashing.other_spelling(there)) == (there, here)


@pytest.mark.parametrize("text", ["", "users", "zzzzzzzzzzz", "~~~~~~~~~~", "a b c d e f", "GkZ4VgVbUrW0", "\x00" * 10])
def test_what_is_no_hash_has_no_other_spelling(text: str) -> None:
    assert hashing.other_spelling(text) is None


def test_any_tap_writes_to_a_lake_of_base85(lake: Any, tmp_path: Any) -> None:
    source = tmp_path / "in"
    source.write_bytes(
        json.dumps({"type": "SCHEMA", **lake.schema().to_wire()}).encode()
        + b'\n{"type":"RECORD","stream":"users","record":{"id":1}}\n'
    )
    with source.open("rb") as opened:
        ingest(opened, lake.writer(encoding="base85"))
    assert lake.ids() == [1]
    assert len(lake.load().files[0].hash) == 10
