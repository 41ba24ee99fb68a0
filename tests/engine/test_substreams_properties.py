"""Parents and children, whatever their number and levels: nothing is lost wherever runs break; they come in order."""

from __future__ import annotations

import random
from typing import Any

from crashruns import DEAR, PEACE, Run, Told, runs
from hypothesis import given
from hypothesis import strategies as st

from burler.testing import run_tap
from storm.crashlines import line_of
from storm.crashtaps import tap_of
from storm.crashworld import Line, Phase, fails, source_of, uid

RANDOM = st.randoms(use_true_random=False)


def family(rng: random.Random, **fixed: Any) -> Line:
    shapes = ("family", "table family", "partitions family")
    return line_of(rng, "s", shapes=fixed.pop("shapes", shapes), big=False, **fixed)


@DEAR
@given(rng=RANDOM, story=st.lists(runs(), max_size=4), last=PEACE)
def test_nothing_is_lost_wherever_runs_break(rng: random.Random, story: list[Run], last: Run):
    told = Told(family(rng))
    for run in story:
        told.run(run)
    told.finish(last)


@DEAR
@given(rng=RANDOM, story=st.lists(runs(), max_size=4), last=PEACE)
def test_children_that_come_late_are_found_by_rollup(rng: random.Random, story: list[Run], last: Run):
    """Old parents get children, and their own keys do not tell."""
    told = Told(
        family(rng, shapes=("family", "partitions family"), child_key=True, rollup=True, table=False, position=False)
    )
    for run in story:
        told.run(run)
    told.finish(last)


@DEAR
@given(rng=RANDOM, run=runs(cut=1.0, stop_at=None, without=()))
def test_what_does_not_break_comes(rng: random.Random, run: Run):
    """A child's function that breaks takes nothing with it but its own rows, and what is below them. The parent's that
    breaks leaves all that it gave before, with its children."""
    line = family(rng, shapes=("family", "partitions family"), retry="", child_retry=False)
    told = Told(line)
    out = told.run(run)
    source = source_of(line, told.phase)
    came = {uid(m["stream"], m["record"]) for m in out.messages if m["type"] == "RECORD"}
    broken = False
    for part, rows in source.parts.items():
        whole = not fails(line, 0, run.share, "top", part)
        broken |= not whole
        for row in rows:
            if whole:
                assert row.uid in came
            if row.uid not in came:
                continue
            kids_whole = not fails(line, 0, run.share, "kids", row.top)
            broken |= not kids_whole
            for kid in source.kids[row.top]:
                assert kid.uid in came or not kids_whole, "the child of a row that is out"
                if kid.uid not in came or line.depth < 2:
                    continue
                ident = (row.top, kid.data["id"])
                grand_whole = not fails(line, 0, run.share, "grand", ident)
                broken |= not grand_whole
                assert not grand_whole or {one.uid for one in source.grand[ident]} <= came
    assert bool(out.result.errors) == broken
    assert out.result.exit_code == int(broken)


@DEAR
@given(rng=RANDOM, page=st.sampled_from([1, 3, 1000]), buffer=st.sampled_from([1, 3, 100]))
def test_parents_come_before_their_children_and_those_parent_by_parent(rng: random.Random, page: int, buffer: int):
    line = family(rng, shapes=("family", "table family"), retry="", child_retry=False)
    out = run_tap(tap_of([line]), {"page_max_rows": page, "parent_buffer_rows": buffer})
    kinds = [(m["type"], m["stream"]) for m in out.messages if m["type"] in ("SCHEMA", "RECORD")]
    schemas = [stream for kind, stream in kinds if kind == "SCHEMA"]
    assert sorted(schemas) == sorted(line.streams)
    assert all(kind == "SCHEMA" for kind, _stream in kinds[: len(schemas)])
    position = {uid(m["stream"], m["record"]): i for i, m in enumerate(out.messages) if m["type"] == "RECORD"}
    source = source_of(line, Phase())
    tops = source.parts[0]
    assert [row.top for row in tops] == [row["id"] for row in out.records("s")]
    kids = [(row["top"], row["id"]) for row in out.records("s_kids")]
    assert kids == [(row.top, kid.data["id"]) for row in tops for kid in source.kids[row.top]]
    for row in tops:
        for kid in source.kids[row.top]:
            assert position[row.uid] < position[kid.uid]
            for one in source.grand[row.top, kid.data["id"]]:
                assert position[kid.uid] < position[one.uid]


@DEAR
@given(rng=RANDOM, buffer=st.sampled_from([1, 2, 5]))
def test_no_more_parents_than_the_buffer_holds_are_read_ahead(rng: random.Random, buffer: int):
    """At each row of a child, no more parents are out behind its own than were read ahead."""
    line = family(
        rng, shapes=("family",), retry="", child_retry=False, depth=1, rows=12, forms=("row",), page_first=False
    )
    out = run_tap(tap_of([line]), {"parent_buffer_rows": buffer})
    place = {row["id"]: i for i, row in enumerate(out.records("s"))}
    seen = 0
    for message in out.messages:
        if message["type"] == "RECORD" and message["stream"] == "s":
            seen += 1
        elif message["type"] == "RECORD" and message["stream"] == "s_kids":
            assert seen - place[message["record"]["top"]] <= buffer
