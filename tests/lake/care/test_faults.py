"""Every call to the store goes wrong once, in every way: rows stay all there, once, for all kinds of readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from care_lakes import fill, later
from faulty_store import FAULTS, WRITES, FaultyStore
from memory_lakes import in_memory

from burler.errors import BurlerError, StorageError
from burler.lake import Store, care

DEEDS = {
    "compact": care.compact,
    "rebuild": care.rebuild,
    "rebuild of nothing": care.rebuild,
    "vacuum": lambda store: care.vacuum(store, yes=True, now=later(8)),
}


def made(lake: Any, deed: str) -> tuple[Any, Store]:
    """A lake that has been compacted once, with new files since."""
    inner = in_memory()
    here = type(lake)(Path("/nowhere"), inner, lake.clock)
    fill(here, 2, 1)
    care.compact(inner)
    fill(here, 1, 1, start=3)
    if deed == "vacuum":
        care.compact(inner)
    if deed == "rebuild of nothing":
        for path in [file.path for file in inner.files("raw")]:
            if path.endswith(".json") and ".singer" not in path:
                inner.remove(path)
    if deed == "rebuild":
        forget_a_file(inner)
    return here, inner


def forget_a_file(inner: Store) -> None:
    """A manifest that lists a file and knows nothing of it: then there is something to do."""
    blob = inner.read("raw/tap-x/users/manifest.json")
    assert blob is not None
    wire = json.loads(blob.data)
    del wire["file_stats"][wire["files"][-1]]
    inner.replace("raw/tap-x/users/manifest.json", json.dumps(wire).encode(), tag=blob.tag)


def rows_are_there(here: Any, inner: Store) -> None:
    assert sorted(here.ids()) == list(range(5))
    listed_rows_are_there(here, inner)  # before anybody tidies up
    care.vacuum(inner, yes=True, now=later(16))
    assert sorted(here.ids()) == list(range(5))
    listed_rows_are_there(here, inner)
    assert care.rebuild(inner).is_whole
    assert sorted(here.ids()) == list(range(5))
    assert care.check(inner).findings == ()


def listed_rows_are_there(here: Any, inner: Store) -> None:
    """What readers see that have no manifest."""
    manifest = "raw/tap-x/users/manifest.json"
    blob = inner.read(manifest)
    if blob is not None:
        inner.remove(manifest)
        assert sorted(here.ids()) == list(range(5))
        inner.create(manifest, blob.data)


def calls_of(lake: Any, deed: str) -> list[str]:
    """What a deed asks of the store when all goes well."""
    _here, inner = made(lake, deed)
    store = FaultyStore(inner)
    DEEDS[deed](store)
    return [call.operation for call in store.calls]


@pytest.mark.parametrize("deed", list(DEEDS))
def test_the_store_is_gone_from_some_call_on(lake: Any, deed: str) -> None:
    count = len(calls_of(lake, deed))
    assert count > 5
    for nth in range(1, count + 1):
        here, inner = made(lake, deed)
        store = FaultyStore(inner)
        store.fail("*", StorageError("gone"), nth=nth, times=-1)
        with pytest.raises(BurlerError):
            DEEDS[deed](store)
        rows_are_there(here, inner)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("deed", list(DEEDS))
def test_a_write_ends_in_some_odd_way(lake: Any, deed: str, fault: str) -> None:
    calls = calls_of(lake, deed)
    tried = 0
    for operation in WRITES:
        for nth in range(1, calls.count(operation) + 1):
            here, inner = made(lake, deed)
            store = FaultyStore(inner)
            store.fail(operation, fault, nth=nth)
            try:
                DEEDS[deed](store)
            except StorageError:
                assert operation != "replace"  # every change of a manifest can be told afterwards
            assert store.unused() == []
            store.deliver()
            rows_are_there(here, inner)
            tried += 1
    assert tried


@pytest.mark.parametrize("deed", ["compact", "rebuild", "vacuum"])
def test_a_store_without_conditions_is_said(lake: Any, deed: str, caplog: pytest.LogCaptureFixture) -> None:
    here, inner = made(lake, deed)
    with caplog.at_level("WARNING", logger="burler.lake"):
        DEEDS[deed](FaultyStore(inner))
        assert not [one for one in caplog.records if "no writer may run" in one.getMessage()]
        DEEDS[deed](FaultyStore(inner, conditional=False))
    assert len([one for one in caplog.records if f"no writer may run during {deed}" in one.getMessage()]) == 1
    rows_are_there(here, inner)
