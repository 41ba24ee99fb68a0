"""The sink that makes STATEs carry only what has changed."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burler.singer import merge_states
from burler.singer.messages import Schema, State
from support.internals import memory_sink, touched_sink


def written(*states: dict[str, Any], before: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """What is printed for whole states."""
    sink = memory_sink.MemorySink()
    touched = touched_sink.TouchedStates(sink, before)
    for state in states:
        touched.write(State(copy.deepcopy(state)))
    return [message["value"] for message in sink.messages]


def test_the_first_one_carries_everything():
    state = {"bookmarks": {"a": {"id": 1}, "b": {"id": 2}}, "currently_syncing": "a", "other": {"x": 1}}
    assert written(state) == [state]
    assert written(state, before=state) == [state]


def test_the_next_one_carries_what_is_new_changed_or_gone():
    first = {"bookmarks": {"a": {"id": 1, "old": 5}, "b": {"id": 2}, "c": {"id": 3}}, "currently_syncing": "a"}
    second = {"bookmarks": {"a": {"id": 9}, "b": {"id": 2}, "d": {"id": 4}}}
    change = {"bookmarks": {"a": {"id": 9, "old": None}, "c": None, "d": {"id": 4}}, "currently_syncing": None}
    assert written(first, second)[1] == change


def test_partitions_are_carried_one_by_one():
    first = {"bookmarks": {"a": {"partitions": {"x": {"id": 1}, "y": {"id": 2}, "z": {"id": 3}}}}}
    second = {"bookmarks": {"a": {"partitions": {"x": {"id": 1}, "y": {"id": 5}}}}}
    assert written(first, second)[1] == {"bookmarks": {"a": {"partitions": {"y": {"id": 5}, "z": None}}}}


def test_what_the_run_began_with_and_lacks_is_null_in_the_first_one():
    before = {
        "bookmarks": {"a": {"id": 1, "partitions": {"x": {"id": 1}, "y": {"id": 2}}}, "gone": {"id": 3}},
        "currently_syncing": "a",
    }
    now = {"bookmarks": {"a": {"partitions": {"x": {"id": 4}}}}}
    (first,) = written(now, before=before)
    assert first == {
        "bookmarks": {"a": {"id": None, "partitions": {"x": {"id": 4}, "y": None}}, "gone": None},
        "currently_syncing": None,
    }
    assert merge_states([before, first]) == now
    assert merge_states([first]) == now


def test_values_that_python_takes_for_equal_are_not():
    assert written({"bookmarks": {"a": {"id": 1}}}, {"bookmarks": {"a": {"id": 1.0}}})[1] == {
        "bookmarks": {"a": {"id": 1.0}}
    }
    assert written({"bookmarks": {"a": {"id": True}}}, {"bookmarks": {"a": {"id": 1}}})[1] == {
        "bookmarks": {"a": {"id": 1}}
    }


def test_other_messages_go_through_and_so_does_all_else():
    calls: list[Any] = []

    class Sink(memory_sink.MemorySink):
        def flush(self) -> None:
            calls.append("flush")

        def tick(self) -> None:
            calls.append("tick")

    sink = Sink()
    touched = touched_sink.TouchedStates(sink)
    touched.tell_states(calls.append)
    schema = Schema("a", {"type": "object"}, ())
    touched.write(schema)
    touched.write(State({"bookmarks": {"a": {"id": 1}}}))
    touched.write(State({"bookmarks": {"a": {"id": 1}, "b": {"id": 2}}}))
    touched.flush()
    touched.tick()
    touched.close(complete=True)
    assert sink.messages[0] == schema.to_wire()
    assert calls == [{"bookmarks": {"a": {"id": 1}}}, {"bookmarks": {"a": {"id": 1}, "b": {"id": 2}}}, "flush", "tick"]
    assert sink.closed


def test_a_state_is_changed_neither_by_what_is_printed_nor_afterwards():
    sink = memory_sink.MemorySink()
    touched = touched_sink.TouchedStates(sink)
    state = {"bookmarks": {"a": {"id": 1, "stream_state": {"page": [1]}}}}
    touched.write(State(copy.deepcopy(state)))
    other = copy.deepcopy(state)
    other["bookmarks"]["a"]["stream_state"]["page"].append(2)
    touched.write(State(other))
    assert sink.messages[0]["value"] == state
    assert sink.messages[1]["value"] == {"bookmarks": {"a": {"stream_state": {"page": [1, 2]}}}}


VALUES = st.one_of(st.integers(0, 3), st.booleans(), st.text(max_size=2), st.floats(0, 2), st.just([1]), st.none())
DEEP = st.dictionaries(st.sampled_from("pq"), VALUES, max_size=2)
ENTRIES = st.dictionaries(
    st.sampled_from(["id", "at", "version", "stream_state"]), st.one_of(VALUES.filter(lambda v: v is not None), DEEP)
)
PARTS = st.dictionaries(
    st.sampled_from("xyz"), st.dictionaries(st.sampled_from(["id", "stream_state"]), DEEP, min_size=1)
)
STREAMS = st.builds(lambda own, parts: {**own, **({"partitions": parts} if parts else {})}, ENTRIES, PARTS)
BOOKMARKS = st.dictionaries(st.sampled_from("abc"), STREAMS.filter(bool), max_size=3)
STATES = st.builds(
    lambda marks, syncing: {
        **({"bookmarks": marks} if marks else {}),
        **({"currently_syncing": syncing} if syncing else {}),
    },
    BOOKMARKS,
    st.sampled_from(["", "a", "b"]),
)


def plain(state: dict[str, Any]) -> str:
    """A state as text, in which 1 and 1.0 and true differ, without empty objects, which say nothing."""
    out = copy.deepcopy(state)
    for entry in (out.get("bookmarks") or {}).values():
        if not entry.get("partitions"):
            entry.pop("partitions", None)
    marks = {name: entry for name, entry in (out.get("bookmarks") or {}).items() if entry}
    out.pop("bookmarks", None)
    return json.dumps({**out, **({"bookmarks": marks} if marks else {})}, sort_keys=True)


@settings(suppress_health_check=list(HealthCheck))
@given(before=STATES, states=st.lists(STATES, min_size=1, max_size=5), known=st.booleans())
def test_merged_in_order_they_give_the_whole_at_every_moment(before: Any, states: list[Any], known: bool):
    changes = written(*states, before=before)
    for at, state in enumerate(states):
        begun = [before] if known else []
        assert plain(merge_states([*begun, *changes[: at + 1]])) == plain(state)
