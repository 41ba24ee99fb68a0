"""What a user may say about an export, checked before anything is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from burler import times
from burler.errors import UsageError
from burler.numbers import is_count
from burler.spark.readoptions import ReadOptions

Mode = Literal["append", "upsert"]
Engine = Literal["burler", "session"]

SMALL_ROWS = 50_000
"""Up to here rows become a table without Spark, where the format takes Arrow: starting a job costs more."""
SMALL_BYTES = 128 << 20
"""The same for the rows' JSON lines, since all of them are in memory at once."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options of one export.

    ``mode``: None is the stream as it stands now (the latest row of each key, or without keys the rows of the active
    version); ``upsert`` the same, for streams with keys alone; ``append`` keeps every row that the lake has.
    ``since``: files whose rows were all extracted before are not read. ``file_bytes``: size to aim at, of one file of a
    table. ``small_rows``: up to so many rows are done without Spark.
    """

    mode: Mode | None = None
    format: str = "delta"
    options: Mapping[str, str] = field(default_factory=dict)
    since: dt.datetime | None = None
    partition_by: tuple[str, ...] = ()
    file_bytes: int | None = None
    read: ReadOptions = field(default_factory=ReadOptions)
    engine: Engine = "burler"
    small_rows: int = SMALL_ROWS

    @property
    def kind(self) -> str:
        """The format as ``formats.opening`` knows it; with ``session:`` before it where the session's own is to be
        used."""
        return f"session:{self.format}" if self.engine == "session" else self.format


def checked(
    *,
    mode: str | None,
    format: str,
    options: Mapping[str, str] | None,
    since: dt.datetime | dt.date | str | None,
    partition_by: Sequence[str] | str,
    file_bytes: int | None,
    max_bad_rows: int,
    timestamps: str,
    open_types: str,
    engine: str,
) -> ExportOptions:
    """The options, once they make sense.

    Raises:
        UsageError: one of them does not; names it and what may be said.
    """
    _one_of("mode", mode, ("append", "upsert"), none=True)
    _one_of("engine", engine, ("burler", "session"))
    if file_bytes is not None and not is_count(file_bytes, 1):
        raise UsageError(f"file_bytes is {file_bytes!r}; it must be a number of bytes, at least 1")
    by = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    if len(set(by)) < len(by):
        raise UsageError(f"partition_by names a column twice: {', '.join(by)}")
    if not isinstance(format, str) or not format:
        raise UsageError(f"format is {format!r}; it must be a format's name, as delta, parquet, iceberg or jdbc")
    return ExportOptions(
        mode=mode,  # type: ignore[arg-type]
        format=format,
        options={str(key): str(value) for key, value in (options or {}).items()},
        since=None if since is None else _moment(since),
        partition_by=by,
        file_bytes=file_bytes,
        read=ReadOptions(max_bad_rows=max_bad_rows, timestamps=timestamps, open_types=open_types),  # type: ignore[arg-type]
        engine=engine,  # type: ignore[arg-type]
        small_rows=SMALL_ROWS,
    )


def _one_of(name: str, value: object, known: tuple[str, ...], *, none: bool = False) -> None:
    if value not in known and not (none and value is None):
        raise UsageError(f"{name} is {value!r}; it must be {' or '.join(known)}")


def _moment(since: dt.datetime | dt.date | str) -> dt.datetime:
    """A moment in UTC. A date is its midnight, a time without offset is UTC."""
    try:
        said = times.lenient(since)[0] if isinstance(since, str) else since
        if not isinstance(said, dt.datetime):
            said = dt.datetime(said.year, said.month, said.day, tzinfo=dt.UTC)
        return said.replace(tzinfo=dt.UTC) if said.tzinfo is None else said.astimezone(dt.UTC)
    except (ValueError, AttributeError, OverflowError):
        raise UsageError(
            f"since is {since!r}; it must be a date or a time, as 2024-05-01 or 2024-05-01T12:00:00Z"
        ) from None
