"""Bulk files in place of rows: BATCH messages written, read, and turned into each other (BATCH proposal).

What to open for what:

    message, allowed                  messages as they come, with what they say of CSV; what a message may name
    readers, column_readers           the rows of a message; those of files with columns, by the stream's schema
    rolling                           when files end; which are open; STATEs that wait for them (the lake's as well)
    writer                            rows into files of each format, and messages
    storage                           where files lie, and their names; files of an author's own; ``burler batch clean``
    packing, expansion                the commands ``burler batch pack``, ``convert``, ``expand``
    source_files                      files that the source made: passed on as they are, or read as rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.batch.expansion import expand
    from burler.batch.message import message_schema
    from burler.batch.packing import convert, pack
    from burler.batch.readers import BatchReading as BatchReading
    from burler.batch.readers import read
    from burler.batch.source_files import BatchFiles as BatchFiles
    from burler.batch.storage import ExportFiles, prune

__all__ = ["ExportFiles", "convert", "expand", "message_schema", "pack", "prune", "read"]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BatchFiles": "source_files",
            "BatchReading": "readers",
            "ExportFiles": "storage",
            "read": "readers",
            "expand": "expansion",
            "pack": "packing",
            "convert": "packing",
            "prune": "storage",
            "message_schema": "message",
        },
    )
