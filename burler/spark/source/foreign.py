"""Any Singer tap's catalog: discovered, and given back as it came with one stream selected.

Taps fail over keys that vanish from their own catalog, so nothing but the selection is changed in it. It is written
both ways: as metadata, and as ``selected`` in the schema, which taps of the first years look for.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from burler.errors import CatalogError, DeclarationError, StreamError
from burler.schema.refs import resolve_refs
from burler.singer import metadata as md
from burler.singer.catalog import CatalogEntry, catalog_from_wire
from burler.singer.select import SelectRule, apply_select
from burler.singer.selection import fields_selected, prune
from burler.spark.source.command import CATALOG, CONFIG, PROPERTIES, Command, Running
from burler.spark.source.declared import Declared
from burler.suggest import did_you_mean
from burler.words import some

logger = logging.getLogger(__name__)

_SHOWN = 120
_HELP_SECONDS = 60.0
"""A program that does not know ``--help`` may begin to work; it is ended then."""


def discover(command: Command, config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The catalog that ``--discover`` prints.

    Raises:
        CatalogError: the tap failed, or printed no catalog.
    """
    with Running(command, ["--discover"], files={CONFIG: config}, config=config or {}) as tap:
        text = b"".join(tap.blocks())
        code = tap.end()
        said = tap.last_words()
        if code:
            raise CatalogError(
                f"command '{command.name}': --discover ended with code {code}. "
                f"It said last: {said or 'nothing'}. Try: {command.beginning} --config CONFIG --discover"
            )
        try:
            found = json.loads(text)
            if not isinstance(found, dict) or not isinstance(found.get("streams"), list):
                raise ValueError
        except (ValueError, RecursionError):
            shown = tap.without_secrets(text[:_SHOWN].decode("utf-8", "replace")).strip() or "nothing"
            raise CatalogError(
                f"command '{command.name}': --discover printed no catalog but: {shown}. A tap that can't discover "
                "needs the option 'catalog'"
            ) from None
    return found


def catalog_flags(command: Command) -> tuple[str, ...]:
    """How the tap wants its catalog: by the flags that its ``--help`` names, ``--catalog`` if it names none.

    Both where both are there: some taps list ``--catalog``, since their library does, and read ``--properties``.
    """
    with Running(command, ["--help"], files={}, config={}) as tap:
        text = b"".join(tap.blocks(_HELP_SECONDS)).decode("utf-8", "replace")
    text += tap.last_words()
    return tuple(flag for flag in (CATALOG, PROPERTIES) if flag in text) or (CATALOG,)


def look(
    command: Command, config: Mapping[str, Any] | None, catalog: Mapping[str, Any] | None
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The catalog, discovered unless given, and the flags for it: two starts of the tap, side by side."""
    if catalog is not None:
        return catalog, catalog_flags(command)
    with ThreadPoolExecutor(1) as beside:
        flags = beside.submit(catalog_flags, command)
        found = discover(command, config)
        return found, flags.result()


def select(
    wire: Mapping[str, Any], stream: str, patterns: Sequence[str], *, chosen: bool, source: str
) -> tuple[dict[str, Any], Declared]:
    """The catalog with that one stream selected, and the stream's columns.

    Args:
        patterns: of the fields that are wanted, as in ``--select`` behind the stream's name; none: all.
        chosen: the catalog is the user's: the fields that it selects are those that are wanted.
        source: whose catalog it is, for errors.

    Raises:
        CatalogError: no catalog, no such stream or field, or a schema that can't be read.
    """
    source = "option 'catalog'" if chosen else source
    entries = catalog_from_wire(wire, source=source).entries
    entry = _entry(entries, stream, source)
    name = entry.tap_stream_id
    wanted = _wanted(entry, patterns)
    changed = copy.deepcopy(dict(wire))
    for item in changed["streams"]:
        is_it = (item.get("tap_stream_id") or item.get("stream")) == name
        _select_stream(item, is_it)
        if is_it:
            _select_fields(item, wanted)
    try:
        schema = resolve_refs(entry.schema, source=f"{source}, stream '{name}'")
    except DeclarationError as error:
        raise CatalogError(str(error)) from None
    selection = {crumb: {"selected": on} for crumb, on in wanted.items()}
    pruned = prune(schema, selection, stream=name)
    known = frozenset(".".join(md.names(crumb)) for crumb, _ in md.fields(schema))
    names = frozenset({name, entry.stream, entry.emitted_name})
    return changed, Declared(name, names, pruned, entry.key_properties, _replication_key(entry), known)


def _entry(entries: Mapping[str, CatalogEntry], stream: str, source: str) -> CatalogEntry:
    """The stream of that id; else the one of that name; without a name, the only one there is."""
    if stream in entries:
        return entries[stream]
    named = [entry for entry in entries.values() if not stream or stream in (entry.stream, entry.emitted_name)]
    if len(named) == 1:
        return named[0]
    if not entries:
        raise CatalogError(f"{source}: its catalog lists no stream. Does its config name what it should read?")
    if not stream:
        raise CatalogError(
            f"{source}: has {len(entries)} streams; say which by option 'stream'. Streams: {some(list(entries))}."
        )
    raise CatalogError(
        f"{source}: {'several streams are' if named else 'no stream is'} called '{stream}'."
        f"{did_you_mean(stream, entries)} Streams: {some(list(entries))}."
    )


def _replication_key(entry: CatalogEntry) -> str | None:
    """The field that the stream's bookmark follows, where it is replicated by one."""
    root = entry.metadata.get((), {})
    method = root.get("forced-replication-method") or entry.replication_method
    valid = list(root.get("valid-replication-keys") or ())
    key = entry.replication_key or (valid[0] if len(valid) == 1 else None)
    return key if method in (None, "INCREMENTAL") else None


def _wanted(entry: CatalogEntry, patterns: Sequence[str]) -> dict[tuple[str, ...], bool]:
    """Whether each field comes; what is automatic or a key always does."""
    name = entry.tap_stream_id
    metadata: md.MetadataMap = {crumb: dict(values) for crumb, values in entry.metadata.items()}
    for key in (*entry.key_properties, entry.replication_key):
        held: dict[str, Any] = metadata.setdefault(("properties", key), {}) if key is not None else {}
        if held.get("inclusion") != md.UNSUPPORTED:
            held["inclusion"] = md.AUTOMATIC
    if patterns:
        rules = tuple(SelectRule(f"{name}.{part.removeprefix('!')}", not part.startswith("!")) for part in patterns)
        try:
            metadata = apply_select(rules, {name: entry.schema}, {name: metadata})[name]
        except CatalogError as error:
            text = str(error).removeprefix("--select: ")
            raise CatalogError(f"option 'fields': {text}") from None
    crumbs = [crumb for crumb, _ in md.fields(entry.schema)]
    return fields_selected(crumbs, metadata, stream=name)


def _select_stream(item: dict[str, Any], on: bool) -> None:
    """In metadata, and in the ways of older taps; of other streams only what is there is taken away."""
    listed = item.get("metadata")
    if isinstance(listed, list):
        root = next((one for one in listed if not one.get("breadcrumb")), None)
        if root is None and on:
            root = {"breadcrumb": [], "metadata": {}}
            listed.insert(0, root)
        if root is not None:
            root["metadata"]["selected"] = on
    elif on:
        item["metadata"] = [{"breadcrumb": [], "metadata": {"selected": True}}]
    schema = item.get("schema")
    for holder in (item, schema):
        if isinstance(holder, dict) and (on or "selected" in holder):
            holder["selected"] = on


def _select_fields(item: dict[str, Any], wanted: Mapping[tuple[str, ...], bool]) -> None:
    by_crumb = {}
    for one in item["metadata"]:
        crumb = one.get("breadcrumb")
        if isinstance(crumb, list) and crumb:
            by_crumb[md.plain_crumb([str(part) for part in crumb])] = one["metadata"]
    for crumb, on in wanted.items():
        held = by_crumb.get(crumb)
        if held is None and (len(crumb) == 2 or not on):
            held = {}
            item["metadata"].append({"breadcrumb": list(crumb), "metadata": held})
        if held is not None and held.get("inclusion") != md.UNSUPPORTED:
            held["selected"] = on
    properties = (item.get("schema") or {}).get("properties")
    for name, node in properties.items() if isinstance(properties, dict) else ():
        if isinstance(node, dict):
            node["selected"] = wanted.get(("properties", name), True)


def failed(stream: str, command: Command, code: int, rows: int, said: str) -> StreamError:
    """A tap that ended badly."""
    return StreamError(
        stream,
        f"stream '{stream}': command '{command.name}' ended with code {code} after {rows} row(s). "
        f"It said last: {said or 'nothing'}. No row of this read counts; run the command by itself to see more",
    )
