"""A store that is gone for good: the run ends soon, however many locks it holds."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from faulty_store import FaultyStore
from memory_lakes import in_memory

from burler.errors import StorageError
from burler.lake import LakeDriver, LockSettings
from support.internals import clocks, lake_locks

STREAMS = 30


class Patience:
    """A store that notes how long each of its calls would be tried."""

    def __init__(self) -> None:
        self.store = FaultyStore(in_memory())
        self.seconds: list[float] = []
        self.store.before_call = lambda _call: self.seconds.append(clocks.patience_left())


def test_after_a_failure_the_store_is_not_asked_once_a_lock(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    seen = Patience()
    lake.store = seen.store
    writer = lake.writer()
    for number in range(STREAMS):
        writer.schema(lake.schema(f"stream {number}"))
        writer.records(lake.page(f"stream {number}", 1))
    assert set(seen.seconds) == {float("inf")}
    seen.seconds.clear()
    seen.store.fail("*", StorageError("gone"), times=-1)
    with caplog.at_level(logging.WARNING, logger="burler.lake"), pytest.raises(StorageError, match="gone"):
        writer.flush()
    assert 0 < len(seen.seconds) < 5
    assert seen.seconds[-1] == clocks.LAST_SECONDS and clocks.patience_left() == float("inf")
    given_up = [one.getMessage() for one in caplog.records if "grow" in one.getMessage()]
    assert len(given_up) == 2 and f"{STREAMS - 1} more locks" in given_up[1]
    assert lake.states == []


def test_a_run_that_ends_well_gives_its_locks_back_with_all_patience(lake: Any) -> None:
    seen = Patience()
    lake.store = seen.store
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1))
    assert set(seen.seconds) == {float("inf")}
    assert [file for file in seen.store.files("raw") if file.path.endswith(".lock")] == []


def test_a_driver_ends_soon_as_well(lake: Any) -> None:
    seen = Patience()
    with pytest.raises(StorageError, match="mine"), LakeDriver(seen.store, "tap-x", clock=lake.clock) as driver:
        for number in range(STREAMS):
            driver.begin(lake.schema(f"stream {number}"))
        seen.seconds.clear()
        seen.store.fail("*", StorageError("gone"), times=-1)
        raise StorageError("mine")
    assert seen.seconds == [clocks.LAST_SECONDS]


def test_one_lock_that_is_slow_to_renew_does_not_starve_the_others(lake: Any) -> None:
    for ttl_seconds, most in ((300.0, 10.0), (20.0, 2.0)):
        seen = Patience()
        locks = lake_locks.Locks(
            seen.store, writer_id="me", settings=LockSettings(ttl_seconds), clock=lake.clock, heartbeat=False
        )
        for name in ("a", "b"):
            locks.wait(locks.attempt(f"raw/t/{name}/h/singerlake.lock", name))
        seen.seconds.clear()
        seen.store.fail("replace", StorageError("slow"), path="*/a/*")
        locks.beat()
        assert set(seen.seconds) == {most} and len(seen.seconds) == 2
        locks.check()
        assert locks.release_all()
