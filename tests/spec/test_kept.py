"""What is kept of a run to be held against another one: STATEs, versions, rows; and where the limits lie."""

from __future__ import annotations

import itertools

import pytest
from said import codes, day, lines, row, schema, state

from burler.errors import StorageError
from burler.spec import RULES, Findings, Limits, MessageCheck
from support.internals import rowlog, spec_resume, spec_versions, statelog

# --- STATEs ---


@pytest.mark.parametrize("count", [1, 2, 3, 50, 101, 257, 1000])
def test_states_are_kept_from_the_first_to_the_last_evenly(count):
    log = statelog.StateLog(Findings(RULES), Limits(), None)
    for number in range(1, count + 1):
        log.take({"bookmarks": {"a": {"at": number}}}, 30, number, {"a": number})
    log.finish(whole=True, rows=count, record_bytes=10**9)
    numbers = [one.number for one in log.kept]
    assert (numbers[0], numbers[-1]) == (1, count)
    assert len(numbers) <= 102
    gaps = [after - before for before, after in itertools.pairwise(numbers)]
    assert not gaps or max(gaps[1:-1], default=1) <= 2 * max(1, count // 50)
    assert [one.rows["a"] for one in log.kept] == numbers


def test_states_of_one_value_at_several_places_are_gone_on_from():
    log = statelog.StateLog(Findings(RULES), Limits(), None)
    for line, rows in ((1, 1), (2, 2), (3, 3), (4, 3)):
        log.take({"bookmarks": {}}, 30, line, {"a": rows})
    log.finish(whole=True, rows=3, record_bytes=10**9)
    assert [one.rows["a"] for one in log.chosen()] == [1, 3]  # the middle one is as the last
    assert [one.number for one in log.chosen()] == [1, 3]


# --- versions ---


def told(*, batched=False, held=None, was_whole=True, full_table=True):
    """Rows of version 5 that no ACTIVATE_VERSION follows."""
    findings = Findings(RULES)
    versions = spec_versions.Versions("a", findings, resumed=held is not None, held=held, was_whole=was_whole)
    versions.batched = batched
    versions.rows(5, 3, 1)
    versions.finish(whole=True, full_table=full_table)
    return [one.code for one in findings]


def test_rows_of_a_version_that_is_never_activated():
    assert told() == ["M212"]
    assert told(batched=True) == []  # many targets know no version of such rows
    assert told(held=5) == []
    assert told(held=4) == ["M212"]
    assert told(held=5, was_whole=False) == ["M212"]
    assert told(held=5, was_whole=False, full_table=False) == []


# --- rows ---


def test_rows_that_are_written_after_some_were_read_stand_behind_them():
    log = rowlog.RowLog(4, least=1)
    wanted = []
    for number in range(0, 40, 2):
        wanted += [number, number + 1]
        log.add([number, number + 1], [number, number + 1])
        assert log.has_any({0})  # reads the file from its beginning
        next(log.parts())
    assert [row for part in log.parts() for row in part.rows] == wanted
    log.close()


# --- limits ---


@pytest.mark.parametrize(("count", "found"), [(4, []), (5, ["B311"])])
def test_from_how_many_rows_on_a_stream_that_comes_whole_is_told(count, found):
    run = [schema(), *(row(n, day(n)) for n in range(1, count + 1)), state(a=day(count))]
    assert codes(*run, resumed={1: lines(*run)}) == found


@pytest.mark.parametrize(("last", "past"), [(4, False), (5, True)])
def test_a_run_that_was_stopped_counts_once_it_is_past_the_first_one(last, past):
    """At the greatest value itself more rows may have been to come."""
    first, again = (MessageCheck(Findings(RULES), log_all=True) for _ in range(2))
    first.feed(lines(schema(), row(1, day(1)), state(a=day(1)), *(row(n, day(n)) for n in (2, 3, 4))))
    again.feed(lines(schema(), *(row(n, day(n)) for n in range(1, last + 1) if n != 3)))
    first.finish(whole=False)
    again.finish(whole=False)
    found = Findings(RULES)
    assert spec_resume.compare_stopped(first, first.states.kept[0], again, found) is past
    assert [one.code for one in found] == (["B312"] if past else [])
    first.close()
    again.close()


def test_a_full_disk_is_told_with_the_cure(monkeypatch):
    class Full:
        def seek(self, *_where):
            return 0

        def write(self, _data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(rowlog.tempfile, "TemporaryFile", lambda **_given: Full())
    log = rowlog.RowLog(4, least=1)
    with pytest.raises(StorageError, match=r"No space left on device\. Name another folder by TMPDIR"):
        log.add(range(5), range(5))


def test_a_stream_that_is_over_may_be_silent_in_the_run_behind_it():
    said = state({"bookmarks": {"a": {"version": 1}}})
    assert codes(schema(key=None), row(1), row(2), said, resumed={1: lines(said)}) == []
