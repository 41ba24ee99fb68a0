"""One lock: who gets it, for how long, and what becomes of it when things go wrong."""

from __future__ import annotations

import datetime as dt
import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from faulty_store import (
    CONFLICT_FOR_NOTHING,
    FAULTS,
    LATE,
    LOST_REPLY,
    LOST_REQUEST,
    REFUSED_AFTER_SUCCESS,
    FaultyStore,
)

from burler.errors import LockLost, StorageError, UsageError
from burler.lake import LockSettings
from support.internals import lake_lock, lake_locks, lake_pace, local_store, lock_file, memory_store

PATH = "raw/t/s/GkZ4VgVbUrW/singerlake.lock"
START = dt.datetime(2024, 1, 2, 12, 0, 0, tzinfo=dt.UTC)


@dataclass
class Time:
    """Time that moves when somebody sleeps, or the test says so. Clocks on walls may be ``wrong``."""

    seconds: float = 0.0
    wrong: dt.timedelta = dt.timedelta()
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept.append(seconds)
        self.seconds += seconds

    def pace(self) -> lake_pace.Pace:
        return lake_pace.Pace(
            now=lambda: START + self.wrong + dt.timedelta(seconds=self.seconds),
            monotonic=lambda: self.seconds,
            sleep=self.sleep,
            uniform=lambda _low, high: high,
        )


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore(memory_store.MemoryStore())


def lock(store: Any, time: Time, writer_id: str = "me", *, epoch: int = 0, ttl: float = 300.0) -> lake_lock.StreamLock:
    return lake_lock.StreamLock(
        store, PATH, name="s", writer_id=writer_id, settings=LockSettings(ttl), pace=time.pace(), epoch=epoch
    )


def locks(store: Any, time: Time, writer_id: str = "me", **more: Any) -> lake_locks.Locks:
    settings = LockSettings(more.pop("ttl", 300.0), more.pop("timeout", 600.0))
    return lake_locks.Locks(store, writer_id=writer_id, settings=settings, pace=time.pace(), heartbeat=False, **more)


def wire(store: Any) -> dict[str, Any] | None:
    blob = store.read(PATH)
    return None if blob is None else json.loads(blob.data)


def put(store: Any, content: bytes) -> None:
    store.create(PATH, content)


def test_a_free_lock_is_taken_with_its_whole_content(store: FaultyStore, time: Time) -> None:
    assert lock(store, time).try_once()
    at = "2024-01-02T12:00:00.000000Z"
    assert wire(store) == {"writer-id": "me", "acquired": at, "updated": at, "epoch": 1, "ttl-ms": 300_000}
    assert [call.operation for call in store.calls].count("create") == 1


def test_of_two_one_gets_it_and_the_other_when_it_is_given_back(store: FaultyStore, time: Time) -> None:
    one, two = lock(store, time, "one"), lock(store, time, "two")
    assert one.try_once()
    assert not two.try_once()
    assert two.holder is not None
    assert two.holder.writer_id == "one"
    one.release()
    assert wire(store) is None
    assert two.try_once()


def test_eight_at_once_have_one_winner(tmp_path: Path, time: Time) -> None:
    for number in range(25):
        store = local_store.LocalStore(tmp_path / str(number))
        gate, won = threading.Barrier(8), []

        def race(name: str, store: local_store.LocalStore = store, gate: Any = gate, won: list[Any] = won) -> None:
            mine = lock(store, time, name)
            gate.wait()
            if mine.try_once():
                won.append(mine)

        threads = [threading.Thread(target=race, args=(f"w{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        won[0].confirm(1)
        won[0].release()


def test_a_heartbeat_changes_updated_and_keeps_the_rest(store: FaultyStore, time: Time) -> None:
    mine = lock(store, time)
    mine.try_once()
    mine.confirm(7)
    time.seconds = 30
    mine.renew()
    found = wire(store)
    assert found is not None
    assert (found["acquired"], found["updated"]) == ("2024-01-02T12:00:00.000000Z", "2024-01-02T12:00:30.000000Z")
    assert found["epoch"] == 7  # that of the claim


def test_a_clock_that_is_put_back_still_makes_a_new_content(store: FaultyStore, time: Time) -> None:
    mine = lock(store, time)
    mine.try_once()
    seen = set()
    for hours in (0, -5, -5, 3):
        time.wrong = dt.timedelta(hours=hours)
        mine.renew()
        seen.add(store.inner.read(PATH).data)  # type: ignore[union-attr]
    assert len(seen) == 4


def test_a_lock_that_changes_is_never_stale_whatever_its_times_say(store: FaultyStore, time: Time) -> None:
    holder_time, waiter = Time(wrong=dt.timedelta(days=-900)), lock(store, time, "waiter")
    holder = lock(store, holder_time, "holder")
    holder.try_once()
    for _ in range(20):
        assert not waiter.try_once()
        time.seconds += 299
        holder_time.seconds += 1
        holder.renew()
    assert not waiter.try_once()
    time.seconds += 299
    assert not waiter.try_once()
    time.seconds += 1
    assert waiter.try_once()


def test_a_takeover_counts_the_epoch_up_and_replaces_what_was_seen(store: FaultyStore, time: Time) -> None:
    dead, waiter = lock(store, time, "dead", epoch=4), lock(store, time, "waiter")
    dead.try_once()
    waiter.try_once()
    time.seconds += 300
    store.calls.clear()
    assert waiter.try_once()
    assert [call.operation for call in store.calls if call.operation in ("create", "replace", "delete")] == ["replace"]
    found = wire(store)
    assert found is not None
    assert (found["writer-id"], found["epoch"]) == ("waiter", 5)


def test_of_two_that_take_over_one_wins(store: FaultyStore, time: Time) -> None:
    lock(store, time, "dead").try_once()
    one, two = lock(store, time, "one"), lock(store, time, "two")
    one.try_once()
    two.try_once()
    time.seconds += 300
    between = FaultyStore(store.inner)
    two = lock(between, time, "two")
    two.try_once()
    time.seconds += 300

    def meanwhile(call: Any) -> None:
        if call.operation == "replace":
            between.before_call = lambda call: None
            assert one.try_once()

    between.before_call = meanwhile
    assert not two.try_once()
    found = wire(store)
    assert found is not None
    assert found["writer-id"] == "one"


def test_the_holder_says_how_long_it_may_be_silent(store: FaultyStore, time: Time) -> None:
    slow, waiter = lock(store, time, "slow", ttl=1000), lock(store, time, "waiter", ttl=10)
    slow.try_once()
    waiter.try_once()
    time.seconds += 999
    assert not waiter.try_once()
    time.seconds += 1
    assert waiter.try_once()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 5000,
        b"[]",
        b'{"writer-id":5,"epoch":"x","ttl-ms":-3,"updated":[]}',
        b'{"writer-id":"theirs","acquired":"2020-01-01T00:00:00Z","refreshed":"2020-01-01T00:00:00Z"}',
    ],
    ids=["empty", "no text", "deep", "a list", "wrong types", "another writer's"],
)
def test_any_content_is_a_lock_that_grows_stale(store: FaultyStore, time: Time, content: bytes) -> None:
    put(store, content)
    waiter = lock(store, time)
    assert not waiter.try_once()
    time.seconds += 299
    assert not waiter.try_once()
    time.seconds += 1
    assert waiter.try_once()
    waiter.confirm(1)


def test_refreshed_is_read_as_updated() -> None:
    found = lock_file.LockFile.from_bytes(b'{"writer-id":"w","refreshed":"2024-01-02T00:00:00Z"}')
    assert (found.updated, found.ttl_ms, found.epoch) == ("2024-01-02T00:00:00Z", None, 0)


def test_a_lock_that_was_taken_over_is_lost_and_left_alone(store: FaultyStore, time: Time) -> None:
    old, new = lock(store, time, "old"), lock(store, time, "new")
    old.try_once()
    new.try_once()
    time.seconds += 300
    new.try_once()
    with pytest.raises(LockLost, match="new has it") as caught:
        old.renew()
    assert caught.value.exit_code == 3
    old.release()  # must not take away what is another's
    old.renew()
    new.confirm(2)


def test_a_lock_that_somebody_removed_is_lost(store: FaultyStore, time: Time) -> None:
    mine = lock(store, time)
    mine.try_once()
    store.remove(PATH)
    with pytest.raises(LockLost, match="it is gone"):
        mine.renew()
    assert wire(store) is None


def test_confirm_sees_that_another_has_it(store: FaultyStore, time: Time) -> None:
    mine, other = lock(store, time), lock(store, time, "other")
    mine.try_once()
    other.try_once()
    time.seconds += 300
    other.try_once()
    with pytest.raises(LockLost, match="other has it"):
        mine.confirm(1)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", ["create", "take over", "renew", "release"])
def test_a_store_that_lies_about_one_write_costs_nothing(store: FaultyStore, time: Time, step: str, fault: str) -> None:
    mine = lock(store, time)
    if step == "create":
        store.fail("create", fault)
        assert any(mine.try_once() for _ in range(3))
    elif step == "take over":
        lock(FaultyStore(store.inner), time, "dead").try_once()
        mine.try_once()
        time.seconds += 300
        store.fail("replace", fault)
        assert any(mine.try_once() for _ in range(3))
    else:
        mine.try_once()
        store.fail("replace" if step == "renew" else "delete", fault)
    for _ in range(3):
        mine.renew()
        time.seconds += 30
    mine.confirm(1)
    found = wire(store)
    assert found is not None
    assert found["writer-id"] == "me"
    mine.release()
    assert wire(store) is None
    assert not store.unused()


@pytest.mark.parametrize("fault", [LOST_REPLY, REFUSED_AFTER_SUCCESS])
def test_a_write_that_succeeded_is_known_at_once(store: FaultyStore, time: Time, fault: str) -> None:
    store.fail("create", fault)
    assert lock(store, time).try_once()


@pytest.mark.parametrize("fault", [CONFLICT_FOR_NOTHING, LOST_REQUEST])
def test_a_heartbeat_that_did_not_arrive_is_sent_once_more(store: FaultyStore, time: Time, fault: str) -> None:
    mine = lock(store, time)
    mine.try_once()
    time.seconds = 30
    store.fail("replace", fault)
    mine.renew()
    found = wire(store)
    assert found is not None
    assert found["updated"] >= "2024-01-02T12:00:30.000000Z"


def test_a_store_that_fails_at_a_heartbeat_may_answer_the_next(store: FaultyStore, time: Time) -> None:
    mine = lock(store, time)
    mine.try_once()
    store.fail("replace", StorageError("the network is gone"))
    with pytest.raises(StorageError, match="network"):
        mine.renew()
    assert mine.held
    mine.renew()


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf")])
def test_settings_that_can_not_be(ttl: float) -> None:
    with pytest.raises(UsageError, match="lock_ttl_seconds"):
        LockSettings(ttl_seconds=ttl)
    with pytest.raises(UsageError, match="lock_timeout_seconds"):
        LockSettings(timeout_seconds=float("nan"))


# --- a local disk: the kernel knows who lives


def test_a_holder_that_is_gone_is_followed_at_once(tmp_path: Path, time: Time) -> None:
    store = local_store.LocalStore(tmp_path)
    dead = lock(store, time, "dead")
    dead.try_once()
    assert dead._hold is not None
    dead._hold.release()  # what the kernel does when a process ends
    assert lock(store, time, "next").try_once()


def test_a_holder_that_lives_is_waited_for(tmp_path: Path, time: Time) -> None:
    store = local_store.LocalStore(tmp_path)
    living, waiter = lock(store, time, "living"), lock(store, time, "waiter")
    living.try_once()
    found = wire(store)
    assert found is not None
    assert found["machine"] == lock_file.this_machine()
    assert not waiter.try_once()
    time.seconds += 300  # it lives, and does not beat: it is stopped, or its thread is dead
    assert waiter.try_once()
    found = wire(store)
    assert found is not None
    assert "machine" not in found  # the other has the sign of life still: nobody may judge us by it
    assert not lock(store, time, "third").try_once()


def test_a_holder_elsewhere_is_waited_for_although_no_sign_of_it_is_here(tmp_path: Path, time: Time) -> None:
    store = local_store.LocalStore(tmp_path)
    put(store, lock_file.LockFile("far-away", ttl_ms=300_000, machine="another boot").to_bytes())
    waiter = lock(store, time)
    assert not waiter.try_once()
    time.seconds += 300
    assert waiter.try_once()


def test_a_lock_without_a_machine_is_waited_for(tmp_path: Path, time: Time) -> None:
    store = local_store.LocalStore(tmp_path)
    put(store, lock_file.LockFile("foreign", ttl_ms=300_000).to_bytes())
    assert not lock(store, time).try_once()


# --- all locks of a writer


def test_a_wait_ends_when_the_lock_is_free(store: FaultyStore, time: Time, caplog: pytest.LogCaptureFixture) -> None:
    first, second = locks(store, time, "first"), locks(store, time, "second")
    first.acquire(PATH, "s")
    told: list[str] = []

    def later(call: Any) -> None:
        if call.operation == "read" and time.seconds > 200:
            store.before_call = lambda call: None
            first.release_all()
        elif time.seconds // 30 > len(told):
            told.append("beat")
            first.beat()

    store.before_call = later
    with caplog.at_level("INFO", logger="burler.lake"):
        second.acquire(PATH, "s", before_wait=lambda: told.append("settled"))
    assert told[0] == "settled"
    assert 200 < time.seconds < 210
    lines = [message for message in caplog.messages if "waiting" in message]
    assert len(lines) == 4  # at once, then each minute
    assert all("first (since 2024-01-02T12:00:00.000000Z" in line for line in lines)
    assert max(time.slept) <= 1.0


def test_a_wait_that_is_too_long_names_the_holder_and_the_cure(store: FaultyStore, time: Time) -> None:
    first, second = locks(store, time, "first", ttl=10_000), locks(store, time, "second", timeout=600)
    first.acquire(PATH, "s")
    with pytest.raises(
        lake_lock.LockTimeout, match=r"stream 's': waited 600 s for the lock of first \(since 2024"
    ) as caught:
        second.acquire(PATH, "s")
    assert caught.value.exit_code == 3
    assert len(str(caught.value).splitlines()) <= 3
    assert PATH in str(caught.value)
    assert len(second) == 0


def test_no_time_to_wait_is_one_look(store: FaultyStore, time: Time) -> None:
    locks(store, time, "first").acquire(PATH, "s")
    with pytest.raises(lake_lock.LockTimeout):
        locks(store, time, "second", timeout=0).acquire(PATH, "s")
    assert time.seconds == 0


def test_a_wait_ends_when_the_run_is_to_end(store: FaultyStore, time: Time) -> None:
    locks(store, time, "first").acquire(PATH, "s")
    second = locks(store, time, "second", should_stop=lambda: time.seconds > 5)
    with pytest.raises(lake_lock.WaitStopped, match="lock of first"):
        second.acquire(PATH, "s")
    assert time.seconds < 7


def test_what_a_heartbeat_finds_out_the_next_call_hears(store: FaultyStore, time: Time) -> None:
    mine, other = locks(store, time, "mine"), lock(store, time, "other")
    mine.acquire(PATH, "s")
    mine.check()
    other.try_once()
    time.seconds += 300
    other.try_once()
    mine.beat()
    with pytest.raises(LockLost, match="other has it"):
        mine.check()
    with pytest.raises(LockLost, match="other has it"):
        mine.acquire(PATH + "2", "s2")


def test_a_heartbeat_that_fails_is_told_once_and_tried_again(
    store: FaultyStore, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    mine = locks(store, time)
    mine.acquire(PATH, "s")
    store.fail("replace", StorageError("no answer"), times=3)
    with caplog.at_level("WARNING", logger="burler.lake"):
        for _ in range(4):
            time.seconds += 30
            mine.beat()
    mine.check()
    assert len(caplog.messages) == 1
    found = wire(store)
    assert found is not None
    assert found["updated"] == "2024-01-02T12:02:00.000000Z"


def test_a_lock_that_can_not_be_given_back_is_told(
    store: FaultyStore, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    mine = locks(store, time)
    mine.acquire(PATH, "s")
    store.fail("delete", StorageError("no answer"))
    with caplog.at_level("WARNING", logger="burler.lake"):
        mine.release_all()
    assert "grows stale: no answer" in caplog.text
    assert not mine.holds(PATH)


def test_the_thread_beats_and_ends(tmp_path: Path) -> None:
    store = FaultyStore(local_store.LocalStore(tmp_path))
    beaten = threading.Event()
    store.after_call = lambda call: beaten.set() if call.operation == "replace" else None
    mine = lake_locks.Locks(store, writer_id="me", settings=LockSettings(ttl_seconds=0.2))
    mine.acquire(PATH, "s")
    assert beaten.wait(30)
    thread = mine._thread
    assert thread is not None
    mine.release_all()
    assert not thread.is_alive()
    beaten.clear()
    mine.acquire(PATH, "s")  # and begins again
    assert beaten.wait(30)
    mine.release_all()


def test_a_writer_that_was_dropped_without_an_end_does_not_beat_for_ever(tmp_path: Path) -> None:
    mine = lake_locks.Locks(local_store.LocalStore(tmp_path), writer_id="me", settings=LockSettings(ttl_seconds=0.1))
    mine.acquire(PATH, "s")
    thread = mine._thread
    assert thread is not None
    del mine
    thread.join(30)
    assert not thread.is_alive()


def test_the_lock_is_deleted_only_with_the_tag_that_was_read(store: FaultyStore, time: Time) -> None:
    """A holder that was paused right before it gives its lock back must not take away the next one's."""
    mine, other = lock(store, time), lock(FaultyStore(store.inner), time, "other")
    mine.try_once()
    other.try_once()
    time.seconds += 300

    def meanwhile(call: Any) -> None:
        if call.operation == "delete":
            store.before_call = lambda call: None
            assert other.try_once()

    store.before_call = meanwhile
    mine.release()
    other.confirm(2)


@pytest.mark.parametrize("fault", [LATE, LOST_REPLY, LOST_REQUEST, REFUSED_AFTER_SUCCESS, CONFLICT_FOR_NOTHING])
def test_two_faults_in_a_row_at_a_heartbeat(store: FaultyStore, time: Time, fault: str) -> None:
    mine = lock(store, time)
    mine.try_once()
    store.fail("replace", fault, times=2)
    mine.renew()
    mine.renew()
    mine.confirm(1)
    mine.release()
    assert wire(store) is None
