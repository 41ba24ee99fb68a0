"""What a manifest says of its files, read one by one and all at once: the same, or neither."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burler.lake import FileStats
from support.internals import snapshot

WIRE = {
    "records": 3,
    "bytes": 512,
    "first": "2024-01-02T03:04:05.678901Z",
    "last": "2024-02-29T23:59:59.000000Z",
    "sequence": 7,
    "clean": True,
}
MORE = {"activate_version": 9, "versions": [1, 2], "rank": 5, "replaces": {"h/a": 1}, "written": "x", "stored_bytes": 5}


def one_by_one(wires):
    try:
        return {name: FileStats.from_wire(wire) for name, wire in wires.items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def test_all_at_once_is_as_one_by_one():
    wires = {"a": WIRE, "b": {**WIRE, **MORE}, "c": {**WIRE, "of_later_days": {"x": 1}, "versions": None}}
    assert snapshot.all_stats(wires) == one_by_one(wires) != {}
    assert snapshot.all_stats({}) == {}
    assert snapshot.all_stats({"b": {**WIRE, **MORE}})["b"].to_wire() == {**WIRE, **MORE}


ODD = [None, True, 1.5, "1", 2**63, -(2**63) - 1, [], {}, [1.5], {"a": "b"}, "2024-02-30T00:00:00.000000Z"]
ODD += ["2024-01-01T24:00:00.000000Z", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00.000000Z\n", "", "\ud800"]


@pytest.mark.parametrize("key", [*WIRE, *MORE])
def test_an_odd_value_is_not_taken_unless_it_is_one_by_one(key):
    for odd in ODD:
        wires = {"a": WIRE, "b": {**WIRE, **MORE, key: odd}}
        found = snapshot.all_stats(wires)
        assert found is None or found == one_by_one(wires), (key, odd)
    missing = {"a": {name: value for name, value in WIRE.items() if name != key}}
    assert snapshot.all_stats(missing) in (None, one_by_one(missing))


@given(st.dictionaries(st.sampled_from("abc"), st.just(WIRE) | st.none() | st.just({})))
def test_entries_that_are_none(wires):
    found = snapshot.all_stats(wires)
    assert found is None or found == one_by_one(wires)
