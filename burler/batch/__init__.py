"""Bulk files in place of rows: BATCH messages written, read, and turned into each other (specs 5; BATCH proposal)."""

from __future__ import annotations

from burler.extras import lazy_names

__all__ = ["ExportFiles", "convert", "expand", "message_schema", "pack", "prune", "read"]

__getattr__ = lazy_names(
    __name__,
    {
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
