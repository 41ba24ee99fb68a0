"""``rollup=True``: a stream is read again from where its substreams stand, so that children of old rows are found."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from families import INTEGER, failures_of

import burler
from burler.errors import StreamError
from burler.testing import TapRun, run_tap

ROW = {"properties": dict.fromkeys(("id", "key", "parent"), INTEGER)}


class World:
    """Parents 0..9 and whatever children they have; parents' keys are their numbers and never change.

    ``began`` notes the bookmark of each function as it was called, ``broken`` the parents whose children can't be had.
    """

    def __init__(self) -> None:
        self.children: dict[int, list[int]] = {i: [i] for i in range(6)}  # parent -> keys of its children
        self.notes: dict[int, list[int]] = {}
        self.began: dict[str, Any] = {}
        self.broken: set[int] = set()

    def tap(
        self, *, notes: Mapping[str, Any] | None = None, parent: Mapping[str, Any] | None = None, **child: Any
    ) -> Any:
        """``child``: options of ``children``; ``notes``: of a second substream, if there is to be one."""
        tap = burler.tap("tap-world")

        @tap.sync(
            "parents",
            **{"key_properties": "id", "replication_key": "key", "order": "asc", "schema": ROW, **(parent or {})},
        )
        def parents(stream):
            self.began["parents"] = stream.bookmark
            yield from ({"id": i, "key": i} for i in range(10) if stream.bookmark is None or i >= stream.bookmark)

        def substream(name: str, source: dict[int, list[int]], options: Mapping[str, Any]) -> None:
            def rows(parent: Any, stream: burler.StreamRun) -> Iterable[dict[str, int]]:
                self.began[name] = stream.bookmark
                if name == "children" and parent["id"] in self.broken:
                    raise LookupError("as planned")
                for key in source.get(parent["id"], ()):
                    if stream.bookmark is None or key >= stream.bookmark:
                        yield {"id": key, "key": key, "parent": parent["id"]}

            tap.sync(name, parent="parents", schema=ROW, **{"replication_key": "key", **options})(rows)

        substream("children", self.children, {"rollup": True, **child})
        if notes is not None:
            substream("notes", self.notes, notes)
        return tap


def pairs(run: TapRun, stream: str = "children") -> set[tuple[int, int]]:
    return {(row["parent"], row["key"]) for row in run.records(stream)}


def read(run: TapRun) -> list[int]:
    return [row["id"] for row in run.records("parents")]


@pytest.mark.parametrize("rollup", [True, False])
def test_a_late_child_of_an_old_parent_is_found(rollup: bool):
    world = World()
    first = run_tap(world.tap(rollup=rollup))
    assert first.states[-1]["bookmarks"]["parents"] == {"key": 9}
    assert first.states[-1]["bookmarks"]["children"]["key"] == 5
    world.children[7] = [8]
    second = run_tap(world.tap(rollup=rollup), state=first.states[-1])
    assert not second.result.errors
    assert world.began == {"parents": 5 if rollup else 9, "children": 5}
    assert read(second) == list(range(5 if rollup else 9, 10))
    assert ((7, 8) in pairs(second)) == rollup
    assert second.states[-1]["bookmarks"]["parents"] == {"key": 9}, "it never goes back"


def test_a_lookback_of_the_substream_goes_further_back():
    world = World()
    first = run_tap(world.tap(lookback=3))
    world.children[3].append(4)
    second = run_tap(world.tap(lookback=3), state=first.states[-1])
    assert world.began == {"parents": 2, "children": 2}
    assert pairs(second) == {(2, 2), (3, 3), (3, 4), (4, 4), (5, 5)}
    assert {name: entry["key"] for name, entry in second.states[-1]["bookmarks"].items()} == {
        "parents": 9,
        "children": 5,
    }


def test_a_lookback_of_the_parent_counts_from_there():
    world = World()
    first = run_tap(world.tap(parent={"lookback": 2}))
    run_tap(world.tap(parent={"lookback": 2}), state=first.states[-1])
    assert world.began == {"parents": 3, "children": 5}


@pytest.mark.parametrize(
    ("notes", "begin"),
    [({"rollup": True}, 3), ({"rollup": True, "lookback": 2}, 1), ({}, 5), ({"rollup": False, "lookback": 2}, 5)],
    ids=str,
)
def test_the_hindmost_of_those_that_roll_up_counts(notes: dict[str, Any], begin: int):
    world = World()
    world.notes.update({i: [i] for i in range(4)})
    first = run_tap(world.tap(notes=notes))
    run_tap(world.tap(notes=notes), state=first.states[-1])
    assert world.began["parents"] == begin


def test_one_that_is_not_selected_does_not_count():
    world = World()
    world.notes[0] = [0]
    state = run_tap(world.tap(notes={"rollup": True})).states[-1]
    run_tap(world.tap(notes={"rollup": True}), state=state, select="parents,children")
    assert world.began["parents"] == 5


def test_without_a_bookmark_of_the_substream_all_is_read_again():
    """It had no rows so far: the first one may belong to any parent."""
    world = World()
    world.children.clear()
    first = run_tap(world.tap())
    assert "key" not in first.states[-1]["bookmarks"]["children"]
    world.children[1] = [12]
    second = run_tap(world.tap(), state=first.states[-1])
    assert world.began["parents"] is None
    assert pairs(second) == {(1, 12)}


def test_a_substream_that_is_ahead_of_its_parent_changes_nothing():
    world = World()
    world.children[9] = [40]
    first = run_tap(world.tap())
    assert first.states[-1]["bookmarks"]["children"]["key"] == 40
    run_tap(world.tap(), state=first.states[-1])
    assert world.began["parents"] == 9


def test_the_parent_that_nobody_selected_is_read_again_as_well():
    world = World()
    first = run_tap(world.tap(), select="children")
    world.children[6] = [6]
    second = run_tap(world.tap(), state=first.states[-1], select="children")
    assert world.began == {"parents": 5, "children": 5}
    assert (6, 6) in pairs(second)


@pytest.mark.parametrize("broken", [{0}, {5}, {6}, {9}, {2, 7}], ids=str)
@pytest.mark.parametrize("buffer", [1, 100])
def test_a_failure_while_old_parents_are_read_again_loses_nothing(buffer: int, broken: set[int]):
    """Two runs in which some children can't be had, while more of them come; then one in which all can."""
    world = World()
    config = {"parent_buffer_rows": buffer}
    run = run_tap(world.tap(), config)
    got = pairs(run)
    world.broken = broken
    for late in (6, 8):
        world.children.setdefault(late, []).append(late + 1)
        run = run_tap(world.tap(), config, state=run.states[-1])
        again = broken & set(read(run))
        assert bool(run.result.errors) == bool(again)
        if again:
            assert {f.where for f in failures_of(run, "children")} == {f"parent parents id={i}" for i in again}
        got |= pairs(run)
        assert run.states[-1]["bookmarks"]["parents"]["key"] <= 9
    world.broken = set()
    run = run_tap(world.tap(), config, state=run.states[-1])
    assert not run.result.errors
    assert got | pairs(run) == {(i, key) for i, keys in world.children.items() for key in keys}


def test_at_the_third_level_all_above_are_read_again():
    began: dict[str, Any] = {}
    late = False
    tap = burler.tap("tap-world")

    def since(stream: burler.StreamRun, keys: Iterable[int]) -> list[int]:
        began[stream.name] = stream.bookmark
        return [key for key in keys if stream.bookmark is None or key >= stream.bookmark]

    @tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=ROW)
    def parents(stream):
        yield from ({"id": key, "key": key} for key in since(stream, range(10)))

    @tap.sync("children", parent="parents", replication_key="key", schema=ROW)
    def children(parent, stream):
        yield from ({"id": key, "key": key, "parent": parent["id"]} for key in since(stream, [parent["key"]]))

    @tap.sync("below", parent="children", replication_key="key", rollup=True, schema=ROW)
    def below(parent, stream):
        keys = [parent["key"]] if parent["key"] < 4 or (late and parent["key"] == 6) else []
        yield from ({"id": key, "key": key, "parent": parent["id"]} for key in since(stream, keys))

    first = run_tap(tap)
    marks = {name: entry["key"] for name, entry in first.states[-1]["bookmarks"].items()}
    assert marks == {"parents": 9, "children": 9, "below": 3}
    late = True
    second = run_tap(tap, state=first.states[-1])
    assert began == {"parents": 3, "children": 3, "below": 3}
    assert (6, 6) in pairs(second, "below")
    marks = {name: entry["key"] for name, entry in second.states[-1]["bookmarks"].items()}
    assert marks == {"parents": 9, "children": 9, "below": 6}


def test_date_times_and_a_time_to_look_back():
    began: list[Any] = []
    schema = {"properties": {"id": INTEGER, "at": {"type": "string", "format": "date-time"}}}
    tap = burler.tap("tap-world")

    @tap.sync("parents", key_properties="id", replication_key="at", order="asc", schema=schema)
    def parents(stream):
        began.append(stream.bookmark)
        yield from ({"id": day, "at": f"2024-05-{day:02}T00:00:00Z"} for day in range(1, 10))

    tap.sync(
        "children", parent="parents", replication_key="at", rollup=True, lookback=dt.timedelta(hours=12), schema=schema
    )(lambda parent: [parent] if parent["id"] == 4 else [])
    first = run_tap(tap)
    run_tap(tap, state=first.states[-1])
    assert began == [None, "2024-05-03T12:00:00Z"]


def test_keys_of_two_kinds_can_not_be_rolled_up():
    tap = burler.tap("tap-world")
    text = {"properties": {"id": INTEGER, "at": {"type": "string"}}}
    tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=ROW)(lambda: [])
    tap.sync("children", parent="parents", replication_key="at", rollup=True, schema=text)(lambda parent: [])
    state = {"bookmarks": {"parents": {"key": 5}, "children": {"at": "x", "parent_bookmark": {"key": 5}}}}
    run = run_tap(tap, state=state)
    error = run.result.errors["parents"]
    assert isinstance(error, StreamError)
    assert "of different kinds" in str(error)
    assert run.states[-1]["bookmarks"] == state["bookmarks"]


def test_each_partition_is_rolled_up_by_itself():
    began: dict[str, Any] = {}
    tap = burler.tap("tap-world")
    tap.partitions("parents")(lambda: [{"name": name} for name in "ab"])

    @tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=ROW)
    def parents(partition, stream):
        began[partition["name"]] = stream.bookmark
        yield from ({"id": i, "key": i} for i in range(stream.bookmark or 0, 10))

    @tap.sync("children", parent="parents", replication_key="key", rollup=True, schema=ROW)
    def children(parent, partition):
        if parent["id"] <= {"a": 3, "b": 6}[partition["name"]]:
            yield {"id": 1, "key": parent["id"], "parent": parent["id"]}

    first = run_tap(tap)
    assert not first.result.errors
    run_tap(tap, state=first.states[-1])
    assert began == {"a": 3, "b": 6}
