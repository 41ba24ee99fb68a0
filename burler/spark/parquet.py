"""What Parquet files say about themselves: rows and column statistics from their footers, for the Delta log."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burler.extras import require

_LONGEST_TEXT = 64
"""Longer texts get no min and max: their cut form would have to be made larger than every value."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file: path relative to its table, bytes, time of change (ms since 1970), rows, Delta's statistics."""

    path: str
    size: int
    modified_ms: int
    rows: int
    stats: dict[str, Any]


def data_files(folder: Path, table: Path) -> list[DataFile]:
    """The Parquet files that Spark wrote to ``folder``, without empty ones and without Hadoop's checksums.

    What is not part of the table (``.crc``, ``_SUCCESS``, files of no rows) is removed.
    """
    found = []
    for path in sorted(folder.iterdir()):
        file = _data_file(path, table) if path.suffix == ".parquet" and not path.name.startswith(".") else None
        if file is None or not file.rows:
            path.unlink()
        else:
            found.append(file)
    return found


def _data_file(path: Path, table: Path) -> DataFile:
    parquet = require("pyarrow.parquet", extra="spark", needed_for="burler export")
    footer, about = parquet.read_metadata(path), path.stat()
    return DataFile(
        path=path.relative_to(table).as_posix(),
        size=about.st_size,
        modified_ms=int(about.st_mtime * 1000),
        rows=footer.num_rows,
        stats=_statistics(footer),
    )


def _statistics(footer: Any) -> dict[str, Any]:
    """``numRecords``, and for top-level plain columns ``minValues``, ``maxValues`` and ``nullCount``."""
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for at in range(footer.num_columns):
        column = footer.schema.column(at)
        if column.max_repetition_level or column.max_definition_level > 1:
            continue  # inside an object, list or map
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
