"""Whether tables of the standard record hold the same rows: told by DuckDB, from their Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COLUMNS = ("id", "a", "b", "c", "email", '"long"', "f1", "f2", "ok", "epoch_us(ts)", "nested.x", "nested.y", "nested.w")
Mark = tuple[int, int, int]


class Differ(Exception):
    """Two tables don't hold the same rows."""


def mark(files: Sequence[str | Path], extracted: str = "time_extracted") -> Mark:
    """Of all rows: their number, the sum of their hashes over all columns, and that of the times of extraction.

    Args:
        extracted: the column with the time of extraction.
    """
    import duckdb

    listed = ", ".join("'" + str(name).replace("'", "''") + "'" for name in files)
    hashed = ", ".join((*COLUMNS, "arr"))
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        found = connection.execute(
            f"select count(*), sum(hash({hashed})::hugeint), sum(hash(id, epoch_us({extracted}))::hugeint) "
            f"from read_parquet([{listed}])"
        ).fetchone()
    assert found is not None
    return int(found[0]), int(found[1] or 0), int(found[2] or 0)


def delta_files(table: str) -> list[str]:
    """The data files of a Delta table's newest version."""
    from deltalake import DeltaTable

    return [path.removeprefix("file://") for path in DeltaTable(table).file_uris()]


def parquet_files(folder: Path) -> list[Path]:
    """The data files of a folder that a job has written."""
    return sorted(folder.glob("*.parquet"))


def check(marks: dict[str, Mark], rows: int) -> None:
    """All tables hold the same rows, so many.

    Raises:
        Differ: they don't; says how.
    """
    for name, found in marks.items():
        if found[0] != rows:
            raise Differ(f"{name} has {found[0]:,} rows, not {rows:,}")
    if len(set(marks.values())) > 1:
        told = "; ".join(f"{name}: {found[1]:x} {found[2]:x}" for name, found in marks.items())
        raise Differ(f"the tables differ in their values: {told}")
