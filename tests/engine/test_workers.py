"""Workers: several partitions, or several streams, at a time; one writer."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest
from parts import FIELDS, given, key_of, marks, never_ahead, numbers, partitioned, row

import burler
from burler.errors import PartialError
from burler.testing import MemorySink, run_tap
from support.runs import run_into

WAIT = 20.0  # seconds after which a test has failed
ABCDEFGH = "abcdefgh"


def ours() -> set[threading.Thread]:
    """Threads of the engine that run now."""
    return {one for one in threading.enumerate() if one.name.startswith("burler-")}


# ---- at a time ----------------------------------------------------------------------------------------


def test_so_many_partitions_run_at_a_time_and_no_more():
    together, running, most = threading.Barrier(4, timeout=WAIT), [0], [0]
    lock = threading.Lock()

    def rows(partition):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        together.wait()
        yield row(partition["account"], 1)
        with lock:
            running[0] -= 1

    run = run_tap(partitioned(ABCDEFGH, rows, workers=4))
    assert not run.result.errors
    assert most == [4]
    assert sorted(one["account"] for one in run.records("rows")) == list(ABCDEFGH)


@pytest.mark.parametrize(
    ("declared", "setting", "wanted"), [(1, 3, 3), (8, 2, 2), (2, None, 2), (1, None, 1), (8, 1, 1)]
)
def test_the_setting_comes_before_what_the_stream_says(declared: int, setting: int | None, wanted: int):
    threads = set()

    def rows(partition):
        threads.add(threading.get_ident())
        deadline = time.monotonic() + (WAIT if len(threads) < wanted else 0)
        while len(threads) < wanted and time.monotonic() < deadline:
            time.sleep(0.002)
        return [row(partition["account"], 1)]

    config = {} if setting is None else {"partition_workers": setting}
    run_tap(partitioned("abcd", rows, workers=declared), config)
    assert len(threads) == wanted


def test_the_first_partition_runs_on_the_main_thread_and_others_beside_it():
    where: dict[str, threading.Thread] = {}
    together = threading.Barrier(3, timeout=WAIT)

    def rows(partition):
        where[partition["account"]] = threading.current_thread()
        together.wait()
        return [row(partition["account"], 1)]

    run_tap(partitioned("abc", rows, workers=3))
    assert [one is threading.main_thread() for one in where.values()].count(True) == 1
    assert all(one.daemon for one in where.values() if one is not threading.main_thread())
    alone = run_tap(partitioned("abc", lambda: [row("a", threading.get_ident())]))
    assert set(numbers(alone)) == {threading.get_ident()}


def test_more_workers_than_partitions():
    run = run_tap(partitioned({"a": [1], "b": [2]}, workers=50))
    assert sorted(numbers(run)) == [1, 2]
    assert marks(run.states[-1]) == {"a": 1, "b": 2}


def test_no_thread_is_left_over():
    before = ours()
    run_tap(partitioned({name: range(50) for name in ABCDEFGH}, workers=4))
    run_tap(partitioned({name: [] for name in ABCDEFGH}, lambda: 1 / 0, workers=4))
    assert ours() == before


# ---- what goes out ------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [1, 7, 1000])
@pytest.mark.parametrize("strategy", ["end_of_sync", "every_n(5)", "every_seconds(0.01)", "on_page"])
def test_rows_of_a_partition_stay_in_order_and_no_state_is_ahead(page: int, strategy: str):
    source = {name: range(60) for name in ABCDEFGH}
    rng = random.Random(7)

    def rows(stream, partition):
        for one in given(source)(stream, partition):
            yield one
            if rng.random() < 0.05:
                time.sleep(0.002)

    tap = partitioned(source, rows, workers=4, bookmark_strategy=strategy, order=None)
    run = run_tap(tap, {"page_max_rows": page, "page_max_age_seconds": 0.02})
    assert all(numbers(run, name) == list(range(60)) for name in source)
    assert never_ahead(run, source)
    assert marks(run.states[-1]) == dict.fromkeys(source, 59)


def test_partitions_that_fail_among_others():
    def rows(partition):
        for number in range(20):
            if number == 10 and partition["account"] in "bdf":
                raise PermissionError(partition["account"])
            yield row(partition["account"], number)

    source = {name: range(20) for name in ABCDEFGH}
    run = run_tap(partitioned(source, rows, workers=4, bookmark_strategy="every_n(1)"), {"page_max_rows": 3})
    error = run.result.errors["rows"]
    assert isinstance(error, PartialError)
    assert sorted(one.where for one in error.failures) == [f"partition {key_of(name)}" for name in "bdf"]
    assert {name: len(numbers(run, name)) for name in source} == {n: 10 if n in "bdf" else 20 for n in source}
    assert marks(run.states[-1]) == {name: 9 if name in "bdf" else 19 for name in source}
    assert never_ahead(run, source)


@pytest.mark.parametrize("ends", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_user_code_that_exits_in_a_thread_fails_its_partition_alone(ends: type[BaseException]):
    together = threading.Barrier(2, timeout=WAIT)

    def rows(partition):
        together.wait()
        yield row(partition["account"], 1)
        if threading.current_thread() is not threading.main_thread():
            raise ends

    run = run_tap(partitioned("ab", rows, workers=2))
    assert len(run.records("rows")) == 2
    assert len(run.result.errors["rows"].failures) == 1
    assert len(marks(run.states[-1])) == 1


def test_a_bad_row_in_a_thread_whose_function_blocks_ends_that_partition_alone():
    """It is found by the timer, long before the function goes on."""
    found = threading.Event()

    def rows(partition):
        yield row(partition["account"], 1)
        if partition["account"] == "b":
            yield {"account": 5}
            found.wait(0.5)
        yield row(partition["account"], 2)

    run = run_tap(partitioned("abc", rows, workers=3), {"page_max_age_seconds": 0.05})
    assert {name: numbers(run, name) for name in "abc"} == {"a": [1, 2], "b": [1], "c": [1, 2]}
    assert [one.where for one in run.result.errors["rows"].failures] == [f"partition {key_of('b')}"]


def test_rows_of_a_thread_whose_function_blocks_come_out():
    """With a STATE that the strategy asks for. They are enough to outweigh its line, or it would be put off."""
    sink, came = MemorySink(), []

    def rows(partition):
        yield from (row(partition["account"], number) for number in range(10))
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            states = [m["value"] for m in list(sink.messages) if m["type"] == "STATE"]
            if states and set(marks(states[-1])) == set("abc"):
                came.append(partition["account"])
                break
            time.sleep(0.01)
        yield row(partition["account"], 10)

    tap = partitioned("abc", rows, workers=3, bookmark_strategy="every_seconds(0.01)")
    run_into(tap, {"page_max_age_seconds": 0.02}, sink)
    assert sorted(came) == list("abc")


@pytest.mark.parametrize("workers", [1, 4])
def test_more_failures_than_allowed_end_all_workers(workers: int):
    begun: list[str] = []
    others = ours()

    def rows(partition):
        begun.append(partition["account"])
        yield row(partition["account"], 1)
        raise PermissionError("403")

    run = run_tap(partitioned([str(n) for n in range(500)], rows, workers=workers), {"max_failures": 5})
    assert "more than 5 of its parts have failed" in str(run.result.errors["rows"])
    assert len(begun) < 100
    assert ours() <= others


# ---- what a thread is told ------------------------------------------------------------------------------


def test_each_thread_is_told_of_its_own_partition():
    seen: dict[str, list[Any]] = {}
    together = threading.Barrier(4, timeout=WAIT)

    def rows(stream, partition):
        account = partition["account"]
        for number in range(10):
            together.wait()
            seen.setdefault(account, []).append((tap.get_bookmark(), stream.bookmark, stream.partition["account"]))
            yield row(account, 100 + number)
            stream.state["at"] = stream.state.get("at", 0) + 1

    tap = partitioned("abcd", rows, workers=4)
    state = {"bookmarks": {"rows": {"partitions": {key_of(name): {"id": at} for at, name in enumerate("abcd")}}}}
    run = run_tap(tap, {"page_max_rows": 2}, state=state)
    assert not run.result.errors
    assert seen == {name: [(at, at, name)] * 10 for at, name in enumerate("abcd")}
    parts = run.states[-1]["bookmarks"]["rows"]["partitions"]
    assert [parts[key_of(name)]["stream_state"] for name in "abcd"] == [{"at": 10}] * 4


def test_helpers_that_read_the_context_work_in_each_thread():
    def rows(partition):
        for number in range(50):
            tap.emit_record(row(partition["account"], number))
        return []

    tap = partitioned("abcd", rows, workers=4)
    run = run_tap(tap, {"page_max_rows": 5})
    assert all(numbers(run, name) == list(range(50)) for name in "abcd")


def test_a_class_has_one_instance_for_all_threads():
    made: list[Any] = []
    together = threading.Barrier(3, timeout=WAIT)
    tap = burler.tap("tap-t")

    @tap.stream
    class Rows(burler.Stream):
        replication_key = "id"
        schema = FIELDS
        workers = 3

        def partitions(self):
            made.append(self)
            return [{"account": name} for name in "abc"]

        def sync(self, partition):
            together.wait()
            made.append(self)
            yield row(partition["account"], 1)

    run = run_tap(tap)
    assert len(run.records("rows")) == 3
    assert len(made) == 4
    assert len(set(map(id, made))) == 1


def test_hooks_run_one_at_a_time_in_the_thread_that_made_the_rows():
    inside, most = [0], [0]

    def rows(partition):
        for number in range(30):
            yield {**row(partition["account"], number), "text": str(threading.get_ident())}

    tap = partitioned("abcd", rows, workers=4)

    @tap.post_transform("rows")
    def transform(record):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.0002)
        inside[0] -= 1
        assert record["text"] == str(threading.get_ident())
        return record

    run = run_tap(tap, {"page_max_rows": 5, "page_max_age_seconds": 0.01})
    assert not run.result.errors
    assert most == [1]
    assert len(run.records("rows")) == 120


def test_partitions_are_asked_for_one_at_a_time():
    """A generator that two threads enter raises."""

    def accounts():
        for number in range(200):
            time.sleep(0.0001)
            yield {"account": str(number)}

    run = run_tap(partitioned(accounts, lambda partition: [row(partition["account"], 1)], workers=8))
    assert not run.result.errors
    assert len(run.records("rows")) == 200
