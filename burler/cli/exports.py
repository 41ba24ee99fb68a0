"""``burler export``."""

from __future__ import annotations

import sys
from pathlib import Path

from burler.errors import UsageError


def export_command(
    lake: str,
    out: str,
    *,
    streams: tuple[str, ...] = (),
    taps: tuple[str, ...] = (),
    master: str | None = None,
) -> int:
    """Export, and say per stream what was read and written, and in how many seconds."""
    from burler import spark
    from burler.lake.store import open_store

    if not Path(lake).is_dir():
        raise UsageError(f"there is no lake at {lake}. Fill one: burler run APP --sink lake:{lake}")
    open_store(lake)
    session = spark.session(master=master)
    try:
        results = spark.export(session, lake, out, streams=streams or None, taps=taps or None)
    finally:
        session.stop()
    width = max([len(f"{result.tap_id}/{result.stream}") for result in results], default=6)
    for result in results:
        name = f"{result.tap_id}/{result.stream}"
        said = "up to date" if result.skipped else f"{result.rows_read:>9,} read  {result.rows_written:>9,} written"
        sys.stdout.write(f"{name:{width}}  {said}  {result.seconds:6.1f} s  {result.path}\n")
    if not results:
        sys.stdout.write("the lake holds no stream that was asked for\n")
    sys.stdout.flush()
    return 0
