"""A schema that would have kept and fitted what came, made of a sample of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from burler.errors import DataError
from burler.schema.infer import Inference
from burler.schema_tree import types_of

_ROWS = 1000
_ORDER = ("null", "boolean", "integer", "number", "string", "array", "object")


class Patch:
    """Takes rows in which something did not fit."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._paths: set[str] = set()
        self._sample: list[dict[str, Any]] = []

    def see(self, rows: Sequence[dict[str, Any]], paths: Iterable[str]) -> None:
        """Some rows, and the fields that did not fit in them."""
        self._paths |= set(paths)
        names = {_top(path, rows) for path in paths}
        self._names |= names
        room = _ROWS - len(self._sample)
        if room > 0:
            step = max(1, len(rows) // 100)
            self._sample += [row for row in rows[::step] if not names.isdisjoint(row)][:room]

    def schema(self, declared: Mapping[str, Any]) -> dict[str, Any]:
        """What is to be merged into the stream's schema: its fields that did not fit, with the kinds they had and those
        that came. {} if all fitted, or nothing can be said."""
        if not self._names:
            return {}
        inference = Inference()
        try:
            inference.add_all({name: row[name] for name in self._names if name in row} for row in self._sample)
            found = inference.schema()
        except DataError:
            return {}
        properties = declared.get("properties")
        known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        fields = found.get("properties") or {}
        return {"properties": {name: _both(known.get(name), node) for name, node in sorted(fields.items())}}


def _top(path: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The field of the record that a path begins with; names may have dots in them."""
    names = [name for row in rows[:50] for name in row if path == name or path.startswith((f"{name}.", f"{name}["))]
    return max(names, key=len, default=path.split(".")[0].rstrip("[]"))


def _both(declared: Any, found: Any) -> dict[str, Any]:
    """A node that takes what either takes."""
    if not isinstance(declared, Mapping):
        return _nullable(found)
    named = {*types_of(declared), *types_of(found)}
    types = sorted(named, key=lambda word: _ORDER.index(word) if word in _ORDER else 9)
    out: dict[str, Any] = {"type": types}
    both = {*types_of(declared)} & {*types_of(found)}
    form = declared.get("format")
    if form is not None and (found.get("format") == form or "string" not in both):
        out["format"] = form
    for word in ("properties", "items"):
        one, other = declared.get(word), found.get(word)
        if word == "properties" and isinstance(one, Mapping) and isinstance(other, Mapping):
            out[word] = {name: _both(one.get(name), node) for name, node in other.items()}
        elif isinstance(other, Mapping):
            out[word] = _both(one, other) if isinstance(one, Mapping) else other
    return out


def _nullable(node: Mapping[str, Any]) -> dict[str, Any]:
    types = types_of(node)
    return {**node, "type": ["null", *(word for word in types if word != "null")]} if types else dict(node)
