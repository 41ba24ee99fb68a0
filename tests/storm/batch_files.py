"""Batch files, read whole by plain means: what no target could read is an AssertionError."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

Rows = list[dict[str, Any]]
csv.field_size_limit(1 << 24)


def rows_of(message: dict[str, Any], format: str, compression: str, files: Mapping[str, bytes]) -> Rows:
    """The rows of a BATCH message, whose counts must be those that it says.

    Args:
        files: by their URLs.

    Raises:
        AssertionError: a file that is missing, short, torn, or of another kind than said.
    """
    [url] = message["manifest"]
    assert url in files, f"named, but missing: {url}"
    data = files[url]
    if "file_stats" in message:
        [stats] = message["file_stats"]
        assert stats["bytes"] == len(data), f"{url}: {len(data)} bytes, {stats}"
    try:
        rows = _READ[format](data if format in ("parquet", "arrow") else _unpacked(data, compression))
    except Exception as error:
        raise AssertionError(f"{url}: {type(error).__name__}: {error}") from error
    if "size" in message:
        assert len(rows) == message["size"] == message["file_stats"][0]["records"], f"{url}: {len(rows)} rows"
    assert rows, f"{url}: no rows"
    return rows


def _unpacked(data: bytes, compression: str) -> bytes:
    if compression == "gzip":
        return gzip.decompress(data)  # a torn one raises
    if compression == "zstd":
        import zstandard

        unpacking = zstandard.ZstdDecompressor().decompressobj()
        whole = unpacking.decompress(data)
        assert unpacking.eof, "a torn zstd frame"
        assert not unpacking.unused_data, "more than one zstd frame"
        return whole
    return data


def _jsonl(data: bytes) -> Rows:
    assert data.endswith(b"\n"), "a torn last line"
    return [json.loads(line, parse_float=Decimal) for line in data.split(b"\n")[:-1]]


def _csv(data: bytes) -> Rows:
    assert data.endswith(b"\n"), "a torn last line"
    found = csv.DictReader(io.StringIO(data.decode(), newline=""), strict=True)
    return [_typed(row) for row in found]


def _typed(row: dict[str, str]) -> dict[str, Any]:
    """In this source no text is empty, so that an empty field is null."""
    assert None not in row, "a row with too many fields"
    made: dict[str, Any] = {name: text or None for name, text in row.items()}
    return made | {"id": int(row["id"]), "price": Decimal(row["price"]) if row["price"] else None}


def _parquet(data: bytes) -> Rows:
    import pyarrow.parquet as pq

    return _plain(pq.read_table(io.BytesIO(data)))


def _arrow(data: bytes) -> Rows:
    import pyarrow as pa

    with pa.ipc.open_file(pa.BufferReader(data)) as file:
        return _plain(file.read_all())


def _plain(table: Any) -> Rows:
    table.validate(full=True)
    found: Rows = table.to_pylist()
    return found


_READ = {"jsonl": _jsonl, "csv": _csv, "parquet": _parquet, "arrow": _arrow}
