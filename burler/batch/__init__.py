"""Bulk files in place of rows: BATCH messages written, read, and turned into each other (BATCH proposal)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.batch.batching import pack
    from burler.batch.cleaning import prune
    from burler.batch.converting import convert
    from burler.batch.expanding import expand
    from burler.batch.exports import ExportFiles
    from burler.batch.message import message_schema
    from burler.batch.native import BatchFiles as BatchFiles
    from burler.batch.reading import BatchReading as BatchReading
    from burler.batch.reading import read

__all__ = ["ExportFiles", "convert", "expand", "message_schema", "pack", "prune", "read"]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BatchFiles": "native",
            "BatchReading": "reading",
            "ExportFiles": "exports",
            "read": "reading",
            "expand": "expanding",
            "pack": "batching",
            "convert": "converting",
            "prune": "cleaning",
            "message_schema": "message",
        },
    )
