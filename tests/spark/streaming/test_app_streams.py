"""``readStream.format("burler")``: the tap runs into a spool, and batches are ranges of that: exact, and never lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from burler.errors import BurlerError, ExportError, StreamError, UsageError
from burler.lake import open_store
from support.clocks import until


def state_of(offset):
    return json.loads(offset).get("state", {}).get("bookmarks", {}).get("numbers", {}).get("n")


def numbers(query, ranges):
    return [row["n"] for start, end in ranges for row in query.rows(start, end)]


def ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def children(pid):
    """The processes that a process has started and that run."""
    found = [text for path in Path(f"/proc/{pid}/task").glob("*/children") for text in path.read_text().split()]
    return {int(text) for text in found if not ended(int(text))}


def test_batches_are_ranges_of_the_spool_and_the_offset_is_the_state(app_query, upto, tmp_path):
    upto(100)
    first = app_query(maxRowsPerTrigger=40)
    ranges = first.run()
    assert numbers(first, ranges) == list(range(101))
    assert state_of(ranges[-1][1]) == 100
    for start, end in ranges:  # no state is ahead of the rows up to it
        out = max(numbers(first, [(ranges[0][0], end)]))
        assert (state_of(end) or 0) <= out and (start == ranges[0][0] or state_of(start) is not None)

    upto(130)
    second = app_query()
    news = second.run(ranges[-1][1])
    assert numbers(second, news) == list(range(100, 131))  # resumption is inclusive
    assert state_of(news[-1][1]) == 130
    third = app_query()
    assert [numbers(third, [one]) for one in ranges] == [numbers(first, [one]) for one in ranges]  # a replay
    third.reader.stop()


def test_a_tap_that_fails_has_its_rows_taken_before_the_query_fails(app_query, upto, tmp_path, capfd):
    upto(100)
    query = app_query(config=json.dumps({"upto": str(tmp_path / "upto"), "password": "hunter2-secret", "fail_at": 60}))
    query.reader.prepareForTriggerAvailableNow()
    at, got = query.initial(), []
    with pytest.raises(StreamError) as caught:
        while True:
            end = query.latest(at)
            got += numbers(query, [(at, end)])
            at = end
    query.reader.stop()
    assert "numbers" in str(caught.value) and "the source broke at 60" in str(caught.value)
    assert got == list(range(60))
    assert state_of(at) < 60
    assert "hunter2" not in str(caught.value) + capfd.readouterr().err + repr(query.reader)
    healed = app_query()
    assert sorted(set(got + numbers(healed, healed.run(at)))) == list(range(101))


def test_wrong_options_and_spools(app_query, upto, tmp_path):
    upto(3)
    for options, said in (
        ({"spool": None}, "spool"),
        ({"limit": 3}, "spark.read alone"),
        ({"spol": "x"}, "Did you mean 'spool'"),
        ({"stream": "nothing"}, "no stream is called"),
        ({"keep_hours": "long"}, "a number, 0 or more"),
        ({"bad": "skip"}, "fail or keep"),
    ):
        with pytest.raises(UsageError, match=said):
            app_query(**options).initial()
    query = app_query()
    query.run()
    with pytest.raises(UsageError, match=r"holds stream 'numbers' of tap-counting, not 'others'"):
        app_query(stream="others").initial()


def test_two_queries_can_not_have_one_spool(app_query, upto, monkeypatch):
    """The other one is waited for; here that takes no time."""
    waited, monotonic = [], time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + sum(waited))
    upto(3)
    one, other = app_query(), app_query()
    one.latest(one.initial())
    try:
        with monkeypatch.context() as waits, pytest.raises(UsageError, match="belongs to another query"):
            waits.setattr(time, "sleep", lambda seconds: waited.append(10 * seconds))
            other.latest(other.initial())
    finally:
        one.reader.stop()
    assert numbers(other, other.run()) == [0, 1, 2, 3]


def test_what_is_committed_goes_and_nobody_misses_it_in_silence(app_query, upto, tmp_path):
    upto(30)
    query = app_query(keep_hours=0)
    ranges = query.run()
    end = ranges[-1][1]
    files = lambda: len(list((tmp_path / "spool").rglob("*.singer.gz")))  # noqa: E731
    assert files() > 0
    query.reader.commit(json.loads(end))
    query.reader.stop()
    assert files() == 0
    upto(40)
    again = app_query(keep_hours=0)
    news = again.run(end)
    assert numbers(again, news) == list(range(30, 41))
    with pytest.raises(UsageError, match=r"no longer holds[\s\S]*another checkpoint"):
        app_query().run()
    with pytest.raises(UsageError, match="no longer holds"):
        app_query().rows(*ranges[0])


def test_a_lost_spool_costs_no_row(app_query, upto, tmp_path):
    upto(30)
    ranges = app_query().run()
    start, end = ranges[-1]
    upto(50)
    other = app_query(spool=tmp_path / "spool2")
    news = other.run(end)
    assert numbers(other, news) == list(range(30, 51))  # from the state in the checkpoint
    torn = app_query(spool=tmp_path / "spool3")  # the batch (start, end) was in flight, and its rows are gone
    assert torn.rows(start, end) == []
    assert numbers(torn, torn.run(end)) == list(range(51))


def test_rows_that_were_removed_from_a_spool_come_again(app_query, upto, tmp_path):
    """Its note is there and says how far the tap was; a batch of what is gone was in flight."""
    upto(20)
    taken = app_query().run()[-1][1]
    upto(40)
    start, end = app_query().run(taken)[-1]
    shutil.rmtree(tmp_path / "spool" / "raw")
    upto(45)
    query = app_query()
    assert query.rows(start, end) == []
    assert set(range(21, 46)) <= set(numbers(query, query.run(end)))
    shutil.rmtree(tmp_path / "spool" / "raw")
    fresh = app_query()
    assert numbers(fresh, fresh.run()) == list(range(46)), "a new checkpoint begins with the first row"


def test_a_spool_that_is_removed_under_a_query_ends_it(app_query, upto, tmp_path):
    upto(20)
    query = app_query(poll_seconds=0.2)
    at = query.initial()
    while (state_of(at) or 0) < 20:
        at = query.latest(at)
    got = []
    shutil.rmtree(tmp_path / "spool")
    with pytest.raises((StreamError, UsageError), match=r"the spool .* was removed or made anew"):
        for number in range(21, 2_000):
            upto(number)
            before, at = at, query.latest(at)
            got += numbers(query, [(before, at)]) if before != at else []
            time.sleep(0.02)
    query.reader.stop()
    again = app_query()
    got += numbers(again, again.run(at))
    assert set(range(21, number + 1)) <= set(got)


def test_a_tap_with_a_new_field_goes_on_in_the_same_spool(app_query, upto, tmp_path):
    upto(20)
    end = app_query().run()[-1][1]
    upto(25)
    config = {"upto": str(tmp_path / "upto"), "with_square": True}
    query = app_query(config=json.dumps(config))
    assert query.schema.fieldNames()[:3] == ["id", "n", "square"]
    first = query.initial()
    assert {row["square"] for row in query.rows(first, end)} == {None}  # a batch that Spark repeats at the start
    news = [row for one in query.run(end) for row in query.rows(*one)]
    assert [(row["n"], row["square"]) for row in news] == [(n, n * n) for n in range(20, 26)]
    assert {row["square"] for row in query.rows(first, end)} == {None}
    # A query that began before the change, and runs still:
    query.reader.schema = type(query.schema)([one for one in query.schema if one.name != "square"])
    assert len(query.rows(first, end)) == 21
    with pytest.raises(ExportError, match=r"new field 'square'"):
        query.rows(end, query.latest(end))


def test_a_foreign_tap(app_query, tmp_path):
    program = tmp_path / "tap-foreign"
    program.write_text(
        textwrap.dedent(
            f"""\
            #!{sys.executable}
            import json, sys
            args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
            schema = {{"type": "object", "properties": {{"id": {{"type": "integer"}}}}}}
            if "--discover" in sys.argv:
                print(json.dumps({{"streams": [{{"tap_stream_id": "users", "stream": "users", "schema": schema,
                    "key_properties": ["id"], "metadata": []}}]}}))
                sys.exit()
            if "--help" in sys.argv:
                sys.exit(print("--config --catalog --state"))
            start = json.load(open(args["--state"]))["at"] if "--state" in args else 0
            print(json.dumps({{"type": "SCHEMA", "stream": "users", "schema": schema, "key_properties": ["id"]}}))
            for at in range(start + 1, start + 4):
                print(json.dumps({{"type": "RECORD", "stream": "users", "record": {{"id": at}}}}))
            print(json.dumps({{"type": "STATE", "value": {{"at": start + 3}}}}))
            """
        )
    )
    program.chmod(0o755)
    given = {"app": None, "config": None, "exec": str(program), "stream": "users"}
    query = app_query(**given)
    ranges = query.run()
    assert [row["id"] for one in ranges for row in query.rows(*one)] == [1, 2, 3]
    assert json.loads(ranges[-1][1])["state"] == {"at": 3}
    again = app_query(**given)
    assert [row["id"] for one in again.run(ranges[-1][1]) for row in again.rows(*one)] == [4, 5, 6]
    broken = app_query(**given)
    program.write_text("#!/bin/sh\necho no key >&2\nexit 4\n")
    with pytest.raises(BurlerError, match="tap-foreign"):
        broken.run(ranges[-1][1])


class Taking:
    """A query that goes on: its numbers up to now."""

    def __init__(self, query):
        self.query, self.at, self.got = query, query.initial(), []

    def more(self):
        before, self.at = self.at, self.query.latest(self.at)
        self.got += numbers(self.query, [(before, self.at)])
        return self.got


def test_a_query_that_goes_on_sees_new_rows_once_and_its_tap_ends_with_it(app_query, upto):
    upto(10)
    query, before = app_query(poll_seconds=0.2), children(os.getpid())
    took = Taking(query)

    until(lambda: took.more() == list(range(11)))
    upto(25)
    until(lambda: took.more() == list(range(26)))  # the row at the bookmark does not come again
    until(lambda: took.more() and state_of(took.at) == 25)
    started = children(os.getpid()) - before
    query.reader.stop()
    assert started
    until(lambda: all(map(ended, started)))


def test_a_tail_function_stays_connected_while_its_query_runs(app_query, upto, tmp_path):
    upto(10)
    query = app_query(stream="pushed")
    took = Taking(query)

    until(lambda: took.more() == list(range(11)))
    for more in (25, 40):
        upto(more)
        until(lambda more=more: took.more() == list(range(more + 1)))
    query.reader.stop()
    assert (tmp_path / "calls").read_text().split() == ["sync", "tail"], "it was called once, and never polled"


def test_a_spool_is_looked_at_no_more_often_than_asked(app_query, upto, monkeypatch, tmp_path):
    """Spark asks every few milliseconds."""
    upto(10)
    query = app_query()
    at = query.initial()

    def is_over():
        nonlocal at
        at = query.latest(at)
        return state_of(at) == 10

    until(is_over)
    looks, kind = [], type(open_store(str(tmp_path / "spool")))
    read = kind.read
    monkeypatch.setattr(kind, "read", lambda self, path, /: looks.append(path) or read(self, path))
    for _ in range(300):
        query.latest(at)
    query.reader.stop()
    assert len(looks) < 150


def test_an_older_pyspark_is_refused(app_query, upto, monkeypatch):
    """Before 4.2 a source does not learn where its query stands: restarted, it would ask for rows that are gone."""
    upto(1)
    monkeypatch.setattr("pyspark.__version__", "4.1.2")
    query = app_query()
    with pytest.raises(UsageError, match=r"needs pyspark 4\.2 or later.*readStream\.format\('singerlake'\)"):
        query.initial()


_DRIVER = """
import json, sys, time
from pathlib import Path
from pyspark_burler import DefaultSource
source = DefaultSource(json.loads(sys.argv[1]))
reader = source.streamReader(source.schema())
at = reader.initialOffset()
while True:
    end = reader.latestOffset(at, None)
    if end != at:
        started = "".join(path.read_text() for path in Path("/proc/self/task").glob("*/children"))
        print(json.dumps([end, list(map(int, started.split()))]), flush=True)
        at = end
    time.sleep(0.02)
"""


def test_a_killed_driver_leaves_no_tap_behind_and_loses_nothing(app_query, upto):
    upto(50)
    given = app_query(poll_seconds=0.2).given
    with subprocess.Popen([sys.executable, "-c", _DRIVER, json.dumps(given)], stdout=subprocess.PIPE) as driver:
        end, started = json.loads(driver.stdout.readline())
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    assert started
    until(lambda: all(map(ended, started)))
    upto(60)
    query = app_query()
    start = query.initial()
    before = numbers(query, [(start, json.dumps(end))])
    after = numbers(query, query.run(json.dumps(end)))
    assert set(before + after) == set(range(61))
    assert before == list(range(before[-1] + 1))
