"""The tap of the storm over batch files: a rising stream, a full table, partitions, and a function that follows a log.

``STORM_PLAN`` in the environment tells it the plan; with ``rest`` in there it hurries, and the log is read to its end.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import burler
from storm.batch_rows import SCHEMA, rows

PLAN = json.loads(os.environ["STORM_PLAN"])
if PLAN["form"] == "arrow":
    import pyarrow as pa  # here: an import that a signal interrupts is half done for good, in all threads
INCREMENT = {"replication_key": "id", "order": "asc", "bookmark_strategy": PLAN["strategy"], "schema": SCHEMA}

tap = burler.tap("tap-batch-storm")


def pages(place: str, first: int) -> Iterator[Any]:
    """The rows of a place from ``first`` on, in the form that the plan says."""
    left = rows(place, first, PLAN["places"][place], PLAN["size"])
    while page := list(islice(left, PLAN["page"])):
        if PLAN["form"] == "rows":
            yield from page
        elif PLAN["form"] == "lists":
            yield page
        elif PLAN["form"] == "bytes":
            yield b"\n".join(json.dumps(row, default=float).encode() for row in page)
        else:
            yield _table(page)
        if PLAN["nap"] and not PLAN["rest"]:
            time.sleep(PLAN["nap"])


def _table(page: list[dict[str, Any]]) -> Any:
    kinds = {
        "part": pa.string(),
        "id": pa.int64(),
        "text": pa.string(),
        "note": pa.string(),
        "price": pa.decimal128(20, 2),
    }
    return pa.Table.from_pylist(page, pa.schema([(name, kind) for name, kind in kinds.items() if name in page[0]]))


def rising(stream: Any) -> Iterator[Any]:
    """Sorted by its key."""
    yield from pages("rising", stream.bookmark or 0)


def table() -> Iterator[Any]:
    """Whole, each time."""
    yield from pages("table", 0)


def parts(stream: Any, partition: dict[str, Any]) -> Iterator[Any]:
    """One of them, sorted."""
    yield from pages(f"parts-{partition['part']}", stream.bookmark or 0)


def log(stream: Any) -> Iterator[Any]:
    """Followed: it keeps its own position."""
    for n in range(stream.state.get("done", -1) + 1, PLAN["places"]["log"]):
        yield next(rows("log", n, n + 1, PLAN["size"]))
        stream.state = {"done": n}
    while not PLAN["rest"] and not stream.wait(0.05):
        pass


if "rising" in PLAN["streams"]:
    tap.sync("rising", key_properties=["id"], **INCREMENT)(rising)
if "table" in PLAN["streams"]:
    tap.sync("table", key_properties=["id"], schema=SCHEMA)(table)
if "parts" in PLAN["streams"]:
    tap.partitions("parts", key="part")(lambda: [{"part": part} for part in "abc"])
    tap.sync("parts", key_properties=["part", "id"], **INCREMENT)(parts)
if "log" in PLAN["streams"]:
    declare = tap.sync if PLAN["rest"] else tap.tail
    declare("log", key_properties=["id"], replication_method=burler.LOG_BASED, schema=SCHEMA)(log)

if __name__ == "__main__":
    tap.cli()
