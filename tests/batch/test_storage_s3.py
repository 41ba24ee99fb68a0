"""Batch files on S3: visible as a whole, never over another one; nothing stays of what was given up. What all stores do
when replies get lost: ``tests/storage``."""

from __future__ import annotations

import json
import logging
from urllib.parse import parse_qs, urlsplit

import pytest
from stored_files import NAME, OTHER

from burler.batch import read
from burler.errors import ConfigError, StorageError, UsageError
from support.internals import batch_config, batch_storage, clocks
from support.objects import AWS_NAMES

PART_BYTES = 16 << 20
BIG = PART_BYTES + 17
KEY = f"batches/crm-{NAME}"


@pytest.fixture
def storage(s3_server):
    return opened(s3_server.url("batches"), s3_server.options)


def opened(root, options, **more):
    return batch_storage.open_storage(batch_config.BatchStorage(root, "crm-", options), **more)


def parts(asked):
    return [request for request in asked if "partNumber=" in request]


@pytest.mark.parametrize("size_bytes", [10, PART_BYTES, BIG])
def test_a_file_is_visible_once_it_is_whole(s3_server, storage, size_bytes):
    content = bytes(range(256)) * (size_bytes // 256 + 1)
    file = storage.new_file(NAME)
    for start in range(0, size_bytes, 1_000_003):
        file.write(memoryview(content)[start : min(start + 1_000_003, size_bytes)])
    assert s3_server.keys() == []
    assert file.publish() == s3_server.url(KEY)
    assert s3_server.keys() == [KEY] and s3_server.uploads() == []
    assert s3_server.get(KEY) == content[:size_bytes]


def test_a_store_that_knows_no_if_none_match(s3_server, storage):
    """It answers 501 to the header; then burler looks before it writes."""

    def old_store(asked, tried=[]):  # noqa: B006  # one list for all calls is what is wanted
        first = (asked.startswith("PUT") and "partNumber" not in asked) or (asked.startswith("POST") and "=" in asked)
        if first and asked.partition("?")[0] not in tried:
            tried.append(asked.partition("?")[0])
            return 501, "NotImplemented"
        return None

    for size_bytes, name in ((10, NAME), (BIG, OTHER)):
        file = opened(s3_server.url("batches"), s3_server.options).new_file(name)
        file.write(bytes(size_bytes))
        with s3_server.failing(old_store):
            file.publish()
        assert len(s3_server.get(f"batches/crm-{name}")) == size_bytes
    old_store.__defaults__[0].clear()
    file = storage.new_file(NAME)
    file.write(b"another")
    with s3_server.failing(old_store), pytest.raises(FileExistsError):
        file.publish()
    assert s3_server.get(KEY) == bytes(10)


def test_a_file_whose_message_did_not_go_out_is_withdrawn(s3_server, storage, caplog):
    file = storage.new_file(NAME)
    file.write(b"x")
    file.publish()
    file.discard()
    assert s3_server.keys() == [KEY]
    with s3_server.failing(lambda asked: (403, "AccessDenied")), caplog.at_level(logging.WARNING, "burler"):
        file.withdraw()
    assert f"{s3_server.url(KEY)}, whose message did not go out, can't be removed:" in caplog.text
    assert "AccessDenied" in caplog.text
    other = storage.new_file(OTHER)
    other.write(b"x")
    other.publish()
    other.withdraw()
    other.withdraw()
    assert s3_server.keys() == [KEY]


@pytest.mark.parametrize(
    ("where", "answer", "says"),
    [
        ("POST", (403, "AccessDenied"), "AccessDenied.*\n  Do the credentials hold, and may they list"),
        ("PUT", (403, "AccessDenied"), "AccessDenied.*\n  Do the credentials hold"),
        ("PUT", (400, "ExpiredToken"), "ExpiredToken.*\n  Do the credentials hold"),
        ("PUT", (404, "NoSuchBucket"), "\n  Is the name of the bucket right"),
    ],
)
def test_a_store_that_fails_on_the_way_ends_the_file(s3_server, storage, where, answer, says):
    file = storage.new_file(NAME)
    wrong = pytest.raises(StorageError, match=rf"^{s3_server.url(KEY)} can't be written: (?s:.*){says}")
    with s3_server.failing(lambda asked: answer if asked.startswith(where) else None), wrong as caught:
        file.write(bytes(BIG))
        file.publish()
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    assert len(str(caught.value).splitlines()) <= 3 and s3_server.secret not in str(caught.value)
    assert s3_server.uploads() == [] and s3_server.keys() == []


def test_a_store_that_does_not_answer_ends_the_file(s3_server, storage):
    file = storage.new_file(NAME)
    file.write(b"rows")
    unknown = pytest.raises(StorageError, match=rf"{s3_server.url(KEY)}: no answer came.*reachable from here")
    with s3_server.failing(lambda asked: "hang up"), clocks.briefly(0.2), unknown:
        file.publish()
    assert s3_server.keys() == []


def test_what_may_be_there_after_all_is_removed(s3_server, storage):
    """No message names it."""
    file = storage.new_file(NAME)
    file.write(b"rows")
    lost = s3_server.failing(lambda asked: "answer is lost" if asked.startswith(("PUT", "HEAD")) else None)
    with lost, clocks.briefly(0.2), pytest.raises(StorageError, match="no answer came"):
        file.publish()
    assert s3_server.keys() == []


# ---- at the start --------------------------------------------------------------------------------------------


def test_a_bucket_that_is_not_there(s3_server):
    with pytest.raises(
        UsageError, match=r"^s3://no-such-bucket/x can't be looked at: .*\n  Is the name of the bucket right"
    ):
        opened("s3://no-such-bucket/x", s3_server.options)


def test_credentials_that_do_not_hold(s3_server):
    wrong = pytest.raises(UsageError, match=r"can't be looked at: InvalidAccessKeyId.*\n  Do the credentials hold")
    with s3_server.failing(lambda asked: (403, "InvalidAccessKeyId")), wrong:
        opened(s3_server.url("x"), s3_server.options)


def test_credentials_that_may_write_and_not_look_will_do(s3_server):
    with s3_server.failing(lambda asked: (403, "AccessDenied") if asked.startswith("GET") else None):
        opened(s3_server.url("x"), s3_server.options)
    assert s3_server.uploads() == []


def test_no_credentials_at_all(s3_server, monkeypatch):
    for name in AWS_NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    options = {name: value for name, value in s3_server.options.items() if name not in ("key", "secret")}
    with pytest.raises(UsageError, match=r"Unable to locate credentials.\n  Do the credentials hold.*storage.options"):
        opened(s3_server.url("x"), options)


def test_an_endpoint_where_nobody_answers(s3_server):
    options = {**s3_server.options, "endpoint_url": "http://127.0.0.1:1"}
    wrong = pytest.raises(StorageError, match=r"Could not connect(?s:.*)Is the store's address right, [^.]*here\?$")
    with clocks.briefly(0.2), wrong:
        opened(s3_server.url("x"), options)


# ---- signed URLs ---------------------------------------------------------------------------------------------


def test_a_signed_url_reads_the_file_without_credentials(s3_server):
    storage = opened(s3_server.url("batches"), s3_server.options, presign_seconds=300)
    file = storage.new_file(NAME)
    file.write(b'{"id":1}\n')
    signed = storage.presign(file.publish(), 300)
    query = parse_qs(urlsplit(signed).query)
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"] and query["X-Amz-Expires"] == ["300"]
    assert s3_server.secret not in signed
    message = {"type": "BATCH", "stream": "s", "manifest": [signed]}
    assert list(read(message, allow=[s3_server.endpoint_url]).rows()) == [{"id": 1}]


def test_signatures_last_seven_days_at_most(s3_server):
    with pytest.raises(ConfigError, match=r"^batch_config.presign_seconds: 604801 is more than"):
        opened(s3_server.url("x"), s3_server.options, presign_seconds=604_801)


def test_nobody_can_sign_without_credentials(s3_server):
    options = {"anon": True, "endpoint_url": s3_server.endpoint_url}
    with pytest.raises(ConfigError, match=r"^batch_config.presign_seconds: no URL is signed without credentials"):
        opened(s3_server.url("x"), options, presign_seconds=60)


def test_options_stay_as_they_were_given(s3_server):
    options = {**s3_server.options, "s3_additional_kwargs": {"Metadata": {"team": "crm"}}}
    before = json.dumps(options)
    file = opened(s3_server.url("batches"), options, presign_seconds=60).new_file(NAME)
    file.write(b"x")
    file.publish()
    assert json.dumps(options) == before
    head = s3_server.client.head_object(Bucket=s3_server.bucket, Key=KEY)
    assert head["Metadata"]["team"] == "crm"
