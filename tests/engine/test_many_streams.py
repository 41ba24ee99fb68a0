"""Thousands of small streams: STATE lines stay smaller than the rows, and the last one tells all."""

from __future__ import annotations

import json

import burler
from burler.testing import run_tap


def many(count: int, *, rows: int = 1) -> burler.Tap:
    tap = burler.tap("tap-many")
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "text": {"type": "string"}}}
    for number in range(count):
        tap.sync(f"stream_{number}", key_properties="id", replication_key="id", schema=schema)(
            lambda: [{"id": i, "text": "x" * 60} for i in range(rows)]
        )
    return tap


def sizes(messages: list[dict]) -> tuple[int, int]:
    states = [json.dumps(message) for message in messages if message["type"] == "STATE"]
    records = [json.dumps(message) for message in messages if message["type"] == "RECORD"]
    return sum(map(len, states)), sum(map(len, records))


def test_states_do_not_outweigh_the_rows():
    run = run_tap(many(1500))
    states, records = sizes(run.messages)
    last = len(json.dumps(run.states[-1]))
    assert states <= records + 3 * last, (states, records, last)
    assert len(run.states[-1]["bookmarks"]) == 1500 and "currently_syncing" not in run.states[-1]


def test_few_streams_have_a_state_each():
    run = run_tap(many(3))
    assert [message["type"] for message in run.messages] == ["SCHEMA", "RECORD", "STATE"] * 3


def test_what_was_put_off_comes_before_a_stop_and_after_a_failure():
    tap = many(400)

    @tap.sync("broken", schema={"type": "object", "properties": {"id": {"type": "integer"}}})
    def broken():
        raise ValueError("no")

    run = run_tap(tap)
    at = next(i for i, state in enumerate(run.states) if len(state.get("bookmarks", {})) == 400)
    assert list(run.result.errors) == ["broken"] and at >= len(run.states) - 2
