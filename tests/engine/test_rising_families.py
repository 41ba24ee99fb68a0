"""Rising partitions with substreams: what is missing below one keeps it from collapsing."""

from __future__ import annotations

import threading
from typing import Any

import burler
from burler.testing import run_tap

ROW = {"type": "object", "properties": {"id": {"type": "integer"}, "key": {"type": "integer"}}}


def family(broken: set[int]) -> burler.Tap:
    tap = burler.tap("tap-rising")

    @tap.partitions("rows", order="asc")
    def months(stream):
        return [{"month": month} for month in range((stream.bookmark or 0) // 10, 4)]

    @tap.sync("rows", key_properties="id", replication_key="key", schema=ROW)
    def rows(stream, partition):
        begin = partition["month"] * 10
        return [{"id": n, "key": n} for n in range(begin, begin + 3) if n >= (stream.bookmark or 0)]

    @tap.sync("kids", parent="rows", key_properties="id", schema=ROW)
    def kids(parent: dict[str, Any]):
        if parent["id"] in broken:
            raise LookupError("no such thing")
        return [{"id": parent["id"], "key": 0}]

    return tap


def test_rows_of_a_call_that_failed_come_with_the_next_run_though_later_partitions_were_fine():
    first = run_tap(family({11}))
    assert list(first.result.errors) == ["kids"]
    assert first.states[-1]["bookmarks"]["rows"]["key"] <= 11
    second = run_tap(family(set()), state=first.states[-1])
    came = {row["id"] for run in (first, second) for row in run.records("kids")}
    assert came == {month * 10 + n for month in range(4) for n in range(3)}
    assert second.states[-1]["bookmarks"]["rows"] == {"key": 32, "covers": ["kids", "rows"]}


def test_a_substream_that_ends_by_a_bad_row_holds_partitions_in_other_threads_too():
    """Their calls may be under way just then: what they give after that does not go out."""
    tap, begun, bad_is_out = burler.tap("tap-rising"), threading.Event(), threading.Event()

    @tap.partitions("rows", key="name")
    def names():
        return [{"name": "a"}, {"name": "b"}]

    @tap.sync("rows", key_properties="id", replication_key="key", order="asc", workers=2, schema=ROW)
    def rows(partition):
        if partition["name"] == "a":
            assert begun.wait(20)
        yield {"id": 1, "key": 1}
        if partition["name"] == "a":
            bad_is_out.set()

    @tap.sync("kids", parent="rows", key_properties="id", schema=ROW)
    def kids(parent, partition):
        if partition["name"] == "a":
            return [{"id": "bad"}]
        begun.set()
        assert bad_is_out.wait(20)
        return [{"id": 6}]

    run = run_tap(tap, {"parent_buffer_rows": 1})
    assert list(run.result.errors) == ["kids"]
    kept = run.states[-1].get("bookmarks", {}).get("rows", {}).get("partitions", {}) if run.states else {}
    assert "b" not in kept or [row["id"] for row in run.records("kids")] == [6]
