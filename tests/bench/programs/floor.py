"""The floor: rows made in the run, ``orjson.dumps`` of each row's RECORD envelope appended to one reused bytearray,
one write a page of 1,000. No schema, no selection, no check, no STATE: what a tap can't go below in Python.

Run as: floor.py VARIANT WORK ROWS (VARIANT is not looked at). WORK ``bytes`` and ``arrow`` begin with pages that were
prepared before the clock started, and turn them into dicts with ``json.loads`` and ``to_pylist``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import clock
import orjson
import standard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Pages = Iterable[list[dict[str, Any]]]


def write_all(buffer: bytearray) -> None:
    """All of it to stdout; a write to a pipe may take less than it is given."""
    with memoryview(buffer) as view:
        done = 0
        while done < len(view):
            done += os.write(1, view[done:])


def write(pages: Pages) -> None:
    """The loop that burler is held against."""
    buffer = bytearray()
    for page in pages:
        del buffer[:]
        for row in page:
            buffer += orjson.dumps(
                {
                    "type": "RECORD",
                    "stream": standard.STREAM,
                    "record": row,
                    "time_extracted": "2024-01-02T03:04:05.000000Z",
                },
                option=orjson.OPT_APPEND_NEWLINE,
            )
        write_all(buffer)


def dict_pages(count: int) -> Callable[[], Pages]:
    """Pages of dicts, made in the run."""
    return lambda: standard.pages(count)


def byte_pages(count: int) -> Callable[[], Pages]:
    """Prepared JSON arrays, parsed in the run."""
    prepared = standard.json_pages(count)
    return lambda: map(json.loads, prepared)


def arrow_pages(count: int) -> Callable[[], Pages]:
    """Prepared Arrow tables, made dicts in the run."""
    prepared = standard.tables(count)
    return lambda: (
        batch.to_pylist() for table in prepared for batch in table.to_batches(max_chunksize=standard.PAGE_ROWS)
    )


def big_pages(count: int) -> Callable[[], Pages]:
    """Rows of 1 MB, each a page of its own."""
    return lambda: ([row] for row in standard.big_rows(count))


WORKS = {
    "pages": dict_pages,
    "patterns": dict_pages,
    "rows": dict_pages,
    "keyed": dict_pages,
    "tail": dict_pages,
    "bytes": byte_pages,
    "arrow": arrow_pages,
    "big": big_pages,
}

if __name__ == "__main__":
    make = WORKS[sys.argv[2]](int(sys.argv[3]))
    with clock.measured("orjson"):
        write(make())
