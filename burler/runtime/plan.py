"""The plan of a run: which streams, in which order, with which schema; or what stands in the way."""

from __future__ import annotations

import copy
import difflib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from burler.declare.spec import FULL_TABLE, REPLICATION_METHODS, StreamSpec
from burler.errors import CatalogError, DeclarationError
from burler.singer import metadata as md
from burler.singer import state as st
from burler.singer.catalog import Catalog, CatalogEntry
from burler.singer.selection import apply_select, deselected, parse_select, prune, stream_selected

logger = logging.getLogger(__name__)


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


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One sync function to run, and the selected streams that its rows belong to (itself first)."""

    spec: StreamSpec
    streams: tuple[PlannedStream, ...]


def make_plan(
    specs: Mapping[str, StreamSpec],
    own: Catalog,
    *,
    given: Catalog | None = None,
    select: str | None = None,
    state: Mapping[str, Any] | None = None,
    versions: bool = True,
) -> tuple[PlannedRun, ...]:
    """What to run, in order; a run that was interrupted goes on with the stream it was in.

    Args:
        own: the tap's own catalog; ``given`` the user's (``--catalog``), whose schemas and metadata win.
        select: ``--select`` patterns. Without catalog and patterns, all streams are selected.

    Raises:
        CatalogError: the catalog or the patterns name what the tap does not have.
    """
    entries, metadata = _merge(own, given)
    if select is not None:
        rules = parse_select(select)
        metadata = apply_select(rules, {name: entry.schema for name, entry in entries.items()}, metadata)
    everything = given is None and select is None
    planned: dict[str, PlannedStream] = {}
    for name, entry in entries.items():
        if everything or stream_selected(metadata[name], stream=name):
            planned[name] = _plan_stream(specs[name], entry, metadata[name], versions)
    runs = []
    for name in _rotate(list(specs), st.get_currently_syncing(dict(state or {}))):
        streams = tuple(
            planned[member]
            for member in specs
            if member in planned and (member == name or specs[member].emitted_by == name)
        )
        if specs[name].sync is not None and streams:
            runs.append(PlannedRun(specs[name], streams))
    return tuple(runs)


def _merge(own: Catalog, given: Catalog | None) -> tuple[dict[str, CatalogEntry], dict[str, md.MetadataMap]]:
    """The streams of the run, and their metadata: the tap's own with the user's on top."""
    if given is None:
        return dict(own.entries), {name: copy.deepcopy(entry.metadata) for name, entry in own.entries.items()}
    entries: dict[str, CatalogEntry] = {}
    metadata: dict[str, md.MetadataMap] = {}
    for name, entry in given.entries.items():
        mine = own.entries.get(name)
        if mine is None:
            if not stream_selected(entry.metadata, stream=name):
                logger.warning("the catalog lists stream '%s', which this tap does not have; it is not selected", name)
                continue
            close = difflib.get_close_matches(name, own.entries, n=1)
            hint = f"Did you mean '{close[0]}'? " if close else ""
            raise CatalogError(
                f"the catalog selects stream '{name}', which this tap does not have. {hint}"
                f"Streams: {', '.join(own.entries) or 'none'}. Make the catalog anew: burler discover APP"
            )
        entries[name] = entry if entry.schema else mine
        compiled = copy.deepcopy(mine.metadata)
        _check_replication(name, entry, mine.metadata.get((), {}))
        for crumb, values in entry.metadata.items():
            compiled.setdefault(crumb, {}).update(values)
        if "forced-replication-method" in mine.metadata.get((), {}):
            compiled[()]["forced-replication-method"] = mine.metadata[()]["forced-replication-method"]
        metadata[name] = compiled
    # The tap's own order decides, not the catalog's: what is emitted by another stream comes after it.
    order = [name for name in own.entries if name in entries]
    return {name: entries[name] for name in order}, {name: metadata[name] for name in order}


def _check_replication(name: str, entry: CatalogEntry, mine: Mapping[str, Any]) -> None:
    """What a user's catalog asks for and the stream can't give (specs 8): a forced method wins, with a
    warning; a replication key must be one that the stream knows.

    Raises:
        CatalogError: another replication key.
    """
    if not stream_selected({**entry.metadata}, stream=name):
        return
    forced = mine.get("forced-replication-method")
    if entry.replication_method is not None and forced is not None and entry.replication_method != forced:
        logger.warning(
            "stream '%s': the catalog asks for %s, but the stream is always %s",
            name,
            entry.replication_method,
            forced,
        )
    valid = mine.get("valid-replication-keys") or ()
    if entry.replication_key is not None and entry.replication_key not in valid:
        known = ", ".join(repr(key) for key in valid) or "none"
        raise CatalogError(
            f"the catalog gives stream '{name}' the replication key '{entry.replication_key}'. It can have: {known}."
        )


def _plan_stream(spec: StreamSpec, entry: CatalogEntry, metadata: md.MetadataMap, versions: bool) -> PlannedStream:
    name = spec.tap_stream_id
    schema = prune(entry.schema, metadata, stream=name)
    root = metadata.get((), {})
    method = root.get("forced-replication-method") or root.get("replication-method") or spec.replication_method
    if method not in REPLICATION_METHODS:
        raise CatalogError(
            f"stream '{name}': replication method {method!r} is unknown. Known: {', '.join(REPLICATION_METHODS)}."
        )
    keys = tuple(root.get("table-key-properties") or spec.key_properties)
    fields = schema.get("properties") or {}
    for what, field in [("key property", key) for key in keys] + [("replication key", spec.replication_key)]:
        if field is not None and field not in fields:
            known = ", ".join(fields) or "none"
            raise DeclarationError(
                f"stream '{name}' ({spec.place}): {what} '{field}' is not in the schema. Its fields: {known}."
            )
    full_table = method == FULL_TABLE
    return PlannedStream(
        spec=spec,
        stream=entry.stream,
        schema=schema,
        key_properties=keys,
        replication_method=method,
        replication_key=None if full_table else spec.replication_key,
        metadata=metadata,
        deselected=deselected(metadata, stream=name),
        versions=full_table and (versions if spec.versions is None else spec.versions),
    )


def _rotate(names: list[str], currently_syncing: str | None) -> list[str]:
    """The stream that the last run was in comes first, then those after it, then those before."""
    if currently_syncing not in names:
        return names
    at = names.index(currently_syncing)
    return names[at:] + names[:at]
