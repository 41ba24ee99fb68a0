"""The store that goes wrong on demand does what it says: tests rest on it."""

from __future__ import annotations

import pytest
from faulty_store import (
    CONFLICT_FOR_NOTHING,
    LATE,
    LOST_REPLY,
    LOST_REQUEST,
    REFUSED_AFTER_SUCCESS,
    Call,
    FaultyStore,
)
from memory_lakes import in_memory

from burler.errors import StorageError
from support.internals import lake_store

PATH = "raw/t/s/manifest.json"


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore(in_memory())


def content(store: FaultyStore) -> bytes | None:
    blob = store.inner.read(PATH)
    return None if blob is None else blob.data


@pytest.mark.parametrize(
    ("what", "error", "written"),
    [
        (CONFLICT_FOR_NOTHING, lake_store.Conflict, False),
        (LOST_REQUEST, lake_store.OutcomeUnknown, False),
        (LOST_REPLY, lake_store.OutcomeUnknown, True),
        (REFUSED_AFTER_SUCCESS, lake_store.Conflict, True),
    ],
)
def test_a_replace_that_goes_wrong(store: FaultyStore, what: str, error: type[Exception], written: bool) -> None:
    tag = store.create(PATH, b"old")
    store.fail("replace", what, path="*/manifest.json")
    with pytest.raises(error):
        store.replace(PATH, b"new", tag=tag)
    assert content(store) == (b"new" if written else b"old")
    assert store.unused() == []


def test_a_late_request_arrives_after_the_next_call(store: FaultyStore) -> None:
    tag = store.create(PATH, b"old")
    store.fail("replace", LATE)
    with pytest.raises(lake_store.OutcomeUnknown):
        store.replace(PATH, b"late", tag=tag)
    store.read("raw/other")
    blob = store.read(PATH)
    assert blob is not None and blob.data == b"old"
    assert content(store) == b"late"
    with pytest.raises(lake_store.Conflict):
        store.replace(PATH, b"new", tag=blob.tag)


def test_a_late_request_whose_condition_is_gone_does_nothing(store: FaultyStore) -> None:
    tag = store.create(PATH, b"old")
    store.fail("replace", LATE)
    with pytest.raises(lake_store.OutcomeUnknown):
        store.replace(PATH, b"late", tag=tag)
    store.replace(PATH, b"new", tag=tag)
    store.deliver()
    assert content(store) == b"new"


def test_a_file_that_is_published_and_refused(store: FaultyStore) -> None:
    for what, error, there in (
        (LOST_REQUEST, lake_store.OutcomeUnknown, False),
        (REFUSED_AFTER_SUCCESS, FileExistsError, True),
    ):
        file = store.new_file("raw/t/s/h")
        file.write(b"rows")
        store.fail("publish", what)
        with pytest.raises(error):
            file.publish("raw/t/s/h/f")
        assert [file.path for file in store.files("raw")] == (["raw/t/s/h/f"] if there else [])


def test_the_nth_call_and_how_often(store: FaultyStore) -> None:
    store.fail("read", StorageError("gone"), nth=2, times=2)
    outcomes = []
    for _ in range(4):
        try:
            store.read(PATH)
            outcomes.append("ok")
        except StorageError:
            outcomes.append("gone")
    assert outcomes == ["ok", "gone", "gone", "ok"]
    store.fail("delete", LOST_REPLY)
    assert store.unused() == ["delete *: lost reply"]
    with pytest.raises(ValueError, match="read"):
        store.fail("read", LOST_REPLY)


def test_listings_that_lack_a_file(store: FaultyStore) -> None:
    for name in ("a", "b"):
        store.create(f"raw/t/{name}", b"1")
    store.torn_listing(lambda path: path.endswith("b"))
    assert [file.path for file in store.files("raw")] == ["raw/t/a"]


def test_every_call_can_be_stepped(store: FaultyStore) -> None:
    seen: list[Call] = []
    store.before_call = seen.append
    store.create(PATH, b"1")
    store.new_file("raw/t/s/h").publish("raw/t/s/h/f")
    assert [call.operation for call in seen] == ["create", "new_file", "publish"] and seen == store.calls
