"""Which streams and fields are wanted, and the schema of what is emitted.

Rules: ``unsupported`` never; ``automatic`` always; then ``selected``; then
``selected-by-default``; streams of a catalog default off, fields of a selected stream default on; a field
that is not selected takes its children with it. ``selected`` may be text ("true"/"false").
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from burler.errors import CatalogError
from burler.schema_tree import UNIONS
from burler.singer import metadata as md

logger = logging.getLogger(__name__)

_LEGACY_KEYS = ("selected", "inclusion")
# What speaks of an object or a list as a whole: it need not hold of what is left of it.
_OF_THE_WHOLE = (
    "enum",
    "const",
    "not",
    "if",
    "then",
    "else",
    "minProperties",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "uniqueItems",
    "unevaluatedProperties",
)


def _read_bool(value: Any, key: str, place: str) -> bool | None:
    """``selected`` as a bool, also where it is text; None if it says nothing.

    Raises:
        CatalogError: neither a bool, null, nor the text "true" or "false".
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise CatalogError(f"{place}: '{key}' must be true or false, not {value!r:.60}.")


def _place(crumb: tuple[str, ...], stream: str) -> str:
    return f"stream '{stream}', field {md.dotted(crumb)}" if crumb else f"stream '{stream}'"


def with_booleans(metadata: md.MetadataMap, *, stream: str) -> md.MetadataMap:
    """A copy in which ``selected`` and ``selected-by-default`` are booleans, with one warning if some were text.

    Raises:
        CatalogError: one that is neither a boolean, null, nor such a text.
    """
    out = {crumb: dict(values) for crumb, values in metadata.items()}
    texts: list[str] = []
    for crumb, values in out.items():
        for key in ("selected", "selected-by-default"):
            if isinstance(values.get(key), bool | None):
                continue
            values[key] = _read_bool(values[key], key, _place(crumb, stream))
            texts.append(md.dotted(crumb) or "the stream itself")
    if texts:
        more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
        shown = ", ".join(texts[:3]) + more
        logger.warning("stream '%s': 'selected' is text (%s); read as a boolean", stream, shown)
    return out


def stream_selected(metadata: md.MetadataMap, *, stream: str, default: bool = False) -> bool:
    """Whether metadata selects a stream; ``default`` is what counts where it says nothing."""
    return _selected(metadata, (), stream, default)


def field_selected(metadata: md.MetadataMap, crumb: tuple[str, ...], *, stream: str) -> bool:
    """Whether one field of a selected stream is wanted, its parents left aside."""
    return _selected(metadata, crumb, stream, True)


def _selected(metadata: md.MetadataMap, crumb: tuple[str, ...], stream: str, default: bool) -> bool:
    entry = metadata.get(crumb)
    if not entry:
        return default
    if entry.get("inclusion") in (md.UNSUPPORTED, md.AUTOMATIC):
        return bool(entry["inclusion"] == md.AUTOMATIC)
    for key in ("selected", "selected-by-default"):
        value = entry.get(key)
        if isinstance(value, bool):
            return value
        if value is not None:
            place = _place(crumb, stream)
            if isinstance(value, str):
                logger.warning("%s: 'selected' is the text %r; read as a boolean", place, value)
            return bool(_read_bool(value, "selected", place))
    return default


def fields_selected(
    crumbs: Iterable[tuple[str, ...]], metadata: md.MetadataMap, *, stream: str
) -> dict[tuple[str, ...], bool]:
    """Whether each field comes out, its parents taken into account. ``crumbs``: parents before children."""
    out: dict[tuple[str, ...], bool] = {}
    for crumb in crumbs:
        out[crumb] = out.get(md.parent_of(crumb), True) and field_selected(metadata, crumb, stream=stream)
    return out


def deselected(metadata: md.MetadataMap, *, stream: str) -> tuple[tuple[str, ...], ...]:
    """The breadcrumbs of all fields that are known and not wanted."""
    return tuple(crumb for crumb in metadata if crumb and not field_selected(metadata, crumb, stream=stream))


def prune(schema: Mapping[str, Any], metadata: md.MetadataMap, *, stream: str) -> dict[str, Any]:
    """The schema of what is emitted: unselected fields left out at every depth. The input is not changed.

    Branches of ``anyOf``, ``oneOf`` and ``allOf`` are pruned too. A row that the schema holds for fits the pruned
    one once its unselected fields are gone: keywords that speak of a whole object (``enum``, ``not``,
    ``minProperties`` ...) go where a field of it went, and a ``oneOf`` becomes an ``anyOf``, since two of its
    branches may differ in that field alone.
    """
    off = set(deselected(metadata, stream=stream))
    pruned, _changed = _prune(schema, off | {(*crumb[:-2], *_LOSES) for crumb in off}, ())
    return pruned


Crumbs = set[tuple[str, ...]]
_LOSES = ("properties",)  # a path that ends so: an object that loses a field, named in its schema or not


def _prune(node: Mapping[str, Any], off: Crumbs, path: tuple[str, ...]) -> tuple[dict[str, Any], bool]:
    """A node less the fields that are off, and whether one of its own or below was taken out."""
    out = {key: value for key, value in node.items() if key not in _LEGACY_KEYS}
    changed = _prune_properties(out, off, path)
    for keyword, below in (("items", (*path, "items")), *((word, path) for word in UNIONS)):
        inner = node.get(keyword)
        if isinstance(inner, Mapping) and keyword == "items":
            out[keyword], went = _prune(inner, off, below)
        elif isinstance(inner, list) and keyword != "items":
            parts = [_prune(part, off, below) if isinstance(part, Mapping) else (part, False) for part in inner]
            out[keyword], went = [part for part, _ in parts], any(gone for _, gone in parts)
        else:
            continue
        changed = changed or went
    if changed:
        for keyword in _OF_THE_WHOLE:
            out.pop(keyword, None)
        if "oneOf" in out:
            one = out.pop("oneOf")
            if "anyOf" in out:
                out["allOf"] = [*(out.get("allOf") or ()), {"anyOf": one}]
            else:
                out["anyOf"] = one
    return out, changed


def _prune_properties(out: dict[str, Any], off: Crumbs, path: tuple[str, ...]) -> bool:
    changed = (*path, *_LOSES) in off
    properties = out.get("properties")
    if isinstance(properties, Mapping):
        kept: dict[str, Any] = {}
        for name, sub in properties.items():
            crumb = (*path, "properties", name)
            if crumb in off:
                continue
            kept[name], went = _prune(sub, off, crumb) if isinstance(sub, Mapping) else (sub, False)
            changed = changed or went
        out["properties"] = kept
    if isinstance(out.get("required"), list):
        required = [name for name in out["required"] if (*path, "properties", name) not in off]
        out["required"] = required
        if not required:
            # Draft 4 asks for at least one entry, so an emptied list goes altogether.
            del out["required"]
    return changed
