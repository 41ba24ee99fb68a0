"""Several processes that write one stream: one holds lock and claim and commits, the others make files.

::

    with LakeDriver(store, "tap-crm") as driver:       # the main process
        driver.begin(schema)
        driver.commit(files)                            # what the workers made, as often as you like

    with PartWriter(store, "tap-crm") as writer:        # each worker, in its own process or on another machine
        writer.schema(schema)
        writer.records(page)
    files = writer.close()                              # list[WrittenFile], to be sent to the main process

No row counts before the driver has committed its file: a worker that dies leaves files that no manifest names
(``burler lake check`` finds them), and whoever keeps STATE hands it on only after ``commit``.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from decimal import Decimal
from types import TracebackType
from typing import Self

from burler.clock import LAST_SECONDS, Clock, briefly
from burler.errors import LakeError, UsageError
from burler.lake import layout
from burler.lake.clean import CleanCheck
from burler.lake.committer import Claims, Notes, Run, make_known, refuse_case_twin
from burler.lake.hashing import schema_hash, schema_line
from burler.lake.locks import LockSettings
from burler.lake.rolling import SchemaInUse, WrittenFile
from burler.lake.writer import PartWriter
from burler.singer.messages import Schema
from burler.storage.base import Store

__all__ = ["LakeDriver", "PartWriter", "WrittenFile"]


class LakeDriver:
    """Holds lock and claim of schema versions while others make files of them, and commits these.

    Args:
        tail: workers go on for ever: a lock is given back after each commit.

    The others are as those of ``LakeWriter``.

    An error of ``begin`` or ``commit`` leaves what was committed before; ``close`` gives the locks back. Safe among
    threads.
    """

    def __init__(
        self,
        store: Store,
        tap_id: str,
        *,
        writer_id: str | None = None,
        clock: Clock | None = None,
        encoding: str | None = None,
        locks: LockSettings | None = None,
        tail: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._run = Run.of(store, tap_id, writer_id, clock, locks, tail, should_stop, encoding)
        self._store, self._tap_id = store, tap_id
        self._claims, self._notes = Claims(self._run), Notes(self._run)
        self._begun: dict[tuple[str, str], SchemaInUse] = {}
        self._unregistered: dict[tuple[str, str], SchemaInUse] = {}
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end("complete" if kind is None else "failed")

    def begin(self, message: Schema) -> None:
        """Own a schema version, before the workers write the first file of it: lock, claim, catalog.

        Raises:
            UsageError: the stream's name differs only in case from another's.
            LockTimeout, WaitStopped: another writer has it. LockLost, StorageError: see ``LakeWriter``.
        """
        with self._lock:
            encoding = self._notes.begin()
            line = schema_line(message)
            schema = SchemaInUse(message.stream, line, schema_hash(line, encoding), CleanCheck(message.schema))
            if schema.key in self._begun:
                return
            refuse_case_twin(self._store, self._tap_id, message.stream, (stream for stream, _ in self._begun))
            self._own(schema, message)

    def commit(self, files: Iterable[WrittenFile]) -> None:
        """Files enter the manifest; each counts once, however often it is committed. All of a schema version in one
        step. Schema versions that were not begun are begun here.

        Raises:
            UsageError: a file of another tap.
            LakeError: a file is not in this store: the worker wrote elsewhere.
            LockLost: another writer has taken over: these files are in no manifest.
        """
        with self._lock:
            groups: defaultdict[tuple[str, str], list[WrittenFile]] = defaultdict(list)
            for file in files:
                self._check(file)
                groups[file.stream, file.hash].append(file)
            for key, group in groups.items():
                self._claims.check()
                if key not in self._begun:
                    self._begin_of(group[0])
                self._claims.take(self._begun[key], before_wait=lambda: None)  # it may have been given back meanwhile
                self._claims.commit(self._begun[key], [(file.name, file.stats) for file in group])
                self._unregistered.pop(key, None)
                self._notes.describe(key[0])
                if self._run.tail:
                    self._claims.release(key)

    def check(self) -> None:
        """For whoever waits for workers: ``LockLost`` where another writer has taken over meanwhile."""
        with self._lock:
            self._claims.check()

    def close(self) -> None:
        """Make known the schemas without data, and give the locks back. What is not committed is in no manifest."""
        self._end("complete")

    def _end(self, state: str) -> None:
        with self._lock:
            if state == "complete":
                make_known(self._run, self._unregistered.values())
                self._unregistered.clear()
                self._notes.describe()
            with briefly(LAST_SECONDS) if state == "failed" else contextlib.nullcontext():
                if self._claims.release_all():
                    self._notes.end(state)

    def _begin_of(self, file: WrittenFile) -> None:
        message = _message_of(file)
        self._notes.begin()
        self._own(SchemaInUse(file.stream, file.schema_line, file.hash, CleanCheck(message.schema)), message)

    def _own(self, schema: SchemaInUse, message: Schema) -> None:
        self._claims.take(schema, before_wait=lambda: None)
        self._begun[schema.key] = self._unregistered[schema.key] = schema
        self._notes.add(message)

    def _check(self, file: WrittenFile) -> None:
        if file.tap_id != self._tap_id:
            raise UsageError(f"{file.name} is of tap '{file.tap_id}', and this driver commits for '{self._tap_id}'.")
        folder, _, name = file.name.partition("/")
        if folder != file.hash or layout.parse_file_name(name) is None:
            raise UsageError(f"stream '{file.stream}': {file.name!r} is no name of a data file of schema {file.hash}.")
        path = f"{layout.stream_folder(file.tap_id, file.stream)}/{file.name}"
        try:
            self._store.open(path).close()
        except FileNotFoundError:
            raise LakeError(
                f"stream '{file.stream}': {self._store.locate(path)} is not there. Did the worker write to another "
                "disk? All must reach the same lake."
            ) from None


def _message_of(file: WrittenFile) -> Schema:
    try:
        wire = json.loads(file.schema_line, parse_float=Decimal)
        keys, bookmarks = wire.get("key_properties") or (), wire.get("bookmark_properties") or ()
        return Schema(file.stream, wire["schema"], tuple(keys), tuple(bookmarks))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise LakeError(f"stream '{file.stream}': {file.name} begins with no SCHEMA message.") from None
