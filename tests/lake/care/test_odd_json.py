"""JSON files that somebody has edited by hand: no error is one of burler itself, and rebuild makes them anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from care_lakes import document, fill, later, lines, save

from burler.errors import BurlerError
from burler.lake import care, open_store, read

DEEP = "[" * 100_000

Deed = Callable[[Any], object]
DEEDS: dict[str, Deed] = {
    "ls": lambda lake: care.ls(lake.store),
    "check": lambda lake: care.check(lake.store),
    "read": lambda lake: list(read(lake.store, "tap-x", stream="users").pages()),
    "compact": lambda lake: care.compact(lake.store),
    "vacuum": lambda lake: care.vacuum(lake.store, yes=True, now=later(9)),
    "describe": lambda lake: care.describe(lake.store, "tap-x", owner="me"),
    "write": lambda lake: fill(lake, 1, start=9),
}


@pytest.fixture
def used(lake: Any) -> Any:
    """A stream with a compacted file, its parts, and files since."""
    fill(lake, 1, 1)
    care.compact(lake.store)
    fill(lake, 1, 1, start=2)
    return lake


def all_deeds_end_well_or_clearly(lake: Any) -> None:
    """Each on the lake as it is now; what they change is taken back."""
    files = {path: path.read_bytes() for path in lake.path.rglob("*") if path.is_file()}
    for deed in DEEDS.values():
        try:
            deed(lake)
        except BurlerError as error:
            assert "Upgrade" not in str(error)
        for path in [path for path in lake.path.rglob("*") if path.is_file() and path not in files]:
            path.unlink()
        for path, data in files.items():
            path.write_bytes(data)
        lake.store = open_store(str(lake.path))


def rebuilt(lake: Any, before: list[bytes]) -> None:
    all_deeds_end_well_or_clearly(lake)
    done = care.rebuild(lake.store)
    assert done.is_whole and done.problems == ()
    assert care.check(lake.store).findings == ()
    assert lines(lake) == before
    fill(lake, 1, start=9)
    assert len(lines(lake)) == len(before) + 1


def a_hash(wire: dict[str, Any]) -> str:
    return str(next(iter(wire["versions"])))


def a_compacted(wire: dict[str, Any]) -> str:
    return str(next(name for name, stats in wire["file_stats"].items() if "replaces" in stats))


ODD = {
    "no tap": lambda wire: wire.update(tap_id=None),
    "a number for the stream": lambda wire: wire.update(stream=7),
    "no generation": lambda wire: wire.update(generation=None),
    "no sequence": lambda wire: wire.update(sequence=None),
    "a list for the sequence": lambda wire: wire.update(sequence=[1]),
    "a sequence below 0": lambda wire: wire.update(sequence=-1),
    "a sequence beyond all numbers": lambda wire: wire.update(sequence=10**30),
    "a text for the commits": lambda wire: wire.update(commit_ids="x"),
    "a list for what it continues": lambda wire: wire.update(continues=["x"]),
    "a text among what it continues": lambda wire: wire.update(continues={"x": "1"}),
    "a list for what is removed": lambda wire: wire.update(removed=["x"]),
    "a number for a version": lambda wire: wire["versions"].update({a_hash(wire): 1}),
    "a version with thousands of digits": lambda wire: wire["versions"].update({a_hash(wire): "v" + "9" * 5000}),
    "a list for a schema": lambda wire: wire["schemas"].update({a_hash(wire): []}),
    "a number for a writer": lambda wire: wire["writers"].update({a_hash(wire): 1}),
    "a text for an epoch": lambda wire: wire["writers"][a_hash(wire)].update(epoch="x"),
    "a list for all files' stats": lambda wire: wire.update(file_stats=[]),
    "no stats of a file": lambda wire: wire["file_stats"].update({wire["files"][-1]: None}),
    "no time": lambda wire: wire["file_stats"][wire["files"][0]].update(first=None),
    "a time that is none": lambda wire: wire["file_stats"][wire["files"][0]].update(last="2024-99-02T12:00:00.000000Z"),
    "a text for the rows": lambda wire: wire["file_stats"][wire["files"][0]].update(records="1"),
    "a list for what is replaced": lambda wire: wire["file_stats"][a_compacted(wire)].update(replaces=["x"]),
    "a text among what is replaced": lambda wire: wire["file_stats"][a_compacted(wire)]["replaces"].update(x="1"),
    "stats of a file that was replaced": lambda wire: wire["file_stats"].update(
        {name: {"sequence": "x"} for name in wire["file_stats"][a_compacted(wire)]["replaces"]}
    ),
}


@pytest.mark.parametrize("odd", list(ODD))
def test_a_manifest_of_an_odd_shape(used: Any, odd: str) -> None:
    before, wire = lines(used), document(used)
    ODD[odd](wire)
    used.manifest_path().write_text(json.dumps(wire))
    rebuilt(used, before)


def test_a_manifest_that_is_nested_too_deeply(used: Any) -> None:
    before = lines(used)
    used.manifest_path().write_text(DEEP)
    rebuilt(used, before)


TAPS = [None, "x", ["tap-x"], 7, {"tap-x": "mine"}, {"tap-x": ["mine"]}, {"another": 7}]


@pytest.mark.parametrize("taps", TAPS, ids=[json.dumps(taps) for taps in TAPS])
def test_taps_of_an_odd_shape_in_singerlake_json(used: Any, taps: Any) -> None:
    before, path = lines(used), used.path / "raw/singerlake.json"
    lake_id = json.loads(path.read_bytes())["lake_id"]
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "taps": taps}))
    (finding,) = care.check(used.store).findings
    assert (finding.path, "rebuild" in finding.cure) == ("raw/singerlake.json", True)
    rebuilt(used, before)
    new = json.loads(path.read_bytes())
    assert new["lake_id"] == lake_id and isinstance(new["taps"]["tap-x"], dict)


@pytest.mark.parametrize("text", ["", "{", "[]", DEEP, "\0"], ids=["empty", "open", "list", "deep", "zero"])
def test_a_singerlake_json_that_is_none(used: Any, text: str) -> None:
    before, path = lines(used), used.path / "raw/singerlake.json"
    old = json.loads(path.read_bytes())
    path.write_text(text)
    rebuilt(used, before)
    new = json.loads(path.read_bytes())
    assert {**new, "lake_id": 0, "taps": 0} == {**old, "lake_id": 0, "taps": 0}
    assert len(new["lake_id"]) == 32 and list(new["taps"]) == ["tap-x"]


def test_what_was_noted_of_other_taps_stays_when_one_is_mended(used: Any) -> None:
    path = used.path / "raw/singerlake.json"
    wire = json.loads(path.read_bytes())
    path.write_text(json.dumps({**wire, "taps": {"other": {"owner": "them"}, "tap-x": 5}, "more": [1.50]}))
    care.rebuild(used.store)
    new = json.loads(path.read_bytes())
    assert (new["taps"]["other"]["owner"], new["more"], new["lake_id"]) == ("them", [1.5], wire["lake_id"])


def test_rebuild_leaves_a_singerlake_json_of_a_newer_format_alone(used: Any) -> None:
    path = used.path / "raw/singerlake.json"
    newer = json.dumps({"format": 2, "taps": ["tap-x"]})
    path.write_text(newer)
    done = care.rebuild(used.store)
    assert "Upgrade" in done.problems[0] and path.read_text() == newer


ENTRIES = [
    {"tap_stream_id": ["users"], "stream": "users"},
    {"tap_stream_id": {"a": 1}},
    {"tap_stream_id": None},
    {"stream": "orders", "note": "by hand"},
    {"stream": "sales"},
]


def test_entries_of_a_catalogue_that_name_no_stream_stay(used: Any) -> None:
    path = used.path / "raw/tap-x/catalogue.json"
    path.write_text(json.dumps({"streams": [*ENTRIES, {"stream": "users", "note": 1, "metadata": 7}]}))
    all_deeds_end_well_or_clearly(used)
    assert care.rebuild(used.store).is_whole
    fill(used, 1, start=9)
    new = json.loads(path.read_bytes())["streams"]
    assert new[:-1] == ENTRIES
    assert (new[-1]["tap_stream_id"], new[-1]["note"], len(new[-1]["metadata"])) == ("users", 1, 1)


def test_a_catalogue_that_can_not_be_written_again_is_named(used: Any) -> None:
    path = used.path / "raw/tap-x/catalogue.json"
    path.write_text('{"streams": [{"tap_stream_id": "other", "note": "\\ud800"}]}')
    with pytest.raises(BurlerError, match=r"(?s)catalogue\.json can't be changed.*move it away"):
        fill(used, 1, start=9)


def test_a_manifest_that_is_well_stays_as_it_is(used: Any) -> None:
    wire = document(used)
    save(used, wire)
    assert document(used) == wire and care.check(used.store).findings == ()
