"""State: the forms it is given in, what survives, and the pure functions on it."""

from __future__ import annotations

import json

import pytest

import burler
from burler.errors import StateError
from burler.singer import check_state, get_bookmark, parse_state, set_bookmark
from burler.testing import run_tap

STATE = {"bookmarks": {"a": {"at": "2024-01-01T00:00:00Z", "odd": [1, {"x": None}]}}, "extra": {"kept": True}}
BOM = b"\xef\xbb\xbf"


def wire(value: object) -> bytes:
    return json.dumps(value).encode()


def message(value: object, kind: str = "STATE") -> bytes:
    return wire({"type": kind, "value": value})


OLD = {"bookmarks": {"a": {"at": "2000-01-01T00:00:00Z"}}}


@pytest.mark.parametrize(
    "content",
    [
        wire(STATE),
        json.dumps(STATE, indent=2).encode(),
        b"  \n" + wire(STATE) + b"\n\n",
        BOM + wire(STATE),
        message(STATE),
        message(STATE, "state"),
        message(OLD) + b"\n" + message(STATE) + b"\n",
        message(OLD) + b"\r\n\r\n" + message(STATE),
        BOM + message(OLD) + b"\n" + message(STATE),
        wire(OLD) + b"\n" + wire(STATE),
        wire(OLD) + b"\n" + message(STATE),
        message(OLD) + b"\n" + message(STATE) + b"\n" + message(OLD)[:25],
        message(STATE) + b'\n{"type": "STATE", "value": {"bookmarks": {"a": {"at": "\xff',
        wire({"type": "SCHEMA", "stream": "a"})
        + b"\n"
        + message(STATE)
        + b"\n"
        + wire({"type": "RECORD", "record": {}}),
    ],
)
def test_forms(content):
    assert parse_state(content, source="f") == STATE


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty. Leave --state out"),
        (b" \n\t\n", "the file is empty"),
        (BOM, "the file is empty"),
        (b"null", "the state is null"),
        (message(None), "the state is null"),
        (b"[]", "not a list"),
        (b"5", "not a number"),
        (b"1.5", "not a number"),
        (b"true", "not a boolean"),
        (b'"x"', "not text"),
        (message([]), "not a list"),
        (b"{", "line 1 is not JSON"),
        (b'{"bookmarks": {}', "line 1 is not JSON"),
        (message(OLD)[:20] + b"\n" + message(STATE), "line 1 is not JSON"),
        (message(OLD) + b"\n{torn\n" + message(STATE), "line 2 is not JSON"),
        (b"\xff\xfe{", "line 1 is not JSON"),
        (wire({"type": "RECORD", "stream": "a", "record": {"id": 1}}), "no STATE among them"),
        (wire({"type": "STATE"}), "no STATE among them"),
        (wire({"bookmarks": []}), "'bookmarks' must be an object of streams, not a list"),
        (wire({"bookmarks": {"a": 5}}), "bookmarks.a must be an object, not a number"),
        (wire({"bookmarks": {"a": {"stream_state": "x"}}}), "bookmarks.a.stream_state must be an object, not text"),
    ],
)
def test_what_is_no_state(content, says):
    with pytest.raises(StateError) as caught:
        parse_state(content, source="state file s.json")
    assert str(caught.value).startswith("state file s.json: ")
    assert says in str(caught.value)


def test_check_state_copies_deeply_and_takes_none():
    value = {"bookmarks": {"a": {"x": [1]}, "b": None}}
    checked = check_state(value)
    checked["bookmarks"]["a"]["x"].append(2)
    assert value == {"bookmarks": {"a": {"x": [1]}, "b": None}}
    assert check_state(None) == {}


def test_get_and_set():
    state = {}
    set_bookmark(state, "a", "at", None)
    assert state == {}
    set_bookmark(state, "a", "at", 1)
    set_bookmark(state, "a", "version", 5)
    set_bookmark(state, "b", "at", 0)
    assert state == {"bookmarks": {"a": {"at": 1, "version": 5}, "b": {"at": 0}}}
    assert get_bookmark(state, "a", "at") == 1
    assert get_bookmark(state, "b", "at", 7) == 0
    assert get_bookmark(state, "c", "at", 7) == 7
    assert get_bookmark({"bookmarks": None}, "c", "at") is None
    assert get_bookmark({"bookmarks": {"c": None}}, "c", "at", 7) == 7
    set_bookmark(state, "a", "at", None)
    set_bookmark(state, "b", "at", None)
    set_bookmark(state, "b", "at", None)
    assert state == {"bookmarks": {"a": {"version": 5}}}
    odd = {"bookmarks": {"a": None}}
    set_bookmark(odd, "a", "at", 1)
    assert odd == {"bookmarks": {"a": {"at": 1}}}


def test_unknown_keys_survive_a_run():
    tap = burler.tap("tap-x")

    @tap.sync("a", replication_key="at")
    def rows(stream):
        assert stream.bookmark == "2024-01-01T00:00:00Z"
        yield {"at": "2024-01-02T00:00:00Z"}

    tap.schema("a", {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}})
    given = {**STATE, "bookmarks": {**STATE["bookmarks"], "gone": {"x": 1}}}
    run = run_tap(tap, state=given)
    assert run.states[-1] == {
        "bookmarks": {"a": {"at": "2024-01-02T00:00:00Z", "odd": [1, {"x": None}]}, "gone": {"x": 1}},
        "extra": {"kept": True},
    }
    assert given["bookmarks"]["a"]["at"] == "2024-01-01T00:00:00Z"
