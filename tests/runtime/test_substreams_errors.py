"""What goes wrong in a substream: whose error it is, what is out by then, and what is closed in which order."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from families import CHILD, GRANDCHILD, PARENT, parents_of

import burler
from burler.errors import BadRecordError
from burler.runtime.signals import Stopper
from burler.testing import run_tap

# ---- errors -----------------------------------------------------------------------------------------


def broken_child(fn: Callable[..., Any]) -> burler.Tap:
    tap, parents = parents_of(3, replication_key="key", order="asc")
    parents.substream("children", key_properties="id", schema=CHILD).sync(fn)
    tap.sync("other", key_properties="id", schema=PARENT)(lambda: [{"id": 1, "key": 1}])
    return tap


def _raises(parent: dict[str, Any]) -> Iterator[Any]:
    yield {"id": 1, "parent": parent["id"]}
    if parent["id"] == 1:
        raise LookupError("no such thing")


def _raises_at_once(parent: dict[str, Any]) -> Any:
    if parent["id"] == 1:
        raise LookupError("no such thing")
    return [{"id": 1, "parent": parent["id"]}]


def _exits(parent: dict[str, Any]) -> Iterator[Any]:
    yield {"id": 1, "parent": parent["id"]}
    if parent["id"] == 1:
        raise SystemExit(0)


def _stop_iteration(parent: dict[str, Any]) -> Any:
    if parent["id"] == 1:
        next(iter(()))
    return [{"id": 1, "parent": parent["id"]}]


def _stop_iteration_in_a_generator(parent: dict[str, Any]) -> Iterator[Any]:
    yield {"id": 1, "parent": parent["id"]}
    if parent["id"] == 1:
        next(iter(()))


@pytest.mark.parametrize(
    ("fn", "says", "children"),
    [
        (_raises, "LookupError: no such thing", 2),
        (_raises_at_once, "LookupError: no such thing", 1),
        (_exits, "SystemExit", 2),
        (_stop_iteration, "StopIteration", 1),
        (_stop_iteration_in_a_generator, "StopIteration", 2),
    ],
)
@pytest.mark.parametrize("page", [1, 1000])
def test_an_error_of_a_child_names_the_child_and_its_place(fn: Callable[..., Any], says: str, children: int, page: int):
    run = run_tap(broken_child(fn), {"page_max_rows": page})
    assert list(run.result.errors) == ["parents"]
    text = str(run.result.errors["parents"])
    assert "stream 'children'" in text
    assert f"test_substreams_errors.py:{fn.__code__.co_firstlineno}" in text
    assert says in text
    assert len(text.splitlines()) <= 3
    # What came before it is out, nothing behind it, and the other streams go on.
    assert len(run.records("children")) == children
    assert [row["id"] for row in run.records("parents")] == [0, 1]
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 1}
    assert len(run.records("other")) == 1


def test_an_error_of_the_parents_own_function_is_not_put_on_a_child():
    tap = burler.tap("tap-family")

    @tap.sync("parents", key_properties="id", schema=PARENT)
    def parents():
        yield {"id": 1, "key": 1}
        next(iter(()))

    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: [{"id": 1, "parent": 1}])
    run = run_tap(tap)
    assert "children" not in str(run.result.errors["parents"])
    assert len(run.records("children")) == 1


def test_a_row_of_a_child_that_does_not_fit_names_the_child_and_the_row():
    run = run_tap(broken_child(lambda parent: [{"id": 1, "parent": 1}, {"id": 2, "parent": "x"}]))
    error = run.result.errors["parents"]
    assert isinstance(error, BadRecordError)
    assert "stream 'children', row id=2: field 'parent'" in str(error)


def test_a_row_without_its_key_is_refused_in_a_child_too():
    run = run_tap(broken_child(lambda parent: [{"parent": 1}]))
    assert "field 'id' is missing" in str(run.result.errors["parents"])


# ---- closing ----------------------------------------------------------------------------------------


def closing_family(ended: list[Any], *, stop: Stopper | None = None, error: bool = False) -> burler.Tap:
    tap = burler.tap("tap-family")

    def level(name: str, stream: burler.StreamRun) -> None:
        ended.append((name, stream.name, tap.get_bookmark()))

    @tap.sync("parents", key_properties="id", replication_key="key", schema=PARENT)
    def parents(stream):
        try:
            yield [{"id": 1, "key": 1}]
            yield [{"id": 2, "key": 2}]
        finally:
            level("parents", stream)

    @tap.sync("children", parent="parents", key_properties="id", replication_key="id", schema=CHILD)
    def children(parent, stream):
        def inner():
            try:
                yield {"id": 1, "parent": 1}
            finally:
                level("children, inner", stream)

        try:
            yield inner()
        finally:
            level("children", stream)

    @tap.sync("grandchildren", parent="children", replication_key="id", schema=GRANDCHILD)
    def grandchildren(parent, stream):
        try:
            yield {"id": 1, "parent": 1, "child": 1}
            if stop is not None:
                stop.handle(signal.SIGTERM, None)
            if error:
                raise RuntimeError("boom")
            yield {"id": "bad", "parent": 1, "child": 1}
        finally:
            level("grandchildren", stream)

    return tap


INNERMOST_FIRST = [
    ("grandchildren", "grandchildren", 30),
    ("children, inner", "children", 20),
    ("children", "children", 20),
    ("parents", "parents", 10),
]


@pytest.mark.parametrize("page", [1, 2, 1000])
@pytest.mark.parametrize("how", ["stop", "error", "bad row"])
def test_generators_are_closed_innermost_first_each_in_its_own_context(how: str, page: int):
    ended: list[Any] = []
    stopper = Stopper()
    tap = closing_family(ended, stop=stopper if how == "stop" else None, error=how == "error")
    covered = {"parent_bookmark": {"key": 10}}
    state = {
        "bookmarks": {
            "parents": {"key": 10},
            "children": {"id": 20, **covered},
            "grandchildren": {"id": 30, **covered},
        }
    }
    run = run_tap(tap, {"page_max_rows": page}, state=state, stopper=stopper)
    if how == "bad row" and page == 1000:
        assert ended[:4] == [INNERMOST_FIRST[i] for i in (0, 1, 2, 0)]  # all were run to their end before the page
    else:
        assert ended == INNERMOST_FIRST
    assert (run.result.stopped_by is not None) == (how == "stop")


def test_what_goes_wrong_when_they_are_closed_is_logged_and_hides_nothing(caplog: pytest.LogCaptureFixture):
    tap = burler.tap("tap-family")
    ended = []

    @tap.sync("parents", key_properties="id", schema=PARENT)
    def parents():
        try:
            yield {"id": 1, "key": 1}
            yield {"id": 2, "key": 2}
        finally:
            ended.append("parents")
            raise ValueError("in the parent's finally")

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent):
        def inner():
            try:
                yield {"id": 1, "parent": 1}
                raise RuntimeError("the error itself")
            finally:
                ended.append("inner")

        def outer():
            try:
                yield inner()
            finally:
                ended.append("outer")
                raise ValueError("in outer's finally")

        try:
            yield outer()
        finally:
            ended.append("children")

    run = run_tap(tap)
    assert ended == ["inner", "outer", "children", "parents"]
    assert "RuntimeError: the error itself" in str(run.result.errors["parents"])
    assert "stream 'children': its function raised when it was closed: ValueError: in outer's finally" in caplog.text
    assert "stream 'parents': its function raised when it was closed" in caplog.text
