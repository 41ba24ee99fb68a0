"""``burler lake write``."""

from __future__ import annotations

import select
import sys
from typing import TYPE_CHECKING, Any

import click

from burler.cli import process
from burler.cli.batches import read_options
from burler.cli.lakes_common import lake_options, open_lake
from burler.errors import UsageError

if TYPE_CHECKING:
    from burler.runtime.signals import Stopper


@click.command()
@click.argument("path")
@click.option("--tap-id", metavar="ID", help="Folder of this tap in the lake.")
@click.option("--max-file-bytes", type=click.IntRange(min=1), help="Close a file at this size, before compression.")
@click.option("--max-file-records", type=click.IntRange(min=1), help="Close a file at this many records.")
@click.option("--max-file-age-seconds", type=float, help="Close a file at this age.")
@click.option(
    "--storage-options",
    metavar="JSON|FILE",
    help="For the library that reaches files of BATCH messages; secrets belong in a FILE.",
)
@lake_options
def write(path: str, tap_id: str | None, storage_options: str | None, lake_options: str | None, **roll: Any) -> int:
    """Write the messages of any tap on stdin into the lake at PATH; STATE comes out once it is safe.

    \b
    tap-anything --config c.json | burler lake write ./lake --tap-id tap-anything >> state.jsonl
    """
    return write_command(path, tap_id, roll, storage_options, lake_options)


def write_command(
    path: str,
    tap_id: str | None,
    roll: dict[str, Any],
    storage_options: str | None = None,
    lake_options: str | None = None,
) -> int:
    """Messages of any tap on stdin into a lake; STATE lines out after their data is committed (specs 11.25).

    ``storage_options``: a JSON object, or a file with one, for the library that reaches the files of BATCH messages.

    One SIGTERM or SIGINT ends it as the end of input does.
    """
    from burler.lake.ingest import ingest
    from burler.lake.writer import LakeWriter, RollSettings
    from burler.runtime.signals import Stopper
    from burler.sinks.stdout import StdoutSink

    if not tap_id:
        raise UsageError("lake write needs --tap-id: the name under which this tap's data stands, as --tap-id tap-crm")
    if sys.stdin is None:
        raise UsageError("stdin is closed: pipe a tap's messages in, as in: tap-crm | burler lake write ...")
    options = read_options("--storage-options", storage_options)
    settings = RollSettings(**{key: value for key, value in roll.items() if value is not None})
    store = open_lake(path, lake_options)
    with process.own_stdout() as lines:
        stopper = Stopper(lambda: lines.blocked_since)
        writer = LakeWriter(store, tap_id, emit_state=StdoutSink(lines).write, settings=settings)
        with stopper.installed():
            _wait_for_input(sys.stdin.fileno(), stopper)
            ingest(sys.stdin.fileno(), writer, should_stop=lambda: stopper.requested, storage_options=options)
    return 0


def _wait_for_input(fd: int, stopper: Stopper) -> None:
    """Until there is something to read, the end of it, or a signal: a read would not come back for that."""
    ready = select.poll()
    ready.register(fd, select.POLLIN)
    while not stopper.requested and not ready.poll(200):
        pass
