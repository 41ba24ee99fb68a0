"""Stories of the crash tests' source within one process, for the property tests: runs that are cut off, stopped or
broken at a place that is drawn, and gone on with."""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from burler.testing import TapRun, run_tap
from storm.crashclaims import Ledger
from storm.crashtaps import tap_of
from storm.crashworld import Line, Phase
from support.internals import signals

DEAR = settings(suppress_health_check=list(HealthCheck), max_examples=settings().max_examples // 3)
"""A third of the examples that others have: each of these is a story of many runs."""
WITHOUT = [("",), ("_kids",), ("_kids", "_grand"), ("_grand",), ("", "_kids")]


@dataclass(frozen=True)
class Run:
    """One run.

    ``cut``: after which share of its messages the reader is gone. ``stop_at``: at which step of the author's functions
    SIGTERM comes. ``share``: how many of them break. ``without``: which streams are not selected, by their endings.
    """

    grown: bool = False
    share: float = 0.0
    cut: float = 1.0
    stop_at: int | None = None
    workers: int = 1
    page: int = 1000
    buffer: int = 100
    nap: float = 0.0
    scope: str = "full"  # of its STATEs
    without: tuple[str, ...] = ()

    def config(self, number: int, phase: Phase) -> dict[str, Any]:
        return {
            "grown": phase.grown,
            "run": number,
            "share": self.share,
            "nap": self.nap,
            "partition_workers": self.workers,
            "page_max_rows": self.page,
            "parent_buffer_rows": self.buffer,
            "state_scope": self.scope,
        }


def runs(**fixed: Any) -> st.SearchStrategy[Run]:
    """Any run; ``fixed``: what is not drawn."""
    drawn = {
        "grown": st.booleans(),
        "share": st.sampled_from([0.0, 0.0, 0.1, 0.4]),
        "cut": st.just(1.0) | st.floats(0, 1),
        "stop_at": st.none() | st.integers(0, 60),
        "workers": st.sampled_from([1, 1, 2, 8]),
        "page": st.sampled_from([1, 2, 7, 1000]),
        "buffer": st.sampled_from([1, 2, 5, 100]),
        "scope": st.sampled_from(["full", "touched"]),
        "without": st.just(()) | st.sampled_from(WITHOUT),
    }
    return st.builds(Run, **{**drawn, **{name: st.just(one) for name, one in fixed.items()}})


PEACE = runs(share=0.0, cut=1.0, stop_at=None, without=())


class Told:
    """A line of streams, run by run."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.ledger = Ledger([line])
        self.phase = Phase()
        self.number = 0

    def run(self, run: Run) -> TapRun:
        """One run from where the last one left off, held against the source.

        Raises:
            AssertionError: see ``Ledger.run``.
        """
        if run.grown and self.phase.grown < 3:
            self.phase = Phase(self.phase.grown + 1)
        stopper, steps = signals.Stopper(), 0

        def step() -> None:
            nonlocal steps
            steps += 1
            due = run.stop_at is not None and steps > run.stop_at and not stopper.requested
            if due and threading.current_thread() is threading.main_thread():  # where handlers of signals run
                stopper.handle(signal.SIGTERM, None)

        tap = tap_of([self.line], step)
        config = run.config(self.number, self.phase)
        streams = self.line.streams
        # A position of the author's own would have to say which streams it is true of.
        keeps_all = self.line.position
        wanted = [one for one in streams if keeps_all or one.removeprefix(self.line.name) not in run.without]
        out = run_tap(tap, config, state=self.ledger.state or None, stopper=stopper, select=",".join(wanted or streams))
        self.number += 1
        self.ledger.scope = run.scope
        came = out.messages[: int(len(out.messages) * run.cut)]
        self.ledger.run(came, self.phase, all_selected=len(wanted) in (0, len(streams)))
        return out

    def finish(self, run: Run | None = None) -> TapRun:
        """A run in peace; then nothing may be missing.

        Raises:
            AssertionError: rows are missing, or a full table is not what the source has.
        """
        out = self.run(run or Run())
        assert not out.result.errors, out.result.errors
        missing = self.ledger.missing(self.phase)
        assert not missing, missing[:5]
        self.ledger.check_tables(self.phase)
        return out
