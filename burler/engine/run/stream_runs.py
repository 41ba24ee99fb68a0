"""What functions get as ``stream``: the one of each task, and the one of the stream as a whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from burler import times
from burler.context import StreamRun
from burler.declare.spec import StreamSpec
from burler.declare.strategies import Manual
from burler.errors import StreamError
from burler.source_state import SourceStates

if TYPE_CHECKING:
    from burler.engine.run.stream import SyncRun
    from burler.engine.run.task import Task


def run_in_task(task: Task, sync: SyncRun, spec: StreamSpec) -> StreamRun:
    """Of a stream in one task: its sync function, and those of its rows."""
    name = spec.tap_stream_id
    if name not in sync.stream_runs:
        sync.stream_runs[name] = _in_any_task(sync, spec)
    made: StreamRun = sync.stream_runs[name](
        bookmark=task.start.bookmark(name),
        state=task.start.position(name),
        partition=task.partition,
        source_state=_source_states(task, sync, spec),
    )
    return made


def _source_states(task: Task, sync: SyncRun, spec: StreamSpec) -> SourceStates:
    name = spec.tap_stream_id
    planned = sync.line.planned.get(name)
    parts_of_a_table = task.key is not None and planned is not None and planned.versions
    return SourceStates(
        name,
        task.start.sources(name),
        schema=lambda: sync.schema_digest,
        automatic=spec.source_state,
        # A run up to a limit is there to show rows.
        ignored=sync.ignores_sources or sync.engine.limit is not None,
        refused=(
            "it is a full table that is read in partitions: rows of those that have not changed would be dropped with "
            "the next ACTIVATE_VERSION. Set versions=False, or a replication_key, to use stream.source_state."
            if parts_of_a_table
            else None
        ),
    )


def _in_any_task(sync: SyncRun, spec: StreamSpec) -> Callable[..., StreamRun]:
    """What is the same in all of them."""
    engine, line, name = sync.engine, sync.line, spec.tap_stream_id
    planned = line.planned.get(name)
    entry = engine.plan.catalog.entries.get(name)
    return partial(
        StreamRun,
        engine.session.app.tap,
        name,
        selected=line.selected,
        schema=planned.schema if planned else None,
        metadata=planned.metadata if planned else entry.metadata if entry else None,
        config=engine.session.config,
        client=sync.client,
        key_properties=planned.key_properties if planned else spec.key_properties,
        replication_key=planned.replication_key if planned else spec.replication_key,
        replication_method=planned.replication_method if planned else spec.replication_method,
        in_parts=spec.parent is not None,
        start_date=engine.settings.start_date,
        manual=isinstance(spec.strategy, Manual),
        tally=sync.tallies[name],
        schemas=line.schemas,
        resumable_by=planned.resume_key if planned else None,
        sends_versions=any(one.versions for one in line.planned.values()),
        tailing=sync.kept is not None,
        write_bookmark=_writer(spec),
        told=engine.session.told,
    )


def run_of_stream(sync: SyncRun) -> StreamRun:
    """What the partitions function gets as ``stream``: the stream as a whole."""
    planned, engine = sync.line.planned.get(sync.name), sync.engine
    saved = sync.saved.flat.get(sync.name)
    keeps_one = (planned.bookmark_key if planned is not None else sync.spec.bookmark_key) is not None
    start_date = engine.settings.start_date
    first = start_date if planned is None else planned.first_bookmark(start_date)
    return StreamRun(
        engine.session.app.tap,
        sync.name,
        bookmark=saved if saved is not None or not keeps_one else first,
        selected=sync.line.selected,
        schema=planned.schema if planned is not None else None,
        metadata=planned.metadata if planned is not None else None,
        config=engine.session.config,
        client=sync.client,
        key_properties=sync.spec.key_properties,
        replication_key=planned.replication_key if planned is not None else sync.spec.replication_key,
        replication_method=planned.replication_method if planned is not None else sync.spec.replication_method,
        start_date=engine.settings.start_date,
        tally=sync.tallies[sync.name],
        write_bookmark=_writer(sync.spec),
        told=engine.session.told,
    )


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
