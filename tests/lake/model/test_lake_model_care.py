"""Rebuild, vacuum, compact and a deleted manifest beside writers, in the model."""

from __future__ import annotations

from collections.abc import Callable

import lake_model_care as care
import lake_model_protocols as ways
import pytest
from lake_model_world import Manifest, World, searched
from lake_search import Found

Calling = Callable[[int], ways.Calls]
EMPTY = World(files=(("manifest", Manifest()),), data=True)
ONE = ways.REAL.writer(data=True)
TWO = ways.REAL.writer(data=True, commits=2)
TRUSTING = care.TRUSTING.writer(data=True)
STRICT = care.STRICT.writer(data=True)
PARTS = ("lock/8.0", "lock/8.1")
PARTED = World(files=(*((part, "data") for part in PARTS), ("manifest", Manifest(PARTS))), data=False)


def found(*writers: Calling, world: World = EMPTY) -> Found:
    given = searched(writers, world)
    assert not given.stuck, "\n".join(given.stuck[0])
    return given


def named(given: Found) -> set[tuple[str, ...]]:
    """The data files that manifests name in the end."""
    return {world.get("manifest").files for _, world in given.ends}


def test_rebuild_beside_writers_forgets_nothing() -> None:
    given = found(TWO, TWO, care.rebuild())
    assert set(given.broken) == {"P1"}, given.shown()
    assert given.states > 10_000


def test_rebuild_that_lists_before_it_reads_is_caught() -> None:
    """What is committed between the listing and the reading is in neither."""
    given = found(ONE, ONE, care.rebuild_lists_first())
    assert {"P2"} <= set(given.broken)


def test_rebuild_adopts_the_file_of_a_writer_that_died_before_its_commit() -> None:
    """It stands there without a STATE: its rows may come twice, and are not lost. A vacuum would have removed it."""
    world = World(files=(("lock/8.0", "data"), ("manifest", Manifest())), data=True)
    given = found(ONE, care.rebuild(), world=world)
    assert named(given) == {("lock/0.0", "lock/8.0"), ("lock/8.0",)}
    assert named(found(ONE, care.vacuum, world=world)) == {("lock/0.0",), ()}


def test_vacuum_beside_writers_removes_nothing_that_is_acknowledged() -> None:
    given = found(ONE, ONE, care.vacuum)
    assert set(given.broken) == {"P1"}, given.shown()


def test_vacuum_that_does_not_say_what_it_takes_is_caught() -> None:
    """A writer that was paused between its data and its commit, for however long, commits a file that is gone."""
    given = found(ONE, care.silent_vacuum)
    assert {"P2", "P7"} == set(given.broken)


@pytest.mark.parametrize("writer", [TRUSTING, STRICT], ids=["the claim is taken on", "the claim is lost"])
def test_a_manifest_deleted_beside_writers_and_a_rebuild_loses_no_commit(writer: Calling) -> None:
    """Epochs begin anew with a manifest, so nothing is said of their order here."""
    given = found(writer, writer, care.delete_manifest, care.rebuild())
    assert not {"P2", "P5", "P6", "P7"} & set(given.broken), given.shown()
    assert given.states > 10_000


def test_vacuum_and_rebuild_at_one_time_leave_no_file_that_is_named_and_gone() -> None:
    given = found(ONE, ONE, care.vacuum, care.rebuild())
    assert not set(given.broken) - {"P1"}, given.shown()


def test_vacuum_and_a_deleted_manifest_at_one_time_are_safe_only_if_claims_end_with_it() -> None:
    assert "P2" not in found(STRICT, STRICT, care.delete_manifest, care.vacuum).broken
    assert "P2" in found(TRUSTING, care.delete_manifest, care.vacuum).broken


def test_compacting_twice_beside_a_writer_keeps_each_row_once() -> None:
    given = found(care.compact(PARTS), care.compact(PARTS), ONE, world=PARTED)
    assert set(given.broken) <= {"P1"}, given.shown()
    assert {len(files) for files in named(given)} == {2}
    for files in named(given):
        assert care.rows(files, PARTS) == ["lock/2.0", *PARTS]


def test_compacting_without_a_second_look_at_its_parts_is_caught() -> None:
    given = found(care.compact_without_a_look(PARTS), care.compact(PARTS), ONE, world=PARTED)
    assert any(len(care.rows(files, PARTS)) > 3 for files in named(given))
