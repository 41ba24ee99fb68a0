"""Parquet and Arrow files as other programs see them: types, values, groups, compression; and what is refused."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import pytest

from burler.errors import BatchError, ConfigError, StorageError
from support.internals import batch_config, columnar, columnar_files, encoders

pa = pytest.importorskip("pyarrow", reason="extra 'batch'")
pq = pytest.importorskip("pyarrow.parquet", reason="extra 'batch'")

PARQUET, ARROW = batch_config.Encoding("parquet", "zstd"), batch_config.Encoding("arrow", "zstd")
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


def lines(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def written(encoding: batch_config.Encoding, *pages: bytes, schema: dict[str, Any] = SCHEMA) -> bytes:
    """The file of these pages."""
    parts: list[bytes] = []
    encoder = encoders.open_encoder(encoding, encoders.layout_of(encoding, schema, "users"), parts.append)
    for page in pages:
        encoder.rows(page, page.count(b"\n"))
    encoder.finish()
    return b"".join(parts)


def table(encoding: batch_config.Encoding, data: bytes) -> Any:
    if encoding.format == "parquet":
        return pq.ParquetFile(io.BytesIO(data)).read()
    return pa.ipc.open_file(data).read_all()


@pytest.mark.parametrize("encoding", [PARQUET, ARROW], ids=["parquet", "arrow"])
def test_the_columns_have_the_types_and_the_exact_values_of_the_schema(encoding):
    made = table(encoding, written(encoding, lines(FULL, {"id": 2})))

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
    path.write_bytes(written(PARQUET, lines(FULL, {"id": 2**62})))

    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT id, price, epoch_us(\"at\"), day, photo, tags, rates['x'], person.age, extra FROM read_parquet(?)",
            [str(path)],
        ).fetchall()

    assert [len(rows), rows[1][0]] == [2, 2**62]
    assert rows[0][:5] == (1, Decimal("1.25"), 1704164645678901, dt.date(2024, 1, 2), b"\x00\x01\x02")
    assert rows[0][5] == ["a", "ä"]
    assert rows[0][7:] == (30, '{"any": [1, {"thing": null}]}')


CODECS = [batch_config.Encoding("parquet", codec) for codec in (None, "snappy", "gzip", "zstd", "lz4", "brotli")]
CODECS += [batch_config.Encoding("arrow", codec) for codec in (None, "zstd", "lz4")]


@pytest.mark.parametrize("encoding", CODECS, ids=lambda one: f"{one.format}-{one.compression}")
def test_each_compression_is_the_one_in_the_file(encoding):
    many = lines(*({**FULL, "id": i} for i in range(500)))
    data = written(encoding, many)

    assert table(encoding, data).column("id").to_pylist() == list(range(500))
    if encoding.format == "parquet":
        said = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).compression
        assert said.lower() == {None: "uncompressed"}.get(encoding.codec, encoding.codec)
    else:
        assert (len(data) > len(many) / 3) == (encoding.codec is None)


def test_a_level_makes_files_smaller():
    rows = lines(*({"id": i, "extra": {"k": [i * 7919 % 10007, "some text", i % 13]}} for i in range(3000)))

    low, high = (written(batch_config.Encoding("parquet", "gzip", {}, {"level": level}), rows) for level in (1, 9))

    assert len(high) < len(low)


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        (batch_config.Encoding("parquet", "gzip", {}, {"level": 99}), "levels of 'gzip' go from 1 to 9"),
        (batch_config.Encoding("parquet", "snappy", {}, {"level": 3}), "'snappy' has no levels"),
        (batch_config.Encoding("arrow", "lz4", {}, {"level": 99}), "levels of 'lz4' go from"),
    ],
)
def test_a_level_that_can_not_be_is_refused_before_the_first_row(encoding, words):
    with pytest.raises(ConfigError, match=words):
        encoders.layout_of(encoding, SCHEMA, "users")


@pytest.mark.parametrize("encoding", [PARQUET, ARROW], ids=["parquet", "arrow"])
def test_a_file_without_rows_has_its_columns(encoding):
    made = table(encoding, written(encoding))

    assert made.num_rows == 0
    assert made.schema.names == list(FULL)


@pytest.mark.parametrize("encoding", [PARQUET, ARROW], ids=["parquet", "arrow"])
def test_rows_are_written_in_groups_while_more_come(encoding, monkeypatch):
    monkeypatch.setattr(columnar_files, "GROUP_ROWS", 700)
    monkeypatch.setattr(columnar_files, "_PIECE_BYTES", 1000)
    parts: list[bytes] = []
    encoder = encoders.open_encoder(
        encoding, encoders.layout_of(encoding, {"properties": {"id": {"type": "integer"}}}, "users"), parts.append
    )
    big = lines(*({"id": i} for i in range(50_000)))  # one page that is many groups

    encoder.rows(big, 50_000)
    before_the_end = sum(map(len, parts))
    encoder.rows(lines({"id": 50_000}), 1)
    encoder.finish()

    data = b"".join(parts)
    made = table(encoding, data)
    assert made.column("id").to_pylist() == list(range(50_001))
    assert before_the_end > 0
    assert encoder.size_bytes == len(big) + len(lines({"id": 50_000}))
    sizes = (
        [group.num_rows for group in map(pq.ParquetFile(io.BytesIO(data)).metadata.row_group, range(70))]
        if encoding.format == "parquet"
        else [pa.ipc.open_file(data).get_batch(i).num_rows for i in range(70)]
    )
    assert max(sizes) <= 700


def test_groups_are_bounded_in_bytes_too(monkeypatch):
    monkeypatch.setitem(columnar_files.GROUP_BYTES, "parquet", 1_000_000)
    monkeypatch.setattr(columnar_files, "_PIECE_BYTES", 1)
    page = lines(*({"tags": ["x" * 10_000]} for _ in range(400)))
    parts: list[bytes] = []
    encoder = encoders.open_encoder(PARQUET, encoders.layout_of(PARQUET, SCHEMA, "users"), parts.append)

    encoder.rows(page, 400)
    before_the_end = len(parts)
    encoder.finish()

    assert before_the_end > 10
    made = pq.ParquetFile(io.BytesIO(b"".join(parts)))
    sizes = [made.metadata.row_group(i).num_rows for i in range(made.metadata.num_row_groups)]
    assert sum(sizes) == 400
    assert max(sizes) <= 110


def test_the_buffer_of_a_page_is_free_afterwards():
    parts: list[bytes] = []
    encoder = encoders.open_encoder(ARROW, encoders.layout_of(ARROW, SCHEMA, "users"), parts.append)
    for count in (2, 10_000):  # put together with others; big enough by itself
        buffer = bytearray(lines(*({"id": i, "tags": ["text"]} for i in range(count))))
        encoder.rows(buffer, count)
        buffer[:] = b"#" * len(buffer)
        buffer.clear()  # raises while somebody holds on to it
    encoder.finish()

    assert table(ARROW, b"".join(parts)).column("id").to_pylist() == [0, 1, *range(10_000)]


def test_batches_of_columns_are_written_as_they_are_between_rows():
    layout = encoders.layout_of(PARQUET, SCHEMA, "users")
    ready = columnar.record_batch(layout, lines(FULL, {**FULL, "id": 5}), 2)
    parts: list[bytes] = []
    encoder = encoders.open_encoder(PARQUET, layout, parts.append)

    encoder.rows(lines({"id": 3}), 1)
    encoder.table(ready)
    encoder.table(ready.slice(1))
    encoder.rows(lines({"id": 4}), 1)
    encoder.finish()

    made = table(PARQUET, b"".join(parts))
    assert made.column("id").to_pylist() == [3, 1, 5, 5, 4]
    assert made.slice(1, 2).to_pylist() == ready.to_pylist()


def test_only_columns_of_repeating_values_get_a_dictionary():
    schema = {
        "properties": {
            "same": {"type": "string"},
            "unlike": {"type": "string"},
            "in": {"type": "object", "properties": {"same": {"type": "string"}, "unlike": {"type": "integer"}}},
        }
    }
    rows = [{"same": "x", "unlike": f"u{i}", "in": {"same": f"{i % 3}", "unlike": i}} for i in range(1000)]

    group = pq.ParquetFile(io.BytesIO(written(PARQUET, lines(*rows), schema=schema))).metadata.row_group(0)

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
        written(PARQUET, lines(FULL, row))

    assert words in str(caught.value)
    assert str(caught.value).startswith("stream 'users': ")
    assert "batch_config.encoding.format 'jsonl' holds any row" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize("good", [0, 40_000])
def test_nothing_is_taken_of_a_page_with_a_bad_row(good):
    parts: list[bytes] = []
    layout = encoders.layout_of(PARQUET, SCHEMA, "users")
    encoder = encoders.open_encoder(PARQUET, layout, parts.append)
    encoder.rows(lines({"id": 1}), 1)
    bad = lines(*({"id": i, "new": 1} for i in range(good)), {"id": 1.5})

    with pytest.raises(BatchError, match=r"field 'id': a value can't"):
        encoder.rows(bad, good + 1)
    encoder.finish()

    assert table(PARQUET, b"".join(parts)).column("id").to_pylist() == [1]
    assert encoder.size_bytes == len(lines({"id": 1}))
    assert layout.remarks() == []


def test_thousands_of_single_rows_are_put_together():
    parts: list[bytes] = []
    encoder = encoders.open_encoder(
        PARQUET, encoders.layout_of(PARQUET, {"properties": {"id": {"type": "integer"}}}, "users"), parts.append
    )
    for i in range(1250):
        encoder.rows(lines({"id": i}), 1)
        if i == 600:
            encoder.rows(lines(*({"id": -1} for _ in range(700))), 700)
    encoder.finish()

    ids = table(PARQUET, b"".join(parts)).column("id").to_pylist()
    assert ids == [*range(601), *([-1] * 700), *range(601, 1250)]


@pytest.mark.parametrize("row", [b"[1]", b"null", b"5", b'"x"', b"{", b'{"id":1}{"id":2}', b'{"id":1'])
def test_a_line_that_is_no_row_is_refused(row):
    with pytest.raises(BatchError, match="stream 'users'"):
        written(PARQUET, b'{"id":1}\n' + row + b"\n")


def test_what_is_lost_is_told_once_per_field():
    layout = encoders.layout_of(PARQUET, SCHEMA, "users")
    encoder = encoders.open_encoder(PARQUET, layout, lambda data: None)
    rows = [{"at": "2024-01-02T03:04:05.1234567Z", "new": i, "person": {"nick": "x"}} for i in range(3)]
    encoder.rows(lines(*rows), 3)
    encoder.finish()

    remarks = layout.remarks()

    assert [remark.partition(":")[0] for remark in remarks] == [
        "field 'new' is not in the schema and has no column",
        "field 'person.nick' is not in the schema and has no column",
        "field 'at'",
    ]
    assert "left out of 3 row(s)" in remarks[0]
    assert "3 time(s) cut to microseconds" in remarks[2]
    assert layout.remarks() == []


def recursive() -> dict[str, Any]:
    node: dict[str, Any] = {"type": "object", "properties": {}}
    node["properties"]["child"] = node
    return node


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object"}, "declares no properties"),
        (recursive(), "is recursive"),
        ({"properties": {"a": {"$ref": "#/b"}}}, "$ref"),
    ],
)
def test_a_schema_without_columns_is_refused_with_the_cure(schema, words):
    with pytest.raises(BatchError) as caught:
        encoders.layout_of(PARQUET, schema, "users")

    assert words in str(caught.value)
    assert "'jsonl' holds any row" in str(caught.value)


@pytest.mark.parametrize(
    "encoding", [batch_config.Encoding("parquet"), batch_config.Encoding("arrow")], ids=["parquet", "arrow"]
)
def test_an_error_of_the_store_comes_out_as_it_was(encoding):
    def full(data: bytes) -> None:
        raise StorageError("no space left")

    encoder = encoders.open_encoder(encoding, encoders.layout_of(encoding, SCHEMA, "users"), full)
    encoder.rows(lines(*({**FULL, "id": i} for i in range(5000))), 5000)

    with pytest.raises(StorageError, match="no space left"):
        encoder.finish()
    encoder.abandon()


@pytest.mark.parametrize("encoding", [PARQUET, ARROW], ids=["parquet", "arrow"])
def test_a_file_that_is_given_up_writes_nothing_more(encoding, monkeypatch):
    monkeypatch.setattr(columnar_files, "GROUP_ROWS", 100)
    parts: list[bytes] = []
    encoder = encoders.open_encoder(encoding, encoders.layout_of(encoding, SCHEMA, "users"), parts.append)
    encoder.rows(lines(*({**FULL, "id": i} for i in range(3000))), 3000)
    monkeypatch.setattr(columnar_files, "_PIECE_BYTES", 1)
    written_so_far = len(parts)

    encoder.abandon()
    del encoder

    assert len(parts) == written_so_far
