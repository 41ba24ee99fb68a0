"""Files that roll, for lakes and BATCH: when one ends, how much of a page still goes into it, which are open, and
STATEs that wait until all data before them is in files that have ended."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from burler.clock import Clock
from burler.errors import UsageError
from burler.singer.messages import State


@dataclass(frozen=True, slots=True)
class RollSettings:
    """When a file is ended, committed, and the next one begun.

    ``max_file_bytes``: uncompressed, the SCHEMA line included; one line may exceed it. ``max_file_records``:
    None is no limit. ``max_file_age_seconds``: since its first message, also while nothing comes in.
    ``max_open_files``: beyond it the oldest is ended (a process may hold only so many). ``max_open_bytes``: of all
    open files, compressed, as they lie on disk or in memory; beyond it the greatest is ended.
    """

    max_file_bytes: int = 64 * 1024 * 1024
    max_file_records: int | None = None
    max_file_age_seconds: float = 60.0
    max_open_files: int = 100
    max_open_bytes: int = 1024 * 1024 * 1024

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and not value > 0:  # so that NaN does not pass
                raise UsageError(f"{name} is {value}; it must be greater than 0.")


def fitting(
    lines: bytes | bytearray, start: int, left: int, *, room_bytes: int, room_records: int | None, fresh: bool
) -> tuple[int, int]:
    """(end, count) of the lines from ``start`` on that still go into a file; a fresh file takes one at least.

    ``left`` is the number of lines from ``start`` to the end of the page.
    """
    end, count = len(lines), left
    if end - start > room_bytes:
        end = lines.rfind(b"\n", start, start + max(0, room_bytes)) + 1
        if end <= start:
            return (lines.index(b"\n", start) + 1, 1) if fresh else (start, 0)
        count = lines.count(b"\n", start, end)
    if room_records is not None and count > room_records:
        end, count = start, room_records
        for _ in range(count):
            end = lines.index(b"\n", end) + 1
    return end, count


class OpenFile(Protocol):
    """``begun``: the place, in the writer's sequence, of the first message in it; ``opened``: the clock's monotonic
    seconds then."""

    begun: int
    opened: float

    def discard(self) -> None:
        """Remove what is not published."""


File = TypeVar("File", bound=OpenFile)


class OpenFiles(Generic[File]):
    """At most one file a stream, for one thread at a time. Whoever ends one takes it out of ``_open``.

    Args:
        most: beyond so many the oldest is to be ended before another begins.
        age_seconds: a file of that age is to be ended.
    """

    def __init__(self, clock: Clock, *, most: int, age_seconds: float) -> None:
        self._clock, self._most, self._age_seconds = clock, most, age_seconds
        self._open: dict[str, File] = {}

    @property
    def begun(self) -> list[int]:
        """The place of the first message of each open file."""
        return [file.begun for file in self._open.values()]

    @property
    def next_due_seconds(self) -> float | None:
        """Seconds until the oldest open file is due by age; None when no file is open. Safe from any thread."""
        opened = min((file.opened for file in list(self._open.values())), default=None)
        if opened is None:
            return None
        return max(0.0, opened + self._age_seconds - self._clock.monotonic())

    def old(self) -> list[File]:
        """Those that are old enough to be ended."""
        return [file for file in self._open.values() if self._is_old(file)]

    def in_order(self) -> list[File]:
        """All, in the order in which they were begun."""
        return sorted(self._open.values(), key=lambda file: file.begun)

    def surplus(self) -> list[File]:
        """Those to end before another is begun: the oldest, where there are as many as may be."""
        return self.in_order()[: max(0, len(self._open) - self._most + 1)]

    def discard(self) -> None:
        """Drop all that is not published."""
        for file in self._open.values():
            file.discard()
        self._open.clear()

    def _is_old(self, file: File) -> bool:
        return self._clock.monotonic() - file.opened >= self._age_seconds


class HeldStates:
    """STATEs in sequence, each with the number of its place among the messages.

    A STATE is free once no open file holds a message from before it. Of STATEs that wait for the
    same files only the newest is kept; those that wait for fewer are kept too, or a stream
    whose file is always open would hold back every STATE for ever.
    """

    def __init__(self) -> None:
        self._held: list[tuple[int, State]] = []

    def __len__(self) -> int:
        return len(self._held)

    def add(self, place: int, state: State, open_since: Collection[int]) -> None:
        """Hold a STATE. ``open_since``: the place of the first message of each open file."""
        self._held.append((place, state))
        self._forget(open_since)

    def release(self, open_since: Collection[int]) -> State | None:
        """The newest STATE that is free, if any; it and all before it are held no more."""
        oldest = min(open_since, default=None)
        free = [entry for entry in self._held if oldest is None or entry[0] < oldest]
        del self._held[: len(free)]
        self._forget(open_since)
        return free[-1][1] if free else None

    def _forget(self, open_since: Collection[int]) -> None:
        """Drop each STATE whose successor waits for the same files."""
        if len(self._held) < 2:
            return
        starts = sorted(open_since)
        kept = []
        for (place, state), (next_place, _) in zip(self._held, self._held[1:], strict=False):
            if any(place < start < next_place for start in starts):
                kept.append((place, state))
        self._held = [*kept, self._held[-1]]
