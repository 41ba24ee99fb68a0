"""A stream of a lake, read from Python: as pages of lines, as dicts, as Arrow.

The manifest is read once, when ``read`` is called; which files are opened is known from then on.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from burler.errors import LakeError, UsageError
from burler.extras import require
from burler.lake.datafile import head_by_hash, head_of
from burler.lake.lake import Lake
from burler.lake.reading.choice import Choice, newest, no_such_version, versions_wanted, window
from burler.lake.reading.lines import FileLines, Wanted, cut_of
from burler.lake.snapshot import DataFile, Snapshot
from burler.lake.store import open_store
from burler.singer.messages import Schema
from burler.storage.base import Store
from burler.suggest import did_you_mean
from burler.words import some

if TYPE_CHECKING:
    import pyarrow as pa

_decode_exactly = msgspec.json.Decoder(float_hook=Decimal).decode


@dataclass(frozen=True, slots=True)
class Page:
    """``count`` complete RECORD lines of one stream and one schema version (``hash``: its folder)."""

    stream: str
    hash: str
    lines: bytes
    count: int


def read(
    lake: str | Store,
    tap: str | None = None,
    stream: str | None = None,
    schema: str | None = None,
    since: str | dt.date | None = None,
    until: str | dt.date | None = None,
    columns: Sequence[str] | None = None,
) -> LakeReading:
    """One stream of a lake, as it is now.

    Args:
        lake: a path, a URL, or an open store.
        tap, stream: may be left out where there is but one.
        schema: ``v2``, ``v2..`` (that version and all later ones), or a schema's hash.
        since, until: rows extracted from the one on, and before the other. A text in RFC 3339, a date, a datetime; UTC
            where they name no zone.
        columns: these fields of each row alone.

    Raises:
        UsageError: there is no such lake, stream, schema version or column; says which there are.
        LakeError: the manifest is broken.
    """
    times = window(since, until)
    if isinstance(columns, str):
        raise UsageError(f"columns is the text {columns!r}; give a list of names, as [{columns!r}].")
    store = open_store(lake, must_exist=True) if isinstance(lake, str) else lake
    there = Lake(store)
    snapshot = there.snapshot(*there.one(tap, stream))
    hashes = versions_wanted(snapshot, schema)
    if schema is not None and not hashes:
        raise no_such_version(schema, [snapshot])
    reading = LakeReading(store, snapshot, Choice(hashes, times), columns)
    reading.check_columns()
    return reading


class LakeReading:
    """A stream, and what of it is wanted. Each call of ``pages``, ``rows`` or ``arrow`` reads the files anew, a page in
    memory at a time.

    Attributes:
        snapshot: the stream as its manifest had it. files: those that will be opened, in replay order.
    """

    def __init__(
        self,
        store: Store,
        snapshot: Snapshot,
        choice: Choice,
        columns: Sequence[str] | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.files = choice.of(snapshot)
        self._store = store
        self._hashes = choice.hashes
        self._times = choice.times
        self._columns = None if columns is None else tuple(dict.fromkeys(columns))

    @property
    def schema(self) -> Schema:
        """The SCHEMA of the newest of the files; where none will be opened, the newest that the lake knows.

        Raises:
            LakeError: nothing in the lake says it.
        """
        digest = self.files[-1].hash if self.files else newest(self.snapshot, self._hashes)
        if digest is None:
            raise LakeError(f"{self.snapshot.folder}: the lake knows no schema of this stream.")
        return head_by_hash(self._store, self.snapshot, digest).message

    def check_columns(self) -> None:
        """Look whether the columns are there, where the manifest tells.

        Raises:
            UsageError: one is in none of the schema versions.
        """
        if self._columns is None:
            return
        lines = self.snapshot.schema_lines
        wanted = [one for one in self.snapshot.hashes if self._hashes is None or one in self._hashes]
        if not all(one in lines for one in wanted):
            return
        known: dict[str, None] = {}
        for digest in wanted:
            known |= dict.fromkeys(properties_of(head_of(lines[digest], self.snapshot.folder).message))
        unknown = [name for name in self._columns if name not in known]
        if unknown:
            hint = did_you_mean(unknown[0], known)
            raise UsageError(
                f"stream '{self.snapshot.stream}' has no field '{unknown[0]}'. Its fields: {some(list(known))}.{hint}"
            )

    def pages(self) -> Iterator[Page]:
        """Yield RECORD lines, about a MiB at a time, in replay order; ACTIVATE_VERSION is left out.

        Raises:
            LakeError: a file is missing or damaged; names it and the cure.
        """
        for file, opened in self._opened():
            for lines, count in opened.lines(self._wanted()):
                yield Page(opened.head.message.stream, file.hash, lines, count)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dicts; numbers with a point or an exponent as exact Decimals.

        Raises:
            LakeError: see ``pages``.
        """
        for _, opened in self._opened():
            for lines, _count in opened.lines(self._wanted(bare=True)):
                for line in lines[:-1].split(b"\n"):
                    try:
                        row = _decode_exactly(line)
                    except (msgspec.DecodeError, RecursionError):  # half of a surrogate pair, say
                        row = json.loads(line, parse_float=Decimal)
                    yield row

    def arrow(self) -> Iterator[pa.RecordBatch]:
        """Yield RecordBatches in the columns that each file's schema has in batch files.

        Raises:
            LakeError: see ``pages``; or a value that its column can't hold; names the field.
            MissingExtra: pyarrow is not installed.
        """
        require("pyarrow", extra="batch", needed_for="reading a lake as Arrow")
        from burler.lake.reading.arrow import Batches

        batches = Batches(self._columns)
        for file, opened in self._opened():
            yield from batches.of(file, opened, self._times)
        batches.tell()

    def _opened(self) -> Iterator[tuple[DataFile, FileLines]]:
        for file in self.files:
            with FileLines(self._store, file) as opened:
                yield file, opened

    def _wanted(self, *, bare: bool = False) -> Wanted:
        cut = None if self._columns is None else cut_of((), self._columns)
        return Wanted(times=self._times, cut=cut, activations=False, bare=bare)


def properties_of(message: Schema) -> dict[str, Any]:
    """The fields that a schema declares."""
    found = message.schema.get("properties")
    return found if isinstance(found, dict) else {}
