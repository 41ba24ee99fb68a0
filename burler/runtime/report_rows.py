"""What a report knows of one stream, over all of its rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from burler.runtime.report_series import Series


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
