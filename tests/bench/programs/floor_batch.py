"""The floor of rows in files: ready dicts, and the libraries that pack them, on the same disk.

Run as: floor_batch.py default|plain jsonl|csv|parquet|tables ROWS. No selection, no check, no message; the schema of
the columns is given. ``plain``: JSON lines as people write that loop, a call for each row.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import clock
import filing
import orjson
import standard

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

GROUP_ROWS = 100_000  # of Parquet: as burler has it


def jsonl(path: Path, count: int) -> None:
    """orjson, and igzip at level 1."""
    from isal import isal_zlib

    packer = isal_zlib.compressobj(1, isal_zlib.DEFLATED, 31)
    buffer = bytearray()
    with path.open("wb") as file:
        for page in standard.pages(count):
            del buffer[:]
            for row in page:
                buffer += orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
            file.write(packer.compress(buffer))
        file.write(packer.flush())
        _settle(file)


def plain_jsonl(path: Path, count: int) -> None:
    """orjson, and a gzip file of isal's at level 1, row by row."""
    from isal import igzip

    with path.open("wb") as file:
        with igzip.open(file, "wb", compresslevel=1) as packed:
            for row in standard.rows(count):
                packed.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        _settle(file)


def to_csv(path: Path, count: int) -> None:
    """Python's csv module, nested values as JSON, and igzip at level 1."""
    from isal import isal_zlib

    packer = isal_zlib.compressobj(1, isal_zlib.DEFLATED, 31)
    with path.open("wb") as file:
        for page in standard.pages(count):
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            for row in page:
                nested, arr = orjson.dumps(row["nested"]).decode(), orjson.dumps(row["arr"]).decode()
                writer.writerow({**row, "nested": nested, "arr": arr, "ok": "true" if row["ok"] else "false"}.values())
            file.write(packer.compress(text.getvalue().encode()))
        file.write(packer.flush())
        _settle(file)


def parquet(path: Path, count: int) -> None:
    """Dicts to columns by pyarrow, date-times by its kernels, and its Parquet writer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = standard.arrow_schema()
    place = wanted.get_field_index("ts")
    given = wanted.set(place, pa.field("ts", pa.string()))
    waiting: list[pa.Table] = []
    with path.open("wb") as file, pq.ParquetWriter(file, wanted, compression="zstd") as writer:
        for number, page in enumerate(standard.pages(count), 1):
            table = pa.Table.from_pylist(page, schema=given)
            waiting.append(
                table.set_column(place, wanted.field(place), table.column(place).cast(wanted.field(place).type))
            )
            if number % (GROUP_ROWS // standard.PAGE_ROWS) == 0:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
        writer.close()
        _settle(file)


def tables(path: Path, prepared: list[pa.Table]) -> None:
    """Tables as they are, to the Parquet writer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    some = GROUP_ROWS // standard.TABLE_ROWS
    with path.open("wb") as file, pq.ParquetWriter(file, standard.arrow_schema(), compression="zstd") as writer:
        for first in range(0, len(prepared), some):
            writer.write_table(pa.concat_tables(prepared[first : first + some]))
        writer.close()
        _settle(file)


def _settle(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


WORKS: dict[str, Callable[[Path, Any], None]] = {"jsonl": jsonl, "csv": to_csv, "parquet": parquet, "tables": tables}

if __name__ == "__main__":
    work, rows = sys.argv[2], int(sys.argv[3])
    given: Any = standard.tables(rows) if work == "tables" else rows
    write = plain_jsonl if sys.argv[1] == "plain" else WORKS[work]
    with filing.folder() as folder, clock.measured("orjson"):
        write(folder / "floor", given)
