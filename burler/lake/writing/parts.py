"""What a worker does that writes some of a stream's rows: files, for another process to commit (specs 11.22)."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from burler.lake import catalogue
from burler.lake.canonical import schema_hash, schema_line
from burler.lake.clean import CleanCheck
from burler.lake.manifests import manifest
from burler.lake.snapshot import FileStats
from burler.lake.store import Store
from burler.lake.writing.files import Form, OpenFiles, Owner
from burler.lake.writing.openfile import SchemaInUse
from burler.singer.messages import ActivateVersion, Records, Schema, format_time, to_line
from burler.target.roll import Clock, RollSettings, SystemClock


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


class PartWriter:
    """Makes files of some of a tap's rows, for a driver to commit: no lock, no claim, no commit, no STATE.

    Args:
        clock: what files roll by, and what names files without rows.
        settings: when files roll.
        compression: ``gz``, ``bz2`` or None; and its level, see ``burler.target.compressor``.

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
        self._store, self._tap_id = store, tap_id
        self._encoding: str | None = None
        self._lock = threading.RLock()
        self._done: list[WrittenFile] = []
        self._taken: dict[tuple[str, str], frozenset[str]] = {}
        owner = Owner(lambda _schema: None, self._published, settled=lambda: None, taken=self._taken_names)
        self._files = OpenFiles(
            store,
            tap_id,
            owner=owner,
            clock=clock or SystemClock(),
            settings=settings or RollSettings(),
            form=Form(compression, compression_level),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._end()
        else:
            self.abort()

    def schema(self, message: Schema) -> None:
        """The schema of a stream from here on; another one than before begins another file.

        Raises:
            MessageError: it has no exact JSON text.
        """
        with self._lock:
            line = schema_line(message)
            known = self._files.schemas.get(message.stream)
            if known is not None and known.line == line:
                return
            if self._encoding is None:
                self._encoding = catalogue.encoding_of(self._store)
            digest = schema_hash(line, self._encoding)
            self._files.use(SchemaInUse(message.stream, line, digest, CleanCheck(message.schema)))

    def records(self, page: Records) -> None:
        """A page of complete RECORD lines as burler makes them."""
        with self._lock:
            times = [format_time(page.time_extracted)]
            self._files.page(page.stream, page.lines, page.count, times, page.version, page.vouched)

    def record_line(self, stream: str, line: bytes, time_extracted: dt.datetime, version: int | None = None) -> None:
        """See ``LakeWriter.record_line``."""
        self.page(stream, line, 1, [format_time(time_extracted)], version)

    def page(
        self, stream: str, lines: bytes | bytearray, count: int, times: Sequence[str], version: int | None = None
    ) -> None:
        """See ``LakeWriter.page``."""
        with self._lock:
            self._files.page(stream, lines, count, times, version)

    def activate_version(self, message: ActivateVersion) -> None:
        """See ``LakeWriter.activate_version``."""
        with self._lock:
            self._files.activate_version(message.stream, to_line(message), message.version)

    def tick(self) -> None:
        """End the files that are old enough."""
        with self._lock:
            self._files.end_old()

    def drain(self) -> list[WrittenFile]:
        """Files that are done and were not handed out yet: for a driver that commits as it goes."""
        with self._lock:
            done, self._done = self._done, []
            return done

    def close(self) -> list[WrittenFile]:
        """End all files; those that ``drain`` did not hand out."""
        self._end()
        return self.drain()

    def abort(self) -> None:
        """Drop what is not published."""
        with self._lock:
            self._files.discard()

    def _end(self) -> None:
        with self._lock:
            try:
                self._files.end_all()
            except BaseException:
                self._files.discard()
                raise

    def _taken_names(self, schema: SchemaInUse) -> frozenset[str]:
        """As the manifest says when the first file is done: the driver has begun by then."""
        if schema.key not in self._taken:
            names = manifest.taken_names(self._store, self._tap_id, schema.stream, schema.hash)
            self._taken[schema.key] = names
        return self._taken[schema.key]

    def _published(self, schema: SchemaInUse, name: str, stats: FileStats) -> None:
        self._done.append(WrittenFile(self._tap_id, schema.stream, schema.hash, schema.line, name, stats))
