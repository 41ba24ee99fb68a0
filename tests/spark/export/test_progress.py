"""What a terminal shows while an export runs."""

from __future__ import annotations

import io
import time

from burler.spark.progress import line, live, shown


class Terminal(io.StringIO):
    """Takes itself for one."""

    def isatty(self) -> bool:
        return True


class Tracker:
    """Spark's status tracker, with one job of four tasks of which one has ended."""

    def getActiveJobsIds(self):
        return [7]

    def getJobInfo(self, job):
        return self

    def getStageInfo(self, stage):
        return self

    stageIds = (1,)
    numTasks = 4
    numCompletedTasks = 1


class Session:
    """A classic session, as far as progress looks at it."""

    def __init__(self):
        self.sparkContext = self

    def statusTracker(self):
        return Tracker()


def test_what_a_line_says():
    assert line("t/s", 1_000_000, 0.25, 3.2) == "t/s: 3 s, about 250,000 of 1,000,000 rows"
    assert line("t/s", 1_000_000, 0.0, 3.2) == "t/s: 3 s, 1,000,000 rows to read"
    assert line("t/s", None, 0.5, 61) == "t/s: 61 s, 50% of Spark's tasks"


def wait_for(terminal, words):
    deadline = time.monotonic() + 20
    while words not in terminal.getvalue() and time.monotonic() < deadline:
        time.sleep(0.02)
    return terminal.getvalue()


def test_a_terminal_shows_how_far_it_is_and_is_clean_afterwards():
    terminal = Terminal()
    with live(terminal), shown("t/s", 1000, Session()):
        said = wait_for(terminal, "rows")
    assert "about 250 of 1,000 rows" in said
    assert terminal.getvalue().endswith("\r\x1b[2K")


def test_without_spark_s_tracker_the_rows_are_told():
    terminal = Terminal()
    with live(terminal), shown("t/s", 1000, object()):
        said = wait_for(terminal, "rows")
    assert "1,000 rows to read" in said


def test_nothing_is_shown_elsewhere_than_on_a_terminal():
    file = io.StringIO()
    with live(file), shown("t/s", 1000):
        time.sleep(0.6)
    with shown("t/s", 1000):
        pass
    assert file.getvalue() == ""
