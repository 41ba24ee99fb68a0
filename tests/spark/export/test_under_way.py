"""What is told of an export while it runs."""

from __future__ import annotations

import contextlib

from click.testing import CliRunner

from burler import spark
from support.internals import cli_main, under_way
from support.internals import cli_progress as module


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
    assert under_way.line("t/s", 1_000_000, 0.25) == "t/s: about 250,000 of 1,000,000 rows"
    assert under_way.line("t/s", 1_000_000, 0.0) == "t/s: 1,000,000 rows to read"
    assert under_way.line("t/s", None, 0.5) == "t/s: 50% of Spark's tasks"
    assert under_way.line("t/s", None, 0.0) == "t/s"


def test_it_is_told_while_a_stream_is_under_way():
    with under_way.noted("t/s", 1000, Session()):
        assert under_way.said() == "t/s: about 250 of 1,000 rows"
    assert under_way.said() == ""


def test_the_one_that_began_last_is_told():
    with under_way.noted("t/first", 5):
        with under_way.noted("t/second", 7):
            assert under_way.said() == "t/second: 7 rows to read"
        assert under_way.said() == "t/first: 5 rows to read"


def test_it_never_goes_back_where_a_job_follows_another(monkeypatch):
    with under_way.noted("t/s", 1000, Session()):
        under_way.said()
        monkeypatch.setattr(Tracker, "numCompletedTasks", 0)
        assert under_way.said() == "t/s: about 250 of 1,000 rows"


def test_without_spark_s_tracker_the_rows_are_told():
    with under_way.noted("t/s", 1000, object()):
        assert under_way.said() == "t/s: 1,000 rows to read"
    with under_way.noted("t/s", 1000):
        assert under_way.said() == "t/s: 1,000 rows to read"


def test_the_command_shows_it(monkeypatch):
    shown = []

    @contextlib.contextmanager
    def progress(told):
        with under_way.noted("t/s", 1000):
            shown.append(told())
            yield False

    monkeypatch.setattr(module, "progress", progress)
    monkeypatch.setattr(spark, "export", lambda *_args, **_more: [])
    assert CliRunner().invoke(cli_main.cli, ["export", "lake", "out"]).exit_code == 0
    assert shown == ["t/s: 1,000 rows to read"]
