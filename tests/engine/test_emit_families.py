"""Rows that are emitted by name where there are substreams: they get children, and nobody emits what is not theirs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from emitting import emits_all, emits_each, row
from families import CHILD, PARENT, failures_of

import burler
from burler.testing import TapRun, run_tap

COUNT = 6
BUFFERS = [1, 2, 100]


def _yields(stream: burler.StreamRun, rows: list[Any]) -> Any:
    yield from rows


def _mixes(stream: burler.StreamRun, rows: list[Any]) -> Any:
    for i, one in enumerate(rows):
        if i % 2:
            stream.emit_record(one)
        else:
            yield one


WAYS = [_yields, emits_each, emits_all, _mixes]
by_name = pytest.mark.parametrize("way", WAYS, ids=lambda fn: fn.__name__.strip("_"))


def family(top: Callable[..., Any], middle: Callable[..., Any], fails: Callable[[Any], bool]) -> burler.Tap:
    """Parents, their children, theirs; each function gives its rows in a way of its own."""
    tap = burler.tap("tap-family")

    @tap.sync("parents", key_properties="id", replication_key="key", bookmark_strategy="every_n(1)", schema=PARENT)
    def parents(stream):
        return top(stream, [row(i) for i in range(stream.bookmark or 0, COUNT)])

    @tap.sync("children", parent="parents", key_properties=["parent", "id"], schema=CHILD)
    def children(parent, stream):
        return middle(stream, [{"id": k, "parent": parent["id"]} for k in (1, 2)])

    @tap.sync("below", parent="children", schema=CHILD)
    def below(parent):
        if fails(parent):
            raise LookupError("as planned")
        yield {"id": parent["id"], "parent": parent["parent"]}

    return tap


def below_of(*runs: TapRun) -> list[tuple[int, int]]:
    return [(one["parent"], one["id"]) for run in runs for one in run.records("below")]


WHOLE = [(i, k) for i in range(COUNT) for k in (1, 2)]


@pytest.mark.parametrize("page", [1, 1000])
@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("middle", WAYS, ids=lambda fn: "children" + fn.__name__)
@pytest.mark.parametrize("top", WAYS, ids=lambda fn: "parents" + fn.__name__)
def test_rows_get_their_children_however_they_are_given(
    top: Callable[..., Any], middle: Callable[..., Any], buffer: int, page: int
):
    config = {"parent_buffer_rows": buffer, "page_max_rows": page}
    run = run_tap(family(top, middle, lambda parent: False), config)
    assert not run.result.errors
    assert [one["id"] for one in run.records("parents")] == list(range(COUNT))
    assert sorted((one["parent"], one["id"]) for one in run.records("children")) == WHOLE
    assert sorted(below_of(run)) == WHOLE
    for position, message in enumerate(run.messages):
        if message["type"] == "STATE":
            key = message["value"].get("bookmarks", {}).get("parents", {}).get("key", -1)
            before = [m["record"] for m in run.messages[:position] if m.get("stream") == "below" and "record" in m]
            assert {one["parent"] for one in before} >= set(range(key + 1))
    assert run.states[-1]["bookmarks"]["parents"] == {"key": COUNT - 1}


@by_name
@pytest.mark.parametrize("buffer", BUFFERS)
def test_a_failure_below_emitted_rows_holds_the_bookmark(way: Callable[..., Any], buffer: int):
    config = {"parent_buffer_rows": buffer}
    run = run_tap(family(way, way, lambda parent: parent == {"id": 2, "parent": 3}), config)
    assert list(run.result.errors) == ["below"]
    assert sorted(below_of(run)) == [one for one in WHOLE if one != (3, 2)]
    assert run.states[-1]["bookmarks"]["parents"]["key"] <= 3
    rest = run_tap(family(way, way, lambda parent: False), config, state=run.states[-1])
    assert set(below_of(run, rest)) == set(WHOLE)


@pytest.mark.parametrize("yields", [True, False])
def test_thousands_of_parents_in_one_call_get_their_children(yields: bool):
    """A function that yields now and then lets them come in between; else they come when it has ended."""
    ahead: list[int] = []
    given = 0
    tap = burler.tap("tap-family")

    @tap.sync("parents", key_properties="id", replication_key="key", bookmark_strategy="every_n(1)", schema=PARENT)
    def parents(stream):
        nonlocal given
        for i in range(0, 10_000, 10):
            stream.emit_records([row(n) for n in range(i, i + 9)])
            given = i + 9
            if yields:
                yield row(given)
            else:
                stream.emit_record(row(given))

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent):
        ahead.append(given - parent["id"])
        yield {"id": 1, "parent": parent["id"]}

    run = run_tap(tap, {"parent_buffer_seconds": 600.0})
    assert not run.result.errors
    assert [one["parent"] for one in run.records("children")] == list(range(10_000))
    assert max(ahead) < (100 if yields else 10_000)
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 9_999}


# ---- whose rows -------------------------------------------------------------------------------------


def with_emitter(target: str, where: str) -> TapRun:
    """A family in which one function emits rows of a stream that it may not."""
    tap = burler.tap("tap-family")

    def emit(stream: burler.StreamRun, here: str) -> None:
        if here == where:
            stream.emit_record({"id": 77, "key": 77, "parent": 77}, target)

    @tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT)
    def parents(stream):
        for i in range(3):
            yield row(i)
        emit(stream, "parents")

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent, stream):
        yield {"id": 1, "parent": parent["id"]}
        if parent["id"] < 3:  # were they let through, parents would have no end
            emit(stream, "children")

    tap.sync("siblings", parent="parents", schema=CHILD)(lambda parent: [{"id": 1, "parent": parent["id"]}])
    tap.sync("alone", key_properties="id", schema=PARENT)(lambda: [row(5)])
    return run_tap(tap, {"parent_buffer_rows": 2})


@pytest.mark.parametrize("target", ["parents", "siblings", "alone", "nosuch"])
def test_a_child_emits_nothing_that_is_not_its_own(target: str):
    run = with_emitter(target, "children")
    assert list(run.result.errors) == ["children"]
    for failure in failures_of(run, "children"):
        assert "stream 'children' (tests/engine/test_emit_families.py:" in str(failure.error)
        assert f"rows of '{target}', which it does not emit" in str(failure.error)
    assert [failure.where for failure in failures_of(run, "children")] == [f"parent parents id={i}" for i in range(3)]
    assert run.records("parents") == [row(0), row(1), row(2)]
    assert [one["parent"] for one in run.records("siblings")] == [0, 1, 2]
    assert run.records("alone") == [row(5)]
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 0}


@pytest.mark.parametrize("target", ["children", "siblings", "alone", "nosuch"])
def test_the_first_stream_emits_nothing_of_its_substreams_or_of_others(target: str):
    run = with_emitter(target, "parents")
    assert list(run.result.errors) == ["parents"]
    assert "stream 'parents' (tests/engine/test_emit_families.py:" in str(run.result.errors["parents"])
    assert f"rows of '{target}', which it does not emit" in str(run.result.errors["parents"])
    assert [one["parent"] for one in run.records("children")] == [0, 1, 2], "of what came before"
    assert run.records("alone") == [row(5)]


@pytest.mark.parametrize("where", ["post_transform", "bookmark", "partitions"])
@pytest.mark.parametrize("page", [1, 1000])
def test_emitting_outside_of_a_sync_function_is_refused(page: int, where: str):
    """There, no place among the rows is theirs; they would be lost. Nor while the sync function still runs."""
    tap = burler.tap("tap-emits")

    def emit(stream: burler.StreamRun) -> None:
        stream.emit_record(row(9))

    tap.sync("main", key_properties="id", replication_key="key", schema=PARENT)(lambda: (row(i) for i in range(3)))
    if where == "post_transform":
        tap.post_transform("main")(lambda record, stream: emit(stream) or record)
    elif where == "bookmark":
        tap.bookmark("main")(lambda record, stream: emit(stream) or 1)
    else:
        tap.partitions("main")(lambda stream: emit(stream) or [{"n": 1}])
    run = run_tap(tap, {"page_max_rows": page})
    assert "sync function" in str(run.result.errors["main"])
    assert row(9) not in run.records("main")
    assert "emit" in str(run.result.errors["main"])
    assert "main" not in run.states[-1].get("bookmarks", {})


def _emits_later(stream: burler.StreamRun, when: threading.Event, raised: list[BaseException]) -> threading.Thread:
    def late() -> None:
        when.wait(20)
        try:
            stream.emit_record({"id": 9, "parent": 0})
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=late)
    thread.start()
    return thread


def test_a_thread_that_emits_when_its_call_has_ended_is_told_so():
    """The children's function is called for each parent: what comes later can't be told from what is another's."""
    raised: list[BaseException] = []
    ended = threading.Event()
    threads: list[threading.Thread] = []
    tap = burler.tap("tap-family")
    tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT)(
        lambda: [row(0), row(1)]
    )

    @tap.sync("children", parent="parents", key_properties=["parent", "id"], schema=CHILD)
    def children(parent, stream):
        if parent["id"] == 0:
            threads.append(_emits_later(stream, ended, raised))
        else:
            ended.set()
            threads[0].join()
        return []

    tap.sync("below", parent="children", schema=CHILD)(lambda parent: [{"id": 1, "parent": parent["parent"]}])
    run = run_tap(tap)
    assert len(raised) == 1 or below_of(run) == [(0, 1)], "neither the row nor what hangs on it may vanish"
    assert len(run.records("children")) == len(run.records("below"))


def test_what_a_thread_of_a_call_emits_when_all_calls_have_ended_gets_its_children():
    ended = threading.Event()
    raised: list[BaseException] = []
    threads: list[threading.Thread] = []
    tap = burler.tap("tap-family")

    @tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT)
    def parents():
        yield row(0)
        ended.set()
        threads[0].join()

    @tap.sync("children", parent="parents", key_properties=["parent", "id"], schema=CHILD)
    def children(parent, stream):
        threads.append(_emits_later(stream, ended, raised))
        return []

    tap.sync("below", parent="children", schema=CHILD)(lambda parent: [{"id": 1, "parent": parent["parent"]}])
    run = run_tap(tap, {"parent_buffer_rows": 1})
    assert raised or below_of(run) == [(0, 1)], "neither the row nor what hangs on it may vanish"
    assert len(run.records("children")) == len(run.records("below"))


def test_a_substreams_bookmark_function_sees_rows_that_were_emitted():
    seen: list[Any] = []
    tap = burler.tap("tap-family")
    tap.sync("parents", key_properties="id", schema=PARENT)(lambda: [row(1)])
    tap.bookmark("parents")(lambda record, children: seen.append(children["children"]) or record["key"])

    @tap.sync("children", parent="parents", replication_key="key", schema={"properties": {"key": {"type": "integer"}}})
    def children(stream):
        stream.emit_record({"key": 4})
        yield {"key": 6}
        stream.emit_records([{"key": 8}])

    assert not run_tap(tap).result.errors
    assert [(one.count, one.least, one.greatest) for one in seen] == [(3, 4, 8)]
