"""What is known of one stream, over all of its rounds: for a report, and for those who look at a tail."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from burler.report.series import Series


@dataclass(frozen=True, slots=True)
class Sums:
    """What the rounds of a stream before this one gave; a stream of a plain run has but one round."""

    rows: int = 0
    updated: int | None = None
    skipped: int = 0
    seconds: float = 0.0
    counts: dict[str, Any] = field(default_factory=dict)
    errors: int = 0


@dataclass(slots=True)
class StreamRow:
    """What is known of a stream so far."""

    name: str
    method: str | None = None
    status: str = "unfinished"
    rounds: int = 0
    over: bool = False
    rows: int = 0
    updated: int | None = None
    skipped: int = 0
    seconds: float | None = None
    before: Sums = field(default_factory=Sums)
    bookmark_from: Any = None
    bookmark_to: Any = None
    begun: bool = False
    first_at: float = 0.0
    at: float = 0.0
    next_at: float = math.inf
    series: Series | None = None
    errors: int = 0
    located: int = 0
    told: BaseException | None = None
    counts: dict[str, Any] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether its last round failed, or the one it is in does."""
        return self.status == "failed" or self.errors > self.before.errors

    def again(self) -> None:
        """Another round begins, after one that has ended: what is told from here on comes on top."""
        seconds = self.seconds or 0.0
        self.before = Sums(self.rows, self.updated, self.skipped, seconds, self.counts, self.errors)
        self.over, self.told, self.located = False, None, 0


@dataclass(slots=True)
class Remarks:
    """What has been said of a stream's rows in a tail; ``next_at``, of the monotonic clock: not again before."""

    count: int = 0
    next_at: float = 0.0
    _misfits: int = 0
    _said: set[str] = field(default_factory=set)

    def misfits(self, total: int) -> int:
        """Rows that did not fit since it was asked last; ``total`` counts those of all rounds, or begins anew when the
        schema does."""
        more = total - self._misfits if total >= self._misfits else total
        self._misfits = total
        return more

    def first_time(self, what: str) -> bool:
        """Whether this is said for the first time."""
        first = what not in self._said
        self._said.add(what)
        return first


@dataclass(slots=True)
class WatchRow:
    """What a ``TailWatch`` knows of a stream. ``now``: rows of this round, ``before``: of those before it. Times are of
    the monotonic clock, but for ``polled_at``. ``told``: the numbers that stood in the last lines."""

    name: str
    kind: str
    status: str = "starting"
    before: int = 0
    now: int = 0
    repeated: int = 0
    rate: float = 0.0
    rate_at: float = 0.0
    bookmark: Any = None
    polls: int = 0
    poll_seconds: float | None = None
    polls_seconds: float = 0.0
    polled: float | None = None
    polled_at: float | None = None
    polled_before: tuple[float | None, float | None] = (None, None)
    next_at: float | None = None
    failing: bool = False
    failures: int = 0
    errors: int = 0
    error: str | None = None
    told: tuple[int, int, int, int] = (0, 0, 0, 0)
    counted: bool = False

    @property
    def rows(self) -> int:
        """Of all rounds."""
        return self.before + self.now

    def fold(self) -> None:
        """What comes from here on belongs to another round."""
        self.before += self.now
        self.now = 0

    def numbers(self) -> tuple[int, int, int, int]:
        """Rows, repeated rows, errors, polls."""
        return self.rows, self.repeated, self.errors, self.polls
