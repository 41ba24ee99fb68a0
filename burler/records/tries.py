"""When a fast way is given up."""

from __future__ import annotations


class Tries:
    """Whether a fast way is worth another try: not once it was in vain for so many pages one behind the other."""

    MOST = 8

    def __init__(self) -> None:
        self._misses = 0

    def __bool__(self) -> bool:
        return self._misses < self.MOST

    def ended(self, *, well: bool) -> None:
        """How it went."""
        self._misses = 0 if well else self._misses + 1
