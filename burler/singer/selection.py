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


def deselected(metadata: md.MetadataMap, *, stream: str) -> tuple[tuple[str, ...], ...]:
    """The breadcrumbs of all fields that are known and not wanted."""
    return tuple(crumb for crumb in metadata if crumb and not field_selected(metadata, crumb, stream=stream))


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

    pattern: str
    keep: bool

    def field_of(self, stream: str) -> str | None:
        """The field pattern where the rule speaks of a stream's fields, "" where it speaks of the stream, None
        where it does not speak of it. A stream's own name may hold dots (``public.users``)."""
        if fnmatchcase(stream, self.pattern):
            return ""
        at = self.pattern.find(".")
        while at >= 0:
            if fnmatchcase(stream, self.pattern[:at]):
                return self.pattern[at + 1 :]
            at = self.pattern.find(".", at + 1)
        return None


def parse_select(text: str) -> tuple[SelectRule, ...]:
    """``'contacts,contacts.name,!contacts.email'`` as rules.

    Raises:
        CatalogError: an empty part.
    """
    rules = []
    for part in text.split(","):
        part = part.strip()
        pattern = part.removeprefix("!").strip()
        if not pattern or pattern.startswith((".", "!")) or pattern.endswith("."):
            raise CatalogError(
                f"--select {text!r}: an empty part. Write stream or stream.field, parted by commas, '!' leaves out."
            )
        rules.append(SelectRule(pattern, not part.startswith("!")))
    return tuple(rules)


def apply_select(
    rules: tuple[SelectRule, ...],
    schemas: Mapping[str, Mapping[str, Any]],
    metadata: dict[str, md.MetadataMap],
) -> dict[str, md.MetadataMap]:
    """Metadata with ``selected`` set as ``--select`` says; the maps given are not changed.

    A stream is on if a rule keeps it or one of its fields (or if all rules leave out). Where rules keep
    fields of a stream, its other fields are off; ``automatic`` fields stay in any case. Later rules win.

    Raises:
        CatalogError: a rule that matches no stream or no field.
    """
    out = {name: {crumb: dict(entry) for crumb, entry in compiled.items()} for name, compiled in metadata.items()}
    unused = set(rules)
    default_on = not any(rule.keep for rule in rules)
    for name, schema in schemas.items():
        streamwide = [rule for rule in rules if rule.field_of(name) == ""]
        of_fields = {rule: field for rule in rules if (field := rule.field_of(name))}
        unused.difference_update(streamwide)
        on = streamwide[-1].keep if streamwide else default_on or any(rule.keep for rule in of_fields)
        compiled = out.setdefault(name, {})
        compiled.setdefault((), {})["selected"] = on
        if of_fields:
            unused -= _select_fields(of_fields, schema, compiled)
    if unused:
        wanted = next(rule for rule in rules if rule in unused).pattern
        known = ", ".join(sorted(schemas)) or "none"
        raise CatalogError(f"--select: nothing is called '{wanted}'. Streams: {known}.")
    return out


def _select_fields(
    rules: Mapping[SelectRule, str], schema: Mapping[str, Any], compiled: md.MetadataMap
) -> set[SelectRule]:
    """Set ``selected`` of every field; gives the rules that matched one. A kept field keeps its parents."""
    crumbs = {crumb: ".".join(md.names(crumb)) for crumb, _node in md.fields(schema)}
    selected = dict.fromkeys(crumbs, not any(rule.keep for rule in rules))
    used: set[SelectRule] = set()
    for rule, pattern in rules.items():
        named = {crumb for crumb, name in crumbs.items() if fnmatchcase(name, pattern)}
        above = {crumb[:i] for crumb in named for i in range(2, len(crumb))} if rule.keep else set()
        if named:
            used.add(rule)
        for crumb in crumbs:
            if crumb in above or any(crumb[:i] in named for i in range(2, len(crumb) + 1)):
                selected[crumb] = rule.keep
    for crumb, wanted in selected.items():
        compiled.setdefault(crumb, {})["selected"] = wanted
    return used
