"""What a fetch function may give: rows, a list of them, an iterator, a page of JSON in bytes, an Arrow table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from burler.context import StreamRun
from burler.pages import JsonPage, is_arrow
from burler.patterns.progress import failed

_BYTES = (bytes, bytearray, memoryview, JsonPage)


def items_of(given: Any, stream: StreamRun | None, *, what: str) -> Iterator[Any]:
    """What to yield for what a fetch function gave: lists and pages whole, of an iterator each item.

    Raises:
        BurlerError: it is no rows. None too: a forgotten ``return`` must not pass for a source without rows.
    """
    if is_page(given):
        yield given
    elif isinstance(given, Mapping):
        raise failed(
            stream, f"{what} gave one dict, not rows. Give the list in it (reply['items']), or [row] for a single row."
        )
    elif given is None or isinstance(given, str) or not isinstance(given, Iterable):
        kind = "None" if given is None else f"a value of type {type(given).__name__}"
        raise failed(stream, f"{what} gave {kind} for its rows. Give a list or an iterator of rows; [] for none.")
    else:
        yield from given


def is_page(item: Any) -> bool:
    """Whether something is many rows at once, there as a whole: a list, bytes, a table."""
    return isinstance(item, (list, *_BYTES)) or is_arrow(item)


def count_rows(item: Any) -> int | None:
    """How many rows an item has; None for bytes, which nobody has read yet."""
    if isinstance(item, list):
        return len(item)
    if isinstance(item, _BYTES):
        return None
    return int(item.num_rows) if is_arrow(item) else 1
