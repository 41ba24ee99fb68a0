"""Where a full table with a key of several columns stands: the whole key of the last row that is out.

The engine keeps the key's first column. Where that has few values, as an account's number has, a table that goes on
would bring millions of rows again; so the rest of the key is kept in ``stream.state``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from burler.context import StreamRun
from burler.sql.reading import POSITION, Reading


def with_position(pages: Iterator[Any], reading: Reading, stream: StreamRun) -> Iterator[Any]:
    """The pages; the place behind each is noted once it was yielded, so that no STATE speaks of rows to come."""
    keys = _keys_type(reading.order)
    for page in pages:
        yield page
        stream.state[POSITION] = {"key": list(reading.order), "at": last_key(page, reading, keys)}
    stream.state.pop(POSITION, None)


def last_key(page: Any, reading: Reading, keys: Any) -> list[Any]:
    """The values of the key in a page's last row, as JSON."""
    if isinstance(page, bytes):
        last = msgspec.json.decode(page, type=keys)[-1]
        return list(msgspec.structs.astuple(last))
    if isinstance(page, list):
        row = page[-1]
    else:
        from burler.pipeline.yielded import rows_of

        row = rows_of(page.slice(page.num_rows - 1))[-1]
    return [msgspec.to_builtins(row[name]) for name in reading.order]


def _keys_type(order: tuple[str, ...]) -> Any:
    """Rows of which nothing but the key is read."""
    fields = [(f"key{i}", Any) for i in range(len(order))]
    names = {f"key{i}": name for i, name in enumerate(order)}
    return list[msgspec.defstruct("Key", fields, rename=names)]  # type: ignore[misc]
