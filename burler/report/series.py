"""How a stream went on over time, in bounded memory: some 500 points a stream, however long the run takes."""

from __future__ import annotations

from array import array
from typing import Any

POINTS = 500
"""Points of one stream, at the most."""
TOTAL_POINTS = 100_000
"""Points of all streams together, above which each stream keeps fewer."""

_FEWEST = 4  # so many stay, however many streams there are
_SHORTEST_STEP = 0.001  # seconds; a clock that stands still must not make points for ever
_TEXT = 200  # characters of a bookmark


def kept(bookmark: Any) -> Any:
    """A bookmark as a point holds it."""
    return bookmark[:_TEXT] if isinstance(bookmark, str) else bookmark


class Series:
    """Points in time with the rows and the bookmark of a stream by then.

    Points lie at least ``step`` seconds apart. When there are too many, the step grows so that half of them stay:
    a stream that is slow for hours after a fast start keeps points for all of the time.
    """

    __slots__ = ("bookmarks", "rows", "seconds", "step")

    def __init__(self) -> None:
        self.seconds = array("d")
        self.rows = array("q")
        self.bookmarks: list[Any] = []
        self.step = 0.0

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, seconds: float, rows: int, bookmark: Any) -> None:
        """One more point, later than those before it."""
        self.seconds.append(seconds)
        self.rows.append(rows)
        self.bookmarks.append(kept(bookmark))

    def thin(self, most: int) -> int:
        """Leave out points until about half of ``most`` are there; how many went."""
        before = len(self)
        span = self.seconds[-1] - self.seconds[0]
        self.step = max(2 * span / most, 2 * self.step, _SHORTEST_STEP)
        kept, last = [0], self.seconds[0]
        for i, at in enumerate(self.seconds):
            if at - last >= self.step:
                kept.append(i)
                last = at
        self.seconds = array("d", [self.seconds[i] for i in kept])
        self.rows = array("q", [self.rows[i] for i in kept])
        self.bookmarks = [self.bookmarks[i] for i in kept]
        return before - len(self)


class Points:
    """What all streams of a run may keep together."""

    def __init__(self, most: int = POINTS, total: int = TOTAL_POINTS) -> None:
        self._most = max(most, _FEWEST)
        self._total = total
        self._count = 0
        self._all: list[Series] = []

    def series(self) -> Series:
        """A new, empty one."""
        self._all.append(Series())
        return self._all[-1]

    def add(self, series: Series, seconds: float, rows: int, bookmark: Any) -> None:
        """A point for one of them. Now and then this takes long: points of all of them are left out."""
        series.add(seconds, rows, bookmark)
        self._count += 1
        if len(series) >= self._most:
            self._count -= series.thin(self._most)
        while self._count > self._total and self._most > _FEWEST:
            self._most = max(self._most // 2, _FEWEST)
            self._count -= sum(each.thin(self._most) for each in self._all if len(each) >= self._most)
