"""What a user's catalog changes of a stream: selection, schema, keys, replication; or why it can't.

What the tap knows of itself stands above the user's word: a field that is ``unsupported`` or ``automatic`` stays
so, a forced method wins with a warning, and a replication key must be one that the stream can have.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from burler.declare.spec import StreamSpec
from burler.errors import CatalogError, DeclarationError
from burler.schema.refs import resolve_refs
from burler.singer import metadata as md
from burler.singer.catalog import Catalog, CatalogEntry
from burler.singer.metadata import FULL_TABLE, INCREMENTAL, LOG_BASED, METHODS
from burler.singer.selection import fields_selected, stream_selected, with_booleans
from burler.suggest import did_you_mean, nearest
from burler.words import some

logger = logging.getLogger(__name__)

_MOST_SHOWN = 20
# What the tap says of these is a fact, which a catalog can't change.
_FACTS = ("forced-replication-method", "valid-replication-keys")


def merge(own: Catalog, given: Catalog, *, whole: bool) -> dict[str, CatalogEntry]:
    """The streams of a run: the tap's own with the user's word on top. The tap's own order decides, not the
    catalog's: what is emitted by another stream comes after it.

    Args:
        whole: those that the catalog does not list too, deselected, so that ``--select`` can add them.

    Raises:
        CatalogError: it selects a stream that the tap does not have, or is that of another tap; ``selected`` is no
            boolean; a schema has a reference that can't be resolved.
    """
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
            merged[name] = _merged(mine, given.entries[name])
        elif whole:
            root = {**mine.metadata.get((), {}), "selected": False}
            merged[name] = replace(mine, metadata={**mine.metadata, (): root})
    return merged


def _merged(mine: CatalogEntry, given: CatalogEntry) -> CatalogEntry:
    """The entry to run by: the user's schema and metadata over the tap's own."""
    name = mine.tap_stream_id
    theirs = with_booleans(given.metadata, stream=name)
    merged = {crumb: dict(values) for crumb, values in mine.metadata.items()}
    for crumb, values in theirs.items():
        here = merged.setdefault(crumb, {})
        said = here.get("inclusion")
        here.update((key, value) for key, value in values.items() if value is not None and key not in _FACTS)
        if said in (md.UNSUPPORTED, md.AUTOMATIC) or (said and here["inclusion"] != md.UNSUPPORTED):
            here["inclusion"] = said  # the tap's to say; some tools fill in 'automatic' where they find nothing
    schema = given.schema or mine.schema
    if given.schema and b'"$ref"' in msgspec.json.encode(schema):  # an old tap has printed it with references
        try:
            schema = resolve_refs(schema, source=f"the catalog's schema of stream '{name}'")
        except DeclarationError as error:
            raise CatalogError(str(error)) from None
    if stream_selected(merged, stream=name):
        _tell_of_fields(name, schema, theirs, merged)
    return replace(given, schema=schema, metadata=merged)


def _tell_of_fields(name: str, schema: Mapping[str, Any], theirs: md.MetadataMap, merged: md.MetadataMap) -> None:
    """A warning for metadata of fields that the schema does not have: it may be a slip that lets out what should
    stay, or keeps what should come. A line for fields that are selected inside one that is not."""
    known = dict(md.fields(schema))
    strange = [crumb for crumb, values in theirs.items() if crumb not in known and not _is_beside(crumb, values, known)]
    if strange:
        shown = ", ".join(_strange(crumb, known) for crumb in strange[:_MOST_SHOWN])
        more = f" and {len(strange) - _MOST_SHOWN} more" if len(strange) > _MOST_SHOWN else ""
        logger.warning(
            "stream '%s': the catalog speaks of fields that its schema does not have: %s%s", name, shown, more
        )
    out = fields_selected(known, merged, stream=name)
    lost = [md.dotted(crumb) for crumb in known if theirs.get(crumb, {}).get("selected") is True and not out[crumb]]
    if lost:
        logger.info(
            "stream '%s': selected, but they can't come since they are unsupported or inside a field that is not "
            "selected: %s",
            name,
            ", ".join(lost[:10]),
        )


def _is_beside(crumb: tuple[str, ...], values: Mapping[str, Any], known: Mapping[tuple[str, ...], Any]) -> bool:
    """The stream itself, or the items of a field that is there: some tools write a breadcrumb for them. It has no
    effect; where it is to leave them out it is told like any other that has none."""
    if not crumb:
        return True
    field = crumb
    while field and field[-1] == "items":
        field = field[:-1]
    return field in known and values.get("selected") is not False


def _strange(crumb: tuple[str, ...], known: Iterable[tuple[str, ...]]) -> str:
    """A breadcrumb that no field has, and that of the field that may be meant."""
    fields = {_name(one): one for one in known}
    near = nearest(_name(crumb), fields)
    shown = msgspec.json.encode(crumb).decode()
    return shown if near is None else f"{shown} (did you mean {msgspec.json.encode(fields[near]).decode()}?)"


def _name(crumb: tuple[str, ...]) -> str:
    return ".".join(part for part in crumb if part not in ("properties", "items"))


def key_properties(spec: StreamSpec, given: CatalogEntry | None) -> tuple[str, ...]:
    """The stream's key: the tap's own; for a stream without one, what the catalog says."""
    wanted = given.key_properties if given else ()
    if not spec.key_properties:
        return wanted
    if wanted and set(wanted) != set(spec.key_properties):
        logger.warning(
            "stream '%s': the catalog gives it the key %s, but its key is %s",
            spec.tap_stream_id,
            ", ".join(wanted),
            ", ".join(spec.key_properties),
        )
    return spec.key_properties


def replication(spec: StreamSpec, own: Mapping[str, Any], given: CatalogEntry | None) -> tuple[str, str | None]:
    """Method and replication key of a run: the user's choice where the stream leaves one.

    Args:
        own: the metadata of the stream itself, as the tap wrote it.

    Raises:
        CatalogError: a method or key that the stream can't have, or INCREMENTAL without any key.
    """
    method = _method(spec, own.get("forced-replication-method"), given)
    if method == FULL_TABLE:
        return method, None
    return method, _key(spec, method, tuple(own.get("valid-replication-keys") or ()), given)


def _method(spec: StreamSpec, forced: str | None, given: CatalogEntry | None) -> str:
    name = spec.tap_stream_id
    asked: Any = None
    if given is not None:
        asked = given.replication_method or given.metadata.get((), {}).get("forced-replication-method")
    if asked is not None and asked not in METHODS:
        hint = did_you_mean(str(asked).replace("-", "_"), METHODS)
        raise CatalogError(
            f"stream '{name}': replication method {asked!r:.60} is unknown.{hint} "
            f"Known, in capitals: {', '.join(METHODS)}."
        )
    if forced is None and (spec.emitted_by or spec.parent):
        forced = spec.replication_method  # its rows come in another stream's run, as that one is replicated
    if forced is not None:
        if asked is not None and asked != forced:
            logger.warning("stream '%s': the catalog asks for %s, but the stream is always %s", name, asked, forced)
        return forced
    if asked == LOG_BASED and spec.replication_method != LOG_BASED:
        raise CatalogError(
            f"the catalog asks for LOG_BASED replication of stream '{name}', which has no log. "
            f"It can be {FULL_TABLE} or {INCREMENTAL}."
        )
    return asked or spec.replication_method


def _key(spec: StreamSpec, method: str, valid: tuple[str, ...], given: CatalogEntry | None) -> str | None:
    name = spec.tap_stream_id
    asked = given.replication_key if given is not None else None
    if spec.bookmark is not None or method == LOG_BASED:
        if asked is not None and asked != spec.replication_key and spec.bookmark is not None:
            logger.warning(
                "stream '%s': the catalog gives it the key '%s', but its bookmark comes from a function (%s)",
                name,
                asked,
                spec.bookmark.place,
            )
        return spec.replication_key
    valid = valid or ((spec.replication_key,) if spec.replication_key else ())
    if asked is not None:
        if asked not in valid:
            known = ", ".join(repr(key) for key in valid) or "none"
            raise CatalogError(
                f"the catalog gives stream '{name}' the replication key '{asked}'. It can have: {known}."
            )
        return asked
    key = spec.replication_key or (valid[0] if len(valid) == 1 else None)
    if key is None and method == INCREMENTAL and not (spec.emitted_by or spec.parent):
        listed = ", ".join(f'"{key}"' for key in valid)
        cure = f'Choose one in its metadata: "replication-key": one of {listed}' if valid else "Make it FULL_TABLE"
        raise CatalogError(f"stream '{name}' is INCREMENTAL and has no replication key. {cure}.")
    return key
