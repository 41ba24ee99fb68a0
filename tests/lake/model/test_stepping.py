"""burler's own lock, claim, commit and release through all schedules of their calls.

Whatever is paused, killed, answered late or not at all: no acknowledged file is lost, no commit of an older epoch comes
after one of a newer, and no two writers commit under one epoch. Stores and fences that do not hold are caught.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest import mock

import pytest
from lake_search import Found, Search
from lake_stepping import OK, Call, Run, Shared, writer
from lake_stepping_work import whole_writer, writing

from burler.lake import LakeWriter
from burler.singer.messages import State
from support.internals import manifest

UNAVOIDABLE = {"P1: two believe that they hold a lock"}
# Most faults need few switches between writers. The night looks at those of one more, which are ten times as many.
SWITCHES = pytest.mark.parametrize("switches", [1, pytest.param(2, marks=pytest.mark.nightly)])
SEEDS = pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
ENDS = {"done", "LockLost", "LockTimeout", "WaitStopped", "OutcomeUnknown", "StorageError", "dead"}


@pytest.fixture(autouse=True)
def nothing_is_logged() -> Iterator[None]:
    """A hundred thousand schedules would say much."""
    log = logging.getLogger("burler.lake")
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(logging.NOTSET)


def search(
    *works: Callable[[Run], object], waits: int = 1, patient: bool = False, bound: int | None = None, **world: Any
):
    writers = [writer(work, me, waits=waits, patient=patient) for me, work in enumerate(works)]
    return Search(writers, Shared(**world), bound=bound)


def ends(found: Found) -> set[str]:
    """How writers ended."""
    return {key if key == "dead" else key[1] for keys, _ in found.ends for key in keys}


def safe(found: Found, *, more: frozenset[str] | set[str] = frozenset()) -> Found:
    """Only what no lock can help is broken, nobody hangs, and everybody ends as burler says."""
    assert set(found.broken) <= UNAVOIDABLE | more, found.shown()
    assert not found.stuck, "\n".join(found.stuck[0])
    assert ends(found) <= ENDS
    assert found.ends
    return found


def test_one_writer_alone_commits_and_gives_its_lock_back() -> None:
    found = safe(search(writing(commits=2)).all())
    assert ends(found) == {"done"}
    assert set(found.broken) == set()
    (_, world) = next(iter(found.ends))
    assert len(world.acked) == 2
    assert not [path for path, _ in world.files if path.endswith(".lock")]


def test_one_writer_knows_its_own_lock_whatever_the_store_has_told_it() -> None:
    """It never waits for itself, also where its write arrives late or was answered with a refusal."""
    found = safe(search(writing(), faults=2, patient=True, waits=2).all())
    assert ends(found) == {"done", "OutcomeUnknown", "StorageError"}
    assert set(found.broken) == set()


def test_two_writers_in_every_schedule() -> None:
    """Either may be paused at each call, for longer than the ttl."""
    found = safe(search(writing(), writing(), waits=2).all())
    assert found.states > 1000
    assert ends(found) == {"done", "LockLost"}
    assert set(found.broken) == UNAVOIDABLE, "nobody was misjudged: the schedules are not all there"
    both = [world for keys, world in found.ends if {key[1] for key in keys} == {"done"}]
    assert both
    assert all(len(world.acked) == 2 for world in both)


def test_two_writers_with_heartbeats_and_several_commits() -> None:
    found = safe(search(writing(commits=2, beats=True), writing(beats=True)).all())
    assert found.states > 3000


@SWITCHES
def test_two_writers_and_a_store_that_fails_once(switches: int) -> None:
    """At each write: request or reply is lost, 409, 412 after success, the write comes late, the store is down."""
    found = safe(search(writing(), writing(), faults=1, bound=switches).all())
    assert found.states > (10_000 if switches > 1 else 5_000)
    assert {"done", "LockLost", "OutcomeUnknown", "StorageError"} <= ends(found)


def test_two_writers_of_two_schemas_never_wait_and_lose_nothing() -> None:
    found = safe(search(writing(), writing(variant=1)).all())
    assert set(found.broken) == set()
    assert ends(found) == {"done"}
    assert {len(world.acked) for _, world in found.ends} == {2}


@SWITCHES
def test_two_schemas_and_a_store_that_fails_once(switches: int) -> None:
    found = safe(search(writing(), writing(variant=1), faults=1, bound=switches).all())
    assert set(found.broken) == set(), found.shown()


@SWITCHES
def test_three_writers_in_every_schedule_of_few_switches(switches: int) -> None:
    found = safe(search(writing(), writing(), writing(), bound=switches).all())
    assert found.states > (10_000 if switches > 1 else 3_000)
    assert len(max((world.acked for _, world in found.ends), key=len)) == 3


def test_one_writer_dies_at_any_moment_and_the_other_comes_through() -> None:
    """The lock of the dead grows stale; what was acknowledged stays."""
    found = safe(search(writing(commits=2), writing(), deaths=1).all())
    survivors = {keys[1][1] for keys, _ in found.ends if keys[0] == "dead" and keys[1] != "dead"}
    assert survivors <= {"done", "LockLost"}
    assert "done" in survivors


def test_where_the_kernel_tells_who_lives_nobody_is_misjudged() -> None:
    """On a local disk a dead holder's lock is free at once; while all others are waited for, one alone believes."""
    found = safe(search(writing(), writing(), patient=True, deaths=1, holds=frozenset()).all())
    assert set(found.broken) == set(), found.shown()
    takeovers = [world for keys, world in found.ends if keys[0] == "dead" and keys[1] == ("end", "done")]
    assert takeovers, "nobody was followed"


def test_where_the_kernel_tells_who_lives_and_some_are_paused_beyond_the_ttl() -> None:
    safe(search(writing(), writing(), deaths=1, holds=frozenset()).all())


@SWITCHES
def test_two_whole_writers_in_every_schedule_of_few_switches(switches: int) -> None:
    found = safe(search(whole_writer(), whole_writer(), bound=switches).all())
    assert ends(found) == {"done", "LockLost"}
    assert found.states > (3_000 if switches > 1 else 1_500)
    for _, world in found.ends:
        for _, document in world.manifests():
            assert document["sequence"] == len(world.acked) == len(document["files"])


def test_two_whole_writers_of_two_schemas_in_every_schedule_of_few_switches() -> None:
    found = safe(search(whole_writer(), whole_writer(variant=1), bound=1).all())
    assert ends(found) == {"done"}
    assert {len(world.acked) for _, world in found.ends} == {2}
    for _, world in found.ends:
        for _, document in world.manifests():
            assert sorted(document["versions"].values()) == ["v1", "v2"]
            assert document["sequence"] == 2


def test_a_whole_writer_gives_up_its_lock_between_the_files_of_a_tail() -> None:
    found = safe(search(whole_writer(tail=True, commits=2), whole_writer(tail=True), bound=1).all())
    assert any({key[1] for key in keys} == {"done"} and len(world.acked) == 3 for keys, world in found.ends)


@SWITCHES
def test_two_whole_writers_that_keep_a_state_in_every_schedule_of_few_switches(switches: int) -> None:
    """The state is never ahead of the data. Who loses the swap stops before his next STATE."""
    found = safe(search(whole_writer(keeps=True), whole_writer(keeps=True), bound=switches).all())
    assert ends(found) == {"done", "LockLost"}
    behind = [
        world
        for _, world in found.ends
        if any(document["sequence"] > len(world.acked) for _, document in world.manifests())
    ]
    assert behind, "nobody lost the swap behind his commit"


def test_a_whole_writer_that_keeps_a_state_with_a_fault_and_a_death() -> None:
    found = safe(search(whole_writer(keeps=True, commits=2), faults=1, deaths=1).all())
    assert {"done", "dead", "OutcomeUnknown", "StorageError"} <= ends(found)


def two_that_keep_a_state(bound: int | None = None) -> Search:
    """One of them dies, at any moment, and the store fails once."""
    return search(whole_writer(keeps=True), whole_writer(keeps=True), faults=1, deaths=1, bound=bound)


@SEEDS
def test_two_whole_writers_that_keep_a_state_with_a_fault_and_a_death_at_random(seed: int) -> None:
    found, chance, deep = Found(), random.Random(seed), two_that_keep_a_state()
    for _ in range(100):
        deep.walk(chance, found)
    safe(found)
    assert {"done", "dead", "LockLost"} <= ends(found)
    assert found.states > 100 * 20


@pytest.mark.nightly
def test_two_whole_writers_that_keep_a_state_with_a_fault_and_a_death_in_every_schedule_of_few_switches() -> None:
    """Two minutes: of one switch. Of two there are millions."""
    found = safe(two_that_keep_a_state(bound=1).all())
    assert {"done", "dead", "LockLost", "OutcomeUnknown", "StorageError"} == ends(found)
    assert found.states > 100_000


@SEEDS
def test_whole_writers_deep_at_random(seed: int) -> None:
    """Three of them, of two schemas, with three faults and a death."""
    for keeps in (False, True):
        whole = partial(whole_writer, commits=2, keeps=keeps)
        deep = search(whole(), whole(), whole(variant=1, tail=True), waits=3, faults=3, deaths=1)
        found, chance = Found(), random.Random(seed)
        for _ in range(25):
            deep.walk(chance, found)
        safe(found)
        assert found.states > 25 * 20


@SEEDS
def test_deep_schedules_at_random(seed: int) -> None:
    """Three writers of two schemas, two commits each, three faults, a death."""
    works = (writing(commits=2, beats=True), writing(commits=2), writing(variant=1, commits=2))
    deep = search(*works, waits=3, faults=3, deaths=1)
    found, chance = Found(), random.Random(seed)
    for _ in range(150):
        deep.walk(chance, found)
    safe(found)
    assert found.states > 150 * 20


# ---- what must be caught ------------------------------------------------------------------------------


def test_a_store_that_ignores_conditions_is_caught() -> None:
    """As old S3 clones do: replace writes whatever is there."""
    landed = Call.landed

    def ignoring(call: Call, world: Shared, me: int) -> tuple[str, Shared]:
        if call.tag is not None and call.data is not None:
            return OK, world.put(call.path, call.data, me)
        return landed(call, world, me)

    with mock.patch.object(Call, "landed", ignoring):
        found = search(writing(), writing(variant=1)).all()
    assert "P2: an acknowledged row is lost" in found.broken


def test_a_state_that_is_kept_before_its_commit_is_caught() -> None:
    state = LakeWriter.state

    def at_once(writer: LakeWriter, message: State) -> None:
        writer._emit_state(message)
        state(writer, message)

    with mock.patch.object(LakeWriter, "state", at_once):
        found = search(whole_writer(keeps=True)).all()
    assert "P9: the state is ahead of the data" in found.broken


def test_a_store_whose_create_is_not_exclusive_is_caught() -> None:
    landed = Call.landed

    def ignoring(call: Call, world: Shared, me: int) -> tuple[str, Shared]:
        return (OK, world.put(call.path, call.data, me)) if call.tag is None else landed(call, world, me)

    with mock.patch.object(Call, "landed", ignoring):
        found = search(writing(), writing(variant=1)).all()
    assert "P2: an acknowledged row is lost" in found.broken


def test_a_commit_without_a_fence_is_caught() -> None:
    with mock.patch.object(manifest, "_fence"):
        found = search(writing(), writing()).all()
    assert "P3: a commit of an older epoch after one of a newer" in found.broken
