"""How a bookmark went on over time, as points that can be drawn."""

from __future__ import annotations

from typing import Any

_POINTS = 500


class BookmarkSeries:
    """Takes points and keeps some hundreds of them, spread over the rows."""

    def __init__(self) -> None:
        self.points: list[list[Any]] = []
        self._step = 1

    def add(self, seconds: float, rows: int, bookmark: Any) -> None:
        """After so many seconds and rows the bookmark stood there; None: there was none yet."""
        shown = None if bookmark is None else str(bookmark)
        if self.points and rows < self.points[-1][1] + self._step and shown == self.points[-1][2]:
            return
        self.points.append([round(seconds, 4), rows, shown])
        if len(self.points) > _POINTS:
            self.points = self.points[::2]
            self._step = max(1, rows // (_POINTS // 2))
