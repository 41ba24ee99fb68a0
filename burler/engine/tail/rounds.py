"""Rounds of a tail: one after the other of each source, and what follows from how each went."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from burler import logs
from burler.engine.catalog.plan import PlannedRun
from burler.engine.run.stop import Reason, StopToken
from burler.engine.run.stream import SyncRun
from burler.engine.tail.retries import is_connection
from burler.engine.tail.sources import MOST_OFTEN_SECONDS, Source
from burler.errors import BurlerError, PartialError
from burler.events import RoundEnded, Status

if TYPE_CHECKING:
    from burler.engine.run.sync import Run, SyncResult

logger = logging.getLogger(__name__)

_LONG_SECONDS = 60.0


class Rounds:
    """Runs rounds, in whichever thread asks for one."""

    def __init__(self, engine: Run, result: SyncResult) -> None:
        self._engine = engine
        self._result = result
        self._settings = engine.settings

    def run(self, source: Source, planned: PlannedRun, stop: StopToken) -> bool:
        """One round of a source; whether it was a good one. ``stop``: that of the thread."""
        engine = self._engine
        begun = engine.clock.monotonic()
        before = self._place_of(planned) if planned.pushes else b""
        rows: dict[str, int] = {}
        errors: dict[str, BaseException] = {}
        run = engine.run_one(planned, rows, errors, source.memory, stop=stop)
        reason = (stop if run is None else run.stop).reason
        if reason == Reason.LEFT_BEHIND:
            return False  # another one has begun in its place
        if run is not None and not run.pushes:
            source.cuts = source.cuts + 1 if reason == Reason.CUT and run.status != "succeeded" else 0
        seconds = engine.clock.monotonic() - begun
        with engine.changed:
            for name, count in rows.items():
                self._result.rows[name] = self._result.rows.get(name, 0) + count
        # It has come further, or was connected for long and had nothing to say.
        moved = planned.pushes and (
            self._place_of(planned) != before or seconds > max(_LONG_SECONDS, source.tries.wait)
        )
        status = self._settle(source, planned, run, rows, errors, began=begun, moved=moved)
        next_at = None if source.due == math.inf else source.due
        if status == "failed" and next_at is None and not source.tries.for_good:
            next_at = engine.clock.monotonic() + source.tries.wait  # but for the end of the run
        names = tuple(one.tap_stream_id for one in planned.streams)
        engine.events.tell(RoundEnded(source.name, names, status, source.tries.failures, next_at))
        return status == "succeeded"

    def _place_of(self, planned: PlannedRun) -> bytes:
        with self._engine.lock:
            return self._engine.ledger.place_of([one.tap_stream_id for one in planned.streams])

    def _settle(
        self,
        source: Source,
        planned: PlannedRun,
        run: SyncRun | None,
        rows: dict[str, int],
        errors: dict[str, BaseException],
        *,
        began: float,
        moved: bool,
    ) -> Status:
        """When the source is read next, and how the round went. ``moved``: a tail function has come further than where
        it began, so a failure of its is none in a row."""
        engine, now = self._engine, self._engine.clock.monotonic()
        whole = errors.get(source.name) or next(iter(errors.values()), None)
        # What follows a batch, or goes on in a tail function, would pass what is missing of it.
        partly = isinstance(whole, PartialError) and not source.pushes
        failed = None if partly else whole
        if failed is not None and engine.stopper.requested:
            source.tries.error = failed
            return "stopped"
        if failed is not None:
            if moved:
                source.tries.failures = 0
            self._failed(source, failed, now, frozenset() if run is None else frozenset(run.client_numbers))
            return "failed"
        if run is not None and run.status == "stopped":
            return "stopped"
        if source.pushes and not planned.pushes:
            return "succeeded"  # the batch before the stream: what counts is how that goes
        if planned.pushes and source.rounds == 1:
            logger.info(
                "stream '%s': its tail function has returned; it is called again after the interval", source.name
            )
        if source.tries.good():
            logger.info("stream '%s': goes on", source.name)
        source.tries.error = whole  # parts of it; the rest went well
        with engine.changed:
            # Where a part fails, rows behind it come again and again: they are no reason to hurry.
            source.due = self._next_round(source, now, began, new_rows=whole is None and any(rows.values()))
            source.told = False
        return "succeeded"

    def _next_round(self, source: Source, now: float, began: float, *, new_rows: bool) -> float | None:
        """When a source is read next after a good round."""
        most = self._settings.tail_max_rounds
        if source.gone or (most is not None and source.rounds >= most and not source.pushes):
            return None
        if source.pushes and most is not None and source.rounds >= most:
            return now  # its thread sees to it
        if source.full and not source.pushes and not source.told:
            asked = math.inf if source.planned.spec.wake is not None else None
            return asked if source.age_seconds is None else max(now, began + source.age_seconds)
        if source.told:
            return max(now, began + MOST_OFTEN_SECONDS)
        if self._settings.tail_drain and new_rows and not source.pushes:
            return now
        return now + source.interval_seconds

    def _failed(self, source: Source, error: BaseException, now: float, numbers: frozenset[int]) -> None:
        """It waits alone; or it has failed for good. ``numbers``: of the clients that it was given."""
        engine, tries = self._engine, source.tries
        wait = tries.failed(error)
        most = self._settings.tail_max_rounds
        if is_connection(error):
            engine.session.renew_client(only=numbers)
        if wait is None and tries.begin_anew():
            logger.warning(
                "stream '%s': failed too often; it forgets its bookmark and begins anew (tail_full_table_on_failure)",
                source.name,
            )
            with engine.lock:
                engine.ledger.forget([one.tap_stream_id for one in source.planned.streams])
            source.memory.forget()
            source.due = now
            return
        told = _told(source.name, error)
        if wait is None:
            tries.for_good, source.due = True, None
            logger.critical(
                "stream '%s': has failed for good, after %d failures in a row: %s", source.name, tries.failures, told
            )
            if self._settings.tail_stop_on_failure:
                engine.stopper.end()
            return
        source.due = now + wait
        if source.gone or (most is not None and source.rounds >= most):
            source.due = None
        of = "" if self._settings.tail_max_retries is None else f" of {self._settings.tail_max_retries}"
        logger.warning(
            "stream '%s': failure %d%s in a row, tried again in %.1f s: %s", source.name, tries.failures, of, wait, told
        )


def _told(stream: str, error: BaseException) -> str:
    """An error in one line, with the place in the author's code."""
    if isinstance(error, BurlerError):
        return " ".join(str(error).removeprefix(f"stream '{stream}'").lstrip(",: ").split())
    place = logs.place_of_error(error)
    return " ".join(f"{logs.short(error)}{f' ({place})' if place else ''}".split())
