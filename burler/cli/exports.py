"""``burler export``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burler.spark import StreamResult


def export_command(
    lake: str,
    out: str,
    *,
    streams: tuple[str, ...] = (),
    taps: tuple[str, ...] = (),
    master: str | None = None,
) -> int:
    """Export, and say of each stream as it ends what was read and written, and in how many seconds."""
    from burler import spark
    from burler.lake.store import open_store

    open_store(lake, must_exist=True)  # before Spark is started for nothing
    session = spark.session(master=master) if master is not None else None
    try:
        results = spark.export(session, lake, out, streams=streams or None, taps=taps or None, on_progress=_show)
    finally:
        if session is not None:
            session.stop()
    if not results:
        _print("the lake holds no stream that was asked for")
    return 0


def _show(result: StreamResult) -> None:
    said = f"{result.rows_read:>9,} read  {result.rows_written:>9,} written"
    if result.error is not None:
        said = "failed"
    elif result.skipped:
        said = "up to date"
    _print(f"{result.tap_id + '/' + result.stream:30}  {said:37}  {result.seconds:6.1f} s  {result.table}")
    for note in result.notes:
        _print(f"  {note}")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
