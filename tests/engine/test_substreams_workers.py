"""A substream that ends in one partition while other threads are at others: none of their bookmarks passes what it
left out, in whatever order the pages come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from families import CHILD, PARENT

import burler
from burler.testing import MemorySink, run_tap
from support.runs import run_into

PARTS = range(4)
EVERYTHING = {10 * number + key for number in PARTS for key in range(3)}
PATIENCE_SECONDS = 20.0


def partitioned(
    children: Callable[[dict[str, Any]], Any],
    others: Callable[[dict[str, Any]], None],
    began: Callable[[int, int], None],
) -> burler.Tap:
    """Two lanes; ``began`` is told of each parent before it is yielded, ``others`` is called behind ``children``."""
    tap = burler.tap("tap-family")
    tap.partitions("parents")(lambda: [{"number": number} for number in PARTS])

    @tap.sync("parents", key_properties="id", replication_key="key", order="asc", workers=2, schema=PARENT)
    def parents(partition, stream):
        for key in range(stream.bookmark or 0, 3):
            began(partition["number"], key)
            yield {"id": 10 * partition["number"] + key, "key": key}

    tap.sync("children", parent="parents", key_properties=["parent", "id"], schema=CHILD)(children)

    @tap.sync("others", parent="parents", schema=CHILD)
    def beside(parent):
        others(parent)
        yield {"id": 1, "parent": parent["id"]}

    return tap


def one_row(parent: dict[str, Any]) -> list[dict[str, int]]:
    return [{"id": 1, "parent": parent["id"]}]


def children_in(messages: list[dict[str, Any]]) -> set[int]:
    return {m["record"]["parent"] for m in messages if m["type"] == "RECORD" and m["stream"] == "children"}


def assert_the_rest_comes(result: Any, sink: MemorySink) -> None:
    assert list(result.errors) == ["children"]
    state = [m["value"] for m in sink.messages if m["type"] == "STATE"][-1]
    rest = run_tap(partitioned(one_row, lambda parent: None, lambda number, key: None), state=state)
    assert not rest.result.errors
    assert children_in(sink.messages) | children_in(rest.messages) == EVERYTHING


def test_calls_that_were_left_out_hold_a_partition_that_ends_before_the_failure_is_written():
    """One thread's call fails, one too many; before that is written, another has left out its own calls and ended."""
    failed, ended = threading.Event(), threading.Event()

    def children(parent: dict[str, Any]) -> Any:
        if parent["id"] == 0:
            failed.set()
            raise LookupError("as planned")
        return one_row(parent)

    def others(parent: dict[str, Any]) -> None:
        if parent["id"] == 0:
            assert ended.wait(PATIENCE_SECONDS)

    two = threading.Barrier(2)

    def began(number: int, key: int) -> None:
        if number < 2 and key == 0:
            two.wait(PATIENCE_SECONDS)  # each of the two has a thread
        if number == 0:
            return
        assert failed.wait(PATIENCE_SECONDS)
        time.sleep(0.05)  # the call has failed, and is being counted
        if (number, key) == (2, 2):
            ended.set()  # all of partition 1 is written by now

    sink = MemorySink()
    config = {"page_max_rows": 1, "page_max_age_seconds": 600.0, "max_failures": 0, "parent_buffer_rows": 1}
    assert_the_rest_comes(run_into(partitioned(children, others, began), config, sink), sink)


@pytest.mark.parametrize("page", [1, 1000])
def test_rows_that_wait_while_their_substream_ends_elsewhere_hold_their_partition(page: int):
    """Another thread's bad row is written while all of a partition stands in the page of this one."""
    sink = MemorySink()
    written: list[bool] = []
    two = threading.Barrier(2)

    def children(parent: dict[str, Any]) -> Any:
        return [{"id": "bad" if parent["id"] == 0 else 1, "parent": parent["id"]}]

    def others(parent: dict[str, Any]) -> None:
        if parent["id"] == 12:
            end = time.monotonic() + PATIENCE_SECONDS
            while not (there := _has(sink, "others", 2)) and time.monotonic() < end:
                time.sleep(0.01)
            written.append(there)

    def began(number: int, key: int) -> None:
        if number < 2 and key == 0:
            two.wait(PATIENCE_SECONDS)  # each of the two has a thread

    config = {"page_max_rows": page, "page_max_age_seconds": 600.0}
    result = run_into(partitioned(children, others, began), config, sink)
    assert written == [True]
    assert_the_rest_comes(result, sink)


def _has(sink: MemorySink, stream: str, parent: int) -> bool:
    return any(m.get("stream") == stream and m.get("record", {}).get("parent") == parent for m in list(sink.messages))
