"""Ranges of integer keys: from where the last run got to, up to the greatest that the source has."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from burler.context import StreamRun
from burler.numbers import is_count
from burler.patterns.progress import Progress, failed, lookback_of

_DIGITS = re.compile(r"-?[0-9]{1,4000}", re.ASCII)


@dataclass(frozen=True, slots=True)
class IdRange:
    """Keys from ``first`` to ``last``, both in it. Not each of them need exist."""

    first: int
    last: int
    _save: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    def done(self) -> None:
        """All rows of this range and of those before it have been yielded. Asking for the next one says the same."""
        if self._save is not None:
            self._save()


def id_ranges(
    stream: StreamRun | None,
    size: int = 1000,
    *,
    last: int | str | Callable[[], Any],
    start: int | str = 0,
    keep: str | None = "bookmark",
    state_key: str = "last_id",
) -> Iterator[IdRange]:
    """``for ids in id_ranges(stream, last=client.greatest_id): yield from fetch(ids.first, ids.last)``: ranges from the
    bookmark up to ``last``, without a gap, none over another. The end of a range is noted once the next one is asked
    for, as with ``windows``. The first range begins at the bookmark itself, so the row with that key comes again.

    Args:
        stream: the running stream; None for ranges that note nothing.
        size: how many keys a range holds; the last one may hold fewer.
        last: the greatest key that the source has, or a function that asks for it (it is called once; None says that
            there are no rows). Ranges end there, and what is noted never passes it.
        start: where the very first run begins.
        keep: where it is noted how far all is out: "bookmark" (needs ``bookmark_strategy="manual"``), "state"
            (``stream.state[state_key]``; the bookmark counts for nothing then), None (nowhere). Full tables note
            nothing: each run reads from ``start``.

    Keys that are text of digits are counted as numbers; the bookmark keeps their form. It is text where the schema says
    so, or where the bookmark, or ``start``, is. Then all of one stream need the same number of digits ("000123"), or a
    schema with ``"format": "singer.decimal"``, since bookmarks of other texts are compared as text ("9" behind "10").

    Raises:
        BurlerError: a key that is no integer; text of different lengths; a size below 1.
    """
    if not is_count(size, 1):
        raise failed(stream, f"id_ranges(): size is {size!r:.60}; it must be 1 or more.")
    progress = Progress(stream, keep, state_key, what="id_ranges()")
    back = lookback_of(stream)
    lookback = back if isinstance(back, int) else 0
    begin = start if progress.bookmark is None else progress.bookmark
    as_text = progress.kept != "state" and (isinstance(begin, str) or _key_is_text(stream))
    width = len(str(begin)) if as_text else None
    first = _integer(begin, "start" if progress.bookmark is None else "the bookmark", stream)
    least = first + (0 if progress.bookmark is None else lookback)  # what is noted does not go back behind that
    if progress.position is not None:
        least = _integer(progress.position, f"stream.state[{state_key!r}]", stream)
        first = least - lookback

    def save(value: int) -> None:
        nonlocal least
        least = max(value, least)
        progress.save(least if width is None else f"{least:0{width}}")

    greatest = last() if callable(last) else last
    end = first - 1 if greatest is None else _integer(greatest, "last", stream)
    if width is not None:
        _check_order(stream, first, end, width)
    return _each(first, end, size, save)


def _each(first: int, end: int, size: int, save: Callable[[Any], None]) -> Iterator[IdRange]:
    while first <= end:
        last = min(first + size - 1, end)
        found = IdRange(first, last, lambda value=last: save(value))  # type: ignore[misc]
        yield found
        found.done()
        first = last + 1


def _check_order(stream: StreamRun | None, first: int, end: int, width: int) -> None:
    """Keys that are text must be in the same order as text and as numbers, or a bookmark might pass some of them.

    Raises:
        StreamError: they are not.
    """
    if stream is None or stream.replication_key is None or _field(stream).get("format") == "singer.decimal":
        return
    if first < 0 or len(str(end)) > width:
        raise failed(
            stream,
            f"id_ranges(): '{stream.replication_key}' is text, and from {first:0{width}} to {end} it is of different "
            "lengths; as text, '9' stands behind '10'.\n  Declare it with 'format': 'singer.decimal' in the schema. "
            "Or, if the source has zeros in front of its keys, give start= with as many digits.",
        )


def _key_is_text(stream: StreamRun | None) -> bool:
    """Whether the schema has the replication key as text."""
    kind = None if stream is None else _field(stream).get("type")
    return "string" in kind if isinstance(kind, list) else kind == "string"


def _field(stream: StreamRun) -> Mapping[str, Any]:
    """The replication key's schema."""
    field = stream.schema.get("properties", {}).get(stream.replication_key or "")
    return field if isinstance(field, Mapping) else {}


def _integer(value: Any, what: str, stream: StreamRun | None) -> int:
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        return int(value)
    raise failed(stream, f"id_ranges(): {what} is {value!r:.60}; it must be an integer, or text of digits.")
