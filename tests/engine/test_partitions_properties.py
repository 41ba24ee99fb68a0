"""Partitions, whatever their rows, order and keys: nothing is lost wherever runs break, and the state has its form."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import singer
from crashruns import DEAR, PEACE, Run, Told, runs
from hypothesis import given
from hypothesis import strategies as st

from burler.testing import run_tap
from storm.crashlines import line_of
from storm.crashtaps import tap_of
from storm.crashworld import Line, Phase, rank, source_of, value

RANDOM = st.randoms(use_true_random=False)


def partitioned(rng: random.Random, **fixed: Any) -> Line:
    return line_of(rng, "s", shapes=("partitions",), big=False, **fixed)


def entry_of(state: dict[str, Any]) -> dict[str, Any]:
    return state.get("bookmarks", {}).get("s", {})


@DEAR
@given(rng=RANDOM, story=st.lists(runs(without=()), max_size=4), last=PEACE)
def test_nothing_is_lost_wherever_runs_break(rng: random.Random, story: list[Run], last: Run):
    told = Told(partitioned(rng))
    for run in story:
        told.run(run)
    told.finish(last)
    assert told.ledger.out >= {row.uid for row in source_of(told.line, told.phase).every()}


@DEAR
@given(rng=RANDOM, story=st.lists(runs(without=()), max_size=3), last=PEACE)
def test_each_partition_has_a_bookmark_under_its_key(rng: random.Random, story: list[Run], last: Run):
    """And singer-python finds the stream's entry."""
    line = partitioned(rng, partitions="none", signpost=False, position=False, strategy="every_n(3)")
    told = Told(line)
    for run in story:
        told.run(run)
    told.finish(last)
    state = told.ledger.state
    entries = singer.get_bookmark(state, "s", "partitions") or {}
    known = {line.key_of(part): part for part in range(1, 60)}
    assert set(entries) <= set(known)
    for part, rows in source_of(line, told.phase).parts.items():
        if rows:
            own = entries[line.key_of(part)]
            assert set(own) == {"key"}
            assert rank(line.kind, own["key"]) == max(row.n for row in rows)
        if line.partition_key == "json" and line.key_of(part) in entries:
            assert json.loads(line.key_of(part)) == line.partition(part)
    assert "key" not in entry_of(state)


@DEAR
@given(rng=RANDOM, story=st.lists(runs(without=()), max_size=3), last=PEACE)
def test_rising_partitions_that_are_done_leave_one_bookmark_behind(rng: random.Random, story: list[Run], last: Run):
    line = partitioned(
        rng, partitions="asc", late=False, position=False, signpost=False, strategy="every_n(3)", retry="plain"
    )
    told = Told(line)
    for run in story:
        told.run(run)
    told.finish(last)
    greatest = [row.n for rows in source_of(line, told.phase).parts.values() for row in rows]
    entry = entry_of(told.ledger.state)
    assert set(entry) - {"covers"} == ({"key"} if greatest else set())
    if greatest:
        assert rank(line.kind, entry["key"]) == max(greatest)


@DEAR
@given(rng=RANDOM, workers=st.sampled_from([1, 8]))
def test_rising_partitions_keep_few_entries_on_the_way(rng: random.Random, workers: int):
    """But for those that are under way, or finished before their turn: no more than there are workers. Of an exclusive
    stream those stay, too, at whose value the stream's bookmark is to be next: more rows with it may come."""
    line = partitioned(rng, partitions="asc", late=False, position=False, strategy="every_n(2)", retry="")
    out = run_tap(tap_of([line]), {"partition_workers": workers, "page_max_rows": 2, "nap": 0.002})
    assert not out.result.errors
    for state in out.states:
        entries = entry_of(state).get("partitions", {}).values()
        if line.resume == "exclusive":
            assert len({rank(line.kind, entry["key"]) for entry in entries}) <= workers + 1, state
        else:
            assert len(entries) <= workers, state


@DEAR
@given(rng=RANDOM, n=st.integers(0, 12), workers=st.sampled_from([1, 8]), break_some=st.booleans())
def test_each_partition_begins_at_an_old_flat_bookmark(rng: random.Random, n: int, workers: int, break_some: bool):
    line = partitioned(
        rng, partitions="none", lookback=0, late=False, position=False, signpost=False, strategy="end_of_sync"
    )
    told = Told(line)
    told.ledger.state = {"bookmarks": {"s": {"key": value(line.kind, n)}}}
    rows = source_of(line, Phase()).every()
    before = {row.uid for row in rows if row.n < n or (row.n == n and line.resume == "exclusive")}
    told.ledger.out |= before  # the run that left this state had them out
    out = told.run(Run(share=0.4 if break_some else 0.0, workers=workers))
    if out.result.errors:
        assert entry_of(told.ledger.state)["key"] == value(line.kind, n), "some partitions have not begun anywhere else"
        out = told.finish(Run(workers=workers))
    assert told.ledger.out == {row.uid for row in rows}
    if any(row.n > n for row in rows):
        assert "key" not in entry_of(told.ledger.state)


@pytest.mark.parametrize("workers", [1, 8])
def test_partitions_of_a_full_table_are_one_table(workers: int):
    """A partition that breaks leaves what targets have; only a whole run replaces it."""
    for seed in range(10):
        line = line_of(random.Random(seed), "s", shapes=("table",), big=False, partitions="none", resumable=False)
        told = Told(line if line.versions != "block" else line_of(random.Random(0), "s", big=False))
        told.finish(Run(workers=workers))
        told.run(Run(share=0.4, grown=True, workers=workers))
        told.finish(Run(workers=workers))
