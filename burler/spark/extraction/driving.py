"""The driver of an extraction: it holds locks and claims, commits what tasks have written, and says STATE.

One thread does all of that, in this order for each task that has ended: its files enter the manifest, its end goes into
the state, the STATE goes out. A driver that is killed in between leaves files that no manifest names, or rows that come
once more; no STATE was ever ahead of the manifest.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from burler.engine.run.signals import Stopper
from burler.engine.run.sync import SyncResult
from burler.errors import BurlerError, StreamError
from burler.lake.locks import WaitStopped
from burler.lake.writer import LakeDriver
from burler.logs import short
from burler.singer.messages import ActivateVersion, Message, Schema
from burler.spark.extraction.jobs import Result, Slots, TaskLost
from burler.spark.extraction.tasks import Done, Refused, Target
from burler.spark.extraction.work import Work
from burler.words import counted

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
_LAST_SECONDS = 2.0  # for results that are on their way when a run is told to stop

Emit = Callable[[dict[str, Any]], object]
"""Takes the value of a STATE whose data is committed."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The name of the result that says which tasks a stream has."""

    stream: str


@dataclass
class Extraction:
    """One run.

    Attributes:
        slots: where tasks run. lake: commits. target: where files go.
        names_stream: says in STATE which stream the run is in (``currently_syncing``).
        on_progress: gets how many tasks have ended, and of how many that are known by now.
    """

    work: Work
    slots: Slots
    lake: LakeDriver
    target: Target
    emit: Emit
    stopper: Stopper
    names_stream: bool = True
    on_progress: Callable[[int, int], object] | None = None
    _done: int = 0
    _known: int = 0
    _left: dict[str, int] = field(default_factory=dict)  # tasks that have not ended, by stream
    _ended: set[str] = field(default_factory=set)

    def run(self) -> SyncResult:
        """Extract every stream; one that fails does not stop the others.

        Raises:
            LockLost: another writer has the lake, or took it over. StorageError: the lake can't be written.
            UsageError: the tap can't be run where the tasks are.
        """
        finder = threading.Thread(target=self._find_all, name="burler-find", daemon=True)
        finder.start()
        try:
            while len(self._ended) < len(self.work.streams) and not self.stopper.requested:
                try:
                    result = self.slots.results.get(timeout=_LOOK_SECONDS)
                except queue.Empty:
                    self.lake.check()
                    continue
                self._take(result)
            if self.stopper.requested:
                self._stop()
        except WaitStopped as stop:
            logger.warning("%s", stop)
            self._stop()
        except BaseException:
            self.slots.cancel()
            raise
        finally:
            self.slots.close()
        self._say(now=True)
        merge = self.work.merge
        return SyncResult(dict(merge.rows), merge.errors, merge.state, self.stopper.signal)

    # ---- in the finder's thread -------------------------------------------------------------------------------

    def _find_all(self) -> None:
        """Ask each stream for its tasks, while those of others run."""
        for stream in self.work.streams:
            if self.stopper.requested:
                return
            try:
                found = self.work.find(stream)
            except Exception as error:
                self.slots.results.put(Result(_Found(stream), error=error))
            else:
                self.slots.results.put(Result(_Found(stream), found))

    # ---- in the driver's thread ---------------------------------------------------------------------------------

    def _take(self, result: Result) -> None:
        name = result.name
        if isinstance(name, _Found):
            self._begin(name.stream, result)
            return
        stream = name.stream
        if isinstance(result.value, Refused):
            raise result.value.to_error()
        if result.error is not None:
            if not isinstance(result.error, TaskLost):
                raise result.error
            logger.warning("stream '%s': %s: %s", stream, getattr(name, "where", "") or "all of it", result.error)
            self.work.lost(name, str(result.error))
        else:
            self._commit(name, result.value)
        self._tell(ended=1)
        self._left[stream] -= 1
        if not self._left[stream]:
            self._finish(stream)
        self._say()

    def _begin(self, stream: str, result: Result) -> None:
        if result.error is not None:
            error = result.error
            if not isinstance(error, BurlerError):
                error = StreamError(stream, f"stream '{stream}': its parts can't be found: {short(error)}")
            self.work.merge.fail(stream, error)
            self._ended.add(stream)
            return
        self.work.prepare(stream, self.lake)
        if self.work.begin(stream):
            self._say(now=True)
        tasks: Sequence[Any] = result.value
        logger.info("stream '%s': start (extract), %s", stream, counted(len(tasks), "task"))
        self._left[stream] = len(tasks)
        self._tell(known=len(tasks))
        for name, make in tasks:
            self.slots.submit(name, make)
        if not tasks:
            self._finish(stream)
            self._say()

    def _commit(self, name: Any, done: Done) -> None:
        for schema in done.schemas:
            self.lake.begin(schema)
        self.lake.commit(done.files)
        self.work.merge.committed(sum(file.stats.bytes for file in done.files))
        logger.info("%s, %s committed", self.work.add(name, done.end), counted(len(done.files), "file"))

    def _finish(self, stream: str) -> None:
        schemas, messages = self.work.finish(stream)
        if messages:
            self.lake.commit(_files_of(self.target, schemas, messages))
        self._ended.add(stream)

    def _stop(self) -> None:
        """The run was told to end: what is done already counts, the rest comes with the next run."""
        self.slots.cancel()
        until = time.monotonic() + _LAST_SECONDS
        while any(self._left.values()) and (left := until - time.monotonic()) > 0:
            try:
                result = self.slots.results.get(timeout=min(left, _LOOK_SECONDS))
            except queue.Empty:
                continue
            if isinstance(result.value, Done):
                self._take(result)
        logger.info("stopped: what was not done comes with the next run")

    def _say(self, *, now: bool = False) -> None:
        """A STATE; it names the first stream that has not come to its end, unless the settings say not to."""
        merge, left = self.work.merge, (one for one in self.work.streams if one not in self._ended)
        state = merge.next_state(next(left, None) if self.names_stream else None, now=now)
        if state is not None:
            self.emit(state)

    def _tell(self, *, ended: int = 0, known: int = 0) -> None:
        self._done += ended
        self._known += known
        if self.on_progress is not None:
            self.on_progress(self._done, self._known)


def _files_of(target: Target, schemas: Sequence[Schema], messages: Sequence[Message]) -> Any:
    """Files with these messages alone."""
    with target.writer() as writer:
        for schema in schemas:
            writer.schema(schema)
        for message in messages:
            if isinstance(message, ActivateVersion):
                writer.activate_version(message)
        return writer.close()
