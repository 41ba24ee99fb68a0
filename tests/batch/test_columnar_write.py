"""Parquet and Arrow files as other programs see them: types, values, groups, compression; and what is refused."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import piped
import pytest

from burler.errors import BatchError, BurlerError, ConfigError

pa = pytest.importorskip("pyarrow", reason="extra 'batch'")
pq = pytest.importorskip("pyarrow.parquet", reason="extra 'batch'")

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": ["null", "number"], "multipleOf": 0.01},
        "at": {"type": ["null", "string"], "format": "date-time"},
        "day": {"type": ["null", "string"], "format": "date"},
        "photo": {"type": ["null", "string"], "contentEncoding": "base64"},
        "tags": {"type": ["null", "array"], "items": {"type": "string"}},
        "rates": {"type": ["null", "object"], "additionalProperties": {"type": "number"}},
        "person": {"type": ["null", "object"], "properties": {"näme": {"type": "string"}, "age": {"type": "integer"}}},
        "extra": {"type": ["null", "object"]},
    },
}
FULL = {
    "id": 1,
    "price": 1.25,
    "at": "2024-01-02T03:04:05.678901Z",
    "day": "2024-01-02",
    "photo": "AAEC",
    "tags": ["a", "ä"],
    "rates": {"x": 0.5},
    "person": {"näme": "Zoë", "age": 30},
    "extra": {"any": [1, {"thing": None}]},
}


FORMATS = pytest.mark.parametrize("form", ["parquet", "arrow"])


def written(form: str, *rows: dict[str, Any], schema: Any = SCHEMA, compression: str = "zstd", **more: Any) -> bytes:
    """The file of these rows."""
    return piped.written(form, schema, *map(json.dumps, rows), compression=compression, **more)


def table(form: str, data: bytes) -> Any:
    if form == "parquet":
        return pq.ParquetFile(io.BytesIO(data)).read()
    return pa.ipc.open_file(data).read_all()


@FORMATS
def test_the_columns_have_the_types_and_the_exact_values_of_the_schema(form):
    made = table(form, written(form, FULL, {"id": 2}))

    assert str(made.schema.field("price").type) == "decimal128(38, 2)"
    assert str(made.schema.field("at").type) == "timestamp[us, tz=UTC]"
    assert str(made.schema.field("day").type) == "date32[day]"
    assert str(made.schema.field("extra").type) == "string"
    assert made.to_pylist() == [
        {
            "id": 1,
            "price": Decimal("1.25"),
            "at": dt.datetime(2024, 1, 2, 3, 4, 5, 678901, dt.UTC),
            "day": dt.date(2024, 1, 2),
            "photo": b"\x00\x01\x02",
            "tags": ["a", "ä"],
            "rates": [("x", 0.5)],
            "person": {"näme": "Zoë", "age": 30},
            "extra": '{"any": [1, {"thing": null}]}',
        },
        {name: 2 if name == "id" else None for name in FULL},
    ]


def test_duckdb_reads_the_same(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "users.parquet"
    path.write_bytes(written("parquet", FULL, {"id": 2**62}))

    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT id, price, epoch_us(\"at\"), day, photo, tags, rates['x'], person.age, extra FROM read_parquet(?)",
            [str(path)],
        ).fetchall()

    assert [len(rows), rows[1][0]] == [2, 2**62]
    assert rows[0][:5] == (1, Decimal("1.25"), 1704164645678901, dt.date(2024, 1, 2), b"\x00\x01\x02")
    assert rows[0][5] == ["a", "ä"]
    assert rows[0][7:] == (30, '{"any": [1, {"thing": null}]}')


CODECS = [("parquet", codec) for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli")]
CODECS += [("arrow", codec) for codec in ("none", "zstd", "lz4")]


def test_each_compression_is_the_one_in_the_file():
    many = [{**FULL, "id": i} for i in range(500)]
    for form, codec in CODECS:
        data = written(form, *many, compression=codec)
        assert table(form, data).column("id").to_pylist() == list(range(500))
        if form == "parquet":
            said = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).compression
            assert said.lower() == {"none": "uncompressed"}.get(codec, codec)
        else:
            assert (len(data) > len(json.dumps(many)) / 3) == (codec == "none")


def test_a_level_makes_files_smaller():
    rows = [{"id": i, "extra": {"k": [i * 7919 % 10007, "some text", i % 13]}} for i in range(3000)]

    low, high = (
        written("parquet", *rows, compression="gzip", compression_options={"level": level}) for level in (1, 9)
    )

    assert len(high) < len(low)


@pytest.mark.parametrize(
    ("form", "codec", "level", "words"),
    [
        ("parquet", "gzip", 99, "levels of 'gzip' go from 1 to 9"),
        ("parquet", "snappy", 3, "'snappy' has no levels"),
        ("arrow", "lz4", 99, "levels of 'lz4' go from"),
    ],
)
def test_a_level_that_can_not_be_is_refused(form, codec, level, words):
    with pytest.raises(ConfigError, match=words):
        written(form, {"id": 1}, compression=codec, compression_options={"level": level})


@FORMATS
def test_rows_are_written_in_groups(form):
    """So that readers, too, need no more memory than for a group."""
    schema = {"properties": {"id": {"type": "integer"}, "tag": {"type": "string"}}}
    data = written(form, *({"id": i, "tag": "x" * 10_000} for i in range(1500)), schema=schema)
    if form == "parquet":
        made = pq.ParquetFile(io.BytesIO(data)).metadata
        sizes = [made.row_group(i).num_rows for i in range(made.num_row_groups)]
    else:
        file = pa.ipc.open_file(data)
        sizes = [file.get_batch(i).num_rows for i in range(file.num_record_batches)]
    assert table(form, data).column("id").to_pylist() == list(range(1500))
    assert max(sizes) <= {"parquet": 900, "arrow": 300}[form]


def test_only_columns_of_repeating_values_get_a_dictionary():
    schema = {
        "properties": {
            "same": {"type": "string"},
            "unlike": {"type": "string"},
            "in": {"type": "object", "properties": {"same": {"type": "string"}, "unlike": {"type": "integer"}}},
        }
    }
    rows = [{"same": "x", "unlike": f"u{i}", "in": {"same": f"{i % 3}", "unlike": i}} for i in range(1000)]

    group = pq.ParquetFile(io.BytesIO(written("parquet", *rows, schema=schema))).metadata.row_group(0)

    found = {column.path_in_schema: column.has_dictionary_page for column in map(group.column, range(4))}
    assert found == {"same": True, "unlike": False, "in.same": True, "in.unlike": False}


@pytest.mark.usefixtures("values_in_logs")
@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"id": 2**63}, f"field 'id': {2**63} can't be held exactly; the schema wants an integer of 64 bits"),
        ({"price": 1.234}, "field 'price': 1.234 can't be held exactly; the schema wants decimal"),
        ({"person": {"age": "old"}}, "field 'person.age': \"old\" can't be held"),
        ({"at": "yesterday"}, "field 'at': \"yesterday\" can't be held"),
        ({"tags": "a"}, "field 'tags': \"a\" can't be held"),
        ({"tags": ["\ud83d"]}, "field 'tags.[]': half of a surrogate pair"),
        ({"extra": {"a": {"\udc00": 1}}}, "field 'extra.a.'\\udc00'': half of a surrogate pair"),
        ({"rates": {"x": "y" * 500}}, "field 'rates.{}': \"" + "y" * 79 + " can't be held"),
    ],
)
def test_a_value_that_its_column_can_not_hold_is_an_error_with_a_cure(row, words):
    with pytest.raises(BatchError) as caught:
        written("parquet", FULL, row)

    assert words in str(caught.value)
    assert "stream 'users': " in str(caught.value)
    assert "batch_config.encoding.format 'jsonl' holds any row" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


def test_what_is_lost_is_told_once_per_field(caplog):
    rows = [{"at": "2024-01-02T03:04:05.1234567Z", "new": i, "person": {"nick": "x"}} for i in range(3)]
    written("parquet", *rows)
    told = [message for message in caplog.messages if "stream 'users': " in message]
    assert [remark.split(": ")[1] for remark in told] == [
        "field 'new' is not in the schema and has no column",
        "field 'person.nick' is not in the schema and has no column",
        "field 'at'",
    ]
    assert "left out of 3 rows" in told[0]
    assert "3 times cut to microseconds" in told[2]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object"}, "declares no properties"),
        ({"properties": {"a": {"$ref": "#/b"}}}, "$ref"),
    ],
)
def test_a_schema_without_columns_is_refused_with_the_cure(schema, words):
    with pytest.raises(BurlerError) as caught:
        written("parquet", {"a": 1}, schema=schema)

    assert words in str(caught.value)
    assert "'jsonl' holds any row" in str(caught.value)
