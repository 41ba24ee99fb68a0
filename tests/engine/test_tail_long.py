"""Tails that run for long: a day by a clock that a test moves, and the measurements of tests/bench in a quick form."""

from __future__ import annotations

import gc
import itertools
import logging
import random
import subprocess
import sys
import tracemalloc
from collections import Counter, defaultdict
from pathlib import Path

import pytest
import tapprocess

import burler
from burler.testing import FakeClock, MemorySink
from support.runs import run_into

BENCH = Path(__file__).parents[1] / "bench"
DAY, STATE_SECONDS = 86_400, 600
INTEGERS = {"properties": {name: {"type": "integer"} for name in ("id", "at", "line", "hour")}}
SALES = {"properties": {**INTEGERS["properties"], "shop": {"type": "string"}}}


class Stamped(MemorySink):
    """Every message, with the time it was written at."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.times = []

    def write(self, message):
        super().write(message)
        self.times += [self.clock.monotonic()] * (len(self.messages) - len(self.times))


class Counting(Stamped):
    """Looks at no message, and keeps none."""

    def write(self, message):
        super().write(message)
        self.messages.clear()
        self.times.clear()


def rows_at(clock, every, *, since=None, late=0):
    """What a source holds now: two rows each ``every`` seconds, with one time; from a time on, that one included."""
    first = 1 if since is None else since // every
    now = int(clock.monotonic()) - late
    return [{"id": 2 * n + k, "at": n * every} for n in range(max(first, 1), now // every + 1) for k in (0, 1)]


def shop(clock):
    """A tap with all kinds of streams."""
    tap, chance, seen = burler.tap("tap-day"), random.Random(1), Counter()
    keyed = {"key_properties": "id", "replication_key": "at", "schema": INTEGERS}

    @tap.sync("orders", order="asc", **keyed)
    def orders(stream):
        return rows_at(clock, 47, since=stream.bookmark)

    @tap.sync("lines", parent="orders", key_properties=["id", "line"], schema=INTEGERS)
    def lines(parent):
        return [{"id": parent["id"], "line": line} for line in range(parent["id"] % 3)]

    tap.partitions("sales", key="shop")(lambda: [{"shop": name} for name in ("a", "b")])

    @tap.sync(
        "sales",
        key_properties=["shop", "id"],
        replication_key="at",
        schema=SALES,
        new_record_polling_interval_ms=240_000,
    )
    def sales(stream, partition):
        for row in reversed(rows_at(clock, 180, since=stream.bookmark)):
            yield {**row, **partition}

    @tap.sync("prices", key_properties="id", schema=INTEGERS, max_full_table_age_seconds=3600)
    def prices():
        return [{"id": i, "hour": int(clock.monotonic()) // 3600} for i in range(50)]

    @tap.sync("once", key_properties="id", schema=INTEGERS)
    def once():
        return [{"id": 1}]

    @tap.sync("flaky", order="asc", new_record_polling_interval_ms=120_000, **keyed)
    def flaky(stream):
        seen["flaky"] += 1
        for row in rows_at(clock, 130, since=stream.bookmark):
            yield row
            if chance.random() < 0.1:
                raise ConnectionResetError("gone")

    @tap.sync("down", **keyed)
    def down(stream):
        if 10 * 3600 < clock.monotonic() < 12 * 3600:
            seen["down"] += 1
            raise TimeoutError("nobody answers")
        return reversed(rows_at(clock, 300, since=stream.bookmark))

    return tap, seen


SETTINGS = {
    "tail": True,
    "state_message_min_interval_ms": STATE_SECONDS * 1000,
    "new_record_polling_interval_ms": 60_000,
    "tail_max_retries": None,
}


@pytest.fixture(scope="module")
def day():
    """A day of all of them: the sink with its messages, the result, what has failed."""
    clock = FakeClock()
    tap, seen = shop(clock)
    sink = Stamped(clock)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("random.random", random.Random(1).random)  # the waits after failures
        result = run_into(tap, {**SETTINGS, "tail_max_seconds": DAY}, sink, clock=clock)
    return sink, result, seen, clock


def records(sink, name):
    return [
        (at, message["record"])
        for at, message in zip(sink.times, sink.messages, strict=True)
        if message["type"] == "RECORD" and message["stream"] == name
    ]


EVERY = {"orders": 47, "sales": 180, "flaky": 130, "down": 300}
WAIT = {"orders": 60, "sales": 240}  # seconds between two polls of those that never fail


def test_after_a_day_every_row_has_come_once(day):
    sink, result, seen, clock = day
    assert result.exit_code == 0
    assert clock.monotonic() >= DAY
    assert seen["down"] > 20 and seen["flaky"] > 720
    for name, every in EVERY.items():
        found = Counter((row.get("shop"), row["id"]) for _, row in records(sink, name))
        shops = ("a", "b") if name == "sales" else (None,)
        end = max(row["at"] for _, row in records(sink, name))
        assert end > DAY - 700
        assert found == Counter((shop, row["id"]) for shop in shops for row in rows_at(_At(end), every))
    orders = [row["id"] for _, row in records(sink, "orders")]
    lines = Counter((row["id"], row["line"]) for _, row in records(sink, "lines"))
    assert lines == Counter((number, line) for number in orders for line in range(number % 3))


class _At:
    """A clock that stands still."""

    def __init__(self, seconds):
        self.monotonic = lambda: seconds


def test_rows_come_with_the_next_poll(day):
    sink, *_ = day
    for name, wait in WAIT.items():
        assert max(at - row["at"] for at, row in records(sink, name)) <= wait + 60  # nobody else's turn takes longer
    for at, row in records(sink, "down"):
        assert at - row["at"] <= 61 + (2 * 3600 + 300 if 10 * 3600 - 60 <= row["at"] <= 12 * 3600 else 0)


def test_full_tables_come_by_their_age_with_versions_that_rise(day):
    sink, *_ = day
    tables = defaultdict(list)
    began = {}
    for at, message in zip(sink.times, sink.messages, strict=True):
        if message["type"] == "RECORD" and message["stream"] == "prices":
            tables[message["version"]].append(message["record"])
            began.setdefault(message["version"], at)
    versions = list(tables)
    assert versions == sorted(versions)
    assert len(versions) == 24 or len(versions) == 25
    for rows in tables.values():
        assert [row["id"] for row in rows] == list(range(50))
    starts = list(began.values())
    assert all(3600 <= b - a <= 3600 + 60 for a, b in itertools.pairwise(starts))
    activated = [m["version"] for m in sink.messages if m["type"] == "ACTIVATE_VERSION" and m["stream"] == "prices"]
    assert list(dict.fromkeys(activated)) == versions
    assert len(records(sink, "once")) == 1


def test_a_state_comes_as_configured_and_says_no_more_than_what_is_out(day):
    sink, *_ = day
    out = defaultdict(set)
    since, uncovered, states = None, [], []
    for at, message in zip(sink.times, sink.messages, strict=True):
        if message["type"] == "RECORD":
            row = message["record"]
            out[message["stream"], row.get("shop")].add(row["id"])
            if since is None:
                since = at
                uncovered.append(at)
            assert at <= since + STATE_SECONDS
        elif message["type"] == "STATE":
            states.append(at)
            assert since is not None, "a STATE without a record before it"
            assert at == pytest.approx(since + STATE_SECONDS, abs=0.001) or at >= DAY
            since = None
            _covers(message["value"]["bookmarks"], out)
    assert since is None
    assert len(states) == len(uncovered) >= DAY / (STATE_SECONDS + 60) - 1


def _covers(bookmarks, out):
    """Every row of the source up to each bookmark is out."""
    for name, every in EVERY.items():
        entry = bookmarks.get(name, {})
        found = {None: entry}
        if name == "sales":
            found = entry.get("partitions", {})
        for shop, one in found.items():
            if "at" in one:
                wanted = {row["id"] for row in rows_at(_At(one["at"]), every)}
                assert wanted - out[name, shop] == set(), (name, shop, one)


def test_schema_comes_once_in_a_day(day):
    sink, *_ = day
    counted = Counter(m["stream"] for m in sink.messages if m["type"] == "SCHEMA")
    assert counted == dict.fromkeys(("orders", "lines", "sales", "prices", "once", "flaky", "down"), 1)


@pytest.mark.nightly
def test_memory_is_the_same_after_two_hours_and_after_six():
    clock = FakeClock()
    tap, _ = shop(clock)
    held = {}

    @tap.sync(
        "watch", key_properties="id", replication_key="id", schema=INTEGERS, new_record_polling_interval_ms=600_000
    )
    def watch():
        clock.waits.clear()
        gc.collect()
        held[clock.monotonic()] = tracemalloc.get_traced_memory()[0]
        return []

    tap.partitions("stock", key="shop")(lambda: [{"shop": name} for name in ("a", "b")])

    @tap.sync("stock", key_properties=["shop", "id"], replication_key="at", schema=SALES)
    def stock(partition):
        return [{**partition, "id": i, "at": int(clock.monotonic())} for i in range(20)]

    logging.disable()  # pytest keeps every record
    tracemalloc.start()
    try:
        settings = {**SETTINGS, "tail_max_seconds": 6 * 3600, "new_record_polling_interval_ms": 20_000}
        # Without those that fail, and those with more and more keys in partitions: the newest errors and the last row
        # of each key are kept, up to a number of them.
        run_into(tap, settings, Counting(clock), clock=clock, select="orders,lines,stock,prices,watch")
    finally:
        tracemalloc.stop()
        logging.disable(logging.NOTSET)
    early = [size for at, size in held.items() if 2 * 3600 <= at < 3 * 3600]
    late = [size for at, size in held.items() if at >= 5 * 3600]
    assert early and late
    # Some 1,250 polls and 20,000 rows lie between them: 10 kB are a few bytes each.
    assert min(late) - min(early) < 10_000


# ---- the measurements, in short: that they work, and no figure ------------------------------------------


def bench(name, *args, timeout=100):
    done = subprocess.run(
        [sys.executable, BENCH / name, *args],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=tapprocess.environment(),
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.nightly
def test_latency_is_measured():
    said = bench("tail_latency.py", "--rows", "15", "--interval-ms", "50").stdout
    assert said.count("burler ") == 2
    assert said.count("all within") == 4
    assert said.count("bar ") == 2


@pytest.mark.nightly
def test_idle_is_measured():
    said = bench(
        "tail_idle.py", "--seconds", "1", "--streams", "10", "--interval-ms", "500", "--warm-seconds", "3"
    ).stdout
    assert said.count("of a core") == 4
    assert "bar 1%" in said


@pytest.mark.nightly
def test_the_soak_works():
    done = bench("tail_soak.py", "--minutes", "0.08", "--hangup-seconds", "2")
    assert "nothing is missing" in done.stdout, done.stdout
