"""Ends of parts, put together in any order: the state that one local run of all of them writes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from awayruns import run_away, same_state, shuffled
from parts import FIELDS, entry_of, given, key_of, marks, partitioned, row, state_of

import burler
from burler.testing import MemorySink, run_tap
from support.internals import runtime_away

SOURCE = {"a": [1, 2, 3], "b": [10, 20], "c": []}
MONTHS = {"a": [1, 2, 3], "b": [4, 5], "c": [6, 7]}
NUMBER = {"type": "object", "properties": {"id": {"type": "integer"}, "of": {"type": "integer"}}}


def failing(source: dict[str, Any], bad: set[str]) -> Any:
    rows = given(source)

    def fn(stream: Any, partition: dict[str, Any]) -> Any:
        yield from rows(stream, partition)
        if partition["account"] in bad:
            raise ConnectionError("gone")

    return fn


def equal(tap: Any, **options: Any) -> Any:
    """Run away in three orders, and here; the last one away."""
    local = run_tap(tap, **options)
    for seed in range(3):
        away = run_away(tap, **options, order=shuffled(seed))
        assert same_state(away, local), (away.state, local.result.state)
        assert set(away.errors) == set(local.result.errors)
        for stream in {message["stream"] for message in local.messages if message["type"] == "RECORD"}:
            assert sorted(map(repr, away.records(stream))) == sorted(map(repr, local.records(stream)))
    return away


# ---- bookmarks of partitions ----------------------------------------------------------------------------


def test_each_partition_has_its_own_bookmark():
    away = equal(partitioned(SOURCE))
    assert marks(away.state) == {"a": 3, "b": 20}


def test_the_next_run_goes_on_in_each_partition():
    away = equal(partitioned(SOURCE), state=state_of({"a": 2, "gone": 7}))
    assert sorted(one["id"] for one in away.records("rows")) == [2, 3, 10, 20]
    assert marks(away.state) == {"a": 3, "b": 20, "gone": 7}


def test_an_old_flat_bookmark_is_where_partitions_begin_and_goes_when_all_have_their_own():
    away = equal(partitioned(SOURCE), state=state_of({}, flat=2))
    assert sorted(one["id"] for one in away.records("rows")) == [2, 3, 10, 20]
    assert "id" not in entry_of(away.state)


@pytest.mark.parametrize("rises", [None, "asc"])
def test_a_partition_that_fails_keeps_what_is_safe_of_it(rises: str | None):
    tap = partitioned(MONTHS, failing(MONTHS, {"b"}), order=rises)
    away = equal(tap)
    (failure,) = away.errors["rows"].failures  # type: ignore[attr-defined]
    assert failure.where == f"partition {key_of('b')}"
    assert "ConnectionError: gone" in str(failure.error)
    assert "test_away_states.py:" in str(failure.error)


def test_what_is_lost_with_its_worker_is_as_if_it_had_not_been():
    away = run_away(
        partitioned(SOURCE), state=state_of({"a": 1, "b": 10}), lost=lambda part: part.partition.number == 1
    )
    assert marks(away.state) == {"a": 3, "b": 10}
    assert "its worker is gone" in str(away.errors["rows"].failures[0].error)  # type: ignore[attr-defined]


def test_positions_of_the_authors_own():
    def rows(stream: Any, partition: dict[str, Any]) -> Any:
        stream.state["page"] = stream.state.get("page", 0) + 1
        yield row(partition["account"], stream.state["page"])

    first = equal(partitioned({"a": [], "b": []}, rows))
    second = equal(partitioned({"a": [], "b": []}, rows), state=first.state)
    assert entry_of(second.state)["partitions"][key_of("a")]["stream_state"] == {"page": 2}


def test_source_states():
    def rows(stream: Any, partition: dict[str, Any]) -> Any:
        stream.source_state.set("http/etag", "v1", source=f"https://x/{partition['account']}")
        yield row(partition["account"], 1)

    away = equal(partitioned({"a": [], "b": []}, rows))
    (saved,) = entry_of(away.state)["partitions"][key_of("a")]["source_state"]
    assert saved["value"] == "v1"


# ---- partitions that rise ----------------------------------------------------------------------------------


def test_rising_partitions_leave_one_bookmark_behind():
    away = equal(partitioned(MONTHS, order="asc"))
    assert away.state == {"bookmarks": {"rows": {"id": 7}}}


@pytest.mark.parametrize("resume", ["inclusive", "exclusive"])
@pytest.mark.parametrize("bad", [set(), {"a"}, {"b"}, {"c"}, {"a", "c"}])
def test_rising_partitions_of_which_some_fail(bad: set[str], resume: str):
    away = equal(partitioned(MONTHS, failing(MONTHS, bad), order="asc", resume=resume), state=state_of({}, flat=2))
    assert bool(away.errors) == bool(bad)


def test_rising_partitions_of_which_one_is_lost_collapse_up_to_it():
    away = run_away(partitioned(MONTHS, order="asc"), order=shuffled(2), lost=lambda part: part.partition.number == 1)
    assert entry_of(away.state) == {"id": 3, "partitions": {key_of("c"): {"id": 7}}}


def test_partitions_that_do_not_rise_as_declared_are_an_error_and_the_bookmark_goes_back():
    away = equal(partitioned({"a": [1, 5], "b": [3]}, order="asc"), state=state_of({}, flat=1))
    assert entry_of(away.state)["id"] == 1
    assert "order='asc' of its partitions is declared" in str(away.errors["rows"])


def test_times_rise_as_times():
    schema = {"properties": {"account": {"type": "string"}, "at": {"type": "string", "format": "date-time"}}}
    source = {"a": ["2024-01-01T00:00:00Z", "2024-01-02T01:00:00+02:00"], "b": ["2024-01-01T23:30:00Z"]}

    def rows(partition: dict[str, Any]) -> Any:
        return [{"account": partition["account"], "at": at} for at in source[partition["account"]]]

    tap = partitioned(source, rows, order="asc", schema=schema, replication_key="at", key_properties=["account"])
    assert entry_of(equal(tap).state) == {"at": "2024-01-01T23:30:00Z"}


# ---- streams that come with others --------------------------------------------------------------------------


def with_children(fail: bool = False, *, in_parts: bool) -> burler.Tap:
    tap = burler.tap("tap-family")
    if in_parts:
        tap.partitions("parents")(lambda: [{"account": name} for name in "ab"])
    schema = {"properties": {"id": {"type": "integer"}, "account": {"type": "string"}}}

    @tap.sync("parents", key_properties="id", replication_key="id", schema=schema)
    def parents(stream: Any) -> Any:
        for number in (1, 2, 3):
            if stream.bookmark is None or number >= stream.bookmark:
                yield {"id": number, "account": stream.partition["account"] if in_parts else "a"}

    @tap.sync("children", parent="parents", key_properties="id", schema=NUMBER)
    def children(parent: dict[str, Any]) -> Any:
        if fail and parent["account"] == "a" and parent["id"] == 2:
            raise ConnectionError("gone")
        return [{"id": parent["id"] * 10 + n, "of": parent["id"]} for n in range(2)]

    return tap


@pytest.mark.parametrize("select", [None, "parents", "children"])
@pytest.mark.parametrize("fail", [False, True])
@pytest.mark.parametrize("in_parts", [False, True])
def test_substreams_come_with_their_parents_part(select: str | None, fail: bool, in_parts: bool):
    first = equal(with_children(fail, in_parts=in_parts), select=select)
    assert not equal(with_children(in_parts=in_parts), select=select, state=first.state).errors


# ---- streams without partitions -----------------------------------------------------------------------------


def several() -> burler.Tap:
    tap = burler.tap("tap-several")

    @tap.sync("one", key_properties="id", replication_key="id", schema=NUMBER)
    def one(stream: Any) -> Any:
        return [{"id": n} for n in range(stream.bookmark or 0, 5)]

    @tap.sync("bad", key_properties="id", replication_key="id", schema=NUMBER, bookmark_strategy="every_n(1)")
    def bad() -> Any:
        yield {"id": 1}
        raise ConnectionError("gone")

    @tap.sync("table", key_properties="id", schema=NUMBER)
    def table() -> Any:
        return [{"id": 1}]

    return tap


def test_streams_without_partitions_are_a_part_each():
    first = equal(several(), state={"bookmarks": {"elsewhere": {"x": 1}}, "other": 2})
    assert first.state["bookmarks"]["elsewhere"] == {"x": 1}
    assert first.state["other"] == 2
    assert list(first.errors) == ["bad"]
    equal(several(), state=first.state)


def test_a_state_that_was_left_in_the_middle_of_a_stream_begins_there_and_ends_without():
    assert "currently_syncing" not in equal(several(), state={"currently_syncing": "table"}).state


# ---- full tables in partitions --------------------------------------------------------------------------------


def table(rows: Any) -> burler.Tap:
    tap = burler.tap("tap-t")
    tap.partitions("t")(lambda: [{"shard": n} for n in range(3)])
    tap.sync("t", key_properties="id", schema=NUMBER)(rows)
    return tap


def test_parts_of_a_full_table_share_one_version_that_counts_once_all_are_whole():
    away = equal(table(lambda partition: [{"id": partition["shard"]}]))
    version = away.state["bookmarks"]["t"]["version"]
    assert {m["version"] for m in away.messages if m["type"] == "RECORD"} == {version}
    assert [m for m in away.messages if m["type"] == "ACTIVATE_VERSION"] == [
        {"type": "ACTIVATE_VERSION", "stream": "t", "version": version}
    ]
    assert away.messages[-1]["type"] == "ACTIVATE_VERSION"


def test_a_part_that_fails_leaves_the_version_that_counts():
    def rows(partition: dict[str, Any]) -> Any:
        yield {"id": partition["shard"]}
        if partition["shard"] == 1:
            raise ConnectionError("gone")

    away = equal(table(rows), state={"bookmarks": {"t": {"version": 5}}})
    assert away.state == {"bookmarks": {"t": {"version": 5}}}
    assert not [m for m in away.messages if m["type"] == "ACTIVATE_VERSION"]


def test_a_part_that_is_lost_leaves_the_version_that_counts():
    away = run_away(table(lambda partition: [{"id": partition["shard"]}]), lost=lambda part: part.partition.number == 2)
    assert away.state == {}
    assert not [m for m in away.messages if m["type"] == "ACTIVATE_VERSION"]


# ---- the plain functions --------------------------------------------------------------------------------------


def test_parts_states_and_ends_by_hand():
    tap, state = partitioned(SOURCE), state_of({"a": 3})
    planning = runtime_away.Planning(*runtime_away.open_session(tap.seal(), {}), state=state)
    parts = planning.parts("rows")
    assert [(one.partition.values, one.partition.key, one.partition.number, one.count) for one in parts] == [
        ({"account": name}, key_of(name), at, 3) for at, name in enumerate("abc")
    ]
    ends = [
        runtime_away.run_part(tap.seal(), part, config={}, state=part.state_for(state), sink=MemorySink())
        for part in parts
    ]
    assert [end.rows for end in ends] == [{"rows": 1}, {"rows": 2}, {"rows": 0}]
    merge = runtime_away.Merge(state)
    for end in reversed(ends):
        merge.add(end)
    assert merge.finish("rows") == []
    assert merge.state == run_tap(tap, state=state).result.state
    assert state == state_of({"a": 3}), "what was given is not changed"


def test_a_part_is_told_its_own_entry_of_thousands_unless_functions_ask_for_the_state():
    state = state_of({str(n): n for n in range(1000)})
    opened = runtime_away.open_session(partitioned({"7": [], "8": []}).seal(), {})
    (part, *_others) = runtime_away.Planning(*opened, state=state).parts("rows")
    assert marks(part.state_for(state)) == {"7": 7}
    asking = partitioned({"7": []}, lambda state, partition: [row("7", len(entry_of(state)["partitions"]))])
    away = equal(asking, state=state)
    assert [one["id"] for one in away.records("rows")] == [1000]


@pytest.mark.parametrize("seed", range(12))
def test_any_story_of_runs_that_break_is_told_alike(seed: int):
    """Runs follow each other, each from the state of the one before; partitions fail, come and go."""
    rng = random.Random(seed)
    rises = rng.choice([None, "asc"])
    state: dict[str, Any] | None = None
    for _ in range(4):
        names = sorted(rng.sample("abcdef", rng.randint(1, 5)))
        source = {
            name: sorted(rng.sample(range(n * 10, n * 10 + 10), rng.randint(0, 4))) for n, name in enumerate(names)
        }
        bad = {name for name in names if rng.random() < 0.3}
        tap = partitioned(source, failing(source, bad), order=rises, schema=FIELDS)
        away = equal(tap, state=state)
        assert bool(away.errors) == bool(bad)
        state = away.state


# ---- parts, or a list of parts, of which the source says that there is more ----------------------------------


@pytest.mark.parametrize("cut", ["a part", "the parts"])
def test_what_may_be_incomplete_makes_no_table_elsewhere_either(cut):
    def fn(stream: Any, partition: dict[str, Any]) -> Any:
        yield {"id": 1}
        if cut == "a part" and partition["account"] == "b":
            stream.may_be_incomplete("more")

    tap = burler.tap("tap-parts")
    tap.sync("rows", key_properties="id", schema=NUMBER)(fn)

    @tap.partitions("rows")
    def accounts(stream: Any) -> Any:
        yield from ({"account": name} for name in "abc")
        if cut == "the parts":
            stream.may_be_incomplete("more")

    away = run_away(tap)
    assert len(away.records("rows")) == 3
    assert not [one for one in away.messages if one["type"] == "ACTIVATE_VERSION"]
    assert away.errors == {} and away.state == {}
