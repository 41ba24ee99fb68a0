"""``burler.batch.read``: the rows of a BATCH message as pages, dicts or Arrow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from piped import SCHEMA, batch, config, file, packed, record, rows

from burler.batch import read
from burler.errors import BatchError
from burler.singer.messages import Batch, Schema
from support.servers import Asked, serving

PLAIN = SCHEMA["schema"]


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a server of ``tmp_path``, which may be read; it asks for nothing behind ``?``."""

    def answer(asked: Asked) -> Any:
        path = tmp_path / asked.path[1:]
        return path.read_bytes() if path.is_file() else 404

    with serving(answer) as server:
        monkeypatch.setenv("BURLER_ALLOW", server.url)
        yield server.url


def test_a_dict_a_line_and_a_message(tmp_path: Path) -> None:
    url = file(tmp_path / "a", rows(1, 2))
    wire = batch(url)
    expected = [{"id": 1, "name": "n1"}, {"id": 2, "name": "n2"}]
    for message in (wire, json.dumps(wire), json.dumps(wire).encode() + b"\n", Batch("users", (url,))):
        reading = read(message)
        assert list(reading.rows()) == expected
        assert list(reading.rows()) == expected, "it can be read again"
        assert [(bytes(page.lines), page.count) for page in reading.pages()] == [(rows(1, 2), 2)]
        assert reading.batch.stream == "users"


def test_rows_have_exact_numbers(tmp_path: Path) -> None:
    url = file(tmp_path / "a", b'{"id":12345678901234567890123,"n":1.50,"e":1e400,"t":"x"}\n{"n":0.1,"t":"\\ud83d"}\n')
    first, second = read(batch(url)).rows()
    assert (first["id"], str(first["n"]), first["e"]) == (12345678901234567890123, "1.50", Decimal("1e400"))
    assert second == {"n": Decimal("0.1"), "t": "\ud83d"}


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "arrow"])
def test_arrow_has_the_columns_of_the_schema(tmp_path: Path, form: str) -> None:
    schema = {
        **PLAIN["properties"],
        "price": {"type": "number", "multipleOf": 0.01},
        "day": {"type": "string", "format": "date"},
    }
    message = {**SCHEMA, "schema": {"properties": schema}}
    row = b'{"type":"RECORD","stream":"users","record":{"id":1,"price":1.5,"day":"2024-02-29"}}'
    out = packed(config(tmp_path / "out", form), message, row, record(2))
    (wire,) = out.of("BATCH")
    for reading in (read(wire, message["schema"]), read(wire, Schema("users", message["schema"]))):
        table = pa.Table.from_batches(reading.arrow())
        assert table.schema == pa.schema(
            [("id", pa.int64()), ("name", pa.string()), ("price", pa.decimal128(38, 2)), ("day", pa.date32())]
        )
        assert table.column("price").to_pylist() == [Decimal("1.50"), None]
        assert table.column("name").to_pylist() == [None, "n2"]
    if form == "jsonl":
        assert sum(part.num_rows for part in read(wire).arrow(message["schema"])) == 2
        with pytest.raises(BatchError, match=r"columns need the stream's schema"):
            list(read(wire).arrow())


def test_a_value_that_a_column_cannot_hold_names_message_and_file(tmp_path: Path) -> None:
    url = file(tmp_path / "a.jsonl", b'{"id":1}\n{"id":"x"}\n')
    with pytest.raises(BatchError, match=r"^line 5: stream 'users': batch file 'file://.*a.jsonl': row 2: field 'id'"):
        list(read(batch(url), PLAIN, line=5).arrow())


def test_a_file_of_other_columns_than_the_schema(tmp_path: Path) -> None:
    message = batch(f"file://{tmp_path}/a.parquet", format={"name": "parquet"})
    big = pa.array([2**63], pa.uint64())
    for column in (pa.array(["1", "one"]), pa.array([1.5]), pa.array([[1]]), big):
        table = pa.table({"id": column})
        pq.write_table(table, tmp_path / "a.parquet")
        for rows_of in (read(message, PLAIN).rows, read(message, PLAIN).arrow):
            with pytest.raises(BatchError, match=r"batch file 'file://.*a\.parquet': row \d: field 'id': "):
                list(rows_of())
    pq.write_table(pa.table({"other": [1]}), tmp_path / "a.parquet")
    for rows_of in (read(message, PLAIN).rows, read(message, PLAIN).arrow):
        with pytest.raises(
            BatchError, match=r"none of its columns is a field of the stream \('id', 'name'\)\.\n  Is it"
        ):
            list(rows_of())


def test_what_the_schema_holds_goes_on_as_exact_as_it_stands_in_a_foreign_file(tmp_path: Path) -> None:
    """Columns that the schema does not know are left out: a tap may have put deselected fields there."""
    number = Decimal("12345678901234567890.123")
    table = pa.table({"n": pa.array([number]), "id": pa.array([7], pa.int8()), "secret": ["x"]})
    pq.write_table(table, tmp_path / "a.parquet")
    message = batch(f"file://{tmp_path}/a.parquet", format={"name": "parquet"})
    warnings: list[str] = []
    schema = {"properties": {"id": {"type": "integer"}, "n": {"type": "number"}, "more": {"type": "string"}}}
    (row,) = read(message, schema, warn=warnings.append).rows()
    assert row == {"id": 7, "n": number, "more": None}
    assert warnings == [
        "stream 'users': columns of the schema that are not there are null in every row: 'more'",
        "stream 'users': columns that the schema does not know are left out: 'secret'",
    ]


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "arrow"])
def test_files_of_a_web_server_with_a_query(tmp_path: Path, web: str, form: str) -> None:
    """As pre-signed URLs are: the query goes to the server, and into no name."""
    (wire,) = packed(config(tmp_path / "out", form), SCHEMA, record(1), record(2)).of("BATCH")
    path = Path(wire["manifest"][0].removeprefix("file://"))
    wire["manifest"] = [f"{web}/out/{path.name}?X-Amz-Expires=60&sig=x%2By"]
    assert [row["id"] for row in read(wire, PLAIN).rows()] == [1, 2]
    wire["file_stats"][0]["bytes"] += 1
    with pytest.raises(BatchError, match=r"bytes where the message says") as found:
        list(read(wire, PLAIN).rows())
    assert "sig=" not in str(found.value)


def test_a_store_of_fsspec() -> None:
    import fsspec

    with fsspec.open("memory://reading/a.csv", "wb") as out:
        out.write(b"id;name\n1;x\n")
    message = batch("memory://reading/a.csv", format={"name": "csv", "options": {"delimiter": ";"}})
    assert list(read(message, PLAIN, options={}).rows()) == [{"id": 1, "name": "x"}]


def test_an_arrow_file_without_a_schema(tmp_path: Path) -> None:
    """What is in it says itself what it is."""
    table = pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us", "UTC")), "b": [b"\x00\xff"]})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    (row,) = read(batch(f"file://{tmp_path}/a.arrow", format={"name": "arrow"})).rows()
    assert (row["id"], row["b"]) == (1, "AP8=")
    assert row["at"].startswith("1970-01-01T00:00:00")


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        ({"type": "RECORD", "stream": "users"}, "a BATCH message was expected, not RECORD"),
        ({"type": "BATCH", "stream": "users"}, "manifest"),
        ({"type": "BATCH", "manifest": []}, "stream"),
        (b"hello", "not a line of JSON"),
        (b"[]", "not a Singer message"),
    ],
)
def test_what_is_no_batch_is_told_at_once(message: Any, fact: str) -> None:
    with pytest.raises(BatchError, match=fact):
        read(message)
    with pytest.raises(BatchError, match=r"^line 7: "):
        read(message, line=7)


def test_one_file_of_several(tmp_path: Path) -> None:
    urls = [file(tmp_path / f"{n}", rows(n, n + 1)) for n in range(3)]
    reading = read(batch(*urls))
    assert [page.lines for page in reading.file_pages(1)] == [rows(1, 2)]
    assert [row["id"] for row in reading.rows()] == [0, 1, 1, 2, 2, 3]


def test_options_are_in_no_error() -> None:
    from burler.testing import canary

    secret = canary("endpoint")
    message = batch("s3://no-such-bucket-of-burler/a.jsonl")
    options = {"key": "x", "secret": secret, "endpoint_url": "http://127.0.0.1:1"}
    with pytest.raises(BatchError) as found:
        list(read(message, options=options).pages())
    assert "s3://no-such-bucket-of-burler/a.jsonl" in str(found.value)
    assert secret not in str(found.value)
