"""Partitions together with all else: pages of every kind, classes, patterns, substreams, full tables, limits, hooks."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from discovered import catalog_of, entry
from parts import FIELDS, entry_of, given, key_of, marks, numbers, partitioned, row

import burler
from burler.errors import DeclarationError
from burler.testing import run_tap

SOURCE = {"a": [1, 2], "b": [3, 4]}

# ---- pages ------------------------------------------------------------------------------------------


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in rows)


PAGES: dict[str, Any] = {
    "rows": lambda rows: rows,
    "a list": lambda rows: [rows],
    "an iterator": lambda rows: [iter(rows)],
    "a JSON array": lambda rows: [json.dumps(rows).encode()],
    "JSON lines": lambda rows: [as_lines(rows)],
    "single lines": lambda rows: [json.dumps(one).encode() for one in rows],
    "a table": lambda rows: [pa.Table.from_pylist(rows)],
    "a batch": lambda rows: [pa.RecordBatch.from_pylist(rows)],
    "named rows": lambda rows: [("rows", one) for one in rows],
    "a named list": lambda rows: [("rows", rows)],
    "named bytes": lambda rows: [("rows", json.dumps(rows).encode())],
}


@pytest.mark.parametrize("kind", PAGES)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("strategy", ["end_of_sync", "on_page"])
def test_pages_of_every_kind(kind: str, workers: int, strategy: str):
    def rows(partition):
        yield from PAGES[kind]([row(partition["account"], n) for n in SOURCE[partition["account"]]])

    run = run_tap(partitioned(SOURCE, rows, workers=workers, bookmark_strategy=strategy))
    assert not run.result.errors
    assert {name: numbers(run, name) for name in SOURCE} == SOURCE
    assert marks(run.states[-1]) == {"a": 2, "b": 4}


def test_a_function_that_returns_and_one_that_emits():
    returned = run_tap(partitioned(SOURCE, lambda partition: [row(partition["account"], 5)]))
    assert marks(returned.states[-1]) == {"a": 5, "b": 5}

    def emits(stream, partition):
        stream.emit_record(row(partition["account"], 6))
        stream.emit_records([row(partition["account"], 7)], "rows")

    emitted = run_tap(partitioned(SOURCE, emits))
    assert not emitted.result.errors
    assert emitted.records("rows") == [row("a", 6), row("a", 7), row("b", 6), row("b", 7)]
    assert marks(emitted.states[-1]) == {"a": 7, "b": 7}


def test_a_stream_that_is_emitted_beside_has_bookmarks_of_its_own_in_each_partition():
    seen: list[Any] = []

    def rows(stream, partition):
        yield row(partition["account"], 1)
        yield "notes", row(partition["account"], 30 if partition["account"] == "a" else 40)

    tap = partitioned(SOURCE, rows)
    notes = tap.stream("notes", emitted_by="rows", replication_key="id", schema=FIELDS)
    notes.post_transform(lambda record, partition, stream: seen.append((partition, stream.bookmark)) or record)
    state = {"bookmarks": {"notes": {"partitions": {key_of("b"): {"id": 39}}}}}
    run = run_tap(tap, state=state)
    assert not run.result.errors
    assert marks(run.states[-1], "notes") == {"a": 30, "b": 40}
    assert marks(run.states[-1]) == {"a": 1, "b": 1}
    assert seen == [({"account": "a"}, None), ({"account": "b"}, 39)]


# ---- ways to declare ----------------------------------------------------------------------------------


def test_a_class():
    tap = burler.tap("tap-t")

    @tap.stream
    class Rows(burler.Stream):
        key_properties = ("account", "id")
        replication_key = "id"
        schema = FIELDS
        partition_key = "account"
        partition_order = "none"
        workers = 2

        def partitions(self, stream):
            for name in SOURCE:
                yield {"account": name}

        def sync(self, stream, partition):
            return given(SOURCE)(stream, partition)

    run = run_tap(tap)
    assert entry_of(run.states[-1]) == {"partitions": {"a": {"id": 2}, "b": {"id": 4}}}
    assert len(run.records("rows")) == 4


def test_a_class_whose_key_is_a_function_and_whose_partitions_rise():
    tap = burler.tap("tap-t")

    @tap.stream
    class Rows(burler.Stream):
        replication_key = "id"
        schema = FIELDS
        partition_order = "asc"

        @staticmethod
        def partition_key(partition):
            return partition["account"].upper()

        def partitions(self):
            return [{"account": name} for name in SOURCE]

        def sync(self, stream, partition):
            yield from given(SOURCE)(stream, partition)
            if partition["account"] == "a":
                raise ConnectionError("gone")

    run = run_tap(tap)
    assert entry_of(run.states[-1])["partitions"]["B"] == {"id": 4}
    assert run.result.errors["rows"].failures[0].where == "partition A"


@pytest.mark.parametrize("parentheses", [False, True])
def test_a_handle(parentheses: bool):
    tap = burler.tap("tap-t")
    rows = tap.stream("rows", replication_key="id", schema=FIELDS)
    decorate = rows.partitions() if parentheses else rows.partitions

    @decorate
    def accounts():
        return [{"account": name} for name in SOURCE]

    rows.sync(given(SOURCE))
    assert marks(run_tap(tap).states[-1]) == {"a": 2, "b": 4}
    assert accounts() == [{"account": "a"}, {"account": "b"}]


def test_a_pattern_gives_each_stream_it_finds_partitions_of_its_own():
    tap = burler.tap("tap-t")
    tap.discover(lambda: catalog_of(entry("one"), entry("two")))
    asked = []

    @tap.partitions("*")
    def shards(stream):
        asked.append(stream.name)
        return [{"shard": 1}, {"shard": 2}]

    @tap.sync("*", replication_key="id")
    def rows(stream, partition):
        yield {"id": partition["shard"] * (10 if stream.name == "one" else 100)}

    run = run_tap(tap)
    assert not run.result.errors
    assert asked == ["one", "two"]
    assert run.records("two") == [{"id": 100}, {"id": 200}]
    parts = {name: entry_of(run.states[-1], name)["partitions"] for name in ("one", "two")}
    assert parts == {
        "one": {'{"shard":1}': {"id": 10}, '{"shard":2}': {"id": 20}},
        "two": {'{"shard":1}': {"id": 100}, '{"shard":2}': {"id": 200}},
    }


def test_what_does_not_fit_together_is_said_before_anything_runs():
    tap = partitioned(SOURCE)
    child = tap.stream("notes", parent="rows", schema=FIELDS)
    child.sync(lambda parent: [])
    child.partitions(lambda: [{"x": 1}])
    tap.sync("plain", schema=FIELDS, workers=3)(lambda: [])
    with pytest.raises(DeclarationError) as caught:
        run_tap(tap)
    assert "but its rows come in the run of 'rows'. Set it on that stream" in str(caught.value)
    assert "has workers, but no partitions." in str(caught.value)


# ---- limits, selection, hooks ---------------------------------------------------------------------------


def test_a_limit_is_on_the_stream_and_asks_for_no_more_partitions():
    asked = []

    def accounts():
        for name in "abcdef":
            asked.append(name)
            yield {"account": name}

    tap = partitioned(accounts, lambda partition: [row(partition["account"], n) for n in range(4)], workers=4)
    run = run_tap(tap, limit=6)
    assert run.records("rows") == [row("a", 0), row("a", 1), row("a", 2), row("a", 3), row("b", 0), row("b", 1)]
    assert run.states == []
    assert len(asked) <= 3


def test_a_limit_with_a_state_and_a_failing_partition():
    def rows(partition):
        if partition["account"] == "a":
            raise ConnectionError("gone")
        yield row(partition["account"], 9)

    run = run_tap(partitioned(SOURCE, rows), limit=5, state={"bookmarks": {"rows": {"id": 3}}})
    assert run.records("rows") == [row("b", 9)]
    assert len(run.result.errors["rows"].failures) == 1
    assert run.states == []


def test_fields_that_are_not_selected_stay_out_and_keys_come():
    run = run_tap(partitioned({"a": [1]}, lambda: [{**row("a", 1), "text": "x"}]), select="rows,!rows.text")
    assert run.records("rows") == [row("a", 1)]


def test_a_stream_that_is_not_selected_is_asked_for_no_partitions():
    tap = partitioned(lambda: 1 / 0, lambda partition: [])
    tap.sync("other", schema=FIELDS)(lambda: [row("o", 1)])
    run = run_tap(tap, select="other")
    assert not run.result.errors


@pytest.mark.parametrize("workers", [1, 2])
def test_hooks_are_told_of_the_partition(workers: int):
    def rows(partition):
        yield {"account": partition["account"], "text": "7" if partition["account"] == "a" else "8"}

    tap = partitioned(SOURCE, rows, replication_key=None, key_properties=[], workers=workers)

    @tap.post_transform("rows")
    def transform(record, partition, stream):
        assert stream.partition == partition == {"account": record["account"]}
        return None if record.get("text") is None else {**record, "text": record["text"] + partition["account"]}

    @tap.bookmark("rows")
    def bookmark(record, partition, stream, state):
        assert stream.partition == partition == {"account": record["account"]}
        return int(record["text"][0])

    run = run_tap(tap)
    assert not run.result.errors
    assert sorted(one["text"] for one in run.records("rows")) == ["7a", "8b"]
    parts = entry_of(run.states[-1])["partitions"]
    assert parts == {key_of("a"): {"bookmark": 7}, key_of("b"): {"bookmark": 8}}
