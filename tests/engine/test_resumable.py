"""``resumable_by``: an interrupted full table goes on where it was, under the same version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from blocked import started, wait_for
from tapprocess import messages_of
from taps import FIELDS, ids

import burler
from burler.errors import DeclarationError, UnsortedStreamError
from burler.testing import run_tap
from support.cli import burler as burler_command
from support.internals import signals


class Broken(Exception):
    """The source has gone away."""


def table(count: int = 6, fail_at: int | None = None, seen: list[Any] | None = None, **options: Any) -> burler.Tap:
    """A table of ``count`` rows that breaks off before row ``fail_at``."""
    tap = burler.tap("tap-t")
    said = {"key_properties": "id", "resumable_by": "id", "bookmark_strategy": "every_n(2)", "schema": FIELDS}

    @tap.sync("t", **{**said, **options})
    def rows(stream):
        if seen is not None:
            seen.append(stream.bookmark)
        for number in range(stream.bookmark or 0, count):
            if number == fail_at:
                raise Broken
            yield {"id": number}

    return tap


def held_after(*runs: Any) -> set[int]:
    """What a target holds after runs: ACTIVATE_VERSION drops the rows of all other versions."""
    held: dict[int, Any] = {}
    for run in runs:
        for message in run.messages:
            if message["type"] == "RECORD":
                held[message["record"]["id"]] = message.get("version")
            if message["type"] == "ACTIVATE_VERSION":
                held = {one: version for one, version in held.items() if version == message["version"]}
    return set(held)


def activated(run: Any) -> list[int]:
    return [m["version"] for m in run.messages if m["type"] == "ACTIVATE_VERSION"]


def versions(run: Any) -> set[Any]:
    return {m.get("version") for m in run.messages if m["type"] == "RECORD"}


def entry(run: Any) -> dict[str, Any]:
    found: dict[str, Any] = run.states[-1].get("bookmarks", {}).get("t", {})
    return found


# ---- going on -----------------------------------------------------------------------------------------


def test_an_interrupted_table_goes_on_under_its_version():
    seen: list[Any] = []
    first = run_tap(table(fail_at=4, seen=seen), state={"bookmarks": {"t": {"version": 5}}})
    assert activated(first) == []
    (version,) = versions(first)
    assert entry(first) == {"version": 5, "full_table": {"version": version, "id": 3}}
    second = run_tap(table(seen=seen), state=first.states[-1])
    assert seen == [None, 3]
    assert [row["id"] for row in second.records("t")] == [3, 4, 5]
    assert versions(second) == {version}
    assert activated(second) == [version]
    assert second.types[-2:] == ["ACTIVATE_VERSION", "STATE"]
    assert entry(second) == {"version": version}
    assert held_after(first, second) == set(range(6))


def test_a_first_table_that_is_interrupted():
    """Its version is activated before its rows, and once at its end; a target never sees less than there was."""
    first = run_tap(table(fail_at=3))
    second = run_tap(table(), state=first.states[-1])
    assert set(activated(first)) == set(activated(second)) == versions(first) == versions(second)
    assert held_after(first, second) == set(range(6))


def test_it_may_be_interrupted_many_times():
    state, runs = {"bookmarks": {"t": {"version": 5}}}, []
    for stop in (1, 2, 2, 5, None):
        runs.append(run_tap(table(fail_at=stop), state=state))
        state = runs[-1].states[-1]
    assert len(set.union(*map(versions, runs))) == 1
    assert [len(activated(run)) for run in runs] == [0, 0, 0, 0, 1]
    assert held_after(*runs) == set(range(6))


def test_the_next_whole_run_begins_anew_under_a_new_version():
    seen: list[Any] = []
    first = run_tap(table(fail_at=4))
    second = run_tap(table(), state=first.states[-1])
    third = run_tap(table(count=2, seen=seen), state=second.states[-1])
    assert seen == [None]
    assert versions(third) > versions(second) or max(versions(third)) > max(versions(second))
    assert held_after(first, second, third) == {0, 1}


def test_nothing_came_before_it_broke_off():
    first = run_tap(table(fail_at=0), state={"bookmarks": {"t": {"version": 5}}})
    assert entry(first) == {"version": 5}
    second = run_tap(table(), state=first.states[-1])
    assert held_after(first, second) == set(range(6))


def test_a_stop_keeps_the_place():
    stopper = signals.Stopper()
    tap = burler.tap("tap-t")

    @tap.sync("t", resumable_by="id", schema=FIELDS)
    def rows(stream):
        for number in range(stream.bookmark or 0, 6):
            if number == 4 and stream.bookmark is None:
                stopper.handle(15, None)
            yield {"id": number}

    first = run_tap(tap, stopper=stopper)
    assert entry(first)["full_table"]["id"] == 3
    second = run_tap(tap, state=first.states[-1])
    assert [row["id"] for row in second.records("t")] == [3, 4, 5]
    assert held_after(first, second) == set(range(6))


def test_states_on_the_way_say_no_more_than_what_is_out():
    run = run_tap(table(count=20, bookmark_strategy="every_n(1)"), {"page_max_rows": 1})
    out = -1
    places = 0
    for message in run.messages:
        if message["type"] == "RECORD":
            out = message["record"]["id"]
        if message["type"] == "STATE":
            found = message["value"].get("bookmarks", {}).get("t", {}).get("full_table")
            places += found is not None
            assert found is None or found["id"] <= out
    assert places > 5


SOURCE = """
import os, sys, time
import burler
tap = burler.tap("tap-x")

@tap.sync("t", key_properties="id", resumable_by="id", bookmark_strategy="every_n(10)", schema=SCHEMA)
def rows(stream):
    for number in range(stream.bookmark or 0, 200):
        if number == int(os.environ.get("BLOCK", -1)):
            sys.stderr.write("BLOCKED\\n")
            sys.stderr.flush()
            time.sleep(600)
        yield {"id": number, "text": None}
"""


@pytest.mark.parametrize("at", [5, 133])
def test_a_kill_and_a_resumed_run(tmp_path: Path, at: int):
    """With the last STATE that reached the pipe: the same version, all rows, one ACTIVATE_VERSION at the end."""
    state = tmp_path / "state.json"
    state.write_text('{"bookmarks": {"t": {"version": 5}}}')
    with started(tmp_path, SOURCE, "--state", str(state), BLOCK=str(at)) as process:
        wait_for(process, b"BLOCKED", 1)
        process.kill()
        out, _err = process.communicate(timeout=30)
    first = messages_of(out[: out.rindex(b"\n") + 1])
    states = [message["value"] for message in first if message["type"] == "STATE"]
    if states:
        state.write_text(json.dumps(states[-1]))
    rest = burler_command("run", tmp_path / "tap_x.py", "--state", state, cwd=tmp_path)
    assert rest.code == 0
    both = [*first, *rest.messages]
    resumed = bool(states) and "full_table" in states[-1]["bookmarks"]["t"]
    numbers = {m["version"] for m in both if m["type"] == "RECORD"}
    assert len(numbers) == (1 if resumed or not any(m["type"] == "RECORD" for m in first) else 2)
    assert [m["type"] for m in both].count("ACTIVATE_VERSION") == 1
    last = rest.messages[-2]
    assert last["type"] == "ACTIVATE_VERSION"
    whole = {m["record"]["id"] for m in both if m["type"] == "RECORD" and m["version"] == last["version"]}
    assert whole == set(range(200))
    if at == 133:
        assert resumed


# ---- out of order ---------------------------------------------------------------------------------------


def out_of_order(*numbers: int, **options: Any) -> burler.Tap:
    tap = burler.tap("tap-t")
    said = {"resumable_by": "id", "schema": FIELDS, "bookmark_strategy": "every_n(1)"}
    tap.sync("t", **{**said, **options})(lambda: iter(ids(*numbers)))
    return tap


@pytest.mark.parametrize("begun", [None, {"version": 7, "id": 2}])
def test_rows_out_of_order_are_an_error_and_the_place_is_where_the_run_began(begun: Any):
    state = {"bookmarks": {"t": {"version": 5, **({"full_table": begun} if begun else {})}}}
    run = run_tap(out_of_order(3, 4, 2, 6), {"page_max_rows": 1}, state=state)
    assert isinstance(run.result.errors["t"], UnsortedStreamError)
    assert activated(run) == []
    assert entry(run).get("full_table", {}).get("id") == (begun["id"] if begun else None)


def test_rows_in_order_leave_no_place_at_the_end():
    run = run_tap(out_of_order(3, 4, 5))
    assert not run.result.errors
    assert "full_table" not in entry(run)


def test_a_field_of_another_kind_than_the_place_is_an_error():
    state = {"bookmarks": {"t": {"version": 5, "full_table": {"version": 7, "id": "text"}}}}
    run = run_tap(out_of_order(1, 2), state=state)
    assert "t" in run.result.errors
    assert activated(run) == []


# ---- versions ---------------------------------------------------------------------------------------------


def test_without_versions_it_goes_on_all_the_same():
    for options, config in (({"versions": False}, {}), ({}, {"full_table_versions": False})):
        first = run_tap(table(fail_at=4, **options), config)
        assert entry(first) == {"full_table": {"id": 3}}
        second = run_tap(table(**options), config, state=first.states[-1])
        assert [row["id"] for row in second.records("t")] == [3, 4, 5]
        assert activated(first) == activated(second) == []
        assert entry(second) == {}


def test_versions_that_are_switched_on_between_two_runs_drop_no_rows():
    """The first rows carry no version: a version of the rest alone would make targets drop them."""
    first = run_tap(table(fail_at=4), {"full_table_versions": False})
    second = run_tap(table(), state=first.states[-1])
    assert held_after(first, second) == set(range(6))


def test_versions_that_are_switched_off_between_two_runs():
    first = run_tap(table(fail_at=4), state={"bookmarks": {"t": {"version": 5}}})
    second = run_tap(table(), {"full_table_versions": False}, state=first.states[-1])
    assert activated(second) == []
    third = run_tap(table(), state=second.states[-1])
    assert held_after(first, second, third) == set(range(6))
    assert versions(third).isdisjoint(versions(first))


@pytest.mark.parametrize("version", [None, 5, 4, "7", True, -1])
def test_a_place_without_a_usable_version_drops_no_rows(version: Any):
    """Rows that an earlier run brought stand under a version that is not known any more: all come again."""
    place = {"id": 3} if version is None else {"version": version, "id": 3}
    run = run_tap(table(), state={"bookmarks": {"t": {"version": 5, "full_table": place}}})
    assert {m["record"]["id"] for m in run.messages if m["type"] == "RECORD"} == set(range(6))
    assert len(activated(run)) == 1


@pytest.mark.parametrize("place", [5, [], "x", {}, {"other": 3}, {"version": 7}])
def test_a_place_that_is_none_is_no_place(place: Any):
    run = run_tap(table(), state={"bookmarks": {"t": {"version": 5, "full_table": place}}})
    assert not run.result.errors
    assert [row["id"] for row in run.records("t")] == list(range(6))
    assert len(activated(run)) == 1


def test_a_table_that_becomes_incremental_forgets_the_place():
    first = run_tap(table(fail_at=4))
    tap = burler.tap("tap-t")
    tap.sync("t", replication_key="id", schema=FIELDS)(lambda stream: ids(1) if stream.bookmark is None else [])
    second = run_tap(tap, state=first.states[-1])
    assert second.records("t") == ids(1)
    assert not second.result.errors


# ---- retries, and what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("begun", [False, True])
def test_a_table_that_is_tried_again_drops_no_rows(begun: bool):
    tries: list[Any] = []
    tap = burler.tap("tap-t")

    @tap.sync("t", resumable_by="id", retry_sync_on=Broken, bookmark_strategy="every_n(1)", schema=FIELDS)
    def rows(stream):
        tries.append(stream.bookmark)
        for number in range(stream.bookmark or 0, 6):
            if number == 4 and len(tries) == 1:
                raise Broken
            yield {"id": number}

    runs = [run_tap(table(fail_at=3), state={"bookmarks": {"t": {"version": 5}}})] if begun else []
    runs.append(run_tap(tap, state=runs[0].states[-1] if runs else {"bookmarks": {"t": {"version": 5}}}))
    assert not runs[-1].result.errors
    assert held_after(*runs) == set(range(6))
    assert "full_table" not in entry(runs[-1])


def test_it_is_for_full_tables_alone():
    tap = burler.tap("tap-t")
    tap.sync("t", replication_key="id", resumable_by="id", schema=FIELDS)(lambda: [])
    with pytest.raises(DeclarationError, match="resumable_by is for FULL_TABLE streams"):
        run_tap(tap)


@pytest.mark.parametrize(
    ("keys", "kind", "field"),
    [
        (["id"], "integer", "id"),
        (["id", "n"], ["null", "string"], "id"),
        (["id"], "boolean", None),
        ([], "integer", None),
    ],
)
def test_the_first_field_of_the_key_of_each_stream_that_is_found(keys: list[str], kind: Any, field: str | None):
    tap = burler.tap("tap-db")
    seen = []

    @tap.discover
    def found():
        schema = {"properties": {"id": {"type": kind}, "n": {"type": "integer"}}}
        return {"streams": [{"tap_stream_id": "a", "stream": "a", "schema": schema, "key_properties": keys}]}

    @tap.sync("*", resumable_by="*")
    def rows(stream):
        seen.append(stream.resumable_by)
        return []

    assert run_tap(tap).result.errors == {}
    assert seen == [field]


def test_the_first_key_of_one_stream_has_a_name():
    tap = burler.tap("tap-db")
    tap.sync("a", key_properties="id", resumable_by="*", schema={"properties": {"id": {"type": "integer"}}})(lambda: [])
    with pytest.raises(DeclarationError, match="Name the field here"):
        tap.seal()


def test_rows_without_the_field_are_told_by_its_name(caplog: pytest.LogCaptureFixture):
    tap = burler.tap("tap-db")
    schema = {"properties": {"id": {"type": "integer"}, "n": {"type": ["null", "integer"]}}}
    tap.sync("a", key_properties="id", resumable_by="n", schema=schema)(
        lambda: [{"id": 1, "n": None}, {"id": 2, "n": 1}]
    )
    run_tap(tap)
    assert "1 of 2 rows have no 'n'" in caplog.text
