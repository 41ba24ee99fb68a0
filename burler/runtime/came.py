"""What came of a substream for one row of its parent, for bookmark functions that ask for ``children``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.declare.spec import Children
from burler.pipeline.bookmark import comparable, key_text


class Came:
    """Counts rows, and notes the least and the greatest value of their ``key``. ``textual``: see ``comparable``."""

    __slots__ = ("count", "greatest", "key", "kind", "least", "mixed", "textual")

    def __init__(self, key: str | None, textual: str | None) -> None:
        self.key, self.count, self.textual = key, 0, textual
        self.kind: str | None = None
        self.mixed = False
        self.least: Any = None
        self.greatest: Any = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a row; ``mixed`` if its value can't be compared with those before it."""
        self.count += 1
        value = row.get(self.key) if self.key is not None else None
        if value is None:
            return
        kind, rank = comparable(value, self.textual)
        if rank is None or kind != (self.kind or kind):
            self.mixed = True
            return
        self.kind = kind
        if self.least is None or rank < self.least[0]:
            self.least = (rank, value)
        if self.greatest is None or rank > self.greatest[0]:
            self.greatest = (rank, value)

    def done(self) -> Children:
        """All of it."""
        return Children(self.count, *(key_text(one[1]) if one else None for one in (self.least, self.greatest)))
