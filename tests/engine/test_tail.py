"""Tail runs with a clock that a test moves: what is read when, when a STATE comes (tail-mode proposal)."""

from __future__ import annotations

import datetime as dt
import logging
import os
import signal

import pytest

import burler
from burler.errors import ConfigError
from burler.testing import FakeClock, run_tap
from support.internals import signals

ID = {"properties": {"id": {"type": "integer"}, "text": {"type": "string"}}}


def tail(tap, *, clock=None, rounds=None, interval_ms=60_000, state_ms=60_000, **config):
    clock = clock or FakeClock()
    settings = {
        "tail": True,
        "new_record_polling_interval_ms": interval_ms,
        "state_message_min_interval_ms": state_ms,
        **({"tail_max_rounds": rounds} if rounds else {}),
        **config,
    }
    return run_tap(tap, settings, clock=clock)


def growing(tap, name="rows", *, clock, calls=None, **options):
    """A stream with one row more each time it is asked; it gives rows at and behind its bookmark."""
    times = [] if calls is None else calls

    @tap.sync(name, key_properties="id", replication_key="id", order="asc", schema=ID, **options)
    def rows(stream):
        times.append(clock.monotonic())
        for i in range(stream.bookmark or 1, len(times) + 1):
            yield {"id": i}

    return times


def seconds(message):
    return dt.datetime.fromisoformat(message["time_extracted"]).timestamp() - FakeClock().now().timestamp()


def test_a_tap_without_any_change_is_polled_each_interval_and_gives_each_row_once():
    tap, clock = burler.tap("tap-t"), FakeClock()
    times = growing(tap, clock=clock)
    out = tail(tap, clock=clock, rounds=4, interval_ms=5000, state_ms=1000)
    assert times == [0, 5, 10, 15]
    assert [row["id"] for row in out.records("rows")] == [1, 2, 3, 4]
    assert out.types.count("SCHEMA") == 1
    assert out.result.exit_code == 0
    assert out.result.rows == {"rows": 4}


def test_a_state_comes_so_long_after_the_first_record_that_none_covers():
    tap, clock = burler.tap("tap-t"), FakeClock()
    growing(tap, clock=clock)
    out = tail(tap, clock=clock, rounds=10, interval_ms=2000, state_ms=5000)
    since = None
    at = []
    for message in out.messages:
        if message["type"] == "RECORD":
            since = seconds(message) if since is None else since
        if message["type"] == "STATE":
            at.append((since, message["value"]["bookmarks"]["rows"]["id"]))
            since = None
    assert at == [(0, 3), (6, 6), (12, 9), (18, 10)]  # by 5 s, by 11 s, by 17 s, and at the end


def test_no_state_without_a_record():
    tap, clock = burler.tap("tap-t"), FakeClock()

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=ID)
    def rows(stream):
        return [{"id": 7}] if stream.bookmark is None else []

    out = tail(tap, clock=clock, rounds=50, state_ms=1000)
    assert out.types == ["SCHEMA", "RECORD", "STATE"]


def test_a_state_that_is_due_comes_although_the_bookmark_has_not_moved():
    tap, clock = burler.tap("tap-t"), FakeClock()
    given = []

    @tap.sync("rows", replication_key="id", order="asc", resume="exclusive", schema=ID)
    def rows():
        given.append(1)
        return [{"id": 7, "text": str(len(given))}]

    out = tail(tap, clock=clock, rounds=3, interval_ms=60_000, state_ms=1000)
    assert out.types == ["SCHEMA", "RECORD", "STATE", "RECORD", "STATE", "RECORD", "STATE"]
    assert len({str(state) for state in out.states}) == 1


def test_each_stream_has_its_own_interval():
    tap, clock = burler.tap("tap-t"), FakeClock()
    quick = growing(tap, "quick", clock=clock, new_record_polling_interval_ms=1000)
    slow = growing(tap, "slow", clock=clock)
    tail(tap, clock=clock, interval_ms=10_000, tail_max_seconds=29.5)
    assert slow == [0, 10, 20]
    assert quick == list(range(30))


def test_the_interval_is_waited_between_polls_and_a_pause_brings_no_burst():
    tap, clock = burler.tap("tap-t"), FakeClock()
    times = []

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=ID)
    def rows():
        times.append(clock.monotonic())
        clock.advance(100 if len(times) == 2 else 1)
        return []

    tail(tap, clock=clock, rounds=5, interval_ms=10_000)
    assert times == [0, 11, 121, 132, 143]


def test_a_full_table_is_read_again_when_it_is_too_old():
    tap, clock = burler.tap("tap-t"), FakeClock()
    times = []

    @tap.sync("table", key_properties="id", schema=ID, max_full_table_age_seconds=100)
    def table():
        times.append(clock.monotonic())
        clock.advance(30)
        return [{"id": 1}]

    @tap.sync("once", key_properties="id", schema=ID)
    def once():
        return [{"id": 1}]

    out = tail(tap, clock=clock, tail_max_seconds=250)
    assert times == [0, 100, 200]
    assert len(out.records("table")) == 3
    assert len(out.records("once")) == 1
    versions = [m["version"] for m in out.messages if m["type"] == "ACTIVATE_VERSION" and m["stream"] == "table"]
    assert versions == sorted(versions)
    assert len(set(versions)) == 3


def test_a_tail_of_full_tables_that_are_read_once_comes_to_its_end(caplog):
    tap = burler.tap("tap-t")
    tap.sync("once", key_properties="id", schema=ID)(lambda: [{"id": 1}])
    with caplog.at_level(logging.WARNING):
        out = tail(tap)
    assert out.types[-1] == "STATE"
    assert "max_full_table_age_seconds" in caplog.text


@pytest.mark.parametrize(("drain", "times"), [(False, [0, 60, 120, 180, 240]), (True, [0, 0, 0, 60, 120])])
def test_drain_polls_again_at_once_while_there_are_new_rows(drain, times):
    tap, clock = burler.tap("tap-t"), FakeClock()
    polls = []

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=ID)
    def rows(stream):
        polls.append(clock.monotonic())
        first = stream.bookmark or 1
        yield from ({"id": i} for i in range(first, min(first + 2, 4)))  # the boundary row comes each time

    out = tail(tap, clock=clock, rounds=5, tail_drain=drain)
    assert polls == times
    assert [row["id"] for row in out.records("rows")] == [1, 2, 3]


# ---- failures ------------------------------------------------------------------------------------------


def failing(tap, name, *, clock, fails, error=lambda: OSError("gone")):
    """A stream whose calls fail where ``fails(number of the call)`` says so."""
    times = []

    @tap.sync(name, key_properties="id", replication_key="id", order="asc", schema=ID)
    def rows(stream):
        times.append(clock.monotonic())
        if fails(len(times)):
            raise error()
        return [{"id": len(times)}]

    return times


def test_a_stream_that_fails_waits_alone_and_goes_on(caplog, monkeypatch):
    monkeypatch.setattr("random.random", lambda: 1.0)
    tap, clock = burler.tap("tap-t"), FakeClock()
    bad = failing(tap, "bad", clock=clock, fails=lambda call: 2 <= call <= 5)
    good = growing(tap, "good", clock=clock)
    with caplog.at_level(logging.INFO):
        out = tail(tap, clock=clock, interval_ms=10_000, tail_max_seconds=59)
    assert good == [0, 10, 20, 30, 40, 50]
    assert bad[:6] == [0, 10, 11, 13, 17, 25]
    assert out.result.exit_code == 0
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 4
    assert warnings[1].startswith("stream 'bad': failure 2 of 10 in a row, tried again in 2.0 s: OSError: gone (")
    assert "stream 'bad': goes on" in caplog.text


def test_a_stream_that_has_failed_for_good_ends_the_tap():
    tap, clock = burler.tap("tap-t"), FakeClock()
    bad = failing(tap, "bad", clock=clock, fails=lambda call: call > 1)
    growing(tap, "good", clock=clock)
    out = tail(tap, clock=clock, tail_max_retries=2)
    assert len(bad) == 4
    assert out.result.exit_code == 1
    assert str(out.result.errors["bad"]) == "gone"
    assert out.types[-1] == "STATE"
    assert out.states[-1]["bookmarks"]["bad"] == {"id": 1}


def test_others_go_on_where_a_stream_that_has_failed_does_not_end_the_tap():
    tap, clock = burler.tap("tap-t"), FakeClock()
    bad = failing(tap, "bad", clock=clock, fails=lambda call: True)
    good = growing(tap, "good", clock=clock)
    out = tail(tap, clock=clock, tail_max_retries=0, tail_stop_on_failure=False, tail_max_seconds=130)
    assert (len(bad), good) == (1, [0, 60, 120])
    assert out.result.exit_code == 1
    assert set(out.result.errors) == {"bad"}


def test_without_a_limit_it_is_tried_for_ever():
    tap, clock = burler.tap("tap-t"), FakeClock()
    bad = failing(tap, "bad", clock=clock, fails=lambda call: call < 40)
    out = tail(tap, clock=clock, rounds=41, tail_max_retries=None)
    assert len(bad) == 41
    assert out.result.exit_code == 0


def test_without_retries_the_first_failure_is_for_good():
    tap, clock = burler.tap("tap-t"), FakeClock()
    bad = failing(tap, "bad", clock=clock, fails=lambda call: True)
    assert tail(tap, clock=clock, tail_retry=False).result.exit_code == 1
    assert len(bad) == 1


def test_instead_of_failing_for_good_a_stream_may_begin_anew():
    tap, clock = burler.tap("tap-t"), FakeClock()
    seen = []

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=ID)
    def rows(stream):
        seen.append(stream.bookmark)
        if stream.bookmark is not None:
            raise RuntimeError("the log has been cut")
        return [{"id": 5}]

    out = tail(tap, clock=clock, tail_max_retries=1, tail_full_table_on_failure=True, rounds=5)
    assert seen == [None, 5, 5, None, 5]
    assert [row["id"] for row in out.records("rows")] == [5, 5]


def test_parts_that_fail_make_no_stream_wait():
    tap, clock = burler.tap("tap-t"), FakeClock()
    times = []
    tap.partitions("rows", key="of")(lambda: [{"of": "a"}, {"of": "b"}])

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=ID)
    def rows(partition, stream):
        if partition["of"] == "b":
            raise OSError("forbidden")
        times.append(clock.monotonic())
        return [{"id": len(times)}]

    out = tail(tap, clock=clock, rounds=20, interval_ms=10_000)
    assert times == [10.0 * i for i in range(20)]
    assert len(out.records("rows")) == 20
    assert out.result.exit_code == 1  # in its last round a part was missing


def test_settings_of_a_tail_are_checked():
    tap = burler.tap("tap-t")
    tap.sync("rows", schema=ID)(lambda: [])
    with pytest.raises(ConfigError, match="new_record_polling_interval_ms"):
        run_tap(tap, {"tail": True, "new_record_polling_interval_ms": 0})


# ---- the client ----------------------------------------------------------------------------------------


class Client:
    made: list = []  # noqa: RUF012

    def __init__(self):
        self.made.append(self)
        self.closed = False

    def close(self):
        self.closed = True


@pytest.fixture
def clients():
    Client.made = []
    return Client.made


def test_one_client_for_a_hundred_rounds(clients):
    tap, clock = burler.tap("tap-t"), FakeClock()
    tap.client(lambda: Client())

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=ID)
    def rows(client, stream):
        return [{"id": (stream.bookmark or 0) + 1}]

    out = tail(tap, clock=clock, rounds=100)
    assert len(out.records("rows")) == 100
    assert len(clients) == 1
    assert clients[0].closed


def test_a_lost_connection_makes_a_new_client_and_closes_the_old_one(clients):
    tap, clock = burler.tap("tap-t"), FakeClock()
    tap.client(lambda: Client())
    used = []

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=ID)
    def rows(client, stream):
        used.append(client)
        if len(used) == 2:
            raise ConnectionResetError("reset by peer")
        if len(used) == 4:
            raise ValueError("none of the connection")
        return [{"id": len(used)}]

    out = tail(tap, clock=clock, rounds=6)
    assert [clients.index(one) for one in used] == [0, 0, 1, 1, 1, 1]
    assert [one.closed for one in clients] == [True, True]
    assert out.result.exit_code == 0


# ---- streams that depend on each other -----------------------------------------------------------------


def test_substreams_and_partitions_come_in_each_round():
    tap, clock = burler.tap("tap-t"), FakeClock()
    rounds = []
    tap.partitions("orders", key="shop")(lambda: [{"shop": "a"}, {"shop": "b"}])

    @tap.sync("orders", key_properties="id", replication_key="id", order="asc", schema=ID)
    def orders(partition, stream):
        rounds.append(partition["shop"])
        return [{"id": (stream.bookmark or 0) + 1}]

    @tap.sync("lines", key_properties="id", parent="orders", schema=ID)
    def lines(parent):
        return [{"id": parent["id"] * 10}]

    out = tail(tap, clock=clock, rounds=3)
    assert rounds == ["a", "b"] * 3
    assert [row["id"] for row in out.records("orders")] == [1, 1, 2, 2, 3, 3]
    assert [row["id"] for row in out.records("lines")] == [10, 10, 20, 20, 30, 30]
    kept = out.states[-1]["bookmarks"]["orders"]["partitions"]
    assert {key: entry["id"] for key, entry in kept.items()} == {"a": 3, "b": 3}


def test_a_function_that_ends_since_it_was_told_to_is_not_complete():
    """Its bookmark may not pass what it has not given."""
    tap, stopper = burler.tap("tap-t"), signals.Stopper()

    @tap.sync("rows", key_properties="id", replication_key="id", schema=ID)  # in no order
    def rows(stream):
        yield {"id": 9}
        stopper.end(now=False)
        if stream.stopping:
            return
        yield {"id": 1}

    out = run_tap(tap, {"tail": True}, clock=FakeClock(), stopper=stopper)
    assert [row["id"] for row in out.records("rows")] == [9]
    assert out.states[-1] == {}


def test_a_run_with_a_limit_is_no_tail():
    tap = burler.tap("tap-t")
    tap.sync("rows", key_properties="id", schema=ID)(lambda: ({"id": i} for i in range(100)))
    out = run_tap(tap, {"tail": True}, limit=3)
    assert len(out.records("rows")) == 3


def test_a_day_passes_in_seconds():
    tap, clock = burler.tap("tap-t"), FakeClock()
    growing(tap, clock=clock)

    @tap.sync("table", key_properties="id", schema=ID)
    def table():
        return [{"id": 1}, {"id": 2}]

    out = tail(
        tap, clock=clock, interval_ms=30_000, state_ms=300_000, max_full_table_age_seconds=3600, tail_max_seconds=86_400
    )
    rows = [row["id"] for row in out.records("rows")]
    assert rows == list(range(1, 2881))
    assert len(out.records("table")) == 48
    assert 280 <= len(out.states) <= 290
    assert out.states[-1]["bookmarks"]["rows"]["id"] == 2880


# ---- what is discovered --------------------------------------------------------------------------------


def test_a_schema_that_changes_is_seen_when_discovery_runs_again():
    tap, clock = burler.tap("tap-t"), FakeClock()
    fields = {"id": {"type": "integer"}}

    @tap.schema("rows")
    def schema():
        return {"properties": dict(fields)}

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc")
    def rows(stream):
        following = (stream.bookmark or 0) + 1
        if following == 3:
            fields["text"] = {"type": "string"}
        return [{"id": following, **({"text": "x"} if "text" in fields else {})}]

    out = tail(tap, clock=clock, rounds=6, tail_rediscover_seconds=100)
    schemas = [m["schema"]["properties"] for m in out.messages if m["type"] == "SCHEMA"]
    assert [sorted(one) for one in schemas] == [["id"], ["id", "text"]]
    assert [row.get("text") for row in out.records("rows")] == [None, None, None, None, "x", "x"]


def test_streams_that_appear_and_vanish_are_seen_too(caplog):
    tap, clock = burler.tap("tap-t"), FakeClock()
    there = ["a"]

    @tap.discover
    def discover():
        return dict.fromkeys(there, ID)

    @tap.sync("*", key_properties="id", replication_key="id")
    def rows(stream):
        if clock.monotonic() >= 60:
            there[:] = ["b"]
        return [{"id": (stream.bookmark or 0) + 1}]

    with caplog.at_level(logging.INFO):
        out = tail(tap, clock=clock, tail_max_seconds=290, tail_rediscover_seconds=100)
    assert len(out.records("a")) == 2
    assert len(out.records("b")) == 4
    assert "stream 'a': is gone" in caplog.text
    assert "stream 'b': is new" in caplog.text


def test_a_discovery_that_finds_nothing_is_taken_for_a_failure(caplog):
    tap, clock, asked = burler.tap("tap-t"), FakeClock(), []

    @tap.discover
    def discover():
        asked.append(clock.monotonic())
        return {} if len(asked) == 2 else {"a": ID}

    @tap.sync("*", key_properties="id", replication_key="id")
    def rows(stream):
        return [{"id": (stream.bookmark or 0) + 1}]

    with caplog.at_level(logging.WARNING):
        out = tail(tap, clock=clock, tail_max_seconds=590, tail_rediscover_seconds=100)
    assert len(asked) == 6
    assert len(out.records("a")) == 10
    assert "discovery found no stream" in caplog.text


def test_a_full_table_may_be_woken():
    tap, stopper, reads = burler.tap("tap-t"), signals.Stopper(), []

    @tap.wake("table")
    def changed(stream):
        while not stream.wait(0.01):
            yield

    @tap.sync("table", key_properties="id", schema=ID)
    def table():
        reads.append(1)
        yield {"id": 1}
        if len(reads) == 5:
            stopper.end()

    run_tap(tap, {"tail": True}, stopper=stopper)
    assert len(reads) == 5


def test_a_clock_that_goes_back_ends_no_tail():
    """A machine that was put back to an earlier moment."""
    tap, clock = burler.tap("tap-t"), FakeClock()

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=ID)
    def rows(stream):
        if stream.bookmark == 2:
            clock.advance(-86_400)
        yield {"id": (stream.bookmark or 0) + 1}

    out = tail(tap, clock=clock, rounds=4)
    assert [row["id"] for row in out.records("rows")] == [1, 2, 3, 4]
    assert not out.result.errors


class Storm:
    """A SIGHUP each second, until what it disturbs has been called 20 times."""

    def __init__(self):
        self.calls = {}
        self.clients = 0
        self.told = []  # how many clients there were at each SIGHUP

    def client(self):
        self.clients += 1
        return self.clients

    def rows(self, name, stream, count):
        self.calls[name] = self.calls.get(name, 0) + 1
        for i in range(count):
            yield {"id": i, "text": name}
            if self.calls[name] < 20:
                self.told.append(self.clients)
                os.kill(os.getpid(), signal.SIGHUP)
            stream.wait(1)


def test_a_full_table_is_whole_in_the_end_under_a_storm_of_hangups():
    tap, storm = burler.tap("tap-t"), Storm()
    tap.client(storm.client)

    @tap.sync("table", key_properties="id", schema=ID)
    def table(client, stream):
        yield from storm.rows("table", stream, 20)

    out = tail(tap)
    assert 2 <= storm.calls["table"] <= 7  # a second, then 2, 4, 8, 16, 32
    versions = [message["version"] for message in out.messages if message["type"] == "RECORD"]
    activated = [message["version"] for message in out.messages if message["type"] == "ACTIVATE_VERSION"]
    assert (activated[-1], versions.count(activated[-1])) == (versions[-1], 20)


def test_each_partition_is_whole_in_the_end_under_a_storm_of_hangups():
    tap, storm = burler.tap("tap-t"), Storm()
    tap.partitions("parts")(lambda: [{"part": part} for part in "abc"])

    @tap.sync("parts", key_properties=["id", "text"], replication_key="id", schema=ID)
    def parts(stream, partition):
        yield from storm.rows(partition["part"], stream, 8)

    out = tail(tap, rounds=1)
    assert max(storm.calls.values()) <= 8
    assert sorted(storm.calls) == ["a", "b", "c"]
    marks = out.states[-1]["bookmarks"]["parts"]["partitions"]
    assert [mark["id"] for mark in marks.values()] == [7] * 3


def test_of_many_hangups_the_last_is_seen_to_as_well():
    tap, storm = burler.tap("tap-t"), Storm()
    tap.client(storm.client)
    seconds = iter([5] * 12)

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=ID)
    def rows(client, stream):
        yield from storm.rows("rows", stream, next(seconds, 0))

    tail(tap, rounds=30)
    assert storm.clients > storm.told[-1]
    assert storm.clients < len(storm.told)


def test_no_stream_stands_behind_others_for_ever_under_a_storm_of_hangups():
    tap, storm = burler.tap("tap-t"), Storm()

    for name in ("a", "b", "c"):

        @tap.sync(name, key_properties="id", replication_key="id", order="asc", schema=ID)
        def rows(stream):
            yield from storm.rows(stream.name, stream, 3)

    out = tail(tap, rounds=2)
    assert max(storm.calls.values()) <= 8
    assert {name: mark["id"] for name, mark in out.states[-1]["bookmarks"].items()} == dict.fromkeys("abc", 2)
