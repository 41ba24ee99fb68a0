"""What a family saves and where: ``save_bookmark``, positions in ``stream.state``, the stream a run was in."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
from families import CHILD, GRANDCHILD, INTEGER, PARENT, failures_of

import burler
from burler.testing import TapRun, run_tap
from support.internals import signals

ROW = {"properties": dict.fromkeys(("id", "key", "parent"), INTEGER)}


def states_of(run: TapRun) -> list[tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]]:
    """Each STATE, with the rows that are out before it."""
    found = []
    for position, message in enumerate(run.messages):
        if message["type"] == "STATE":
            before = [(m["stream"], m["record"]) for m in run.messages[:position] if m["type"] == "RECORD"]
            found.append((message["value"], before))
    return found


def assert_no_state_is_ahead(run: TapRun, count: int = 2) -> list[int]:
    """No STATE says more of the parents than is out of their children (``count`` each); gives what they say."""
    keys = []
    for state, before in states_of(run):
        key = state.get("bookmarks", {}).get("parents", {}).get("key", -1)
        children = [row["parent"] for name, row in before if name == "children"]
        for parent in range(key + 1):
            assert children.count(parent) >= count, (key, parent)
        keys.append(key)
    return keys


# ---- save_bookmark --------------------------------------------------------------------------------


def manual(save: Callable[[burler.StreamRun, int], None], *, count: int = 6, fails: int | None = None) -> burler.Tap:
    """A parent that calls ``save`` behind each of its rows; each row has two children."""
    tap = burler.tap("tap-saved")

    @tap.sync("parents", key_properties="id", replication_key="key", bookmark_strategy="manual", schema=PARENT)
    def parents(stream):
        for i in range(stream.bookmark or 0, count):
            yield {"id": i, "key": i}
            save(stream, i)

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent):
        for k in (1, 2):
            if parent["id"] == fails and k == 2:
                raise LookupError("as planned")
            yield {"id": k, "parent": parent["id"]}

    return tap


SAVES = {
    "the greatest": lambda stream, i: stream.save_bookmark(),
    "a value": lambda stream, i: stream.save_bookmark(i),
    "a value now and then": lambda stream, i: stream.save_bookmark(i) if i % 2 else None,
    "one behind": lambda stream, i: stream.save_bookmark(i - 1) if i else None,
}


@pytest.mark.parametrize("page", [1, 3, 1000])
@pytest.mark.parametrize("buffer", [1, 2, 100])
@pytest.mark.parametrize("save", SAVES)
def test_what_an_author_vouches_for_waits_for_the_children(save: str, buffer: int, page: int):
    run = run_tap(manual(SAVES[save]), {"parent_buffer_rows": buffer, "page_max_rows": page})
    assert not run.result.errors
    keys = assert_no_state_is_ahead(run)
    assert keys[-1] == (4 if save == "one behind" else 5)
    if page == buffer == 1:
        assert len(set(keys)) >= 3, "on the way, too"


@pytest.mark.parametrize("fails", [0, 3, 5])
@pytest.mark.parametrize("buffer", [1, 2, 100])
@pytest.mark.parametrize("save", SAVES)
def test_what_an_author_vouches_for_passes_no_failure(save: str, buffer: int, fails: int):
    config = {"parent_buffer_rows": buffer}
    run = run_tap(manual(SAVES[save], fails=fails), config)
    assert [failure.where for failure in failures_of(run, "children")] == [f"parent parents id={fails}"]
    assert run.states[-1].get("bookmarks", {}).get("parents", {}).get("key", -1) <= fails
    rest = run_tap(manual(SAVES[save]), config, state=run.states[-1])
    got = {(row["parent"], row["id"]) for one in (run, rest) for row in one.records("children")}
    assert got == {(i, k) for i in range(6) for k in (1, 2)}


def test_without_manual_it_asks_for_a_state_and_says_what_is_out():
    tap = burler.tap("tap-saved")

    @tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT)
    def parents(stream):
        for i in range(6):
            yield {"id": i, "key": i}
            stream.save_bookmark()

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent, stream):
        for k in (1, 2):
            yield {"id": k, "parent": parent["id"]}
            stream.save_bookmark()

    for buffer in (1, 2, 100):
        run = run_tap(tap, {"parent_buffer_rows": buffer, "page_max_rows": 1})
        assert not run.result.errors
        keys = assert_no_state_is_ahead(run)
        assert keys[-1] == 5
        if buffer == 1:
            assert set(range(5)) <= set(keys)


# ---- positions of the author's own ------------------------------------------------------------------


def positioned(count: int, *, fails: int | None = None, asked: list[int] | None = None) -> burler.Tap:
    """A parent without a key that goes on from ``stream.state``."""
    tap = burler.tap("tap-saved")

    @tap.sync(
        "parents", key_properties="id", replication_method="LOG_BASED", bookmark_strategy="every_n(1)", schema=PARENT
    )
    def parents(stream):
        for i in range(stream.state.get("next", 0), count):
            if asked is not None:
                asked.append(i)
            yield {"id": i}
            stream.state["next"] = i + 1

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent, stream):
        if parent["id"] == fails:
            raise LookupError("as planned")
        stream.state["last"] = parent["id"]
        yield {"id": 1, "parent": parent["id"]}

    return tap


@pytest.mark.parametrize("buffer", [1, 2, 100])
@pytest.mark.parametrize("page", [1, 1000])
def test_no_position_is_ahead_of_the_children(page: int, buffer: int):
    run = run_tap(positioned(7), {"parent_buffer_rows": buffer, "page_max_rows": page})
    for state, before in states_of(run):
        marks = state.get("bookmarks", {})
        children = {row["parent"] for name, row in before if name == "children"}
        assert children >= set(range(marks.get("parents", {}).get("stream_state", {}).get("next", 0)))
        assert marks.get("children", {}).get("stream_state", {}).get("last", 0) in children | {0}
    assert run.states[-1]["bookmarks"]["parents"]["stream_state"] == {"next": 7}
    assert run.states[-1]["bookmarks"]["children"]["stream_state"] == {"last": 6}


@pytest.mark.parametrize("buffer", [1, 2, 100])
def test_children_without_their_parents_go_on_from_the_position_that_they_have_reached(buffer: int):
    config = {"parent_buffer_rows": buffer}
    state: dict[str, Any] | None = None
    for count, begin in ((3, 0), (5, 3), (5, 5), (8, 5)):
        asked: list[int] = []
        run = run_tap(positioned(count, asked=asked), config, select="children", state=state)
        assert not run.result.errors
        assert [row["parent"] for row in run.records("children")] == asked == list(range(begin, count))
        assert run.records("parents") == []
        state = run.states[-1]
        assert "parents" not in state["bookmarks"], "its own rows are not out"


def test_children_without_their_parents_that_fail_keep_their_position():
    run = run_tap(positioned(6, fails=3), {"parent_buffer_rows": 1}, select="children")
    assert list(run.result.errors) == ["children"]
    rest = run_tap(positioned(6), {"parent_buffer_rows": 1}, select="children", state=run.states[-1])
    assert {row["parent"] for one in (run, rest) for row in one.records("children")} == set(range(6))
    assert 0 not in {row["parent"] for row in rest.records("children")}, "it goes on, and does not begin anew"


def test_parents_that_are_selected_later_come_from_their_own_beginning():
    alone = run_tap(positioned(4), select="children")
    both = run_tap(positioned(6), state=alone.states[-1])
    assert [row["id"] for row in both.records("parents")] == list(range(6))
    assert {row["parent"] for row in both.records("children")} >= {4, 5}
    again = run_tap(positioned(6), state=both.states[-1])
    assert again.records("parents") == again.records("children") == []


# ---- the stream that a run was in -------------------------------------------------------------------


def two_lines(stopper: signals.Stopper, at: tuple[str, int]) -> burler.Tap:
    """``first`` alone, then a family; the run is stopped as one function gives one row."""
    tap = burler.tap("tap-saved")

    def rows(name: str, number: int) -> None:
        if (name, number) == at:
            stopper.handle(signal.SIGTERM, None)

    def give(name: str, count: int, **more: int) -> Any:
        for i in range(count):
            rows(name, i)
            yield {"id": i, **more}

    tap.sync("first", key_properties="id", schema=PARENT)(lambda: give("first", 2))
    tap.sync("parents", key_properties="id", schema=PARENT)(lambda: give("parents", 2))
    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: give("children", 2, parent=parent["id"]))
    tap.sync("below", parent="children", schema=GRANDCHILD)(lambda parent: give("below", 2, child=parent["id"]))
    tap.sync("last", key_properties="id", schema=PARENT)(lambda: give("last", 2))
    return tap


@pytest.mark.parametrize(
    ("at", "named"),
    [
        (("first", 1), "first"),
        (("parents", 0), "parents"),
        (("children", 0), "parents"),
        (("below", 0), "children"),
        (("below", 1), "below"),
        (("children", 1), "below"),
        (("parents", 1), "below"),
        (("last", 1), "last"),
    ],
    ids=str,
)
@pytest.mark.parametrize("page", [1, 1000])
def test_the_state_of_a_stopped_run_names_the_stream_whose_rows_came_last(at: tuple[str, int], named: str, page: int):
    stopper = signals.Stopper()
    run = run_tap(two_lines(stopper, at), {"parent_buffer_rows": 1, "page_max_rows": page}, stopper=stopper)
    assert run.result.stopped_by == signal.SIGTERM
    assert run.states[-1]["currently_syncing"] == named
    schemas = [
        m["stream"]
        for m in run_tap(two_lines(signals.Stopper(), ("", 0)), state=run.states[-1]).messages
        if "schema" in m
    ]
    family = ["parents", "children", "below"]
    lines = [["first"], family, ["last"]]
    begin = next(i for i, line in enumerate(lines) if named in line)
    assert schemas == [name for line in [*lines[begin:], *lines[:begin]] for name in line]


def test_a_run_that_comes_to_its_end_names_none():
    run = run_tap(two_lines(signals.Stopper(), ("", 0)), {"page_max_rows": 1})
    assert "currently_syncing" not in run.states[-1]
    off = run_tap(two_lines(signals.Stopper(), ("", 0)), {"page_max_rows": 1, "currently_syncing": False})
    assert all("currently_syncing" not in state for state in off.states)


def test_a_substream_that_is_not_selected_any_more_names_its_line():
    state = {"currently_syncing": "below"}
    run = run_tap(two_lines(signals.Stopper(), ("", 0)), state=state, select="first,parents")
    assert [m["stream"] for m in run.messages if "schema" in m] == ["parents", "first"]


# ---- full tables ------------------------------------------------------------------------------------


def test_a_block_of_a_full_table_is_refused_in_a_substream():
    """It would end for each parent, and a target would drop the children of all parents but the last."""
    tap = burler.tap("tap-saved")
    tap.sync("parents", key_properties="id", schema=PARENT)(lambda: [{"id": i} for i in range(3)])

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent, stream):
        with stream.full_table():
            yield {"id": 1, "parent": parent["id"]}

    run = run_tap(tap)
    assert list(run.result.errors) == ["children"]
    for failure in failures_of(run, "children"):
        assert "full_table()" in str(failure.error)
        assert "stream 'children'" in str(failure.error)
    assert len(run.records("parents")) == 3


def test_a_substream_that_has_not_changed_for_one_parent_is_no_whole_table():
    """A source that says 304 for the children of one parent: a target must not drop those that it has."""
    tap = burler.tap("tap-saved")
    tap.sync("parents", key_properties="id", schema=PARENT)(lambda: [{"id": i} for i in range(3)])

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent, stream):
        if parent["id"] == 1:
            stream.not_modified()
            return
        yield {"id": 1, "parent": parent["id"]}

    state = {"bookmarks": {"parents": {"version": 1}, "children": {"version": 1}}}
    run = run_tap(tap, state=state)
    assert not run.result.errors
    assert [m["stream"] for m in run.messages if m["type"] == "ACTIVATE_VERSION"] == ["parents"]
    assert run.states[-1]["bookmarks"]["children"] == {"version": 1}
