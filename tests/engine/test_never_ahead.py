"""STATE never runs ahead of the rows, and a run that goes on from any STATE loses none (property test)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import burler
from burler.testing import TapRun, run_tap

FIELDS = {"type": "object", "properties": {"id": {"type": "integer"}, "key": {"type": "integer"}}}
COUNT = 60  # rows of the source; each second one has a row beside it


@dataclass(frozen=True)
class Program:
    """How a sync function gives rows 0..COUNT-1, and where it breaks."""

    chunks: tuple[tuple[str, int], ...]  # (form, rows), repeated
    twins: int  # so many rows share a key
    strategy: str
    order: str
    page: int
    age: float
    raise_at: int | None
    bad_at: int | None
    bad_beside_at: int | None
    by_state: bool  # go on by stream.state, else by the bookmark


FORMS = st.sampled_from(["rows", "list", "iterator", "generator", "named list"])

programs = st.builds(
    Program,
    chunks=st.lists(st.tuples(FORMS, st.integers(1, 9)), min_size=1, max_size=5).map(tuple),
    twins=st.integers(1, 4),
    strategy=st.sampled_from(["every_n(1)", "every_n(3)", "every_n(10)", "every_n(25)", "end_of_sync"]),
    order=st.sampled_from(["asc", "none"]),
    page=st.sampled_from([1, 2, 3, 7, 20, 1000]),
    age=st.sampled_from([1.0, 1.0, 0.0005]),
    raise_at=st.none() | st.integers(0, COUNT - 1),
    bad_at=st.none() | st.integers(0, COUNT - 1),
    bad_beside_at=st.none() | st.integers(0, COUNT - 1),
    by_state=st.booleans(),
)


def tap_of(program: Program, *, mended: bool) -> burler.Tap:
    """A tap that runs a program; ``mended`` without what breaks it."""
    tap = burler.tap("tap-p")

    def row(i: int) -> dict[str, Any]:
        return {"id": "bad" if i == program.bad_at and not mended else i, "key": i // program.twins}

    def beside(i: int) -> dict[str, Any]:
        return {"id": "bad" if i == program.bad_beside_at and not mended else i, "key": 0}

    def rows(stream):
        i = stream.state.get("next", 0) if program.by_state else (stream.bookmark or 0) * program.twins
        turn = 0
        if program.chunks[0][0] != "rows":
            yield []  # the first item decides how the function is driven
        while i < COUNT:
            form, many = program.chunks[turn % len(program.chunks)]
            if program.chunks[0][0] == "rows" and form in ("iterator", "generator"):
                form = "list"
            turn += 1
            end = min(COUNT, i + many)
            if program.raise_at is not None and i <= program.raise_at < end and not mended:
                end = program.raise_at
            part = [row(n) for n in range(i, end)]
            # What an author has to know: the rows beside a row come right behind it, or before it.
            besides = [beside(n) for n in range(i, end) if n % 2]
            if form == "rows":
                for n in range(i, end):
                    yield row(n)
                    if n % 2:
                        yield "beside", beside(n)
            elif besides:
                yield "beside", besides
            if form == "list":
                yield part
            elif form == "iterator":
                yield iter(part)
            elif form == "generator":
                yield (one for one in part)
            elif form == "named list":
                yield "main", part
            i = end
            stream.state["next"] = i
            if i == program.raise_at and not mended:
                raise RuntimeError("as planned")

    tap.sync(
        "main",
        key_properties="id",
        replication_key="key",
        order=program.order,
        bookmark_strategy=program.strategy,
    )(rows)
    tap.schema("main", FIELDS)
    tap.stream("beside", emitted_by="main", key_properties="id", schema=FIELDS)
    return tap


def covered(program: Program, state: dict[str, Any]) -> int:
    """A run that goes on from this state will not give the rows before this one."""
    entry = state.get("bookmarks", {}).get("main", {})
    if program.by_state:
        return entry.get("stream_state", {}).get("next", 0)
    return entry.get("key", 0) * program.twins


def out_before(run: TapRun, position: int) -> tuple[set[int], set[int]]:
    records = [m for m in run.messages[:position] if m["type"] == "RECORD"]
    both = [{m["record"]["id"] for m in records if m["stream"] == name} for name in ("main", "beside")]
    return both[0], both[1]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(programs)
def test_no_state_is_ahead_of_the_rows(program: Program):
    config = {"page_max_rows": program.page, "page_max_age_seconds": program.age}
    run = run_tap(tap_of(program, mended=False), config)
    breaks = (program.raise_at, program.bad_at, program.bad_beside_at if (program.bad_beside_at or 0) % 2 else None)
    assert bool(run.result.errors) == any(at is not None for at in breaks), run.result.errors
    assert run.types[:2] == ["SCHEMA", "SCHEMA"]
    assert run.types[-1] == "STATE"
    states = [i for i, kind in enumerate(run.types) if kind == "STATE"]
    for position in states:
        main, beside = out_before(run, position)
        done = covered(program, run.messages[position]["value"])
        assert main >= set(range(done))
        assert beside >= {n for n in range(done) if n % 2}
    # Going on from any of them brings everything; the first, the last and one between will do here.
    for position in {states[0], states[len(states) // 2], states[-1]}:
        main, beside = out_before(run, position)
        rest = run_tap(tap_of(program, mended=True), config, state=run.messages[position]["value"])
        assert not rest.result.errors
        more_main, more_beside = out_before(rest, len(rest.messages))
        assert main | more_main == set(range(COUNT))
        assert beside | more_beside == {n for n in range(COUNT) if n % 2}
    if not run.result.errors:
        assert [row["id"] for row in run.records("main")] == list(range(COUNT))
        assert covered(program, run.states[-1]) >= COUNT - program.twins


@pytest.mark.parametrize("page", [1, 3, 1000])
def test_an_exception_leaves_out_nothing_that_was_yielded_before_it(page: int):
    for at in range(0, COUNT, 7):
        program = Program((("rows", 1),), 1, "every_n(10)", "asc", page, 1.0, at, None, None, False)
        run = run_tap(tap_of(program, mended=False), {"page_max_rows": page})
        assert [row["id"] for row in run.records("main")] == list(range(at))
        assert covered(program, run.states[-1]) == max(0, at - 1)
