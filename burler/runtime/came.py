"""What came of a substream for one row of its parent, for bookmark functions that ask for ``children``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.declare.spec import Children
from burler.engine.state.progress import KeyRange
from burler.singer.bookmark_values import key_text


class Came(KeyRange):
    """Counts rows, and notes the range of their ``key``."""

    __slots__ = ("count", "key")

    def __init__(self, key: str | None, key_format: str | None) -> None:
        super().__init__(key_format)
        self.key, self.count = key, 0

    def count_row(self, row: Mapping[str, Any]) -> None:
        """Count a row; ``is_mixed`` if its value can't be compared with those before it."""
        self.count += 1
        if self.key is not None:
            self.add([row.get(self.key)])

    def done(self) -> Children:
        """All of it."""
        return Children(self.count, *(key_text(one[1]) if one else None for one in (self.least, self.greatest)))
