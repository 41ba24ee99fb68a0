"""What writers do to each other: turns, takeovers, waits, and what is out when one has to go."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from faulty_store import FaultyStore
from memory_lakes import in_memory

from burler.errors import BurlerError, LockLost, StorageError
from burler.lake import LakeWriter, LockSettings, ingest
from support.internals import clocks, hashing, lake_locks, layout


def locks_of(lake: Any) -> list[str]:
    """Streams that are locked, by the writer that has the lock."""
    found = sorted(lake.path.glob("raw/tap-x/*/*/singerlake.lock"))
    return [f"{path.parts[-3]}: {json.loads(path.read_bytes())['writer-id']}" for path in found]


def send(lake: Any, writer: LakeWriter, *ids: int, stream: str = "users", **fields: Any) -> None:
    writer.schema(lake.schema(stream, **fields))
    writer.records(lake.page(stream, *ids))


def epochs(lake: Any, stream: str = "users") -> list[int]:
    return [entry["epoch"] for entry in json.loads(lake.manifest_path(stream).read_bytes())["writers"].values()]


def held_by_another(lake: Any, stream: str = "users", *, ttl: float = 300.0) -> lake_locks.Locks:
    """The lock of a stream's usual schema in somebody else's hands."""
    path = layout.lock_path("tap-x", stream, hashing.schema_hash(hashing.schema_line(lake.schema(stream))))
    other = lake_locks.Locks(
        lake.store, writer_id="other", settings=LockSettings(ttl), clock=lake.clock, heartbeat=False
    )
    other.wait(other.attempt(path, stream))
    return other


def test_a_lock_is_there_from_the_first_byte_to_the_last_commit(lake: Any) -> None:
    writer = lake.writer(writer_id="me", max_file_records=2)
    writer.schema(lake.schema())
    assert locks_of(lake) == []
    writer.records(lake.page("users", 1, 2, 3))
    assert locks_of(lake) == ["users: me"]
    writer.flush()
    assert locks_of(lake) == ["users: me"]
    writer.close()
    assert locks_of(lake) == []
    assert epochs(lake) == [1]


def test_the_lock_is_taken_before_the_claim_and_read_once_more_after_it(lake: Any) -> None:
    lake.store = FaultyStore(lake.store)
    writer = lake.writer()
    writer.schema(lake.schema())
    lake.store.calls.clear()
    writer.records(lake.page("users", 1))
    calls = [(call.operation, call.path.rpartition("/")[2]) for call in lake.store.calls]
    taken, claimed = calls.index(("create", "singerlake.lock")), calls.index(("create", "manifest.json"))
    read_again = len(calls) - 1 - calls[::-1].index(("read", "singerlake.lock"))
    assert taken < claimed < read_again < [operation for operation, _ in calls].index("new_file")


def test_an_error_gives_the_locks_back(lake: Any) -> None:
    with pytest.raises(ZeroDivisionError), lake.writer() as writer:
        send(lake, writer, 1)
        raise ZeroDivisionError
    assert locks_of(lake) == []


def test_under_tail_a_lock_goes_with_each_commit_and_comes_with_each_file(lake: Any) -> None:
    one, two = lake.writer(writer_id="one", tail=True), lake.writer(writer_id="two", tail=True)
    for number in range(4):
        writer = (one, two)[number // 2]
        send(lake, writer, number)
        assert locks_of(lake) == [f"users: {('one', 'two')[number // 2]}"]
        writer.flush()
        assert locks_of(lake) == []
    assert epochs(lake) == [2]  # a claim that still stands is not made again
    send(lake, one, 4)
    one.close()
    two.close()
    assert epochs(lake) == [3]
    assert lake.ids() == [0, 1, 2, 3, 4]


def test_under_tail_a_lock_goes_behind_the_commit(lake: Any) -> None:
    """Who gets it before would claim, and the commit would be refused."""
    lake.store = FaultyStore(lake.store)
    writer = lake.writer(tail=True)
    send(lake, writer, 1)
    lake.store.calls.clear()
    writer.flush()
    calls = [(call.operation, call.path.rpartition("/")[2]) for call in lake.store.calls]
    assert calls.index(("replace", "manifest.json")) < calls.index(("delete", "singerlake.lock"))
    writer.close()


def test_a_writer_that_must_wait_first_commits_and_gives_back_what_it_has(lake: Any) -> None:
    """Two writers that each wait for what the other has would wait for ever."""
    other = held_by_another(lake, "orders", ttl=5)
    seen: list[Any] = []

    def sleep(seconds: float) -> None:
        seen.append((locks_of(lake), list(lake.states)))
        lake.clock.forward(seconds)

    lake.clock.sleep = sleep
    writer = lake.writer(writer_id="me", clock=lake.clock)
    send(lake, writer, 1)
    writer.state(lake.state("users are out"))
    send(lake, writer, 2, stream="orders")
    assert seen[0] == (["orders: other"], [{"at": "users are out"}])
    assert locks_of(lake) == ["orders: me"]
    writer.records(lake.page("users", 3))
    writer.close()
    assert (lake.ids(), lake.ids("orders")) == ([1, 3], [2])
    other.beat()
    with pytest.raises(LockLost):
        other.check()


def test_two_writers_of_the_same_streams_in_another_order_both_come_to_an_end(lake: Any) -> None:
    def run(first: str, second: str, base: int) -> None:
        try:
            with lake.writer(writer_id=first, max_file_records=1, clock=clocks.Clock()) as writer:
                for number in range(base, base + 8):
                    for stream in (first, second):
                        send(lake, writer, number, stream=stream)
        except BaseException as error:
            failures.append(error)

    failures: list[BaseException] = []
    threads = [threading.Thread(target=run, args=given) for given in (("a", "b", 0), ("b", "a", 100))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    for stream in ("a", "b"):
        assert sorted(lake.ids(stream)) == [*range(8), *range(100, 108)]
    assert locks_of(lake) == []


def test_a_wait_that_is_too_long_ends_the_run_with_what_is_committed_out(lake: Any) -> None:
    held_by_another(lake, "orders", ttl=1000)
    writer = lake.writer(clock=lake.impatient(), locks=LockSettings(timeout_seconds=20))
    send(lake, writer, 1)
    writer.state(lake.state(1))
    with pytest.raises(LockLost, match="stream 'orders': waited 20 s for the lock of other"):
        send(lake, writer, 2, stream="orders")
    writer.close()
    assert (lake.ids(), lake.states) == ([1], [{"at": 1}])
    assert locks_of(lake) == ["orders: other"]


def test_a_writer_that_lost_its_lock_hears_of_it_at_its_next_call(lake: Any) -> None:
    writer = lake.writer(writer_id="slow", locks=LockSettings(ttl_seconds=0.2))
    send(lake, writer, 1)
    writer.state(lake.state(1))
    (lock,) = lake.path.glob("raw/*/*/*/singerlake.lock")
    lock.unlink()
    with pytest.raises(LockLost, match="it is gone"):
        for _ in range(3000):
            writer.tick()
            threading.Event().wait(0.01)
    writer.close()
    assert lake.states == []
    assert lake.files() == []


def test_a_manifest_made_anew_takes_the_commit_of_who_has_the_lock_only(lake: Any) -> None:
    writer = lake.writer(writer_id="slow")
    send(lake, writer, 1)
    lake.manifest_path().unlink()
    (lock,) = lake.path.glob("raw/*/*/*/singerlake.lock")
    lock.write_text('{"writer-id":"quick"}')
    with pytest.raises(LockLost, match="quick has it"):
        writer.flush()


def test_many_streams_hold_many_locks_only_up_to_a_bound(lake: Any) -> None:
    writer = lake.writer(max_open_files=5)
    for number in range(20):
        send(lake, writer, number, stream=f"s{number}")
        assert len(locks_of(lake)) <= 6
    for number in range(20):
        writer.records(lake.page(f"s{number}", 100 + number))
    writer.close()
    assert [lake.ids(f"s{number}") for number in range(20)] == [[number, 100 + number] for number in range(20)]


def test_a_store_without_conditions_has_one_loud_warning_and_no_locks(
    lake: Any, caplog: pytest.LogCaptureFixture
) -> None:
    lake.store = FaultyStore(in_memory(), conditional=False)
    with caplog.at_level("WARNING", logger="burler.lake"), lake.writer() as writer:
        for stream in ("a", "b"):
            send(lake, writer, 1, stream=stream)
    (warning,) = caplog.messages
    assert "KEEPS NO CONDITIONS" in warning
    assert "one writer in this lake at a time" in warning
    assert not [call for call in lake.store.calls if call.path.endswith("singerlake.lock")]
    assert lake.ids("a") == [1]


def test_a_lock_that_can_not_be_given_back_does_not_fail_what_is_committed(
    lake: Any, caplog: pytest.LogCaptureFixture
) -> None:
    lake.store = FaultyStore(in_memory())
    with caplog.at_level("WARNING", logger="burler.lake"), lake.writer() as writer:
        send(lake, writer, 1)
        writer.state(lake.state(1))
        lake.store.fail("delete", StorageError("no answer"))
    assert "could not be given back" in caplog.text
    assert lake.states == [{"at": 1}]


# --- told to stop while it waits


def lines(*messages: Any) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def test_a_run_of_any_tap_that_is_told_to_stop_in_a_wait_keeps_what_came_before(lake: Any, tmp_path: Any) -> None:
    held_by_another(lake, "orders")
    source = tmp_path / "in"
    source.write_bytes(
        lines(
            {"type": "SCHEMA", **lake.schema().to_wire()},
            {"type": "RECORD", "stream": "users", "record": {"id": 1}},
            {"type": "STATE", "value": {"at": 1}},
            {"type": "SCHEMA", **lake.schema("orders").to_wire()},
            {"type": "RECORD", "stream": "orders", "record": {"id": 2}},
            {"type": "STATE", "value": {"at": 2}},
            {"type": "RECORD", "stream": "users", "record": {"id": 3}},
            {"type": "STATE", "value": {"at": 3}},
        )
    )
    told: list[str] = []
    writer = lake.writer(clock=lake.impatient(), should_stop=lambda: True)
    with source.open("rb") as opened:
        ingest(opened, writer, warn=told.append)
    assert (lake.states, lake.ids()) == ([{"at": 1}], [1])
    assert any("stopped while waiting for the lock of other" in line for line in told)


def test_half_of_a_page_may_be_out_and_no_state_speaks_of_it(lake: Any) -> None:
    lake.store = FaultyStore(lake.store)
    others: list[lake_locks.Locks] = []

    def quick(call: Any) -> None:
        if call.operation == "delete" and not others:  # the lock goes with the first file's commit
            others.append(held_by_another(lake))

    lake.store.after_call = quick
    writer = lake.writer(max_file_records=1, tail=True, clock=lake.impatient(), should_stop=lambda: True)
    with pytest.raises(BurlerError, match="stopped while waiting"):
        send(lake, writer, 1, 2)
    others[0].release_all()
    writer.close()
    assert (lake.states, lake.ids()) == ([], [1])
