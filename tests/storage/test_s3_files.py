"""A lake on S3: listings in pages, reading ahead in little memory, data files whole or not there at all."""

from __future__ import annotations

import time
from typing import Any

import pytest
from s3_lakes import BIG, Once, content, s3_lake

from burler.errors import StorageError
from burler.lake import Store, probe

FIRST_BYTES, MOST_BYTES = 256 << 10, 4 << 20
"""Of the first block that is read ahead, and of the biggest."""


@pytest.fixture
def store(s3_server: Any) -> Store:
    """One that has been probed."""
    store = s3_lake(s3_server)
    assert probe(store)
    return store


def test_a_listing_goes_on_where_a_page_was_lost(s3_server: Any, store: Store) -> None:
    names = [f"{n:04}" for n in range(2_100)]
    s3_server.put_empty([f"lake/raw/t/{name}" for name in names])
    before = len(s3_server.requests)
    with s3_server.failing(Once("GET", "hang up", (503, "SlowDown"), "answer is lost", holding="continuation-token")):
        assert [file.path[-4:] for file in store.files("raw")] == names
    assert len(s3_server.requests) - before == 3 + 3
    assert store.folders("raw") == ["t"]


def test_thousands_of_folders_are_one_listing(s3_server: Any, store: Store) -> None:
    s3_server.put_empty([f"lake/raw/t/s{n}/h/f.singer.gz" for n in range(1_100)])
    before = len(s3_server.requests)
    assert len(list(store.files("raw"))) == 1_100
    assert len(s3_server.requests) - before == 2
    assert len(store.folders("raw/t")) == 1_100


def test_reading_is_ahead_by_a_block_and_no_more(s3_server: Any, store: Store) -> None:
    size = FIRST_BYTES + 9 * MOST_BYTES
    s3_server.put("lake/raw/f", bytes(size))
    before = len(s3_server.requests)

    def gets() -> int:
        return sum(asked.startswith("GET") for asked in s3_server.requests[before:])

    with store.open("raw/f") as stream:
        assert gets() == 1
        read = len(stream.read(FIRST_BYTES))
        assert gets() == 1
        read += len(stream.read(1))
        give_up = time.monotonic() + 60
        while gets() < 3 and time.monotonic() < give_up:  # the block that is wanted, and the next one
            time.sleep(0.01)
        assert gets() == 3
        read += len(stream.read(2 * FIRST_BYTES))
        assert gets() == 3
        while chunk := stream.read(1 << 20):
            read += len(chunk)
    assert read == size and gets() <= 12


def test_reading_goes_on_after_a_broken_connection(s3_server: Any, store: Store) -> None:
    data = bytes(range(256)) * (4 * MOST_BYTES // 256)
    s3_server.put("lake/raw/f", data)
    with s3_server.failing(Once("GET", None, "hang up", None, (500, "InternalError"))), store.open("raw/f") as stream:
        assert stream.read() == data


def test_a_file_that_is_replaced_while_it_is_read(s3_server: Any, store: Store) -> None:
    s3_server.put("lake/raw/f", b"1" * 4 * MOST_BYTES)
    with store.open("raw/f") as stream:
        stream.read(10)
        s3_server.put("lake/raw/f", b"2" * 4 * MOST_BYTES)
        with pytest.raises(StorageError, match="was replaced while it was read"):
            stream.read()


def test_nothing_stays_of_an_upload_that_fails(s3_server: Any, store: Store) -> None:
    file = store.new_file("raw/t")
    file.write(b"1" * BIG)
    with s3_server.failing(Once("POST", (403, "AccessDenied"), holding="?uploadId=")), pytest.raises(StorageError):
        file.publish("raw/t/f")
    assert s3_server.uploads() == [] and [file.path for file in store.files("raw")] == []
    file.publish("raw/t/f")
    assert content(store, "raw/t/f") == b"1" * BIG


def test_an_upload_that_the_bucket_has_dropped_is_begun_anew(s3_server: Any, store: Store) -> None:
    file = store.new_file("raw/t")
    file.write(b"1" * BIG)
    dropped: list[str] = []

    def drop(asked: str) -> Any:
        if "partNumber=2" in asked and not dropped:
            dropped.append(asked.partition("uploadId=")[2])
        return (404, "NoSuchUpload") if dropped and dropped[0] in asked and "partNumber" in asked else None

    with s3_server.failing(drop):
        file.publish("raw/t/f")
    assert dropped
    assert s3_server.uploads() == [] and content(store, "raw/t/f") == b"1" * BIG


def test_a_big_file_is_exclusive_too(s3_server: Any, store: Store) -> None:
    one, two = store.new_file("raw/t"), store.new_file("raw/t")
    one.write(b"1" * BIG)
    two.write(b"2" * BIG)
    one.publish("raw/t/f")
    with pytest.raises(FileExistsError):
        two.publish("raw/t/f")
    two.publish("raw/t/f-2")
    assert content(store, "raw/t/f") == b"1" * BIG and content(store, "raw/t/f-2") == b"2" * BIG
    assert s3_server.uploads() == []


def test_many_open_files_stay_small(s3_server: Any, store: Store) -> None:
    before = len(s3_server.requests)
    files = [store.new_file("raw/t") for _ in range(200)]
    for file in files:
        file.write(b"x" * 100)
    files[0].write(b"x" * (2 << 20))
    assert len(s3_server.requests) == before
    for file in files:
        file.discard()


def test_a_data_file_is_one_request(s3_server: Any, store: Store) -> None:
    file = store.new_file("raw/t")
    file.write(b"1")
    before = len(s3_server.requests)
    file.publish("raw/t/f")
    assert [asked.split()[0] for asked in s3_server.requests[before:]] == ["PUT"]
