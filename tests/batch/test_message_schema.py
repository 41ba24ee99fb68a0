"""The JSON Schema of BATCH takes what burler, the proposal and the Singer SDK write, and refuses what is wrong."""

from __future__ import annotations

import io
import json

import jsonschema
import pytest

import burler
from burler.batch import convert, message_schema, pack, read
from burler.singer.messages import parse_line
from burler.testing import canary, run_tap
from support.internals import batch_config

FIELDS = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string"}}}

# The example of the proposal, with what a person would mend: the comments are no JSON, and a comma was missing.
PROPOSAL = """
{
  "type": "BATCH",
  "stream": "stream_name",
  "time_extracted": "2017-11-20T16:45:33.000Z",
  "size": 100000,
  "format": {"name": "csv", "options": {"delimiter": "\\t", "quote_char": "\\""}},
  "compression": {"name": null, "options": {}, "enabled": false},
  "manifest": ["s3://path/to/file001.csv", "s3://path/to/file002.csv", "s3://path/to/file003.csv"]
}
"""
LEAST = {"type": "BATCH", "stream": "users", "manifest": ["file:///data/users.jsonl"]}
SDK = {
    "type": "BATCH",
    "stream": "users",
    "encoding": {"format": "jsonl", "compression": "gzip"},
    "manifest": ["file:///data/sync-batches/tap-x--users-5f1c-1.json.gz"],
}
BOTH = {
    **LEAST,
    "time_extracted": "2024-05-01T00:00:00.000000Z",
    "size": 2,
    "format": {"name": "jsonl", "options": {}},
    "compression": {"name": "gzip", "options": {}, "enabled": True},
    "encoding": {"format": "jsonl", "compression": "gzip"},
    "version": 1700000000000,
    "file_stats": [{"records": 2, "bytes": 99}],
}


def valid(message, dialect=None):
    """Whether a message fits, as one of a dialect where one is named."""
    schema = message_schema()
    kinds = [schema] if dialect is None else [schema, schema["definitions"][dialect]]
    return all(jsonschema.Draft4Validator(kind).is_valid(message) for kind in kinds)


def test_the_schema_is_a_schema_and_says_what_each_key_means():
    schema = message_schema()
    jsonschema.Draft4Validator.check_schema(schema)
    assert all(node["description"] for node in schema["properties"].values())
    assert set(schema["definitions"]) == {"both", "sip", "meltano"}


def test_the_example_of_the_proposal_fits_and_is_read():
    message = json.loads(PROPOSAL)
    assert valid(message)
    assert valid(message, "sip") and not valid(message, "meltano") and not valid(message, "both")
    batch = read(message).batch
    assert (batch.format, batch.compression, batch.format_options["delimiter"]) == ("csv", None, "\t")


@pytest.mark.parametrize(
    "message",
    [
        SDK,
        {**SDK, "version": 1700000000000},
        {**SDK, "version": None},
        {**SDK, "encoding": {"format": "jsonl", "compression": None}},
        {**SDK, "encoding": {"format": "parquet"}},
        {**SDK, "manifest": ["s3://bucket/a.json.gz", "https://bucket.example/b.json.gz"]},
    ],
)
def test_messages_as_taps_on_the_sdk_write_them_fit(message):
    assert valid(message) and valid(message, "meltano")
    assert read(message).batch.stream == "users"


@pytest.mark.parametrize(
    "url",
    [
        "file:///C:/data/a.jsonl",
        "s3://bucket/folder/a%20b.jsonl",
        "http://127.0.0.1:9000/bucket/a.jsonl",
        "http://[::1]:9000/a.jsonl",
        "https://b.s3.amazonaws.com/a.jsonl?X-Amz-Credential=k%2F20240501&X-Amz-Signature=00ff",
        "abfs://container@account.dfs.core.windows.net/a.jsonl",
        "gs://bucket/mail@example.org/12:30.jsonl",
        "memory://a.jsonl",
        "sftp://user@host/a.jsonl",
        "hdfs://node:8020",
    ],
)
def test_urls_of_all_kinds_of_stores_fit(url):
    assert valid({**LEAST, "manifest": [url]})


def test_urls_with_credentials_do_not_fit():
    user, key = canary("user"), canary("key")
    for url in (
        f"s3://{user}:{key}@bucket/a.jsonl",
        f"s3://{user}:a/{key}@bucket/a.jsonl",
        f"https://{key}@host/a.jsonl",
        f"HTTPS://{user}:{key}@host:443/a.jsonl",
        f"ftp://{user}:123@host/a.jsonl",
    ):
        fits = valid({**LEAST, "manifest": ["s3://bucket/good.jsonl", url]})
        assert not fits, url.replace(user, "USER").replace(key, "KEY")


@pytest.mark.parametrize(
    "change",
    [
        {"type": "RECORD"},
        {"stream": ""},
        {"stream": None},
        {"record": {"id": 1}},
        {"schema": FIELDS},
        {"value": {}},
        {"manifest": []},
        {"manifest": "s3://bucket/a.jsonl"},
        {"manifest": {"0": "s3://bucket/a.jsonl"}},
        {"manifest": [None]},
        {"manifest": ["/data/a.jsonl"]},
        {"manifest": ["C:\\data\\a.jsonl"]},
        {"size": -1},
        {"size": "2"},
        {"size": 1.5},
        {"time_extracted": 1714521600},
        {"time_extracted": "2024-05-01"},
        {"time_extracted": "2024-05-01T00:00:00"},
        {"format": "jsonl"},
        {"format": {"options": {}}},
        {"format": {"name": "csv", "options": {"delimiter": None}}},
        {"format": {"name": "csv", "options": {"header": "yes"}}},
        {"compression": "gzip"},
        {"compression": {"name": None, "enabled": True}},
        {"compression": {"enabled": True}},
        {"encoding": {"format": "jsonl", "compression": "gzip", "options": {}}},
        {"encoding": {"compression": "gzip"}},
        {"encoding": "jsonl"},
        {"version": "1"},
        {"file_stats": []},
        {"file_stats": {"records": 2, "bytes": 99}},
        {"file_stats": [{"records": 2}]},
        {"file_stats": [{"records": 0, "bytes": 0}]},
    ],
    ids=str,
)
def test_a_wrong_message_does_not_fit(change):
    assert valid(BOTH) and valid(BOTH, "both")
    assert not valid({**BOTH, **change})


@pytest.mark.parametrize("key", ["type", "stream", "manifest"])
def test_a_message_that_lacks_a_key_does_not_fit(key):
    assert not valid({name: value for name, value in LEAST.items() if name != key})


def test_keys_that_nobody_knows_are_passed_over_but_burler_writes_none():
    message = {**BOTH, "x-checksum": "00ff"}
    assert valid(message)
    assert not valid(message, "both")


def emitted(config):
    """The BATCH messages of a run, as they would stand on the wire."""
    tap = burler.tap("tap-shop")
    tap.sync("orders", key_properties="id", schema=FIELDS)(lambda: [{"id": number} for number in range(5)])
    out = run_tap(tap, {"batch_config": config})
    assert not out.result.errors
    batches = [json.loads(json.dumps(message)) for message in out.messages if message["type"] == "BATCH"]
    assert batches
    return batches


@pytest.mark.parametrize("dialect", ["both", "sip", "meltano"])
@pytest.mark.parametrize(
    ("form", "compression"),
    [("jsonl", "none"), ("jsonl", "gzip"), ("csv", "gzip"), ("parquet", "zstd"), ("arrow", "lz4")],
)
def test_what_a_run_writes_fits_in_each_dialect(tmp_path, dialect, form, compression):
    config = {
        "encoding": {"format": form, "compression": compression},
        "storage": {"root": str(tmp_path)},
        "dialect": dialect,
        "batch_size": 2,
    }
    batches = emitted(config)
    assert len(batches) == 3
    for message in batches:
        jsonschema.Draft4Validator(message_schema()).validate(message)
        jsonschema.Draft4Validator(message_schema()["definitions"][dialect]).validate(message)
        assert parse_line(json.dumps(message)) == message
        others = {"both", "sip", "meltano"} - {dialect}
        assert not any(valid(message, other) for other in others)


@pytest.mark.parametrize("dialect", ["both", "sip", "meltano"])
def test_what_pack_and_convert_write_fits_too(tmp_path, dialect):
    rows = [{"type": "RECORD", "stream": "users", "record": {"id": number, "at": "x"}} for number in range(3)]
    lines = [{"type": "SCHEMA", "stream": "users", "schema": FIELDS, "key_properties": ["id"]}, *rows]
    source = io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    packed, converted = io.BytesIO(), io.BytesIO()
    storage = {"storage": {"root": str(tmp_path)}, "dialect": dialect}
    pack(source, packed.write, batch_config.read_batch_config({"encoding": {"compression": "gzip"}, **storage}))
    parquet = batch_config.read_batch_config({"encoding": {"format": "parquet"}, **storage})
    convert(io.BytesIO(packed.getvalue()), converted.write, parquet)
    for written in (packed, converted):
        messages = [json.loads(line) for line in written.getvalue().splitlines()]
        assert [message["type"] for message in messages] == ["SCHEMA", "BATCH"]
        assert valid(messages[1], dialect)


@pytest.mark.parametrize("dialect", ["both", "sip", "meltano"])
def test_messages_of_files_that_the_source_has_made_fit_too(tmp_path, dialect):
    path = tmp_path / "orders 1 ä.csv"
    path.write_text('id,at\n1,"x"\n', encoding="utf-8")
    tap = burler.tap("tap-shop")
    tap.sync("orders", key_properties="id", schema=FIELDS)(lambda: burler.batch_files(path, size=1))
    out = run_tap(tap, {"batch_config": {"dialect": dialect}})
    (message,) = [message for message in out.messages if message["type"] == "BATCH"]
    assert valid(message, dialect), message
