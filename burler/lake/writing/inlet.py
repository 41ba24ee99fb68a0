"""The way of messages into open files, the same for who commits these (``LakeWriter``) and who does not
(``PartWriter``)."""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from types import TracebackType
from typing import Self

from burler import times
from burler.batch.rolling import RollSettings
from burler.clock import Clock
from burler.lake.canonical import schema_hash, schema_line
from burler.lake.clean import CleanCheck
from burler.lake.snapshot import FileStats
from burler.lake.writing.files import Form, LakeFiles, Owner
from burler.lake.writing.openfile import SchemaInUse
from burler.singer.messages import ActivateVersion, Message, Records, Schema, Vouched, to_line
from burler.storage.base import Store


class Inlet(ABC):
    """Takes the messages of one tap in sequence, from one thread or several. What becomes of files is the heir's."""

    def __init__(
        self, store: Store, tap_id: str, *, clock: Clock | None, settings: RollSettings | None, form: Form
    ) -> None:
        self._store, self._tap_id = store, tap_id
        self._lock = threading.RLock()
        self._files = LakeFiles(
            store,
            tap_id,
            owner=Owner(self._before, self._published, settled=self._settled, taken=self._taken),
            clock=clock or Clock(),
            settings=settings or RollSettings(),
            form=form,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._finish()
        else:
            self.abort()

    def take(self, message: Message) -> None:
        """A message by its kind; one that says nothing of rows is passed over.

        Raises:
            MessageError, UsageError, LockLost, StorageError, LockTimeout, WaitStopped: see ``schema`` and ``page``.
        """
        if isinstance(message, Records):
            self.records(message)
        elif isinstance(message, Schema):
            self.schema(message)
        elif isinstance(message, ActivateVersion):
            self.activate_version(message)

    def schema(self, message: Schema) -> None:
        """The schema of a stream from here on. The same as before: its file goes on. Another: a new file.

        Raises:
            MessageError: the schema has no exact JSON text.
            UsageError: the stream's name differs only in case from another's (``LakeWriter`` alone looks).
        """
        with self._working():
            line = schema_line(message)
            known = self._files.schemas.get(message.stream)
            if known is not None and known.line == line:
                return
            digest = schema_hash(line, self._encoding_for(message.stream))
            schema = SchemaInUse(message.stream, line, digest, CleanCheck(message.schema))
            self._files.use(schema)
            self._in_use(schema, message)

    def records(self, page: Records) -> None:
        """A page of complete RECORD lines as burler makes them."""
        extracted = [times.format_time(page.time_extracted)]
        self.page(page.stream, page.lines, page.count, extracted, page.version, vouched=page.vouched)

    def record_line(self, stream: str, line: bytes, time_extracted: dt.datetime, version: int | None = None) -> None:
        """One complete RECORD line, ended by a line end, whose ``time_extracted`` is in burler's one form."""
        self.page(stream, line, 1, [times.format_time(time_extracted)], version)

    def page(
        self,
        stream: str,
        lines: bytes | bytearray,
        count: int,
        times: Sequence[str],
        version: int | None = None,
        *,
        vouched: Vouched | None = None,
    ) -> None:
        """A page of ``count`` complete RECORD lines of one stream and one ``version``.

        ``times`` are the lines' ``time_extracted`` in burler's one form, or a single one for all of them. ``vouched``:
        what their maker knows of the rows (see ``Records``): if enough, they are not read to see if they are clean.

        Raises:
            MessageError: no SCHEMA came before. LockLost, StorageError: see ``LakeWriter``.
            LockTimeout: another writer had the stream's lock for too long. WaitStopped: told to stop meanwhile.
        """
        with self._working():
            self._files.place += 1
            self._files.page(stream, lines, count, times, version, vouched)

    def activate_version(self, message: ActivateVersion) -> None:
        """ACTIVATE_VERSION, kept at its place among the records."""
        with self._working():
            self._files.place += 1
            self._files.activate_version(message.stream, to_line(message), message.version)

    def tick(self) -> None:
        """End the files that are old enough. For a timer, or whoever waits for input."""
        with self._working():
            self._files.end_old()
            self._settled()

    @abstractmethod
    def abort(self) -> None:
        """The end after an error: drop what is not published."""

    @abstractmethod
    def _finish(self) -> None:
        """The end of a ``with`` that went well."""

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """One call at a time."""
        with self._lock:
            yield

    @abstractmethod
    def _encoding_for(self, stream: str) -> str:
        """How the lake spells schema hashes, asked before a stream takes another schema."""

    def _in_use(self, schema: SchemaInUse, message: Schema) -> None:  # noqa: B027  not all have to know
        """A stream has taken another schema."""

    # ---- see ``Owner`` ---------------------------------------------------------------------------------

    @abstractmethod
    def _before(self, schema: SchemaInUse) -> None: ...

    @abstractmethod
    def _published(self, schema: SchemaInUse, name: str, stats: FileStats) -> None: ...

    @abstractmethod
    def _settled(self) -> None: ...

    @abstractmethod
    def _taken(self, schema: SchemaInUse) -> Collection[str]: ...
