"""Source states of a stream: where they begin, when they count, and what 304 does to a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burler.declare.spec import StreamSpec
from burler.engine.writer.writer import schema_of
from burler.errors import NotModified
from burler.source_state import SourceStates

if TYPE_CHECKING:
    from burler.engine.run.line import Line
    from burler.engine.run.stream import SyncRun
    from burler.engine.run.task import Member, Task


def states_of(sync: SyncRun, spec: StreamSpec, saved: Any, *, in_partition: bool) -> SourceStates:
    """The source states of a stream, or of one of its partitions, as the state has them (``saved``)."""
    engine, name = sync.engine, spec.tap_stream_id
    planned = sync.line.planned.get(name)
    parts_of_a_table = in_partition and planned is not None and planned.versions
    return SourceStates(
        name,
        saved,
        schema=lambda: sync.schema_digest,
        automatic=spec.source_state,
        # A run up to a limit is there to show rows.
        ignored=is_ignored(sync) or engine.limit is not None,
        refused=(
            "it is a full table that is read in partitions: rows of those that have not changed would be dropped with "
            "the next ACTIVATE_VERSION. Set versions=False, or a replication_key, to use stream.source_state."
            if parts_of_a_table
            else None
        ),
    )


def is_ignored(sync: SyncRun) -> bool:
    """Whether everything is to be fetched: once; the further rounds of a tail ask for what has changed."""
    return sync.engine.settings.ignore_source_state and (sync.kept is None or sync.kept.rounds == 1)


def digest(line: Line) -> str:
    """What is emitted in the run of a line, as a short text: the schema's hash; of several streams, the hash
    of their hashes. A field or a substream more, and the source has to be read again."""
    from burler.lake.canonical import schema_hash, schema_line  # taps without source states load nothing of the lake

    hashes = [schema_hash(schema_line(schema_of(planned))) for _name, planned in sorted(line.planned.items())]
    return hashes[0] if len(hashes) == 1 else schema_hash("".join(hashes).encode())


def to_save(task: Task) -> dict[str, Sequence[Mapping[str, Any]]]:
    """What sources said of what is out, by stream. Of a full table that is nothing before it is whole: 304 would else
    be the answer to a table whose rows no ACTIVATE_VERSION has followed. Rows that belong to the table as it stands
    wait for none."""
    changed = task.changed_sources
    tables = [task.writers[name].versions for name in task.line.family.tables] if changed else []
    return {**task.dropped, **(changed if all(table.done or table.continued for table in tables) else {})}


def left_of_others(task: Task) -> dict[str, Sequence[Mapping[str, Any]]]:
    """After an ACTIVATE_VERSION of this run: what an earlier run heard of sources that this one did not read no longer
    counts, since targets have dropped their rows. Entries of other tools, which do not say what they speak of, stay."""
    if not any(task.writers[name].versions.activated for name in task.line.family.tables):
        return {}
    found: dict[str, Sequence[Mapping[str, Any]]] = {}
    for name, before in task.sources_before.items():
        old = {id(entry) for entry in before}
        now = task.safe_sources.get(name, ())
        kept = [entry for entry in now if id(entry) not in old or "for" not in entry]
        if len(kept) < len(now):
            found[name] = kept
    return found


def guarded(member: Member, call: Callable[[], Any]) -> Any:
    """What a function gives. Where its requests are conditional, 304 ends it there, and is no error."""
    if not member.run.source_state.automatic:
        return call()
    try:
        given = call()
    except NotModified:
        return []
    return _guarded(given) if hasattr(given, "__next__") else given


def _guarded(items: Iterator[Any]) -> Iterator[Any]:
    """The same for what it yields, and for iterators that it yields in turn."""
    try:
        for item in items:
            if isinstance(item, tuple) and len(item) == 2 and hasattr(item[1], "__next__"):
                yield item[0], _guarded(item[1])
            else:
                yield _guarded(item) if hasattr(item, "__next__") else item
    except NotModified:
        return
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
