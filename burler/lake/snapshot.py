"""What a reader sees of a stream: one frozen picture of its manifest, or of its folder (specs 1, rule 15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.lake.datafile import folder_hash
from burler.lake.layout import SortKey, sort_key


@dataclass(frozen=True, slots=True)
class FileStats:
    """What a manifest knows about a data file.

    ``records``: RECORD lines. ``bytes``: uncompressed, all lines. ``first`` and ``last``: least and greatest
    ``time_extracted``, RFC 3339 UTC with six digits (they sort as text). ``sequence``: the commit that
    added the file. ``clean``: every record passed the strict typed check (specs 11.24). ``activate_version``: that of
    the last ACTIVATE_VERSION in the file. ``versions``: the distinct ``version`` values of its RECORDs,
    sorted; None when no RECORD has one.
    """

    records: int
    bytes: int
    first: str
    last: str
    sequence: int = 0
    clean: bool = False
    activate_version: int | None = None
    versions: tuple[int, ...] | None = None

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
        return wire

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> FileStats:
        """From ``manifest.json``; keys this version does not know are passed over.

        Raises:
            KeyError, TypeError, ValueError: it is not of this shape.
        """
        versions = wire.get("versions")
        activated = wire.get("activate_version")
        return cls(
            records=int(wire["records"]),
            bytes=int(wire["bytes"]),
            first=str(wire["first"]),
            last=str(wire["last"]),
            sequence=int(wire["sequence"]),
            clean=wire.get("clean") is True,
            activate_version=None if activated is None else int(activated),
            versions=None if versions is None else tuple(int(version) for version in versions),
        )


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
    def order(self) -> tuple[int, SortKey]:
        """Replay order: commit sequence, then first, last and n (specs 11.26)."""
        return (self.sequence, sort_key(self.path))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stream as of one reading of its manifest; nothing in it changes afterwards.

    ``generation`` is None and ``sequence`` 0 when there is no manifest and the folder was listed instead.
    ``versions`` maps schema hashes to ``v1``, ``v2``, ... in order of first commit. ``schema_lines`` has
    the canonical SCHEMA line of each hash the manifest knows it of. ``files`` are in replay order.
    """

    tap_id: str
    stream: str
    folder: str
    files: tuple[DataFile, ...]
    generation: str | None = None
    sequence: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    schema_lines: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def hashes(self) -> tuple[str, ...]:
        """Every schema hash there is, in order of first commit; those without one follow in replay order."""
        return tuple(dict.fromkeys((*self.versions, *(file.hash for file in self.files))))
