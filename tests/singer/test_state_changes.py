"""States that carry only what has changed (``state_scope: touched``): merging and telling apart."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as hyp

from burler.errors import StateError
from burler.singer import merge_states, parse_state, state_diff


def wire(value: object) -> bytes:
    return json.dumps(value).encode()


def message(value: object) -> bytes:
    return wire({"type": "STATE", "value": value})


PARTED = {"bookmarks": {"t": {"partitions": {"a": {"at": 1, "covers": ["t"]}, "b": {"at": 2}}}}}


@pytest.mark.parametrize(
    ("states", "merged"),
    [
        ([], {}),
        ([None, {}], {}),
        ([{"x": 1, "bookmarks": {"a": {"at": 1}}}, {"bookmarks": {"b": {"at": 2}}}],
         {"x": 1, "bookmarks": {"a": {"at": 1}, "b": {"at": 2}}}),
        ([{"bookmarks": {"a": {"at": 1, "version": 5}}}, {"bookmarks": {"a": {"version": None, "at": 2}}}],
         {"bookmarks": {"a": {"at": 2}}}),
        ([{"bookmarks": {"a": {"at": 1}}}, {"bookmarks": {"a": None}}], {"bookmarks": {}}),
        ([{"currently_syncing": "a"}, {"currently_syncing": None}], {}),
        ([{"bookmarks": {"a": {"at": 1}}}, {"bookmarks": None}], {}),
        # an entry of a partition and stream_state are replaced whole: what is not named in them goes, nulls stay
        ([PARTED, {"bookmarks": {"t": {"partitions": {"a": {"at": 7}, "c": {"at": None}}}}}],
         {"bookmarks": {"t": {"partitions": {"a": {"at": 7}, "b": {"at": 2}, "c": {"at": None}}}}}),
        ([PARTED, {"bookmarks": {"t": {"partitions": {"a": None}, "at": 3}}}],
         {"bookmarks": {"t": {"partitions": {"b": {"at": 2}}, "at": 3}}}),
        ([PARTED, {"bookmarks": {"t": {"partitions": None, "at": 3}}}], {"bookmarks": {"t": {"at": 3}}}),
        ([{"bookmarks": {"a": {"stream_state": {"x": 1, "y": 2}}}}, {"bookmarks": {"a": {"stream_state": {"y": 3}}}}],
         {"bookmarks": {"a": {"stream_state": {"y": 3}}}}),
        # what is of another kind than expected gives way
        ([{"bookmarks": {"a": 5}}, {"bookmarks": {"a": {"at": 1}}}], {"bookmarks": {"a": {"at": 1}}}),
        ([{"bookmarks": {"a": {"partitions": 5}}}, {"bookmarks": {"a": {"partitions": {"p": {"at": 1}}}}}],
         {"bookmarks": {"a": {"partitions": {"p": {"at": 1}}}}}),
        # the names count at their own level only
        ([{"partitions": {"a": 1, "b": 2}}, {"partitions": {"b": 3}}], {"partitions": {"b": 3}}),
        ([{"bookmarks": {"a": {"bookmarks": {"x": 1}}}}, {"bookmarks": {"a": {"bookmarks": {"y": 2}}}}],
         {"bookmarks": {"a": {"bookmarks": {"y": 2}}}}),
    ],
)  # fmt: skip
def test_states_are_merged(states, merged):
    given = json.dumps(states)
    assert merge_states(states) == merged
    assert json.dumps(states) == given


def test_a_merged_state_shares_nothing_with_what_it_was_made_of():
    first, second = json.loads(json.dumps(PARTED)), {"bookmarks": {"t": {"stream_state": {"x": [1]}}}}
    merged = merge_states([first, second])
    merged["bookmarks"]["t"]["partitions"]["a"]["at"] = 9
    merged["bookmarks"]["t"]["stream_state"]["x"].append(2)
    assert first == PARTED
    assert second == {"bookmarks": {"t": {"stream_state": {"x": [1]}}}}
    change = state_diff({}, first)
    change["bookmarks"]["t"]["partitions"]["a"]["at"] = 9
    assert first == PARTED


VALUES = hyp.recursive(
    hyp.none() | hyp.booleans() | hyp.integers(-3, 3) | hyp.sampled_from([1.0, 0.5, "", "2024-01-01"]),
    lambda inner: hyp.lists(inner, max_size=2) | hyp.dictionaries(hyp.sampled_from("xy"), inner, max_size=2),
    max_leaves=4,
)
ENTRIES = hyp.none() | hyp.fixed_dictionaries(
    {},
    optional={
        "at": VALUES,
        "version": VALUES,
        "stream_state": VALUES,
        "partitions": VALUES | hyp.dictionaries(hyp.sampled_from("pqr"), VALUES, max_size=3),
    },
)
STATES = hyp.fixed_dictionaries(
    {},
    optional={
        "currently_syncing": hyp.none() | hyp.sampled_from("ab"),
        "bookmarks": hyp.none() | hyp.dictionaries(hyp.sampled_from("abc"), ENTRIES, max_size=3),
        "other": VALUES,
    },
)


def without_nulls(state, level=0):
    """A state less the nulls at the levels at which null says "nothing there"."""
    deeper = {0: lambda key: key == "bookmarks", 1: lambda key: True, 2: lambda key: key == "partitions"}
    left = {key: value for key, value in state.items() if value is not None}
    for key, value in left.items():
        if isinstance(value, dict) and level in deeper and deeper[level](key):
            left[key] = without_nulls(value, level + 1)
    return left


def written(state):
    """A state as JSON, so that 1, 1.0 and true are three values."""
    return json.dumps(state, sort_keys=True)


@given(STATES, STATES, STATES)
def test_what_has_changed_makes_the_one_of_the_other(first, second, third):
    given_as = written([first, second, third])
    changes = [state_diff({}, first), state_diff(first, second), state_diff(second, third)]
    assert written(merge_states(changes)) == written(without_nulls(third))
    assert written(merge_states([second, changes[2]])) == written(without_nulls(third))
    assert state_diff(second, second) == {}
    assert written([first, second, third]) == given_as


@pytest.mark.parametrize("values", [(1, 1.0), (1, True), ([1], [1.0]), ([1], [1, 1]), ({"x": 0}, {"x": False})])
def test_values_that_only_python_takes_for_equal_have_changed(values):
    one, other = ({"bookmarks": {"a": {"at": value}}} for value in values)
    assert written(state_diff(one, other)) == written(other)
    assert state_diff(one, one) == {}
    assert state_diff({"x": None, **one}, one) == {}


def test_the_states_own_keys_are_looked_at_whatever_is_touched():
    assert state_diff({"currently_syncing": "a", "x": 1}, {"currently_syncing": "b"}, {}) == {
        "currently_syncing": "b",
        "x": None,
    }
    before, after = {"bookmarks": {"a": {"at": 1}}}, {"bookmarks": {}, "currently_syncing": "b"}
    assert state_diff(before, after, {}) == {"currently_syncing": "b"}
    assert state_diff(before, after, {"a": ()}) == {"bookmarks": {"a": None}, "currently_syncing": "b"}


@given(STATES, ENTRIES, ENTRIES)
def test_changes_of_different_streams_commute(state, one, other):
    bookmarks = state.get("bookmarks") or {}
    changes = [
        state_diff(state, {**state, "bookmarks": {**bookmarks, stream: entry}})
        for stream, entry in (("a", one), ("b", other))
    ]
    there, back = merge_states([state, *changes]), merge_states([state, *reversed(changes)])
    assert written(there) == written(back)
    assert written(there) == written(
        without_nulls({**state, "bookmarks": {**bookmarks, "a": one, "b": other}})
        if any(changes)
        else without_nulls(state)
    )


@given(STATES, STATES, hyp.data())
def test_with_the_touched_parts_named_nothing_else_is_looked_at(before, after, data):
    streams = data.draw(hyp.lists(hyp.sampled_from("abc"), unique=True))
    touched = {stream: data.draw(hyp.lists(hyp.sampled_from("pqr"), unique=True)) for stream in streams}
    change = state_diff(before, after, touched)
    full = state_diff(before, after)
    if set(touched) >= set("abc") and all(set(keys) >= set("pqr") for keys in touched.values()):
        assert written(change) == written(full)
    streams_in = change.get("bookmarks") or {}
    assert set(streams_in) <= set(touched)
    for stream, entry in streams_in.items():
        parts = (entry or {}).get("partitions")
        both = [(state.get("bookmarks") or {}).get(stream) for state in (before, after)]
        if isinstance(parts, dict) and all(isinstance((one or {}).get("partitions"), dict) for one in both):
            assert set(parts) <= set(touched[stream])


class Unread(dict):
    """A dict that can be asked for a key, and fails if somebody goes through it."""

    def __iter__(self):
        raise AssertionError("all of it was read")

    keys = items = values = __iter__


def test_the_cost_of_a_change_does_not_grow_with_the_state():
    """100,000 partitions, of which two are touched: the others are not looked at."""
    before = {"bookmarks": {"t": {"partitions": Unread({str(i): {"at": i} for i in range(100_000)})}, "u": Unread()}}
    parts = {**{str(i): {"at": i} for i in range(100_000)}, "7": {"at": 8}}
    del parts["9"]
    after = {"bookmarks": {"t": {"partitions": Unread(parts)}, "u": Unread()}}
    change = state_diff(before, after, {"t": ("7", "9", "11", "none")})
    assert change == {"bookmarks": {"t": {"partitions": {"9": None, "7": {"at": 8}}}}}


def test_lines_of_changes_are_read_as_one_state():
    lines = [PARTED, {"bookmarks": {"t": {"partitions": {"a": None}}}}, {"currently_syncing": "t"}]
    content = b"\n".join([wire({"type": "SCHEMA", "stream": "t"}), *map(message, lines), b'{"type": "STATE", "va'])
    assert parse_state(content, source="f", merge=True) == {
        "bookmarks": {"t": {"partitions": {"b": {"at": 2}}}},
        "currently_syncing": "t",
    }
    assert parse_state(content, source="f") == {"currently_syncing": "t"}
    assert parse_state(json.dumps(PARTED, indent=1).encode(), source="f", merge=True) == PARTED
    with pytest.raises(StateError, match=r"f: bookmarks\.t must be an object"):
        parse_state(b"\n".join([message({"bookmarks": {"t": 5}}), message({})]), source="f", merge=True)
