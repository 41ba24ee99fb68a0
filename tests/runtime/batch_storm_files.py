"""Batch files, read whole by plain means: what no target could read is an AssertionError."""

from __future__ import annotations

import csv
import gzip
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Rows = list[dict[str, Any]]


def path_of(url: str) -> Path:
    """Of a file URL, as it is: names need no decoding."""
    assert url.startswith("file:///"), url
    return Path(urlsplit(url).path)


def rows_of(message: dict[str, Any], format: str, compression: str) -> Rows:
    """The rows of a BATCH message, whose counts must be those that it says.

    Raises:
        AssertionError: a file that is missing, short, torn, or of another kind than said.
    """
    [url] = message["manifest"]
    path = path_of(url)
    assert path.exists(), f"named, but missing: {path}"
    data = path.read_bytes()
    if "file_stats" in message:
        [stats] = message["file_stats"]
        assert stats["bytes"] == len(data), f"{path}: {len(data)} bytes, {stats}"
    try:
        rows = _READ[format](data if format in ("parquet", "arrow") else _unpacked(data, compression))
    except Exception as error:
        raise AssertionError(f"{path}: {type(error).__name__}: {error}") from error
    if "size" in message:
        assert len(rows) == message["size"] == message["file_stats"][0]["records"], f"{path}: {len(rows)} rows"
    assert rows, f"{path}: no rows"
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
