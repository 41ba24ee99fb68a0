"""Singer metadata: breadcrumbs, the list and map forms, and what a stream's author need not write.

The list form is what a catalog carries: ``[{"breadcrumb": [...], "metadata": {...}}]``. The map form
(breadcrumb tuple -> dict) is what code works on; it is the same map that singer-python's
``metadata.to_map`` gives. Which keys there are, and who writes them, stands in ``burler.singer.keys``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from burler.schema_tree import UNIONS

MetadataMap = dict[tuple[str, ...], dict[str, Any]]

FULL_TABLE: Final = "FULL_TABLE"
INCREMENTAL: Final = "INCREMENTAL"
LOG_BASED: Final = "LOG_BASED"
METHODS = (FULL_TABLE, INCREMENTAL, LOG_BASED)
AUTOMATIC, AVAILABLE, UNSUPPORTED = "automatic", "available", "unsupported"


@dataclass(frozen=True, slots=True)
class Breadcrumb:
    """A place in a schema: ``()`` is the stream (level 0), ``("properties", "id")`` a field (level 1)."""

    path: tuple[str, ...] = ()

    @property
    def name(self) -> str | None:
        """The field's own name; None for the stream itself."""
        return next(reversed(tuple(names(self.path))), None)

    @property
    def level(self) -> int:
        """0 for the stream, 1 for its fields, 2 for theirs; ``items`` does not count."""
        return sum(1 for _ in names(self.path))

    def __str__(self) -> str:
        """For people: ``address.city``, ``tags[].name``; ``(the stream)`` for the stream itself."""
        return dotted(self.path) or "(the stream)"


def steps(path: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A breadcrumb step by step: ``("properties", name)``, ``("items",)``, keyword and branch of a union. A field may
    be called ``items`` or ``properties`` itself."""
    i = 0
    while i < len(path):
        pair = i + 1 < len(path) and (path[i] == "properties" or (path[i] in UNIONS and path[i + 1].isdecimal()))
        yield tuple(path[i : i + 2]) if pair else (path[i],)
        i += 2 if pair else 1


def _is_field(step: tuple[str, ...]) -> bool:
    return len(step) > 1 and step[0] == "properties"


def names(path: Sequence[str]) -> Iterator[str]:
    """The field names on a breadcrumb: what stands behind each ``properties``."""
    return (step[1] for step in steps(path) if _is_field(step))


def dotted(path: Sequence[str]) -> str:
    """A breadcrumb for people: ``address.city``; a field of an array's items is ``tags[].name``."""
    text = ""
    for step in steps(path):
        if _is_field(step):
            text += f".{step[1]}" if text else step[1]
        else:
            text += "[]" if step == ("items",) else f".{'.'.join(step)}"
    return text


def plain_crumb(path: Sequence[str]) -> tuple[str, ...]:
    """A breadcrumb as the rows know it: steps into the branches of a union are left out.

    ``("properties", "x", "anyOf", "0", "properties", "y")`` becomes ``("properties", "x", "properties",
    "y")``: a row does not say which branch it follows, so that a field is one field in all of them.
    """
    return tuple(part for step in steps(path) if len(step) == 1 or _is_field(step) for part in step)


def parent_of(crumb: tuple[str, ...]) -> tuple[str, ...]:
    """The breadcrumb of the field (or the stream) that a field stands in."""
    above = list(steps(crumb))[:-1]
    while above and not _is_field(above[-1]):
        above.pop()
    return tuple(part for step in above for part in step)


def to_map(entries: Iterable[Mapping[str, Any]]) -> MetadataMap:
    """List form to map form. The inner dicts are copied.

    Entries of the same breadcrumb are one: later values win, key by key.

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
        compiled.setdefault(tuple(crumb), {}).update(values)
    return compiled


def to_list(compiled: MetadataMap) -> list[dict[str, Any]]:
    """Map form to list form, the stream's own entry first."""
    out = [{"breadcrumb": list(crumb), "metadata": dict(values)} for crumb, values in compiled.items() if crumb]
    if () in compiled:
        out.insert(0, {"breadcrumb": [], "metadata": dict(compiled[()])})
    return out


def fields(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every field of a schema at every depth: (breadcrumb, sub-schema), parents before children.

    Arrays are walked through: a field of the items of ``tags`` has the breadcrumb
    ``("properties", "tags", "items", "properties", "name")``, as singer-python spells it. So are the branches of
    ``anyOf``, ``oneOf`` and ``allOf``, which leave no trace in the breadcrumb; a field that stands in several of them
    comes once. The values of maps (``additionalProperties``, ``patternProperties``) and tuples have no names.
    """
    found: dict[tuple[str, ...], Any] = {}
    _collect(schema, path, found)
    yield from found.items()


def _collect(node: Mapping[str, Any], path: tuple[str, ...], found: dict[tuple[str, ...], Any]) -> None:
    properties = node.get("properties")
    if isinstance(properties, Mapping):
        for name, sub in properties.items():
            crumb = (*path, "properties", name)
            found.setdefault(crumb, sub)
            if isinstance(sub, Mapping):
                _collect(sub, crumb, found)
    items = node.get("items")
    if isinstance(items, Mapping):
        _collect(items, (*path, "items"), found)
    for keyword in UNIONS:
        branches = node.get(keyword)
        for branch in branches if isinstance(branches, list) else ():
            if isinstance(branch, Mapping):
                _collect(branch, path, found)


def standard_metadata(
    schema: Mapping[str, Any],
    *,
    key_properties: Sequence[str],
    replication_method: str | None,
    replication_key: str | None,
) -> MetadataMap:
    """The metadata every stream gets without a word from its author.

    Keys and the replication key are ``automatic`` (always replicated), all other fields ``available``.

    Args:
        replication_method: the one that the stream always has; None leaves the choice to the user.
    """
    root: dict[str, Any] = {"inclusion": AVAILABLE, "table-key-properties": list(key_properties)}
    if replication_method is not None:
        root["forced-replication-method"] = replication_method
    if replication_key is not None:
        root["valid-replication-keys"] = [replication_key]
    compiled: MetadataMap = {(): root, **{crumb: {"inclusion": AVAILABLE} for crumb, _node in fields(schema)}}
    for key in (*key_properties, replication_key):
        if key is not None and ("properties", key) in compiled:
            compiled["properties", key]["inclusion"] = AUTOMATIC
    return compiled
