"""What a writer keeps up beside the data: the catalog of its tap, its entry in ``singerlake.json``."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from burler import times
from burler.errors import BurlerError, UsageError
from burler.lake import catalogue, layout
from burler.lake.manifests import manifest
from burler.lake.writing.openfile import SchemaInUse
from burler.lake.writing.run import Run
from burler.singer.messages import Schema
from burler.storage.base import Store

_log = logging.getLogger("burler.lake")


class Notes:
    """The descriptive files of one tap, as a run of it goes on."""

    def __init__(self, run: Run) -> None:
        self._run, self._store, self._tap_id, self._clock = run, run.store, run.tap_id, run.clock
        self._encoding: str | None = None
        self._started = ""
        self._new: dict[str, Schema] = {}

    def begin(self) -> str:
        """Make the lake known, once: the tap is running. How the lake spells schema hashes.

        Raises:
            UsageError: it does so by rules that were not asked for, or are unknown.
        """
        if self._encoding is None:
            self._started = times.format_time(self._run.clock.now())
            self._encoding = catalogue.describe_lake(
                self._store,
                self._tap_id,
                encoding=self._run.encoding,
                status=self._status("running", None),
                clock=self._clock,
            )
        return self._encoding

    def add(self, schema: Schema) -> None:
        """A schema that the catalog is to have."""
        self._new[schema.stream] = schema

    def describe(self, stream: str | None = None) -> None:
        """Put what is new into the catalog: of one stream, or of all."""
        new = [schema for name, schema in self._new.items() if stream in (None, name)]
        if new:
            catalogue.describe_streams(self._store, self._tap_id, new, clock=self._clock)
            for schema in new:
                del self._new[schema.stream]

    def end(self, state: str) -> None:
        """The run is over: ``complete`` or ``failed``. Where that can't be written, the run is what it is."""
        if self._encoding is None:
            return
        try:
            status = self._status(state, times.format_time(self._run.clock.now()))
            catalogue.end_status(self._store, self._tap_id, status, clock=self._clock)
        except BurlerError as error:
            _log.warning("tap '%s': its status in the lake could not be written: %s", self._tap_id, error)

    def _status(self, state: str, ended: str | None) -> dict[str, str | None]:
        return {
            "state": state,
            "writer-id": self._run.writer_id,
            "started": self._started,
            "ended": ended,
            "link": None,
        }


def refuse_case_twin(store: Store, tap_id: str, stream: str, beside: Iterable[str]) -> None:
    """Of two names that differ only in case the second is refused: see ``layout.case_twin``.

    Args:
        beside: further streams of this tap, which may have no folder yet.

    Raises:
        UsageError: the tap, or the stream, has such a twin.
    """
    names = ((layout.ROOT, tap_id, ()), (layout.tap_folder(tap_id), stream, beside))
    for folder, name, others in names:
        here = layout.component(name)
        there = [*store.folders(folder), *map(layout.component, others)]
        twin = layout.case_twin(here, there)
        if twin is not None:
            raise UsageError(
                f"{store.url}: '{name}' and '{twin}' differ only in upper and lower case, and would be one "
                "folder on many systems. Rename one of them in the tap."
            )


def make_known(run: Run, schemas: Iterable[SchemaInUse]) -> None:
    """Schema versions without a file enter the manifest: who reads the lake knows the stream's columns all the same."""
    for schema in schemas:
        manifest.register(
            run.store, run.tap_id, schema.stream, schema_line=schema.line, hash=schema.hash, clock=run.clock
        )
