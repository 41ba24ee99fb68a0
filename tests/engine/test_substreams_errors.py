"""What goes wrong in a substream: whose error it is, what is out by then, and what is closed in which order."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from families import CHILD, GRANDCHILD, PARENT, failures_of, parents_of

import burler
from burler.errors import BadRecordError
from burler.testing import run_tap
from support.internals import signals

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
        (_raises, "LookupError: no such thing", 3),
        (_raises_at_once, "LookupError: no such thing", 2),
        (_exits, "SystemExit", 3),
        (_stop_iteration, "StopIteration", 2),
        (_stop_iteration_in_a_generator, "StopIteration", 3),
    ],
)
@pytest.mark.parametrize(("page", "buffer"), [(1, 1), (1000, 2), (1, 100)])
def test_an_error_of_a_child_ends_that_call_alone_and_names_child_and_parent(
    fn: Callable[..., Any], says: str, children: int, page: int, buffer: int
):
    run = run_tap(broken_child(fn), {"page_max_rows": page, "parent_buffer_rows": buffer})
    assert list(run.result.errors) == ["children"]
    [failure] = failures_of(run, "children")
    assert failure.where == "parent parents id=1"
    assert says in f"{type(failure.error).__name__}: {failure.error}"
    # What came before it is out, and so is what came for the others; the other streams go on.
    assert len(run.records("children")) == children
    assert [row["id"] for row in run.records("parents")] == [0, 1, 2]
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
    assert list(run.result.errors) == ["parents"]
    assert "children" not in str(run.result.errors["parents"])
    assert len(run.records("children")) == 1


def test_a_row_of_a_child_that_does_not_fit_names_the_child_and_the_row():
    run = run_tap(broken_child(lambda parent: [{"id": 1, "parent": 1}, {"id": 2, "parent": "x"}]))
    assert list(run.result.errors) == ["children"]
    error = run.result.errors["children"]
    assert isinstance(error, BadRecordError)
    assert "stream 'children', row id=2: field 'parent'" in str(error)
    assert [row["id"] for row in run.records("parents")] == [0, 1, 2]
    assert len(run.records("other")) == 1
    assert "parents" not in run.states[-1]["bookmarks"]


def test_a_row_without_its_key_is_refused_in_a_child_too():
    run = run_tap(broken_child(lambda parent: [{"parent": 1}]))
    assert list(run.result.errors) == ["children"]
    assert "field 'id' is missing" in str(run.result.errors["children"])


# ---- closing ----------------------------------------------------------------------------------------


def closing_family(ended: list[Any], *, stop: signals.Stopper | None = None, error: bool = False) -> burler.Tap:
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


GRANDCHILDREN, INNER, CHILDREN, TOP = (
    ("grandchildren", "grandchildren", 30),
    ("children, inner", "children", 20),
    ("children", "children", 20),
    ("parents", "parents", 10),
)
INNERMOST_FIRST = [GRANDCHILDREN, INNER, CHILDREN, TOP]


@pytest.mark.parametrize("page", [1, 2, 1000])
@pytest.mark.parametrize(
    ("how", "buffer", "order"),
    [
        ("stop", 1, INNERMOST_FIRST),
        ("error", 1, [GRANDCHILDREN, INNER, CHILDREN, GRANDCHILDREN, INNER, CHILDREN, TOP]),
        ("bad row", 1, None),
        # What was read ahead to its end is closed by then.
        ("stop", 100, [TOP, INNER, CHILDREN, GRANDCHILDREN]),
        ("error", 100, [TOP, INNER, CHILDREN, GRANDCHILDREN, INNER, CHILDREN, GRANDCHILDREN]),
    ],
)
def test_generators_are_closed_innermost_first_each_in_its_own_context(
    how: str, buffer: int, order: list[Any] | None, page: int
):
    ended: list[Any] = []
    stopper = signals.Stopper()
    tap = closing_family(ended, stop=stopper if how == "stop" else None, error=how == "error")
    covered = {"parent_bookmark": {"key": 10}}
    state = {
        "bookmarks": {
            "parents": {"key": 10},
            "children": {"id": 20, **covered},
            "grandchildren": {"id": 30, **covered},
        }
    }
    run = run_tap(tap, {"page_max_rows": page, "parent_buffer_rows": buffer}, state=state, stopper=stopper)
    if how == "bad row":
        # Once the row was seen, the function that gives such is called no more.
        order = [GRANDCHILDREN, INNER, CHILDREN, INNER, CHILDREN, TOP]
    assert ended == order
    assert (run.result.stopped_by is not None) == (how == "stop")
    assert list(run.result.errors) == ([] if how == "stop" else ["grandchildren"])


def quarrelsome(ended: list[str], *, stop: signals.Stopper | None = None) -> burler.Tap:
    """A tap whose generators raise something of their own when they are closed."""
    tap = burler.tap("tap-family")

    @tap.sync("parents", key_properties="id", schema=PARENT)
    def parents():
        try:
            yield {"id": 1, "key": 1}
            yield {"id": 2, "key": 2}
        finally:
            ended.append("parents")
            if stop is not None:
                raise ValueError("in the parent's finally")

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent):
        def inner():
            try:
                yield {"id": 1, "parent": 1}
                if stop is not None:
                    stop.handle(signal.SIGTERM, None)
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

    return tap


def test_what_goes_wrong_when_a_call_is_closed_is_logged_and_hides_nothing(caplog: pytest.LogCaptureFixture):
    ended: list[str] = []
    run = run_tap(quarrelsome(ended), {"parent_buffer_rows": 1})
    assert ended == ["inner", "outer", "children"] * 2 + ["parents"]
    assert [str(failure.error) for failure in failures_of(run, "children")] == ["the error itself"] * 2
    assert "stream 'children': its function raised when it was closed: ValueError: in outer's finally" in caplog.text


def test_what_goes_wrong_when_a_stopped_line_is_closed_is_logged_and_no_error(caplog: pytest.LogCaptureFixture):
    ended: list[str] = []
    stopper = signals.Stopper()
    run = run_tap(quarrelsome(ended, stop=stopper), {"parent_buffer_rows": 1}, stopper=stopper)
    assert ended == ["inner", "outer", "children", "parents"]
    assert run.result.stopped_by == signal.SIGTERM
    assert run.result.errors == {}
    assert "stream 'children': its function raised when it was closed: ValueError: in outer's finally" in caplog.text
    assert "stream 'parents': its function raised when it was closed: ValueError: in the parent's" in caplog.text
