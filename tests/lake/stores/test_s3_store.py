"""A lake on S3 when requests and replies get lost: what happened is known, or said to be unknown."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import pytest
from s3_lakes import BIG, CONFLICT, PATH, Backend, Once, content, s3_lake, s3_lake_of_small_parts

from burler.errors import StorageError
from burler.lake import probe
from support.internals import lake_pace, lake_store, object_store


@pytest.fixture
def store(s3_server: Any, monkeypatch: pytest.MonkeyPatch) -> object_store.ObjectStore:
    return s3_lake_of_small_parts(s3_server, monkeypatch)


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
def test_a_creation_is_known_to_have_happened(
    s3_server: Any, store: object_store.ObjectStore, answers: list[Any]
) -> None:
    rule = Once("PUT", *answers)
    with s3_server.failing(rule):
        tag = store.create(PATH, b"mine")
    assert rule.answers == []
    blob = store.read(PATH)
    assert blob is not None and (blob.data, blob.tag) == (b"mine", tag)


@TROUBLE
def test_a_replacement_is_known_to_have_happened(
    s3_server: Any, store: object_store.ObjectStore, answers: list[Any]
) -> None:
    tag = store.create(PATH, b"old")
    rule = Once("PUT", *answers)
    with s3_server.failing(rule):
        new = store.replace(PATH, b"new", tag=tag)
    assert rule.answers == []
    blob = store.read(PATH)
    assert blob is not None and (blob.data, blob.tag) == (b"new", new)


@TROUBLE
def test_a_deletion_is_known_to_have_happened(
    s3_server: Any, store: object_store.ObjectStore, answers: list[Any]
) -> None:
    tag = store.create(PATH, b"old")
    rule = Once("DELETE", *answers)
    with s3_server.failing(rule):
        store.delete(PATH, tag=tag)
    assert rule.answers == [] and store.read(PATH) is None


@TROUBLE
@pytest.mark.parametrize("size_bytes", [10, BIG])
def test_a_data_file_is_published_once(
    s3_server: Any, store: object_store.ObjectStore, answers: list[Any], size_bytes: int
) -> None:
    file = store.new_file("raw/t/s/h")
    file.write(b"1" * size_bytes)
    rule = Once("POST", *answers, holding="?uploadId=") if size_bytes == BIG else Once("PUT", *answers)
    with s3_server.failing(rule):
        file.publish("raw/t/s/h/f")
    assert rule.answers == []
    assert [(f.path, f.size_bytes) for f in store.files("raw", hidden=True)] == [("raw/t/s/h/f", size_bytes)]
    assert s3_server.uploads() == []


def test_a_request_is_lost_and_somebody_else_is_quicker(s3_server: Any, store: object_store.ObjectStore) -> None:
    tag = store.create(PATH, b"old")
    asked_for: list[str] = []

    def quicker(asked: str) -> Any:
        if not asked.startswith("PUT") or asked_for:
            return None
        asked_for.append(asked)
        Backend(s3_server).put(f"lake/{PATH}", b"theirs")
        return "hang up"

    with s3_server.failing(quicker), pytest.raises(lake_store.Conflict):
        store.replace(PATH, b"mine", tag=tag)
    assert asked_for and content(store) == b"theirs"


def test_what_changes_just_before_it_is_deleted_stays(s3_server: Any, store: object_store.ObjectStore) -> None:
    tag = store.create(PATH, b"old")

    def quicker(asked: str) -> None:
        if asked.startswith("DELETE"):
            Backend(s3_server).put(f"lake/{PATH}", b"theirs")

    with s3_server.failing(quicker), pytest.raises(lake_store.Conflict):
        store.delete(PATH, tag=tag)
    assert content(store) == b"theirs"


def test_412_after_own_success_is_not_believed(s3_server: Any, store: object_store.ObjectStore) -> None:
    """A proxy or a library asks again on its own: the store refuses what it has done already."""
    tag = store.create(PATH, b"old")
    bucket = store._calls()[0]
    real = bucket.put

    def twice(*args: Any, **more: Any) -> str:
        real(*args, **more)
        return str(real(*args, **more))

    bucket.put = twice
    new = store.replace(PATH, b"new", tag=tag)
    blob = store.read(PATH)
    assert blob is not None and (blob.data, blob.tag) == (b"new", new)
    store.create("raw/other", b"1")
    file = store.new_file("raw/t")
    file.publish("raw/t/f")
    with pytest.raises(lake_store.Conflict):
        store.replace(PATH, b"newer", tag=tag)


def test_a_store_that_no_longer_answers(s3_server: Any, store: object_store.ObjectStore) -> None:
    impatient = s3_lake(s3_server, patience_seconds=0.2)
    assert probe(impatient)
    tag = impatient.create(PATH, b"old")
    with s3_server.failing(lambda asked: "hang up"):
        for act in (
            lambda: impatient.create("raw/other", b"new"),
            lambda: impatient.replace(PATH, b"new", tag=tag),
        ):
            with pytest.raises(lake_store.OutcomeUnknown, match=r"nobody knows whether it was written") as caught:
                act()
            assert caught.value.exit_code == 1 and str(caught.value).startswith(store.url)
        with pytest.raises(StorageError, match="can't be read"):
            impatient.read(PATH)
        with pytest.raises(StorageError, match="can't be listed"):
            list(impatient.walk("raw"))
    assert content(store) == b"old"


def test_busy_for_good_is_no_unknown_outcome(s3_server: Any, store: object_store.ObjectStore) -> None:
    impatient = s3_lake(s3_server, patience_seconds=0.2)
    assert probe(impatient)
    with s3_server.failing(lambda asked: (503, "SlowDown")), pytest.raises(StorageError) as caught:
        impatient.create(PATH, b"new")
    assert not isinstance(caught.value, lake_store.OutcomeUnknown)
    assert store.read(PATH) is None


def test_the_wait_is_said_once(
    s3_server: Any, store: object_store.ObjectStore, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    asking = store._calls()[2]
    asking.pace = lake_pace.Pace(monotonic=lambda: now[0], sleep=lambda _seconds: now.__setitem__(0, now[0] + 15))
    with caplog.at_level(logging.WARNING), s3_server.failing(Once("GET", *[(503, "ServiceUnavailable")] * 5)):
        assert store.read(PATH) is None
    assert [r.getMessage() for r in caplog.records] == [
        f"{store.locate(PATH)}: no good answer for 15 seconds; given up after 180."
    ]


def test_a_lake_is_whole_although_the_network_is_not(
    s3_server: Any, store: object_store.ObjectStore, lake: Any
) -> None:
    lake.store = store
    answers = itertools.cycle([None, "answer is lost", None, CONFLICT, None, None, (503, "SlowDown"), None, "hang up"])
    with s3_server.failing(lambda asked: next(answers)), lake.writer(max_file_records=30) as writer:
        writer.schema(lake.schema())
        for page in range(6):
            writer.records(lake.page("users", *range(20 * page, 20 * page + 20)))
            writer.state(lake.state(page))
    assert lake.ids() == list(range(120)) and lake.states[-1] == {"at": 5}
    there = {path.rpartition("/")[2] for path in store.walk("raw") if ".singer" in path}
    assert there == {file.path.rpartition("/")[2] for file in lake.load().files} and len(there) == 4
    assert [file.path for file in store.files("raw", hidden=True) if "/." in file.path] == []
