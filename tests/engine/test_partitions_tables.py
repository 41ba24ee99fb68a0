"""FULL_TABLE in partitions: one table, one version, activated only if all of it came."""

from __future__ import annotations

from typing import Any

import pytest

import burler
from burler.testing import run_tap

SOURCE = {"a": [1, 2], "b": [3, 4]}

# ---- pages ------------------------------------------------------------------------------------------


# ---- a table in shards ----------------------------------------------------------------------------------


def table(rows: Any, shards: Any = lambda: [{"shard": 0}, {"shard": 1}], **options: Any) -> burler.Tap:
    tap = burler.tap("tap-t")
    tap.partitions("t")(shards)
    tap.sync("t", key_properties="id", schema={"properties": {"id": {"type": "integer"}}}, **options)(rows)
    return tap


def activated(run: Any) -> list[int]:
    return [message["version"] for message in run.messages if message["type"] == "ACTIVATE_VERSION"]


@pytest.mark.parametrize("workers", [1, 2])
def test_shards_are_one_table_with_one_version(workers: int):
    run = run_tap(table(lambda partition: [{"id": partition["shard"]}], workers=workers))
    assert run.types == ["SCHEMA", "ACTIVATE_VERSION", "RECORD", "RECORD", "ACTIVATE_VERSION", "STATE"]
    version = run.states[-1]["bookmarks"]["t"]["version"]
    assert {m["version"] for m in run.messages if m["type"] in ("RECORD", "ACTIVATE_VERSION")} == {version}
    assert run.states[-1] == {"bookmarks": {"t": {"version": version}}}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_shard_that_fails_leaves_what_targets_have(workers: int):
    def rows(partition):
        yield {"id": partition["shard"]}
        if partition["shard"] == 0:
            raise ConnectionError("gone")

    state = {"bookmarks": {"t": {"version": 5}}}
    run = run_tap(table(rows, workers=workers), state=state)
    assert len(run.records("t")) == 2
    assert activated(run) == []
    assert run.states[-1] == state


def test_a_list_of_shards_that_breaks_off_leaves_what_targets_have():
    def shards():
        yield {"shard": 0}
        raise ConnectionError("gone")

    run = run_tap(table(lambda partition: [{"id": 1}], shards), state={"bookmarks": {"t": {"version": 5}}})
    assert activated(run) == []


def test_a_shard_that_has_not_changed_leaves_what_targets_have():
    """Its rows have not come, so the table is not whole."""

    def rows(stream, partition):
        if partition["shard"] == 0:
            stream.not_modified()
            return
        yield {"id": 1}

    run = run_tap(table(rows), state={"bookmarks": {"t": {"version": 5}}})
    assert not run.result.errors
    assert activated(run) == []
    assert run.states[-1] == {"bookmarks": {"t": {"version": 5}}}


def test_full_table_blocks_are_not_for_partitions():
    def rows(stream):
        with stream.full_table():
            yield {"id": 1}

    run = run_tap(table(rows))
    assert "full_table() is about a whole stream" in str(run.result.errors["t"].failures[0].error)
    assert activated(run) == []
