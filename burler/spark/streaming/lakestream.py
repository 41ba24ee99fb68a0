"""``readStream.format("singerlake")``: the commits of a lake's stream, as micro-batches.

Nothing is listed and no time is compared: an offset is a place in the manifest. Spark asks for the latest offset
every few milliseconds while there is nothing to do, so the manifest is looked at no more often than ``poll_seconds``
says.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from burler.errors import UsageError
from burler.lake import layout
from burler.lake.lake import Lake
from burler.lake.replay import START, Position
from burler.lake.snapshot import Snapshot
from burler.lake.store import open_store
from burler.spark.lakefiles import LakeStream, lake_stream
from burler.spark.lakesource.chosen import HOW_TO_NAME, picked, picture
from burler.spark.lakesource.options import (
    FOLLOW_OPTIONS,
    READ_OPTIONS,
    FollowOptions,
    LakeOptions,
    Texts,
    follow_options,
    lake_options,
)
from burler.spark.lakesource.ranges import between, furthest
from burler.spark.lakesource.tasks import ReadTask, plan_tasks
from burler.spark.streaming.follower import Follower, follower_reader
from burler.spark.streaming.offsets import Offset, OtherLake, in_snapshot
from burler.storage.base import Store

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_log = logging.getLogger("burler.spark.singerlake")
_COST, _CHEAP_SECONDS = 10.0, 0.1
"""A manifest that takes a second to read is read every ten seconds at most; a small one as often as asked."""

_FORMAT = "singerlake"
_BATCH_ONLY = {"after_sequence": "starting", "to_sequence": "", "versions": ""}


@dataclass(slots=True)
class LakeFollower:
    """Follows one stream of a lake; lives on the driver as long as the query.

    ``names``: the tap and the stream, once they are known. ``target``: under ``availableNow`` the last commit that this
    run reads.
    """

    options: LakeOptions
    follow: FollowOptions
    names: tuple[str, str] | None = None
    target: int | None = None
    _store: Store | None = None
    _snapshot: Snapshot | None = None
    _tag: str = ""
    _next_look: float = field(default=0.0)

    @property
    def store(self) -> Store:
        """The lake's store, opened when it is first needed."""
        if self._store is None:
            self._store = open_store(self.options.url, must_exist=True)
        return self._store

    def snapshot(self, *, fresh: bool = False) -> Snapshot:
        """The stream's manifest; as it was at the last look, unless that is long ago or ``fresh`` is wanted.

        Raises:
            UsageError: there is no such lake or stream. LakeError: the manifest is broken.
        """
        now = time.monotonic()
        if self._snapshot is not None and not fresh and now < self._next_look:
            return self._snapshot
        if self.names is None:
            self.names = Lake(self.store).one(self.options.tap, self.options.stream, how=HOW_TO_NAME)
        blob = self.store.read(layout.manifest_path(*self.names))
        if self._snapshot is None or blob is None or blob.tag != self._tag:
            self._tag = "" if blob is None else blob.tag
            self._snapshot = Lake(self.store).snapshot(*self.names)
        took = time.monotonic() - now
        rest = _COST * took if took > _CHEAP_SECONDS else 0.0
        self._next_look = time.monotonic() + max(self.follow.poll_seconds, rest)
        return self._snapshot

    def lake(self) -> LakeStream:
        """The stream as its manifest has it now."""
        return lake_stream(self.store, self.snapshot(fresh=True))

    def initial(self) -> Offset:
        """Where a new query begins."""
        starting = self.follow.starting
        if starting == "earliest":
            return Offset(None, START)
        snapshot = self.snapshot(fresh=True)
        sequence = snapshot.sequence if starting == "latest" else int(starting)
        if sequence > snapshot.sequence:
            raise UsageError(
                f"stream '{snapshot.stream}': option starting={sequence}, but its last commit is {snapshot.sequence}."
            )
        return Offset(snapshot.generation, Position(sequence)) if sequence else Offset(None, START)

    def latest(self, start: Offset, *, limited: bool) -> Offset:
        """How far the next batch goes; ``start`` itself where there is nothing new."""
        snapshot = self.snapshot()
        where = self._where(start, snapshot)
        to = snapshot.sequence if self.target is None else min(self.target, snapshot.sequence)
        follow = self.follow if limited else FollowOptions()
        end = furthest(
            snapshot, where, to, max_rows=follow.max_rows, max_files=follow.max_files, max_bytes=follow.max_bytes
        )
        return start if end == where else Offset(snapshot.generation, end)

    def prepare_available_now(self) -> None:
        """What is there now, and no more."""
        self.target = self.snapshot(fresh=True).sequence

    def tasks(self, start: Offset, end: Offset, schema: StructType) -> list[ReadTask]:
        """What is read for the rows of (start, end]: the same rows whenever it is asked.

        Raises:
            OtherLake, CutThrough: they can't be told apart any more. SchemaChanged: they do not fit the query.
        """
        lake = self.lake()
        snapshot = picture(lake)
        try:
            until = in_snapshot(end, snapshot)
        except OtherLake as error:
            if not self.follow.again:
                raise
            _log.warning("%s\nThe batch is left out: the next one begins anew.", error)
            return []
        since = self._where(start, snapshot)
        files = between(snapshot, since, until, again=self.follow.again)
        return plan_tasks(lake, picked(lake, files, self.options), None, schema, self.options)

    def committed(self, end: Offset) -> None:
        """The lake keeps what it has."""

    def stop(self) -> None:
        """Nothing is open."""

    def _where(self, offset: Offset, snapshot: Snapshot) -> Position:
        try:
            return in_snapshot(offset, snapshot)
        except OtherLake as error:
            if not self.follow.again:
                raise
            _log.warning("%s\nAll of it is read once more, as option behind says.", error)
            return START


def stream_reader(given: Mapping[str, str], schema: StructType) -> Any:
    """What Spark asks while a query runs."""
    return follower_reader()(functools.partial(_follower, dict(given)), schema)


def _follower(given: Mapping[str, str]) -> Follower:
    """Raises: UsageError: an option is wrong."""
    texts = Texts(given, (*READ_OPTIONS, *FOLLOW_OPTIONS), format=_FORMAT)
    for name, instead in _BATCH_ONLY.items():
        if texts.get(name) is not None:
            hint = f" Use '{instead}'." if instead else ""
            raise UsageError(f"format '{_FORMAT}': option '{name}' is for spark.read alone.{hint}")
    return LakeFollower(lake_options(texts), follow_options(texts))
