"""The exact path: one row at a time against its JSON Schema, in plain Python.

It is the reference that the fast path (``compile``) must equal, and the place where a row that does
not fit gets its error.
"""

from __future__ import annotations

import datetime as dt
import enum
import numbers
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from burler.records.shape import constraints
from burler.records.shape.bad_rows import DEFAULT_RULES, Rules
from burler.records.shape.form import all_of
from burler.records.shape.unknown import Unknown
from burler.records.shape.values import (
    ANYTHING,
    ARRAYS,
    DROPPED,
    MISSING,
    SCALARS,
    Misfit,
    Path,
    check_name,
    clean_text,
    not_finite,
    template,
    types_of,
)
from burler.regex import compile_pattern


class Exact:
    """Fits values to schemas (in the form of ``shape.form``); counts the fields it drops in ``unknown``.

    Args:
        rules: how strict it is.
        protected: fields of the row that are never set to null: without its keys a row is none.
        strict: hold values against their constraints in any case: it decides between the branches of a union.

    ``nulled`` holds what was set to null in the row that was fitted last.
    """

    def __init__(self, rules: Rules = DEFAULT_RULES, *, protected: Iterable[str] = (), strict: bool = False) -> None:
        self.unknown = Unknown()
        self.nulled: list[Misfit] = []
        self._erring = rules.strictly
        self._attempt: Exact | None = None
        self._protected = frozenset((name,) for name in protected)
        self._checks = strict or rules.check_constraints
        self._nan_is_null = rules.on_nan == "null"
        self._bad_is_null = rules.on_bad_record == "null"

    def row(self, row: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        """A row as it is emitted.

        Raises:
            Misfit: the first value that does not fit.
        """
        self.nulled = []
        if "anyOf" in schema or "oneOf" in schema:
            fitted: dict[str, Any] = self.value(row, schema, ())
            return fitted
        made = self._object(row, schema, ())
        self._check(made, row, schema, ())
        return made

    def value(self, value: Any, schema: Any, path: Path) -> Any:
        """Any value as it is emitted.

        Raises:
            Misfit: it does not fit, or something in it.
        """
        if isinstance(value, enum.Enum):
            value = value.value
        if not isinstance(schema, Mapping):
            if schema is False:
                raise Misfit(path, value, "no value at all (its schema is false)")
            return self._plain(value, path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._first_fit(value, schema[keyword], path)
        wanted = types_of(schema)
        null = value is None or (self._nan_is_null and not_finite(value))
        if ANYTHING in schema:
            fitted = self._anything(value, schema, path)
        elif not wanted:
            fitted = self._plain(value, path)
        elif null and "null" in wanted:
            fitted = None
        else:
            fitted = self._typed(value, schema, wanted, path)
        self._check(fitted, value, schema, path)
        return fitted

    def _check(self, fitted: Any, value: Any, schema: Mapping[str, Any], path: Path) -> None:
        if self._checks and constraints.constrained(schema):
            broken = constraints.broken(fitted, schema)
            if broken is not None:
                raise Misfit(path, value, f"a value that keeps {broken}")

    def _anything(self, value: Any, schema: Mapping[str, Any], path: Path) -> Any:
        """A value of any type, of which some field inside is not wanted."""
        if isinstance(value, Mapping) and "properties" in schema:
            return self._object(value, schema, path)
        if isinstance(value, ARRAYS) and "items" in schema:
            return self._array(value, schema, path)
        return self._plain(value, path)

    def _first_fit(self, value: Any, branches: Sequence[Any], path: Path) -> Any:
        """The first branch that takes the value as it is; else the one that casts and drops least."""
        best: tuple[bool, int] | None = None
        chosen: tuple[Any, Exact] = None, self
        worst: Misfit | None = None
        for branch in branches:
            attempt, self._attempt = self._attempt or Exact(self._erring, strict=True), None
            try:
                fitted = attempt.value(value, branch, path)
            except Misfit as misfit:
                worst = misfit
                continue
            finally:
                self._attempt = None if attempt.unknown else attempt  # made once for most values
            cost = (not _uncast(fitted, value), attempt.unknown.total)
            if best is None or cost < best:
                best, chosen = cost, (fitted, attempt)
                self._attempt = None  # what it has counted is kept
            if cost == (False, 0):
                break
        if best is None:
            wants = worst.wants if worst and len(branches) == 1 else f"one of {len(branches)} schemas"
            raise Misfit(path, value, wants)
        self.unknown.merge(chosen[1].unknown)
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
                    return self._array(value, schema, path)
                continue
            fitted = SCALARS[name](value, schema) if name in SCALARS else MISSING
            if fitted is not MISSING:
                return fitted
        named = [name for name in wanted if name != "null"] or ["null"]
        shown = schema.get("format")
        raise Misfit(path, value, " or ".join(named) + (f" ({shown})" if shown else ""))

    def _array(self, value: Any, schema: Mapping[str, Any], path: Path) -> list[Any]:
        """An array; of a tuple each place by its own schema."""
        places, rest = tuple_parts(schema)
        out = []
        for i, item in enumerate(value):
            if i >= len(places) and rest is False:
                raise Misfit(path, value, f"an array of at most {len(places)} items")
            out.append(self.value(item, places[i] if i < len(places) else rest, (*path, i)))
        return out

    def _object(self, value: Mapping[str, Any], schema: Mapping[str, Any], path: Path) -> dict[str, Any]:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        out: dict[str, Any] = {}
        for name, node in properties.items():
            if node is not DROPPED and value.get(name, msgspec.UNSET) is not msgspec.UNSET:
                out[name] = self._field(value[name], node, (*path, name))
        for name in schema.get("required") or ():
            if value.get(name, msgspec.UNSET) is msgspec.UNSET:
                raise Misfit((*path, name), MISSING, "a value (the field is required)")
        if len(value) > len(out):
            out.update(self.further(value, (name for name in value if name not in properties), schema, path))
        return out

    def beside(self, names: Iterable[str], row: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        """Those of these fields that belong to the row, properties of its schema or not."""
        properties: Mapping[str, Any] = schema.get("properties") or {}
        wanted = list(names)
        out = {
            name: self._field(row[name], node, (name,))
            for name, node in properties.items()
            if name in wanted and node is not DROPPED and row[name] is not msgspec.UNSET
        }
        return {**out, **self.further(row, (name for name in wanted if name not in properties), schema, ())}

    def further(
        self, value: Mapping[str, Any], names: Iterable[Any], schema: Mapping[str, Any], path: Path
    ) -> dict[str, Any]:
        """Those of an object's fields that are none of its properties, as far as the schema lets them in."""
        extra = schema.get("additionalProperties", "properties" not in schema)
        patterns: Mapping[str, Any] = schema.get("patternProperties") or {}
        out: dict[str, Any] = {}
        for name in names:
            check_name(name, path)
            if value[name] is msgspec.UNSET:  # msgspec's word for a field that is not there
                continue
            fitting = [node for pattern, node in patterns.items() if compile_pattern(pattern).search(name)]
            if fitting:
                out[name] = self._field(value[name], all_of(fitting), (*path, name))
            elif extra is False:
                self.unknown.note(template((*path, name)), 1, (value[name],))
            else:
                out[name] = self._field(value[name], extra, (*path, name))
        return out

    def _field(self, value: Any, schema: Any, path: Path) -> Any:
        """A field's value; null instead, if it does not fit, may be null, and the rules ask for that."""
        if not self._bad_is_null:
            return self.value(value, schema, path)
        try:
            return self.value(value, schema, path)
        except Misfit as misfit:
            if path in self._protected or not self._takes_null(schema):
                raise
            self.nulled.append(misfit)
            return None

    def _takes_null(self, schema: Any) -> bool:
        try:
            return Exact(self._erring).value(None, schema, ()) is None
        except Misfit:
            return False

    def _plain(self, value: Any, path: Path) -> Any:
        """A value that no schema describes, as JSON: kept as it is, checked at every depth.

        Raises:
            Misfit: what JSON has no form for (NaN, a naive date-time, bytes, an object of the author's).
        """
        if isinstance(value, enum.Enum):
            value = value.value
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            text = clean_text(value)
            if text is MISSING:
                raise Misfit(path, value, "text that UTF-8 can hold")
            return text
        if isinstance(value, Mapping):
            for name in value:
                check_name(name, path)
            return {name: self._plain(part, (*path, name)) for name, part in value.items()}
        if isinstance(value, ARRAYS):
            return [self._plain(part, (*path, i)) for i, part in enumerate(value)]
        if self._nan_is_null and not_finite(value):
            return None
        fitted = SCALARS["number"](value, {})
        if fitted is MISSING and not isinstance(value, numbers.Number):
            fitted = SCALARS["string"](value, {"format": "date-time"} if isinstance(value, dt.datetime) else {})
        if fitted is MISSING:
            raise Misfit(path, value, "a JSON value")
        return fitted


def tuple_parts(schema: Mapping[str, Any]) -> tuple[Sequence[Any], Any]:
    """The schemas of an array's first places, and that of all others: draft 4's ``items`` list, or ``prefixItems``."""
    items = schema.get("items", True)
    if isinstance(schema.get("prefixItems"), list | tuple):
        return schema["prefixItems"], items
    if isinstance(items, list | tuple):
        return items, schema.get("additionalItems", True)
    return (), items


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
