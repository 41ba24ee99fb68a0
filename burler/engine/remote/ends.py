"""What comes of a part: plain data, which can be pickled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from burler.config.watched import clean
from burler.engine.remote.parts import Part
from burler.engine.state.progress import Progress
from burler.errors import BurlerError, Failure, PartialError, StreamError
from burler.logs import place_of_error, short


@dataclass(frozen=True, slots=True)
class PartError:
    """What failed: a stream, where in it (a partition, a parent's row; empty: the stream as a whole), what the error
    said, and ``file:line`` of the author's code, if it came through some."""

    stream: str
    where: str
    text: str
    place: str | None = None

    def to_error(self) -> StreamError:
        """As an error, for where it is told."""
        if self.text.startswith("stream '"):
            return StreamError(self.stream, self.text)  # it says itself which stream it speaks of, and where
        at = f"({self.place}): " if self.place else ""
        return StreamError(self.stream, f"stream '{self.stream}': {at}{self.text}")


@dataclass(frozen=True, slots=True)
class PartEnd:
    """How a part ended.

    ``entries``: what the state says afterwards of each stream of the line: in the partition's entry, or in the stream's
    own where there are no partitions; None for nothing. ``versions``: those that the author's own ``full_table``
    blocks have activated. ``behind`` are streams of which rows are missing, ``kept`` those whose source said that
    nothing has changed. ``progress``: how far a partition has come; None: its function was not called.
    """

    part: Part
    entries: Mapping[str, Mapping[str, Any] | None]
    versions: Mapping[str, int]
    rows: Mapping[str, int]
    seconds: float
    errors: tuple[PartError, ...] = ()
    behind: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    progress: Progress | None = None

    @property
    def failed(self) -> bool:
        """Whether rows of the stream itself are missing, not only of some below it."""
        return self.part.stream in self.behind

    @property
    def state(self) -> dict[str, Any]:
        """The state of this part alone."""
        key, found = self.part.key, {}
        for name, entry in self.entries.items():
            if entry:
                found[name] = dict(entry) if key is None else {"partitions": {key: dict(entry)}}
        return {"bookmarks": found} if found else {}


def errors_of(errors: Mapping[str, BaseException]) -> tuple[PartError, ...]:
    """The errors of a run's streams, one by one."""
    return tuple(one for stream, error in errors.items() for one in _of(stream, error))


def _of(stream: str, error: BaseException) -> Iterable[PartError]:
    if isinstance(error, PartialError):
        for failure in error.failures:
            yield _one(failure.stream, failure.where, failure.error)
    else:
        yield _one(stream, "", error)


def _one(stream: str, where: str, error: BaseException) -> PartError:
    if isinstance(error, BurlerError):
        return PartError(stream, where, clean(str(error).removeprefix(f"stream '{stream}': ")))
    return PartError(stream, where, short(error), place_of_error(error))


def as_errors(errors: Iterable[PartError]) -> dict[str, BaseException]:
    """By stream, as a local run has them in its result."""
    found: dict[str, BaseException] = {}
    parts: dict[str, list[Failure]] = {}
    for one in errors:
        if one.where:
            parts.setdefault(one.stream, []).append(Failure(one.stream, one.where, one.to_error()))
        else:
            found.setdefault(one.stream, one.to_error())
    for stream, failures in parts.items():
        whole = [Failure(stream, "its end", found[stream])] if stream in found else []
        found[stream] = PartialError(stream, [*whole, *failures])
    return found
