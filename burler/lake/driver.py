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

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from decimal import Decimal
from types import TracebackType
from typing import Self

from burler.clock import Clock
from burler.errors import LakeError, UsageError
from burler.lake import layout
from burler.lake.committer import Committer
from burler.lake.locks import LockSettings
from burler.lake.manifest import Key, LakeSchema, WrittenFile
from burler.singer.messages import Schema
from burler.storage.base import Store


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
        self._store, self._tap_id = store, tap_id
        self._committer = Committer(
            store,
            tap_id,
            writer_id=writer_id,
            clock=clock,
            encoding=encoding,
            locks=locks,
            tail=tail,
            should_stop=should_stop,
        )
        self._begun: set[Key] = set()
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            with self._lock:
                self._committer.end(failed=True)

    def begin(self, message: Schema) -> None:
        """Own a schema version, before the workers write the first file of it: lock, claim, catalog.

        Raises:
            UsageError: the stream's name differs only in case from another's.
            LockTimeout, WaitStopped: another writer has it. LockLost, StorageError: see ``LakeWriter``.
        """
        with self._lock:
            schema = self._committer.version_of(message)
            if schema.key not in self._begun:
                self._begin(schema)

    def commit(self, files: Iterable[WrittenFile]) -> None:
        """Files enter the manifest; each counts once, however often it is committed. All of a schema version in one
        step. Schema versions that were not begun are begun here.

        Raises:
            UsageError: a file of another tap.
            LakeError: a file is not in this store: the worker wrote elsewhere.
            LockLost: another writer has taken over: these files are in no manifest.
        """
        with self._lock:
            groups: defaultdict[Key, list[WrittenFile]] = defaultdict(list)
            for file in files:
                self._check(file)
                groups[file.key].append(file)
            for key, group in groups.items():
                self._committer.check()
                if key not in self._begun:
                    self._begin(_version_of(group[0]))
                self._own(key)  # it may have been given back meanwhile
                self._committer.commit(group)

    def check(self) -> None:
        """For whoever waits for workers: ``LockLost`` where another writer has taken over meanwhile."""
        with self._lock:
            self._committer.check()

    def close(self) -> None:
        """Make known the schemas without data, and give the locks back. What is not committed is in no manifest."""
        with self._lock:
            self._committer.register()
            self._committer.end(failed=False)

    def _begin(self, schema: LakeSchema) -> None:
        self._own(schema.key)
        self._begun.add(schema.key)
        self._committer.note(schema)

    def _own(self, key: Key) -> None:
        lock = self._committer.take(key)
        if lock is not None:
            self._committer.wait(key, lock)

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


def _version_of(file: WrittenFile) -> LakeSchema:
    try:
        wire = json.loads(file.schema_line, parse_float=Decimal)
        keys, bookmarks = wire.get("key_properties") or (), wire.get("bookmark_properties") or ()
        message = Schema(file.stream, wire["schema"], tuple(keys), tuple(bookmarks))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise LakeError(f"stream '{file.stream}': {file.name} begins with no SCHEMA message.") from None
    return LakeSchema(message, file.schema_line, file.hash)
