"""Everything that writers of one stream can do beside each other, searched through in a model.

The way burler does it keeps every acknowledged commit, whoever is paused, taken for dead, or dies. That the search sees
anything at all is shown by protocols that lose data: each must be found, with the property that it breaks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import lake_model_protocols as ways
import pytest
from lake_model_world import Judge, Lock, Manifest, World, misjudged, never, only_dead, searched
from lake_search import Found

EMPTY = World(files=(("manifest", Manifest()),))
DEAD_HOLDER = World(files=(("lock", Lock(9)), ("manifest", Manifest())), dead=frozenset({9}))
UNAVOIDABLE = {"P1"}  # a lock can't stop one who was paused; what he may do then is what counts


@dataclass(frozen=True)
class Case:
    """A row of the table: ``broken`` are exactly the properties that the search finds broken."""

    name: str
    writers: tuple[Callable[[int], ways.Calls], ...]
    broken: set[str]
    judge: Judge = misjudged
    world: World = EMPTY
    deaths: int = 0

    def found(self) -> Found:
        return searched(self.writers, self.world._replace(judge=self.judge, deaths=self.deaths))


def faulty(faults: int, world: World = EMPTY) -> World:
    return world._replace(faults=faults)


SAFE = [
    Case("three writers, anybody may be paused", (ways.REAL.writer(),) * 3, UNAVOIDABLE),
    Case("three writers behind a dead holder", (ways.REAL.writer(),) * 3, UNAVOIDABLE, world=DEAD_HOLDER),
    Case("three writers, one dies, only the dead are put aside", (ways.REAL.writer(),) * 3, set(), only_dead, deaths=1),
    Case("two writers of two commits", (ways.REAL.writer(commits=2),) * 2, UNAVOIDABLE),
    Case("two writers, two faults of the store", (ways.REAL.writer(),) * 2, UNAVOIDABLE, world=faulty(2)),
    Case(
        "two writers with heartbeats and a fault",
        (ways.REAL.writer(commits=2, beats=True),) * 2,
        UNAVOIDABLE,
        world=faulty(1),
    ),
    Case("two writers that keep a state, anybody may be paused", (ways.REAL_WITH_STATE.writer(),) * 2, UNAVOIDABLE),
    Case(
        "two writers that keep a state, one dies, a fault of the store",
        (ways.REAL_WITH_STATE.writer(),) * 2,
        UNAVOIDABLE,
        world=faulty(1),
        deaths=1,
    ),
    Case(
        "two schemas whose writers keep one state",
        (ways.REAL_WITH_STATE.writer("a", commits=2), ways.REAL_WITH_STATE.writer("b")),
        set(),
        never,
        deaths=1,
    ),
    Case("two of one schema, one of another", (*(ways.REAL.writer("a"),) * 2, ways.REAL.writer("b")), UNAVOIDABLE),
    Case(
        "two schemas and a fault",
        (ways.REAL.writer("a"), ways.REAL.writer("b")),
        set(),
        never,
        world=faulty(2),
    ),
]

CAUGHT = [
    Case("the seed to the letter", (ways.SEED.writer(),) * 2, {"P1", "P2", "P3", "P5"}, never),
    Case("the seed with staleness", (ways.SEED.writer(),) * 2, {"P1", "P2", "P3", "P5"}),
    Case(
        "delete if stale, only the dead are stale",
        (ways.DELETE_IF_STALE.writer(),) * 2,
        {"P1", "P2", "P3", "P5"},
        only_dead,
        world=DEAD_HOLDER,
    ),
    Case("takeover and a blind manifest", (ways.TAKE_OVER_BLIND.writer(),) * 2, {"P1", "P2", "P3"}),
    Case("takeover and a swapped manifest", (ways.TAKE_OVER_SWAP.writer(),) * 3, {"P1", "P3"}),
    Case("an epoch kept in the lock", (ways.EPOCH_IN_THE_LOCK.writer(),) * 3, {"P1", "P4"}),
    Case("release whoever's it is", (ways.REAL_BUT_ANY_RELEASE.writer(),) * 2, {"P1", "P5"}),
    Case("commits without an id", (ways.REAL_BUT_NO_ID.writer(),) * 2, {"P1", "P6"}, world=faulty(1)),
    Case("a state before its commit", (ways.STATE_FIRST.writer(),), {"P8"}),
    Case("a blind state", (ways.BLIND_STATE.writer("a"), ways.BLIND_STATE.writer("b")), {"P9"}, never),
    Case(
        "a lock for each schema, one blind manifest",
        (ways.CREATE_ONLY.writer("a"), ways.CREATE_ONLY.writer("b")),
        {"P2"},
        never,
    ),
]

LOCKS_THAT_HOLD = [
    Case("exclusive creation, nobody is put aside", (ways.CREATE_ONLY.writer(),) * 3, set(), never),
    Case("takeover, only the dead are put aside", (ways.TAKE_OVER_BLIND.writer(),) * 3, set(), only_dead, DEAD_HOLDER),
]


def names(cases: list[Case]) -> list[str]:
    return [case.name for case in cases]


@pytest.mark.parametrize("case", SAFE, ids=names(SAFE))
def test_burlers_way_loses_nothing(case: Case) -> None:
    begun = time.process_time()
    found = case.found()
    assert set(found.broken) == case.broken, found.shown()
    assert case.deaths or not found.stuck, "\n".join(found.stuck[0])
    assert found.states > 300
    assert time.process_time() - begun < 10  # 0.2 s are usual


def test_the_search_of_the_real_protocol_is_of_the_size_it_should_be() -> None:
    """Three writers, each of which may be paused at each call: no state is passed over."""
    found = SAFE[0].found()
    assert found.states > 10_000
    files = [f"lock/{me}.0" for me in range(3)]
    every = {
        tuple(file for file, chosen in zip(files, f"{bits:03b}", strict=True) if chosen == "1") for bits in range(8)
    }
    named = {world.get("manifest").files for _, world in found.ends}
    assert named == every, "who is put aside commits nothing, and each may be"


@pytest.mark.parametrize("case", CAUGHT, ids=names(CAUGHT))
def test_a_protocol_that_loses_data_is_caught(case: Case) -> None:
    found = case.found()
    assert set(found.broken) == case.broken, found.shown()


@pytest.mark.parametrize("case", LOCKS_THAT_HOLD, ids=names(LOCKS_THAT_HOLD))
def test_locks_alone_hold_while_nobody_is_misjudged(case: Case) -> None:
    found = case.found()
    assert set(found.broken) == case.broken, found.shown()


def test_the_way_there_is_shown() -> None:
    """The shortest one, a call a line: how two writers of the seed both enter."""
    way = CAUGHT[0].found().broken["P1"]
    assert [line.split(" -> ")[0][:14] for line in way] == [
        "0: Read(path='",
        "1: Read(path='",
        "0: Write(path=",
        "0: Read(path='",
        "1: Write(path=",
        "1: Read(path='",
    ]
