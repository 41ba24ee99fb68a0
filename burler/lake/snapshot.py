"""What a reader sees of a stream: one frozen picture of its manifest, or of its folder."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from burler import times
from burler.lake.hashing import other_spelling
from burler.lake.layout import SortKey, folder_hash, parse_file_name, sort_key

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_STREAM_DEPTH = 3
"""Components of a stream's folder: ``raw/<tap_id>/<stream>``."""


@dataclass(frozen=True, slots=True)
class FileStats:
    """What a manifest knows about a data file.

    ``records``: RECORD lines. ``bytes``: uncompressed, all lines. ``first`` and ``last``: least and greatest
    ``time_extracted``, RFC 3339 UTC with six digits (they sort as text). ``sequence``: the commit that
    added the file. ``clean``: every record passed the strict typed check. ``activate_version``: that of
    the last ACTIVATE_VERSION in the file. ``versions``: the distinct ``version`` values of its RECORDs,
    sorted; None when no RECORD has one.

    ``rank``: set for a compacted file: it stands in replay order where the last file that it replaces stood, not where
    its own ``sequence`` would put it. ``replaces``: the files whose rows it holds, as names relative to the stream's
    folder with the sequence of each (files that were compacted on the way are not among them). Of those that have been
    removed only the first and the last in replay order are kept, with a ``~`` before the file's name: the name may be
    used again. ``written``: when the rows were committed, RFC 3339 UTC; empty when unknown. ``stored_bytes``: the
    file's size as it is stored, compressed.
    """

    records: Whole
    bytes: Whole
    first: str
    last: str
    sequence: Whole = 0
    clean: bool = False
    activate_version: Whole | None = None
    versions: tuple[Whole, ...] | None = None
    rank: Whole | None = None
    replaces: Mapping[str, Whole] | None = None
    written: str = ""
    stored_bytes: Whole | None = None

    def to_wire(self) -> dict[str, Any]:
        """As it stands in ``manifest.json``; what there is none of is left out."""
        wire: dict[str, Any] = {
            "records": self.records,
            "bytes": self.bytes,
            "first": self.first,
            "last": self.last,
            "sequence": self.sequence,
            "clean": self.clean,
        }
        if self.activate_version is not None:
            wire["activate_version"] = self.activate_version
        if self.versions is not None:
            wire["versions"] = list(self.versions)
        if self.replaces is not None:
            wire["rank"] = self.rank
            wire["replaces"] = dict(self.replaces)
        if self.written:
            wire["written"] = self.written
        if self.stored_bytes is not None:
            wire["stored_bytes"] = self.stored_bytes
        return wire

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> FileStats:
        """From ``manifest.json``; keys this version does not know are passed over.

        Raises:
            ValueError: it is not of this shape.
        """
        try:
            stats = msgspec.convert(wire, cls)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise ValueError(str(error)) from None
        if "sequence" not in wire:
            raise ValueError("it has no 'sequence'")
        if not times.are_lake_form([stats.first, stats.last]):
            raise ValueError("a time is not of the form 2024-01-02T03:04:05.678901Z")
        return stats


def all_stats(wires: Mapping[str, Any]) -> dict[str, FileStats]:
    """``FileStats.from_wire`` of all entries, at once: some ten times as fast.

    Raises:
        ValueError: one is not of this shape.
    """
    with contextlib.suppress(msgspec.ValidationError, UnicodeEncodeError):
        stats = msgspec.convert(wires, dict[str, FileStats])
        extracted = [time for one in stats.values() for time in (one.first, one.last)]
        if all("sequence" in wire for wire in wires.values()) and times.are_lake_form(extracted):
            return stats
    for name, wire in wires.items():
        try:
            FileStats.from_wire(wire)
        except ValueError as error:
            raise ValueError(f"'file_stats' of {name!r} is of no known shape ({error})") from None
    raise AssertionError("each fits, and all together do not")


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file of a stream. ``path`` is relative to the lake; ``stats`` None when nothing knows them."""

    path: str
    stats: FileStats | None = None

    @property
    def hash(self) -> str:
        """The schema version its folder names."""
        return folder_hash(self.path)

    @property
    def sequence(self) -> int:
        """The commit that added it; 0 when unknown."""
        return self.stats.sequence if self.stats else 0

    @property
    def clean(self) -> bool:
        """Whether any JSON reader with the schema's types reads it right; False when unknown."""
        return self.stats is not None and self.stats.clean

    @property
    def span(self) -> tuple[str, str] | None:
        """The first and last ``time_extracted`` that can be in it, both included; None where nothing says so. A name
        covers [first, last + 1 s)."""
        if self.stats is not None:
            return self.stats.first, self.stats.last
        name = parse_file_name(self.path.rpartition("/")[2])
        if name is None:
            return None
        return times.format_time(name.first), times.format_time(name.last.replace(microsecond=999_999))

    @property
    def order(self) -> tuple[int, SortKey]:
        """Replay order: commit sequence, then first, last and n.

        A compacted file has the place of the last file it replaces. The first number is the commit up to which
        everything is out once this file, and all before it in this order, are.
        """
        if self.stats is None or not self.stats.replaces:
            return (self.sequence, sort_key(self.path))
        folder = "/".join(self.path.split("/")[:_STREAM_DEPTH])
        last = max((number, sort_key(f"{folder}/{name}")) for name, number in self.stats.replaces.items())
        return last if self.stats.rank is None else (self.stats.rank, last[1])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stream as of one reading of its manifest; nothing in it changes afterwards.

    ``generation`` is None and ``sequence`` 0 when there is no manifest and the folder was listed instead.
    ``versions`` maps schema hashes to ``v1``, ``v2``, ... in order of first commit. ``schema_lines`` has
    the canonical SCHEMA line of each hash the manifest knows it of. ``files`` are in replay order.
    ``replaced`` are files whose rows stand in a compacted one of ``files`` by now and that are still there: not to be
    read beside it, but instead of it by who has read some of them already. ``continues``: generations of manifests that
    this one was made from, each with its last sequence: up to there both count the same commits.
    """

    tap_id: str
    stream: str
    folder: str
    files: tuple[DataFile, ...]
    generation: str | None = None
    sequence: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    schema_lines: Mapping[str, bytes] = field(default_factory=dict)
    replaced: tuple[DataFile, ...] = ()
    continues: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_manifest(cls, document: Mapping[str, Any], tap_id: str, stream: str, folder: str) -> Snapshot:
        """What readers see of a manifest.

        Raises:
            ValueError: what it says about a file is not of the right shape.
        """
        stats = all_stats(document["file_stats"])
        files = [DataFile(f"{folder}/{name}", stats.get(name)) for name in document["files"]]
        parts = {name for one in files if one.stats for name in one.stats.replaces or ()} - set(document["files"])
        lines = {
            digest: entry["line"].encode()
            for digest, entry in document["schemas"].items()
            if isinstance(entry.get("line"), str)
        }
        return cls(
            tap_id=tap_id,
            stream=stream,
            folder=folder,
            files=_in_order(files),
            generation=document["generation"] or None,
            sequence=document["sequence"],
            versions=dict(document["versions"]),
            schema_lines=lines,
            replaced=tuple(DataFile(f"{folder}/{name}", stats[name]) for name in sorted(parts & stats.keys())),
            continues=document.get("continues") or {},
        )

    @property
    def hashes(self) -> tuple[str, ...]:
        """Every schema hash there is, in order of first commit; those without one follow in replay order."""
        return tuple(dict.fromkeys((*self.versions, *(file.hash for file in self.files))))

    @property
    def version_names(self) -> dict[str, str]:
        """Schema hash -> ``v1``, ``v2``, ... in order of first commit; counted in replay order where it is unknown."""
        return {digest: self.versions.get(digest, f"v{at}") for at, digest in enumerate(self.hashes, 1)}

    def versions_asked(self, text: str | None) -> frozenset[str] | None:
        """The schema hashes that ``--schema`` asks for; None for all, empty if this stream has no such version.

        ``text``: ``v2``, a hash as the folder spells it, or its base85 form; with ``..`` behind it, that version and
        all that came later.
        """
        if text is None:
            return None
        one, onwards = (text[:-2], True) if text.endswith("..") else (text, False)
        wanted = {one, other_spelling(one)}
        names = self.version_names
        found = [at for at, digest in enumerate(names) if digest in wanted or names[digest] == one.lower()]
        if not found:
            return frozenset()
        return frozenset(list(names)[found[0] :] if onwards else (list(names)[at] for at in found))

    def newest(self, hashes: frozenset[str] | None = None) -> str | None:
        """The schema version of the last file, of these versions; where there is no file, the last that is known. None:
        there is none."""
        wanted = [digest for digest in self.hashes if hashes is None or digest in hashes]
        return next((file.hash for file in reversed(self.files) if file.hash in wanted), wanted[-1] if wanted else None)


def _in_order(files: list[DataFile]) -> tuple[DataFile, ...]:
    """In replay order; by the commit alone where each brought one file, since names take longer to compare."""
    numbers = {file.sequence for file in files}
    if len(numbers) == len(files) and not any(file.stats and file.stats.replaces for file in files):
        return tuple(sorted(files, key=lambda file: file.sequence))
    return tuple(sorted(files, key=lambda file: file.order))
