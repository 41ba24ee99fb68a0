"""Substreams of streams that another function emits: what is missing below them holds whoever emitted their parent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from families import CHILD, DEPTH_FIRST, INTEGER, PARENT, failures_of, out_of, parents_of

import burler
from burler.errors import BadRecordError
from burler.testing import TapRun, run_tap

ROW = {"properties": dict.fromkeys(("id", "key", "parent"), INTEGER)}
COUNT = 5


def test_a_substream_of_an_emitted_stream():
    tap = burler.tap("tap-family")

    @tap.sync("main", key_properties="id", schema=PARENT)
    def main():
        yield {"id": 1, "key": 1}
        yield "beside", {"id": 2, "key": 2}
        yield "beside", [{"id": 3, "key": 3}, {"id": 4, "key": 4}]

    beside = tap.stream("beside", emitted_by="main", key_properties="id", schema=PARENT)
    beside.substream("children", schema=CHILD).sync(lambda parent: [{"id": 1, "parent": parent["id"]}])
    run = run_tap(tap, DEPTH_FIRST)
    assert out_of(run) == [
        ("main", (1, 1)),
        ("beside", (2, 2)),
        ("children", (1, 2)),
        ("beside", (3, 3)),
        ("children", (1, 3)),
        ("beside", (4, 4)),
        ("children", (1, 4)),
    ]
    assert out_of(run_tap(tap, select="children")) == [("children", (1, i)) for i in (2, 3, 4)]


def test_a_stream_that_a_substream_emits():
    tap, parents = parents_of(2)
    children = parents.substream("children", schema=CHILD)

    @children.sync
    def rows(parent, stream):
        yield {"id": 1, "parent": parent["id"]}
        if stream.selected("beside"):
            yield "beside", [{"id": 5, "parent": parent["id"]}]

    beside = tap.stream("beside", emitted_by="children", schema=CHILD)
    beside.substream("below", schema=CHILD).sync(lambda parent: [{"id": 6, "parent": parent["parent"]}])
    run = run_tap(tap, DEPTH_FIRST)
    one = [("parents", (0, 0)), ("children", (1, 0)), ("beside", (5, 0)), ("below", (6, 0))]
    assert out_of(run)[:4] == one
    assert len(out_of(run)) == 8
    assert {name for name, _ in out_of(run_tap(tap, select="!beside,!below"))} == {"parents", "children"}
    assert {name for name, _ in out_of(run_tap(tap, select="below"))} == set()  # the function was told: not selected


def beside_the_root(broken: Any = None, *, bad: bool = False, keyed: bool = False, wide: int = 1) -> burler.Tap:
    """``main`` emits ``wide`` rows of ``beside`` with each of its own; ``kids`` hang on those."""
    tap = burler.tap("tap-emits")

    @tap.sync("main", key_properties="id", replication_key="key", bookmark_strategy="every_n(1)", schema=ROW)
    def main(stream):
        for i in range(stream.bookmark or 0, COUNT):
            yield {"id": i, "key": i}
            for k in range(wide):
                yield "beside", {"id": 10 * i + k, "key": 10 * i + k}

    tap.stream(
        "beside",
        emitted_by="main",
        key_properties="id",
        schema=ROW,
        **({"replication_key": "key", "order": "asc"} if keyed else {}),
    )

    @tap.sync("kids", parent="beside", key_properties="parent", schema=ROW)
    def kids(parent):
        if parent["id"] == broken and not bad:
            raise LookupError("as planned")
        yield {"id": "bad" if parent["id"] == broken else 1, "parent": parent["id"]}

    return tap


def kids_of(*runs: TapRun) -> set[int]:
    return {row["parent"] for run in runs for row in run.records("kids")}


@pytest.mark.parametrize("select", [None, "kids", "beside,kids", "main,kids"])
@pytest.mark.parametrize("bad", [False, True], ids=["raises", "bad row"])
@pytest.mark.parametrize("keyed", [False, True], ids=["", "own key"])
@pytest.mark.parametrize("buffer", [1, 2, 100])
@pytest.mark.parametrize("wide", [1, 2])
def test_a_failure_below_an_emitted_stream_holds_the_one_that_emits_it(
    wide: int, buffer: int, keyed: bool, bad: bool, select: str | None
):
    config = {"parent_buffer_rows": buffer, "page_max_rows": 1}
    expected = {10 * i + k for i in range(COUNT) for k in range(wide)}
    run = run_tap(beside_the_root(20, bad=bad, keyed=keyed, wide=wide), config, select=select)
    assert list(run.result.errors) == ["kids"]
    if bad:
        assert isinstance(run.result.errors["kids"], BadRecordError)
    else:
        assert failures_of(run, "kids")[0].where == "parent beside id=20"
        assert kids_of(run) == expected - {20}
    rest = run_tap(beside_the_root(keyed=keyed, wide=wide), config, select=select, state=run.states[-1])
    assert not rest.result.errors
    assert kids_of(run, rest) == expected


@pytest.mark.parametrize("page", [1, 1000])
@pytest.mark.parametrize("buffer", [1, 3, 100])
def test_no_bookmark_of_an_emitted_parent_is_ahead_of_its_children(buffer: int, page: int):
    run = run_tap(beside_the_root(keyed=True), {"parent_buffer_rows": buffer, "page_max_rows": page})
    assert not run.result.errors
    moved = set()
    for position, message in enumerate(run.messages):
        if message["type"] == "STATE":
            marks = message["value"].get("bookmarks", {})
            before = [m for m in run.messages[:position] if m["type"] == "RECORD"]
            kids = {m["record"]["parent"] for m in before if m["stream"] == "kids"}
            beside, main = (marks.get(stream, {}).get("key", -1) for stream in ("beside", "main"))
            moved |= {("beside", beside), ("main", main)}
            # What main emits with a row may stand behind it: it comes once more with a row that equals the bookmark.
            assert kids >= {10 * i for i in range(COUNT) if 10 * i <= beside or i < main}, marks
    assert {("beside", 10 * (COUNT - 1)), ("main", COUNT - 1)} <= moved


# ---- a level further down ---------------------------------------------------------------------------


def beside_a_child(fails: Callable[[Any], bool]) -> burler.Tap:
    """``children`` go on from a bookmark of their own, and emit ``beside``; ``below`` hangs on that."""
    tap = burler.tap("tap-emits")

    @tap.sync("main", key_properties="id", replication_key="key", order="asc", schema=PARENT)
    def main(stream):
        yield from ({"id": i, "key": i} for i in range(stream.bookmark or 0, 3))

    @tap.sync("children", parent="main", key_properties=["parent", "id"], replication_key="key", schema=ROW)
    def children(parent, stream):
        for k in range(stream.bookmark or 0, 4):
            yield {"id": k, "parent": parent["id"], "key": k}
            yield "beside", {"id": k, "parent": parent["id"]}

    tap.stream("beside", emitted_by="children", key_properties=["parent", "id"], schema=CHILD)

    @tap.sync("below", parent="beside", schema=CHILD)
    def below(parent):
        if fails(parent):
            raise LookupError("as planned")
        yield {"id": parent["id"], "parent": parent["parent"]}

    return tap


@pytest.mark.parametrize("which", [{"parent": 0, "id": 0}, {"parent": 1, "id": 2}, {"id": 3}, {"parent": 2}], ids=str)
@pytest.mark.parametrize("buffer", [1, 2, 100])
def test_a_failure_below_what_a_child_emits_holds_that_childs_bookmark(buffer: int, which: dict[str, int]):
    config = {"parent_buffer_rows": buffer}
    run = run_tap(beside_a_child(lambda parent: which.items() <= parent.items()), config)
    assert list(run.result.errors) == ["below"]
    assert len(run.records("children")) == 12
    rest = run_tap(beside_a_child(lambda parent: False), config, state=run.states[-1])
    assert not rest.result.errors
    got = {(row["parent"], row["id"]) for one in (run, rest) for row in one.records("below")}
    assert got == {(i, k) for i in range(3) for k in range(4)}
    done = run_tap(beside_a_child(lambda parent: False), config, state=rest.states[-1])
    assert {row["id"] for row in done.records("children")} == {3}, "both go on from where all is out"
