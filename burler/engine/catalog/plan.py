"""The plan of a run: which streams, in which order, with which schema; or what stands in the way."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from burler.declare.spec import StreamSpec, UserFunction
from burler.engine.catalog import overrides
from burler.engine.catalog.key_checks import check_key
from burler.errors import CatalogError, DeclarationError
from burler.singer import metadata as md
from burler.singer import state as st
from burler.singer.catalog import Catalog, CatalogEntry
from burler.singer.metadata import FULL_TABLE
from burler.singer.select import apply_select, parse_select
from burler.singer.selection import deselected, prune, stream_selected
from burler.suggest import did_you_mean
from burler.words import some

logger = logging.getLogger(__name__)


_FORMATS = {"date-time": "date-time", "date": "date", "singer.decimal": "decimal"}


def key_format(schema: Mapping[str, Any], key: str) -> str | None:
    """What a schema says of the text of a key: "date-time", "date", "decimal" (``singer.decimal``), or None."""
    node = (schema.get("properties") or {}).get(key)
    said = node.get("format") if isinstance(node, dict) else None
    return _FORMATS.get(said) if isinstance(said, str) else None


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

    def key_format(self, key: str) -> str | None:
        """What the schema says of a key's text: "date-time", "date", "decimal" (``singer.decimal``), or None."""
        return key_format(self.schema, key)

    def first_bookmark(self, start_date: str | None) -> str | None:
        """``start_date``, unless the schema says that the values of the bookmark's key are numbers: a sequence of the
        source's knows no time."""
        node = (self.schema.get("properties") or {}).get(self.bookmark_key)
        said = node.get("type") if isinstance(node, dict) else None
        types = {said} if isinstance(said, str) else set(said or ())
        return None if types and types <= {"integer", "number", "null"} else start_date

    @property
    def order(self) -> str:
        """The order of the rows by ``replication_key``: what is declared holds of the declared key alone; where a
        pattern declares it, of whichever key is chosen."""
        if self.spec.found or self.replication_key in (None, self.spec.replication_key):
            return self.spec.order
        return "none"


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One sync function to run, and the selected streams that its rows belong to (itself first).

    ``pushes``: the function goes on giving rows for ever; ``first`` is then the sync function that it may call itself.
    """

    spec: StreamSpec
    streams: tuple[PlannedStream, ...]
    pushes: bool = False
    first: UserFunction | None = None

    def pushing(self) -> PlannedRun:
        """The run of the stream's tail function, which stands in the place of its sync function."""
        spec = replace(self.spec, sync=self.spec.tail, resumable_by=None)
        name = spec.tap_stream_id
        streams = tuple(replace(one, spec=spec) if one.tap_stream_id == name else one for one in self.streams)
        return PlannedRun(spec, streams, pushes=True, first=self.spec.sync)


def make_plan(
    specs: Mapping[str, StreamSpec],
    own: Catalog,
    *,
    given: Catalog | None = None,
    select: str | None = None,
    state: Mapping[str, Any] | None = None,
    versions: bool = True,
    tail: bool = False,
) -> tuple[PlannedRun, ...]:
    """What to run, in order; a run that was interrupted goes on with the stream it was in.

    Args:
        own: the tap's own catalog; ``given`` the user's (``--catalog``), whose schemas and metadata win.
        select: ``--select`` patterns, laid over the catalog where there is one. Without catalog and patterns,
            all streams are selected but those that the tap deselects by default.
        tail: also streams that have a tail function alone.

    Raises:
        CatalogError: the catalog or the patterns name what the tap does not have, or ask for what it can't do.
    """
    entries = dict(own.entries) if given is None else _merge(own, given, whole=select is not None)
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
    planned = {name: _as_its_root(stream, planned.get(_run_of(stream.spec))) for name, stream in planned.items()}
    _refuse_one_name_twice(planned.values())
    by_run: dict[str, list[PlannedStream]] = {}
    for name in specs:
        if name in planned:
            by_run.setdefault(_run_of(specs[name]), []).append(planned[name])
    runs = []
    current = st.get_currently_syncing(dict(state or {}))
    if current is not None and current in specs:
        current = _run_of(specs[current])  # a substream: its line begins with the first stream
    for name in _rotate(list(specs), current):
        streams = by_run.get(name)
        if streams and specs[name].sync is None and specs[name].tail is not None and not tail:
            logger.warning("stream '%s': has a tail function alone; it comes in a tail run only (--tail)", name)
        elif streams and (specs[name].sync or specs[name].tail) is not None:
            streams.sort(key=lambda stream: stream.tap_stream_id != name)
            runs.append(PlannedRun(specs[name], tuple(streams)))
    return tuple(runs)


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


def _run_of(spec: StreamSpec) -> str:
    """The stream in whose run this one is synced."""
    return spec.root or spec.emitted_by or spec.tap_stream_id


def _merge(own: Catalog, given: Catalog, *, whole: bool) -> dict[str, CatalogEntry]:
    """The streams of the run: the tap's own with the user's word on top. The tap's own order decides, not the
    catalog's: what is emitted by another stream comes after it. ``whole``: those that the catalog does not list
    too, deselected, so that ``--select`` can add them."""
    strange = [name for name in given.entries if name not in own.entries]
    for name in strange:
        if not stream_selected(given.entries[name].metadata, stream=name):
            continue
        raise CatalogError(
            f"the catalog selects stream '{name}', which this tap does not have.{did_you_mean(name, own.entries)} "
            f"Streams: {some(list(own.entries))}. Make the catalog anew: burler discover APP"
        )
    if strange and len(strange) == len(given.entries):
        raise CatalogError(
            f"the catalog lists no stream of this tap, but {some(strange)}. Is it the catalog of another tap? "
            f"Streams: {some(list(own.entries))}. Make the catalog anew: burler discover APP"
        )
    for name in strange:
        logger.warning("the catalog lists stream '%s', which this tap does not have; it is not selected", name)
    merged = {}
    for name, mine in own.entries.items():
        if name in given.entries:
            merged[name] = overrides.merge(mine, given.entries[name])
        elif whole:
            root = {**mine.metadata.get((), {}), "selected": False}
            merged[name] = replace(mine, metadata={**mine.metadata, (): root})
    return merged


def _plan_stream(
    spec: StreamSpec,
    entry: CatalogEntry,
    metadata: md.MetadataMap,
    own: CatalogEntry,
    given: CatalogEntry | None,
    versions: bool,
) -> PlannedStream:
    name = spec.tap_stream_id
    root = metadata.get((), {})
    method, replication_key = overrides.replication(spec, own.metadata.get((), {}), given)
    keys = overrides.key_properties(spec, given, root)
    resumed = spec.resumable_by if method == FULL_TABLE else None
    metadata = _with_keys(metadata, (*keys, replication_key, resumed), method, replication_key)
    schema = prune(entry.schema, metadata, stream=name)
    fields = schema.get("properties") or {}
    needed: list[tuple[str, str | None]] = [("key property", key) for key in keys]
    needed += [("replication key", replication_key), ("the field of resumable_by,", resumed)]
    for what, field in needed:
        if field is not None and field not in fields:
            known = some(list(entry.schema.get("properties") or {}))
            raise _missing(spec, given, field, f"{what} '{field}' is not in the schema. Its fields: {known}.")
    if replication_key in st.RESERVED:
        raise DeclarationError(
            f"stream '{name}' ({spec.place}): '{replication_key}' can't be the replication key: a state has something "
            "else under that name. Leave replication_key out, and give the value with @tap.bookmark."
        )
    full_table = method == FULL_TABLE
    check_key(spec, None if full_table else replication_key, schema)
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


def _missing(spec: StreamSpec, given: CatalogEntry | None, field: str, told: str) -> CatalogError | DeclarationError:
    """A field that is needed and not there: by the catalog's fault, or the tap's."""
    if given is not None and (given.schema or field not in (*spec.key_properties, spec.replication_key)):
        return CatalogError(f"the catalog's stream '{spec.tap_stream_id}': {told}")
    return DeclarationError(f"stream '{spec.tap_stream_id}' ({spec.place}): {told}")


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


def _rotate(names: list[str], currently_syncing: str | None) -> list[str]:
    """The stream that the last run was in comes first, then those after it, then those before."""
    if currently_syncing not in names:
        return names
    at = names.index(currently_syncing)
    return names[at:] + names[:at]
