"""Taps whose functions emit rows by name, for the tests of that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from families import PARENT

import burler
from burler.testing import MemorySink, TapRun


def emitting(main: Callable[..., Any], **options: Any) -> burler.Tap:
    """A tap whose stream ``main`` emits ``beside``; another stream, ``other``, stands alone."""
    tap = burler.tap("tap-emits")
    tap.sync("main", **{"key_properties": "id", "replication_key": "key", "schema": PARENT, **options})(main)
    tap.stream("beside", emitted_by="main", key_properties="id", schema=PARENT)
    tap.sync("other", key_properties="id", schema=PARENT)(lambda: [{"id": 9}])
    return tap


def emits_each(stream: burler.StreamRun, rows: Iterable[Any]) -> None:
    for one in rows:
        stream.emit_record(one)


def emits_all(stream: burler.StreamRun, rows: Iterable[Any]) -> None:
    stream.emit_records(rows)


def row(i: int) -> dict[str, int]:
    return {"id": i, "key": i}


def ids(run: TapRun, stream: str = "main") -> list[int]:
    return [one["id"] for one in run.records(stream)]


def rows_in(sink: MemorySink) -> int:
    """Rows that have reached a sink by now."""
    return len([m for m in list(sink.messages) if m["type"] == "RECORD"])
