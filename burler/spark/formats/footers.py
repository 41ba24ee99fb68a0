"""What Parquet files say about themselves: rows, column statistics and partition values, read from the files.

Statistics let readers of a Delta table skip files; partition values are taken from a file's
first row, never from the name of its folder, so that null, empty text and ``a/b=c`` stay what they are.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LONGEST_TEXT = 64
"""Longer texts get no min and max: their cut form would have to be made larger than every value."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file: path relative to its table, bytes, time of change (ms since 1970), rows, Delta's statistics,
    and the Python value of each partition column."""

    path: str
    size: int
    modified_ms: int
    rows: int
    stats: dict[str, Any]
    partition: Mapping[str, Any] = field(default_factory=dict)


def data_files(folder: Path, table: Path, partition_by: Sequence[str] = ()) -> list[DataFile]:
    """The Parquet files below ``folder``, sorted, without empty ones and without Hadoop's checksums.

    What is not part of the table (``.crc``, ``_SUCCESS``, files of no rows) is removed. A folder that is not there
    holds none.

    Args:
        table: paths are relative to it.
        partition_by: columns of which each file holds one value.
    """
    found = []
    for path in _files(folder):
        parquet = path.suffix == ".parquet" and not path.name.startswith(".")
        file = _data_file(path, table, partition_by) if parquet else None
        if file is None or not file.rows:
            path.unlink()
        else:
            found.append(file)
    return found


def _files(folder: Path) -> Iterator[Path]:
    return iter(sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else [])


def _data_file(path: Path, table: Path, partition_by: Sequence[str]) -> DataFile:
    from burler.formats.parquet import open_file

    with open_file(path) as file:
        footer, about = file.metadata, path.stat()
        values: dict[str, Any] = {}
        if partition_by and footer.num_rows:
            first = next(file.iter_batches(batch_size=1, columns=list(partition_by)))
            values = {name: first.column(name)[0].as_py() for name in partition_by}
    return DataFile(
        path=path.relative_to(table).as_posix(),
        size=about.st_size,
        modified_ms=int(about.st_mtime * 1000),
        rows=footer.num_rows,
        stats=_statistics(footer, set(partition_by)),
        partition=values,
    )


def _statistics(footer: Any, without: set[str]) -> dict[str, Any]:
    """``numRecords``, and for top-level plain columns ``minValues``, ``maxValues`` and ``nullCount``."""
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for at in range(footer.num_columns):
        column = footer.schema.column(at)
        if column.max_repetition_level or column.max_definition_level > 1 or column.name in without:
            continue  # inside an object, list or map; or told by the partition
        groups = [footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups)]
        if any(one is None or not one.has_null_count for one in groups):
            continue
        nulls[column.name] = sum(one.null_count for one in groups)
        bounded = [one for one in groups if one.has_min_max]
        filled = sum(1 for one in groups if one.num_values)
        if not bounded or len(bounded) != filled:
            continue
        low, high = _as_json(min(one.min for one in bounded)), _as_json(max(one.max for one in bounded))
        if low is not None and high is not None:
            lows[column.name], highs[column.name] = low, high
    return {"numRecords": footer.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls}


def _as_json(value: Any) -> Any:
    """A bound as the Delta log spells it; None for types whose bounds are left out (decimal, binary, ...)."""
    if isinstance(value, bool | bytes):
        return None
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) else None
