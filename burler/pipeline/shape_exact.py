"""The exact path: one row at a time against its JSON Schema, in plain Python.

It is the reference that the fast path (``shape_fast``) must equal, and the place where a row that does
not fit gets its error.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from burler.pipeline.shape_values import (
    ANYTHING,
    ARRAYS,
    DROPPED,
    MISSING,
    SCALARS,
    Misfit,
    Path,
    check_name,
    note_unknown,
    plain,
    show,
    types_of,
)


class Exact:
    """Fits values to schemas (in the form of ``shape_schema``); counts the fields it drops in ``unknown``.

    ``strict`` also holds values against ``enum`` and ``const``: it decides between the branches of a union.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.unknown: dict[str, int] = {}
        self._strict = strict

    def row(self, row: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        """A row as it is emitted.

        Raises:
            Misfit: the first value that does not fit.
        """
        if "anyOf" in schema or "oneOf" in schema:
            fitted: dict[str, Any] = self.value(row, schema, ())
            return fitted
        return self._object(row, schema, ())

    def value(self, value: Any, schema: Any, path: Path) -> Any:
        """Any value as it is emitted."""
        if isinstance(value, enum.Enum):
            value = value.value
        if not isinstance(schema, Mapping):
            return plain(value, path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._first_fit(value, schema[keyword], path)
        wanted = types_of(schema)
        if ANYTHING in schema:
            fitted = self._anything(value, schema, path)
        elif not wanted:
            fitted = plain(value, path)
        elif value is None and "null" in wanted:
            fitted = None
        else:
            fitted = self._typed(value, schema, wanted, path)
        if self._strict:
            _check_choice(fitted, schema, path)
        return fitted

    def _anything(self, value: Any, schema: Mapping[str, Any], path: Path) -> Any:
        """A value of any type, of which some field inside is not wanted."""
        if isinstance(value, Mapping) and "properties" in schema:
            return self._object(value, schema, path)
        if isinstance(value, ARRAYS) and "items" in schema:
            return [self.value(item, schema["items"], (*path, i)) for i, item in enumerate(value)]
        return plain(value, path)

    def _first_fit(self, value: Any, branches: list[Any], path: Path) -> Any:
        """The first branch that takes the value as it is; else the one that casts and drops least."""
        best: tuple[bool, int] | None = None
        chosen: tuple[Any, Exact] = None, self
        worst: Misfit | None = None
        for branch in branches:
            attempt = Exact(strict=True)
            try:
                fitted = attempt.value(value, branch, path)
            except Misfit as misfit:
                worst = misfit
                continue
            cost = (not _uncast(fitted, value), sum(attempt.unknown.values()))
            if best is None or cost < best:
                best, chosen = cost, (fitted, attempt)
            if cost == (False, 0):
                break
        if best is None:
            wants = worst.wants if worst and len(branches) == 1 else f"one of {len(branches)} schemas"
            raise Misfit(path, value, wants)
        for name, count in chosen[1].unknown.items():
            note_unknown(self.unknown, name, count)
        return chosen[0]

    def _typed(self, value: Any, schema: Mapping[str, Any], wanted: tuple[str, ...], path: Path) -> Any:
        native = [name for name in wanted if _is_native(value, name)]
        for name in (*native, *(name for name in wanted if name not in native)):
            if name == "object":
                if isinstance(value, Mapping):
                    return self._object(value, schema, path)
                continue
            if name == "array":
                if isinstance(value, ARRAYS):
                    items = schema.get("items", True)
                    return [self.value(item, items, (*path, i)) for i, item in enumerate(value)]
                continue
            fitted = SCALARS[name](value, schema) if name in SCALARS else MISSING
            if fitted is not MISSING:
                return fitted
        named = [name for name in wanted if name != "null"] or ["null"]
        shown = schema.get("format")
        raise Misfit(path, value, " or ".join(named) + (f" ({shown})" if shown else ""))

    def _object(self, value: Mapping[str, Any], schema: Mapping[str, Any], path: Path) -> dict[str, Any]:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        out: dict[str, Any] = {}
        for name, node in properties.items():
            if name in value and node is not DROPPED:
                out[name] = self.value(value[name], node, (*path, name))
        for name in schema.get("required") or ():
            if name not in value:
                raise Misfit((*path, name), MISSING, "a value (the field is required)")
        extra = schema.get("additionalProperties", "properties" not in schema)
        patterns: Mapping[str, Any] = schema.get("patternProperties") or {}
        for name, part in value.items():
            if name in properties:
                continue
            check_name(name, path)
            fitting = [node for pattern, node in patterns.items() if re.search(pattern, name)]
            if fitting:
                out[name] = self.value(part, fitting[0], (*path, name))
            elif extra is False:
                note_unknown(self.unknown, show((*path, name), places=False), 1)
            else:
                out[name] = self.value(part, extra, (*path, name))
        return out


def _check_choice(fitted: Any, schema: Mapping[str, Any], path: Path) -> None:
    for choices in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
        if isinstance(choices, list) and fitted not in choices:
            raise Misfit(path, fitted, "one of the values of 'enum' or 'const'")


def _uncast(fitted: Any, value: Any) -> bool:
    """Whether a value was taken without a change of its JSON type, at every depth."""
    if isinstance(value, Mapping):
        same = isinstance(fitted, dict)
        return same and all(_uncast(part, value[name]) for name, part in fitted.items())
    if isinstance(value, list | tuple):
        return isinstance(fitted, list) and all(map(_uncast, fitted, value))
    for kind in (bool, int, float | Decimal, str, type(None)):
        if isinstance(value, kind):
            return isinstance(fitted, kind) and isinstance(fitted, bool) == isinstance(value, bool)
    return True


def _is_native(value: Any, name: str) -> bool:
    """Whether a value is of a JSON type as it stands, so that unions prefer no cast."""
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, int):
        return name in ("integer", "number")
    if isinstance(value, float | Decimal):
        return name == "number"
    return isinstance(value, str) and name == "string"
