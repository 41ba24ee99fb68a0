"""``burler export``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burler.cli import process
from burler.cli.common import LAKE_OPTIONS
from burler.cli.lake_tables import plain
from burler.cli.options_batch import read_options
from burler.errors import UsageError
from burler.words import counted

if TYPE_CHECKING:
    from burler.spark import StreamResult


def export_command(
    lake: str,
    out: str,
    *,
    streams: Sequence[str] = (),
    taps: Sequence[str] = (),
    options: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    master: str | None = None,
    remote: str | None = None,
    lake_options: str | None = None,
    **wanted: Any,
) -> int:
    """Export, and say of each stream as it ends what was read and written, and in how many seconds.

    Args:
        options: ``KEY=VALUE`` of the format. wanted: what ``burler.spark.export`` takes besides.
    """
    from burler import spark
    from burler.cli.progress import progress
    from burler.spark import training, under_way

    said = dict(map(_pair, options))
    reach = read_options(LAKE_OPTIONS, lake_options)
    session = spark.session(master=master, remote=remote) if master or remote else None
    try:
        with process.printing() as say, progress(under_way.said):
            results = spark.export(
                session,
                lake,
                out,
                streams=names(streams) or None,
                taps=names(taps) or None,
                options=said,
                partition_by=names(partition_by),
                lake_options=reach,
                on_progress=lambda result: _show(result, say),
                **wanted,
            )
            if not results:
                say("the lake holds no stream that was asked for")
        training.offer()
    finally:
        if session is not None:
            session.stop()
    return 0


def names(said: Sequence[str]) -> tuple[str, ...]:
    """Names that were given one by one, or several with commas between them."""
    return tuple(dict.fromkeys(name.strip() for one in said for name in one.split(",") if name.strip()))


def _pair(said: str) -> tuple[str, str]:
    key, equals, value = said.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--option {said.partition('=')[0]!r} is not of the form KEY=VALUE")
    return key.strip(), value


def _show(result: StreamResult, say: Callable[[str], None]) -> None:
    said = f"{result.rows_read:>9,} read  {result.rows_written:>9,} written"
    if result.error is not None:
        said = "failed"
    elif result.skipped:
        said = "up to date"
    name = plain(f"{result.tap_id}/{result.stream}")
    say(f"{name:30}  {said:37}  {result.seconds:6.1f} s  {plain(result.table)}")
    for note in result.notes:
        say(f"  {plain(note)}")
    if result.quarantined:
        say(f"  {counted(result.quarantined, 'row')} in quarantine: {result.quarantine}")
