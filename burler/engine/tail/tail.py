"""A run that goes on for ever.

Streams are polled again and again, each on its own interval, from the state in memory; tail functions stay connected.
One thread takes what is due first; there may be several. Where there are tail functions, the first runs on the main
thread, where a signal can interrupt it, and the polls in threads. At a SIGHUP another ``Tail`` begins, with a new
client; the schedule goes on.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable
from functools import partial

from burler import logs
from burler.clock import Ticker
from burler.context import Call, Channel, call_bound
from burler.declare.spec import UserFunction
from burler.engine.catalog.plan import PlannedRun
from burler.engine.run.job import Job
from burler.engine.run.run import Run
from burler.engine.run.signals import Reason, Stop, StopToken
from burler.engine.run.sync import Crew, SyncResult, sync, sync_family
from burler.engine.tail.schedule import Schedule, Source, Tries, is_connection
from burler.errors import PartialError
from burler.events import ClientRenewed, RoundEnded, Status, TailEnded, Tick

logger = logging.getLogger(__name__)

_CLOSE_SECONDS = 2.0  # for the client before, at a SIGHUP
_LONG_SECONDS = 60.0  # a connection that held so long was a good one
_PUSHED_SECONDS, _POLLED_SECONDS = 0.05, 0.2  # rows whose function blocks wait no longer
_SECOND = 1.0
_END = object()


def run_tail(run: Run) -> SyncResult:
    """Run the streams of a plan until somebody stops it.

    Raises:
        errors of the sink and of the run as a whole.
    """
    tails = _Tails(run)
    result = sync(run, tails.run)
    tails.last_words(result)
    return result


class _Tails:
    """One tail after the other, each with a client of its own; and what is due by time in all of them."""

    def __init__(self, run: Run) -> None:
        self._run, self._settings, self._now = run, run.settings, run.clock.monotonic
        begun, most = self._now(), run.settings.tail_max_seconds
        self._schedule = Schedule(run.plan.runs, run.settings, run.changed, begun)
        self._ends_at = None if most is None else begun + most
        self._until_hangup = run.stopper.stop.child()
        self._told_put_off = False
        self._left: list[Job] = []  # what is blocked at the end

    def run(self, result: SyncResult) -> None:
        """Go on until the run is to end.

        Raises:
            errors of the sink and of the run as a whole.
        """
        run, schedule, stopper = self._run, self._schedule, self._run.stopper
        run.events.tell(schedule.planned)
        if schedule.is_over():
            stopper.end()
        with contextlib.ExitStack() as stack:
            for ticker in self._tickers():
                stack.enter_context(run.clock.ticking(ticker))
            stopper.on_hangup = self._hang_up
            self._hang_up()
            while not stopper.requested:
                self._left = Tail(run, schedule, result, self._until_hangup).run()
                if not stopper.requested:
                    self._renew_client()
        for source in schedule.sources.values():
            if (error := source.tries.error) is not None and (source.tries.for_good or stopper.signal is None):
                result.errors.setdefault(source.name, error)
        with run.lock:
            if run.stop.error is None:
                run.write_state()  # before anything is said: whoever reads stderr may be slow

    def last_words(self, result: SyncResult) -> None:
        """What is to be told at the end, once everything is out."""
        failing = {
            one.name: one.tries.failures
            for one in self._schedule.sources.values()
            if one.tries.failures and one.name not in result.errors
        }
        self._run.events.tell(TailEnded(tuple(one.name for one in self._left), failing))

    # ---- SIGHUP ------------------------------------------------------------------------------------------

    def _renew_client(self) -> None:
        """The old client is closed before the new one is made: a source may allow but one. Not for long."""
        run = self._run
        logger.info("SIGHUP: the client is made anew, streams are polled at once (full tables when they are due)")
        # One that comes from here on may find a client that is older than itself.
        self._until_hangup = run.stopper.stop.child()
        run.session.renew_client()
        closing, deadline = run.session.clients.close_old(), self._now() + _CLOSE_SECONDS
        while closing is not None and closing.is_alive() and not run.stopper.requested and self._now() < deadline:
            closing.join(0.05)
        self._told_put_off = False
        self._schedule.begin_anew(self._now(), cut=[one.name for one in self._left if not one.pushes])
        self._left = []
        run.events.tell(ClientRenewed())

    def _hang_up(self) -> None:
        """Whether a SIGHUP has come, and it is time for it. Called by its handler, too, so without a lock."""
        stopper = self._run.stopper
        if stopper.hung_up and self._schedule.hangup_waits_seconds(self._now()) <= 0:
            stopper.hung_up = False
            self._until_hangup.stop(Reason.CUT)
            stopper.look()

    # ---- what is due by time -----------------------------------------------------------------------------

    def _tickers(self) -> tuple[Ticker, ...]:
        age = self._settings.page_max_age_seconds
        pushes = any(source.pushes for source in self._schedule.sources.values())
        return (
            Ticker(self._hand_on_if_due, min(age, _PUSHED_SECONDS if pushes else _POLLED_SECONDS), self._due),
            Ticker(partial(self._run.beside, self._look), min(age, _SECOND)),
            # Whoever reads stderr may be slow.
            Ticker(lambda: self._run.events.tell(Tick()), _SECOND, finishes=False),
        )

    def _due(self) -> float | None:
        """When a STATE or the end comes at the latest."""
        return min((moment for moment in (self._state_due(), self._ends_at) if moment is not None), default=None)

    def _state_due(self) -> float | None:
        """None where there is nothing that no STATE covers."""
        since = self._run.ledger.uncovered_since
        return None if since is None else since + self._settings.state_message_min_interval_ms / 1000

    def _hand_on_if_due(self) -> None:
        run, due = self._run, self._due()
        self._hang_up()
        if run.jobs or run.stopper.hung_up or (due is not None and due <= self._now()):
            run.beside(self._hand_on)
        if self._until_hangup.reason:
            run.tell()  # off the main thread no watchdog does

    def _hand_on(self) -> None:
        """Rows of functions that block go out; a STATE comes, or the end."""
        run = self._run
        for one in list(run.jobs):
            one.tick()
        if run.jobs:
            run.sink.flush()
        now, due = self._now(), self._state_due()
        if run.stopper.hung_up and not self._told_put_off:
            self._told_put_off = True
            seconds = self._schedule.hangup_waits_seconds(now)
            logger.info("SIGHUP: waits for streams that the last one has cut, %.1f s at the most", seconds)
        if due is not None and now >= due:
            run.write_state()
        if self._ends_at is not None and now >= self._ends_at:
            run.stopper.end()

    def _look(self) -> None:
        """What is looked at each second."""
        run = self._run
        run.session.save_config()
        run.acknowledgements.tick()
        self._cut_behind()
        used = {number for one in run.jobs for number in tuple(one.client_numbers)}
        run.session.clients.close_old(keep=used)
        run.sink.tick()

    def _cut_behind(self) -> None:
        """A call of a tail function of which a part has failed ends after the interval: its bookmark stands still, and
        nobody would try that part again."""
        now = self._now()
        for one in self._run.jobs:
            if not one.pushes or not one.failures or one.stop.reason:
                continue
            source = self._schedule.sources.get(one.name)
            one.behind_since = now if one.behind_since is None else one.behind_since
            if source is not None and now - one.behind_since >= source.interval_seconds:
                one.cut()


class Tail:
    """What is read until the next SIGHUP: threads that poll, push and listen, until the token ends."""

    def __init__(self, run: Run, schedule: Schedule, result: SyncResult, stop: StopToken) -> None:
        self._run, self._schedule, self._result, self._stop = run, schedule, result, stop
        self._settings, self._now = run.settings, run.clock.monotonic
        self._crew = Crew(run.stopper, stop, name="burler-tail")
        self._busy: set[Source] = set()  # polled just now

    def run(self) -> list[Job]:
        """Go on until the end; gives what does not come to its end, and is left behind.

        Raises:
            errors of the sink and of the run as a whole.
        """
        run = self._run
        if self._schedule.takes_discovery(self._now()):
            self._rediscover()
        sources = list(self._schedule.sources.values())
        loops: list[Callable[[], None]] = [
            partial(self._serve, one) for one in sources if one.pushes and not one.tries.for_good
        ]
        if any(not one.pushes for one in sources) or self._settings.tail_rediscover_seconds is not None:
            loops += [self._serve] * self._settings.workers
        for source in sources:
            self._listen_to(source)
        for loop in loops[1:]:
            self._crew.start(loop)
        if loops:
            loops[0]()
        with run.changed:
            while not self._stop.reason:  # others have something to do
                run.clock.wait(run.changed, _SECOND)
        run.tell()
        left = []
        if not self._crew.wait():
            with run.lock:
                left = list(run.jobs)
                for one in left:
                    one.abandon()
        self._stop.stop(Reason.LEFT_BEHIND)
        return left

    # ---- what is due -----------------------------------------------------------------------------------

    def _serve(self, own: Source | None = None) -> None:
        """Read what is due first, again and again, of all that are polled; or ``own``, which pushes, in a thread of its
        own."""
        while not self._stop.reason and (own is None or own.goes_on):
            if own is None and self._schedule.takes_discovery(self._now()):
                for new in self._rediscover():
                    self._listen_to(new)
                    if new.pushes:
                        self._crew.start(partial(self._serve, new))
            elif (source := self._take(own)) is not None:
                try:
                    self._read(source)
                finally:
                    with self._run.changed:
                        self._busy.discard(source)
                        self._run.changed.notify_all()
        if self._schedule.is_over(self._busy):
            self._run.stopper.end()

    def _take(self, own: Source | None) -> Source | None:
        """The source that is due; None once something has changed, or it may be."""
        run, schedule = self._run, self._schedule
        with run.changed:
            now = self._now()
            source = schedule.take(now, self._busy, own)
            if source is None and schedule.is_over(self._busy):
                if self._settings.tail_max_rounds is None:
                    logger.warning("tail: no stream is to be read any more, so the run ends")
                run.stopper.end()
            elif source is None and not self._stop.reason:
                run.clock.wait(run.changed, schedule.seconds_until_due(now, self._busy, own))
            return source

    def _read(self, source: Source) -> None:
        """What is due of a source. Where it pushes: batch first, then stream; whenever the connection is lost, the
        batch catches up."""
        if not source.pushes:
            self._round(source, source.planned)
            return
        spec, most = source.planned.spec, self._settings.tail_max_rounds
        good = spec.sync is None or spec.overlap or self._round(source, source.planned)
        if good and not self._stop.reason and source.goes_on:
            self._round(source, source.planned.pushing)
        if most is not None and source.rounds >= most:
            source.due = None

    # ---- one round -------------------------------------------------------------------------------------

    def _round(self, source: Source, planned: PlannedRun) -> bool:
        """Read a source once; whether that went well."""
        run, began, pushed = self._run, self._now(), planned.pushes
        names = tuple(one.tap_stream_id for one in planned.streams)
        rows: dict[str, int] = {}
        errors: dict[str, BaseException] = {}
        before = self._place_of(names) if pushed else None
        job = sync_family(run, planned, rows, errors, source.memory, stop=self._stop)
        reason = (self._stop if job is None else job.stop).reason
        if reason == Reason.LEFT_BEHIND:
            return False  # all that there is to say of it was said then
        if job is None and not errors:  # a SIGHUP, or the end, came first: it was not read, and stays due
            source.rounds -= 1
            return False
        if job is not None and not pushed:
            source.cuts = source.cuts + 1 if reason == Reason.CUT and job.status != "succeeded" else 0
        now = self._now()
        with run.changed:
            for name, count in rows.items():
                self._result.rows[name] = self._result.rows.get(name, 0) + count
        error = errors.get(source.name) or next(iter(errors.values()), None)
        status: Status = "succeeded"
        # What follows a batch, or goes on in a tail function, would pass what is missing of it.
        fails = error is not None and (source.pushes or not isinstance(error, PartialError))
        if error is not None and fails and not run.stopper.requested:
            status = "failed"
            # It has come further, or was connected for long and had nothing to say: that is no failure in a row.
            if pushed and (self._place_of(names) != before or now - began > max(_LONG_SECONDS, source.tries.wait)):
                source.tries.failures = 0
            self._failed(source, error, now, frozenset() if job is None else frozenset(job.client_numbers))
        elif fails or (job is not None and job.status == "stopped"):
            status = "stopped"
            source.tries.error = error if fails else source.tries.error
        else:
            self._schedule.succeeded(
                source, pushed=pushed, began=began, now=now, error=error, new_rows=any(rows.values())
            )
        next_at = None if source.due == math.inf else source.due
        if status == "failed" and next_at is None and not source.tries.for_good:
            next_at = now + source.tries.wait  # but for the end of the run
        run.events.tell(RoundEnded(source.name, names, status, source.tries.failures, next_at))
        return status == "succeeded"

    def _place_of(self, names: tuple[str, ...]) -> bytes:
        with self._run.lock:
            return self._run.ledger.place_of(names)

    def _failed(self, source: Source, error: BaseException, now: float, numbers: frozenset[int]) -> None:
        """``numbers``: of the clients that it was given."""
        run = self._run
        if is_connection(error):
            run.session.renew_client(only=numbers)
        follows = self._schedule.failed(source, error, now)
        if follows == "forgets":
            with run.lock:
                run.ledger.forget([one.tap_stream_id for one in source.planned.streams])
        elif follows == "given up" and self._settings.tail_stop_on_failure:
            run.stopper.end()

    # ---- discovery -------------------------------------------------------------------------------------

    def _rediscover(self) -> list[Source]:
        """Ask once more; gives the sources that are new. What has changed begins with a new SCHEMA; where discovery
        fails, all stays as it is."""
        run, plan = self._run, None
        if run.replan is None:
            return []
        try:
            plan = run.stopper.run(run.replan, self._stop)
        except Stop:
            pass
        except Exception as error:
            logger.warning("discovery failed, the streams stay as they are: %s", logs.short(error))
        self._schedule.discovered(cut=self._stop.reason == Reason.CUT)
        if plan is None:
            return []
        with run.lock, run.changed:
            found = self._schedule.follow(plan.runs, self._now())
            if found is None:
                return []
            new, old = found
            run.plan = plan
            run.acknowledgements.follow(plan)
            for one in run.jobs:
                if one.name in old:
                    one.cut()
            run.events.tell(self._schedule.planned)
            run.changed.notify_all()
            return new

    # ---- wake functions: each thing that one yields makes its stream be polled at once -----------------

    def _listen_to(self, source: Source) -> None:
        if (function := source.planned.spec.wake) is not None:
            self._crew.start(partial(self._listen, source, function))

    def _listen(self, source: Source, function: UserFunction) -> None:
        """Run a stream's wake function, again and again. Where it fails, the polling interval is what is left, so it
        is tried again for ever."""
        tries = Tries(self._settings)
        while not self._stop.reason and source.due is not None:
            wait = source.interval_seconds
            try:
                self._listen_once(source, function, tries)
            except (Exception, SystemExit) as error:
                if self._stop.reason:
                    return
                tries.failed(error)
                wait, what = tries.wait, "its wake function failed; it is polled all the same"
                told = logs.short(error)
                logger.warning("stream '%s': %s, and listened to again in %.1f s: %s", source.name, what, wait, told)
            self._pause(wait)

    def _listen_once(self, source: Source, function: UserFunction, tries: Tries) -> None:
        session, clock = self._run.session, self._run.clock.beside
        begun, call = clock.monotonic(), Call(channel=_WakeChannel(self._pause, self._stop))
        with session.beside(source.name, call=call) as (stream, given):
            items = call_bound(stream, lambda: iter(session.invoke(function, given, stream=source.name)))
            with contextlib.closing(items):
                while not self._stop.reason and call_bound(stream, lambda: next(items, _END)) is not _END:
                    if clock.monotonic() - begun > source.interval_seconds:
                        tries.good()  # it was connected and has worked
                    self._schedule.wake(source, self._now(), self._busy)

    def _pause(self, seconds: float) -> None:
        """Let time pass beside the polls."""
        self._run.pause(seconds, lambda: bool(self._stop.reason), clock=self._run.clock.beside)


class _WakeChannel(Channel):
    """What ``stream`` offers in a wake function: whether to end, and a sleep that ends with it."""

    def __init__(self, pause: Callable[[float], None], stop: StopToken) -> None:
        self._pause, self._stop = pause, stop

    def stopping(self) -> bool:
        """Whether the function is to come to its end."""
        return bool(self._stop.reason)

    def wait(self, seconds: float) -> bool:
        """Sleep no longer than until then."""
        self._pause(seconds)
        return self.stopping()
