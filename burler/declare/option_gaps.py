"""What does not fit together among the options of a stream: partitions, retries, and how its bookmark moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from burler.declare.checks import line_of
from burler.declare.spec import FIRST_KEY, StreamSpec
from burler.singer.metadata import FULL_TABLE
from burler.suggest import did_you_mean

_MAY_ADD = {"$ref", "allOf", "anyOf", "oneOf"}  # fields that stand elsewhere in a schema; the plan knows them
_OF_BOOKMARKS = {
    "signpost": False,
    "lookback": None,
    "bookmark_format": None,
    "resume": "inclusive",
    "on_unsorted": "error",
}


def check_options(spec: StreamSpec, specs: Mapping[str, StreamSpec], parts: Mapping[str, Any], gaps: list[str]) -> None:
    """Add what is wrong with the options of one stream, seen from the whole; each gap with place and cure.

    Args:
        parts: what was said of the stream, by name: options that make one field of the spec stand here singly.
    """
    where = f"stream '{spec.tap_stream_id}' ({spec.place})"

    def add(text: str) -> None:
        gaps.append(f"{where}: {text}")

    _check_partitions(spec, parts, add)
    _check_parameters(spec, specs, add)
    _check_bookmark(spec, add)
    _check_resumable(spec, add)
    _check_retry(spec, parts, add)
    if spec.rollup:
        _check_rollup(spec, specs, add)
    if spec.source_state:
        _check_source_state(spec, add)


def _check_partitions(spec: StreamSpec, parts: Mapping[str, Any], add: Callable[[str], None]) -> None:
    name = spec.tap_stream_id
    if spec.partitions is None:
        if spec.workers > 1:
            add(
                f"workers={spec.workers} are for partitions, and it has none. Add @tap.partitions({name!r}); for "
                "several streams at a time there is the setting 'workers'."
            )
        said = [part for part in ("partition_order", "partition_key") if parts.get(part) is not None]
        if said:
            add(f"has {' and '.join(said)}, but no partitions. Add a method 'partitions', or leave it out.")
        return
    place = spec.partitions.place
    if spec.parent:
        add(
            f"has a partitions function ({place}), and is called for each row of '{spec.parent}'. Leave out one of the "
            "two, or set the partitions on the first stream of the line."
        )
    elif spec.emitted_by:
        add(
            f"has a partitions function ({place}), but its rows come from the function of '{spec.emitted_by}'. Set the "
            f"partitions there: @tap.partitions({spec.emitted_by!r})."
        )
    if spec.partition_order == "asc" and spec.bookmark_key is None and not spec.is_pattern:
        add(
            f"its partitions are said to rise (order='asc', {place}), but {_no_bookmark(spec)}. Add a replication_key, "
            "or leave out order."
        )


def _check_parameters(spec: StreamSpec, specs: Mapping[str, StreamSpec], add: Callable[[str], None]) -> None:
    """Parameters that nothing is given for in this stream."""
    name = spec.tap_stream_id
    first = line_of(spec, specs)[-1]
    for what in ("sync", "bookmark", "post_transform"):
        function = getattr(spec, what)
        if function is not None and "partition" in function.names and first.partitions is None:
            place = "" if what == "sync" else f" ({function.place})"
            add(
                f"its {what} function{place} asks for 'partition', but there are no partitions. "
                f"Add @tap.partitions({first.tap_stream_id!r})."
            )
    asks = spec.bookmark is not None and "children" in spec.bookmark.names
    if spec.bookmark is not None and asks and not any(one.parent == name for one in specs.values()):
        add(
            f"its bookmark function ({spec.bookmark.place}) asks for 'children', but it has no substreams. "
            f"Leave out the parameter, or declare one: @tap.sync('notes', parent={name!r})."
        )


def _check_bookmark(spec: StreamSpec, add: Callable[[str], None]) -> None:
    """Options that say how a bookmark moves, where there is none. A pattern's streams may have keys from discovery."""
    if spec.is_pattern or spec.bookmark_key is not None:
        return
    said = [option for option, silent in _OF_BOOKMARKS.items() if getattr(spec, option) != silent]
    if said:
        cure = "Add a replication_key"
        if spec.replication_method == FULL_TABLE and spec.method_said:
            cure = "Replicate it as INCREMENTAL"
        add(
            f"has {' and '.join(said)}, which is about the bookmark, but {_no_bookmark(spec)}. {cure}, or leave it out."
        )


def _no_bookmark(spec: StreamSpec) -> str:
    if spec.replication_key or spec.bookmark:
        return "FULL_TABLE keeps none"
    return "it has neither a replication_key nor a bookmark function"


def _check_resumable(spec: StreamSpec, add: Callable[[str], None]) -> None:
    field = spec.resumable_by
    if field is None:
        return
    if field == FIRST_KEY:
        if not spec.is_pattern:
            add("resumable_by='*' is for the streams that discovery finds, under a name with '*'. Name the field here.")
        return
    if spec.replication_method != FULL_TABLE:
        add(
            f"resumable_by is for FULL_TABLE streams, and it is {spec.replication_method}: it resumes at its bookmark. "
            "Leave out resumable_by."
        )
    elif spec.parent or spec.emitted_by:
        above = spec.parent or spec.emitted_by
        add(f"resumable_by can't be kept here: its rows come in the run of '{above}'. Leave it out, or set it there.")
    elif spec.partitions is not None:
        add(
            f"has both resumable_by and a partitions function ({spec.partitions.place}); a position by '{field}' is "
            "one for the whole table. Keep one of the two."
        )
    schema = spec.schema if isinstance(spec.schema, Mapping) else {}
    known = schema.get("properties")
    if isinstance(known, Mapping) and field not in known and not _MAY_ADD & set(schema):
        fields = ", ".join(map(str, known)) or "none"
        add(f"resumable_by '{field}' is not in the schema.{did_you_mean(field, known)} Its fields: {fields}.")


def _check_retry(spec: StreamSpec, parts: Mapping[str, Any], add: Callable[[str], None]) -> None:
    if parts.get("retry_sync_on") is None:
        said = [one for one in ("setup_retry", "max_retries") if parts.get(one) is not None]
        if said:
            add(
                f"has {' and '.join(said)}, but nothing says on which error it is begun anew. "
                "Add retry_sync_on=TimeoutError (an exception class, or several)."
            )
    elif spec.emitted_by:
        add(
            f"has retry_sync_on, but its rows come from the function of '{spec.emitted_by}'. Set retry_sync_on on that "
            "stream."
        )


def _check_source_state(spec: StreamSpec, add: Callable[[str], None]) -> None:
    if spec.parent or spec.emitted_by:
        giver = spec.parent or spec.emitted_by
        add(f"has source_state=True, but its rows come with those of '{giver}'. Set source_state on that stream.")
    elif spec.partitions is not None:
        add(
            "has source_state=True, which is for one resource, and is read in partitions. Leave it out; per partition: "
            "client.conditional(path, source=...)."
        )


def _check_rollup(spec: StreamSpec, specs: Mapping[str, StreamSpec], add: Callable[[str], None]) -> None:
    first = line_of(spec, specs)[-1]
    if not spec.parent:
        add("rollup is for substreams, and it has no parent. Leave out rollup, or say of which stream: parent=...")
    elif not spec.replication_key or spec.bookmark_key is None:
        add("rollup reads its first stream from where this one stands, so it needs a replication_key. Add one.")
    elif first.bookmark_key is None and not first.is_pattern and first is not spec:
        add(
            f"rollup sets back the bookmark of '{first.tap_stream_id}', which keeps none and is read whole each time. "
            "Leave out rollup."
        )
