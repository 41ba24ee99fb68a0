"""Care of a lake: look at it, check it, make its manifests anew, put small files together, remove what is left over.

What to open for what:

    checking               ``check``: what it looks at, what it can find, with the cures
    rebuilding             ``rebuild``; a manifest put together
    compacting             ``compact``: which files may become one; making it
    vacuuming              ``vacuum``: what may go, and why; taking data files away safely
    taps                   ``ls``, ``describe``; a tap's state, as people look at it and set it
    inventory              one listing of a lake; whose locks are held; files read to their ends

    from burler.lake import care, open_store
    for finding in care.check(open_store("./lake", must_exist=True)).findings: ...

Each function gives frozen dataclasses; paths in them are relative to the lake. docs/lake-care.md says what each does.
"""

from __future__ import annotations

from burler.lake.care.checking import Checked, Finding, check
from burler.lake.care.compacting import CompactedFile, CompactedStream, Compaction, compact
from burler.lake.care.rebuilding import Rebuilt, RebuiltStream, rebuild
from burler.lake.care.taps import FileInfo, LakeInfo, StreamInfo, TapInfo, TapNotes, VersionInfo, describe, ls
from burler.lake.care.vacuuming import Unreferenced, Vacuum, vacuum

__all__ = [
    "Checked",
    "CompactedFile",
    "CompactedStream",
    "Compaction",
    "FileInfo",
    "Finding",
    "LakeInfo",
    "Rebuilt",
    "RebuiltStream",
    "StreamInfo",
    "TapInfo",
    "TapNotes",
    "Unreferenced",
    "Vacuum",
    "VersionInfo",
    "check",
    "compact",
    "describe",
    "ls",
    "rebuild",
    "vacuum",
]
