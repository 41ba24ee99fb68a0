"""What a worker does that writes some of a stream's rows: files, for another process to commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from burler.batch.rolling import RollSettings
from burler.clock import Clock
from burler.lake import catalogue
from burler.lake.manifests import manifest
from burler.lake.snapshot import FileStats
from burler.lake.writing.files import Form
from burler.lake.writing.inlet import Inlet
from burler.lake.writing.openfile import SchemaInUse
from burler.storage.base import Store


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file that is durable and in no manifest yet. It can be pickled, and be JSON (``to_wire``, ``from_wire``).

    ``name`` is relative to the stream's folder; ``schema_line`` is the canonical SCHEMA line it begins with.
    """

    tap_id: str
    stream: str
    hash: str
    schema_line: bytes
    name: str
    stats: FileStats

    def to_wire(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "tap_id": self.tap_id,
            "stream": self.stream,
            "hash": self.hash,
            "schema_line": self.schema_line.decode(),
            "name": self.name,
            "stats": self.stats.to_wire(),
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> WrittenFile:
        """From JSON.

        Raises:
            KeyError, TypeError, ValueError: it is not of this shape.
        """
        texts = {key: str(wire[key]) for key in ("tap_id", "stream", "hash", "name")}
        return cls(**texts, schema_line=str(wire["schema_line"]).encode(), stats=FileStats.from_wire(wire["stats"]))


class PartWriter(Inlet):
    """Makes files of some of a tap's rows, for a driver to commit: no lock, no claim, no commit, no STATE.

    Args:
        clock: what files roll by, and what names files without rows.
        settings: when files roll.
        compression: ``gz``, ``bz2`` or None; and its level, see ``burler.formats.compression``.

    The driver must have begun: it decides how the lake names its folders.
    """

    def __init__(
        self,
        store: Store,
        tap_id: str,
        *,
        clock: Clock | None = None,
        settings: RollSettings | None = None,
        compression: str | None = "gz",
        compression_level: int = 1,
    ) -> None:
        super().__init__(store, tap_id, clock=clock, settings=settings, form=Form(compression, compression_level))
        self._encoding: str | None = None
        self._done: list[WrittenFile] = []
        self._names: dict[tuple[str, str], frozenset[str]] = {}

    def drain(self) -> list[WrittenFile]:
        """Files that are done and were not handed out yet: for a driver that commits as it goes."""
        with self._lock:
            done, self._done = self._done, []
            return done

    def close(self) -> list[WrittenFile]:
        """End all files; those that ``drain`` did not hand out."""
        self._finish()
        return self.drain()

    def abort(self) -> None:
        """Drop what is not published."""
        with self._lock:
            self._files.discard()

    def _finish(self) -> None:
        with self._lock:
            try:
                self._files.end_all()
            except BaseException:
                self._files.discard()
                raise

    def _encoding_for(self, stream: str) -> str:
        if self._encoding is None:
            self._encoding = catalogue.encoding_of(self._store)
        return self._encoding

    def _before(self, schema: SchemaInUse) -> None:
        """Locks are the driver's."""

    def _published(self, schema: SchemaInUse, name: str, stats: FileStats) -> None:
        self._done.append(WrittenFile(self._tap_id, schema.stream, schema.hash, schema.line, name, stats))

    def _settled(self) -> None:
        """So are STATEs."""

    def _taken(self, schema: SchemaInUse) -> frozenset[str]:
        """As the manifest says when the first file is done: the driver has begun by then."""
        if schema.key not in self._names:
            names = manifest.taken_names(self._store, self._tap_id, schema.stream, schema.hash)
            self._names[schema.key] = names
        return self._names[schema.key]
