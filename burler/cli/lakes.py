"""``burler lake ...``."""

from __future__ import annotations

import select
import sys
from typing import Any

from burler.cli import process
from burler.cli.batches import read_options
from burler.errors import UsageError
from burler.runtime.signals import Stopper
from burler.sinks.stdout import StdoutSink


def write_command(path: str, tap_id: str | None, roll: dict[str, Any], storage_options: str | None = None) -> int:
    """Messages of any tap on stdin into a lake; STATE lines out after their data is committed (specs 11.25).

    ``storage_options``: a JSON object, or a file with one, for the library that reaches the files of BATCH messages.

    One SIGTERM or SIGINT ends it as the end of input does.
    """
    from burler.lake.ingest import ingest
    from burler.lake.store import open_store
    from burler.lake.writer import LakeWriter, RollSettings

    if not tap_id:
        raise UsageError("lake write needs --tap-id: the name under which this tap's data stands, as --tap-id tap-crm")
    if sys.stdin is None:
        raise UsageError("stdin is closed: pipe a tap's messages in, as in: tap-crm | burler lake write ...")
    options = read_options("--storage-options", storage_options)
    settings = RollSettings(**{key: value for key, value in roll.items() if value is not None})
    store = open_store(path)
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
