"""An export of BATCH messages in place of a lake."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path

import pytest

from burler.errors import BatchError, ExportError, MessageError, UsageError
from burler.spark import export

pytestmark = pytest.mark.usefixtures("packages")

TEXT = {"type": ["null", "string"]}
SCHEMA = {"properties": {"id": {"type": "integer"}, "name": TEXT, "price": {"type": "number", "multipleOf": 0.01}}}
ROWS = [{"id": 1, "name": "a", "price": 1.25}, {"id": 2, "name": "é", "price": 0.1}, {"id": 1, "name": "b", "price": 3}]


def schema(stream="items", properties=SCHEMA, keys=("id",)):
    return {"type": "SCHEMA", "stream": stream, "schema": properties, "key_properties": list(keys)}


def batch(*files, form="jsonl", packing=None, **more):
    encoding = {"format": form} | ({"compression": packing} if packing else {})
    urls = [path.as_uri() for path in files]
    return {"type": "BATCH", "stream": "items", "encoding": encoding, "manifest": urls, **more}


def jsonl(path: Path, rows, pack=bytes):
    path.write_bytes(pack(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))
    return path


def parquet(path: Path, rows):
    import pyarrow as pa
    import pyarrow.parquet

    kinds = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.decimal128(38, 2))])
    made = [{**row, "price": Decimal(str(row["price"]))} for row in rows]
    pyarrow.parquet.write_table(pa.Table.from_pylist(made, schema=kinds), path)
    return path


def zstd(data):
    import zstandard

    return zstandard.compress(data)


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"])
def test_files_of_a_list_of_messages_become_a_table(tmp_path, rows_of, form):
    if form == "parquet":
        message = batch(parquet(tmp_path / "a.parquet", ROWS), form="parquet")
    else:
        pack, packing = {"jsonl": (bytes, None), "jsonl.gz": (gzip.compress, "gzip")}.get(form, (zstd, "zstd"))
        message = batch(jsonl(tmp_path / f"a.{form}", ROWS, pack), packing=packing)

    (result,) = export(None, [schema(), message], tmp_path / "out", taps=["shop"])

    assert (result.tap_id, result.stream, result.rows_read, result.rows_written) == ("shop", "items", 3, 2)
    found = rows_of("items", "id", "name", "price", tap="shop")
    assert found == [(1, "b", Decimal("3.00")), (2, "é", Decimal("0.10"))]


def test_a_file_of_messages_with_records_between_and_a_schema_that_changes(tmp_path, rows_of):
    wider = {"properties": {**SCHEMA["properties"], "more": TEXT}}
    lines = [
        schema(),
        batch(jsonl(tmp_path / "a", ROWS[:1]), batch_version := jsonl(tmp_path / "b", ROWS[1:2])),
        {"type": "RECORD", "stream": "items", "record": {"id": 9, "name": "single"}},
        schema(properties=wider),
        batch(jsonl(tmp_path / "c", [{"id": 3, "more": "x"}])),
        {"type": "STATE", "value": {}},
    ]
    assert batch_version.exists()
    file = tmp_path / "shop.messages.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")

    for _ in range(2):  # whole each time
        (result,) = export(None, str(file), tmp_path / "out", mode="append")
        assert (result.rows_read, result.skipped) == (4, False)

    assert rows_of("items", "id", "name", "more", tap="shop") == [
        (1, "a", None),
        (2, "é", None),
        (3, None, "x"),
        (9, "single", None),
    ]
    assert not list((tmp_path / "out").glob("_staging*"))


def test_versions_of_batches_count(tmp_path, rows_of):
    messages = [
        schema(),
        batch(jsonl(tmp_path / "a", ROWS), version=1),
        batch(jsonl(tmp_path / "b", [{"id": 7}]), version=2),
        {"type": "ACTIVATE_VERSION", "stream": "items", "version": 2},
    ]
    export(None, messages, tmp_path / "out")
    assert rows_of("items", "id", "_sdc_version", tap="batches") == [(7, 2)]


def test_values_that_spark_would_round_come_out_exact(tmp_path, rows_of, with_spark, spark):
    kinds = {"n": {"type": "integer"}, "d": {"type": "number", "multipleOf": 1e-12}, "at": {"format": "date-time"}}
    properties = {"properties": {"id": {"type": "integer"}, **kinds, "at": {**kinds["at"], "type": "string"}}}
    file = tmp_path / "a"
    file.write_bytes(b'{"id":1.0,"n":9007199254740993,"d":0.123456789012,"at":"2024-05-01T00:00:00.123456+02:00"}\n')

    export(spark, [schema(properties=properties), batch(file)], tmp_path / "out")

    ((number, decimal, moment),) = rows_of("items", "n", "d", "at", tap="batches")
    assert (number, decimal) == (9007199254740993, Decimal("0.123456789012"))
    assert moment.isoformat() == "2024-04-30T22:00:00.123456+00:00"


def test_what_can_not_be_read_is_told_and_publishes_nothing(tmp_path):
    gone = batch(tmp_path / "gone")
    broken = tmp_path / "broken"
    broken.write_bytes(gzip.compress(b'{"id":1}\n' * 1000)[:-20])
    cases = [
        ([schema(), gone], BatchError, "line 2: stream 'items'.*gone"),
        ([schema(), batch(broken, packing="gzip")], BatchError, "broken"),
        ([schema(), batch(broken, form="avro")], BatchError, "unknown format 'avro'"),
        ([schema(), "{"], MessageError, "line 2"),
        ([schema(), 7], UsageError, "message 2 is int"),
        ([], UsageError, "holds no stream"),
        ([{"type": "STATE", "value": {}}], UsageError, "holds no stream"),
    ]
    for messages, kind, words in cases:
        with pytest.raises(kind, match=words):
            export(None, messages, tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*")), "nothing is left of them"


def test_a_value_that_does_not_fit_names_its_row(tmp_path):
    file = jsonl(tmp_path / "a", [{"id": 1}, {"id": "x"}])
    with pytest.raises(ExportError, match="'id'"):
        export(None, [schema(), batch(file)], tmp_path / "out")


@pytest.mark.parametrize("last", ["record", "batch"])
def test_the_later_of_a_batch_and_a_record_without_times_wins(tmp_path, rows_of, last):
    """Messages of one block were received at one moment, also where reading the files of a BATCH took a while."""
    files = batch(jsonl(tmp_path / "a.jsonl", [{"id": 1, "name": "batch", "price": 1}]))
    record = {"type": "RECORD", "stream": "items", "record": {"id": 1, "name": "record", "price": 1}}
    messages = [files, record] if last == "record" else [record, files]

    export(None, [schema(), *messages], tmp_path / "out", taps=["crm"])

    assert rows_of("items", "name", tap="crm") == [(last,)]
