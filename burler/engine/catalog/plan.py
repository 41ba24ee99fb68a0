"""The plan of a run: which streams, in which order, with which schema; or what stands in the way."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from burler.declare.checks import line_of
from burler.declare.spec import StreamSpec, UserFunction
from burler.declare.strategies import Manual
from burler.engine.catalog import user_catalog
from burler.engine.catalog.discovery import Discovery
from burler.engine.family import Family, PartitionOrder
from burler.errors import CatalogError, DeclarationError
from burler.schema_tree import types_of
from burler.singer import metadata as md
from burler.singer import state as st
from burler.singer.catalog import Catalog, CatalogEntry, catalog_from_wire
from burler.singer.keys import KEYS
from burler.singer.metadata import FULL_TABLE
from burler.singer.select import apply_select, parse_select
from burler.singer.selection import deselected, prune, stream_selected
from burler.words import some

logger = logging.getLogger(__name__)

_FORMATS = {"date-time": "date-time", "date": "date", "singer.decimal": "decimal"}


def key_format(schema: Mapping[str, Any], key: str) -> str | None:
    """What a schema says of the text of a key: "date-time", "date", "decimal" (``singer.decimal``), or None."""
    return _FORMATS.get(_format(_node(schema, key)))


def _node(schema: Mapping[str, Any], key: str | None) -> Any:
    return (schema.get("properties") or {}).get(key)


def _format(node: Any) -> Any:
    said = node.get("format") if isinstance(node, dict) else None
    return said if isinstance(said, str) else None


@dataclass(frozen=True, slots=True)
class PlannedStream:
    """One selected stream. ``schema`` holds what is emitted: selected fields only. ``deselected`` are the
    breadcrumbs of the others: known, not wanted, and not let in by an open schema either."""

    spec: StreamSpec
    stream: str
    schema: dict[str, Any]
    key_properties: tuple[str, ...]
    replication_method: str
    replication_key: str | None
    metadata: md.MetadataMap
    versions: bool
    deselected: tuple[tuple[str, ...], ...] = ()

    @property
    def tap_stream_id(self) -> str:
        """The stream's unique id: its name in state, logs and selection."""
        return self.spec.tap_stream_id

    @property
    def bookmark_key(self) -> str | None:
        """The key of the bookmark in the state; None if the stream keeps none."""
        return None if self.replication_method == FULL_TABLE else self.replication_key or self.spec.bookmark_key

    @property
    def resume_key(self) -> str | None:
        """The field by which an interrupted full table goes on; None if it begins anew."""
        below = self.spec.parent or self.spec.emitted_by
        return self.spec.resumable_by if self.replication_method == FULL_TABLE and not below else None

    def first_bookmark(self, start_date: str | None) -> str | None:
        """``start_date``, unless the schema says that the values of the bookmark's key are numbers: a sequence of the
        source's knows no time."""
        return None if _kind(self.schema, self.bookmark_key) == "number" else start_date

    def told(self, key: str) -> Any:
        """What the stream's own metadata say under a key of burler's; None where they say nothing.

        Raises:
            CatalogError: a value of another kind.
        """
        value = self.metadata.get((), {}).get(key)
        if value is None:
            return None
        try:
            return KEYS[key].read(value)
        except ValueError as wanted:
            raise CatalogError(
                f"stream '{self.tap_stream_id}': metadata '{key}' must be {wanted}, not {value!r:.60}.\n"
                "Mend it in the catalog, at the stream's entry with the breadcrumb [], or leave it out."
            ) from None

    @property
    def order(self) -> str:
        """The order of the rows by ``replication_key``: what is declared holds of the declared key alone; where a
        pattern declares it, of whichever key is chosen."""
        if self.spec.found or self.replication_key in (None, self.spec.replication_key):
            return self.spec.order
        return "none"


@dataclass(frozen=True)
class PlannedRun:
    """One sync function to run, and the selected streams that its rows belong to (itself first).

    ``specs``: all streams that come in its run, selected or not, as they are declared.
    ``pushes``: the function goes on giving rows for ever; ``first`` is then the sync function that it may call itself.
    ``unseen``: the schema of whole rows of a root that is called for its substreams alone.
    """

    spec: StreamSpec
    streams: tuple[PlannedStream, ...]
    specs: Mapping[str, StreamSpec] = field(repr=False)
    pushes: bool = False
    first: UserFunction | None = None
    unseen: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def root(self) -> str:
        """The stream whose function is called first."""
        return self.spec.tap_stream_id

    @functools.cached_property
    def by_name(self) -> dict[str, PlannedStream]:
        """The selected streams."""
        return {stream.tap_stream_id: stream for stream in self.streams}

    @functools.cached_property
    def family(self) -> Family:
        """What holds of its streams, as plain data."""
        root, specs, planned = self.root, self.specs, self.by_name
        above = {name: tuple(one.tap_stream_id for one in line_of(spec, specs)) for name, spec in specs.items()}
        wanted = {root, *(name for selected in planned for name in above[selected])}
        called = tuple(name for name, spec in specs.items() if name in wanted and spec.sync is not None)
        givers = {name: spec.emitted_by or name for name, spec in specs.items()}
        bookmarks = {name: one.spec.bookmark for name, one in planned.items() if one.spec.bookmark is not None}
        return Family(
            root=root,
            names=tuple(specs),
            selected=frozenset(planned),
            above=above,
            substreams=frozenset(name for name in specs if any(specs[one].parent for one in above[name])),
            has_substreams=any(spec.parent for spec in specs.values()),
            keys={name: (planned.get(name) or spec).bookmark_key for name, spec in specs.items()},
            key_formats={name: self._key_format(name) for name in {*planned, root}},
            resume_key=planned[root].resume_key if root in planned else None,
            tables=frozenset(name for name, one in planned.items() if one.versions),
            lookbacks={name: spec.lookback for name, spec in specs.items() if spec.lookback is not None},
            rollups=frozenset(name for name, one in planned.items() if one.spec.rollup),
            givers=givers,
            called=called,
            has_children=any(specs[name].parent for name in called),
            emits={name: frozenset(one for one in specs if givers[one] == name) for name in called},
            asks_children=frozenset(name for name, function in bookmarks.items() if "children" in function.names),
            is_partitioned=self.spec.partitions is not None,
            order=self._partition_order(),
        )

    def _partition_order(self) -> PartitionOrder | None:
        spec = self.spec
        if spec.partition_order != "asc":
            return None
        exclusive = spec.resume == "exclusive"
        return PartitionOrder(
            is_exclusive=exclusive,
            is_vouched=exclusive and isinstance(spec.strategy, Manual),
            ends_unsorted=spec.on_unsorted == "end_of_sync",
        )

    def _key_format(self, name: str) -> str | None:
        planned = self.by_name.get(name)
        if planned is None:
            key = self.spec.replication_key
            return key_format(self.unseen, key) if self.unseen is not None and key is not None else None
        saved = planned.resume_key or planned.bookmark_key
        return key_format(planned.schema, saved) if saved is not None else None

    def asks_for(self, parameter: str) -> bool:
        """Whether a function of its streams asks for a parameter of that name."""
        specs = self.specs.values()
        functions = [(spec.sync, spec.tail, spec.bookmark, spec.post_transform, spec.partitions) for spec in specs]
        setups = [spec.retry.setup for spec in specs if spec.retry is not None]
        every = [*(one for some in functions for one in some), *setups]
        return any(parameter in function.names for function in every if function is not None)

    @functools.cached_property
    def pushing(self) -> PlannedRun:
        """The run of the stream's tail function, which stands in the place of its sync function."""
        spec = replace(self.spec, sync=self.spec.tail, resumable_by=None)
        name = spec.tap_stream_id
        streams = tuple(replace(one, spec=spec) if one.tap_stream_id == name else one for one in self.streams)
        return PlannedRun(spec, streams, {**self.specs, name: spec}, True, self.spec.sync, self.unseen)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does: ``runs``, in order.

    ``specs`` are all streams that the tap has, ``catalog`` is what its functions are told of them: the user's, or the
    tap's own.
    """

    runs: tuple[PlannedRun, ...]
    specs: Mapping[str, StreamSpec]
    catalog: Catalog

    @property
    def streams(self) -> Iterator[PlannedStream]:
        """The selected streams, run by run."""
        return (stream for run in self.runs for stream in run.streams)

    @property
    def seen(self) -> set[str]:
        """The ids of the selected streams: their rows come."""
        return {name for run in self.runs for name in run.by_name}

    @property
    def unseen(self) -> set[str]:
        """The ids of those that are read for their substreams alone."""
        return {run.root for run in self.runs} - self.seen


def make_plan(
    found: Discovery,
    *,
    catalog: Any = None,
    select: str | None = None,
    state: Mapping[str, Any] | None = None,
    versions: bool = True,
    tail: bool = False,
) -> Plan:
    """What to run, in order; a run that was interrupted goes on with the stream it was in.

    Args:
        catalog: the user's (``--catalog``), as a plain dict; its schemas and metadata win over the tap's own.
        select: ``--select`` patterns, laid over the catalog where there is one. Without catalog and patterns,
            all streams are selected but those that the tap deselects by default.
        tail: also streams that have a tail function alone.

    Raises:
        CatalogError: the catalog or the patterns name what the tap does not have, or ask for what it can't do.
    """
    specs, own = found.specs, found.catalog
    given = None if catalog is None else catalog_from_wire(catalog)
    entries = dict(own.entries) if given is None else user_catalog.merge(own, given, whole=select is not None)
    metadata = {name: entry.metadata for name, entry in entries.items()}
    if select is not None:
        schemas = {name: entry.schema for name, entry in entries.items()}
        metadata = apply_select(parse_select(select), schemas, metadata, over=given is not None)
    everything = given is None and select is None
    planned: dict[str, PlannedStream] = {}
    for name, entry in entries.items():
        if stream_selected(metadata[name], stream=name, default=everything):
            theirs = given.entries.get(name) if given is not None else None
            planned[name] = _plan_stream(specs[name], entry, metadata[name], own.entries[name], theirs, versions)
    planned = {name: _as_its_root(stream, planned.get(stream.spec.root)) for name, stream in planned.items()}
    _refuse_one_name_twice(planned.values())
    families: dict[str, dict[str, StreamSpec]] = {}
    for name, spec in specs.items():
        families.setdefault(spec.root, {})[name] = spec
    names = list(specs)
    current = specs.get(st.get_currently_syncing(dict(state or {})) or "")
    if current is not None and current.root in specs:  # it comes first, then those after it, then the rest
        at = names.index(current.root)
        names = names[at:] + names[:at]
    runs = []
    for name in names:
        spec, family = specs[name], families.get(name, {})
        streams = [planned[one] for one in family if one in planned]
        if streams and spec.sync is None and spec.tail is not None and not tail:
            logger.warning("stream '%s': has a tail function alone; it comes in a tail run only (--tail)", name)
        elif streams and (spec.sync or spec.tail) is not None:
            streams.sort(key=lambda stream: stream.tap_stream_id != name)
            unseen = None if streams[0].tap_stream_id == name or name not in entries else entries[name].schema
            runs.append(PlannedRun(spec, tuple(streams), family, unseen=unseen))
    return Plan(tuple(runs), specs, given or own)


def _as_its_root(stream: PlannedStream, root: PlannedStream | None) -> PlannedStream:
    """A full table that comes in another stream's run is none where the user makes that one incremental: it would be
    activated with the rows of an increment, and targets would drop all others."""
    if (
        root is None
        or stream.replication_method != FULL_TABLE
        or root.spec.replication_method != FULL_TABLE
        or root.replication_method == FULL_TABLE
    ):
        return stream
    method = root.replication_method
    told = {**stream.metadata, (): {**stream.metadata.get((), {}), "replication-method": method}}
    return replace(stream, replication_method=method, versions=False, metadata=told)


def _plan_stream(
    spec: StreamSpec,
    entry: CatalogEntry,
    metadata: md.MetadataMap,
    own: CatalogEntry,
    given: CatalogEntry | None,
    versions: bool,
) -> PlannedStream:
    name = spec.tap_stream_id
    method, replication_key = user_catalog.replication(spec, own.metadata.get((), {}), given)
    keys = user_catalog.key_properties(spec, given)
    resumed = spec.resumable_by if method == FULL_TABLE else None
    metadata = _with_keys(metadata, (*keys, replication_key, resumed), method, replication_key)
    schema = prune(entry.schema, metadata, stream=name)
    fields = schema.get("properties") or {}
    needed: list[tuple[str, str | None]] = [("key property", key) for key in keys]
    needed += [("replication key", replication_key), ("the field of resumable_by,", resumed)]
    for what, key in needed:
        if key is not None and key not in fields:
            known = some(list(entry.schema.get("properties") or {}))
            by_catalog = given is not None and (given.schema or key not in (*spec.key_properties, spec.replication_key))
            where = f"the catalog's stream '{name}'" if by_catalog else spec.where
            kind = CatalogError if by_catalog else DeclarationError
            raise kind(f"{where}: {what} '{key}' is not in the schema. Its fields: {known}.")
    if replication_key in st.RESERVED:
        raise DeclarationError(
            f"{spec.where}: '{replication_key}' can't be the replication key: a state has something "
            "else under that name. Leave replication_key out, and give the value with @tap.bookmark."
        )
    full_table = method == FULL_TABLE
    if replication_key is not None and spec.bookmark is None:
        _check_key(spec, replication_key, schema)
    return PlannedStream(
        spec=spec,
        stream=entry.emitted_name,
        schema=schema,
        key_properties=keys,
        replication_method=method,
        replication_key=replication_key,
        metadata=metadata,
        deselected=deselected(metadata, stream=name),
        versions=full_table and (versions if spec.versions is None else spec.versions),
    )


def _with_keys(
    metadata: md.MetadataMap, always: Iterable[str | None], method: str, replication_key: str | None
) -> md.MetadataMap:
    """A copy in which the key fields are ``automatic``, whatever a catalog says or has lost: a row without them
    can't be told from another, nor followed by a bookmark. The stream's entry says what the run does."""
    out = {crumb: dict(values) for crumb, values in metadata.items()}
    for key in always:
        if key is not None:
            out.setdefault(("properties", key), {})["inclusion"] = md.AUTOMATIC
    root = out.setdefault((), {})
    root["replication-method"] = method
    root.pop("replication-key", None)
    if replication_key is not None:
        root["replication-key"] = replication_key
    return out


def _refuse_one_name_twice(planned: Iterable[PlannedStream]) -> None:
    """Two streams under one name on the wire would be one table to a target."""
    seen: dict[str, str] = {}
    for stream in planned:
        other = seen.setdefault(stream.stream, stream.tap_stream_id)
        if other != stream.tap_stream_id:
            raise CatalogError(
                f"the streams '{other}' and '{stream.tap_stream_id}' would both go out as '{stream.stream}'. Give one "
                "of them another 'stream' (or 'stream_alias') in the catalog, or select one of the two."
            )


def _check_key(spec: StreamSpec, key: str, schema: Mapping[str, Any]) -> None:
    """Refuse a ``lookback`` or ``signpost`` that the key's type has no room for, before the first message.

    Raises:
        DeclarationError: the schema says that the key is text, or a number where a time is needed.
    """
    kind = _kind(schema, key)
    if spec.lookback is not None and kind == "text":
        raise DeclarationError(
            f"{spec.where}: lookback: the key '{key}' is text, and nothing is so much before a text."
        )
    if isinstance(spec.lookback, timedelta) and kind == "number":
        raise DeclarationError(
            f"{spec.where}: lookback is a timedelta, but the key '{key}' is a number. Say it in its unit: lookback=100."
        )
    if spec.signpost and kind in ("text", "number"):
        raise DeclarationError(f"{spec.where}: signpost asks for a date-time or date as key, and '{key}' is a {kind}.")


def _kind(schema: Mapping[str, Any], key: str | None) -> str | None:
    """What values of a key are: "time", "number", "text"; None where the schema leaves it open."""
    node = _node(schema, key)
    types, form = set(types_of(node)) - {"null"}, _format(node)
    if types and types <= {"integer", "number"}:
        return "number"
    if types != {"string"}:
        return None
    kinds = {None: "text", "date-time": "time", "date": "time", "singer.decimal": "number"}
    return kinds.get(form)
