"""``burler.batch.convert``: files rewritten between a tap and a target (BATCH proposal: storage transforms)."""

from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from piped import SCHEMA, TIME, batch, config, converted, expanded, file, packed, record, rows, state

from burler.errors import BatchError

FORMS = [("jsonl", "none"), ("jsonl", "zstd"), ("csv", "gzip"), ("parquet", "zstd"), ("arrow", "none")]
TYPED = {
    **SCHEMA,
    "schema": {
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": ["null", "string"]},
            "at": {"type": ["null", "string"], "format": "date-time"},
            "price": {"type": ["null", "number"], "multipleOf": 0.01},
            "tags": {"type": ["null", "array"], "items": {"type": "string"}},
        }
    },
}
ROWS = [
    b'{"type":"RECORD","stream":"users","version":5,"time_extracted":"2024-01-02T03:04:05Z","record":' + row + b"}"
    for row in (
        b'{"id":1,"name":"a,\\"b\\"\\n","at":"2024-01-02T03:04:05.123456Z","price":0.10,"tags":["x",""]}',
        b'{"id":2,"name":"","at":null,"price":null,"tags":[]}',
    )
]


def paths(messages: list[dict[str, Any]]) -> list[Path]:
    return [Path(url.removeprefix("file://")) for message in messages for url in message["manifest"]]


@pytest.mark.parametrize("came", FORMS)
@pytest.mark.parametrize("goes", FORMS[1:])
def test_rows_are_the_same_whatever_the_files(tmp_path: Path, came: tuple[str, str], goes: tuple[str, str]) -> None:
    first = packed(config(tmp_path / "a", *came), TYPED, *ROWS, state(2))
    second = converted(config(tmp_path / "b", *goes), first.raw.rstrip(b"\n"))
    assert second.error is None, second.error
    (message,) = second.of("BATCH")
    assert (message["format"]["name"], message["version"], message["time_extracted"]) == (goes[0], 5, TIME)
    assert (message["size"], second.done.records) == (2, 2)
    assert [m["type"] for m in second.messages] == ["SCHEMA", "BATCH", "STATE"]
    assert paths([message])[0].is_relative_to(tmp_path / "b")
    assert all(path.exists() for path in paths(first.of("BATCH"))), "the old files are left"
    found = [m["record"] for m in expanded(second.raw.rstrip(b"\n")).of("RECORD")]
    assert found == [m["record"] for m in expanded(first.raw.rstrip(b"\n")).of("RECORD")]
    assert found[0]["price"] == Decimal("0.10")
    assert found[0]["name"] == 'a,"b"\n'
    assert found[1] == {"id": 2, "name": "", "at": None, "price": None, "tags": []}


def test_json_lines_keep_their_bytes(tmp_path: Path) -> None:
    content = b'{ "id": 1.0e2, "t":"\\ud83d" }\n{"id":2,"x":[1.10]}\n'
    url = file(tmp_path / "a.jsonl", content)
    out = converted(config(tmp_path / "b", compression="gzip"), SCHEMA, batch(url))
    (path,) = paths(out.of("BATCH"))
    assert gzip.decompress(path.read_bytes()) == content
    assert out.of("BATCH")[0]["encoding"] == {"format": "jsonl", "compression": "gzip"}


def test_everything_else_passes_byte_for_byte(tmp_path: Path) -> None:
    odd = [b'{"stream": "users", "type": "RECORD","record":{"id":1.50}}', b"batch?", b'{"type":"LOG","x":"batch"}']
    url = file(tmp_path / "a.jsonl", rows(1, 2, 3))
    out = converted(config(tmp_path / "b", batch_size=2), SCHEMA, odd[0], batch(url), odd[2], state(1))
    found = out.raw.split(b"\n")
    assert found[1] == odd[0]
    assert found[4] == odd[2]
    assert [message["size"] for message in out.of("BATCH")] == [2, 1]
    assert out.messages[-1] == state(1)


def test_a_manifest_of_several_files_and_none(tmp_path: Path) -> None:
    urls = [file(tmp_path / f"{n}.jsonl", content) for n, content in enumerate((rows(1, 2), b"", rows(3)))]
    out = converted(config(tmp_path / "b"), SCHEMA, batch(*urls), batch(), state(1))
    assert [message["size"] for message in out.of("BATCH")] == [3]
    assert out.done.batches == 2
    assert out.messages[-1] == state(1)


def test_versions_and_activations(tmp_path: Path) -> None:
    """SDK targets would drop rows that an ACTIVATE_VERSION follows: it passes only where the config says so."""
    urls = [file(tmp_path / f"{n}.jsonl", rows(n)) for n in range(2)]
    activate = {"type": "ACTIVATE_VERSION", "stream": "users", "version": 2}
    messages = [SCHEMA, batch(urls[0], version=1), batch(urls[1], version=2), activate, state(1)]
    out = converted(config(tmp_path / "b", activate_version=True), *messages)
    assert [message["type"] for message in out.messages] == ["SCHEMA", "BATCH", "BATCH", "ACTIVATE_VERSION", "STATE"]
    assert [message["version"] for message in out.of("BATCH")] == [1, 2]
    out = converted(config(tmp_path / "b"), *messages)
    assert [message["type"] for message in out.messages] == ["SCHEMA", "BATCH", "BATCH", "STATE"]
    rest = [SCHEMA, record(1, version=2), activate]
    assert converted(config(tmp_path / "b"), *rest).messages == rest, "nothing is kept back of a stream of RECORDs"


def test_a_changed_schema(tmp_path: Path) -> None:
    other = {**SCHEMA, "schema": {"properties": {"id": {"type": "integer"}, "more": {"type": "string"}}}}
    url = file(tmp_path / "a.jsonl", rows(1))
    more = file(tmp_path / "b.jsonl", b'{"id":2,"more":"x"}\n')
    out = converted(config(tmp_path / "out", "csv"), SCHEMA, batch(url), other, batch(more))
    first, second = (path.read_text().splitlines()[0] for path in paths(out.of("BATCH")))
    assert (first, second) == ('"id","name"', '"id","more"') or (first, second) == ("id,name", "id,more")


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_nothing_follows_a_batch_that_cannot_be_read(tmp_path: Path, form: str) -> None:
    good = file(tmp_path / "a.jsonl", rows(1))
    broken = file(tmp_path / "b.jsonl.gz", gzip.compress(rows(*range(50_000)))[:-2000])
    bad = batch(broken, compression={"name": "gzip"})
    out = converted(config(tmp_path / "out", form), SCHEMA, batch(good), state(1), bad, state(2))
    assert isinstance(out.error, BatchError), out.error
    assert str(out.error).startswith("line 4: stream 'users': batch file ")
    assert out.of("STATE") == [state(1)]
    assert out.of("BATCH")[0]["size"] == 1
    named = paths(out.of("BATCH"))
    assert sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file()) == sorted(named)


def test_a_value_that_the_new_format_cannot_hold(tmp_path: Path) -> None:
    url = file(tmp_path / "a.jsonl", b'{"id":1}\n{"id":"x"}\n')
    out = converted(config(tmp_path / "out", "parquet", "zstd"), SCHEMA, batch(url), state(1))
    assert isinstance(out.error, BatchError), out.error
    assert "line 2" in str(out.error)
    assert "'id'" in str(out.error)
    assert out.messages == [SCHEMA]
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_what_the_new_format_has_no_place_for_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = file(tmp_path / "a.jsonl", b'{"id":1,"more":5}\n')
    out = converted(config(tmp_path / "out", "parquet", "zstd"), SCHEMA, batch(url), state(1))
    assert out.messages[-1] == state(1)
    assert "stream 'users': field 'more' is not in the schema and has no column: left out of 1 row" in caplog.text


def test_over_a_store(tmp_path: Path, s3_server: Any) -> None:
    """Rows into S3, from there into another format, and out of that by worker processes."""
    store = {"root": s3_server.url("batches"), "options": s3_server.options}
    first = packed(
        config(tmp_path, compression="gzip", batch_size=3, storage=store), SCHEMA, *map(record, range(5)), state(4)
    )
    second = converted(
        config(tmp_path, "parquet", "zstd", storage={**store, "prefix": "tables/"}),
        first.raw.rstrip(b"\n"),
        options=s3_server.options,
    )
    assert second.error is None, second.error
    assert all("/batches/tables/" in m["manifest"][0] for m in second.of("BATCH"))
    out = expanded(second.raw.rstrip(b"\n"), options=s3_server.options, processes=2)
    assert out.error is None, out.error
    assert out.ids == [0, 1, 2, 3, 4]
    assert out.messages[-1] == state(4)
    s3_server.put("batches/" + second.of("BATCH")[1]["manifest"][0].rpartition("/batches/")[2], b"PAR1 and no more")
    broken = expanded(second.raw.rstrip(b"\n"), options=s3_server.options)
    assert isinstance(broken.error, BatchError)
    assert "bytes where the message says" in str(broken.error)
    assert broken.ids == [0, 1, 2]
