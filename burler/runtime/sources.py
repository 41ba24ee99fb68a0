"""Source states of a stream: where they begin, when they count, and what 304 does to a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from burler.declare.spec import StreamSpec
from burler.errors import NotModified
from burler.runtime import entries
from burler.runtime.family import Member
from burler.runtime.outlet import schema_of
from burler.source_state import SourceStates

if TYPE_CHECKING:
    from burler.runtime.line import Line
    from burler.runtime.stream import SyncRun
    from burler.runtime.unit import Unit


def states_of(sync: SyncRun, spec: StreamSpec, key: str | None) -> SourceStates:
    """The source states of a stream, or of its partition ``key``, as the state has them."""
    engine, name = sync.engine, spec.tap_stream_id
    planned = sync.line.planned.get(name)
    parts_of_a_table = key is not None and planned is not None and planned.versions
    return SourceStates(
        name,
        entries.value_of(engine.state, name, entries.SOURCES, key),
        schema=lambda: sync.schema_digest,
        automatic=spec.source_state,
        # A run up to a limit is there to show rows.
        ignored=_is_ignored(sync) or engine.limit is not None,
        refused=(
            "it is a full table that is read in partitions: rows of those that have not changed would be dropped with "
            "the next ACTIVATE_VERSION. Set versions=False, or a replication_key, to use stream.source_state."
            if parts_of_a_table
            else None
        ),
    )


def _is_ignored(sync: SyncRun) -> bool:
    """Whether everything is to be fetched: once; the further rounds of a tail ask for what has changed."""
    return sync.engine.settings.ignore_source_state and (sync.kept is None or sync.kept.rounds == 1)


def forget_all(sync: SyncRun) -> bool:
    """Take away what was saved of the sources of a line, where the operator wants everything to be fetched: a run that
    ends half way must not leave it to the next one. True if there was something. Entries of other tools stay."""
    engine, some = sync.engine, False
    if not _is_ignored(sync) or engine.limit is not None:
        return False
    for name in sync.line.names:
        for key in (None, *entries.partitions_of(engine.state, name)):
            before = entries.value_of(engine.state, name, entries.SOURCES, key)
            if before is None:
                continue
            listed = before if isinstance(before, list) else [before]
            left = [entry for entry in listed if not isinstance(entry, dict) or "for" not in entry]
            if len(left) < len(listed):
                entries.put(engine.state, name, entries.SOURCES, left or None, key)
                some = True
    return some


def digest(line: Line) -> str:
    """What is emitted in the run of a line, as a short text: the schema's hash; of several streams, the hash
    of their hashes. A field or a substream more, and the source has to be read again."""
    from burler.lake.canonical import schema_hash, schema_line  # taps without source states load nothing of the lake

    hashes = [schema_hash(schema_line(schema_of(planned))) for _name, planned in sorted(line.planned.items())]
    return hashes[0] if len(hashes) == 1 else schema_hash("".join(hashes).encode())


def save(unit: Unit, state: dict[str, Any]) -> None:
    """Put into a state what sources said of what is out. Of a full table that is nothing before it is whole: 304 would
    else be the answer to a table whose rows no ACTIVATE_VERSION has followed. Rows that belong to the table as it
    stands wait for none."""
    for name, left in unit.dropped.items():
        entries.put(state, name, entries.SOURCES, list(left) or None, unit.key)
    changed = unit.changed_sources
    if not changed:
        return
    tables = [unit.outlets[name].versions for name, one in unit.line.planned.items() if one.versions]
    if not all(table.done or table.continued for table in tables):
        return
    for name, kept in changed.items():
        entries.put(state, name, entries.SOURCES, kept or None, unit.key)


def forget_others(unit: Unit, state: dict[str, Any]) -> None:
    """After an ACTIVATE_VERSION of this run: what an earlier run heard of sources that this one did not read no longer
    counts, since targets have dropped their rows. Entries of other tools, which do not say what they speak of, stay."""
    tables = [unit.outlets[name].versions for name, one in unit.line.planned.items() if one.versions]
    if not any(table.activated for table in tables):
        return
    for name, before in unit.sources_before.items():
        old = {id(entry) for entry in before}
        now = unit.safe_sources.get(name, ())
        kept = [entry for entry in now if id(entry) not in old or "for" not in entry]
        if len(kept) < len(now):
            entries.put(state, name, entries.SOURCES, kept or None, unit.key)


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
