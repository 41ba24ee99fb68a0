"""Which format a table has, and where a stream's table lies in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from burler.errors import UsageError
from burler.spark.formats.base import Target
from burler.spark.formats.databases import is_postgres, join_place, masked, split_place
from burler.spark.formats.file_tables import FILE_FORMATS, KEEP, FileTarget, ParquetTarget, keep_versions
from burler.suggest import nearest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SESSION = "session:"
KNOWN = ("delta", "iceberg", "jdbc", *FILE_FORMATS)
_NAME = re.compile(r"[A-Za-z][\w.-]*\Z")


def open_target(
    kind: str, place: str, *, source: str, options: Mapping[str, str], spark: Callable[[], SparkSession]
) -> Target:
    """The table of one stream; nothing is read or made before its ``open``.

    Args:
        kind: ``delta``, ``parquet``, ``iceberg``, ``jdbc``, ``session:delta``, ``session:iceberg``, or the name of
            one of Spark's own formats.
        place: what ``place_of`` gave.
        source: the stream, as ``tap/stream``.
        options: of the format, as ``check_format`` let them pass.
        spark: gives the session; called only by formats that need Spark for more than the rows.

    Raises:
        UsageError: see ``check_format``.
    """
    check_format(kind, options)
    # Each format is imported only when it is asked for.
    if kind == "delta":
        from burler.spark.formats.delta_table import DeltaTarget

        return DeltaTarget(place, source)
    if kind == "iceberg":
        from burler.spark.formats.iceberg_table import IcebergTarget

        return IcebergTarget(place, source, options)
    if kind == "jdbc":
        return _open_jdbc(place, source, options)
    if kind.startswith(SESSION):
        from burler.spark.formats.bysession import SessionTarget

        return SessionTarget(kind.removeprefix(SESSION), place, source, options, spark)
    if kind in FILE_FORMATS:
        made = ParquetTarget if kind == "parquet" else FileTarget
        return made(kind, place, source, options)
    from burler.spark.formats.other import OtherTarget

    return OtherTarget(kind, place, source, options)


def _open_jdbc(place: str, source: str, options: Mapping[str, str]) -> Target:
    url, tap_id, stream = split_place(place)
    if is_postgres(url):
        from burler.spark.formats.postgres_table import PostgresTarget

        return PostgresTarget(url, tap_id, stream, source, options)
    from burler.spark.formats.other import JdbcTarget

    return JdbcTarget(url, tap_id, stream, source, options)


def check_format(kind: str, options: Mapping[str, str]) -> None:
    """Refuse what can't work, before anything starts.

    Raises:
        UsageError: no name of a format, or options that the format does not take.
    """
    if kind == "delta" and options:
        raise UsageError(f"format delta takes no options, and was given {', '.join(sorted(options))}")
    if kind == "parquet" and set(options) - {KEEP}:
        wrong = ", ".join(sorted(set(options) - {KEEP}))
        raise UsageError(f"format parquet takes the option {KEEP} only, and was given {wrong}")
    if kind in FILE_FORMATS:
        keep_versions(options)
    name = kind.removeprefix(SESSION)
    if kind.startswith(SESSION) and name not in ("delta", "iceberg"):
        raise UsageError(f"engine 'session' knows the formats delta and iceberg, not '{name}'")
    if not _NAME.match(name):
        raise UsageError(f"'{kind}' is no name of a format. Formats: {', '.join(KNOWN)}, or one of Spark's own")
    near = nearest(name, KNOWN, cutoff=0.8)
    if near is not None and name not in KNOWN:
        raise UsageError(f"there is no format '{name}'. Did you mean '{near}'?")


def place_of(kind: str, out: str, tap_folder: str, stream_folder: str, tap_id: str, stream: str) -> str:
    """Where a stream's table lies: for file formats ``out/<tap>/<stream>`` by the lake's own folder names, for
    databases the URL and the names.

    ``~`` stands for the ``%`` of an escaped character: delta-rs takes no ``%`` in a table's path.

    Raises:
        UsageError: ``out`` can't be one for this format, or holds a password.
    """
    if kind == "jdbc":
        return join_place(out, tap_id, stream)
    if "://" in out or out.startswith("jdbc:"):
        raise UsageError(
            f"format {kind.removeprefix(SESSION)} writes to a folder, and {masked(out)} is none. "
            "Give a path (of a mounted file system), or --format jdbc for a database"
        )
    return str(Path(out).absolute().joinpath(*(folder.replace("%", "~") for folder in (tap_folder, stream_folder))))
