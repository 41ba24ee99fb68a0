"""Singer metadata: breadcrumbs, the list and map forms, and what a stream's author need not write.

The list form is what a catalog carries: ``[{"breadcrumb": [...], "metadata": {...}}]``. The map form
(breadcrumb tuple -> dict) is what code works on; it is the same map that singer-python's
``metadata.to_map`` gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MetadataMap = dict[tuple[str, ...], dict[str, Any]]

AUTOMATIC, AVAILABLE, UNSUPPORTED = "automatic", "available", "unsupported"


@dataclass(frozen=True, slots=True)
class Breadcrumb:
    """A place in a schema: ``()`` is the stream (level 0), ``("properties", "id")`` a field (level 1)."""

    path: tuple[str, ...] = ()

    @property
    def name(self) -> str | None:
        """The field's own name; None for the stream itself."""
        return self.path[-1] if self.path else None

    @property
    def level(self) -> int:
        """0 for the stream, 1 for its fields, 2 for theirs; ``items`` does not count."""
        return sum(1 for _ in names(self.path))


def names(path: Sequence[str]) -> Iterator[str]:
    """The field names on a breadcrumb: what stands behind each ``properties``."""
    i = 0
    while i < len(path):
        if path[i] == "properties" and i + 1 < len(path):
            yield path[i + 1]
            i += 2
        else:
            i += 1


def to_map(entries: Iterable[Mapping[str, Any]]) -> MetadataMap:
    """List form to map form. The inner dicts are copied.

    Raises:
        KeyError, TypeError, ValueError: an entry without breadcrumb or metadata, or of another shape.
    """
    compiled: MetadataMap = {}
    for entry in entries:
        crumb, values = entry["breadcrumb"], entry["metadata"]
        if isinstance(crumb, str) or not all(isinstance(part, str) for part in crumb):
            raise TypeError(f"a breadcrumb is a list of names, not {crumb!r:.60}")
        if not isinstance(values, Mapping):
            raise TypeError(f"metadata is an object, not {type(values).__name__}")
        compiled[tuple(crumb)] = dict(values)
    return compiled


def to_list(compiled: MetadataMap) -> list[dict[str, Any]]:
    """Map form to list form, the stream's own entry first."""
    return [
        {"breadcrumb": list(crumb), "metadata": dict(compiled[crumb])}
        for crumb in sorted(compiled, key=lambda crumb: (len(crumb) > 0,))
    ]


def fields(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every field of a schema at every depth: (breadcrumb, sub-schema), parents before children.

    Arrays are walked through: a field of the items of ``tags`` has the breadcrumb
    ``("properties", "tags", "items", "properties", "name")``, as singer-python spells it.
    """
    properties = schema.get("properties")
    for name, node in properties.items() if isinstance(properties, Mapping) else ():
        crumb = (*path, "properties", name)
        yield crumb, node
        if isinstance(node, Mapping):
            yield from fields(node, crumb)
    items = schema.get("items")
    if isinstance(items, Mapping):
        yield from fields(items, (*path, "items"))


def standard_metadata(
    schema: Mapping[str, Any],
    *,
    key_properties: Sequence[str],
    replication_method: str,
    replication_key: str | None,
) -> MetadataMap:
    """The metadata every stream gets without a word from its author.

    Keys and the replication key are ``automatic`` (always replicated), all other fields ``available``.
    """
    root: dict[str, Any] = {
        "inclusion": AVAILABLE,
        "table-key-properties": list(key_properties),
        "forced-replication-method": replication_method,
    }
    if replication_key is not None:
        root["valid-replication-keys"] = [replication_key]
    compiled: MetadataMap = {(): root}
    always = {*key_properties, replication_key}
    for crumb, _node in fields(schema):
        automatic = len(crumb) == 2 and crumb[1] in always
        compiled[crumb] = {"inclusion": AUTOMATIC if automatic else AVAILABLE}
    return compiled
