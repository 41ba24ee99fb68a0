"""Parents are read ahead, a bounded lot of them; then their children come, and only then the bookmark moves."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from families import CHILD, PARENT, out_of, three_levels

import burler
from burler.errors import ConfigError, StreamError
from burler.testing import MemorySink, TapRun, run_tap
from support.internals import signals
from support.runs import run_into

Step = Callable[[str, int], None]


def _quiet(_name: str, _number: int) -> None:
    pass


def family(count: int, step: Step = _quiet, *, strategy: str = "end_of_sync", **options: Any) -> burler.Tap:
    """A tap of ``count`` parents with one child each. ``step`` is told of a parent before it is yielded (and of the
    end), and of each child."""
    tap = burler.tap("tap-family")

    @tap.sync(
        "parents",
        **{
            "key_properties": "id",
            "replication_key": "key",
            "order": "asc",
            "bookmark_strategy": strategy,
            "schema": PARENT,
            **options,
        },
    )
    def parents(stream):
        for i in range(stream.bookmark or 0, count):
            step("parents", i)
            yield {"id": i, "key": i}
        step("parents", count)

    @tap.sync("children", parent="parents", key_properties="parent", schema=CHILD)
    def children(parent):
        step("children", parent["id"])
        yield {"id": 1, "parent": parent["id"]}

    return tap


def lots_of(count: int, config: dict[str, Any], step: Step = _quiet) -> list[int]:
    """How many parents were read ahead, lot by lot."""
    seen: list[tuple[str, int]] = []

    def note(name: str, number: int) -> None:
        seen.append((name, number))
        step(name, number)

    out = run_tap(family(count, note), config)
    assert not out.result.errors
    assert [row["id"] for row in out.records("parents")] == list(range(count))
    assert [row["parent"] for row in out.records("children")] == list(range(count))
    lots = [0]
    for (before, _), (name, number) in zip([("parents", -1), *seen], seen, strict=False):
        if name == "parents" and number < count:
            lots += [0] * (before == "children")
            lots[-1] += 1
    return lots


def parents_covered(run: TapRun) -> list[int]:
    """Parents up to which each STATE says that all is out; each must be true."""
    found = []
    for position, message in enumerate(run.messages):
        if message["type"] == "STATE":
            key = message["value"].get("bookmarks", {}).get("parents", {}).get("key", -1)
            before = [m for m in run.messages[:position] if m["type"] == "RECORD"]
            for name, field in (("parents", "id"), ("children", "parent")):
                assert {m["record"][field] for m in before if m["stream"] == name} >= set(range(key + 1)), name
            found.append(key)
    return found


# ---- how many ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "buffer", "lots"),
    [
        (7, 1, [1] * 7),
        (7, 3, [3, 3, 1]),
        (6, 3, [3, 3]),
        (7, 7, [7]),
        (7, 8, [7]),
        (0, 3, [0]),
        (250, None, [100, 100, 50]),
    ],
)
@pytest.mark.parametrize("page", [1, 1000])
def test_so_many_parents_are_read_ahead_and_no_more(count: int, buffer: int | None, lots: list[int], page: int):
    config = {"page_max_rows": page, "parent_buffer_seconds": 600.0}
    assert lots_of(count, config if buffer is None else {**config, "parent_buffer_rows": buffer}) == lots


@pytest.mark.parametrize("value", [0, -1, "many", 1.5])
def test_a_buffer_of_no_rows_is_refused(value: Any):
    with pytest.raises(ConfigError, match="parent_buffer_rows"):
        run_tap(family(1), {"parent_buffer_rows": value})


def test_parents_that_come_slowly_are_not_waited_for_long():
    def step(name: str, _number: int) -> None:
        time.sleep(0.03 if name == "parents" else 0)

    lots = lots_of(12, {"parent_buffer_seconds": 0.1}, step)
    assert len(lots) >= 3
    assert max(lots) <= 4
    assert lots_of(12, {"parent_buffer_seconds": 600.0}, step) == [12]


def test_a_slow_child_does_not_count_as_waiting_for_parents():
    """The time runs from the first row of a lot on."""

    def step(name: str, number: int) -> None:
        time.sleep(0.25 if name == "children" and number == 1 else 0)

    assert lots_of(8, {"parent_buffer_seconds": 0.2, "parent_buffer_rows": 2}, step) == [2, 2, 2, 2]


@pytest.mark.parametrize(("size", "least", "most"), [(300_000, 5, 8), (3_000_000, 1, 1), (10, 100, 100)])
@pytest.mark.parametrize("nested", [False, True])
def test_big_parents_are_read_ahead_by_their_size(size: int, least: int, most: int, nested: bool):
    tap = burler.tap("tap-family")
    yielded, ahead = 0, []
    text = {"text": {"type": "string"}}
    schema = {"properties": {"id": {"type": "integer"}, **text, "in": {"type": "object", "properties": text}}}

    @tap.sync("parents", key_properties="id", schema=schema)
    def parents():
        nonlocal yielded
        for i in range(120 if size == 10 else 12):
            yielded += 1
            row = {"text": "x" * size}
            yield {"id": i, "in": row} if nested else {"id": i, **row}

    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: ahead.append(yielded - parent["id"]) or [])
    assert not run_tap(tap, {"parent_buffer_seconds": 600.0}).result.errors
    assert least <= max(ahead) <= most


# ---- in which order, and what a STATE says ----------------------------------------------------------


def test_a_lot_of_parents_then_their_children_parent_by_parent():
    out = out_of(run_tap(family(5), {"page_max_rows": 1, "parent_buffer_rows": 2}))
    kinds = [
        ("parents", i) if name == "parents" else ("children", values[1]) for name, values in out for i in values[:1]
    ]
    assert kinds == [
        ("parents", 0),
        ("parents", 1),
        ("children", 0),
        ("children", 1),
        ("parents", 2),
        ("parents", 3),
        ("children", 2),
        ("children", 3),
        ("parents", 4),
        ("children", 4),
    ]


def test_each_level_is_read_ahead():
    assert out_of(run_tap(three_levels(), {"page_max_rows": 1})) == [
        ("parents", (0, 0)),
        ("parents", (1, 1)),
        ("children", (7, 0)),
        ("children", (8, 0)),
        ("grandchildren", (1, 0, 7)),
        ("grandchildren", (1, 0, 8)),
        ("children", (7, 1)),
        ("children", (8, 1)),
        ("grandchildren", (1, 1, 7)),
        ("grandchildren", (1, 1, 8)),
    ]


@pytest.mark.parametrize(("buffer", "keys"), [(1, {0, 1, 2, 3, 4}), (2, {1, 3, 4}), (5, {4}), (100, {4})])
def test_the_bookmark_moves_behind_a_whole_lot(buffer: int, keys: set[int]):
    """A STATE wherever one is allowed, and each is true (``parents_covered``)."""
    tap = family(5, strategy="every_n(1)")
    covered = parents_covered(run_tap(tap, {"page_max_rows": 1, "parent_buffer_rows": buffer}))
    assert set(covered) - {-1} <= keys
    assert covered[-1] == 4
    assert len(set(covered) - {-1}) >= len(keys) / 2  # small STATEs are not always worth their line


def test_parents_are_out_before_their_slow_children():
    """Each child waits until the rows of all parents of its lot have reached the sink."""
    sink = MemorySink()
    waited: list[bool] = []

    def step(name: str, number: int) -> None:
        if name == "children":
            end = time.monotonic() + 20
            while not (there := _ids(sink) >= {0, 1, 2}) and time.monotonic() < end:
                time.sleep(0.01)
            waited.append(there)

    result = run_into(family(3, step), {"page_max_age_seconds": 0.05}, sink)
    assert not result.errors
    assert waited == [True] * 3


def _ids(sink: MemorySink) -> set[int]:
    return {m["record"]["id"] for m in list(sink.messages) if m["type"] == "RECORD" and m["stream"] == "parents"}


def test_parents_that_nobody_selected_are_read_ahead_as_well():
    seen: list[tuple[str, int]] = []
    out = run_tap(family(3, lambda *step: seen.append(step)), {"parent_buffer_rows": 2}, select="children")
    assert [name for name, _ in seen] == ["parents"] * 2 + ["children"] * 2 + ["parents"] * 2 + ["children"]
    assert [row["parent"] for row in out.records("children")] == [0, 1, 2]
    assert out.records("parents") == []


@pytest.mark.parametrize("kind", ["list", "bytes", "arrow"])
def test_a_page_of_parents_is_cut_into_lots(kind: str):
    pa = pytest.importorskip("pyarrow")
    rows = [{"id": i, "key": i} for i in range(5)]
    page = {"list": rows, "bytes": json.dumps(rows).encode(), "arrow": pa.Table.from_pylist(rows)}[kind]
    tap = burler.tap("tap-family")
    tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT)(lambda: [page])
    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: [{"id": 1, "parent": parent["id"]}])
    out = out_of(run_tap(tap, {"page_max_rows": 1, "parent_buffer_rows": 2}))
    assert [name[0] for name, _ in out] == list("ppccppccpc")


# ---- the end, wherever it comes ---------------------------------------------------------------------


def _raises() -> None:
    raise LookupError("the source is gone")


def _exits() -> None:
    sys.exit(3)


@pytest.mark.parametrize("end", [_raises, _exits])
@pytest.mark.parametrize("page", [1, 3, 1000])
@pytest.mark.parametrize("buffer", [1, 2, 3, 100])
def test_children_of_what_was_read_ahead_come_when_the_parents_function_fails(
    end: Callable[[], None], page: int, buffer: int
):
    def step(name: str, number: int) -> None:
        if (name, number) == ("parents", 3):
            end()

    out = run_tap(family(9, step), {"page_max_rows": page, "parent_buffer_rows": buffer})
    assert list(out.result.errors) == ["parents"]
    assert [row["id"] for row in out.records("parents")] == [0, 1, 2]
    assert [row["parent"] for row in out.records("children")] == [0, 1, 2]
    assert parents_covered(out)[-1] == 2
    rest = run_tap(family(9), state=out.states[-1])
    assert [row["id"] for row in rest.records("parents")] == list(range(2, 9))


def test_children_of_what_stands_before_nonsense_come():
    tap = burler.tap("tap-family")
    tap.sync("parents", key_properties="id", schema=PARENT)(lambda: iter([{"id": 1}, {"id": 2}, None, {"id": 3}]))
    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: [{"id": 1, "parent": parent["id"]}])
    out = run_tap(tap)
    assert isinstance(out.result.errors["parents"], StreamError)
    assert [row["parent"] for row in out.records("children")] == [1, 2]


@pytest.mark.parametrize("page", [1, 1000])
@pytest.mark.parametrize(
    ("where", "parents", "children", "covered"),
    [
        (("parents", 1), 1, 0, -1),
        (("parents", 4), 4, 3, 2),  # while the second lot is read ahead
        (("children", 0), 3, 0, -1),
        (("children", 2), 3, 2, -1),
        (("children", 4), 6, 4, 2),
        (("parents", 7), 7, 6, 5),  # as the parent's function ends
    ],
)
def test_a_stop_leaves_the_bookmark_behind_the_last_lot_that_is_out(
    where: tuple[str, int], parents: int, children: int, covered: int, page: int
):
    stopper = signals.Stopper()

    def step(name: str, number: int) -> None:
        if (name, number) == where:
            stopper.handle(signal.SIGTERM, None)

    out = run_tap(family(7, step), {"page_max_rows": page, "parent_buffer_rows": 3}, stopper=stopper)
    assert out.result.stopped_by == signal.SIGTERM
    assert (len(out.records("parents")), len(out.records("children"))) == (parents, children)
    assert parents_covered(out)[-1] == covered
    rest = run_tap(family(7), state=out.states[-1])
    assert [row["parent"] for row in rest.records("children")] == list(range(max(covered, 0), 7))


def test_a_buffer_is_none_of_a_streams_without_children():
    """Nothing is held back where no substream is selected."""
    seen: list[Any] = []

    def step(name: str, number: int) -> None:
        seen.append((name, number))

    out = run_tap(family(5, step), {"parent_buffer_rows": 2}, select="parents")
    assert seen == [("parents", i) for i in range(6)]
    assert len(out.records("parents")) == 5


def test_rows_that_came_before_a_limit_are_not_read_ahead_beyond_it():
    seen: list[tuple[str, int]] = []

    def endless() -> Iterator[dict[str, int]]:
        for i in range(10_000):
            seen.append(("parents", i))
            yield {"id": i, "key": i}

    tap = burler.tap("tap-family")
    tap.sync("parents", key_properties="id", schema=PARENT)(endless)
    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: [{"id": 1, "parent": parent["id"]}])
    out = run_tap(tap, limit=2)
    assert (len(out.records("parents")), len(out.records("children"))) == (2, 2)
    assert len(seen) <= 4
