"""The files that one writer has open, by stream: which is the oldest, which is due, the order in which they end."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from burler.clock import Clock


class OpenFile(Protocol):
    """``begun``: the place, in the writer's sequence, of the first message in it; ``opened``: the clock's monotonic
    seconds then."""

    begun: int
    opened: float

    def discard(self) -> None:
        """Remove what is not published."""


File = TypeVar("File", bound=OpenFile)


class OpenFiles(Generic[File]):
    """At most one file a stream, for one thread at a time. ``end`` is the heir's: it publishes a file, and takes it out
    of ``_open``.

    Args:
        most: beyond so many the oldest is ended before another begins.
        age_seconds: a file of that age is ended.
    """

    def __init__(self, clock: Clock, *, most: int, age_seconds: float) -> None:
        self._clock, self._most, self._age_seconds = clock, most, age_seconds
        self._open: dict[str, File] = {}

    def end(self, file: File) -> None:
        """Publish a file."""
        raise NotImplementedError

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

    def end_old(self) -> None:
        """End the files that are old enough."""
        for file in [file for file in self._open.values() if self._is_old(file)]:
            self.end(file)

    def end_all(self) -> None:
        """End every file, those that were begun first before the others."""
        for file in sorted(self._open.values(), key=_begun):
            self.end(file)

    def discard(self) -> None:
        """Drop all that is not published."""
        for file in self._open.values():
            file.discard()
        self._open.clear()

    def _make_place(self) -> None:
        """For one file more."""
        while len(self._open) >= self._most:
            self.end(min(self._open.values(), key=_begun))

    def _is_old(self, file: File) -> bool:
        return self._clock.monotonic() - file.opened >= self._age_seconds


def _begun(file: OpenFile) -> int:
    return file.begun
