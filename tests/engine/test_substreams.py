"""Substreams: a function called for each row of its parent, and what a STATE may say of such a family."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from families import CHILD, DEPTH_FIRST, GRANDCHILD, PARENT, failures_of, out_of, parents_of, three_levels

import burler
from burler.errors import StreamError
from burler.testing import run_tap

# ---- order ----------------------------------------------------------------------------------------


def test_rows_of_children_come_right_behind_the_row_they_belong_to_where_none_is_read_ahead():
    run = run_tap(three_levels(), DEPTH_FIRST)
    assert out_of(run) == [
        ("parents", (0, 0)),
        ("children", (7, 0)),
        ("grandchildren", (1, 0, 7)),
        ("children", (8, 0)),
        ("grandchildren", (1, 0, 8)),
        ("parents", (1, 1)),
        ("children", (7, 1)),
        ("grandchildren", (1, 1, 7)),
        ("children", (8, 1)),
        ("grandchildren", (1, 1, 8)),
    ]


def test_within_a_page_parents_come_before_children():
    names = [name for name, _ in out_of(run_tap(three_levels()))]
    assert [name for name, _ in itertools.groupby(names)] == ["parents", "children", "grandchildren"]


def test_the_schemas_of_all_come_before_the_first_row():
    run = run_tap(three_levels())
    kinds = [(m["type"], m.get("stream")) for m in run.messages if m["type"] in ("SCHEMA", "RECORD")]
    assert kinds[:3] == [("SCHEMA", "parents"), ("SCHEMA", "children"), ("SCHEMA", "grandchildren")]
    assert "SCHEMA" not in [kind for kind, _ in kinds[3:]]


def test_a_parent_without_rows_calls_no_child():
    tap, parents = parents_of(0)
    parents.substream("children", schema=CHILD).sync(lambda parent: pytest.fail("called"))
    run = run_tap(tap)
    assert not run.result.errors
    assert [m["stream"] for m in run.messages if m["type"] == "SCHEMA"] == ["parents", "children"]


def test_siblings_come_in_the_order_of_their_declaration():
    tap, parents = parents_of(2)
    for name in ("b", "a"):
        parents.substream(name, schema=CHILD).sync(lambda parent: [{"id": 1, "parent": parent["id"]}])
    assert [name for name, _ in out_of(run_tap(tap, DEPTH_FIRST))] == ["parents", "b", "a"] * 2
    assert [name for name, _ in out_of(run_tap(tap, {"page_max_rows": 1}))] == ["parents"] * 2 + ["b", "a"] * 2


# ---- selection ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("select", "streams"),
    [
        ("parents", ["parents"]),
        ("children", ["children"]),
        ("grandchildren", ["grandchildren"]),
        ("parents,grandchildren", ["parents", "grandchildren"]),
        ("!parents", ["children", "grandchildren"]),
        ("!grandchildren", ["parents", "children"]),
    ],
)
def test_each_level_may_be_selected_alone(select: str, streams: list[str]):
    whole = out_of(run_tap(three_levels(), {"page_max_rows": 1}))
    run = run_tap(three_levels(), {"page_max_rows": 1}, select=select)
    assert out_of(run) == [(name, row) for name, row in whole if name in streams]
    assert [m["stream"] for m in run.messages if m["type"] == "SCHEMA"] == streams


def test_functions_whose_rows_nobody_wants_are_not_called():
    tap, parents = parents_of(2)
    children = parents.substream("children", schema=CHILD)
    children.sync(lambda parent: pytest.fail("called"))
    children.substream("grandchildren", schema=GRANDCHILD).sync(lambda: pytest.fail("called"))
    other = parents.substream("other", schema=CHILD)
    other.sync(lambda parent: [{"id": 1, "parent": parent["id"]}])
    run = run_tap(tap, select="parents,other")
    assert not run.result.errors
    assert len(run.records("other")) == 2


def test_fields_of_the_parent_that_nobody_wants_reach_its_children():
    """``parent`` is the row as the function yielded it, not as it goes out."""
    row = {"id": 1, "key": 5, "not in the schema": {"a": [1]}}
    seen: list[Any] = []
    tap = burler.tap("tap-family")
    parents = tap.stream("parents", key_properties="id", schema=PARENT)
    parents.sync(lambda: [row])
    parents.substream("children", schema=CHILD).sync(lambda parent: seen.append(parent))
    run = run_tap(tap, select="parents,children,!parents.key")
    assert run.records("parents") == [{"id": 1}]
    assert seen == [{"id": 1, "key": 5, "not in the schema": {"a": [1]}}]


def test_a_parent_that_nobody_wants_may_read_its_whole_table():
    tap = burler.tap("tap-family")
    parents = tap.stream("parents", key_properties="id", schema=PARENT, replication_key="key")

    @parents.sync
    def rows(stream: burler.StreamRun) -> Iterator[dict[str, int]]:
        with stream.full_table():
            yield {"id": 1, "key": 1}

    parents.substream("children", schema=CHILD).sync(lambda parent: [{"id": 1, "parent": parent["id"]}])
    run = run_tap(tap, select="children")
    assert not run.result.errors
    assert out_of(run) == [("children", (1, 1))]


# ---- what a child may give ------------------------------------------------------------------------


def _generator(parent: dict[str, Any]) -> Iterator[Any]:
    yield {"id": 1, "parent": parent["id"]}
    yield {"id": 2, "parent": parent["id"]}


def _pages(parent: dict[str, Any]) -> Iterator[Any]:
    yield [{"id": 1, "parent": parent["id"]}]
    yield []
    yield [{"id": 2, "parent": parent["id"]}]


def _mixed(parent: dict[str, Any]) -> Iterator[Any]:
    yield {"id": 1, "parent": parent["id"]}
    yield iter([{"id": 2, "parent": parent["id"]}])


def _named(parent: dict[str, Any]) -> Iterator[Any]:
    yield "children", {"id": 1, "parent": parent["id"]}
    yield "children", ({"id": i, "parent": parent["id"]} for i in (2,))


def _nested(parent: dict[str, Any]) -> Any:
    return [[[{"id": 1, "parent": parent["id"]}], _inner(parent)]]


def _inner(parent: dict[str, Any]) -> Iterator[Any]:
    yield iter([[{"id": 2, "parent": parent["id"]}]])


@pytest.mark.parametrize(
    "fn",
    [
        _generator,
        lambda parent: list(_generator(parent)),
        lambda parent: tuple(_generator(parent)),
        lambda parent: map(dict, _generator(parent)),
        _pages,
        _mixed,
        _named,
        _nested,
        lambda parent: ("children", _generator(parent)),
    ],
)
@pytest.mark.parametrize("page", [1, 1000])
def test_a_child_gives_rows_in_any_form(fn: Callable[..., Any], page: int):
    tap, parents = parents_of(2)
    parents.substream("children", schema=CHILD).sync(fn)
    run = run_tap(tap, {"page_max_rows": page})
    assert not run.result.errors
    assert [tuple(row.values()) for row in run.records("children")] == [(1, 0), (2, 0), (1, 1), (2, 1)]


@pytest.mark.parametrize("empty", [None, [], (), iter(()), ("children", []), ("children", None)])
def test_a_child_may_give_nothing(empty: Any):
    tap, parents = parents_of(2)
    parents.substream("children", schema=CHILD).sync(lambda parent: empty)
    run = run_tap(tap)
    assert not run.result.errors
    assert len(run.records("parents")) == 2
    assert run.records("children") == []


def test_a_child_may_return_one_row():
    tap, parents = parents_of(2)
    parents.substream("children", schema=CHILD).sync(lambda parent: {"id": 9, "parent": parent["id"]})
    assert [row["parent"] for row in run_tap(tap).records("children")] == [0, 1]


@pytest.mark.parametrize("given", [5, "row", object(), True])
def test_nonsense_from_a_child_names_the_child_and_what_it_gave(given: Any):
    tap, parents = parents_of(2)
    parents.substream("children", schema=CHILD).sync(lambda parent: given)
    run = run_tap(tap)
    assert list(run.result.errors) == ["children"]
    for i, failure in enumerate(failures_of(run, "children")):
        assert failure.where == f"parent parents id={i}"
        assert isinstance(failure.error, StreamError)
        assert "stream 'children'" in str(failure.error)
        assert "test_substreams.py:" in str(failure.error)
        assert type(given).__name__ in str(failure.error)
    assert i == 1


def test_none_among_a_childs_rows_is_an_error():
    tap, parents = parents_of(2)
    parents.substream("children", schema=CHILD).sync(lambda parent: iter([None]))
    for failure in failures_of(run_tap(tap), "children"):
        assert "stream 'children'" in str(failure.error)
        assert "yielded None" in str(failure.error)


def test_rows_of_a_stream_that_nobody_declared_name_the_function_that_yields_them():
    tap, parents = parents_of(2)
    parents.substream("children", schema=CHILD).sync(lambda parent: ("nosuch", {"id": 1}))
    run = run_tap(tap)
    assert list(run.result.errors) == ["children"]
    assert len(failures_of(run, "children")) == 2
    for failure in failures_of(run, "children"):
        assert "'nosuch'" in str(failure.error)
        assert "stream 'children'" in str(failure.error)


def test_a_child_yields_no_rows_of_its_parent_or_of_a_sibling():
    """They would move the bookmark of the parent past rows that are not read yet."""
    for other in ("parents", "sibling"):
        tap, parents = parents_of(2, replication_key="key", order="asc")
        children = parents.substream("children", schema=CHILD)
        children.sync(lambda parent, other=other: [(other, {"id": 9, "key": 9})])
        parents.substream("sibling", schema=PARENT).sync(lambda parent: [])
        run = run_tap(tap)
        assert list(run.result.errors) == ["children"]
        error = str(failures_of(run, "children")[0].error)
        assert "stream 'children' (tests/engine/test_substreams.py:" in error
        assert f"yielded rows of '{other}', which it does not emit" in error
        assert run.states[-1]["bookmarks"]["parents"] == {"key": 0}
        assert run.records("parents") == [{"id": 0, "key": 0}, {"id": 1, "key": 1}]
        assert run.records("sibling") == []


def test_a_child_that_changes_its_parents_row_changes_nothing_that_goes_out():
    tap, parents = parents_of(2)
    seen = []

    def children(parent):
        seen.append(dict(parent))
        parent["key"] = "changed"
        del parent["id"]
        return []

    parents.substream("children", schema=CHILD).sync(children)
    parents.substream("siblings", schema=CHILD).sync(children)
    run = run_tap(tap)
    assert run.records("parents") == [{"id": 0, "key": 0}, {"id": 1, "key": 1}]
    assert seen == [{"id": 0, "key": 0}] * 2 + [{"id": 1, "key": 1}] * 2


def test_nor_does_one_that_changes_what_is_in_it():
    tap = burler.tap("tap-family")
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {}}}}
    parents = tap.stream("parents", key_properties="id", schema=schema)
    parents.sync(lambda: [{"id": 1, "tags": [3, [1], 2]}])
    seen = []

    def children(parent):
        seen.append(str(parent["tags"]))
        parent["tags"].pop()
        parent["tags"][1].clear()
        return []

    parents.substream("children", schema=CHILD).sync(children)
    parents.substream("siblings", schema=CHILD).sync(children)
    assert run_tap(tap).records("parents") == [{"id": 1, "tags": [3, [1], 2]}]
    assert seen == ["[3, [1], 2]"] * 2


def test_the_input_is_not_changed():
    rows = [{"id": 1, "key": "5", "extra": 1}]
    tap = burler.tap("tap-family")
    parents = tap.stream("parents", key_properties="id", schema=PARENT)
    parents.sync(lambda: rows)
    parents.substream("children", schema=CHILD).sync(lambda parent: [{"id": "7", "parent": parent["id"]}])
    run_tap(tap)
    assert rows == [{"id": 1, "key": "5", "extra": 1}]


def test_in_class_style():
    tap = burler.tap("tap-family")

    @tap.stream
    class Parents(burler.Stream):
        key_properties = "id"
        schema = PARENT

        def sync(self):
            return [{"id": i, "key": i} for i in range(2)]

    @tap.stream
    class Children(burler.Stream):
        parent = Parents
        schema = CHILD

        def __init__(self) -> None:
            self.calls = 0

        def sync(self, parent):
            self.calls += 1
            yield {"id": self.calls, "parent": parent["id"]}

    for _ in range(2):  # an instance a run: nothing of the first is left in the second
        assert [tuple(row.values()) for row in run_tap(tap).records("children")] == [(1, 0), (2, 1)]
