"""The bookmark never passes a parent whose children are not all out: wherever a run breaks, going on loses nothing."""

from __future__ import annotations

import hashlib
import signal
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from families import CHILD, GRANDCHILD, PARENT, out_of
from hypothesis import example, given
from hypothesis import strategies as st

import burler
from burler.testing import TapRun, run_tap
from support.internals import signals

# ---- the bookmark never passes a parent whose children are not all out --------------------------------

PARENTS = 6
KIDS = (2, 0, 3, 1, 0, 2)  # children of each parent; each child with an odd id has two children


def all_rows(count: int = PARENTS) -> set[tuple[str, int, int, int]]:
    rows = set()
    for i in range(count):
        rows.add(("parents", i, 0, 0))
        for k in range(KIDS[i]):
            rows.add(("children", i, k, 0))
            rows |= {("grandchildren", i, k, g) for g in range(2 * (k % 2))}
    return rows


@dataclass
class Fault:
    """Something goes wrong at the n-th step of the author's code, whichever function that is in."""

    at: int | None
    kind: str = "raise"  # or bad (a row that does not fit), stop (SIGTERM), end (an error as the function ends)
    stopper: signals.Stopper = field(default_factory=signals.Stopper)
    steps: int = 0

    def step(self) -> bool:
        """True if the row that comes now is to be one that does not fit."""
        self.steps += 1
        if self.at is None or self.steps - 1 != self.at:
            return False
        if self.kind == "raise":
            raise RuntimeError("as planned")
        if self.kind == "stop":
            self.stopper.handle(signal.SIGTERM, None)
        return self.kind == "bad"


@dataclass(frozen=True)
class Shape:
    """How the functions of the family give their rows."""

    twins: int = 1  # so many parents share a key
    count: int = PARENTS
    order: str = "asc"
    strategy: str = "end_of_sync"
    form: str = "rows"  # of the children: rows, pages, iterators
    buffer: int = 100  # parents that are read ahead at the most


def family(shape: Shape, fault: Fault) -> burler.Tap:
    tap = burler.tap("tap-family")

    def identity(i: int, bad: bool) -> Any:
        return "bad" if bad else i

    @tap.sync(
        "parents",
        key_properties="id",
        replication_key="key",
        order=shape.order,
        bookmark_strategy=shape.strategy,
        schema=PARENT,
    )
    def parents(stream):
        for i in range((stream.bookmark or 0) * shape.twins, shape.count):
            yield {"id": identity(i, fault.step()), "key": i // shape.twins, "true": i}
            fault.step()
            stream.state["parents"] = i

    @tap.sync("children", parent="parents", key_properties=["parent", "id"], schema=CHILD)
    def children(parent):
        i = parent["true"]
        rows = ({"id": identity(k, fault.step()), "parent": i, "true": k} for k in range(KIDS[i]))
        if shape.form == "rows":
            yield from rows
        else:
            yield list(rows) if shape.form == "pages" else rows
        fault.step()

    @tap.sync("grandchildren", parent="children", schema=GRANDCHILD)
    def grandchildren(parent):
        found = []
        for g in range(2 * (parent["true"] % 2)):
            found.append({"id": identity(g, fault.step()), "parent": parent["parent"], "child": parent["true"]})
        return found

    return tap


def rows_before(run: TapRun, position: int) -> set[tuple[str, int, int, int]]:
    found = set()
    for m in run.messages[:position]:
        if m["type"] == "RECORD":
            row = m["record"]
            match m["stream"]:
                case "parents":
                    found.add(("parents", row["id"], 0, 0))
                case "children":
                    found.add(("children", row["parent"], row["id"], 0))
                case _:
                    found.add(("grandchildren", row["parent"], row["child"], row["id"]))
    return found


def check(shape: Shape, fault: Fault, page: int, *, every_state: bool = False) -> TapRun:
    """A run with a fault: no STATE says more than is out, and going on from it brings all."""
    config = {"page_max_rows": page, "parent_buffer_rows": shape.buffer}
    run = run_tap(family(shape, fault), config, stopper=fault.stopper)
    positions = [i for i, kind in enumerate(run.types) if kind == "STATE"]
    for position in positions:
        entry = run.messages[position]["value"].get("bookmarks", {}).get("parents", {})
        done = entry.get("key", 0) * shape.twins
        needed = {row for row in all_rows() if row[1] < done}
        assert rows_before(run, position) >= needed, (shape, fault, page, entry)
        if "parents" in entry.get("stream_state", {}):
            upto = entry["stream_state"]["parents"]
            assert rows_before(run, position) >= {row for row in all_rows() if row[1] <= upto}, (shape, fault, page)
    for position in positions if every_state else positions[-1:]:
        rest = run_tap(family(shape, Fault(None)), config, state=run.messages[position]["value"])
        assert not rest.result.errors
        both = rows_before(run, position) | rows_before(rest, len(rest.messages))
        assert both == all_rows(), (shape, fault, page)
    return run


def steps_of(shape: Shape) -> int:
    fault = Fault(None)
    run_tap(family(shape, fault))
    return fault.steps


IN_ROWS = [
    Shape(buffer=1),
    Shape(twins=2),
    Shape(order="none", buffer=2),
    Shape(strategy="every_n(1)", buffer=1),
    Shape(strategy="every_n(2)", order="none"),
]
IN_PAGES = [
    Shape(strategy="every_n(3)", twins=3, form="pages", buffer=2),
    Shape(strategy="every_n(4)", form="iterators", buffer=4),
]


PUSH = [(IN_ROWS[0], 1), (IN_ROWS[2], 1000), (IN_ROWS[3], 1), (IN_PAGES[0], 7), (IN_PAGES[1], 1000)]
OTHERS = [
    *((shape, page) for shape in IN_ROWS for page in (1, 1000)),
    *((shape, page) for shape in IN_PAGES for page in (1, 7, 1000)),  # 7: amid what the author gives in one go
]


@pytest.mark.parametrize("kind", ["raise", "bad", "stop"])
@pytest.mark.parametrize(
    ("shape", "page"),
    [*PUSH, *(pytest.param(*one, marks=pytest.mark.nightly) for one in OTHERS if one not in PUSH)],
    ids=str,
)
def test_nothing_is_lost_wherever_a_run_breaks(shape: Shape, kind: str, page: int):
    """Every step of the author's code, one after the other. At night for all shapes."""
    steps = steps_of(shape)
    assert steps > 20
    hit = 0
    for at in range(steps):
        fault = Fault(at, kind)
        run = check(shape, fault, page)
        if kind == "stop":
            assert run.result.stopped_by == signal.SIGTERM
            assert not run.result.errors
        hit += bool(run.result.errors) or run.result.stopped_by is not None
    # A "bad" step that stands between rows harms nothing; all others must have shown.
    assert hit == steps if kind != "bad" else hit == len(all_rows())


@given(
    shape=st.builds(
        Shape,
        twins=st.integers(1, 4),
        order=st.sampled_from(["asc", "none"]),
        strategy=st.sampled_from(["end_of_sync", "every_n(1)", "every_n(2)", "every_n(7)", "every_n(50)"]),
        form=st.sampled_from(["rows", "pages", "iterators"]),
        buffer=st.sampled_from([1, 2, 3, 100]),
    ),
    at=st.none() | st.integers(0, 40),
    kind=st.sampled_from(["raise", "bad", "stop"]),
    page=st.sampled_from([1, 2, 3, 5, 7, 1000]),
)
def test_going_on_from_any_state_brings_everything(shape: Shape, at: int | None, kind: str, page: int):
    run = check(shape, Fault(at, kind), page, every_state=True)  # it goes on from each STATE
    assert run.states


SELECTIONS = [
    "parents",
    "children",
    "grandchildren",
    "parents,children",
    "parents,grandchildren",
    "children,grandchildren",
    "parents,children,grandchildren",
]


@given(
    runs=st.lists(
        st.tuples(
            st.sampled_from(SELECTIONS),
            st.integers(0, PARENTS),  # parents that the source has by then
            st.none() | st.integers(0, 30),
            st.sampled_from(["raise", "bad", "stop"]),
        ),
        max_size=5,
    ),
    wanted=st.sampled_from(SELECTIONS),
    order=st.sampled_from(["asc", "none"]),
    twins=st.integers(1, 2),
    page=st.sampled_from([1, 3, 1000]),
    buffer=st.sampled_from([1, 2, 100]),
)
@example(
    runs=[("parents", 6, None, "raise"), ("children", 6, 2, "raise")],
    wanted="parents,children",
    order="asc",
    twins=1,
    page=1,
    buffer=1,
)
@example(
    runs=[("parents", 6, None, "raise"), ("parents,children", 6, 2, "stop")],
    wanted="parents,children",
    order="asc",
    twins=1,
    page=1,
    buffer=1,
)
def test_whatever_was_selected_before_each_stream_gets_all_its_rows(
    runs: list[tuple[str, int, int | None, str]], wanted: str, order: str, twins: int, page: int, buffer: int
):
    """Runs with other selections, some of them broken, while the source grows; then one that comes to its end."""
    config = {"page_max_rows": page, "parent_buffer_rows": buffer}
    state: dict[str, Any] | None = None
    got: set[tuple[str, int, int, int]] = set()
    grown = sorted(count for _, count, _, _ in runs)
    for (selection, _, at, kind), count in zip(runs, grown, strict=True):
        fault = Fault(at, kind)
        shape = Shape(twins, count, order, "every_n(3)")
        run = run_tap(family(shape, fault), config, select=selection, state=state, stopper=fault.stopper)
        got |= rows_before(run, len(run.messages))
        state = run.states[-1] if run.states else state
    run = run_tap(family(Shape(twins, PARENTS, order), Fault(None)), config, select=wanted, state=state)
    assert not run.result.errors
    got |= rows_before(run, len(run.messages))
    assert got >= {row for row in all_rows() if row[0] in wanted.split(",")}


def test_a_source_that_does_not_break_comes_once():
    for page in (1, 7, 1000):
        run = run_tap(family(Shape(), Fault(None)), {"page_max_rows": page})
        assert len(out_of(run)) == len(all_rows())
        assert rows_before(run, len(run.messages)) == all_rows()
        covered = {"key": 5, "stream_state": hashlib.blake2b(b'{"parents":5}', digest_size=8).hexdigest()}
        assert run.states[-1] == {
            "bookmarks": {
                "parents": {"key": 5, "stream_state": {"parents": 5}},
                "children": {"parent_bookmark": covered},
                "grandchildren": {"parent_bookmark": covered},
            }
        }


@pytest.mark.parametrize("buffer", [1, 2, 100])
def test_rows_that_wait_while_a_child_is_busy_go_out_and_the_bookmark_stays_behind(buffer: int):
    """The timer takes what is there: the parent's row is out, its child is not yet."""
    tap = burler.tap("tap-family")

    @tap.sync("parents", key_properties="id", replication_key="key", bookmark_strategy="every_n(1)", schema=PARENT)
    def parents(stream):
        for i in range(stream.bookmark or 0, 3):
            yield {"id": i, "key": i}

    calls = []

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent):
        calls.append(parent["id"])
        time.sleep(0.05)
        if calls == [0, 1]:
            raise RuntimeError("boom")
        yield {"id": 1, "parent": parent["id"]}

    run = run_tap(tap, {"page_max_age_seconds": 0.01, "parent_buffer_rows": buffer})
    assert list(run.result.errors) == ["children"]
    assert [row["id"] for row in run.records("parents")] == [0, 1, 2]
    assert [row["parent"] for row in run.records("children")] == [0, 2]
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 1}
    for position, kind in enumerate(run.types):
        if kind == "STATE":
            key = run.messages[position]["value"].get("bookmarks", {}).get("parents", {}).get("key", 0)
            before = [m for m in run.messages[:position] if m["type"] == "RECORD" and m["stream"] == "children"]
            assert {m["record"]["parent"] for m in before} >= set(range(key))
    rest = run_tap(tap, state=run.states[-1])
    assert {row["parent"] for row in run.records("children") + rest.records("children")} == {0, 1, 2}
