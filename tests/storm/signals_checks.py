"""What must hold of what came out of the processes of a story of the storm of signals."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from storm.harness import Late, messages_in, noted, position
from storm.signals_plan import Plan

STUCK_SECONDS = 10.0
"""After so long a run whose reader has stopped gives up."""


@dataclass
class Ran:
    """How a process went. ``ending``: of what it was told: "stopped", "killed", or "rest" for the one that goes on.

    ``cut``: the reader has lost a part of what came. ``rows``: what the source held in the end. ``own``: seconds from
    the signal to its end, without what reader and other programs took. ``behind``: bytes that came after the signal.
    ``inside``: a function of the tap was at work when it came. ``clients``: how many it made.
    """

    ending: str
    got: bytes
    code: int
    said: str
    rows: dict[str, int]
    cut: bool = False
    seconds: float = 0.0
    own: float = 0.0
    behind: int = 0
    inside: bool = False
    clients: int = 0


class Output:
    """The messages of one run that began from ``state``: rows and claims, place by place.

    Raises:
        AssertionError: a torn line (but where the last one may be ``torn``), a strange one, a row that is not what the
            source holds, a STATE that says more than what is out before it.
    """

    def __init__(self, got: bytes, made: Plan, state: Mapping[str, Any], *, torn: bool = False) -> None:
        self.plan = made
        self.state = state
        """What its last STATE says; what it began from, as long as there is none."""
        self.began = {place: self.covered(place) for place in made.places}
        self.rows: dict[str, list[int]] = {place: [] for place in made.places}
        self.schemas: list[str] = []
        self.uncovered = 0
        """Rows behind the last STATE."""
        self._next = {place: covered + 1 for place, covered in self.began.items()}  # the first that is not out
        self._early: dict[str, set[int]] = {place: set() for place in made.places}  # out, and behind a gap
        for message in messages_in(got, torn=torn):
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "RECORD":
            self._row(message["stream"], message["record"])
        elif kind == "STATE":
            self.uncovered = 0
            self.state = message["value"]
            for place in self.rows:
                covered = self.covered(place)
                assert covered < self._next[place], f"STATE is ahead: {place} {covered}, out up to {self._next[place]}"
        elif kind == "SCHEMA":
            self.schemas.append(message["stream"])
        else:
            raise AssertionError(f"a strange message: {str(message)[:200]}")

    def _row(self, stream: str, row: dict[str, Any]) -> None:
        place = f"{stream}-{row['part']}" if "part" in row else stream
        number = row["id"]
        assert row["text"] == f"{number:09}" * max(1, self.plan.size // 9), f"{place} {number}: its text"
        self.rows[place].append(number)
        self.uncovered += 1
        early = self._early[place]
        early.add(number)
        while self._next[place] in early:
            early.discard(self._next[place])
            self._next[place] += 1

    def covered(self, place: str) -> int:
        """Up to which row the state covers a place; -1: none."""
        done = noted(self.state, place)
        if self.plan.position and place.startswith("t"):
            return done
        covered = position(self.state, place)
        # In a sorted stream stream.state is never ahead of the bookmark; in others it may be ahead of its rows' order.
        assert self.plan.order == "none" or done <= covered, f"{place}: state {done}, bookmark {covered}"
        return covered

    def twice(self) -> int:
        """How many rows came more than once."""
        return sum(len(rows) - len(set(rows)) for rows in self.rows.values())

    def check_order(self) -> None:
        """Rows of a sorted place came one by one, none twice but where batch and stream overlap."""
        for place, rows in self.rows.items() if self.plan.order == "asc" else ():
            if self.plan.batch == "overlap" and place != "rows":
                rows = list(dict.fromkeys(rows))
            first = rows[0] if rows else 0
            assert first in (0, self.began[place], self.began[place] + 1), f"{place} begins at {first}"
            for before, row in pairwise(rows):
                assert row == before + 1, f"{place}: {row} after {before}"

    def check_last_state(self, *, all_covered: bool = True) -> None:
        """No row is behind the last STATE, and where rows are sorted it covers exactly those that are out."""
        assert not self.uncovered or not all_covered, f"no STATE behind the last {self.uncovered} rows"
        for place, rows in self.rows.items() if self.plan.order == "asc" else ():
            greatest = max(rows, default=self.began[place])
            lag = greatest - self.covered(place)
            # A position is said behind its row: the function may have been stopped between the two.
            assert 0 <= lag <= (1 if self.plan.position and place != "rows" else 0), (
                f"{place}: STATE covers {self.covered(place)}, out is {greatest}"
            )


class Check:
    """Holds the runs of a story against its plan.

    - SIGTERM, SIGINT, and a reader that is fast or slow: no torn line, the last STATE covers exactly the rows that are
      out (sorted streams), exit code 0, each ``finally`` has run, and in time: after a second and what the reader takes
      for what is on its way (two seconds more where functions are blocked in threads).
    - A reader that has stopped: it ends within 11 seconds, with 143 or 130; only its very last line may be torn.
    - SIGHUP: the run goes on with a new client; SIGTERM ends it as above.
    - The run that goes on from the last STATE that came through brings all that is missing, always.
    """

    def __init__(self, made: Plan, limit_seconds: float) -> None:
        self.plan, self._limit = made, limit_seconds
        self.state: Mapping[str, Any] = {}
        self.figures: Counter[str] = Counter()
        self._out: dict[str, set[int]] = {place: set() for place in made.places}
        self._rows: dict[str, int] = {}
        self._late: Late | None = None

    def take(self, ran: Ran) -> None:
        """See ``Check``."""
        made = self.plan
        if ran.ending == "rest":
            assert ran.code == 0, f"the run that goes on from {self.state} ended with {ran.code}"
            output = Output(ran.got, made, self.state)
            # In a plain run rows that only came again need no other STATE than the one that was given.
            output.check_last_state(all_covered=made.tail_at_rest)
        elif ran.ending == "killed":
            self.figures["kills"] += 1
            output = Output(ran.got, made, self.state, torn=True)
            output.check_order()
            assert "Traceback" not in ran.said, "a traceback"
        else:
            output = self._stopped(ran)
        assert "tried again" not in ran.said, "a stream has failed"
        for place, rows in output.rows.items():
            self.figures["rows"] += len(rows)
            self.figures["rows that came again"] += len(rows) - len(set(rows) - self._out[place])
            self._out[place] |= set(rows)
        self.figures["signals that met a function at work"] += ran.inside
        self.figures["torn last lines"] += not ran.cut and bool(ran.got) and not ran.got.endswith(b"\n")
        self.state, self._rows = output.state, ran.rows

    def _stopped(self, ran: Ran) -> Output:
        made = self.plan
        number = signal.SIGTERM if made.hangups else signal.Signals[made.signal]
        waits = made.reader == "stopped" and not made.hangups and not made.hiccup
        given_up = waits and ran.code in (143, 130)
        ended = not made.tail and not ran.inside  # such a run comes to its end, perhaps before the signal
        if given_up:
            assert ran.code == 128 + number, f"exit code {ran.code} after signal {number}"
        else:
            assert ran.code == 0 or (ended and ran.code in (-number, 130)), f"exit code {ran.code}"
        self.figures["given up, for nobody read" if given_up else "stopped in peace"] += 1
        if ran.code >= 0:
            assert "Traceback" not in ran.said, "a traceback"
            assert "CRITICAL" not in ran.said, "CRITICAL"
        output = Output(ran.got, made, self.state, torn=given_up)
        assert len(output.schemas) == len(set(output.schemas)), f"SCHEMA came twice: {output.schemas}"
        if made.order == "asc" and made.batch != "overlap":
            # What was read again because of SIGHUP: rows at the boundary of those rounds, no others.
            assert output.twice() <= made.hangups * len(made.places), f"{output.twice()} rows came again"
        if not made.hangups:
            output.check_order()
            assert ran.clients <= 1, f"{ran.clients} clients"
        if not given_up:
            output.check_last_state()
            if made.lanes == 1:
                assert ran.said.count("BEGIN") <= ran.said.count("FINALLY"), "its finally has not run"
        self._in_time(ran, given_up)
        return output

    def _in_time(self, ran: Ran, given_up: bool) -> None:
        made = self.plan
        if made.reader == "slow":
            assert ran.behind <= made.most_behind, f"{ran.behind} bytes came behind the signal"
        allowed, took = self._limit + (2.0 if made.blocks_workers else 0.0), ran.own
        if given_up:
            allowed, took = STUCK_SECONDS + self._limit, ran.seconds
        elif made.reader == "stopped" and not made.hangups and not made.hiccup:
            allowed = STUCK_SECONDS + self._limit
        else:
            self.figures["worst milliseconds to stop"] = round(ran.own * 1000)
            self.figures["worst kB behind a signal"] = ran.behind // 1000
        if took > allowed:
            self._late = Late(f"it took {took:.2f} s to stop ({ran.seconds:.2f} s with all that others took)")

    def finish(self) -> None:
        """See ``Check``."""
        lost = {place: sorted(set(range(count)) - self._out[place])[:5] for place, count in self._rows.items()}
        lost = {place: rows for place, rows in lost.items() if rows}
        assert not lost, f"lost: {lost}, gone on from {self.state}"
        if self._late is not None:
            raise self._late
