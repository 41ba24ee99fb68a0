"""Tail: a run that goes on for ever (tail-mode proposal).

Streams are polled again and again, each on its own interval, from the state in memory; tail functions stay connected.
One thread takes what is due first; there may be several. Where there are tail functions, the first runs on the main
thread, where a signal can interrupt it, and the polls in threads. Whoever is on the main thread sees to SIGHUP.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from burler.clock import Ticker
from burler.engine.run.stop import Reason, StopToken
from burler.engine.run.sync import Run, SyncResult
from burler.engine.run.workers import Crew
from burler.engine.tail.rediscovery import rediscover
from burler.engine.tail.retries import Tries
from burler.engine.tail.rounds import Rounds
from burler.engine.tail.sources import MOST_OFTEN_SECONDS, Source, next_due, planned_families, source_of
from burler.engine.tail.wake import wake_loop
from burler.events import ClientRenewed, TailEnded, Tick

logger = logging.getLogger(__name__)

_CLOSE_SECONDS = 2.0
_LONGEST_SECONDS = 3600.0  # of one wait
_PUSHED_SECONDS, _POLLED_SECONDS = 0.05, 0.2  # rows whose function blocks wait no longer
_SECOND = 1.0


def run_tail(engine: Run) -> SyncResult:
    """Run the streams of a plan until somebody stops it.

    Raises:
        errors of the sink and of the run as a whole.
    """
    tail = Tail(engine)
    result = engine.run(tail.run)
    tail.last_words(result)
    return result


class Tail:
    """Drives the streams of a plan until somebody stops it. ``stop`` ends with the client: at a SIGHUP, or with the
    run."""

    def __init__(self, engine: Run) -> None:
        self.engine = engine
        self._settings = engine.settings
        self._begun = self._anew = engine.clock.monotonic()
        self._discovered = self._begun
        self.stop = engine.stopper.until_hangup
        self.sources = {one.spec.tap_stream_id: source_of(one, self._settings, self._begun) for one in engine.plan.runs}
        self._crew = self._new_crew()
        self._told_late = self._told_put_off = False
        self._discoveries_cut = 0  # in a row, by SIGHUP
        self._left: list[str] = []  # streams whose functions are blocked at the end

    def _new_crew(self) -> Crew:
        return Crew(self.stop, name="burler-tail")

    @property
    def pushes(self) -> bool:
        """Whether any stream has a tail function."""
        return any(source.pushes for source in self.sources.values())

    # ---- the main thread -------------------------------------------------------------------------------

    def run(self, result: SyncResult) -> None:
        """Go on until the run is to end.

        Raises:
            errors of the sink and of the run as a whole.
        """
        self._rounds = Rounds(self.engine, result)
        with ExitStack() as stack:
            for ticker in self._tickers():
                stack.enter_context(self.engine.clock.ticking(ticker))
            shown = Ticker(lambda: self.engine.events.tell(Tick()), _SECOND)
            # Whoever reads stderr may be slow: nobody waits for what is shown.
            stack.enter_context(self.engine.clock.ticking(shown, finishes=False))
            self._run(result)
        with self.engine.lock:
            if self.engine.stop.error is None:
                self.engine.write_state()

    def _run(self, result: SyncResult) -> None:
        engine = self.engine
        engine.stopper.may_hang_up = lambda: self._hangup_waits_seconds() <= 0
        engine.events.tell(planned_families(self.sources.values()))
        if self._nothing_left():
            engine.stopper.end()
        while not self._ended():
            mine = self._start_threads()
            mine()
            self._wait_for_others()
            if self.stop.reason == Reason.CUT:
                self._begin_anew()
        self._close(result)

    def _start_threads(self) -> Callable[[], None]:
        """Start a thread for each source that pushes and for those that poll; gives what this thread has to do."""
        stop = self.stop
        sources = list(self.sources.values())
        loops: list[Callable[[], None]] = [
            partial(self._push, one, stop) for one in sources if one.pushes and not one.tries.for_good
        ]
        if any(not one.pushes for one in sources) or self._settings.tail_rediscover_seconds is not None:
            loops += [partial(self._poll, stop) for _ in range(self._settings.workers)]
        for source in sources:
            if source.planned.spec.wake is not None:
                self._crew.start(partial(self._guarded, partial(wake_loop, self, source, stop)))
        for loop in loops[1:]:
            self._crew.start(partial(self._guarded, loop))
        return loops[0] if loops else lambda: None

    def _guarded(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except BaseException as error:
            self.engine.stopper.fail(error)

    def _wait_for_others(self) -> None:
        """This thread has nothing to do any more; others have."""
        engine = self.engine
        with engine.changed:
            while not self.stop.reason:
                engine.clock.wait(engine.changed, 1.0)

    def _ended(self) -> bool:
        return self.engine.stopper.requested

    def _hangup_waits_seconds(self) -> float:
        """For how long a SIGHUP is still put off; 0 or less: not at all. In its handler, so without a lock.

        What earlier ones have cut must have come to its end, or have had its time, twice as long after each cut: with a
        SIGHUP each second no full table would ever be whole.
        """
        cuts = max(self._discoveries_cut, *(one.cuts for one in tuple(self.sources.values()) if one.due is not None), 0)
        return self._anew + 2.0 ** (cuts - 1) - self.engine.clock.monotonic() if cuts else 0.0

    def _begin_anew(self) -> None:
        """SIGHUP: what runs comes to its end or is left behind, then all begins anew with a new client."""
        engine = self.engine
        logger.info("SIGHUP: the client is made anew, streams are polled at once (full tables when they are due)")
        if not self._crew.wait():
            with engine.lock:
                for run in list(engine.running):
                    run.abandon()
                    if not run.pushes and run.name in self.sources:
                        self.sources[run.name].cuts += 1
        self.stop.stop(Reason.LEFT_BEHIND)
        # One that comes from here on may find a client that is older than itself.
        self.stop = engine.stopper.until_hangup = engine.stopper.stop.child()
        self._crew = self._new_crew()
        engine.session.renew_client()
        self._wait_for(engine.session.clients.close_old())
        self._anew, self._told_put_off = engine.clock.monotonic(), False
        rediscover(engine, self.sources, lambda _new: None, stop=self.stop)  # all threads begin behind this
        self._discoveries_cut = self._discoveries_cut + 1 if self.stop.reason == Reason.CUT else 0
        now = engine.clock.monotonic()
        for source in self.sources.values():
            source.busy = False
            if source.tries.for_good:
                source.tries, source.due = Tries(self._settings), now
            elif source.due is not None and (not source.full or source.tries.failures):
                source.due = min(source.due, now)  # who has waited longest is first
        engine.events.tell(ClientRenewed())

    def _see_to_hangup(self) -> None:
        """One that was put off."""
        stopper = self.engine.stopper
        if stopper.put_off and (seconds := self._hangup_waits_seconds()) <= 0:
            stopper.hang_up()
        elif stopper.put_off and not self._told_put_off:
            self._told_put_off = True
            logger.info("SIGHUP: waits for streams that the last one has cut, %.1f s at the most", seconds)

    def _wait_for(self, closing: threading.Thread | None) -> None:
        """The old client is closed before the new one is made: a source may allow but one. Not for long."""
        clock, deadline = self.engine.clock, self.engine.clock.monotonic() + _CLOSE_SECONDS
        while closing is not None and closing.is_alive() and not self._ended() and clock.monotonic() < deadline:
            closing.join(0.05)

    def _close(self, result: SyncResult) -> None:
        engine = self.engine
        engine.tell()
        if not self._crew.wait():
            with engine.lock:
                for run in list(engine.running):
                    self._left.append(run.name)
                    run.abandon()
        for source in self.sources.values():
            error = source.tries.error
            if error is not None and (source.tries.for_good or engine.stopper.signal is None):
                result.errors.setdefault(source.name, error)

    def last_words(self, result: SyncResult) -> None:
        """What is to be told at the end, once everything is out."""
        failing = {
            one.name: one.tries.failures
            for one in self.sources.values()
            if one.tries.failures and one.name not in result.errors
        }
        self.engine.events.tell(TailEnded(tuple(self._left), failing))

    # ---- polled streams --------------------------------------------------------------------------------

    def _poll(self, stop: StopToken) -> None:
        """Take what is due first, again and again."""
        while (source := self._next(stop)) is not None:
            try:
                self._rounds.run(source, source.planned, stop)
            finally:
                with self.engine.changed:
                    if stop.reason != Reason.LEFT_BEHIND:
                        source.busy = False
                    self.engine.changed.notify_all()

    def _next(self, stop: StopToken) -> Source | None:
        """The next source that is due, once it is; None where this thread has to end."""
        engine = self.engine
        with engine.changed:
            while not stop.reason:
                now = engine.clock.monotonic()
                if self._is_discovery_due(now):
                    self._discovered = now
                    engine.changed.release()
                    try:
                        self._rediscover()
                    finally:
                        engine.changed.acquire()
                    continue
                source = next_due(self.sources.values())
                if source is not None and source.due is not None and source.due <= now:
                    self._warn_if_late(source, now - max(source.due, self._anew))
                    source.busy, source.told, source.began = True, False, now
                    source.rounds += 1
                    return source
                if source is None and self._nothing_left():
                    if self._settings.tail_max_rounds is None:
                        logger.warning("tail: no stream is to be read any more, so the run ends")
                    engine.stopper.end()
                    return None
                self._wait(now, source.due if source is not None else None)
        return None

    def _wait(self, now: float, due: float | None) -> None:
        """Until something is due: a poll, a discovery."""
        moments = [due]
        if self._settings.tail_rediscover_seconds is not None:
            moments.append(self._discovered + self._settings.tail_rediscover_seconds)
        known = [moment for moment in moments if moment is not None]
        wait = min(max(0.0, min(known) - now), _LONGEST_SECONDS) if known else 60.0
        self.engine.clock.wait(self.engine.changed, wait)

    def _warn_if_late(self, source: Source, late_seconds: float) -> None:
        if not self._told_late and self._settings.workers == 1 and late_seconds > max(60, 2 * source.interval_seconds):
            self._told_late = True
            logger.warning(
                "stream '%s': is polled %.0f s late, since other streams took so long; 'workers' polls several streams "
                "at a time",
                source.name,
                late_seconds,
            )

    def _nothing_left(self) -> bool:
        """Whether no stream will be read any more, and none can be found any more."""
        finds_more = self._settings.tail_rediscover_seconds is not None and self._settings.tail_max_rounds is None
        return not finds_more and not any(one.busy or one.due is not None for one in self.sources.values())

    # ---- pushing streams -------------------------------------------------------------------------------

    def _push(self, source: Source, stop: StopToken) -> None:
        """Batch first, then stream, again and again: whenever the connection is lost, the batch catches up."""
        spec = source.planned.spec
        most = self._settings.tail_max_rounds
        while not stop.reason and source.due is not None and not source.gone:
            self._sleep_until(source.due, stop)
            if stop.reason or source.gone:
                return
            source.rounds += 1
            good = spec.sync is None or spec.overlap or self._rounds.run(source, source.planned, stop)
            if good and not stop.reason and not source.gone:
                self._rounds.run(source, source.planned.pushing(), stop)
            if most is not None and source.rounds >= most:
                source.due = None
        with self.engine.changed:
            if self._nothing_left():
                self.engine.stopper.end()
            self.engine.changed.notify_all()

    def _sleep_until(self, moment: float, stop: StopToken) -> None:
        engine = self.engine
        engine.pause(moment - engine.clock.monotonic(), lambda: bool(stop.reason))

    # ---- from other threads ----------------------------------------------------------------------------

    def poll_now(self, source: Source) -> None:
        """Somebody knows that there may be something new."""
        with self.engine.changed:
            source.told = True
            if not source.busy and source.due is not None and not source.tries.failures:
                at = max(self.engine.clock.monotonic(), source.began + MOST_OFTEN_SECONDS)
                source.due = min(source.due, at)
            self.engine.changed.notify_all()

    # ---- what is due by time -----------------------------------------------------------------------------

    def _tickers(self) -> tuple[Ticker, ...]:
        age = self._settings.page_max_age_seconds
        often = min(age, _PUSHED_SECONDS if self.pushes else _POLLED_SECONDS)
        look = partial(self.engine.beside, self._look)
        return Ticker(self._hand_on_if_due, often, self._due), Ticker(look, min(age, _SECOND))

    def _due(self) -> float | None:
        """When a STATE or the end comes at the latest."""
        most = self._settings.tail_max_seconds
        end = None if most is None else self._begun + most
        return min((moment for moment in (self._state_due(), end) if moment is not None), default=None)

    def _state_due(self) -> float | None:
        """None where there is nothing that no STATE covers."""
        since = self.engine.ledger.uncovered_since
        return None if since is None else since + self._settings.state_message_min_interval_ms / 1000

    def _hand_on_if_due(self) -> None:
        engine, due = self.engine, self._due()
        if engine.running or engine.stopper.put_off or (due is not None and due <= engine.clock.monotonic()):
            engine.beside(self._hand_on)
        if self.stop.reason:
            engine.tell()  # off the main thread no watchdog does

    def _hand_on(self) -> None:
        """Rows of functions that block go out, a STATE that is due comes, and the end, and a SIGHUP that was put
        off."""
        engine = self.engine
        for run in list(engine.running):
            run.tick()
        if engine.running:
            engine.sink.flush()
        self._see_to_hangup()
        now, due, most = engine.clock.monotonic(), self._state_due(), self._settings.tail_max_seconds
        if due is not None and now >= due:
            engine.write_state()
        if most is not None and now - self._begun >= most:
            engine.stopper.end()

    def _look(self) -> None:
        """What is looked at each second."""
        engine = self.engine
        engine.session.save_config()
        engine.acknowledgements.tick()
        self._cut_behind(engine.clock.monotonic())
        used = {number for run in engine.running for number in tuple(run.client_numbers)}
        engine.session.clients.close_old(keep=used)
        engine.sink.tick()

    def _cut_behind(self, now: float) -> None:
        """A call of a tail function of which a part has failed ends after the interval: its bookmark stands still, and
        nobody would try that part again."""
        for run in self.engine.running:
            if not run.pushes or not run.failures or run.stop.reason:
                continue
            source = self.sources.get(run.name)
            run.behind_since = now if run.behind_since is None else run.behind_since
            if source is not None and now - run.behind_since >= source.interval_seconds:
                run.cut_now()

    # ---- discovery -------------------------------------------------------------------------------------

    def _is_discovery_due(self, now: float) -> bool:
        every = self._settings.tail_rediscover_seconds
        return every is not None and now - self._discovered >= every

    def _rediscover(self) -> None:
        rediscover(self.engine, self.sources, self._start, stop=self.stop)

    def _start(self, source: Source) -> None:
        """A source is new: what it needs of threads of its own begins."""
        if source.pushes:
            self._crew.start(partial(self._guarded, partial(self._push, source, self.stop)))
        if source.planned.spec.wake is not None:
            self._crew.start(partial(self._guarded, partial(wake_loop, self, source, self.stop)))
