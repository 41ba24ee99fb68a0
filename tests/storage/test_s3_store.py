"""A lake on S3 when requests and replies get lost: what happened is known, or said to be unknown."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from s3_lakes import BIG, CONFLICT, PATH, Once, content, s3_lake

from burler.errors import StorageError
from burler.lake import Store, probe
from support.internals import clocks, lake_store


@pytest.fixture(params=["lake", "batch"])
def store(request: pytest.FixtureRequest, s3_server: Any) -> Store:
    """One that has been probed, or that BATCH has opened."""
    store = s3_lake(s3_server, batch=request.param == "batch")
    assert probe(store)
    return store


TROUBLES = {
    "conflict": [CONFLICT, CONFLICT, CONFLICT],
    "slow-down": [(503, "SlowDown")],
    "lost-request": ["hang up"],
    "lost-reply": ["answer is lost"],
    "lost-both": ["hang up", "answer is lost"],
    "server-error": [(500, "InternalError"), (503, "ServiceUnavailable")],
}
TROUBLE = pytest.mark.parametrize("answers", TROUBLES.values(), ids=TROUBLES.keys())


@TROUBLE
def test_small_writes_are_known_to_have_happened(s3_server: Any, store: Store, answers: list[Any]) -> None:
    for data, act in (
        (b"1", lambda: store.create(PATH, b"1")),
        (b"2", lambda: store.replace(PATH, b"2", tag=store.read(PATH).tag)),
        (None, lambda: store.delete(PATH, tag=store.read(PATH).tag)),
    ):
        rule = Once(("PUT", "DELETE"), *answers)
        with s3_server.failing(rule):
            tag = act()
        blob = store.read(PATH)
        assert rule.answers == []
        assert blob is None if data is None else (blob.data, blob.tag) == (data, tag)


@TROUBLE
def test_a_data_file_is_published_once(s3_server: Any, store: Store, answers: list[Any]) -> None:
    file = store.new_file("raw/t/s/h")
    file.write(b"1" * 10)
    rule = Once("PUT", *answers)
    with s3_server.failing(rule):
        file.publish("raw/t/s/h/f")
    assert rule.answers == []
    assert [(f.path, f.size_bytes) for f in store.files("raw", hidden=True)] == [("raw/t/s/h/f", 10)]


def test_a_big_data_file_is_published_once(s3_server: Any, store: Store) -> None:
    for name in ("conflict", "lost-both", "server-error"):
        file = store.new_file("raw/t/s/h")
        file.write(b"1" * BIG)
        rule = Once("POST", *TROUBLES[name], holding="?uploadId=")
        with s3_server.failing(rule):
            file.publish(f"raw/t/s/h/{name}")
        assert rule.answers == []
    assert {f.path.rpartition("/")[2]: f.size_bytes for f in store.files("raw", hidden=True)} == dict.fromkeys(
        ("conflict", "lost-both", "server-error"), BIG
    )
    assert s3_server.uploads() == []


def test_a_request_is_lost_and_somebody_else_is_quicker(s3_server: Any, store: Store) -> None:
    tag = store.create(PATH, b"old")
    asked_for: list[str] = []

    def quicker(asked: str) -> Any:
        if not asked.startswith("PUT") or asked_for:
            return None
        asked_for.append(asked)
        s3_server.put(f"lake/{PATH}", b"theirs")
        return "hang up"

    with s3_server.failing(quicker), pytest.raises(lake_store.Conflict):
        store.replace(PATH, b"mine", tag=tag)
    assert asked_for and content(store) == b"theirs"


def test_what_changes_just_before_it_is_deleted_stays(s3_server: Any, store: Store) -> None:
    tag = store.create(PATH, b"old")

    def quicker(asked: str) -> None:
        if asked.startswith("DELETE"):
            s3_server.put(f"lake/{PATH}", b"theirs")

    with s3_server.failing(quicker), pytest.raises(lake_store.Conflict):
        store.delete(PATH, tag=tag)
    assert content(store) == b"theirs"


def test_412_after_own_success_is_not_believed(s3_server: Any, store: Store) -> None:
    """A proxy or a library asks again on its own: the store refuses what it has done already."""
    tag = store.create(PATH, b"old")
    with s3_server.failing(lambda asked: "twice" if asked.startswith("PUT") else None):
        new = store.replace(PATH, b"new", tag=tag)
        blob = store.read(PATH)
        assert blob is not None and (blob.data, blob.tag) == (b"new", new)
        store.create("raw/other", b"1")
        file = store.new_file("raw/t")
        file.publish("raw/t/f")
        with pytest.raises(lake_store.Conflict):
            store.replace(PATH, b"newer", tag=tag)


def test_a_store_that_no_longer_answers(s3_server: Any, store: Store) -> None:
    tag = store.create(PATH, b"old")
    with s3_server.failing(lambda asked: "hang up"), clocks.briefly(0.2):
        for act in (lambda: store.create("raw/other", b"new"), lambda: store.replace(PATH, b"new", tag=tag)):
            with pytest.raises(lake_store.OutcomeUnknown, match=r"nobody knows whether it was written") as caught:
                act()
            assert caught.value.exit_code == 1 and str(caught.value).startswith(store.url)
        with pytest.raises(StorageError, match="can't be read"):
            store.read(PATH)
        with pytest.raises(StorageError, match="can't be listed"):
            [file.path for file in store.files("raw")]
    assert content(store) == b"old"


def test_busy_for_good_is_no_unknown_outcome(s3_server: Any, store: Store) -> None:
    busy = s3_server.failing(lambda asked: (503, "SlowDown"))
    with busy, clocks.briefly(0.2), pytest.raises(StorageError) as caught:
        store.create(PATH, b"new")
    assert not isinstance(caught.value, lake_store.OutcomeUnknown)
    assert store.read(PATH) is None


@pytest.mark.nightly
def test_the_wait_is_said_once(s3_server: Any, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """It takes as long as it says. That calls are made again is what the others show."""
    with caplog.at_level(logging.WARNING), s3_server.failing(Once("GET", *[(503, "ServiceUnavailable")] * 11)):
        assert store.read(PATH) is None
    (record,) = caplog.records
    assert re.fullmatch(
        rf"{store.locate(PATH)}: no good answer for \d+ seconds; given up after 180\.", record.getMessage()
    )
