"""What a tail reads: streams that are polled, and streams that push."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from burler.declare.strategies import Manual
from burler.engine.catalog.plan import PlannedRun
from burler.engine.tail.memory import Memory
from burler.engine.tail.retries import Tries
from burler.engine.tail.settings import full_table_age_seconds, interval_seconds
from burler.events import TailFamily, TailPlanned
from burler.settings import Settings
from burler.singer.metadata import FULL_TABLE

MOST_OFTEN_SECONDS = 0.1
"""Between the beginnings of two polls of a stream that is woken again and again."""


@dataclass(slots=True, eq=False)
class Source:
    """One line of streams, named like its root.

    Attributes:
        due: when it is read next, by the engine's clock; None: never again.
        rounds: that have begun; ``began``: the last one.
        busy: a thread is at it.
        told: it was asked for (wake) while a round was under way.
        gone: discovery no longer finds it.
        cuts: its rounds that SIGHUP has cut since one came to its end; not those of a tail function, which never do.
        age_seconds: of a full table: how old its rows may become; None: it is read once.
    """

    planned: PlannedRun
    tries: Tries
    interval_seconds: float
    full: bool
    age_seconds: float | None
    due: float | None
    memory: Memory
    rounds: int = 0
    began: float = 0.0
    busy: bool = False
    told: bool = False
    gone: bool = False
    cuts: int = 0

    @property
    def name(self) -> str:
        """The root's name."""
        return self.planned.spec.tap_stream_id

    @property
    def pushes(self) -> bool:
        """Whether it has a tail function."""
        return self.planned.spec.tail is not None

    @property
    def kind(self) -> Literal["push", "full", "poll"]:
        """ "push", "full" or "poll"."""
        return "push" if self.pushes else "full" if self.full else "poll"


def source_of(planned: PlannedRun, settings: Settings, now: float) -> Source:
    """A source that is due at once."""
    name = planned.spec.tap_stream_id
    own = next((one for one in planned.streams if one.tap_stream_id == name), planned.streams[0])
    return Source(
        planned,
        Tries(settings),
        interval_seconds(own, settings),
        own.replication_method == FULL_TABLE,
        full_table_age_seconds(own, settings),
        due=now,
        memory=Memory(now),
    )


def planned_families(sources: Iterable[Source]) -> TailPlanned:
    """What is to be read, for those who listen."""
    return TailPlanned(tuple(map(_family_of, sources)))


def _family_of(source: Source) -> TailFamily:
    spec, pushes = source.planned.spec, source.pushes
    return TailFamily(
        source.name,
        tuple(one.tap_stream_id for one in source.planned.streams),
        source.kind,
        once=source.full and not pushes and source.age_seconds is None,
        moves_last=bool(pushes and spec.bookmark_key and spec.order != "asc" and not isinstance(spec.strategy, Manual)),
    )


def next_due(sources: Iterable[Source]) -> Source | None:
    """Of those that nobody is at the one that is due first: so none waits behind others for ever."""
    waiting = [source for source in sources if source.due is not None and not source.busy and not source.pushes]
    return min(waiting, key=lambda source: source.due or 0.0, default=None)
