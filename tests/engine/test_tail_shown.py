"""What a tail does at the edges that nobody looks at in a good hour: failing for good, polls that come early or late,
whose client an acknowledgement gets."""

from __future__ import annotations

import logging
import threading
import time

import pytest

import burler
from burler.testing import FakeClock, run_tap
from support.internals import signals

ID = {"properties": {"id": {"type": "integer"}}}
KEYED = {"key_properties": "id", "replication_key": "id", "order": "asc", "schema": ID}
TAIL = {"tail": True, "new_record_polling_interval_ms": 60_000, "state_message_min_interval_ms": 60_000}


@pytest.fixture(autouse=True)
def no_jitter(monkeypatch):
    monkeypatch.setattr("random.random", lambda: 1.0)


def said(caplog, level):
    return [one.getMessage() for one in caplog.records if one.levelno == level]


# ---- failing for good ------------------------------------------------------------------------------------


def test_a_critical_line_says_which_stream_has_failed_for_good_and_where(caplog):
    tap = burler.tap("tap-t")

    @tap.sync("rows", **KEYED)
    def rows():
        raise KeyError("no such field")

    with caplog.at_level(logging.INFO):
        out = run_tap(tap, {**TAIL, "tail_max_retries": 2}, clock=FakeClock())
    [line] = said(caplog, logging.CRITICAL)
    assert line.startswith("stream 'rows': has failed for good, after 3 failures in a row: ")
    assert "no such field" in line
    assert "test_tail_shown.py:" in line
    assert "\n" not in line
    assert [line.split(", tried")[0] for line in said(caplog, logging.WARNING)] == [
        "stream 'rows': failure 1 of 2 in a row",
        "stream 'rows': failure 2 of 2 in a row",
    ]
    assert out.result.exit_code == 1


@pytest.mark.parametrize("batch", [False, True], ids=["alone", "behind a sync function"])
def test_a_tail_function_that_fails_at_once_waits_and_then_fails_for_good(batch, caplog):
    tap, clock, times = burler.tap("tap-t"), FakeClock(), []
    if batch:
        tap.sync("events", **KEYED)(lambda: [{"id": 1}])

    @tap.tail("events", **({} if batch else KEYED))
    def events():
        times.append(clock.monotonic())
        raise PermissionError("not allowed")
        yield

    with caplog.at_level(logging.INFO):
        out = run_tap(tap, {**TAIL, "tail_max_retries": 4}, clock=clock)
    assert times == pytest.approx([0, 1, 3, 7, 15])
    assert len(said(caplog, logging.CRITICAL)) == 1
    assert out.result.exit_code == 1


# ---- polls that come early, and late ---------------------------------------------------------------------


def test_a_wake_that_comes_while_a_round_is_under_way_is_not_lost():
    tap, reading, woken, polls = burler.tap("tap-t"), threading.Event(), threading.Event(), []

    @tap.wake("events")
    def listen(stream):
        yield
        assert reading.wait(20)
        yield
        woken.set()  # the engine has taken what was yielded
        while not stream.wait(0.01):
            pass

    @tap.sync("events", **KEYED)
    def events():
        polls.append(1)
        reading.set()
        assert woken.wait(20)
        return [{"id": len(polls)}]

    run_tap(tap, {**TAIL, "tail_max_rounds": 2, "tail_max_seconds": 20})
    assert len(polls) == 2


@pytest.mark.parametrize(("slow_seconds", "warnings"), [(500, 1), (100, 0)])
def test_a_poll_that_comes_late_is_told_once(slow_seconds, warnings, caplog):
    tap, clock = burler.tap("tap-t"), FakeClock()

    @tap.sync("slow", **KEYED)
    def slow():
        clock.advance(slow_seconds)
        return [{"id": 1}]

    tap.sync("quick", **KEYED)(lambda: [{"id": 1}])
    with caplog.at_level(logging.WARNING):
        run_tap(tap, {**TAIL, "tail_max_rounds": 4}, clock=clock)
    late = [line for line in said(caplog, logging.WARNING) if "late" in line]
    assert len(late) == warnings
    assert all(line.startswith("stream 'quick': is polled 500 s late") and "'workers'" in line for line in late)


# ---- whose client ----------------------------------------------------------------------------------------


def test_an_acknowledgement_gets_the_client_of_the_round_that_runs(monkeypatch):
    """While another stream has lost its connection and got a new one."""
    monkeypatch.setattr("random.random", lambda: 0.01)
    tap, stopper, made = burler.tap("tap-t"), signals.Stopper(), []
    connected, heard = threading.Event(), threading.Event()
    acknowledged, polled = [], []

    @tap.client
    def client():
        made.append(object())
        return made[-1]

    @tap.tail("events", **KEYED)
    def events(client):
        assert client is made[0]
        connected.set()
        yield {"id": 1}
        end = time.monotonic() + 20
        while len(polled) < 2:
            assert time.monotonic() < end
            time.sleep(0.01)
        yield {"id": 2}
        assert heard.wait(20)
        stopper.end(now=False)
        yield {"id": 3}

    @tap.ack("events")
    def acknowledge(bookmark, client):
        acknowledged.append((bookmark, made.index(client)))
        if bookmark == 2:
            heard.set()

    @tap.sync("polled", **KEYED)
    def rows(client):
        assert connected.wait(20)
        polled.append(made.index(client))
        if len(polled) == 1:
            raise ConnectionResetError("gone")
        return [{"id": 1}]

    out = run_tap(tap, {**TAIL, "state_message_min_interval_ms": 20}, stopper=stopper)
    assert polled == [0, 1]
    assert (2, 0) in acknowledged
    assert {number for bookmark, number in acknowledged if bookmark <= 2} == {0}
    assert out.result.exit_code == 0


# ---- full tables, and parts that fail --------------------------------------------------------------------


def test_what_is_pushed_beside_a_full_table_belongs_to_its_version():
    """ACTIVATE_VERSION behind the tail function would make targets drop the table."""
    tap, stopper, calls = burler.tap("tap-t"), signals.Stopper(), []
    table = {"key_properties": "id", "replication_method": "FULL_TABLE", "schema": ID}
    tap.sync("rows", **table)(lambda: [{"id": 1}, {"id": 2}])

    @tap.tail("rows")
    def pushed():
        calls.append(1)
        yield {"id": 10 + len(calls)}
        if len(calls) == 2:
            stopper.end(now=False)
            yield {"id": 99}

    out = run_tap(tap, TAIL, clock=FakeClock(), stopper=stopper)
    told = [(m["type"], m["version"]) for m in out.messages if "version" in m]
    versions = list(dict.fromkeys(version for _type, version in told))
    assert len(versions) == 2  # one a round
    for version in versions:
        types = [kind for kind, own in told if own == version]
        last = len(types) - types[::-1].index("ACTIVATE_VERSION") - 1
        assert "RECORD" in types[last:]  # what was pushed comes behind it


@pytest.mark.parametrize("options", [{}, {"resumable_by": "id"}], ids=["plain", "resumable"])
def test_a_full_table_that_has_not_changed_comes_whole_each_time_and_so_do_its_children(options):
    """Its rows belong to a new version: what is dropped as a repeat would be gone from the target."""
    tap = burler.tap("tap-t")
    table = {"key_properties": "id", "schema": ID, "replication_method": "FULL_TABLE"}

    @tap.sync("rows", **table, max_full_table_age_seconds=60, **options)
    def rows():
        return [{"id": 1}, {"id": 2}]

    tap.sync("parts", key_properties="id", parent="rows", schema=ID)(lambda parent: [{"id": parent["id"] * 10}])
    out = run_tap(tap, {**TAIL, "tail_max_rounds": 3}, clock=FakeClock())
    for name, ids in (("rows", [1, 2]), ("parts", [10, 20])):
        records = [m for m in out.messages if m["type"] == "RECORD" and m["stream"] == name]
        versions = list(dict.fromkeys(m["version"] for m in records))
        assert [[m["record"]["id"] for m in records if m["version"] == one] for one in versions] == [ids] * 3


def test_a_part_that_fails_is_no_reason_to_poll_again_at_once():
    """With tail_drain, rows behind it come again and again."""
    tap, clock, times = burler.tap("tap-t"), FakeClock(), []

    @tap.sync("orders", **KEYED)
    def orders(stream):
        times.append(clock.monotonic())
        return [{"id": 1}, {"id": 2}]

    @tap.sync("lines", parent="orders", key_properties="id", schema=ID)
    def lines(parent):
        if parent["id"] == 1:
            raise PermissionError("403")
        return [{"id": len(times) * 10}]

    run_tap(tap, {**TAIL, "tail_drain": True, "tail_max_rounds": 4}, clock=clock)
    assert times == [0, 60, 120, 180]


def test_a_wake_does_not_cut_the_wait_after_a_failure_short():
    tap, times, begun = burler.tap("tap-t"), [], time.monotonic()

    @tap.wake("events")
    def listen(stream):
        while not stream.wait(0.05):
            yield

    @tap.sync("events", **KEYED)
    def events():
        times.append(time.monotonic() - begun)
        raise ConnectionError("down")

    run_tap(tap, {**TAIL, "tail_max_retries": 1})
    assert len(times) == 2
    assert times[1] - times[0] > 0.9


def test_a_pause_makes_one_line_and_no_burst(caplog):
    tap, clock, rounds = burler.tap("tap-t"), FakeClock(), []

    @tap.sync("rows", **KEYED)
    def rows():
        rounds.append(1)
        if len(rounds) == 2:
            clock.advance(3600)
        return [{"id": len(rounds)}]

    with caplog.at_level(logging.INFO):
        run_tap(tap, {**TAIL, "new_record_polling_interval_ms": 1000, "tail_max_rounds": 20}, clock=clock)
    told = [line for line in said(caplog, logging.INFO) if line.startswith("tail: ") and " of them failing" in line]
    assert len(told) == 1 and " in 3601 s, " in told[0]
