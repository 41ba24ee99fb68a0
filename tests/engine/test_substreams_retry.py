"""Calls of substreams, and families, that are begun anew (``retry_sync_on``): what comes, and what is saved."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

import pytest
from families import CHILD, INTEGER, PARENT, failures_of

import burler
from burler.errors import StreamError
from burler.testing import TapRun, run_tap

ROW = {"properties": dict.fromkeys(("id", "key", "parent"), INTEGER)}


class Expired(Exception):
    """What is retried."""


def family(children: Callable[..., Any], *, count: int = 3, **options: Any) -> burler.Tap:
    tap = burler.tap("tap-family")

    @tap.sync("parents", key_properties="id", replication_key="key", bookmark_strategy="every_n(1)", schema=PARENT)
    def parents(stream):
        yield from ({"id": i, "key": i} for i in range(stream.bookmark or 0, count))

    tap.sync("children", parent="parents", schema=ROW, retry_sync_on=Expired, **options)(children)
    return tap


def failing_times(times: int, seen: list[Any], error: type[Exception] = Expired) -> Callable[..., Any]:
    """A child that, for parent 1, fails so often after its first row."""

    def children(parent, stream):
        seen.append((parent["id"], stream.bookmark))
        yield {"id": 1, "parent": parent["id"]}
        if parent["id"] == 1 and len([one for one in seen if one[0] == 1]) <= times:
            raise error("as planned")
        yield {"id": 2, "parent": parent["id"]}

    return children


def pairs(run: TapRun) -> list[tuple[int, int]]:
    return [(row["parent"], row["id"]) for row in run.records("children")]


def assert_states_are_true(run: TapRun, *, missing: Set[tuple[int, int]] = frozenset()) -> None:
    """What is ``missing`` comes again, since the bookmark equals its parent's key."""
    for position, message in enumerate(run.messages):
        if message["type"] == "STATE":
            key = message["value"].get("bookmarks", {}).get("parents", {}).get("key", -1)
            before = [m for m in run.messages[:position] if m["type"] == "RECORD" and m["stream"] == "children"]
            out = {(m["record"]["parent"], m["record"]["id"]) for m in before}
            assert out >= {(i, k) for i in range(key + 1) for k in (1, 2)} - missing, key
            assert not missing or key <= min(missing)[0]


@pytest.mark.parametrize("page", [1, 1000])
@pytest.mark.parametrize("buffer", [1, 100])
def test_a_call_is_made_again_and_the_rows_of_the_failed_try_stay(buffer: int, page: int):
    seen: list[Any] = []
    run = run_tap(family(failing_times(2, seen)), {"parent_buffer_rows": buffer, "page_max_rows": page})
    assert not run.result.errors
    assert [parent for parent, _ in seen] == [0, 1, 1, 1, 2]
    assert pairs(run) == [(0, 1), (0, 2), (1, 1), (1, 1), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 2}
    assert_states_are_true(run)


@pytest.mark.parametrize(("most", "calls"), [(0, 1), (1, 2), (3, 4), (None, 4)])
def test_after_so_many_retries_the_call_has_failed(most: int | None, calls: int):
    seen: list[Any] = []
    run = run_tap(family(failing_times(99, seen), **({} if most is None else {"max_retries": most})))
    assert [parent for parent, _ in seen] == [0, *[1] * calls, 2]
    [failure] = failures_of(run, "children")
    assert (failure.where, type(failure.error)) == ("parent parents id=1", Expired)
    assert pairs(run) == [(0, 1), (0, 2), *[(1, 1)] * calls, (2, 1), (2, 2)]
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 1}
    assert_states_are_true(run, missing={(1, 2)})


def test_another_error_is_not_retried():
    seen: list[Any] = []
    run = run_tap(family(failing_times(99, seen, KeyError)))
    assert [parent for parent, _ in seen] == [0, 1, 2]
    assert isinstance(failures_of(run, "children")[0].error, KeyError)


def test_setup_is_told_everything_before_each_retry():
    told: list[Any] = []
    made = []

    def setup(client, config, stream, error, retry, parent, state):
        told.append((client, config["n"], stream.name, str(error), retry, dict(parent), "bookmarks" in state))
        parent["id"] = 99  # its own copy

    seen: list[Any] = []
    tap = family(failing_times(2, seen), setup_retry=setup)
    tap.client(lambda: made.append(1) or "the client")
    state = {"bookmarks": {"parents": {"key": 0}, "children": {"parent_bookmark": {"key": 0}}}}
    run = run_tap(tap, {"n": 7}, state=state)
    assert not run.result.errors
    assert told == [("the client", 7, "children", "as planned", retry, {"id": 1, "key": 1}, True) for retry in (1, 2)]
    assert [parent for parent, _ in seen] == [0, 1, 1, 1, 2]
    assert made == [1]


def test_a_retry_begins_with_the_bookmark_that_setup_gives_and_the_next_call_with_its_own():
    seen: list[Any] = []
    given = iter([None, 7])
    tap = family(failing_times(2, seen), setup_retry=lambda: next(given), replication_key="key")
    state = {"bookmarks": {"children": {"key": 3}}}
    assert not run_tap(tap, state=state).result.errors
    assert seen == [(0, 3), (1, 3), (1, 3), (1, 7), (2, 3)]


def _raises() -> None:
    raise ConnectionError("no session")


def _exits() -> None:
    raise SystemExit(2)


def test_a_retry_begins_with_the_state_that_its_call_began_with():
    begun = []

    def children(parent, stream):
        begun.append(dict(stream.state))
        stream.state["calls"] = stream.state.get("calls", 0) + 1
        if len(begun) == 2:
            raise Expired("as planned")
        yield {"id": 1, "parent": parent["id"]}

    run = run_tap(family(children))
    assert not run.result.errors
    assert begun == [{}, {"calls": 1}, {"calls": 1}, {"calls": 2}]


@pytest.mark.parametrize("setup", [_raises, _exits])
def test_a_setup_that_fails_ends_that_call_alone(setup: Callable[[], None]):
    seen: list[Any] = []
    run = run_tap(family(failing_times(99, seen), setup_retry=setup))
    assert list(run.result.errors) == ["children"]
    [failure] = failures_of(run, "children")
    assert "setup_retry" in str(failure.error)
    assert "test_substreams_retry.py:" in str(failure.error)
    assert "no session" in str(failure.error) or "SystemExit" in str(failure.error)
    assert pairs(run) == [(0, 1), (0, 2), (1, 1), (2, 1), (2, 2)]
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 1}


def test_what_hangs_on_a_call_that_is_retried_comes_with_each_try():
    seen: list[Any] = []
    tap = family(failing_times(1, seen))
    tap.sync("below", parent="children", schema=CHILD)(
        lambda parent: [{"id": parent["id"], "parent": parent["parent"]}]
    )
    run = run_tap(tap)
    below = [(row["parent"], row["id"]) for row in run.records("below")]
    assert sorted(below) == [(0, 1), (0, 2), (1, 1), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert not run.result.errors


def test_a_failed_try_whose_children_failed_leaves_them_missing():
    """The row comes once more, and its children with it; still the first failure is told, and the bookmark waits."""
    tries: list[int] = []
    tap = family(failing_times(1, []))

    @tap.sync("below", parent="children", schema=CHILD)
    def below(parent):
        if (parent["parent"], parent["id"]) == (1, 1):
            tries.append(1)
            if len(tries) == 1:
                raise KeyError("at the first try")
        yield {"id": parent["id"], "parent": parent["parent"]}

    run = run_tap(tap)
    assert list(run.result.errors) == ["below"]
    assert len(tries) == 2
    assert run.states[-1]["bookmarks"]["parents"]["key"] <= 1


@pytest.mark.parametrize("buffer", [1, 2, 100])
@pytest.mark.parametrize("page", [1, 1000])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_family_is_begun_anew_from_its_first_stream(at: int, page: int, buffer: int):
    """The parent's function fails once; children of what was read ahead come, and all of it once more."""
    began: list[Any] = []
    tap = burler.tap("tap-family")

    @tap.sync(
        "parents",
        key_properties="id",
        replication_key="key",
        bookmark_strategy="every_n(1)",
        retry_sync_on=Expired,
        schema=PARENT,
    )
    def parents(stream):
        began.append((stream.bookmark, dict(stream.state)))
        for i in range(stream.bookmark or 0, 4):
            if i == at and len(began) == 1:
                raise Expired
            yield {"id": i, "key": i}
            stream.state["seen"] = i

    @tap.sync("children", parent="parents", schema=ROW)
    def children(parent):
        yield from ({"id": k, "parent": parent["id"]} for k in (1, 2))

    run = run_tap(tap, {"parent_buffer_rows": buffer, "page_max_rows": page})
    assert not run.result.errors
    assert began == [(None, {}), (None, {})]
    assert [row["id"] for row in run.records("parents")] == [*range(at), *range(4)]
    assert pairs(run) == [(i, k) for i in (*range(at), *range(4)) for k in (1, 2)]
    assert_states_are_true(run)
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 3, "stream_state": {"seen": 3}}


def test_a_call_that_failed_in_an_earlier_try_of_the_family_is_still_told():
    """It may have been for a row that the second try does not bring."""
    began: list[int] = []
    tap = burler.tap("tap-family")

    @tap.sync("parents", key_properties="id", replication_key="key", order="asc", retry_sync_on=Expired, schema=PARENT)
    def parents():
        began.append(1)
        for i in range(4):
            yield {"id": i, "key": i}
            if i == 2 and len(began) == 1:
                raise Expired

    @tap.sync("children", parent="parents", schema=ROW)
    def children(parent):
        if parent["id"] == 1 and len(began) == 1:
            raise KeyError("once")
        yield {"id": 1, "parent": parent["id"]}

    run = run_tap(tap, {"parent_buffer_rows": 1})
    assert [failure.where for failure in failures_of(run, "children")] == ["parent parents id=1"]
    assert run.states[-1]["bookmarks"]["parents"]["key"] <= 1
    assert {row["parent"] for row in run.records("children")} == {0, 1, 2, 3}


def test_a_bookmark_function_is_told_of_the_rows_of_the_last_try():
    counts, tries = [], []
    tap = burler.tap("tap-family")
    tap.sync("parents", key_properties="id", schema=PARENT)(lambda: [{"id": 1, "key": 1}, {"id": 2, "key": 2}])

    @tap.sync("children", parent="parents", schema=ROW, retry_sync_on=Expired)
    def children(parent):
        yield {"id": 1, "parent": parent["id"]}
        if not tries:
            tries.append(1)
            raise Expired("as planned")
        yield {"id": 2, "parent": parent["id"]}

    @tap.bookmark("parents")
    def bookmark(children, record):
        counts.append(children["children"].count)
        return record["key"]

    assert not run_tap(tap).result.errors
    assert counts == [2, 2]


def test_rows_of_a_try_that_was_given_up_with_their_children_say_nothing_of_the_next():
    """What the parent keeps beside its rows was no JSON: that shows once their children are called."""
    tries: list[int] = []
    tap = burler.tap("tap-family")

    @tap.sync(
        "parents", key_properties="id", replication_key="key", order="asc", retry_sync_on=StreamError, schema=PARENT
    )
    def parents(stream):
        tries.append(1)
        yield from ({"id": i, "key": i} for i in range(3))
        stream.state["at"] = object() if len(tries) == 1 else 2

    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: [{"id": 1, "parent": parent["id"]}])
    run = run_tap(tap)
    assert not run.result.errors
    assert [row["parent"] for row in run.records("children")] == [0, 1, 2, 0, 1, 2]
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 2, "stream_state": {"at": 2}}
