"""What user code has yielded: rows and pages, how much they are, and what is neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from burler.pages import JsonPage, PageError, as_page, batches, json_rows, misused, size_bytes

Item = Any
"""A row (dict) or a page (``JsonPage``, Arrow) of the stream itself, or ``(stream, row, rows or page)`` of another."""

MAY_CHANGE = (bytearray, memoryview)
"""Bytes that their owner may change while they wait."""


class Rows(list[dict[str, Any]]):
    """Rows of the stream itself that are known to be plain dicts: as one item, or all of some."""


def joined(items: list[Item]) -> list[Item]:
    """Items with each row of lists of rows as one of its own."""
    if Rows not in set(map(type, items)):
        return items
    return items[0] if len(items) == 1 else list(chain.from_iterable(x if type(x) is Rows else (x,) for x in items))


@dataclass(frozen=True, slots=True)
class Strange:
    """Something yielded that is neither row nor page. It may be None, so it stands in a box."""

    item: Any


def tell_giver(iterator: Any, page: Any) -> None:
    """Tell an iterator of pages that one of its pages has come straight here: through ``yield from``, ``return`` or
    ``yield``, untouched by hands in between. So it knows, when it is asked for the next one, that this one is on its
    way out (``burler.files`` keeps a state for each file)."""
    while (inner := getattr(iterator, "gi_yieldfrom", None)) is not None:
        iterator = inner
    taken = getattr(iterator, "page_taken", None)
    if taken is not None:
        taken(page)


def size_of_row(row: Mapping[str, Any]) -> int:
    """About how many bytes a row's texts take, at the first two levels."""
    size = 0
    for value in row.values():
        kind = type(value)
        if kind is str or kind is bytes:
            size += len(value)
        elif kind is dict or kind is list:
            for part in value.values() if kind is dict else value:
                if type(part) is str or type(part) is bytes:
                    size += len(part)
    return size


def size_of_item(item: Any) -> int:
    """The same for anything that was yielded."""
    if isinstance(item, tuple) and len(item) == 2:
        item = item[1]
    if isinstance(item, list):
        return len(item) * size_of_item(item[0]) if item else 0
    if type(item) is dict:
        return size_of_row(item)
    page = as_page(item)
    return 0 if page is None else size_bytes(page)


def is_row(item: Any) -> bool:
    """Whether an item is one row, of the stream itself or as ``(stream, row)``."""
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        item = item[1]
    return isinstance(item, Mapping) and not misused(item)


def split(items: list[Item], stream: str) -> tuple[dict[str, list[Any]], Strange | None]:
    """Items as parts per stream, in order of first appearance: lists of rows, and pages of other kinds.

    Returns the parts and, if there is one, what is neither row nor page first (what stands before it is there). A page
    of plain dicts, the usual case, costs one pass in C.
    """
    if type(items) is Rows or set(map(type, items)) == {dict}:
        return {stream: [items]}, None
    parts: dict[str, list[Any]] = {}
    copies: dict[int, dict[str, Any]] = {}  # one of each, so that a row that comes twice still shows as one
    for item in items:
        name, part = stream, item
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
            name, part = item
        for row in part if isinstance(part, list) else (part,):
            if isinstance(row, Mapping) and not misused(row):
                made = row if type(row) is dict else copies.setdefault(id(row), dict(row))
                _rows_to_add_to(parts.setdefault(name, [])).append(made)
                continue
            page = None if isinstance(row, MAY_CHANGE) else as_page(row)  # first in line, it was copied at once
            if page is None:
                inner = row if name == stream else (name, row)
                return parts, Strange(inner if isinstance(part, list) else item)
            parts.setdefault(name, []).extend(batches(page) or [page])
    return parts, None


def _rows_to_add_to(parts: list[Any]) -> list[dict[str, Any]]:
    """The list of rows at the end of a stream's parts."""
    if not parts or type(parts[-1]) is not list:
        parts.append([])
    rows: list[dict[str, Any]] = parts[-1]
    return rows


def rows_of(page: Any, records_path: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """A page's rows as dicts: numbers with a fraction as Decimals, so that nothing is lost.

    Args:
        records_path: the stream's own, for a page that names none.

    Raises:
        PageError: it can't be read; the error holds the rows before the place.
    """
    if isinstance(page, JsonPage):
        return json_rows(page if page.records_path is not None else JsonPage(page.data, records_path))
    from burler.records.arrow.to_rows import batch_to_rows

    try:
        return batch_to_rows(page)
    except ValueError as error:
        raise PageError(str(error)) from error
