"""A manifest as a document, put together from measured files and what an older one still knows; no storage."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from burler import times
from burler.lake.care.places import Place, read_json
from burler.lake.care.removing import pruned
from burler.lake.layout import sort_key
from burler.lake.manifests import document as doc
from burler.lake.manifests.replaced import Replacement
from burler.lake.measure import Measured
from burler.lake.snapshot import DataFile, FileStats
from burler.storage.base import UNKNOWN_TIME, StoredFile

_OF_EACH_REBUILD = frozenset({"generation", "sequence", "commit_ids", "writers", "continues"})


@dataclass(frozen=True, slots=True)
class Found:
    """A data file that counts: where it lies, what is in it, and the note of what it replaces, if it is compacted."""

    file: StoredFile
    measured: Measured
    note: Replacement | None = None


def is_newer(data: bytes) -> bool:
    """Whether a manifest is of a format that this burler does not know."""
    try:
        document = read_json(data)
    except ValueError:
        return False
    number = document.get("format", doc.FORMAT) if isinstance(document, dict) else None
    return isinstance(number, int) and number > doc.FORMAT


def assemble(
    place: Place, old: doc.Document | None, found: Sequence[Found], *, mark: str, there: Collection[str]
) -> doc.Document:
    """The new manifest, of a new generation and with all claims raised; ``old`` itself if nothing changes.

    Files that the old one has, or had before they were compacted, keep their sequence; all others are new.

    Args:
        old: the one before, if it could be read: it knows the order of commits and versions, and schemas without data.
        found: the files it will list. mark: the commit id of this rebuild. there: paths of all files there are.
    """
    document = doc.new_document(place.tap_id, place.stream)
    known: doc.Document = old or {}
    document |= {key: value for key, value in known.items() if key not in document}
    document["versions"] = dict(known.get("versions") or {})
    document["schemas"] = dict(known.get("schemas") or {})
    document["sequence"] = int(known.get("sequence") or 0)
    sequence = doc.add_commit(document, mark)

    below = len(place.folder) + 1
    listed, here = frozenset(known.get("files") or ()), frozenset(path[below:] for path in there)
    parts = frozenset(doc.replaced_names(old)) if old is not None else frozenset()
    stats = {}
    for one in found:
        name = one.file.path[below:]
        wire = known["file_stats"].get(name) if name in listed or name in parts else None
        if name not in listed and not _is_same(wire, one.measured.stats):
            wire = None
        stats[one.file.path] = _stats(one, known, sequence, wire, here)
    files = [DataFile(path, one) for path, one in stats.items()]
    lines = {one.file.path: one.measured.line for one in found}
    for file in sorted(files, key=lambda file: file.order):
        if file.hash not in document["versions"] or not _has_line(document, file.hash):
            doc.add_schema(document, lines[file.path], digest=file.hash)
    names = {file.path[below:]: file for file in files}
    document["files"] = sorted(names, key=sort_key)
    document["file_stats"] = {name: stats[f"{place.folder}/{name}"].to_wire() for name in document["files"]}
    still = doc.replaced_names(document) & (known.get("file_stats") or {}).keys()
    document["file_stats"] |= {name: known["file_stats"][name] for name in sorted(still - names.keys())}
    if old is not None and _is_as_it_was(old, document):
        return old
    document["continues"] = {} if old is None else doc.continued(old, document)
    document["writers"] = raised(known.get("writers") or {}, (file.hash for file in files))
    return document


def _is_as_it_was(old: doc.Document, new: doc.Document) -> bool:
    return bool(old["generation"]) and all(old.get(key) == new[key] for key in new.keys() - _OF_EACH_REBUILD)


def _is_same(wire: Any, stats: FileStats) -> bool:
    """Whether a file is the one that a compacted one replaced: then it was committed before, and keeps its place."""
    return wire is not None and (wire.get("records"), wire.get("bytes")) == (stats.records, stats.bytes)


def _stats(one: Found, known: doc.Document, sequence: int, wire: Any, here: frozenset[str]) -> FileStats:
    """What was measured, with what only an old manifest can know of a file (``wire``), else with what its note says."""
    known_time = one.file.modified != UNKNOWN_TIME
    modified = times.format_time(dt.datetime.fromtimestamp(one.file.modified, dt.UTC)) if known_time else ""
    stats = replace(one.measured.stats, sequence=sequence, written=modified, stored_bytes=one.file.size_bytes)
    if wire is not None:
        was = FileStats.from_wire(wire)
        written = was.written or modified
        return replace(stats, sequence=was.sequence, rank=was.rank, replaces=was.replaces, written=written)
    if one.note is not None and one.note.replaces:
        before = known.get("file_stats") or {}
        counted = {part: number for was in before.values() for part, number in (was.get("replaces") or {}).items()}
        counted |= {part: was.get("sequence", sequence) for part, was in before.items()}
        parts = {part: int(counted.get(part, sequence)) for part in one.note.replaces}
        return replace(stats, rank=max(parts.values()), replaces=pruned(parts, set(parts) - before.keys() - here))
    return stats


def _has_line(document: doc.Document, digest: str) -> bool:
    known = document["schemas"].get(digest)
    return isinstance(known, dict) and isinstance(known.get("line"), str)


def raised(writers: dict[str, Any], hashes: Iterable[str]) -> dict[str, Any]:
    """Claims that nobody holds: every writer before is fenced out."""
    writer_id = f"rebuild-{secrets.token_hex(4)}"
    new = {}
    for digest in sorted({*writers, *hashes}):
        entry = writers.get(digest)
        epoch = entry.get("epoch") if isinstance(entry, dict) else 0
        new[digest] = {"writer-id": writer_id, "epoch": (epoch if isinstance(epoch, int) else 0) + 1}
    return new
