"""burler's side where there is a lot of something: partitions, parents, replies that are waited for.

Run as: tap_burler_many.py VARIANT WORK ROWS (VARIANT is not looked at). WORK is one of:

    parts-50         partitions of 50 rows, each with a bookmark of its own
    parts-50-asc     the same, declared to rise: finished ones collapse into the stream's bookmark
    children-5       parents with 5 rows below each, and a bookmark of theirs
    workers-4        partitions that are read over HTTP from BENCH_SOURCE, 4 at a time
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import clock
import replies
import standard

import burler

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS: dict[str, Any] = {
    "key_properties": "id",
    "schema": standard.SCHEMA,
    "replication_key": "ts",
    "bookmark_strategy": "every_n(1000)",
    "order": "asc",
}


def make_tap(work: str, count: int) -> burler.Tap:
    """A tap whose streams have ``count`` rows in all."""
    tap = burler.tap("tap-std")
    kind, each, *order = work.split("-")
    if kind == "parts":
        parts(tap, int(each), count, order=order[0] if order else "none")
    elif kind == "children":
        children(tap, int(each), count)
    else:
        workers(tap, int(each), count)
    return tap


def parts(tap: burler.Tap, each: int, count: int, *, order: str) -> None:
    """Partitions of ``each`` rows."""

    @tap.partitions(standard.STREAM, order=order)
    def accounts() -> Iterator[dict[str, Any]]:
        for number in range(count // each):
            yield {"a": standard.account(number)}

    @tap.sync(standard.STREAM, **OPTIONS)
    def std(partition: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from standard.part(int(partition["a"][3:]), each)


def children(tap: burler.Tap, each: int, count: int) -> None:
    """Parents, and ``each`` rows below every one of them."""

    @tap.sync(standard.STREAM, **OPTIONS)
    def std() -> Iterator[dict[str, Any]]:
        yield from standard.parents(count // (1 + each))

    @tap.sync(standard.CHILDREN, parent=standard.STREAM, key_properties="id", schema=standard.SCHEMA)
    def below(parent: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from standard.part(parent["id"], each)


def workers(tap: burler.Tap, at_a_time: int, count: int) -> None:
    """Partitions of some replies each, one connection for each worker."""
    accounts, of_each = replies.accounts(count)
    mine = threading.local()
    address = os.environ["BENCH_SOURCE"]

    @tap.partitions(standard.STREAM)
    def partitions() -> Iterator[dict[str, Any]]:
        for number in range(accounts):
            yield {"a": standard.account(number)}

    @tap.sync(standard.STREAM, **OPTIONS, workers=at_a_time)
    def std(partition: dict[str, Any]) -> Iterator[bytes]:
        if not hasattr(mine, "source"):
            mine.source = replies.Source(address)
        first = int(partition["a"][3:]) * of_each
        for number in range(first, first + of_each):
            yield mine.source.get(number)


if __name__ == "__main__":
    tap = make_tap(sys.argv[2], int(sys.argv[3]))
    with clock.measured("burler", "msgspec"):
        tap.cli([])
