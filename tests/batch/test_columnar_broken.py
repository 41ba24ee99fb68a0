"""Parquet and Arrow files that are broken, of another kind, or come over a poor line: one clear error."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from burler.errors import BatchError, MissingExtra
from support.internals import batch_config, columnar_read, encoders

pa = pytest.importorskip("pyarrow", reason="extra 'batch'")

FORMATS = ["parquet", "arrow"]
GIVEN = {"type": "object", "properties": {"id": {"type": "integer"}, "text": {"type": "string"}}}
ROWS = [json.dumps({"id": i, "text": f"text {i}"}) for i in range(200)]


def written(format: str, given: dict[str, Any], *rows: str) -> bytes:
    """burler's own file of these rows."""
    parts: list[bytes] = []
    encoding = batch_config.Encoding(format, "zstd")
    encoder = encoders.open_encoder(encoding, encoders.layout_of(encoding, given, "users"), parts.append)
    encoder.rows("".join(row + "\n" for row in rows).encode(), len(rows))
    encoder.finish()
    return b"".join(parts)


def read(data: bytes, format: str, given: dict[str, Any] | None = None) -> list[bytes]:
    """The lines of a file."""
    return [
        line for lines, _ in columnar_read.pages(io.BytesIO(data), format, given) for line in lines.split(b"\n")[:-1]
    ]


@pytest.mark.parametrize(
    ("data", "format", "words"),
    [
        (b"", "parquet", "it is empty, which no Parquet file is"),
        (b"", "arrow", "it is empty, which no Arrow file is"),
        (b'{"id":1}\n', "parquet", "it is no Parquet file but JSON"),
        (b"id,name\n1,a\n", "arrow", "it is no Arrow file but something else"),
        (b"\x1f\x8b\x08\x00\x00", "parquet", "packed with gzip as a whole"),
        (written("arrow", GIVEN, *ROWS), "parquet", "it is no Parquet file but an Arrow file"),
        (written("parquet", GIVEN, *ROWS), "arrow", "it is no Arrow file but a Parquet file"),
    ],
    ids=lambda part: part[:12] if isinstance(part, str) else "",
)
def test_a_file_of_another_kind_is_named(data, format, words):
    with pytest.raises(BatchError) as caught:
        read(data, format)

    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_is_cut_off_anywhere_is_an_error(format):
    data = written(format, GIVEN, *ROWS)
    for size in range(8, len(data), 37):
        with pytest.raises(BatchError, match="damaged or broken off"):
            read(data[:size], format)
    with pytest.raises(BatchError, match="damaged or broken off"):
        read(data[:-1], format)


def test_an_arrow_stream_that_ends_between_two_batches_is_an_error():
    out = io.BytesIO()
    ends: list[int] = []
    table = pa.table({"id": [1, 2, 3]})
    with pa.ipc.new_stream(out, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=1):
            writer.write_batch(batch)
            ends.append(out.tell())
    assert sum(count for _, count in columnar_read.pages(io.BytesIO(out.getvalue()), "arrow")) == 3
    for end in ends:
        with pytest.raises(BatchError, match="it is broken off: an Arrow stream ends with a mark"):
            list(columnar_read.pages(io.BytesIO(out.getvalue()[:end]), "arrow"))


def test_a_parquet_file_with_a_wrong_byte_is_an_error_or_still_right():
    data = written("parquet", GIVEN, *ROWS)
    right = read(data, "parquet", GIVEN)
    found = 0
    for place in range(4, len(data), 11):
        broken = bytearray(data)
        broken[place] ^= 0x55
        try:
            assert read(bytes(broken), "parquet", GIVEN) == right
        except BatchError:
            found += 1
    assert found > len(data) / 11 / 2


@pytest.mark.parametrize("part", [b"text", b"value of"])
def test_names_and_texts_of_an_arrow_file_that_are_no_utf8_are_an_error(part):
    parts: list[bytes] = []
    encoding = batch_config.Encoding("arrow")
    encoder = encoders.open_encoder(encoding, encoders.layout_of(encoding, GIVEN, "users"), parts.append)
    encoder.rows(b'{"id":1,"text":"value of it"}\n', 1)
    encoder.finish()
    data = b"".join(parts)
    assert part in data

    with pytest.raises(BatchError, match="damaged or broken off"):
        list(columnar_read.batches(io.BytesIO(data.replace(part, b"\xd8" + part[1:])), "arrow"))


@pytest.mark.parametrize("make", ["new_file", "new_stream"])
def test_memory_that_is_no_text_is_an_error_before_anything_follows_it(make):
    """Where the texts begin and end stands in the file as numbers: wrong ones would be followed out of it."""
    out = io.BytesIO()
    table = pa.table({"text": ["value of it", "b"]})
    with getattr(pa.ipc, make)(out, table.schema) as writer:
        writer.write_table(table)
    data = out.getvalue()
    ends = b"\0\0\0\0\x0b\0\0\0\x0c\0\0\0"
    assert data.count(ends) == 1
    wrong = data.replace(ends, b"\0\0\0\0\x0b\0\0\0\x0c\0\0\x40")
    with pytest.raises(BatchError, match="damaged or broken off"):
        list(columnar_read.batches(io.BytesIO(wrong), "arrow"))


class OneWay(io.RawIOBase):
    """A stream that can't seek, as from a web server."""

    def __init__(self, data: bytes, fails_after: int | None = None) -> None:
        self._data = io.BytesIO(data)
        self._fails_after = fails_after

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._fails_after is not None and self._data.tell() >= self._fails_after:
            raise ConnectionResetError("gone")
        return self._data.read(size)


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_that_can_not_seek_is_read(format):
    (lines, count), *rest = columnar_read.pages(OneWay(written(format, GIVEN, *ROWS)), format, GIVEN)

    assert (count, rest) == (200, [])
    assert lines.count(b"\n") == 200


class Failing(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > 100:
            raise ConnectionResetError("gone")
        return super().read(size)


@pytest.mark.parametrize("raw", [OneWay, Failing])
def test_an_error_of_the_store_is_no_damaged_file(raw):
    data = written("parquet", GIVEN, *ROWS)
    source = raw(data, 0) if raw is OneWay else raw(data)

    with pytest.raises(ConnectionResetError, match="gone"):
        list(columnar_read.pages(source, "parquet", GIVEN))


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_without_rows_gives_no_pages(format):
    assert list(columnar_read.pages(io.BytesIO(written(format, GIVEN)), format, GIVEN)) == []


def test_the_file_stays_open_for_its_owner():
    raw = io.BytesIO(written("parquet", GIVEN, *ROWS))

    list(columnar_read.pages(raw, "parquet", GIVEN))

    assert not raw.closed


@pytest.mark.parametrize("format", FORMATS)
def test_without_pyarrow_the_extra_is_named(format, monkeypatch):
    data = written(format, GIVEN, *ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(MissingExtra, match=r"install 'pyarrow>="):
        encoders.layout_of(batch_config.Encoding(format), GIVEN, "users")
    with pytest.raises(MissingExtra, match=r"install 'pyarrow>="):
        read(data, format, GIVEN)
