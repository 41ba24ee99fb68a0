"""What the STATEs of a run say of one stream, held against its rows (area B)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from burler.spec.finding import Findings
from burler.spec.limits import Limits
from burler.spec.order import OrderMap
from burler.spec.states import MISSING, Kind, bookmark_of, comparable, comparables, entry_of, of_kind, partitions_of

_POINTS = 500


class BookmarkWatch:
    """Takes the values of a stream's replication key and its bookmarks, in the order of the messages.

    Args:
        given: the state that the run was given.
    """

    def __init__(self, stream: str, key: str, given: Any, findings: Findings, limits: Limits) -> None:
        self.stream, self.key = stream, key
        self.order = OrderMap()
        self.series: list[list[Any]] = []
        self.kind: Kind | None = None
        self.given = bookmark_of(given, stream, key)
        self.value: Any = self.given
        self.partitioned = partitions_of(entry_of(given, stream)) is not None
        self.greatest: Any = None
        self.greatest_shown: Any = None
        self.first: Any = MISSING  # of the rows
        self.rows = 0
        self.states = 0
        self.rows_after_state = 0
        self._moved_between_rows = False
        self._findings, self._limits = findings, limits
        self._stated: Any = None  # the greatest bookmark of a STATE so far, comparable
        self._stated_shown: tuple[Any, int] = (None, 0)
        self._ahead: list[tuple[Any, Any, int]] = []
        self._step = 1

    def add_rows(self, values: Sequence[Any], lines: Sequence[int], seconds: float) -> list[float] | None:
        """The replication keys of some rows; gives where each stands, as a number, where all have one."""
        there = [one for one in values if one is not None]
        if len(there) < len(values):
            count = len(values) - len(there)
            self._say(
                "B320", f"the replication key '{self.key}' is null, so no bookmark can cover the row", lines[0], count
            )
            lines = [line for one, line in zip(values, lines, strict=True) if one is not None]
        found = comparables(there) if there else None
        self.rows += len(values)
        self.rows_after_state += len(values)
        if found is None or (self.kind is not None and found[0] != self.kind):
            if there:
                self._mixed(lines[0])
            return None
        self.kind, column = found
        self.order.add(column, lines, there)
        if self.first is MISSING:
            self.first = there[0]
        least, greatest = min(column), max(column)
        if not self.partitioned:
            self._behind(least, column, there, lines)
        if self.greatest is None or greatest > self.greatest:
            self.greatest, self.greatest_shown = greatest, there[column.index(greatest)]
        self._point(seconds)
        return None if len(there) < len(values) else marks_of(column, self.kind)

    def _mixed(self, line: int) -> None:
        self._say("B321", f"the replication key '{self.key}' changes its kind, so values can't be compared", line)

    def _behind(self, least: Any, column: Sequence[Any], shown: Sequence[Any], lines: Sequence[int]) -> None:
        """Rows that a run from one of the STATEs before them would not get. Those at a bookmark it gets, if it goes on
        as Singer says (at the bookmark, not behind it); those that lie below the state that the run was given were read
        before: they come again."""
        assert self.kind is not None
        given = None if self.given is MISSING else of_kind(self.given, self.kind)
        for ahead, text, line in self._ahead:
            if least < ahead:
                place = next((at for at, one in enumerate(column) if one < ahead and not _is_below(one, given)), None)
                if place is not None:
                    self._say(
                        "B302",
                        f"a STATE says {text!s}, and the row with {shown[place]!s} came after it (line {lines[place]}): "
                        "a run that is resumed from there misses it",
                        line,
                    )
                self._ahead = []
        if self._stated is not None and least < self._stated and not self._findings.seen("B302", self.stream, self.key):
            lost = [at for at, one in enumerate(column) if one < self._stated and not _is_below(one, given)]
            if lost:
                self._say(
                    "B303",
                    f"a STATE said {self._stated_shown[0]!s} (line {self._stated_shown[1]}), and the row with "
                    f"{shown[lost[0]]!s} came after it: a run that is resumed from there misses it",
                    lines[lost[0]],
                    len(lost),
                )

    def add_state(self, state: Any, line: int, now: dt.datetime, seconds: float) -> None:
        """A STATE."""
        entry = entry_of(state, self.stream)
        if partitions_of(entry) is not None:
            self.partitioned = True
        value = bookmark_of(state, self.stream, self.key, self.kind)
        if value is MISSING:
            return
        self.states += 1
        if self.rows_after_state and self.value is not MISSING and value != self.value:
            self._moved_between_rows = True
        self.rows_after_state = 0
        kind = self.kind or comparable(value)[0]
        now_said, before = of_kind(value, kind), None if self.value is MISSING else of_kind(self.value, kind)
        if now_said is None:
            self._say(
                "B322",
                f"the bookmark {value!r:.60} can't be compared with the rows' '{self.key}': who goes by it may stand still",
                line,
            )
            return
        self._look(value, now_said, before, kind, line, now)
        self.value = value
        self._point(seconds)

    def _look(self, value: Any, said: Any, before: Any, kind: Kind, line: int, now: dt.datetime) -> None:
        if before is not None and said < before:
            self._say("B304", f"the bookmark goes back from {self.value!s} to {value!s}: rows come again", line)
        if kind == "time" and said > now + dt.timedelta(seconds=self._limits.future_seconds):
            self._say("B307", f"the bookmark {value!s} lies in the future: rows until then are never read", line)
        if self.partitioned:
            return
        if (self.greatest is None or said > self.greatest) and (before is None or said > before):
            self._ahead = [(said, value, line)]
        if self._stated is None or said > self._stated:
            self._stated, self._stated_shown = said, (value, line)

    def finish(self, *, whole: bool, last_state: Any, seconds: float, now: dt.datetime) -> None:
        """The end of the messages. ``whole``: the tap had come to its end; ``seconds``: how long it read."""
        if self.greatest is None or self.partitioned:
            return
        own = bookmark_of(last_state, self.stream, self.key, self.kind)
        if whole and last_state is not None:
            self._stands_still(own, entry_of(last_state, self.stream))
        self._far_ahead(own)
        self._slow(own, seconds, now)
        if (
            self.order.direction in ("none", "desc")
            and self._moved_between_rows
            and not self._findings.seen("B303", self.stream, self.key)
        ):
            flip = self.order.first_flips[0] if self.order.first_flips else None
            where = f" ({flip['before']}, then {flip['value']}, {flip['place']})" if flip else ""
            self._say(
                "O402",
                f"the bookmark moves between rows that are not sorted by '{self.key}'{where}: only rows that rise allow "
                "a bookmark before the end",
                None,
            )

    def _stands_still(self, own: Any, entry: Any) -> None:
        assert self.kind is not None
        if own is MISSING:
            if entry is MISSING:
                self._say(
                    "B305",
                    f"rows came up to {self.greatest_shown!s}, and the last STATE has no bookmark of the stream: each run reads everything again",
                    None,
                )
            return
        said = of_kind(own, self.kind)
        began = None if self.given is MISSING else of_kind(self.given, self.kind)
        if said is None or said >= self.greatest:
            return
        if began is not None and said <= began:
            self._say(
                "B305",
                f"rows came up to {self.greatest_shown!s}, and the bookmark stands at {own!s} as before: each run reads them again",
                None,
            )
        else:
            self._say(
                "B323",
                f"rows came up to {self.greatest_shown!s}, and the last bookmark is {own!s}: the rows between come again with each run",
                None,
            )

    def _far_ahead(self, own: Any) -> None:
        if own is MISSING or self.kind is None or self.states == 0:
            return
        said = of_kind(own, self.kind)
        if said is not None and said > self.greatest and own != self.given:
            self._say(
                "B324",
                f"the last bookmark is {own!s}, and the last row has {self.greatest_shown!s}: what appears between them in the source is never read",
                None,
            )

    def _slow(self, own: Any, seconds: float, now: dt.datetime) -> None:
        ratio = self.ratio(own, seconds)
        if ratio is None or seconds < self._limits.min_advance_seconds or ratio >= self._limits.min_advance_ratio:
            return
        said = of_kind(own, "time")
        if said is None or (now - said).total_seconds() <= 2 * seconds:
            return  # it has caught up
        self._say(
            "B306",
            f"the bookmark went on by {ratio:.3g} s for each second of the run (at least {self._limits.min_advance_ratio:g} are needed to catch up)",
            None,
        )

    def advanced_seconds(self, own: Any) -> float | None:
        """How far a bookmark of date-times went; None where it is none."""
        began = self.given if self.given is not MISSING else self.first
        if self.kind != "time" or own is MISSING or began is MISSING:
            return None
        one, other = of_kind(began, "time"), of_kind(own, "time")
        return None if one is None or other is None else (other - one).total_seconds()

    def ratio(self, own: Any, seconds: float) -> float | None:
        """Seconds that the bookmark went on for each second of the run."""
        advanced = self.advanced_seconds(own)
        return None if advanced is None or seconds <= 0 else advanced / seconds

    def _point(self, seconds: float) -> None:
        shown = None if self.value is MISSING else str(self.value)
        if self.series and self.rows < self.series[-1][1] + self._step and shown == self.series[-1][2]:
            return
        self.series.append([round(seconds, 4), self.rows, shown])
        if len(self.series) > _POINTS:
            self.series = self.series[::2]
            self._step = max(1, self.rows // (_POINTS // 2))

    def facts(self, last_state: Any, seconds: float) -> Mapping[str, Any]:
        """See ``burler.verify.result.StreamFacts.bookmark``."""
        own = bookmark_of(last_state, self.stream, self.key, self.kind)
        ratio = self.ratio(own, seconds)
        return {
            "from": None if self.given is MISSING else self.given,
            "to": None if own is MISSING else own,
            "advanced_seconds": self.advanced_seconds(own),
            "ratio": None if ratio is None else round(ratio, 3),
        }

    def _say(self, code: str, message: str, line: int | None, count: int = 1) -> None:
        self._findings.add(
            code,
            message,
            stream=self.stream,
            path=self.key,
            place=None if line is None else f"line {line}",
            count=count,
        )


def _is_below(value: Any, given: Any) -> bool:
    return given is not None and bool(value < given)


def marks_of(column: Sequence[Any], kind: Kind) -> list[float] | None:
    """Values of a replication key as numbers that stand in the same order; None for text."""
    if kind == "text":
        return None
    try:
        return [one.timestamp() for one in column] if kind == "time" else list(map(float, column))
    except OverflowError:
        return None
