"""The raw lake: what taps said, as they said it, in files any tool can read (Singerlake).

What to open for what:

    layout, hashing              where things lie; the SCHEMA line and its hash
    store                        the store of a URL (what stores promise: ``burler.storage``); compare-and-swap
    datafile, clean              a data file's lines, and what a manifest says of it; whether plain JSON readers read it
    locks, manifest, committer   how several write: whose turn it is; claims and commits; both for one run
    replaced, snapshot           files that a compacted one stands for; a stream as a reader sees it
    lake                         ``Lake``: which taps and streams there are, their names, what manifests say
    catalogue                    ``catalogue.json`` and ``singerlake.json``
    rolling, writer              open files; messages, and lines of any tap, into files, by one process or several
    state                        where the next run of a tap begins
    choice, reading, replay      what of a stream is wanted; its rows; the lake as a tap
    care/, site/                 ``ls``, ``check``, ``compact``, ``vacuum`` and others; the static site

Usable without the rest of burler::

    store = open_store("./lake")
    with LakeWriter(store, "tap-crm", emit_state=keep) as writer:
        writer.schema(Schema("users", {"type": "object", "properties": {"id": {"type": "integer"}}}, ("id",)))
        writer.records(page)
    for file in load(store, "tap-crm", "users").files:
        for line in read_lines(store, file.path): ...
"""

from __future__ import annotations

from burler.batch.rolling import RollSettings
from burler.lake.catalogue import read_catalogue
from burler.lake.clean import CleanCheck
from burler.lake.datafile import read_lines, schema_message
from burler.lake.lake import load, read_singerlake, streams
from burler.lake.locks import LockSettings
from burler.lake.reading import LakeReading, Page, read
from burler.lake.rolling import WrittenFile
from burler.lake.snapshot import DataFile, FileStats, Snapshot
from burler.lake.state import LakeState, StateKeeper, StoredState
from burler.lake.store import open_store, probe
from burler.lake.writer import LakeDriver, LakeWriter, PartWriter, ingest
from burler.storage.base import Store, StoredFile

__all__ = [
    "CleanCheck",
    "DataFile",
    "FileStats",
    "LakeDriver",
    "LakeReading",
    "LakeState",
    "LakeWriter",
    "LockSettings",
    "Page",
    "PartWriter",
    "RollSettings",
    "Snapshot",
    "StateKeeper",
    "Store",
    "StoredFile",
    "StoredState",
    "WrittenFile",
    "ingest",
    "load",
    "open_store",
    "probe",
    "read",
    "read_catalogue",
    "read_lines",
    "read_singerlake",
    "schema_message",
    "streams",
]
