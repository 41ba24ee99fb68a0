"""The locks of a writer: who gets one, for how long, and what becomes of it when things go wrong."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from faulty_store import (
    CONFLICT_FOR_NOTHING,
    FAULTS,
    LOST_REPLY,
    LOST_REQUEST,
    REFUSED_AFTER_SUCCESS,
    FaultyStore,
)
from memory_lakes import in_memory

from burler.errors import BurlerError, LockLost, StorageError, UsageError
from burler.lake import LockSettings, open_store
from support.internals import clocks, lake_locks

PATH = "raw/t/s/GkZ4VgVbUrW/singerlake.lock"
START = dt.datetime(2024, 1, 2, 12, 0, 0, tzinfo=dt.UTC)
AT = "2024-01-02T12:00:00.000000Z"


@dataclass
class Time(clocks.Clock):
    """Time that moves when somebody sleeps, or the test says so. Clocks on walls may be ``wrong``. ``plan``: what
    somebody else does once it is so late."""

    seconds: float = 0.0
    wrong: dt.timedelta = dt.timedelta()
    slept: list[float] = field(default_factory=list)
    plan: list[tuple[float, Callable[[], object]]] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept.append(seconds)
        self.seconds += seconds
        while self.plan and self.plan[0][0] <= self.seconds:
            self.plan.pop(0)[1]()

    def now(self) -> dt.datetime:
        return START + self.wrong + dt.timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def uniform(self, low: float, high: float) -> float:
        return high


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore(in_memory())


def locks(store: Any, time: Time, writer_id: str = "me", **more: Any) -> lake_locks.Locks:
    settings = LockSettings(more.pop("ttl", 300.0), more.pop("timeout", 6000.0))
    return lake_locks.Locks(store, writer_id=writer_id, settings=settings, clock=time, heartbeat=False, **more)


def taken(store: Any, time: Time, writer_id: str = "me", *, epoch: int = 0, **more: Any) -> lake_locks.Locks:
    """A writer that has the lock, after a wait if need be."""
    mine = locks(store, time, writer_id, **more)
    mine.wait(mine.attempt(PATH, "s", epoch=epoch))
    return mine


def is_held_by(holder: str, store: Any, time: Time) -> None:
    with pytest.raises(LockLost, match=f"for the lock of {holder}"):
        taken(store, time, "who has no time", timeout=0)


def wire(store: Any) -> dict[str, Any]:
    blob = store.read(PATH)
    assert blob is not None
    return dict(json.loads(blob.data))


def test_a_free_lock_is_taken_with_its_whole_content_and_renewed(store: FaultyStore, time: Time) -> None:
    mine = taken(store, time)
    whole = {"writer-id": "me", "acquired": AT, "updated": AT, "epoch": 1, "ttl-ms": 300_000}
    assert wire(store) == whole
    assert [call.operation for call in store.calls].count("create") == 1
    mine.confirm(PATH, 7)
    time.seconds = 30
    mine.beat()
    assert wire(store) == {**whole, "updated": "2024-01-02T12:00:30.000000Z", "epoch": 7}  # that of the claim


def test_of_two_one_gets_it_and_the_other_when_it_is_given_back(store: FaultyStore, time: Time) -> None:
    one = taken(store, time, "one")
    is_held_by("one", store, time)
    assert time.seconds == 0  # no time to wait is one look
    one.release_all()
    assert store.read(PATH) is None
    taken(store, time, "two", timeout=0)


def test_eight_at_once_have_one_winner(tmp_path: Path, time: Time) -> None:
    for number in range(10):
        store = open_store(str(tmp_path / str(number)))
        gate, won = threading.Barrier(8), []

        def race(name: str, store: Any = store, gate: Any = gate, won: list[Any] = won) -> None:
            mine = locks(store, time, name, timeout=0)
            gate.wait()
            try:
                mine.wait(mine.attempt(PATH, "s"))
            except LockLost:
                return
            won.append(mine)

        threads = [threading.Thread(target=race, args=(f"w{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        won[0].confirm(PATH, 1)
        assert won[0].release_all()


def test_a_clock_that_is_put_back_still_makes_a_new_content(store: FaultyStore, time: Time) -> None:
    mine = taken(store, time)
    seen = set()
    for hours in (0, -5, -5, 3):
        time.wrong = dt.timedelta(hours=hours)
        mine.beat()
        seen.add(store.inner.read(PATH).data)  # type: ignore[union-attr]
    assert len(seen) == 4


def test_a_lock_that_changes_is_never_stale_whatever_its_times_say(store: FaultyStore, time: Time) -> None:
    holder = taken(store, Time(wrong=dt.timedelta(days=-900)), "holder")
    time.plan = [(298.0 * n, holder.beat) for n in range(1, 6)]
    taken(store, time, "waiter")
    assert 5 * 298 + 300 <= time.seconds < 5 * 298 + 303
    holder.beat()
    with pytest.raises(LockLost, match="waiter has it"):
        holder.check()


def test_a_takeover_counts_the_epoch_up_and_replaces_what_was_seen(store: FaultyStore, time: Time) -> None:
    taken(store, time, "dead", epoch=4)
    store.calls.clear()
    taken(store, time, "waiter")
    assert [call.operation for call in store.calls if call.operation in ("create", "replace", "delete")] == ["replace"]
    assert (wire(store)["writer-id"], wire(store)["epoch"]) == ("waiter", 5)


def test_of_two_that_take_over_one_wins(store: FaultyStore, time: Time) -> None:
    taken(store, time, "dead")

    def meanwhile(call: Any) -> None:
        if call.operation == "replace":
            store.before_call = lambda call: None
            taken(store.inner, time, "one")

    store.before_call = meanwhile
    with pytest.raises(LockLost, match="for the lock of one"):
        taken(store, time, "two", timeout=700)
    assert wire(store)["writer-id"] == "one"


def test_the_holder_says_how_long_it_may_be_silent(store: FaultyStore, time: Time) -> None:
    taken(store, time, "slow", ttl=1000)
    taken(store, time, "waiter", ttl=10)
    assert 1000 <= time.seconds < 1002


CONTENTS = {
    "empty": b"",
    "no text": b"\xff\xfe",
    "deep": b"[" * 5000,
    "a list": b"[]",
    "wrong types": b'{"writer-id":5,"epoch":"x","ttl-ms":-3,"updated":[]}',
    "another writer's": b'{"writer-id":"theirs","acquired":"2020-01-01T00:00:00Z","refreshed":"2020-01-02T00:00:00Z"}',
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_any_content_is_a_lock_that_grows_stale(
    store: FaultyStore, time: Time, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store.create(PATH, content)
    with caplog.at_level("INFO", logger="burler.lake"):
        mine = taken(store, time)
    assert 300 <= time.seconds < 302
    mine.confirm(PATH, 1)
    if b"theirs" in content:
        assert "theirs (since 2020-01-01T00:00:00Z, last heartbeat 2020-01-02T00:00:00Z)" in caplog.messages[0]


def test_a_lock_that_was_taken_over_is_lost_and_left_alone(store: FaultyStore, time: Time) -> None:
    old = taken(store, time, "old")
    new = taken(store, time, "new")
    old.beat()
    with pytest.raises(LockLost, match="new has it") as caught:
        old.check()
    assert caught.value.exit_code == 3
    with pytest.raises(LockLost, match="new has it"):
        old.wait(old.attempt(PATH + "2", "s2"))
    old.release_all()  # must not take away what is another's
    new.beat()
    new.check()
    new.confirm(PATH, 2)


def test_confirm_sees_that_another_has_it(store: FaultyStore, time: Time) -> None:
    mine = taken(store, time)
    taken(store, time, "other")
    with pytest.raises(LockLost, match="other has it"):
        mine.confirm(PATH, 1)


def test_a_lock_that_somebody_removed_is_lost(store: FaultyStore, time: Time) -> None:
    mine = taken(store, time)
    store.remove(PATH)
    mine.beat()
    with pytest.raises(LockLost, match="it is gone"):
        mine.check()
    assert store.read(PATH) is None


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("step", ["create", "take over", "renew", "release"])
def test_a_store_that_lies_about_a_write_costs_nothing(step: str, times: int) -> None:
    for fault in FAULTS:
        store, time = FaultyStore(in_memory()), Time()
        if step == "create":
            store.fail("create", fault, times=times)
            mine = taken(store, time)
            if times == 1 and fault in (LOST_REPLY, REFUSED_AFTER_SUCCESS):
                assert time.seconds == 0  # it is known at once that it was done
        elif step == "take over":
            taken(store.inner, time, "dead")
            store.fail("replace", fault, times=times)
            mine = taken(store, time)
        else:
            mine = taken(store, time)
            store.fail("replace" if step == "renew" else "delete", fault, times=times)
        for _ in range(3):
            time.seconds += 30
            mine.beat()
            if times == 1 and fault in (CONFLICT_FOR_NOTHING, LOST_REQUEST):
                assert wire(store)["updated"] >= time.now().strftime("%Y-%m-%dT%H:%M:%SZ")[:-1]
        mine.check()
        mine.confirm(PATH, 1)
        assert wire(store)["writer-id"] == "me"
        assert mine.release_all() or times == 2
        assert times == 2 or store.read(PATH) is None
        assert times == 2 or not store.unused()


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf")])
def test_settings_that_can_not_be(ttl: float) -> None:
    with pytest.raises(UsageError, match="lock_ttl_seconds"):
        LockSettings(ttl_seconds=ttl)
    with pytest.raises(UsageError, match="lock_timeout_seconds"):
        LockSettings(timeout_seconds=float("nan"))


# --- a local disk: the kernel knows who lives


def test_a_holder_that_lives_is_waited_for(tmp_path: Path, time: Time) -> None:
    store = open_store(str(tmp_path))
    living = taken(store, time, "living")
    assert wire(store)["machine"]
    waiter = taken(store, time, "waiter")
    assert 300 <= time.seconds < 302  # it lives, and does not beat: it is stopped, or its thread is dead
    assert "machine" not in wire(store)  # the other has the sign of life still: nobody may judge us by it
    is_held_by("waiter", store, time)
    living.beat()
    waiter.confirm(PATH, 2)


@pytest.mark.parametrize("more", ['"machine":"another boot"', '"updated":""'], ids=["elsewhere", "of no machine"])
def test_a_holder_of_which_no_sign_is_here_is_waited_for(tmp_path: Path, time: Time, more: str) -> None:
    store = open_store(str(tmp_path))
    store.create(PATH, b'{"writer-id":"far-away","ttl-ms":300000,%s}' % more.encode())
    taken(store, time)
    assert 300 <= time.seconds < 302


# --- waits, heartbeats, and the end


def test_a_wait_ends_when_the_lock_is_free(store: FaultyStore, time: Time, caplog: pytest.LogCaptureFixture) -> None:
    first, second = taken(store, time, "first"), locks(store, time, "second")
    time.plan = [*((30.0 * n, first.beat) for n in range(1, 7)), (200.0, first.release_all)]
    with caplog.at_level("INFO", logger="burler.lake"):
        second.wait(second.attempt(PATH, "s"))
    assert 200 < time.seconds < 210
    lines = [message for message in caplog.messages if "waiting" in message]
    assert len(lines) == 4  # at once, then each minute
    assert all("first (since 2024-01-02T12:00:00.000000Z" in line for line in lines)
    assert max(time.slept) <= 1.0


def test_a_wait_that_is_too_long_names_the_holder_and_the_cure(store: FaultyStore, time: Time) -> None:
    taken(store, time, "first", ttl=10_000)
    second = locks(store, time, "second", timeout=600)
    with pytest.raises(LockLost, match=r"stream 's': waited 600 s for the lock of first \(since 2024") as caught:
        second.wait(second.attempt(PATH, "s"))
    assert caught.value.exit_code == 3
    assert len(str(caught.value).splitlines()) <= 3
    assert PATH in str(caught.value)
    assert len(second) == 0


def test_a_wait_ends_when_the_run_is_to_end(store: FaultyStore, time: Time) -> None:
    taken(store, time, "first")
    with pytest.raises(BurlerError, match="stopped while waiting for the lock of first"):
        taken(store, time, "second", should_stop=lambda: time.seconds > 5)
    assert time.seconds < 7


def test_a_heartbeat_that_fails_is_told_once_and_tried_again(
    store: FaultyStore, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    mine = taken(store, time)
    store.fail("replace", StorageError("no answer"), times=3)
    with caplog.at_level("WARNING", logger="burler.lake"):
        for _ in range(4):
            time.seconds += 30
            mine.beat()
    mine.check()
    assert len(caplog.messages) == 1
    assert wire(store)["updated"] == "2024-01-02T12:02:00.000000Z"


def test_a_lock_that_can_not_be_given_back_is_told(
    store: FaultyStore, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    mine = taken(store, time)
    store.fail("delete", StorageError("no answer"))
    with caplog.at_level("WARNING", logger="burler.lake"):
        assert not mine.release_all()
    assert "grows stale: no answer" in caplog.text
    assert not mine.holds(PATH)


def test_the_lock_is_deleted_only_with_the_tag_that_was_read(store: FaultyStore, time: Time) -> None:
    """A holder that was paused right before it gives its lock back must not take away the next one's."""
    mine, others = taken(store, time), []

    def meanwhile(call: Any) -> None:
        if call.operation == "delete":
            store.before_call = lambda call: None
            others.append(taken(store.inner, time, "other"))

    store.before_call = meanwhile
    mine.release_all()
    others[0].confirm(PATH, 2)
    assert others[0].holds(PATH)


def beating() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "burler-lake-locks"]


def test_the_thread_beats_and_ends(tmp_path: Path) -> None:
    store = FaultyStore(open_store(str(tmp_path)))
    beaten = threading.Event()
    store.after_call = lambda call: beaten.set() if call.operation == "replace" else None
    mine, before = lake_locks.Locks(store, writer_id="me", settings=LockSettings(ttl_seconds=0.2)), beating()
    for _ in range(2):  # and begins again
        mine.wait(mine.attempt(PATH, "s"))
        assert beaten.wait(30)
        mine.release_all()
        assert set(beating()) <= set(before)
        beaten.clear()


def test_a_writer_that_was_dropped_without_an_end_does_not_beat_for_ever(tmp_path: Path) -> None:
    before = beating()
    mine = lake_locks.Locks(open_store(str(tmp_path)), writer_id="me", settings=LockSettings(ttl_seconds=0.1))
    mine.wait(mine.attempt(PATH, "s"))
    (thread,) = set(beating()) - set(before)
    del mine
    thread.join(30)
    assert not thread.is_alive()
