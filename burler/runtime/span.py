"""The least and the greatest value of a key."""

from __future__ import annotations

from typing import Any

from burler.singer.bookmark_values import comparable, ordered, present_of

Ranked = tuple[Any, Any]
"""What a value is ordered by, and the value."""


class Span:
    """Takes values page by page."""

    def __init__(self) -> None:
        self.least: Ranked | None = None
        self.greatest: Ranked | None = None

    def add(self, keys: list[Any], textual: str | None) -> None:
        """The values of a page, which are of one kind; None says nothing. ``textual``: how text is compared (see
        ``comparable``)."""
        present, types = present_of(keys)
        if not present:
            return
        quick = ordered(present, types, textual)
        ranks = quick[1] if quick is not None else [comparable(one, textual)[1] for one in present]
        low, high = present[ranks.index(min(ranks))], present[ranks.index(max(ranks))]
        least, greatest = (comparable(low, textual)[1], low), (comparable(high, textual)[1], high)
        self.least = least if self.least is None else min(self.least, least, key=_rank)
        self.greatest = greatest if self.greatest is None else max(self.greatest, greatest, key=_rank)


def _rank(ranked: Ranked) -> Any:
    return ranked[0]
