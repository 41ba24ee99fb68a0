"""What is told to whoever runs a part of a stream, and what comes back: plain data, which can be pickled."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.config.secrets import masked
from burler.engine.family import Family
from burler.engine.state.ordered import PartitionOrder
from burler.engine.state.progress import Partition, Progress
from burler.errors import BurlerError, Failure, PartialError, StreamError
from burler.logs import place_of_error, short
from burler.singer.messages import ActivateVersion
from burler.singer.state import partitions_of


@dataclass(frozen=True, slots=True)
class Shared:
    """What the parts of a stream have in common, and what has to be known to put their ends together.

    Attributes:
        order: what is declared of partitions that rise; None: they do not.
        tables: full tables that the parts make up, and the message with which they count; rows carry its version.
        asks_state: functions want to see the whole state.
        incomplete: there may be partitions that nobody found.
    """

    family: Family
    order: PartitionOrder | None = None
    tables: Mapping[str, ActivateVersion] = field(default_factory=dict)
    asks_state: bool = False
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One partition of a stream, or a stream that has none, as a whole; one of ``count``. Streams that come with this
    one (substreams, emitted ones) come here as well."""

    stream: str
    partition: Partition
    count: int
    shared: Shared

    @property
    def where(self) -> str:
        """Which part it is, for errors and logs; empty for a stream as a whole."""
        return self.partition.where

    def state_for(self, state: Mapping[str, Any] | None) -> dict[str, Any]:
        """What of a state this part has to be told: of thousands of partitions, each one's own entry."""
        own: dict[str, Any] = copy.deepcopy(dict(state or {}))
        key = self.partition.key
        if key is None or self.shared.asks_state:
            return own
        for name in self.shared.family.names:
            others = partitions_of(own, name)
            for one in [one for one in others if one != key]:
                del others[one]
        return own


@dataclass(frozen=True, slots=True)
class PartError:
    """What failed: a stream, where in it (a partition, a parent's row; empty: the stream as a whole), what the error
    said, and ``file:line`` of the author's code, if it came through some."""

    stream: str
    where: str
    text: str
    place: str | None = None

    @classmethod
    def of(cls, error: BaseException, stream: str, where: str = "") -> PartError:
        """What an error says, without secrets."""
        if isinstance(error, BurlerError):
            return cls(stream, where, masked(str(error).removeprefix(f"stream '{stream}': ")))
        return cls(stream, where, short(error), place_of_error(error))

    def to_error(self) -> StreamError:
        """As an error, for where it is told."""
        if self.text.startswith("stream '"):
            return StreamError(self.stream, self.text)  # it says itself which stream it speaks of, and where
        at = f"({self.place}): " if self.place else ""
        return StreamError(self.stream, f"stream '{self.stream}': {at}{self.text}")


@dataclass(frozen=True, slots=True)
class PartEnd:
    """How a part ended.

    Attributes:
        progress: how far it has come; None: its function was not called.
        versions: of whole tables, those that count by what this part has said of them.
    """

    part: Part
    progress: Progress | None
    versions: Mapping[str, int]
    rows: Mapping[str, int]
    seconds: float
    errors: tuple[PartError, ...] = ()

    @property
    def behind(self) -> set[str]:
        """The streams of which rows are missing."""
        if self.progress is None or not self.progress.is_complete:
            return set(self.part.shared.family.names)
        return {*self.progress.behind, *(error.stream for error in self.errors)}


def errors_of(errors: Mapping[str, BaseException]) -> tuple[PartError, ...]:
    """The errors of a run's streams, one by one."""
    found: list[PartError] = []
    for stream, error in errors.items():
        if isinstance(error, PartialError):
            found += [PartError.of(one.error, one.stream, one.where) for one in error.failures]
        else:
            found.append(PartError.of(error, stream))
    return tuple(found)


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
