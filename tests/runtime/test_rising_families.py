"""Rising partitions with substreams: what is missing below one keeps it from collapsing."""

from __future__ import annotations

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


