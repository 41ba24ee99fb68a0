"""``state_scope: touched``: each STATE carries what has changed since the last; together they give the whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from blocked import started, wait_for
from parts import key_of, marks, partitioned
from tapprocess import write_tap
from taps import ids, make

import burler
from burler.singer import merge_states
from burler.testing import run_tap
from support.cli import burler as burler_command

TOUCHED = {"state_scope": "touched"}


def both(tap: Any, config: dict[str, Any] | None = None, **more: Any) -> tuple[Any, Any]:
    """The same run with whole STATEs, and with those of what has changed."""
    whole = run_tap(tap(), config, **more)
    return whole, run_tap(tap(), {**(config or {}), **TOUCHED}, **more)


def merged(run: Any, state: Any = None) -> Any:
    return merge_states([*([state] if state else []), *run.states])


def partly() -> burler.Tap:
    return partitioned({name: range(5) for name in "abcd"}, bookmark_strategy="every_n(1)")


def test_the_whole_run_merged_is_the_whole_state():
    whole, touched = both(partly, {"page_max_rows": 1})
    assert merged(touched) == whole.states[-1] == touched.result.state


def test_at_every_state_the_merge_is_what_a_whole_state_would_have_said():
    whole, touched = both(partly, {"page_max_rows": 1})
    assert len(whole.states) == len(touched.states) > 10
    for at in range(len(whole.states)):
        assert merge_states(touched.states[: at + 1]) == whole.states[at]


def test_only_what_has_changed_is_in_a_state():
    _whole, touched = both(partly, {"page_max_rows": 1})
    assert max(len(marks(state)) for state in touched.states[1:]) <= 2
    lines = [json.dumps(state) for state in touched.states]
    assert max(map(len, lines[1:])) < 150


def test_streams_that_have_not_moved_are_left_out():
    tap = lambda: make(a=lambda: ids(1), b=lambda: ids(2), c=lambda: ids(3))  # noqa: E731
    _whole, touched = both(tap)
    named = [list(state.get("bookmarks", {})) for state in touched.states]
    assert ["b"] in named
    assert ["c"] in named
    assert merged(touched) == {"bookmarks": {"a": {"id": 1}, "b": {"id": 2}, "c": {"id": 3}}}


def test_a_resumed_run_says_everything_once_and_merges_with_what_was_before():
    first = run_tap(partly(), TOUCHED)
    state = merged(first)
    again = run_tap(partly(), {**TOUCHED, "page_max_rows": 1}, state=state)
    assert marks(again.states[0]).keys() == set("abcd")
    assert merged(again) == merged(again, state)
    assert marks(merged(again)) == dict.fromkeys("abcd", 4)


def test_what_is_gone_is_null_and_gone_when_merged():
    """The entry of an older run that collapses, and the stream that was being synced."""
    source = {"a": [1, 2], "b": [3, 4]}
    state = {"bookmarks": {"rows": {"id": 2, "partitions": {key_of("b"): {"id": 3}}}}, "currently_syncing": "rows"}

    def tap() -> burler.Tap:
        return partitioned(source, order="asc", bookmark_strategy="every_n(1)")

    whole, touched = both(tap, {"page_max_rows": 1}, state=state)
    assert whole.states[-1] == {"bookmarks": {"rows": {"id": 4}}}
    assert merged(touched, state) == whole.states[-1]
    assert merged(touched) == whole.states[-1]
    assert "null" in json.dumps(touched.states)


def test_an_old_flat_bookmark_that_is_removed():
    state = {"bookmarks": {"rows": {"id": 1}}}
    whole, touched = both(partly, state=state)
    assert merged(touched, state) == merged(touched) == whole.states[-1]
    assert "id" not in whole.states[-1]["bookmarks"]["rows"]


def test_a_table_that_was_interrupted_and_is_finished_leaves_no_place():
    def tap() -> burler.Tap:
        tap = burler.tap("tap-t")
        schema = {"properties": {"id": {"type": "integer"}}}
        tap.sync("t", resumable_by="id", schema=schema)(
            lambda stream: ({"id": n} for n in range(stream.bookmark or 0, 5))
        )
        return tap

    state = {"bookmarks": {"t": {"version": 5, "full_table": {"version": 7, "id": 3}}}}
    run = run_tap(tap(), TOUCHED, state=state)
    assert merged(run, state) == {"bookmarks": {"t": {"version": 7}}}


@pytest.mark.parametrize("order", [1, -1])
def test_states_of_different_streams_commute(order: int):
    tap = make(a=lambda: ids(1), b=lambda: ids(2))
    states = run_tap(tap, {**TOUCHED, "currently_syncing": False}).states
    assert merge_states([*states[::order]])["bookmarks"] == {"a": {"id": 1}, "b": {"id": 2}}


def test_what_a_function_puts_into_its_state_is_replaced_whole():
    def rows(stream):
        for number in range(3):
            yield ids(number)
            stream.state.clear()
            stream.state[f"key{number}"] = None

    whole, touched = both(lambda: make(a=(rows, {"bookmark_strategy": "on_page"})))
    assert merged(touched) == whole.states[-1]
    assert whole.states[-1]["bookmarks"]["a"]["stream_state"] == {"key2": None}


def test_an_acknowledge_function_is_told_of_the_whole():
    told: list[Any] = []
    tap = partly()
    tap.acknowledge("rows")(lambda stream, bookmark: told.append((stream.partition["account"], bookmark)))
    run_tap(tap, TOUCHED)
    assert dict(told) == dict.fromkeys("abcd", 4)


def test_states_stay_small_with_many_partitions():
    source = {f"account-{n}": [n] for n in range(3000)}
    whole, touched = both(lambda: partitioned(source, bookmark_strategy="every_n(10)"))
    assert merged(touched) == whole.states[-1]
    assert sum(len(json.dumps(state)) for state in touched.states) < 2 * len(json.dumps(whole.states[-1]))


# ---- through the command line ---------------------------------------------------------------------------------

SOURCE = """
import os, sys, time
import burler
tap = burler.tap("tap-x")
FIELDS = {"properties": {"account": {"type": "string"}, "id": {"type": "integer"}}}

@tap.partitions("rows", key="account")
def accounts():
    return [{"account": name} for name in "abc"]

@tap.sync("rows", key_properties=["account", "id"], replication_key="id", bookmark_strategy="every_n(2)", schema=FIELDS)
def rows(stream, partition):
    for number in range(stream.bookmark or 0, 9):
        if number == 5 and partition["account"] == "b" and os.environ.get("BLOCK"):
            sys.stderr.write("BLOCKED\\n")
            time.sleep(600)
        yield {"account": partition["account"], "id": number}
"""
WHOLE = {"bookmarks": {"rows": {"partitions": {name: {"id": 8} for name in "abc"}}}}


def command(folder: Path, *args: Any) -> Any:
    (folder / "config.json").write_text(json.dumps({**TOUCHED, "page_max_rows": 2}))
    write_tap(folder, SOURCE)
    done = burler_command("run", "tap_x.py", "--config", "config.json", *args, cwd=folder)
    assert done.code == 0, done.stderr
    return done


def states_of(done: Any) -> list[Any]:
    return [message["value"] for message in done.messages if message["type"] == "STATE"]


def test_an_out_file_holds_the_whole_state(tmp_path: Path):
    done = command(tmp_path, "--out-file", "state.json")
    assert json.loads((tmp_path / "state.json").read_bytes()) == WHOLE
    assert merge_states(states_of(done)) == WHOLE
    assert states_of(done)[-1] != WHOLE
    again = command(tmp_path, "--state", "state.json")
    assert [m["record"]["id"] for m in again.messages if m["type"] == "RECORD"] == [8, 8, 8]


@pytest.mark.parametrize("kind", ["all lines", "states", "values"])
def test_a_state_file_of_lines_is_merged(tmp_path: Path, kind: str):
    """What the tap printed, STATE lines alone, or the values that an orchestrator kept of them."""
    done = command(tmp_path)
    lines = done.stdout.splitlines()
    states = [line for line in lines if b'"STATE"' in line]
    kept = {
        "all lines": lines,
        "states": states,
        "values": [json.dumps(json.loads(s)["value"]).encode() for s in states],
    }
    (tmp_path / "kept.jsonl").write_bytes(b"\n".join(kept[kind]) + b"\n")
    again = command(tmp_path, "--state", "kept.jsonl")
    assert [m["record"]["id"] for m in again.messages if m["type"] == "RECORD"] == [8, 8, 8]
    assert merge_states(states_of(again)) == WHOLE


def test_without_the_setting_the_last_line_counts(tmp_path: Path):
    """As ever: whole STATEs are not merged, or what is gone would come back."""
    write_tap(tmp_path, SOURCE)
    lines = [{"bookmarks": {"rows": {"partitions": {"a": {"id": 8}}}}}, {"bookmarks": {"rows": {}}}]
    (tmp_path / "kept.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = burler_command("run", "tap_x.py", "--state", "kept.jsonl", cwd=tmp_path)
    assert len([m for m in done.messages if m["type"] == "RECORD"]) == 27


def test_with_a_lake(tmp_path: Path):
    (tmp_path / "lake").mkdir()
    done = command(tmp_path, "--sink", "lake:lake", "--out-file", "state.json")
    assert json.loads((tmp_path / "state.json").read_bytes()) == WHOLE
    assert merge_states(states_of(done)) == WHOLE
    assert {m["type"] for m in done.messages} == {"STATE"}


def test_a_lake_that_holds_states_back_loses_none_of_what_they_say(tmp_path: Path):
    """Of several that wait for a file only the newest goes out; it must say what the others would have said."""
    (tmp_path / "lake").mkdir()
    write_tap(tmp_path, SOURCE)
    (tmp_path / "config.json").write_text(json.dumps({**TOUCHED, "page_max_rows": 2, "max_file_records": 8}))
    done = burler_command("run", "tap_x.py", "--config", "config.json", "--sink", "lake:lake", cwd=tmp_path)
    assert done.code == 0, done.stderr
    assert len(states_of(done)) >= 2
    assert merge_states(states_of(done)) == WHOLE


def test_a_killed_run_goes_on_from_its_lines(tmp_path: Path):
    with started(tmp_path, SOURCE, config={**TOUCHED, "page_max_rows": 2}, BLOCK="1") as process:
        wait_for(process, b"BLOCKED", 1)
        process.kill()
        out, _err = process.communicate(timeout=30)
    whole = out[: out.rindex(b"\n") + 1]
    (tmp_path / "kept.jsonl").write_bytes(whole)
    first = [json.loads(line) for line in whole.splitlines()]
    rest = command(tmp_path, "--state", "kept.jsonl")
    rows = {(m["record"]["account"], m["record"]["id"]) for m in [*first, *rest.messages] if m["type"] == "RECORD"}
    assert rows == {(name, n) for name in "abc" for n in range(9)}
    assert len([m for m in rest.messages if m["type"] == "RECORD"]) < 27
    assert merge_states([*(m["value"] for m in first if m["type"] == "STATE"), *states_of(rest)]) == WHOLE
