"""What is told of an export while it runs."""

from __future__ import annotations

import contextlib

from click.testing import CliRunner

from burler import spark
from burler.cli import progress as module
from burler.cli.main import cli
from burler.spark.under_way import line, noted, said


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
    assert line("t/s", 1_000_000, 0.25) == "t/s: about 250,000 of 1,000,000 rows"
    assert line("t/s", 1_000_000, 0.0) == "t/s: 1,000,000 rows to read"
    assert line("t/s", None, 0.5) == "t/s: 50% of Spark's tasks"
    assert line("t/s", None, 0.0) == "t/s"


def test_it_is_told_while_a_stream_is_under_way():
    with noted("t/s", 1000, Session()):
        assert said() == "t/s: about 250 of 1,000 rows"
    assert said() == ""


def test_the_one_that_began_last_is_told():
    with noted("t/first", 5):
        with noted("t/second", 7):
            assert said() == "t/second: 7 rows to read"
        assert said() == "t/first: 5 rows to read"


def test_it_never_goes_back_where_a_job_follows_another(monkeypatch):
    with noted("t/s", 1000, Session()):
        said()
        monkeypatch.setattr(Tracker, "numCompletedTasks", 0)
        assert said() == "t/s: about 250 of 1,000 rows"


def test_without_spark_s_tracker_the_rows_are_told():
    with noted("t/s", 1000, object()):
        assert said() == "t/s: 1,000 rows to read"
    with noted("t/s", 1000):
        assert said() == "t/s: 1,000 rows to read"


def test_the_command_shows_it(monkeypatch):
    shown = []

    @contextlib.contextmanager
    def progress(told):
        with noted("t/s", 1000):
            shown.append(told())
            yield False

    monkeypatch.setattr(module, "progress", progress)
    monkeypatch.setattr(spark, "export", lambda *_args, **_more: [])
    assert CliRunner().invoke(cli, ["export", "lake", "out"]).exit_code == 0
    assert shown == ["t/s: 1,000 rows to read"]
