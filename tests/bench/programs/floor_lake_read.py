"""The same files of a lake without burler: unpacked, split and decoded by libraries alone.

Run as: floor_lake_read.py VARIANT readlines|readpages|readrows|readarrow ROWS. VARIANT: ``default``, the least work;
``zcat``, the program; ``plain`` and ``exact``, loops that people write for rows. Files come in the order of their
names: no manifest is read, no hash, stream or number of rows is looked at.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import clock
import given
import orjson
import standard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa

BLOCK_BYTES = 1 << 20


def blocks(path: Path) -> Iterator[memoryview]:
    """What is in a file, a MiB at a time, in one buffer that is used again."""
    try:
        from isal import igzip as packed
    except ModuleNotFoundError:
        packed = gzip
    buffer = memoryview(bytearray(BLOCK_BYTES))
    with packed.open(path, "rb") as file:
        while length := file.readinto(buffer):
            yield buffer[:length]


def lines(_rows: int) -> int:
    """All that is in the files, to stdout."""
    sys.stdout.flush()
    for path in given.files():
        for block in blocks(path):
            while block:
                block = block[os.write(1, block) :]
    return _rows


def zcat(_rows: int) -> int:
    """The same by ``gzip -dc``, which is what zcat runs."""
    subprocess.run(["gzip", "-dc", *map(str, given.files())], check=True)
    return _rows


def pages(_rows: int) -> int:
    """Unpacked, and line ends counted."""
    found = 0
    for path in given.files():
        found -= 1  # line 1 is the SCHEMA
        for block in blocks(path):
            found += bytes(block).count(b"\n")
            if given.SHOWN:
                sys.stdout.buffer.write(block)
    return found


def decoded(read: Callable[[Path], Any], decode: Callable[[bytes], Any]) -> Iterator[Any]:
    """The rows, line by line."""
    for path in given.files():
        with read(path) as file:
            next(file)
            for line in file:
                yield decode(line)["record"]


def rows(_rows: int) -> int:
    """Each row a dict, by isal and orjson."""
    from isal import igzip

    return _each(decoded(igzip.open, orjson.loads))


def plain(_rows: int) -> int:
    """Each row a dict, by Python's gzip and orjson: the loop that people write."""
    return _each(decoded(gzip.open, orjson.loads))


def exact(_rows: int) -> int:
    """The same with Decimals, by Python's json: what gives numbers as they stand in the file."""
    return _each(decoded(gzip.open, lambda line: json.loads(line, parse_float=Decimal)))


def _each(found: Iterator[Any]) -> int:
    if given.SHOWN:
        made = list(found)
        given.show(made)
        return len(made)
    return sum(1 for _row in found)


def arrow(_rows: int) -> int:
    """A file at a time through Arrow's own reader, told the columns."""
    found = 0
    for path in given.files():
        for batch in batches(b"".join(map(bytes, blocks(path)))):
            found += batch.num_rows
            if given.SHOWN:
                given.show(batch.to_pylist())
    return found


def batches(data: bytes) -> Iterator[pa.RecordBatch]:
    """The rows behind line 1."""
    import pyarrow as pa
    import pyarrow.json as reader

    wanted = pa.schema([pa.field("record", pa.struct(list(standard.arrow_schema())))])
    table = reader.read_json(
        pa.BufferReader(memoryview(data)[data.index(b"\n") + 1 :]),
        parse_options=reader.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore"),
        read_options=reader.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
    )
    for chunk in table.column("record").chunks:
        yield pa.RecordBatch.from_struct_array(chunk)


WORKS: dict[tuple[str, str], Callable[[int], int]] = {
    ("default", "readlines"): lines,
    ("zcat", "readlines"): zcat,
    ("default", "readpages"): pages,
    ("default", "readrows"): rows,
    ("plain", "readrows"): plain,
    ("exact", "readrows"): exact,
    ("default", "readarrow"): arrow,
}

if __name__ == "__main__":
    wanted = int(sys.argv[3])
    with clock.measured("orjson", children=True):
        given.count(WORKS[sys.argv[1], sys.argv[2]](wanted), wanted)
