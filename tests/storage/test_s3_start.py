"""A lake on S3: what is wrong with a command shows at once, with its cure and without its secrets."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest
from s3_lakes import PATH, s3_lake

from burler.errors import StorageError, UsageError
from burler.lake import Store, open_store, probe
from burler.testing import canary
from support.internals import clocks
from support.objects import clean_environment


@pytest.fixture
def store(s3_server: Any) -> Store:
    """One that has been probed."""
    store = s3_lake(s3_server)
    assert probe(store)
    return store


def test_no_lake_there(s3_server: Any) -> None:
    with pytest.raises(UsageError, match=r"there is no lake at s3://.*/lake: nothing is below 'raw/'"):
        open_store(s3_server.url("lake"), must_exist=True, options=s3_server.options)
    s3_server.put("lake/raw/x", b"")
    assert open_store(s3_server.url("lake/"), must_exist=True, options=s3_server.options).url == s3_server.url("lake")
    with pytest.raises(UsageError):
        open_store(s3_server.url("lak"), must_exist=True, options=s3_server.options)


def test_to_open_a_lake_costs_one_request_and_no_page_of_names(s3_server: Any) -> None:
    s3_server.put("lake/raw/x", b"")
    s3_server.put("lake/raw/y", b"")
    before = len(s3_server.requests)
    open_store(s3_server.url("lake"), must_exist=True, options=s3_server.options)
    (asked,) = s3_server.requests[before:]
    assert asked.startswith("GET ") and "max-keys=1&" in f"{asked}&"


def test_a_bucket_that_is_not_there(s3_server: Any) -> None:
    with pytest.raises(UsageError, match="Is the name of the bucket right"):
        open_store("s3://no-such-bucket/lake", options=s3_server.options)


def test_a_bucket_that_goes_away(s3_server: Any, store: Store) -> None:
    tag = store.create(PATH, b"1")
    file = store.new_file("raw/t")
    names = s3_server.keys()
    for key in names:
        s3_server.client.delete_object(Bucket=s3_server.bucket, Key=key)
    s3_server.client.delete_bucket(Bucket=s3_server.bucket)
    try:
        for act in (
            lambda: store.create(PATH, b"2"),
            lambda: store.replace(PATH, b"2", tag=tag),
            lambda: file.publish("raw/t/f"),
            lambda: [file.path for file in store.files("raw")],
        ):
            with pytest.raises(StorageError, match="Is the name of the bucket right"):
                act()
    finally:
        file.discard()
        s3_server.client.create_bucket(Bucket=s3_server.bucket)


def test_credentials_that_may_not(s3_server: Any) -> None:
    raises = pytest.raises(UsageError, match=r"can't be (looked at|written): .*\n.*Do the credentials hold")
    with s3_server.failing(lambda asked: (403, "AccessDenied")), raises as caught:
        open_store(s3_server.url("lake"), options=s3_server.options)
    assert caught.value.exit_code == 2 and "--lake-options" in str(caught.value)
    store = s3_lake(s3_server)
    with s3_server.failing(lambda asked: (403, "AccessDenied") if asked.startswith("PUT") else None), raises:
        store.create(PATH, b"1")
    assert probe(store)
    expired = pytest.raises(StorageError, match=r"can't be written: .*\n.*Do the credentials hold")
    with s3_server.failing(lambda asked: (400, "ExpiredToken")), expired as later:
        store.create(PATH, b"1")
    assert later.value.exit_code == 1


def test_no_credentials_at_all(s3_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    options = {name: value for name, value in s3_server.options.items() if name not in ("key", "secret")}
    with pytest.raises(UsageError, match=r"credentials"):
        open_store(s3_server.url("lake"), options=options)


def test_an_address_where_nobody_answers(s3_server: Any) -> None:
    options = {**s3_server.options, "endpoint_url": "http://127.0.0.1:9"}
    unreachable = pytest.raises(StorageError, match=r"can't be looked at: .*\n.*Is the store's address right")
    with clocks.briefly(0.2), unreachable:
        open_store(s3_server.url("lake"), options=options)


def test_an_option_that_is_none(s3_server: Any) -> None:
    with pytest.raises(UsageError, match=r"--lake-options: s3fs does not know 'kye'"):
        open_store(s3_server.url("lake"), options={**s3_server.options, "kye": "x"})


def test_secrets_do_not_show(s3_server: Any, caplog: pytest.LogCaptureFixture) -> None:
    secret = canary("lake-secret")
    url = f"s3://AKIATEST:{secret}@bucket/lake"
    with pytest.raises(UsageError, match="has credentials in it") as caught:
        open_store(url)
    assert secret not in str(caught.value) and "--lake-options" in str(caught.value)
    options = {**s3_server.options, "secret": secret, "endpoint_url": f"http://user:{secret}@127.0.0.1:9"}
    raises = pytest.raises((UsageError, StorageError))
    with caplog.at_level(logging.DEBUG, "burler"), clocks.briefly(0.2), raises as other:
        open_store(s3_server.url("lake"), options=options)
    assert secret not in str(other.value) and secret not in caplog.text


def test_urls_that_are_no_place_for_a_lake() -> None:
    for url in ("s3://", "s3:///lake", "s3://b/../x", "s3://b/a?x=1", "s3://b/a#x", "s3://b/100%", "https://h/lake"):
        with pytest.raises(UsageError):
            open_store(url)


def test_what_the_stores_library_says_of_itself_is_not_in_the_log(s3_server: Any) -> None:
    s3_server.put("lake/raw/x", b"")
    command = [sys.executable, "-m", "burler", "lake", "ls", s3_server.url("lake")]
    environment = {**clean_environment(), **s3_server.environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
