"""Reports of runs that never were, for the tests of the report."""

from __future__ import annotations

import datetime as dt

from support.internals import run_report

START = dt.datetime(2024, 5, 1, 3, 0, tzinfo=dt.UTC)


class Clock:
    """Two clocks that stand still until they are moved."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> dt.datetime:
        return START + dt.timedelta(seconds=self.seconds - 1000)


def new_report(clock: Clock, **given: int) -> run_report.Report:
    """A report of tap-crm, which has begun."""
    made = run_report.Report(clock.now, clock.monotonic, **given)
    made.begin("tap-crm")
    return made


def ended(report: run_report.Report, stream: str, **given: object) -> None:
    """The last word on a stream; what is not given is nothing."""
    told = {"rows": 0, "updated": None, "skipped": 0, "seconds": 1.0, "bookmark_from": None, "bookmark_to": None}
    report.stream_ended(stream, **{"status": "succeeded", **told, **given})
