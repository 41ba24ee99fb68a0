"""Time and chance, as an argument: what waits for hours or by chance is tested with a clock that a test moves."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

LAST_SECONDS = 10.0
"""How long a run that has failed tries each of its last calls."""

_STEP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Ticker:
    """What is done again and again, also while everybody waits or is blocked.

    Attributes:
        tick: does it; raises nothing.
        seconds: between two ticks, at the most.
        due: when the next tick must not be late, by the clock's ``monotonic``; None: at no certain moment.
        finishes: a tick that is under way at the end is waited for.
    """

    tick: Callable[[], None]
    seconds: float
    due: Callable[[], float | None] = lambda: None
    finishes: bool = True


class Clock:
    """The machine's own clocks."""

    @property
    def beside(self) -> Clock:
        """The clock of threads whose waits are no waits of this one's: work of others goes by the time on the wall."""
        return self

    def now(self) -> dt.datetime:
        """The time of day, in UTC; it may be set back."""
        return dt.datetime.now(dt.UTC)

    def time(self) -> float:
        """The time of day as seconds since 1970."""
        return self.now().timestamp()

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back and stands still with the machine."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""
        time.sleep(seconds)

    def uniform(self, low: float, high: float) -> float:
        """A random number between two, for waits of several to differ."""
        return random.uniform(low, high)

    def pause(self, seconds: float) -> None:
        """Sleep. A signal ends it on the main thread; on others it is done in steps, so that it goes by the clock also
        where the machine slept."""
        if threading.current_thread() is threading.main_thread():
            if seconds > 0:
                self.sleep(seconds)
            return
        while seconds > 0:
            self.sleep(min(seconds, _STEP_SECONDS))
            seconds -= _STEP_SECONDS

    def wait(self, changed: threading.Condition, seconds: float | None) -> None:
        """Wait until somebody notifies, or so many seconds have passed; None: no limit. The condition is held."""
        changed.wait(seconds)

    @contextlib.contextmanager
    def ticking(self, ticker: Ticker) -> Iterator[None]:
        """While this is entered something ticks, in a thread of its own."""
        over = threading.Event()

        def work() -> None:
            while not over.wait(self._until_due(ticker)):
                ticker.tick()

        thread = threading.Thread(target=work, name="burler-timer", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            if ticker.finishes:
                thread.join()

    def _until_due(self, ticker: Ticker) -> float:
        due = ticker.due()
        return ticker.seconds if due is None else max(0.001, min(ticker.seconds, due - self.monotonic()))


class FunctionClock(Clock):
    """A clock of functions, as those who make a client or poll an export may give them."""

    def __init__(
        self,
        *,
        sleep: Callable[[float], object] = time.sleep,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sleep, self._now, self._monotonic = sleep, now, monotonic

    def now(self) -> dt.datetime:
        """See :class:`Clock`."""
        return dt.datetime.fromtimestamp(self._now(), dt.UTC)

    def time(self) -> float:
        """See :class:`Clock`."""
        return self._now()

    def monotonic(self) -> float:
        """See :class:`Clock`."""
        return self._monotonic()

    def sleep(self, seconds: float) -> None:
        """See :class:`Clock`."""
        self._sleep(seconds)


class FakeClock(Clock):
    """A clock that moves when somebody waits for it, and then at once: a day passes in seconds. Whoever moves it does
    what is due then.

    Args:
        start: the time of day it begins at; with a zone.
    """

    def __init__(self, start: dt.datetime = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)) -> None:
        self._start = start
        self._tickers: list[Ticker] = []
        self._ticks = threading.Lock()
        self._seconds = 0.0
        self.waits: list[float] = []
        """How long each wait was, in seconds."""

    @property
    def beside(self) -> Clock:
        """The machine's own: this one may leave it far behind."""
        return Clock()

    def now(self) -> dt.datetime:
        """The time of day."""
        return self._start + dt.timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        """Seconds since it began."""
        return self._seconds

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._seconds += seconds

    def sleep(self, seconds: float) -> None:
        """Time passes at once."""
        self.waits.append(seconds)
        self._seconds += seconds

    def wait(self, changed: threading.Condition, seconds: float | None) -> None:
        """Time passes at once, no further than to the next moment at which a ticker is due, and all tick. Without a
        limit there is nothing to wait for: nobody else moves this clock.

        Raises:
            RuntimeError: no limit.
        """
        if seconds is None:
            raise RuntimeError("a FakeClock can't wait without a limit: nothing would ever happen")
        moments = [due for ticker in tuple(self._tickers) if (due := ticker.due()) is not None]
        self.sleep(max(0.0, min([seconds, *(moment - self._seconds for moment in moments)])))
        changed.release()
        try:
            self._tick()
        finally:
            changed.acquire()

    def _tick(self) -> None:
        if not self._ticks.acquire(blocking=False):
            return  # another thread is at it
        try:
            for ticker in tuple(self._tickers):
                ticker.tick()
        finally:
            self._ticks.release()

    @contextlib.contextmanager
    def ticking(self, ticker: Ticker) -> Iterator[None]:
        """While this is entered something ticks whenever somebody waits."""
        self._tickers.append(ticker)
        try:
            yield
        finally:
            self._tickers.remove(ticker)


_here = threading.local()


@contextlib.contextmanager
def briefly(seconds: float) -> Iterator[None]:
    """Calls of a store that this thread makes meanwhile are tried no longer than that: what comes of them matters
    little."""
    before, _here.seconds = patience_left(), seconds
    try:
        yield
    finally:
        _here.seconds = before


def patience_left() -> float:
    """The longest that a call of this thread may be tried, in seconds; infinite unless ``briefly`` says otherwise."""
    return float(getattr(_here, "seconds", math.inf))
