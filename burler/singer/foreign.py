"""Metadata and selection as other tools write them, in the form that burler works on.

Meltano writes ``selected`` and the replication keys both into the entry and into metadata; Stitch and old
``--properties`` files write ``selected`` and ``inclusion`` into schema nodes; some tools write a breadcrumb as
dotted text, step into union branches, or list a breadcrumb twice. Where two places speak, metadata wins.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from burler.errors import CatalogError
from burler.schema_tree import UNIONS
from burler.singer import metadata as md
from burler.singer.keys import wire_key

logger = logging.getLogger(__name__)

_SCHEMA_WORDS = ("selected", "inclusion")
_INCLUSIONS = (md.AUTOMATIC, md.AVAILABLE, md.UNSUPPORTED)


def read_metadata(entries: Any, schema: Mapping[str, Any], *, place: str) -> md.MetadataMap:
    """A catalog entry's metadata in map form; the input is not changed.

    A breadcrumb may be a list of names, or text (``properties.address.city``, ``address.city``, ``""`` for the
    stream). Steps into union branches are left out. Entries of one breadcrumb are one, later values win; where
    they contradict each other there is a warning. Underscored keys (``selected_by_default``) are read.

    Raises:
        CatalogError: of another shape, or an ``inclusion`` that Singer does not know.
    """
    compiled: md.MetadataMap = {}
    clashes: list[str] = []
    if entries is not None and not isinstance(entries, list | tuple) and entries != {}:
        raise _wrong(place)
    for entry in entries or ():
        if not isinstance(entry, Mapping) or not isinstance(entry.get("metadata"), Mapping):
            raise _wrong(place)
        crumb = _crumb(entry.get("breadcrumb"), schema, place)
        values = {_known_name(key): value for key, value in entry["metadata"].items()}
        here = compiled.setdefault(crumb, {})
        clashes += [
            f"'{key}' of {md.dotted(crumb) or 'the stream'}"
            for key, value in values.items()
            if key in here and here[key] != value
        ]
        here.update(values)
        if here.get("inclusion") not in (None, *_INCLUSIONS):
            shown = f"field {md.dotted(crumb)}: " if crumb else ""
            raise CatalogError(
                f"{place}: {shown}'inclusion' must be one of {', '.join(_INCLUSIONS)}, not {here['inclusion']!r:.60}."
            )
    if clashes:
        logger.warning("%s: metadata says two things of %s; the later one counts", place, ", ".join(clashes[:5]))
    return compiled


def _wrong(place: str) -> CatalogError:
    return CatalogError(f'{place}: \'metadata\' must be a list of {{"breadcrumb": [...], "metadata": {{...}}}}.')


def _known_name(key: Any) -> Any:
    """Singer's own keys with underscores are read; ``replication_method`` here is the user's choice."""
    if not isinstance(key, str) or key in ("replication_method", "replication_key"):
        return key.replace("_", "-") if isinstance(key, str) else key
    return wire_key(key)


def _crumb(given: Any, schema: Mapping[str, Any], place: str) -> tuple[str, ...]:
    if isinstance(given, str):
        return _from_text(given, schema, place)
    if not isinstance(given, list | tuple):
        raise _wrong(place)
    parts = []
    for i, part in enumerate(given):
        if isinstance(part, int) and not isinstance(part, bool) and i and given[i - 1] in UNIONS:
            part = str(part)  # a branch's number
        if not isinstance(part, str):
            raise _wrong(place)
        parts.append(part)
    return md.plain_crumb(parts)


def _from_text(text: str, schema: Mapping[str, Any], place: str) -> tuple[str, ...]:
    """A breadcrumb that was written as text: whole (``properties.a``), or the names alone (``a``)."""
    if not text:
        return ()
    for crumb, _node in md.fields(schema):
        if text in (".".join(crumb), ".".join(md.names(crumb)), md.dotted(crumb)):
            return crumb
    parts = text.split(".")
    if parts[0] == "properties":
        if len(parts) == 1 or not parts[-1]:
            raise _wrong(place)
        return md.plain_crumb(parts)
    return tuple(part for name in parts for part in ("properties", name))


def adopt_schema_words(item: Mapping[str, Any], schema: Mapping[str, Any], compiled: md.MetadataMap) -> None:
    """Take what the entry and the schema's nodes say on selection into ``compiled``, where it says nothing."""
    holders: list[tuple[tuple[str, ...], Any]] = [((), item), ((), schema), *md.fields(schema)]
    for crumb, holder in holders:
        if not isinstance(holder, Mapping):
            continue
        for key in _SCHEMA_WORDS:
            value = holder.get(key)
            if value is None or (key == "inclusion" and value not in _INCLUSIONS):
                continue
            if compiled.get(crumb, {}).get(key) is None:
                compiled.setdefault(crumb, {})[key] = value
    if item.get("is_view") is not None:
        compiled.setdefault((), {}).setdefault("is-view", item["is_view"])
