"""Taps as real processes, for the tests of runtime, sinks and command line."""

from __future__ import annotations

import textwrap
from pathlib import Path

from support.cli import PYTHON, Ended, environment, messages_of, python, shell, without_times
from support.cli import burler_process as burler

__all__ = [
    "PYTHON",
    "ROOT",
    "SMALL",
    "Ended",
    "burler",
    "environment",
    "messages_of",
    "python",
    "shell",
    "without_times",
    "write_tap",
]

ROOT = Path(__file__).parents[2]

SCHEMA = '{"type": "object", "properties": {"id": {"type": "integer"}, "text": {"type": ["null", "string"]}}}'

SMALL = f"""
import burler
tap = burler.tap("tap-small", version="1.2.3", description="A small tap.")

@tap.sync("rows", key_properties="id", replication_key="id", order="asc")
def rows(stream):
    for i in range(stream.bookmark or 0, 10):
        yield {{"id": i, "text": "x"}}

tap.schema("rows", {SCHEMA})
"""


def write_tap(folder: Path, source: str, name: str = "tap_x.py") -> Path:
    """A file with the source of a tap; ``SCHEMA`` in it stands for the usual schema."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source).replace("SCHEMA", SCHEMA))
    return path
