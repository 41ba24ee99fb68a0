"""``burler lake ...``."""

from __future__ import annotations

import sys
import uuid
from typing import Any

from burler.cli import common
from burler.errors import UsageError
from burler.sinks.stdout import StdoutSink


def write_command(path: str, tap_id: str | None, roll: dict[str, Any]) -> int:
    """Messages of any tap on stdin into a lake; STATE lines out after their data is committed (specs 11.25)."""
    from burler.lake.ingest import ingest
    from burler.lake.store import open_store
    from burler.lake.writer import LakeWriter, RollSettings

    if not tap_id:
        raise UsageError("lake write needs --tap-id: the name under which this tap's data stands, as --tap-id tap-crm")
    settings = RollSettings(**{key: value for key, value in roll.items() if value is not None})
    store = open_store(path)
    with common.own_stdout() as lines:
        out = StdoutSink(lines)
        writer = LakeWriter(store, tap_id, writer_id=str(uuid.uuid4()), emit_state=out.write, settings=settings)
        ingest(sys.stdin.buffer, writer)
        out.flush()
    return 0
