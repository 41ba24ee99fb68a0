"""Care of lakes that are no folders of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from care_lakes import DEAD_LOCK, fill, later

from burler.lake import care, open_store

KINDS = ("memory", "s3")


@pytest.fixture(params=KINDS)
def away(request: pytest.FixtureRequest, lake: Any) -> Iterator[Any]:
    """The lake of the tests, in another store."""
    if request.param == "memory":
        store = open_store("memory://care-of-other-stores")
    else:
        from s3_lakes import s3_lake

        store = s3_lake(request.getfixturevalue("s3_server"))
    yield type(lake)(Path("/nowhere"), store, lake.clock)
    for file in list(store.files("raw", hidden=True)):
        store.remove(file.path)


def test_a_life(away: Any) -> None:
    store = away.store
    fill(away, 2, 3)
    fill(away, 1, 1, start=5, name={"type": "string"})
    with away.writer() as writer:
        writer.schema(away.schema("empty"))
    ids = away.ids()
    assert care.check(store).findings == ()

    done = care.compact(store)
    assert sum(len(one.files) for one in done.streams) == 2
    assert away.ids() == ids
    assert care.check(store).findings == ()
    listed = {file.path: file.size_bytes for file in store.files("raw")}
    users = next(stream for tap in care.ls(store).taps for stream in tap.streams if stream.stream == "users")
    assert (users.files, users.records) == (2, 7)
    assert users.stored_bytes == sum(listed[file.path] for file in users.all_files)

    for path in list(listed):
        if path.endswith(".json") and ".singer" not in path:
            store.remove(path)
    assert away.ids() == ids
    assert care.rebuild(store).is_whole
    assert away.ids() == ids
    assert care.check(store).findings == ()

    assert care.vacuum(store, yes=True).files == ()
    assert [file.reason for file in care.vacuum(store, now=later(8)).files] == ["replaced"] * 4
    care.vacuum(store, yes=True, now=later(8))
    assert sum(".singer.gz" in file.path for file in store.files("raw")) == 4  # two files with a note each
    assert away.ids() == ids
    assert care.describe(store, "tap-x", owner="me").owner == "me"


def test_harm_is_found(away: Any) -> None:
    store = away.store
    fill(away, 2, 3, 1)
    cut, gone, kept = (file.path for file in away.load().files)
    data = store.open(cut).read()
    store.remove(cut)
    store.create(cut, data[:-9])
    store.remove(gone)
    folder = kept.rpartition("/")[0]
    store.create(f"{folder}/{'users-20240101T000000Z-20240101T000000Z.singer'}", b"{}\n")
    store.create(f"{folder}/singerlake.lock", DEAD_LOCK)

    found = care.check(store, now=later(1)).findings

    assert sorted(one.kind for one in found) == ["lock", "message", "missing", "torn"]
    assert not care.rebuild(store).is_whole
    assert away.ids() == [5]
