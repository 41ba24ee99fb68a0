"""Whole runs whose batch files go to S3: what the messages name is there, and after an error nothing is."""

from __future__ import annotations

import json
import logging

import pytest

import burler
from burler import batch
from burler.errors import ConfigError, StorageError, UsageError
from burler.testing import run_tap


def tap(count=10, name="contacts"):
    made = burler.tap("tap-crm")
    made.sync(name, key_properties="id", replication_key="id")(lambda: ({"id": i} for i in range(count)))
    made.schema(name, {"type": "object", "properties": {"id": {"type": "integer"}}})
    return made


def config(server, **more):
    storage = {"root": server.url("batches"), "prefix": "crm-", "options": server.options}
    return {"batch_config": {"storage": storage, "batch_size": 4, **more}}


def batches(run):
    return [message for message in run.messages if message["type"] == "BATCH"]


@pytest.mark.parametrize("packing", ["none", "gzip", "zstd"])
def test_a_run_puts_its_files_into_the_bucket(s3_server, packing):
    run = run_tap(tap(), config(s3_server, encoding={"format": "jsonl", "compression": packing}))
    assert run.result.errors == {}
    urls = [url for message in batches(run) for url in message["manifest"]]
    found = s3_server.keys()
    found = s3_server.keys()
    assert sorted(urls) == [s3_server.url(key) for key in found] and len(urls) == 3
    assert all(url.startswith(s3_server.url("batches/crm-tap-crm--contacts-")) for url in urls)
    rows = [row for message in batches(run) for row in batch.read(message, options=s3_server.options).rows()]
    assert rows == [{"id": i} for i in range(10)]
    assert run.messages[-1]["type"] == "STATE" and s3_server.uploads() == []


def test_no_credential_is_in_messages_or_logs(s3_server, caplog):
    """The session-wide search for secrets looks at them, too; this one shows that there was something to find."""
    with caplog.at_level(logging.DEBUG):
        run = run_tap(tap(), config(s3_server))
    said = json.dumps(run.messages) + caplog.text
    assert s3_server.url("batches") in said
    assert s3_server.secret not in said and s3_server.key not in json.dumps(run.messages)
    caplog.clear()


def test_signed_urls_can_be_read_by_anybody(s3_server):
    run = run_tap(tap(), config(s3_server, dialect="sip", presign_seconds=600))
    urls = [url for message in batches(run) for url in message["manifest"]]
    assert all(url.startswith(f"{s3_server.endpoint_url}/") and "X-Amz-Signature=" in url for url in urls)
    rows = [row for message in batches(run) for row in batch.read(message, allow=[s3_server.endpoint_url]).rows()]
    assert rows == [{"id": i} for i in range(10)]


def test_a_store_that_fails_gets_no_message_out(s3_server):
    """The second file can't be written: the first one is named, nothing behind it is, and no STATE covers it."""

    def second_fails(asked):
        return (403, "AccessDenied") if asked.startswith("PUT") and "-00002." in asked else None

    with s3_server.failing(second_fails):
        run = None
        try:
            run = run_tap(tap(), config(s3_server))
        except StorageError as error:
            failed = error
        else:
            (failed,) = run.result.errors.values()
    assert "-00002.jsonl can't be written: AccessDenied" in str(failed)
    found = s3_server.keys()
    assert [key.rpartition("-")[2] for key in found] == ["00001.jsonl"] and s3_server.uploads() == []
    if run is not None:
        assert len(batches(run)) == 1
        assert all(state.get("bookmarks", {}).get("contacts", {}).get("id", 0) <= 3 for state in run.states)


def test_what_is_wrong_with_the_place_shows_before_the_first_row(s3_server):
    def never():
        raise AssertionError("the source was asked")

    made = burler.tap("tap-crm")
    made.sync("contacts", key_properties="id")(never)
    made.schema("contacts", {"type": "object", "properties": {"id": {"type": "integer"}}})
    given = config(s3_server)
    given["batch_config"]["storage"]["root"] = "s3://no-such-bucket/x"
    with pytest.raises(UsageError, match=r"s3://no-such-bucket/x can't be looked at"):
        run_tap(made, given)
    given["batch_config"]["storage"]["root"] = f"s3://key:{s3_server.secret}@{s3_server.bucket}/x"
    with pytest.raises(ConfigError, match="a user and password") as caught:
        run_tap(made, given)
    assert s3_server.secret not in str(caught.value)
