"""The STATEs of a run as a whole: what each must be, what they lose, and those that another run is to begin from."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from burler.spec.finding import Findings
from burler.spec.limits import Limits
from burler.spec.states import entry_of, holds_bookmark, holds_place, partitions_of, streams_of

_MOST_RESUMED = 8
_KEPT = 64
_MANY_STATES = 100
_FEW_STATES, _LEAST_GROWN, _SHARE, _LONG_TEXT, _DEEPEST = 3, 10, 0.5, 100, 100


@dataclass(frozen=True, slots=True)
class KeptState:
    """A STATE to be resumed from. ``rows``: how many rows of each stream had come before it."""

    number: int
    line: int
    value: Any
    rows: Mapping[str, int]


class StateLog:
    """Takes all STATEs of a run.

    Args:
        given: the state that the run began with.
        names: what the catalog's streams may be called in a state; None where there is no catalog.
        goes_on: whether the stream that a state calls so goes on where it was; None where nobody knows.
    """

    def __init__(
        self,
        findings: Findings,
        limits: Limits,
        given: Any,
        names: Collection[str] | None = None,
        goes_on: Callable[[str], bool | None] = lambda _name: True,
    ) -> None:
        self.count = 0
        self.bytes = 0
        self.last: Any = None
        self.last_line = 0
        self.kept: list[KeptState] = []
        self._findings, self._limits, self._names, self._given = findings, limits, names, given
        self._goes_on = goes_on
        self._with_bookmark: set[str] = set()
        self._newest: KeptState | None = None
        self._streams = {stream for stream in streams_of(given) if holds_place(entry_of(given, stream))}
        self._every = 1
        self._first: tuple[int, int, Any] | None = None  # rows before it, size and value
        self._total = self._last_size = 0

    def take(self, value: Any, size: int, line: int, rows: Mapping[str, int]) -> None:
        """A STATE's value, how long it is, and how many rows of each stream came before it."""
        if not isinstance(value, Mapping):
            self._say("B301", f"the value of a STATE is {_kind(value)}; it must be an object", line)
            return
        self.count += 1
        self.bytes += size
        self.last, self.last_line = value, line
        if self.count == 1:
            self._with_bookmark |= {one for one in self._streams if holds_bookmark(entry_of(self._given, one))}
        now = {stream for stream in streams_of(value) if holds_place(entry_of(value, stream))}
        self._with_bookmark |= {one for one in now - self._with_bookmark if holds_bookmark(entry_of(value, one))}
        standard = isinstance(value.get("bookmarks"), Mapping)
        for stream in sorted(self._streams - now):
            # What a catalog does not know may go; beside bookmarks of their own, old taps keep what they like.
            known = (standard or stream in rows) if self._names is None else stream in self._names
            # How far a table was read, or which export was asked for, is of no use once it has been read whole.
            # So is the page at which a stream stood that nothing calls incremental.
            goes_on = self._goes_on(stream)
            kept = stream in self._with_bookmark if goes_on is None else goes_on
            if known and kept and not self._findings.seen("B316", stream):
                message = f"the STATE no longer has the bookmark of '{stream}': a target keeps the last STATE only"
                self._findings.add("B316", message, stream=stream, place=f"line {line}")
        self._streams |= now
        total = sum(rows.values())
        if self._first is None and total:
            self._first = total, size, value
        self._total, self._last_size = total, size
        if self.count % self._every == 0 or self.count == 1:
            self.kept.append(KeptState(self.count, line, value, dict(rows)))
            if len(self.kept) > _KEPT:
                self.kept = [self.kept[0], *self.kept[2::2]]
                self._every *= 2
        else:
            self._newest = KeptState(self.count, line, value, dict(rows))

    def finish(self, *, whole: bool, rows: int, record_bytes: int) -> None:
        """The end of the messages."""
        if self._newest is not None and self.kept[-1].number != self.count:
            self.kept.append(self._newest)
        if not self._grows_inside():
            self._grows()
        if self.count >= _MANY_STATES and self.bytes > record_bytes > 0:
            fact = f"{self.count} STATEs take {self.bytes} bytes, and the rows {record_bytes}"
            self._say("B317", f"{fact}: a target writes and keeps them", self.last_line)
        if not whole or not isinstance(self.last, Mapping):
            return
        left = self.last.get("currently_syncing")
        if left:
            self._say("B309", f"the last STATE still says currently_syncing: {str(left)[:60]!r}", self.last_line)
        for stream in streams_of(self.last):
            entry = entry_of(self.last, stream)
            for one in (entry, *(partitions_of(entry) or {}).values()):
                if isinstance(one, Mapping) and one.get("progress_markers"):
                    message = "the last STATE still has progress_markers: its bookmark was never made final"
                    self._findings.add("B315", message, stream=stream, place=f"line {self.last_line}")
                    break

    def has_own_layout(self, names: Collection[str]) -> bool:
        """Whether the last STATE is laid out in a way of the tap's own: by something else than streams."""
        return any(stream not in names for stream in streams_of(self.last))

    def _grows_inside(self) -> bool:
        """A list (or an object, or text) inside of the state that grows with the rows, however small it is yet."""
        if len(self.kept) < _FEW_STATES:
            return False
        first, last = next((one for one in self.kept if any(one.rows.values())), self.kept[0]), self.kept[-1]
        rows_of = {stream: count - first.rows.get(stream, 0) for stream, count in last.rows.items()}
        before = dict(_sizes(first.value, ()))
        for path, size in _sizes(last.value, ()):
            grown = size - before.get(path, 0)
            named = [stream for stream in rows_of if stream in path]
            rows = min((rows_of[stream] for stream in named or rows_of if rows_of[stream] >= _LEAST_GROWN), default=0)
            if rows and grown >= max(_LEAST_GROWN, _SHARE * rows):
                shown = ".".join(path)
                message = (
                    f"'{shown}' in the STATE grew to {size} parts, by {grown} over {rows} rows: it keeps on growing"
                )
                self._say("B308", message, self.last_line)
                return True
        return False

    def _grows(self) -> None:
        if self._first is None or self._last_size < self._limits.state_bytes:
            return
        before, size, first = self._first
        rows = self._total - before
        now = self._last_size
        if rows > 0 and now - size >= rows * self._limits.state_bytes_per_row:
            size, now = size - _bytes_of_partitions(first), now - _bytes_of_partitions(self.last)
        if rows > 0 and now - size >= rows * self._limits.state_bytes_per_row:
            message = (
                f"the STATE grew from {size} to {now} bytes over {rows} rows, {(now - size) / rows:.1f} bytes a row: "
                "it will not stop to grow"
            )
            self._say("B308", message, self.last_line)

    def chosen(self) -> list[KeptState]:
        """The first, the middle and the last STATE; fewer where there are fewer, or where some are equal. And for some
        streams that none of these falls into the one nearest to the middle of their rows."""
        if not self.kept:
            return []
        out: list[KeptState] = []
        for one in (self.kept[0], self.kept[len(self.kept) // 2], self.kept[-1]):
            if all(one.value != other.value or one.rows != other.rows for other in out):
                out.append(one)
        for stream, total in self.kept[-1].rows.items():
            if len(out) >= _MOST_RESUMED:
                break
            inside = [one for one in self.kept if 0 < one.rows.get(stream, 0) < total]
            if inside and not any(one in inside for one in out):
                out.append(min(inside, key=lambda one: abs(2 * one.rows[stream] - total)))
        return sorted(out, key=lambda one: one.number)

    def _say(self, code: str, message: str, line: int) -> None:
        self._findings.add(code, message, place=f"line {line}")


def _sizes(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """How many parts the lists, objects and long texts of a state have; bookmarks of partitions are as many as there
    are partitions. What lies deeper than ``_DEEPEST`` is not looked at: no state of a tap goes there."""
    if len(path) > _DEEPEST:
        return
    if isinstance(value, Mapping):
        if path[-1:] == ("partitions",):
            return
        if len(path) > 2:
            yield path, len(value)
        for name, below in value.items():
            yield from _sizes(below, (*path, str(name)))
    elif isinstance(value, list):
        if path[-1:] != ("partitions",):
            yield path, len(value)
    elif isinstance(value, str) and len(value) > _LONG_TEXT:
        yield path, value.count(",") + 1


def _bytes_of_partitions(state: Any) -> int:
    """How long the bookmarks of partitions are: there are as many as partitions, however many rows come."""
    entries = [entry_of(state, stream) for stream in streams_of(state)]
    return sum(len(json.dumps(entry["partitions"])) for entry in entries if partitions_of(entry) is not None)


def _kind(value: Any) -> str:
    words = {type(None): "null", str: "text", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return words.get(type(value), "none")
