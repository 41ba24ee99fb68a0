"""What a manifest says of its files, read all at once: the same as one by one, or it is an error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from burler.errors import LakeError
from burler.lake import FileStats, load

WIRE = {
    "records": 3,
    "bytes": 512,
    "first": "2024-01-02T03:04:05.678901Z",
    "last": "2024-02-29T23:59:59.000000Z",
    "sequence": 7,
    "clean": True,
}
MORE = {"activate_version": 9, "versions": [1, 2], "rank": 5, "replaces": {"h/a": 1}, "written": "x", "stored_bytes": 5}
ODD = [None, True, 1.5, "1", 2**63, -(2**63) - 1, [], {}, [1.5], {"a": "b"}, "2024-02-30T00:00:00.000000Z"]
ODD += ["2024-01-01T24:00:00.000000Z", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00.000000Z\n", "", "\ud800"]


def loaded(lake: Any, wires: dict[str, Any]) -> dict[str, FileStats | None] | None:
    """The statistics of files by their names; None: the manifest is broken."""
    path = lake.manifest_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"versions": {}, "files": list(wires), "file_stats": wires}))
    try:
        return {
            file.path.removeprefix("raw/tap-x/users/"): file.stats for file in load(lake.store, "tap-x", "users").files
        }
    except LakeError as error:
        assert "manifest.json is broken" in str(error)
        return None


def one_by_one(wires: dict[str, Any]) -> dict[str, FileStats] | None:
    try:
        return {name: FileStats.from_wire(wire) for name, wire in wires.items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def test_all_at_once_is_as_one_by_one(lake: Any) -> None:
    wires = {"h/a": WIRE, "h/b": {**WIRE, **MORE}, "h/c": {**WIRE, "of_later_days": {"x": 1}, "versions": None}}
    found = loaded(lake, wires)
    assert found == one_by_one(wires)
    assert found is not None and found["h/b"] is not None
    assert found["h/b"].to_wire() == {**WIRE, **MORE}
    assert loaded(lake, {}) == {}


@pytest.mark.parametrize("key", [*WIRE, *MORE])
def test_an_odd_value_is_not_taken_unless_it_is_one_by_one(lake: Any, key: str) -> None:
    for odd in ODD:
        wires = {"h/a": WIRE, "h/b": {**WIRE, **MORE, key: odd}}
        assert loaded(lake, wires) in (None, one_by_one(wires)), (key, odd)
    missing = {"h/a": {name: value for name, value in WIRE.items() if name != key}}
    assert loaded(lake, missing) in (None, one_by_one(missing))


@pytest.mark.parametrize("entry", [None, {}, []])
def test_an_entry_that_is_none_is_not_taken(lake: Any, entry: Any) -> None:
    assert loaded(lake, {"h/a": WIRE, "h/b": entry}) is None
