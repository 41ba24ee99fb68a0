"""What a tail reads, and when: each source with its interval, its age and its failures, and what follows from how a
round of it went. It lasts over every SIGHUP; it starts nothing.
"""

from __future__ import annotations

import errno
import logging
import math
import random
import re
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from burler import logs
from burler.declare.strategies import Manual
from burler.engine.catalog.plan import PlannedRun, PlannedStream
from burler.engine.run.job import Memory
from burler.events import TailFamily, TailPlanned
from burler.settings import Settings
from burler.singer.metadata import FULL_TABLE

logger = logging.getLogger(__name__)

INTERVAL = "new-record-polling-interval-ms"
AGE = "max-full-table-age-seconds"

_LONGEST_WAIT_SECONDS = 300.0  # after failures
_MOST_OFTEN_SECONDS = 0.1  # between the beginnings of two polls of a stream that is woken again and again
_SECONDS, _LONGEST_SECONDS = 60.0, 3600.0  # of one wait: for nothing, and for what is due

_ERRNOS = {errno.ENOTCONN, errno.ESHUTDOWN, errno.ENETDOWN, errno.ENETUNREACH, errno.ENETRESET, errno.EHOSTUNREACH}

_CONNECTION = re.compile(
    "^(NoAnswerError|OperationalError|InterfaceError|ChunkedEncodingError|IncompleteRead|RemoteProtocolError)$"
    "|Connection(?!String|Setting|Config|Info|Name|Param)"
    "|(Timeout|TimedOut|Disconnect|Disconnected|Disconnection|NotConnected)(Error|Exception)?$"
    "|^NoBrokersAvailable|(Connect|Reconnect|Network)(Error|Exception|Failure|Failed)$"
    "|(Socket|Channel|Stream|Transport|Pipe|Link|Resource)(Is)?(Closed|Broken|Reset|Lost|Aborted)"
    "|(Closed|Broken|Lost)(Socket|Channel|Stream|Transport|Pipe|Link|Resource)"
)
"""Names of error classes of clients: burler's own, of databases (PEP 249), of HTTP, of queues. In whole words, so that
a record that is broken, or a period that is closed, is none."""


# ---- one stream's own: a catalog's metadata comes before the author's option, and that before the setting -----


def check_metadata(planned: PlannedStream) -> None:
    """Hold a stream's metadata against what a tail asks of it, before the first message; warn of what has no effect: a
    key of a field, one of a stream that is read with another.

    Raises:
        CatalogError: a value that is no number of the right kind.
    """
    name, leader = planned.tap_stream_id, planned.spec.root or planned.spec.emitted_by
    for key in (INTERVAL, AGE):
        why = ""
        if any(crumb and key in values for crumb, values in planned.metadata.items()):
            why = "of a field has no effect; it belongs to the breadcrumb []"
        if planned.told(key) is None:
            pass
        elif leader and leader != name:
            why = f"has no effect: it is read with stream '{leader}'; write it there"
        elif key == AGE and planned.replication_method != FULL_TABLE:
            why = f"has no effect: its method is {planned.replication_method}"
        if why:
            logger.warning("stream '%s': metadata '%s' %s", name, key, why)


@dataclass(slots=True)
class Tries:
    """Failures of one stream in a row.

    Attributes:
        failures: in a row; ``wait``: seconds after the last one.
        error: the last one; None after a good round.
        for_good: it is tried no more.
        began_anew: it has forgotten its bookmark since its last good round.
    """

    settings: Settings
    failures: int = 0
    wait: float = 0.0
    error: BaseException | None = None
    for_good: bool = False
    began_anew: bool = False

    def good(self) -> bool:
        """A good round; whether it follows a failure."""
        recovered = self.failures > 0
        self.failures, self.error, self.began_anew = 0, None, False
        return recovered

    def failed(self, error: BaseException) -> bool:
        """One more failure, and a wait with full jitter. False: it is one too many, and there is no next try."""
        self.failures += 1
        self.error = error
        self.wait = random.random() * min(_LONGEST_WAIT_SECONDS, 2.0 ** min(self.failures - 1, 20))
        most = self.settings.tail_max_retries
        return self.settings.tail_retry and (most is None or self.failures <= most)


class Source:
    """A family of streams that is read again and again, named like its root.

    Attributes:
        memory: what is known of it from round to round.
        interval_seconds: between the end of a poll and the next one.
        full: it is a full table. age_seconds: how old its rows may become; None: it is read once.
        due: when it is read next, by the run's clock; None: never again.
        rounds: that have begun. began: when the last one did.
        told: it was asked for (wake) while a round was under way.
        gone: discovery no longer finds it.
        cuts: its rounds that SIGHUP has cut since one came to its end; not those of a tail function, which never do.
    """

    def __init__(self, planned: PlannedRun, settings: Settings, now: float) -> None:
        self.name = planned.spec.tap_stream_id
        self.tries = Tries(settings)
        self.due: float | None = now
        self.rounds = self.cuts = 0
        self.began = 0.0
        self.told = self.gone = False
        self.follow(planned, settings, now)

    def follow(self, planned: PlannedRun, settings: Settings, now: float) -> None:
        """It is read as it is planned now.

        Raises:
            CatalogError: the metadata holds something else than numbers.
        """
        own = next((one for one in planned.streams if one.tap_stream_id == self.name), planned.streams[0])
        spec = own.spec
        interval = _first(own.told(INTERVAL), spec.new_record_polling_interval_ms)
        self.planned, self.memory = planned, Memory(now)
        self.full = own.replication_method == FULL_TABLE
        self.interval_seconds = (settings.new_record_polling_interval_ms if interval is None else interval) / 1000
        self.age_seconds = _first(own.told(AGE), spec.max_full_table_age_seconds, settings.max_full_table_age_seconds)

    @property
    def goes_on(self) -> bool:
        """Whether it is read any more."""
        return self.due is not None and not self.gone

    @property
    def pushes(self) -> bool:
        """Whether it has a tail function."""
        return self.planned.spec.tail is not None

    @property
    def family(self) -> TailFamily:
        """What it is, for those who listen."""
        spec, pushes = self.planned.spec, self.pushes
        return TailFamily(
            self.name,
            tuple(one.tap_stream_id for one in self.planned.streams),
            "push" if pushes else "full" if self.full else "poll",
            once=self.full and not pushes and self.age_seconds is None,
            moves_last=bool(
                pushes and spec.bookmark_key and spec.order != "asc" and not isinstance(spec.strategy, Manual)
            ),
        )


def _first(*values: float | None) -> float | None:
    return next((float(one) for one in values if one is not None), None)


# ---- all of them -------------------------------------------------------------------------------------------


class Schedule:
    """What is read when, from the first round of a tail to its last.

    Args:
        changed: whoever waits for what is due waits for this.
        now: when the tail begins, by the clock that all moments are of.
    """

    def __init__(
        self, plan: Iterable[PlannedRun], settings: Settings, changed: threading.Condition, now: float
    ) -> None:
        self.sources = {one.spec.tap_stream_id: Source(one, settings, now) for one in plan}
        self._settings, self._changed = settings, changed
        self._anew = now  # when the client of now began
        self._discover_at = math.inf
        self._discoveries_cut = 0  # in a row, by SIGHUP
        self._told_late = False
        if settings.tail_rediscover_seconds is not None:
            self._discover_at = now + settings.tail_rediscover_seconds

    @property
    def planned(self) -> TailPlanned:
        """What is to be read, for those who listen."""
        return TailPlanned(tuple(source.family for source in self.sources.values()))

    # ---- what is next: ``busy`` are the sources that somebody is at ----------------------------------------

    def take(self, now: float, busy: set[Source], own: Source | None = None) -> Source | None:
        """Of those that are due the one that has been so for longest: none waits behind others for ever; ``own``: it
        or none. It is busy then."""
        source = own or self._next(busy)
        if source is None or source.due is None or source.due > now:
            return None
        late_seconds = now - max(source.due, self._anew)
        one_by_one = own is None and self._settings.workers == 1
        if not self._told_late and one_by_one and late_seconds > max(60, 2 * source.interval_seconds):
            self._told_late = True
            logger.warning(
                "stream '%s': is polled %.0f s late, since other streams took so long; 'workers' polls several streams "
                "at a time",
                source.name,
                late_seconds,
            )
        busy.add(source)
        source.told, source.began = False, now
        source.rounds += 1
        return source

    def _next(self, busy: Collection[Source]) -> Source | None:
        waiting = [one for one in self.sources.values() if one.due is not None and one not in busy and not one.pushes]
        return min(waiting, key=lambda source: source.due or 0.0, default=None)

    def seconds_until_due(self, now: float, busy: Collection[Source], own: Source | None = None) -> float:
        """How long there is nothing to do; of ``own``, for the thread that reads it alone: that discovers nothing."""
        source, moments = own or self._next(busy), []
        if own is None and self._discover_at < math.inf:
            moments.append(self._discover_at)
        if source is not None and source.due is not None:
            moments.append(source.due)
        return min(max(0.0, min(moments) - now), _LONGEST_SECONDS) if moments else _SECONDS

    def is_over(self, busy: Collection[Source] = ()) -> bool:
        """Whether no stream will be read any more, and none can be found any more."""
        finds_more = self._settings.tail_rediscover_seconds is not None and self._settings.tail_max_rounds is None
        return not finds_more and not busy and all(one.due is None for one in self.sources.values())

    def wake(self, source: Source, now: float, busy: Collection[Source]) -> None:
        """Somebody knows that there may be something new."""
        with self._changed:
            source.told = True
            if source not in busy and source.due is not None and not source.tries.failures:
                source.due = min(source.due, max(now, source.began + _MOST_OFTEN_SECONDS))
            self._changed.notify_all()

    # ---- how a round went --------------------------------------------------------------------------------

    def succeeded(
        self, source: Source, *, pushed: bool, began: float, now: float, error: BaseException | None, new_rows: bool
    ) -> None:
        """A round came to its end.

        Args:
            pushed: it was one of a tail function.
            error: of parts of it; the rest went well.
            new_rows: any came.
        """
        if source.pushes and not pushed:
            return  # the batch before the stream: what counts is how that goes
        if pushed and source.rounds == 1:
            logger.info(
                "stream '%s': its tail function has returned; it is called again after the interval", source.name
            )
        if source.tries.good():
            logger.info("stream '%s': goes on", source.name)
        source.tries.error = error
        with self._changed:
            # Where a part fails, rows behind it come again and again: they are no reason to hurry.
            source.due = self._next_round(source, now, began, hurries=new_rows and error is None)
            source.told = False

    def _next_round(self, source: Source, now: float, began: float, *, hurries: bool) -> float | None:
        most, polled = self._settings.tail_max_rounds, not source.pushes
        if source.gone:
            return None
        if most is not None and source.rounds >= most:
            return None
        if source.full and polled and not source.told:
            asked = math.inf if source.planned.spec.wake is not None else None
            return asked if source.age_seconds is None else max(now, began + source.age_seconds)
        if source.told:
            return max(now, began + _MOST_OFTEN_SECONDS)
        return now if self._settings.tail_drain and hurries and polled else now + source.interval_seconds

    def failed(self, source: Source, error: BaseException, now: float) -> Literal["waits", "forgets", "given up"]:
        """A round failed: its stream waits alone; or it forgets its bookmark, once, and begins anew; or it has failed
        for good."""
        tries, most = source.tries, self._settings.tail_max_rounds
        again = tries.failed(error)
        if not again and self._settings.tail_full_table_on_failure and not tries.began_anew:
            tries.failures, tries.began_anew = 0, True
            logger.warning(
                "stream '%s': failed too often; it forgets its bookmark and begins anew (tail_full_table_on_failure)",
                source.name,
            )
            source.memory.forget()
            source.due = now
            return "forgets"
        told = logs.in_one_line(error, source.name)
        if not again:
            tries.for_good, source.due = True, None
            logger.critical(
                "stream '%s': has failed for good, after %d failures in a row: %s", source.name, tries.failures, told
            )
            return "given up"
        source.due = None if source.gone or (most is not None and source.rounds >= most) else now + tries.wait
        of = "" if self._settings.tail_max_retries is None else f" of {self._settings.tail_max_retries}"
        logger.warning(
            "stream '%s': failure %d%s in a row, tried again in %.1f s: %s",
            source.name,
            tries.failures,
            of,
            tries.wait,
            told,
        )
        return "waits"

    # ---- SIGHUP, and discovery while a tail runs -----------------------------------------------------------

    def hangup_waits_seconds(self, now: float) -> float:
        """For how long a SIGHUP is still put off; 0 or less: not at all. In its handler, so without a lock.

        What earlier ones have cut must have come to its end, or have had its time, twice as long after each cut: with a
        SIGHUP each second no full table would ever be whole.
        """
        cuts = max(self._discoveries_cut, *(one.cuts for one in tuple(self.sources.values()) if one.due is not None), 0)
        return self._anew + 2.0 ** (cuts - 1) - now if cuts else 0.0

    def begin_anew(self, now: float, cut: Iterable[str] = ()) -> None:
        """There is a new client: all is due at once, but full tables that have been read, and another discovery. Also
        what had failed for good. ``cut``: sources whose rounds are left behind."""
        self._anew = self._discover_at = now
        for name in cut:
            if name in self.sources:
                self.sources[name].cuts += 1
        for source in self.sources.values():
            if source.tries.for_good:
                source.tries, source.due = Tries(self._settings), now
            elif source.due is not None and (not source.full or source.tries.failures):
                source.due = min(source.due, now)  # who has waited longest is first

    def takes_discovery(self, now: float) -> bool:
        """Whether another discovery is due; it is up to whoever hears so."""
        with self._changed:
            if now < self._discover_at:
                return False
            every = self._settings.tail_rediscover_seconds
            self._discover_at = math.inf if every is None else now + every
            return True

    def discovered(self, *, cut: bool) -> None:
        """A discovery has ended. ``cut``: by a SIGHUP."""
        self._discoveries_cut = self._discoveries_cut + 1 if cut else 0

    def follow(self, plan: Iterable[PlannedRun], now: float) -> tuple[list[Source], set[str]] | None:
        """Read what is planned now. Gives the sources that are new, and the names of those whose round under way is to
        end; None where nothing is planned any more, which is taken for a failure."""
        found = {one.spec.tap_stream_id: one for one in plan}
        if self.sources and not found:
            logger.warning(
                "discovery found no stream that is wanted, which is taken for a failure: all stay as they are"
            )
            return None
        new, old = [], set()
        for name in [name for name in self.sources if name not in found]:
            logger.warning("stream '%s': is gone, by what was discovered; it is read no more", name)
            source = self.sources.pop(name)
            source.gone, source.due = True, None
            old.add(name)
        for name, planned in found.items():
            known = self.sources.get(name)
            if known is None:
                logger.info("stream '%s': is new, by what was discovered", name)
                self.sources[name] = Source(planned, self._settings, now)
                new.append(self.sources[name])
            elif known.planned.streams != planned.streams:
                logger.info("stream '%s': has changed, by what was discovered", name)
                known.follow(planned, self._settings, now)
                if not known.tries.for_good:
                    known.due = now
                if known.pushes:
                    old.add(name)  # it may stay connected for days
        return new, old


# ---- errors ------------------------------------------------------------------------------------------------


def is_connection(error: BaseException | None) -> bool:
    """Whether an error, or what it came from, says that a connection is lost: the client is then made anew.
    Clients have errors of their own for that; their names say so, or those of their bases."""
    seen = 0
    while error is not None and seen < 10:
        if isinstance(error, ConnectionError | TimeoutError | EOFError) or getattr(error, "errno", None) in _ERRNOS:
            return True
        if any(_CONNECTION.search(kind.__name__) for kind in type(error).__mro__):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False
