"""Tail functions: batch first, then stream; overlap; positions; wake functions (tail-mode proposal)."""

from __future__ import annotations

import logging
import queue
import threading
import time

import pytest

import burler
from burler.errors import StreamError
from burler.testing import FakeClock, run_tap
from support.internals import signals

ID = {"properties": {"id": {"type": "integer"}}}
KEYED = {"key_properties": "id", "replication_key": "id", "order": "asc", "schema": ID}
TAIL = {"tail": True, "new_record_polling_interval_ms": 60_000, "state_message_min_interval_ms": 60_000}


def ids(out, name="events"):
    return [row["id"] for row in out.records(name)]


class Source:
    """Rows 1 to ``held``; whoever listens gets those that come later."""

    def __init__(self, held):
        self.held = held
        self.listeners = []

    def add(self):
        self.held += 1
        for one in self.listeners:
            one.put(self.held)

    def listen(self):
        self.listeners.append(queue.SimpleQueue())
        return self.listeners[-1]


def test_batch_first_then_stream():
    tap, stopper, calls = burler.tap("tap-t"), signals.Stopper(), []

    @tap.sync("events", **KEYED)
    def batch(stream):
        calls.append(("batch", stream.bookmark, stream.tailing))
        return [{"id": i} for i in range((stream.bookmark or 0) + 1, 4)]

    @tap.tail("events")
    def events(stream):
        calls.append(("stream", stream.bookmark, stream.tailing))
        yield {"id": stream.bookmark + 1}
        if len(calls) == 4:
            stopper.end(now=False)
        raise ConnectionResetError("gone") if len(calls) == 2 else GeneratorExit

    out = run_tap(tap, TAIL, clock=FakeClock(), stopper=stopper)
    assert calls == [("batch", None, True), ("stream", 3, True), ("batch", 4, True), ("stream", 4, True)]
    assert ids(out) == [1, 2, 3, 4, 5]
    assert out.states[-1] == {"bookmarks": {"events": {"id": 5}}}


def test_in_a_plain_run_the_tail_function_is_not_called(caplog):
    tap = burler.tap("tap-t")
    tap.sync("events", **KEYED)(lambda stream: [{"id": 1}] if not stream.tailing else [])
    tap.tail("events")(lambda: [][0])
    tap.tail("pushed", **KEYED)(lambda: [][0])
    with caplog.at_level(logging.WARNING):
        out = run_tap(tap)
    assert out.types == ["SCHEMA", "RECORD", "STATE"]
    assert "stream 'pushed': has a tail function alone" in caplog.text


def test_with_overlap_nothing_falls_between_batch_and_stream():
    tap, stopper, source = burler.tap("tap-t"), signals.Stopper(), Source(3)

    @tap.sync("events", **KEYED)
    def batch(stream):
        for i in range((stream.bookmark or 0) + 1, source.held + 1):
            yield {"id": i}
        source.add()  # what comes while the batch comes to its end is in no batch

    @tap.tail("events", overlap=True)
    def events(stream):
        inbox = source.listen()
        source.add()  # in the batch and in the inbox: it comes twice
        yield from stream.catch_up()
        while not inbox.empty():
            yield {"id": inbox.get()}
        stopper.end(now=False)
        yield {"id": 99}

    out = run_tap(tap, TAIL, clock=FakeClock(), stopper=stopper)
    assert [i for i in ids(out) if i != 99] in ([1, 2, 3, 4, 5], [1, 2, 3, 4, 4, 5])


def test_a_full_table_that_is_caught_up_with_is_a_version_of_its_own():
    tap, stopper = burler.tap("tap-t"), signals.Stopper()
    tap.sync("events", key_properties="id", replication_method="FULL_TABLE", schema=ID)(lambda: [{"id": 1}])

    @tap.tail("events", overlap=True)
    def events(stream):
        yield from stream.catch_up()
        yield {"id": 2}
        stopper.end(now=False)
        yield {"id": 3}

    out = run_tap(tap, TAIL, clock=FakeClock(), stopper=stopper)
    versions = [m["version"] for m in out.messages if m["type"] in ("RECORD", "ACTIVATE_VERSION")]
    assert len(set(versions)) == 1
    assert out.types.count("ACTIVATE_VERSION") in (1, 2)
    assert out.types.index("ACTIVATE_VERSION") < len(out.types) - 2


def test_catch_up_elsewhere_is_an_error():
    tap = burler.tap("tap-t")
    tap.sync("events", **KEYED)(lambda: [])

    @tap.tail("events")
    def events(stream):
        yield from stream.catch_up()

    out = run_tap(tap, {**TAIL, "tail_max_retries": 0}, clock=FakeClock())
    assert isinstance(out.result.errors["events"], StreamError)
    assert "overlap=True" in str(out.result.errors["events"])


def test_a_stop_before_it_catches_up_is_no_failure():
    tap, stopper = burler.tap("tap-t"), signals.Stopper()
    tap.sync("events", **KEYED)(lambda: [{"id": 1}])

    @tap.tail("events", overlap=True)
    def events(stream):
        stopper.end()
        while True:
            time.sleep(0.01)
        yield from stream.catch_up()

    assert not run_tap(tap, TAIL, stopper=stopper).result.errors


def test_rows_and_states_come_while_the_function_blocks():
    """The position that was given as a new object counts at once."""
    tap, stopper, seen = burler.tap("tap-t"), signals.Stopper(), threading.Event()
    acknowledged = []

    @tap.tail("events", key_properties="id", schema=ID, replication_method="LOG_BASED")
    def events(stream):
        yield [{"id": 1}, {"id": 2}]
        stream.state = {"at": 2}
        assert seen.wait(20)
        stopper.end(now=False)
        yield {"id": 3}

    @tap.ack("events")
    def ack(state):
        acknowledged.append(state)
        seen.set()

    out = run_tap(tap, {**TAIL, "state_message_min_interval_ms": 100}, stopper=stopper)
    assert acknowledged == [{"at": 2}]
    assert out.states[0] == {"bookmarks": {"events": {"stream_state": {"at": 2}}}}


def test_a_position_that_is_changed_in_place_counts_at_the_next_yield():
    tap, stopper = burler.tap("tap-t"), signals.Stopper()

    @tap.tail("events", key_properties="id", schema=ID, replication_method="LOG_BASED")
    def events(stream):
        for i in range(1, 4):
            yield {"id": i}
            stream.state["at"] = i
            time.sleep(0.05)
        stopper.end(now=False)
        yield {"id": 4}

    out = run_tap(tap, TAIL, stopper=stopper)
    assert out.states[-1]["bookmarks"]["events"]["stream_state"]["at"] in (2, 3)


def test_several_push_beside_streams_that_are_polled():
    tap, stopper = burler.tap("tap-t"), signals.Stopper()
    polls = []

    def pushing(name):
        @tap.tail(name, **KEYED)
        def events(stream):
            i = 0
            while True:
                i += 1
                yield {"id": i}
                if stream.wait(0.01):
                    return

    for name in ("one", "two", "three"):
        pushing(name)

    @tap.sync("polled", **KEYED)
    def polled(stream):
        polls.append(1)
        if len(polls) == 10:
            stopper.end()
        return [{"id": len(polls)}]

    out = run_tap(tap, {**TAIL, "new_record_polling_interval_ms": 20}, stopper=stopper)
    assert ids(out, "polled") == list(range(1, 11))
    for name in ("one", "two", "three"):
        assert ids(out, name) == list(range(1, len(ids(out, name)) + 1))
        assert len(ids(out, name)) > 2
        assert out.states[-1]["bookmarks"][name]["id"] == ids(out, name)[-1]


def test_rows_with_a_hook_and_substreams_come_while_the_function_waits():
    tap, stopper = burler.tap("tap-t"), signals.Stopper()
    seen = threading.Event()

    @tap.tail("events", **KEYED)
    def events():
        yield {"id": 1}
        assert seen.wait(20)
        stopper.end(now=False)
        yield {"id": 2}

    @tap.post_transform("events")
    def hook(record):
        return {"id": record["id"] * 10}

    tap.sync("lines", key_properties="id", parent="events", schema=ID)(lambda parent: [{"id": parent["id"] * 10}])
    tap.ack("events")(lambda bookmark: seen.set())
    out = run_tap(tap, {**TAIL, "state_message_min_interval_ms": 100}, stopper=stopper)
    assert ids(out)[0] == 10
    assert ids(out, "lines")[0] == 10


# ---- wake ----------------------------------------------------------------------------------------------


def test_a_wake_function_makes_its_stream_be_polled_at_once():
    tap, stopper, source, begun = burler.tap("tap-t"), signals.Stopper(), Source(1), time.monotonic()

    @tap.wake("events")
    def listen(stream):
        inbox = source.listen()
        yield
        while not stream.wait(0.01):
            while not inbox.empty():
                yield inbox.get()

    @tap.sync("events", **KEYED)
    def events(stream):
        held = source.held
        if held < 5 and source.listeners:
            threading.Timer(0.02, source.add).start()
        yield [{"id": i} for i in range(stream.bookmark or 1, held + 1)]
        if held == 5:
            stopper.end()

    out = run_tap(tap, TAIL, stopper=stopper)
    assert ids(out) == [1, 2, 3, 4, 5]
    assert time.monotonic() - begun < 40  # and not a minute each


def test_a_wake_function_that_fails_is_tried_again_and_the_stream_is_polled_all_the_same(caplog, monkeypatch):
    monkeypatch.setattr("random.random", lambda: 0.01)
    tap, stopper, listened, polls = burler.tap("tap-t"), signals.Stopper(), [], []

    @tap.wake("events")
    def listen():
        listened.append(1)
        yield
        raise ConnectionError("no more notes")

    @tap.sync("events", **KEYED)
    def events(stream):
        polls.append(1)
        if len(listened) > 3:
            stopper.end()
        return [{"id": len(polls)}]

    with caplog.at_level(logging.WARNING):
        out = run_tap(tap, {**TAIL, "new_record_polling_interval_ms": 50}, stopper=stopper)
    assert "wake function failed" in caplog.text
    assert out.result.exit_code == 0


@pytest.mark.parametrize("workers", [1, 3])
def test_streams_are_polled_fairly_by_one_thread_or_several(workers):
    tap, clock_calls, stopper = burler.tap("tap-t"), {}, signals.Stopper()

    def polled(name):
        @tap.sync(name, **KEYED)
        def rows(stream):
            clock_calls[name] = clock_calls.get(name, 0) + 1
            time.sleep(0.01)
            if clock_calls[name] == 8:
                stopper.end()
            return [{"id": clock_calls[name]}]

    for i in range(6):
        polled(f"s{i}")
    out = run_tap(tap, {**TAIL, "new_record_polling_interval_ms": 1, "workers": workers}, stopper=stopper)
    assert max(clock_calls.values()) - min(clock_calls.values()) <= (1 if workers == 1 else 5)
    for name in clock_calls:
        assert ids(out, name) == list(range(1, len(ids(out, name)) + 1))


def test_a_tail_function_that_fails_behind_its_first_rows_fails_for_good():
    tap, clock, calls = burler.tap("tap-t"), FakeClock(), []

    @tap.tail("events", **KEYED)
    def events():
        calls.append(clock.monotonic())
        yield {"id": 1}
        yield {"id": "no number"}

    out = run_tap(tap, {**TAIL, "tail_max_retries": 3}, clock=clock)
    assert len(calls) in (4, 5)  # the first call has moved the bookmark
    assert out.result.exit_code == 1


def test_a_tail_function_that_gets_on_is_connected_again_and_again():
    tap, clock, stopper = burler.tap("tap-t"), FakeClock(), signals.Stopper()

    @tap.tail("events", **KEYED)
    def events(stream):
        following = (stream.bookmark or 0) + 1
        if following > 20:
            stopper.end(now=False)
        yield {"id": following}
        raise ConnectionResetError("gone")

    out = run_tap(tap, {**TAIL, "tail_max_retries": 3}, clock=clock, stopper=stopper)
    assert ids(out)[:20] == list(range(1, 21))


def test_what_was_subscribed_to_may_begin_before_the_end_of_the_batch():
    tap, stopper = burler.tap("tap-t"), signals.Stopper()
    tap.sync("events", **KEYED)(lambda: [{"id": i} for i in range(6)])

    @tap.tail("events", overlap=True)
    def events(stream):
        yield from stream.catch_up()
        yield from ({"id": i} for i in (3, 4, 5, 6, 7))
        stopper.end(now=False)
        yield {"id": 8}

    out = run_tap(tap, TAIL, clock=FakeClock(), stopper=stopper)
    assert set(range(8)) <= set(ids(out))
    assert out.result.exit_code == 0
    assert out.states[-1]["bookmarks"]["events"]["id"] == max(ids(out))


def test_rows_in_no_order_are_whole_once_a_tail_function_has_caught_up():
    tap, stopper = burler.tap("tap-t"), signals.Stopper()
    tap.sync("events", **{**KEYED, "order": "none"})(lambda: [{"id": 5}, {"id": 2}])

    @tap.tail("events", overlap=True)
    def events(stream):
        yield from stream.catch_up()
        yield {"id": 9}  # what has a smaller key may still come
        stopper.end(now=False)
        stream.wait(60)

    out = run_tap(tap, TAIL, clock=FakeClock(), stopper=stopper)
    assert ids(out) == [5, 2, 9]
    assert out.states[-1]["bookmarks"]["events"] == {"id": 5}


def discovering(tap, what, schema):
    tap.discover(lambda: {name: {"properties": dict(schema)} for name in what})


def test_a_stream_that_discovery_no_longer_finds_is_read_no_more_and_a_new_one_by_one_thread():
    tap, stopper, what, calls = burler.tap("tap-t"), signals.Stopper(), ["a", "b"], []
    discovering(tap, what, {"id": {"type": "integer"}})

    @tap.tail("*", key_properties="id", replication_key="id", order="asc")
    def rows(stream):
        calls.append(stream.name)
        for i in range(1000):
            yield {"id": i}
            if stream.name == "a" and i == 10:
                what[:] = ["a", "c"]
            if stream.name == "c" and i == 10:
                stopper.end()
            if stream.wait(0.02):
                return

    out = run_tap(tap, {**TAIL, "tail_rediscover_seconds": 0.5}, stopper=stopper)
    assert sorted(calls) == ["a", "b", "c"]
    assert ids(out, "c") == list(range(len(ids(out, "c"))))
    assert len(ids(out, "b")) < 200


def test_a_schema_that_changes_ends_the_round_of_a_tail_function():
    tap, stopper, schema = burler.tap("tap-t"), signals.Stopper(), {"id": {"type": "integer"}}
    discovering(tap, ["a"], schema)

    @tap.tail("*", key_properties="id", replication_key="id", order="asc")
    def rows(stream):
        for i in range(stream.bookmark or 0, 1000):
            yield {"id": i, "text": "x"}
            if i == 10:
                schema["text"] = {"type": "string"}
            if i > 10 and "text" in stream.schema["properties"]:
                stopper.end()
            if stream.wait(0.02):
                return

    out = run_tap(tap, {**TAIL, "tail_rediscover_seconds": 0.5}, stopper=stopper)
    assert out.types.count("SCHEMA") == 2
    assert out.records("a")[-1]["text"] == "x"


def test_a_tail_function_that_fails_is_called_again_after_growing_waits(monkeypatch):
    monkeypatch.setattr("random.random", lambda: 1.0)
    tap, clock, stopper, times = burler.tap("tap-t"), FakeClock(), signals.Stopper(), []

    @tap.tail("events", **KEYED)
    def events():
        times.append(clock.monotonic())
        if len(times) == 5:
            stopper.end(now=False)
        raise OSError("gone")
        yield

    run_tap(tap, TAIL, clock=clock, stopper=stopper)
    assert times == [0, 1, 3, 7, 15]


def test_retry_sync_on_does_not_send_a_tail_function_back_to_where_it_began():
    tap, clock, stopper, began = burler.tap("tap-t"), FakeClock(), signals.Stopper(), []

    @tap.tail("events", retry_sync_on=ConnectionError, **KEYED)
    def events(stream):
        began.append(stream.bookmark)
        if len(began) == 4:
            stopper.end(now=False)
        yield from ({"id": i} for i in range(stream.bookmark or 0, (stream.bookmark or 0) + 5))
        raise ConnectionResetError("gone")

    out = run_tap(tap, TAIL, clock=clock, stopper=stopper)
    assert began[:4] == [None, 4, 8, 12]
    assert ids(out)[:13] == list(range(13))


def test_equal_messages_of_a_source_that_pushes_are_two():
    tap, stopper = burler.tap("tap-t"), signals.Stopper()
    event = {"at": 5, "text": "login"}
    form = {"properties": {"at": {"type": "integer"}, "text": {"type": "string"}}}
    tap.sync("events", replication_key="at", order="asc", schema=form)(lambda: [dict(event)])

    @tap.tail("events")
    def events(stream):
        yield dict(event)
        yield dict(event)
        stopper.end(now=False)
        stream.wait(60)

    out = run_tap(tap, TAIL, clock=FakeClock(), stopper=stopper)
    assert len(out.records("events")) == 3


def test_rows_that_are_emitted_by_name_go_out_at_once_although_a_hook_sees_them():
    tap, stopper, seen = burler.tap("tap-t"), signals.Stopper(), threading.Event()

    @tap.tail("events", **KEYED)
    def events(stream):
        stream.emit_record({"id": 1})
        assert seen.wait(20)
        stopper.end(now=False)
        yield {"id": 2}

    tap.post_transform("events")(lambda record: record)
    tap.ack("events")(lambda bookmark: seen.set())
    out = run_tap(tap, {**TAIL, "state_message_min_interval_ms": 100}, stopper=stopper)
    assert ids(out)[0] == 1


def test_a_wake_function_that_exits_ends_no_tap_and_one_that_breaks_off_is_slowed_down(monkeypatch):
    monkeypatch.setattr("random.random", lambda: 1.0)
    tap, stopper, listened = burler.tap("tap-t"), signals.Stopper(), []

    @tap.wake("events")
    def listen():
        listened.append(time.monotonic())
        yield
        raise SystemExit(3)

    @tap.sync("events", **KEYED)
    def events(stream):
        if len(listened) == 3:
            stopper.end()
        yield {"id": len(listened)}

    out = run_tap(tap, {**TAIL, "new_record_polling_interval_ms": 200_000}, stopper=stopper)
    assert out.result.exit_code == 0
    assert listened[2] - listened[1] > 1.5  # 2 s, not 1 s again


def test_a_stream_that_failed_for_good_is_told_of_again_and_again(caplog):
    tap, clock = burler.tap("tap-t"), FakeClock()
    tap.sync("bad", **KEYED)(lambda: [][0])
    tap.sync("good", **KEYED)(lambda: [])
    settings = {"tail_max_retries": 0, "tail_stop_on_failure": False, "tail_max_seconds": 290}
    with caplog.at_level(logging.INFO):
        run_tap(tap, {**TAIL, **settings}, clock=clock)
    assert sum("stream 'bad': " in record.getMessage() for record in caplog.records) >= 4


def test_each_row_of_a_full_table_block_goes_out_in_each_round():
    tap, clock = burler.tap("tap-t"), FakeClock()

    @tap.sync("events", **KEYED)
    def events(stream):
        with stream.full_table():
            yield {"id": 1}
            yield {"id": 2}

    out = run_tap(tap, {**TAIL, "tail_max_rounds": 3}, clock=clock)
    assert ids(out) == [1, 2] * 3
    assert len({m["version"] for m in out.messages if m["type"] == "RECORD"}) == 3


def test_a_tail_function_that_always_fails_beside_a_sync_function_fails_for_good():
    tap, calls = burler.tap("tap-t"), []
    tap.sync("events", **KEYED)(lambda stream: [] if stream.bookmark else [{"id": 1}])

    @tap.tail("events")
    def events():
        calls.append(1)
        raise PermissionError("no")

    out = run_tap(tap, {**TAIL, "tail_max_retries": 3}, clock=FakeClock())
    assert len(calls) == 4
    assert out.result.exit_code == 1


def test_a_full_table_that_is_caught_up_with_again_and_again_is_no_progress():
    tap, calls = burler.tap("tap-t"), []
    tap.sync("events", key_properties="id", replication_method="FULL_TABLE", schema=ID)(lambda: [{"id": 1}])

    @tap.tail("events", overlap=True)
    def events(stream):
        calls.append(1)
        yield from stream.catch_up()
        raise PermissionError("no")

    out = run_tap(tap, {**TAIL, "tail_max_retries": 3}, clock=FakeClock())
    assert len(calls) == 4
    assert out.result.exit_code == 1


def test_a_source_that_is_silent_for_long_and_hangs_up_is_no_failure_in_a_row():
    tap, clock, stopper, calls = burler.tap("tap-t"), FakeClock(), signals.Stopper(), []

    @tap.tail("events", **KEYED)
    def events(stream):
        calls.append(1)
        if len(calls) == 30:
            stopper.end(now=False)
        clock.advance(3600)
        raise ConnectionResetError("idle")
        yield

    out = run_tap(tap, {**TAIL, "tail_max_retries": 3}, clock=clock, stopper=stopper)
    assert len(calls) == 30
    assert "events" not in out.result.errors or len(calls) == 30


def test_time_that_passes_in_a_tail_function_brings_what_is_due():
    tap, clock = burler.tap("tap-t"), FakeClock()

    @tap.tail("events", **KEYED)
    def events(stream):
        i = 0
        while not stream.wait(60):
            i += 1
            yield {"id": i}

    out = run_tap(tap, {**TAIL, "state_message_min_interval_ms": 600_000, "tail_max_seconds": 3600}, clock=clock)
    assert len(ids(out)) in (59, 60)
    assert 5 <= len(out.states) <= 7


def test_overlap_without_catch_up_is_an_error():
    tap = burler.tap("tap-t")
    tap.sync("events", **KEYED)(lambda: [{"id": 1}])
    tap.tail("events", overlap=True)(lambda: [{"id": 2}])
    out = run_tap(tap, {**TAIL, "tail_max_retries": 0}, clock=FakeClock())
    assert "stream.catch_up()" in str(out.result.errors["events"])
    assert out.states == []


def test_a_tail_function_is_not_called_behind_a_batch_of_which_a_part_is_missing():
    tap, stopper, failed, began = burler.tap("tap-t"), signals.Stopper(), [], []

    @tap.sync("orders", **KEYED)
    def orders(stream):
        return [{"id": i} for i in range(stream.bookmark or 1, 4)]

    @tap.tail("orders")
    def more(stream):
        began.append(stream.bookmark)
        yield from ({"id": i} for i in (stream.bookmark + 1, stream.bookmark + 2))
        stopper.end(now=False)
        stream.wait(60)

    @tap.sync("lines", key_properties="id", parent="orders", schema=ID)
    def lines(parent):
        if parent["id"] == 2 and not failed:
            failed.append(1)
            raise ConnectionError("gone")
        return [{"id": parent["id"]}]

    out = run_tap(tap, TAIL, clock=FakeClock(), stopper=stopper)
    assert began == [3]
    assert set(ids(out, "lines")) >= {1, 2, 3, 4, 5}
    assert set(ids(out, "orders")) == {1, 2, 3, 4, 5}


def test_a_tail_function_of_which_a_part_has_failed_is_called_again_from_there():
    tap, stopper, failed, began = burler.tap("tap-t"), signals.Stopper(), [], []

    @tap.tail("orders", **KEYED)
    def orders(stream):
        began.append(stream.bookmark)
        i = (stream.bookmark or 1) - 1
        while True:
            i += 1
            yield {"id": i}
            if len(began) > 1 and i > 8:
                stopper.end()
            if stream.wait(0.05):
                return

    @tap.sync("lines", key_properties="id", parent="orders", schema=ID)
    def lines(parent):
        if parent["id"] == 3 and not failed:
            failed.append(1)
            raise ConnectionError("gone")
        return [{"id": parent["id"]}]

    out = run_tap(tap, {**TAIL, "new_record_polling_interval_ms": 500}, stopper=stopper)
    assert began == [None, 3]
    got = ids(out, "lines")
    assert set(got) == set(range(1, max(got) + 1))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_row_that_does_not_fit_is_told_of_while_the_function_waits(threads, caplog):
    tap, stopper, calls = burler.tap("tap-t"), signals.Stopper(), []
    if threads == 2:  # the first one has the main thread

        @tap.tail("other", **KEYED)
        def other(stream):
            yield {"id": 1}
            stream.wait(60)

    @tap.tail("events", **KEYED)
    def events(stream):
        calls.append(1)
        if len(calls) > 1:
            stopper.end()
        yield {"id": 5}
        yield {"id": "x"}
        stream.wait(60)

    begun = time.monotonic()
    with caplog.at_level(logging.WARNING):
        run_tap(tap, TAIL, stopper=stopper)
    assert time.monotonic() - begun < 40
    assert "row id='x': field 'id' is a string" in caplog.text


def test_rows_that_are_pushed_behind_a_full_table_belong_to_its_version():
    tap, clock, stopper, calls = burler.tap("tap-t"), FakeClock(), signals.Stopper(), []
    tap.sync("events", key_properties="id", replication_method="FULL_TABLE", schema=ID)(lambda: [{"id": 1}])

    @tap.tail("events")
    def events():
        calls.append(1)
        if len(calls) == 2:
            stopper.end(now=False)
        yield {"id": 2}

    out = run_tap(tap, TAIL, clock=clock, stopper=stopper)
    told = [(m["type"], m["version"]) for m in out.messages if m["type"] in ("RECORD", "ACTIVATE_VERSION")]
    first, second = told[0][1], told[-1][1]
    assert [one for one in told if one[1] == first] == [
        ("ACTIVATE_VERSION", first),
        ("RECORD", first),
        ("ACTIVATE_VERSION", first),
        ("RECORD", first),
    ]
    assert [one for one in told if one[1] == second] == [
        ("RECORD", second),
        ("ACTIVATE_VERSION", second),
        ("RECORD", second),
    ]
    assert {version for _type, version in told} == {first, second}


def test_a_wake_while_a_round_is_under_way_is_not_forgotten():
    tap, stopper, polls, woken = burler.tap("tap-t"), signals.Stopper(), [], threading.Event()

    @tap.wake("events")
    def listen(stream):
        woken.wait(20)
        yield
        stream.wait(60)

    @tap.sync("events", **KEYED)
    def events(stream):
        polls.append(1)
        if len(polls) == 2:
            stopper.end()
        woken.set()
        time.sleep(0.5)  # it is told in the middle of this
        yield {"id": len(polls)}

    run_tap(tap, TAIL, stopper=stopper)
    assert len(polls) == 2


def test_a_wake_that_a_hangup_overtakes_is_not_forgotten():
    tap, stopper, reads, hooked, wakes = burler.tap("tap-t"), signals.Stopper(), [], threading.Event(), iter([1])

    @tap.wake("table")
    def listen(stream):
        hooked.wait(20)
        yield from wakes
        stream.wait(60)

    @tap.sync("table", key_properties="id", schema=ID)
    def table():
        reads.append(1)
        if len(reads) == 2:
            stopper.end()
        return [{"id": 1}]

    @tap.post_transform("events")
    def slow(record):
        if not hooked.is_set():
            hooked.set()  # the table is due now, and whoever reads it waits for this page
            time.sleep(0.5)
            stopper.hang_up()
        return record

    @tap.sync("events", **KEYED)
    def events():
        time.sleep(0.5)  # the table has been read once
        yield {"id": 1}

    out = run_tap(tap, {**TAIL, "workers": 2, "tail_max_seconds": 8}, stopper=stopper)
    assert len(out.records("table")) == 2


def test_what_waits_for_its_next_connection_does_not_wait_for_discovery():
    tap, stopper, spent = burler.tap("tap-t"), signals.Stopper(), []

    @tap.tail("pushed", key_properties="id", schema=ID)
    def pushed():
        return []  # until the interval is over

    @tap.sync("events", **KEYED)
    def events():
        time.sleep(0.2)
        begun = time.process_time()
        time.sleep(1)  # discovery is due, and nobody is there to see to it
        spent.append(time.process_time() - begun)
        stopper.end()
        return []

    run_tap(tap, {**TAIL, "tail_rediscover_seconds": 0.1}, stopper=stopper)
    assert spent[0] < 0.4
