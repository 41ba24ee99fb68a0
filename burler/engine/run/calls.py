"""What the author's functions are called with, in one run of a family: ``stream``, and what else they may ask for."""

from __future__ import annotations

import datetime as dt
import functools
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from burler import times
from burler.call import Given
from burler.context import Call, StreamRun, in_call
from burler.declare.spec import StreamSpec
from burler.declare.strategies import Manual
from burler.engine.catalog.plan import PlannedRun
from burler.engine.family import Partition
from burler.engine.session import Session
from burler.engine.state.ledger import FamilyState, Start
from burler.engine.writer.writer import schema_of
from burler.errors import StreamError
from burler.pipeline.bookmark import BookmarkTracker
from burler.settings import Settings
from burler.singer.catalog import Catalog
from burler.source_state import SourceStates
from burler.tally import Tally


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What authors keep beside their rows, at one moment.

    Attributes:
        positions: each ``stream.state``, as JSON.
        sources: the entries of each ``stream.source_state``; streams without any are left out.
    """

    positions: bytes
    sources: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


class Calls:
    """What all calls of one run have in common.

    Args:
        client: gives the client.
        began: when the run began.
        tailing: it is a round of a tail.
        ignores_sources: everything is fetched, whatever was saved of sources.

    Attributes:
        tallies: what functions have counted, by stream.
        nothing_kept: what stands for tasks whose authors keep nothing beside their rows, which are most.
        no_positions: the same as each ``stream.state``.
        saved_by_hand: an author has vouched for a bookmark.
        sources_changed: what sources say of themselves is other than what was saved.
        of_partitions: the call of the partitions function.
        records_paths: for each function that is called, the way to the rows in pages of each stream that it gives.
    """

    def __init__(
        self,
        session: Session,
        planned: PlannedRun,
        saved: FamilyState,
        *,
        catalog: Catalog,
        settings: Settings,
        client: Callable[[], Any],
        began: dt.datetime,
        tailing: bool = False,
        ignores_sources: bool = False,
    ) -> None:
        self.session, self.planned, self.saved, self.began = session, planned, saved, began
        self.family = planned.family
        self._catalog, self._start_date, self._client = catalog, settings.start_date, client
        self._tailing, self._ignores_sources = tailing, ignores_sources
        self.tallies: dict[str, Tally] = defaultdict(Tally)
        self.no_positions: dict[str, dict[str, Any]] = {name: {} for name in planned.family.called}
        self.nothing_kept = Snapshot(msgspec.json.encode(self.no_positions))
        self.saved_by_hand = self.sources_changed = False
        self.of_partitions = Call()
        specs, emits = planned.specs, planned.family.emits
        self.records_paths = {name: {one: specs[one].records_path for one in some} for name, some in emits.items()}
        self._streams: dict[str, tuple[StreamRun, Callable[..., SourceStates]]] = {}
        self._given = session.given(client=client, state=lambda: self._state_seen, catalog=lambda: catalog)
        self._state = b"{}"

    def note_state(self, state: Mapping[str, Any]) -> None:
        """The run begins with this state, for functions that ask for it."""
        self._state = msgspec.json.encode(state)

    @functools.cached_property
    def _state_seen(self) -> Any:
        """A copy: what an author writes into it must not get into a STATE ahead of the rows. One for all calls: of
        thousands of partitions, each copy would be big."""
        return msgspec.json.decode(self._state)

    def given(self, run: StreamRun) -> Given:
        """What functions of a stream may ask for, in a call for which ``stream`` is ``run``."""
        return {**self._given, "stream": lambda: run, "partition": lambda: run.partition}

    @functools.cached_property
    def whole(self) -> StreamRun:
        """``stream`` of the partitions function: the stream as a whole."""
        name, saved = self.family.root, self.saved.flat.get(self.family.root)
        first = self._first[name] if self.family.key is not None else None
        self.of_partitions.bookmark = first if saved is None else saved
        return self._made(self.planned.spec, call=self.of_partitions)

    @functools.cached_property
    def _first(self) -> dict[str, str | None]:
        """With which bookmark each stream begins that has none."""
        streams, date = self.planned.by_name, self._start_date
        return {name: streams[name].first_bookmark(date) if name in streams else date for name in self.planned.specs}

    def stream(self, spec: StreamSpec, start: Start, partition: Partition) -> StreamRun:
        """``stream`` of a task: of its sync function, of a substream's, of functions that are called for its rows."""
        name = spec.tap_stream_id
        if name not in self._streams:
            self._streams[name] = self._in_any_task(spec), self._sources(spec)
        run, sources = self._streams[name]
        call = Call(start.bookmark(name, self._first[name]))
        source_state = sources(start.sources(name), tell=lambda: call.channel.source_dropped(name))
        return in_call(run, call, state=start.position(name), partition=partition.values, source_state=source_state)

    def _in_any_task(self, spec: StreamSpec) -> StreamRun:
        """What is the same in all of them."""
        streams = self.planned.by_name
        planned = streams.get(spec.tap_stream_id)
        return self._made(
            spec,
            schemas={one: stream.schema for one, stream in streams.items()},
            in_parts=spec.parent is not None,
            manual=isinstance(spec.strategy, Manual),
            resumable_by=planned.resume_key if planned else None,
            sends_versions=any(one.versions for one in streams.values()),
            tailing=self._tailing,
        )

    def _made(self, spec: StreamSpec, **more: Any) -> StreamRun:
        name = spec.tap_stream_id
        planned = self.planned.by_name.get(name)
        said, described = planned or spec, planned or self._catalog.entries.get(name)
        return StreamRun(
            self.session.app.tap,
            name,
            selected=self.family.selected,
            schema=planned.schema if planned else None,
            metadata=described.metadata if described else None,
            config=self.session.config,
            client=self._client,
            key_properties=said.key_properties,
            replication_key=said.replication_key,
            replication_method=said.replication_method,
            start_date=self._start_date,
            tally=self.tallies[name],
            write_bookmark=_writer(spec),
            told=self.session.told,
            **more,
        )

    # ---- bookmarks ---------------------------------------------------------------------------------------

    def trackers(self, start: Start) -> dict[str, BookmarkTracker]:
        """One for each stream that keeps a bookmark, or a place where its full table goes on."""
        resumed = self.family.root if self.family.resume_key is not None else None
        return {
            name: track(initial=start.resume_value if name == resumed else start.saved(name))
            for name, track in self._tracked.items()
        }

    @functools.cached_property
    def _tracked(self) -> dict[str, Callable[..., BookmarkTracker]]:
        """What makes them. Also for a parent that runs unseen: its own rows say how far its substreams have come."""
        family = self.family
        found: dict[str, Callable[..., BookmarkTracker]] = {}
        names = list(self.planned.by_name)
        if family.root not in names and family.has_children:
            names.insert(0, family.root)
        for name in names:
            planned, spec = self.planned.by_name.get(name), self.planned.specs[name]
            if planned is None and (spec.replication_key is None or spec.bookmark_key != spec.replication_key):
                continue
            resumed = None if planned is None else planned.resume_key
            key = resumed or family.keys[name]
            order = "asc" if resumed is not None else spec.order if planned is None else planned.order
            if key is not None:
                found[name] = functools.partial(
                    BookmarkTracker,
                    name,
                    key,
                    sorted_rows=order == "asc",
                    exclusive=spec.resume == "exclusive",
                    on_unsorted=spec.on_unsorted,
                    manual=isinstance(spec.strategy, Manual),
                    signpost=self.began if spec.signpost else None,
                    textual=family.key_formats.get(name),
                )
        return found

    # ---- source states -----------------------------------------------------------------------------------

    def _sources(self, spec: StreamSpec) -> Callable[..., SourceStates]:
        """What makes the source states of a stream, or of one of its partitions, as the state has them."""
        name = spec.tap_stream_id
        planned = self.planned.by_name.get(name)
        parts_of_a_table = self.planned.spec.partitions is not None and planned is not None and planned.versions
        return functools.partial(
            SourceStates,
            name,
            schema=lambda: self._digest,
            automatic=spec.source_state,
            ignored=self._ignores_sources,
            refused=(
                "it is a full table that is read in partitions: rows of those that have not changed would be dropped "
                "with the next ACTIVATE_VERSION. Set versions=False, or a replication_key, to use stream.source_state."
                if parts_of_a_table
                else None
            ),
        )

    @functools.cached_property
    def _digest(self) -> str:
        """What is emitted in this run, as a short text: the schema's hash; of several streams, the hash of their
        hashes. A field or a substream more, and the source has to be read again."""
        from burler.lake.hashing import schema_hash, schema_line  # taps without source states load nothing of it

        streams = [planned for _name, planned in sorted(self.planned.by_name.items())]
        hashes = [schema_hash(schema_line(schema_of(planned))) for planned in streams]
        return hashes[0] if len(hashes) == 1 else schema_hash("".join(hashes).encode())


def _writer(spec: StreamSpec) -> Callable[[Any], str] | None:
    """What writes bookmarks in the form that the stream's source wants, if it has one of its own."""
    form, name = spec.bookmark_format, spec.tap_stream_id
    if form is None:
        return None

    def write(bookmark: Any) -> str:
        try:
            return times.in_form(bookmark, form)
        except ValueError as error:
            raise StreamError(
                name, f"stream '{name}' ({spec.place}): bookmark_format is for date-times and dates: {error}."
            ) from None

    return write
