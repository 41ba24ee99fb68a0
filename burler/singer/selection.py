"""Which streams and fields are wanted: catalog metadata and ``--select`` patterns.

Rules (specs 8): ``unsupported`` never; ``automatic`` always; then ``selected``; then
``selected-by-default``; streams of a catalog default off, fields of a selected stream default on; a field
that is not selected takes its children with it. ``selected`` may be text ("true"/"false").
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from burler.errors import CatalogError
from burler.singer import metadata as md

logger = logging.getLogger(__name__)

_LEGACY_KEYS = ("selected", "inclusion")


def as_bool(value: Any, *, place: str) -> bool | None:
    """``selected`` as a bool; None if it says nothing. Text is read, with a warning.

    Raises:
        CatalogError: neither a bool, null, nor the text "true" or "false".
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        logger.warning("%s: 'selected' is the text %r; read as a boolean", place, value)
        return value.strip().lower() == "true"
    raise CatalogError(f"{place}: 'selected' must be true or false, not {value!r}.")


def stream_selected(metadata: md.MetadataMap, *, stream: str) -> bool:
    """Whether a catalog's metadata selects a stream."""
    root = metadata.get((), {})
    if root.get("inclusion") == md.UNSUPPORTED:
        return False
    if root.get("inclusion") == md.AUTOMATIC:
        return True
    chosen = as_bool(root.get("selected"), place=f"stream '{stream}'")
    if chosen is not None:
        return chosen
    return bool(as_bool(root.get("selected-by-default"), place=f"stream '{stream}'"))


def field_selected(metadata: md.MetadataMap, crumb: tuple[str, ...], *, stream: str) -> bool:
    """Whether one field of a selected stream is wanted, its parents left aside."""
    entry = metadata.get(crumb, {})
    inclusion = entry.get("inclusion")
    if inclusion == md.UNSUPPORTED:
        return False
    if inclusion == md.AUTOMATIC:
        return True
    place = f"stream '{stream}', field {'.'.join(md.names(crumb))}"
    for key in ("selected", "selected-by-default"):
        chosen = as_bool(entry.get(key), place=place)
        if chosen is not None:
            return chosen
    return True


def prune(schema: Mapping[str, Any], metadata: md.MetadataMap, *, stream: str) -> dict[str, Any]:
    """The schema of what is emitted: unselected fields left out at every depth. The input is not changed."""
    return _prune(schema, metadata, stream, ())


def _prune(node: Mapping[str, Any], metadata: md.MetadataMap, stream: str, path: tuple[str, ...]) -> dict[str, Any]:
    out = {key: value for key, value in node.items() if key not in _LEGACY_KEYS}
    properties = node.get("properties")
    if isinstance(properties, Mapping):
        kept: dict[str, Any] = {}
        for name, sub in properties.items():
            crumb = (*path, "properties", name)
            if field_selected(metadata, crumb, stream=stream):
                kept[name] = _prune(sub, metadata, stream, crumb) if isinstance(sub, Mapping) else sub
        out["properties"] = kept
        if isinstance(node.get("required"), list):
            required = [name for name in node["required"] if name in kept or name not in properties]
            out["required"] = required
            if not required:
                # Draft 4 asks for at least one entry, so an emptied list goes altogether.
                del out["required"]
    if isinstance(node.get("items"), Mapping):
        out["items"] = _prune(node["items"], metadata, stream, (*path, "items"))
    return out


@dataclass(frozen=True, slots=True)
class SelectRule:
    """One part of ``--select``: ``contacts``, ``contacts.name``, ``!contacts.email``, with ``*`` and ``?``."""

    stream: str
    field: str | None
    keep: bool


def parse_select(text: str) -> tuple[SelectRule, ...]:
    """``'contacts,contacts.name,!contacts.email'`` as rules.

    Raises:
        CatalogError: an empty part.
    """
    rules = []
    for part in text.split(","):
        part = part.strip()
        keep = not part.startswith("!")
        stream, _, field = part.lstrip("!").partition(".")
        if not stream:
            raise CatalogError(
                f"--select {text!r}: an empty part. Write stream or stream.field, separated by commas, '!' to leave out."
            )
        rules.append(SelectRule(stream, field or None, keep))
    return tuple(rules)


def apply_select(
    rules: tuple[SelectRule, ...],
    schemas: Mapping[str, Mapping[str, Any]],
    metadata: dict[str, md.MetadataMap],
) -> dict[str, md.MetadataMap]:
    """Metadata with ``selected`` set as ``--select`` says; the maps given are not changed.

    A stream is on if a rule keeps it or one of its fields (or if all rules leave out). Where rules keep
    fields of a stream, its other fields are off; ``automatic`` fields stay in any case.

    Raises:
        CatalogError: a rule that matches no stream or no field.
    """
    out = {name: {crumb: dict(entry) for crumb, entry in compiled.items()} for name, compiled in metadata.items()}
    unused = set(rules)
    default_on = not any(rule.keep for rule in rules)
    for name, schema in schemas.items():
        mine = [rule for rule in rules if fnmatchcase(name, rule.stream)]
        unused.difference_update(rule for rule in mine if rule.field is None)
        streamwide = [rule for rule in mine if rule.field is None]
        on = streamwide[-1].keep if streamwide else default_on or any(rule.keep for rule in mine)
        compiled = out.setdefault(name, {})
        compiled.setdefault((), {})["selected"] = on
        unused -= _select_fields(mine, schema, compiled)
    if unused:
        rule = sorted(unused, key=lambda rule: (rule.stream, rule.field or ""))[0]
        wanted = rule.stream if rule.field is None else f"{rule.stream}.{rule.field}"
        known = ", ".join(sorted(schemas)) or "none"
        raise CatalogError(f"--select: nothing is called '{wanted}'. Streams: {known}.")
    return out


def _select_fields(rules: list[SelectRule], schema: Mapping[str, Any], compiled: md.MetadataMap) -> set[SelectRule]:
    used: set[SelectRule] = set()
    of_fields = [rule for rule in rules if rule.field is not None]
    if not of_fields:
        return used
    only_named = any(rule.keep for rule in of_fields)
    for crumb, _node in md.fields(schema):
        name = ".".join(md.names(crumb))
        selected = not only_named
        for rule in of_fields:
            pattern = rule.field or ""
            inside = fnmatchcase(name, pattern) or fnmatchcase(name, pattern + ".*")
            leads_there = rule.keep and fnmatchcase(pattern, name + ".*")
            if inside or leads_there:
                selected = rule.keep
            if inside:
                used.add(rule)
        compiled.setdefault(crumb, {})["selected"] = selected
    return used
