"""How often a source is asked: limits that all threads of a client share."""

from __future__ import annotations

import collections
import threading

from burler.clock import Clock
from burler.http.origins import Origin

_WINDOW_SECONDS = 60.0
_MOST_BOOKS = 100  # of servers that redirects led to, and that nobody waits for any more
_NEVER = float("-inf")


class TooLong(Exception):
    """The source takes no more requests for longer than this one may wait."""

    def __init__(self, seconds: float, why: str) -> None:
        super().__init__(why)
        self.seconds = seconds
        self.why = why


class _Turn:
    """The time at which a request may begin."""

    __slots__ = ("at", "begun")

    def __init__(self, at: float) -> None:
        self.at = at
        self.begun = False


class _Book:
    """The turns at one server, in order: those of the last minute, and those that somebody waits for."""

    def __init__(self, gap_seconds: float, per_minute: int | None) -> None:
        self._gap = gap_seconds
        self._per_minute = per_minute
        self._matters_seconds = max(gap_seconds, _WINDOW_SECONDS if per_minute else 0.0)  # a turn, to later ones
        self._turns: collections.deque[_Turn] = collections.deque()
        self.paused_until = _NEVER
        self.why = ""

    def take(self, now: float) -> _Turn:
        """The next turn that nobody has."""
        while self._turns and self._turns[0].begun and self._turns[0].at + self._matters_seconds <= now:
            self._turns.popleft()
        turn = _Turn(self._earliest(len(self._turns), now))
        if self._gap or self._per_minute:
            self._turns.append(turn)
        return turn

    def give_back(self, turn: _Turn) -> None:
        """Nobody waits for a turn any more."""
        if turn in self._turns:
            self._turns.remove(turn)

    def pause(self, until: float, why: str) -> None:
        """Nobody begins before a time. Whoever waits for a turn keeps the place in the row: with turns given anew,
        those who come often would overtake for ever."""
        if until <= self.paused_until:
            return
        self.paused_until, self.why = until, why
        for place, turn in enumerate(self._turns):
            if not turn.begun:
                turn.at = self._earliest(place, max(turn.at, until))

    def is_idle(self, now: float) -> bool:
        """Whether it can be forgotten."""
        over = all(turn.begun and turn.at + self._matters_seconds <= now for turn in self._turns)
        return over and self.paused_until <= now

    def _earliest(self, place: int, at: float) -> float:
        """The time from ``at`` on at which the turn at a place of the row may be."""
        if place:
            at = max(at, self._turns[place - 1].at + self._gap)
        if self._per_minute and place >= self._per_minute:
            at = max(at, self._turns[place - self._per_minute].at + _WINDOW_SECONDS)
        return at


class Limiter:
    """Says when the next request may begin; each server (scheme, host, port) has limits of its own.

    ``per_second`` spaces requests evenly; ``per_minute`` lets them go as they come, but never more than so many in any
    60 seconds; one that is not whole, such as 1.5, spaces them evenly, too. ``pause`` is what the server itself asks
    for. The lock is held for arithmetic alone, not while waiting.
    """

    def __init__(self, per_second: float | None = None, per_minute: float | None = None) -> None:
        self._lock = threading.Lock()
        self._gap = 1 / per_second if per_second else 0.0
        whole = None if per_minute is None else int(per_minute)
        if per_minute is not None and whole != per_minute:  # a window holds no part of a request
            self._gap, whole = max(self._gap, _WINDOW_SECONDS / per_minute), None
        self._per_minute = whole
        self._books: dict[Origin | None, _Book] = {}

    def pause(self, seconds: float, why: str, clock: Clock, origin: Origin | None = None) -> float:
        """No request of any thread to a server begins for so long; a pause that ends later stays. Gives the time of
        its end, for ``wait``."""
        with self._lock:
            now = clock.monotonic()
            self._book(origin, now).pause(now + seconds, why)
            return now + seconds

    def wait(self, clock: Clock, most_seconds: float, passed: float = _NEVER, origin: Origin | None = None) -> float:
        """Wait until a request may begin; gives the seconds that the server's own pauses took.

        Args:
            most_seconds: so long it may wait for the server's pauses; the author's own limits are not counted.
            passed: pauses that end up to this time have been waited for already.

        Raises:
            TooLong: the server asks for more.
        """
        mine: list[tuple[_Book, _Turn]] = []
        try:
            return self._wait(clock, most_seconds, passed, origin, mine)
        except BaseException:  # also the signal that ends the run
            with self._lock:
                for book, turn in mine:
                    book.give_back(turn)
            raise

    def _wait(
        self,
        clock: Clock,
        most_seconds: float,
        passed: float,
        origin: Origin | None,
        mine: list[tuple[_Book, _Turn]],
    ) -> float:
        paused, waited_for = 0.0, _NEVER
        while True:
            with self._lock:
                now = clock.monotonic()
                book = mine[0][0] if mine else self._book(origin, now)
                until, why = book.paused_until, book.why
                free = until <= max(now, passed)
                if free:
                    if not mine:
                        mine.append((book, book.take(now)))
                    turn = mine[0][1]
                    at = turn.at
                    if at <= max(now, waited_for):  # a clock of a test may stand still
                        turn.begun = True
                        return paused
            if free:
                clock.pause(at - now)
                waited_for = at
                continue
            if paused + until - now > most_seconds:
                raise TooLong(until - now, why)
            clock.pause(until - now)
            paused += until - now
            passed = until

    def _book(self, origin: Origin | None, now: float) -> _Book:
        """What is known of a server; under the lock."""
        book = self._books.get(origin)
        if book is None:
            if len(self._books) >= _MOST_BOOKS:
                self._books = {key: one for key, one in self._books.items() if not one.is_idle(now)}
            book = self._books[origin] = _Book(self._gap, self._per_minute)
        return book
