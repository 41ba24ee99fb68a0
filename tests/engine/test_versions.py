"""FULL_TABLE: versions and ACTIVATE_VERSION."""

from __future__ import annotations

import datetime as dt
from typing import Any

import burler
from burler.testing import FakeClock, run_tap, without_times
from support.internals import signals

FIELDS = {"type": "object", "properties": {"id": {"type": "integer"}}}


def table(fn: Any = lambda: [{"id": 1}, {"id": 2}], **options: Any) -> burler.Tap:
    tap = burler.tap("tap-t")
    tap.sync("t", key_properties="id", **options)(fn)
    tap.schema("t", FIELDS)
    return tap


def versions(messages: list[dict[str, Any]], kind: str) -> list[int | None]:
    return [m.get("version") for m in messages if m["type"] == kind]


def test_the_first_run_activates_before_and_after():
    run = run_tap(table())
    assert run.types == ["SCHEMA", "ACTIVATE_VERSION", "RECORD", "RECORD", "ACTIVATE_VERSION", "STATE"]
    version = run.states[-1]["bookmarks"]["t"]["version"]
    assert set(versions(run.messages, "RECORD") + versions(run.messages, "ACTIVATE_VERSION")) == {version}
    now = dt.datetime.now(dt.UTC).timestamp() * 1000
    assert now - 60_000 < version <= now


def test_later_runs_activate_only_after():
    first = run_tap(table())
    second = run_tap(table(), state=first.states[-1])
    assert second.types == ["SCHEMA", "RECORD", "RECORD", "ACTIVATE_VERSION", "STATE"]
    assert second.states[-1]["bookmarks"]["t"]["version"] > first.states[-1]["bookmarks"]["t"]["version"]


def test_both_places_of_the_version_are_read():
    for state in ({"activate_versions": {"t": 5}}, {"bookmarks": {"t": {"version": 5}}}):
        assert run_tap(table(), state=state).types[1] == "RECORD"


def test_a_failed_run_activates_nothing_at_its_end():
    def broken():
        yield {"id": 1}
        raise RuntimeError("boom")

    first = run_tap(table(broken))
    assert first.types == ["SCHEMA", "ACTIVATE_VERSION", "RECORD", "STATE", "STATE"]
    assert all("version" not in state.get("bookmarks", {}).get("t", {}) for state in first.states)
    state = {"bookmarks": {"t": {"version": 5}}}
    second = run_tap(table(broken), state=state)
    assert second.types == ["SCHEMA", "RECORD", "STATE", "STATE"]
    assert second.states[-1] == state


def test_a_run_that_fails_on_a_row_activates_nothing():
    run = run_tap(table(lambda: [{"id": 1}, {"id": "x"}]), state={"bookmarks": {"t": {"version": 5}}})
    assert versions(run.messages, "ACTIVATE_VERSION") == []


def test_a_stopped_run_activates_nothing_even_if_the_function_hides_it():
    for hide in (False, True):
        stopper = signals.Stopper()

        def rows(stopper: signals.Stopper = stopper, hide: bool = hide):
            yield {"id": 1}
            try:
                stopper.handle(15, None)
            except BaseException:
                if not hide:
                    raise
            yield {"id": 2}

        run = run_tap(table(rows), state={"bookmarks": {"t": {"version": 5}}}, stopper=stopper)
        assert versions(run.messages, "ACTIVATE_VERSION") == []
        assert run.states[-1] == {"bookmarks": {"t": {"version": 5}}, "currently_syncing": "t"}
        assert run.result.stopped_by == 15
        assert run.result.exit_code == 0


def test_a_clock_that_was_set_back():
    state = {"bookmarks": {"t": {"version": 1_900_000_000_000}}}
    run = run_tap(table(), state=state, clock=FakeClock(dt.datetime(2001, 1, 1, tzinfo=dt.UTC)))
    assert versions(run.messages, "RECORD") == [1_900_000_000_001] * 2


def test_switched_off_by_config_and_by_the_stream():
    off = ["SCHEMA", "RECORD", "RECORD", "STATE"]
    assert run_tap(table(), {"full_table_versions": False}).types == off
    assert run_tap(table(versions=False)).types == off
    assert run_tap(table(versions=True), {"full_table_versions": False}).types[1] == "ACTIVATE_VERSION"
    assert "version" not in run_tap(table(versions=False)).messages[1]


def test_a_table_emitted_by_another_gets_its_own_version():
    def rows():
        yield {"id": 1}
        yield "u", {"id": 2}

    tap = table(rows)
    tap.stream("u", emitted_by="t", key_properties="id", schema=FIELDS)
    messages = without_times(run_tap(tap).messages)
    assert [(m["type"], m.get("stream")) for m in messages if m["type"] != "STATE"] == [
        ("SCHEMA", "t"),
        ("SCHEMA", "u"),
        ("ACTIVATE_VERSION", "t"),
        ("RECORD", "t"),
        ("ACTIVATE_VERSION", "u"),
        ("RECORD", "u"),
        ("ACTIVATE_VERSION", "t"),
        ("ACTIVATE_VERSION", "u"),
    ]


def test_incremental_streams_have_none():
    run = run_tap(table(replication_key="id", order="asc"))
    assert "ACTIVATE_VERSION" not in run.types
    assert versions(run.messages, "RECORD") == [None, None]
