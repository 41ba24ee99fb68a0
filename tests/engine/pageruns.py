"""Runs of a tap with one stream, for the tests of pages: as messages, and as the bytes of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import burler
from burler.singer.messages import Message, Records
from burler.testing import MemorySink, TapRun, run_tap
from support.runs import run_into

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "n": {"type": ["null", "number"]},
        "text": {"type": ["null", "string"]},
        "at": {"type": ["null", "string"], "format": "date-time"},
        "whole": {"type": ["null", "integer"]},
        "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        "in": {"type": "object", "properties": {"x": {"type": "integer"}, "deep": {"type": "object"}}},
        "any": {},
    },
}


def gives(*items: Any) -> Callable[[], Iterator[Any]]:
    """A sync function that yields some items."""

    def rows() -> Iterator[Any]:
        yield from items

    return rows


def dicts(numbers: Iterable[int]) -> list[dict[str, int]]:
    return [{"id": number} for number in numbers]


def tap_of(fn: Callable[..., Any], **options: Any) -> burler.Tap:
    """A tap with the stream ``rows``."""
    tap = burler.tap("tap-pages")
    tap.sync("rows", **{"key_properties": "id", "schema": SCHEMA, **options})(fn)
    return tap


def run_pages(fn: Callable[..., Any], config: dict[str, Any] | None = None, **options: Any) -> TapRun:
    """What comes of a sync function."""
    more = {name: options.pop(name) for name in ("limit", "select", "state") if name in options}
    return run_tap(tap_of(fn, **options), config, **more)


class Lines(MemorySink):
    """A sink that keeps the bytes of each row, where the reader of messages would make floats of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[bytes] = []

    def write(self, message: Message) -> None:
        if isinstance(message, Records):
            for line in bytes(message.lines).split(b"\n")[:-1]:
                row = line[line.index(b'"record":') + len(b'"record":') :]
                self.rows.append(row[: row.rindex(b',"time_extracted":')])


def written(fn: Callable[..., Any], **options: Any) -> list[bytes]:
    """The bytes of the rows that come of a sync function; it must not fail."""
    sink = Lines()
    result = run_into(tap_of(fn, **options), {}, sink)
    assert not result.errors, result.errors
    return sink.rows
