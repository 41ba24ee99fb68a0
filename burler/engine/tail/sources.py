"""What a tail reads: streams that are polled, and streams that push."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from burler.clock import Clock
from burler.engine.catalog.plan import PlannedRun
from burler.engine.tail.kept import Kept
from burler.engine.tail.retries import Tries
from burler.engine.tail.settings import full_table_age_seconds, interval_seconds
from burler.report.watch import TailWatch
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
    kept: Kept
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
    def kind(self) -> str:
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
        kept=Kept(now),
    )


def kinds(plan: Iterable[PlannedRun], settings: Settings) -> list[tuple[str, str]]:
    """The streams of a plan, and how each is read."""
    return [
        (stream.tap_stream_id, source_of(planned, settings, 0.0).kind) for planned in plan for stream in planned.streams
    ]


def watch_of(plan: Iterable[PlannedRun], settings: Settings, clock: Clock) -> TailWatch:
    """What is told how the streams of a plan go on."""
    watch = TailWatch(clock, metrics_interval_seconds=settings.metrics_interval_seconds)
    tell_plan(watch, plan, settings)
    return watch


def tell_plan(watch: TailWatch, plan: Iterable[PlannedRun], settings: Settings) -> None:
    """Tell a watch what is to be read."""
    runs = list(plan)
    families = {run.spec.tap_stream_id: tuple(one.tap_stream_id for one in run.streams) for run in runs}
    watch.plan(kinds(runs, settings), {root: tuple(dict.fromkeys((root, *names))) for root, names in families.items()})


def next_due(sources: Iterable[Source]) -> Source | None:
    """Of those that nobody is at the one that is due first: so none waits behind others for ever."""
    waiting = [source for source in sources if source.due is not None and not source.busy and not source.pushes]
    return min(waiting, key=lambda source: source.due or 0.0, default=None)
