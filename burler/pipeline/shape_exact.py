"""The exact path: one row at a time against its JSON Schema, in plain Python.

It is the reference that the fast path (``shape_fast``) must equal, and the place where a row that does
not fit gets its error. No cast loses anything (specs 8): ``1.0`` is an integer, ``1.9`` is none; text that
spells a number is that number; a naive date-time is refused.
"""

from __future__ import annotations

import base64
import datetime as dt
import enum
import math
import re
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from burler.pipeline import times

MISSING = object()


class Misfit(Exception):
    """A value that its schema has no room for."""

    def __init__(self, path: str, value: Any, wants: str) -> None:
        super().__init__(path)
        self.path = path
        self.value = value
        self.wants = wants


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types a schema names, "null" included, as a tuple; empty if it names none."""
    given = schema.get("type")
    if isinstance(given, str):
        return (given,)
    if isinstance(given, list | tuple):
        return tuple(given)
    if "properties" in schema:
        return ("object",)
    return ()


class Exact:
    """Fits values to schemas; counts the fields it drops in ``unknown`` (dotted path -> rows)."""

    def __init__(self) -> None:
        self.unknown: dict[str, int] = {}

    def row(self, row: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        """A row as it is emitted.

        Raises:
            Misfit: the first value that does not fit.
        """
        return self._object(row, schema, "")

    def value(self, value: Any, schema: Any, path: str) -> Any:
        """Any value as it is emitted."""
        if schema is True or not isinstance(schema, Mapping):
            return plain(value, path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._first_fit(value, schema[keyword], path)
        wanted = types_of(schema)
        if not wanted:
            return plain(value, path)
        if value is None:
            if "null" in wanted:
                return None
            raise Misfit(path, value, " or ".join(wanted))
        return self._typed(value, schema, [name for name in wanted if name != "null"], path)

    def _first_fit(self, value: Any, branches: list[Any], path: str) -> Any:
        worst: Misfit | None = None
        for branch in branches:
            attempt = Exact()
            try:
                fitted = attempt.value(value, branch, path)
            except Misfit as misfit:
                worst = misfit
                continue
            for name, count in attempt.unknown.items():
                self.unknown[name] = self.unknown.get(name, 0) + count
            return fitted
        raise Misfit(path, value, worst.wants if worst and len(branches) == 1 else f"one of {len(branches)} schemas")

    def _typed(self, value: Any, schema: Mapping[str, Any], wanted: list[str], path: str) -> Any:
        native = [name for name in wanted if _is_native(value, name)]
        for name in (*native, *(name for name in wanted if name not in native)):
            if name == "object":
                if isinstance(value, Mapping):
                    return self._object(value, schema, path)
                continue
            if name == "array":
                if isinstance(value, list | tuple):
                    items = schema.get("items", True)
                    return [self.value(item, items, f"{path}[{i}]") for i, item in enumerate(value)]
                continue
            fitted = _SCALARS[name](value, schema) if name in _SCALARS else MISSING
            if fitted is not MISSING:
                return fitted
        shown = schema.get("format")
        raise Misfit(path, value, " or ".join(wanted) + (f" ({shown})" if shown else ""))

    def _object(self, value: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        prefix = path + "." if path else ""
        out: dict[str, Any] = {}
        for name, node in properties.items():
            if name in value:
                out[name] = self.value(value[name], node, prefix + name)
        for name in schema.get("required") or ():
            if name not in value:
                raise Misfit(prefix + name, MISSING, "a value (the field is required)")
        extra = schema.get("additionalProperties", "properties" not in schema)
        patterns: Mapping[str, Any] = schema.get("patternProperties") or {}
        for name, part in value.items():
            if name in properties:
                continue
            if not isinstance(name, str):
                raise Misfit(f"{prefix}{name!r}", name, "text as the field's name")
            fitting = [node for pattern, node in patterns.items() if re.search(pattern, name)]
            if fitting:
                out[name] = self.value(part, fitting[0], prefix + name)
            elif extra is False:
                self.unknown[prefix + name] = self.unknown.get(prefix + name, 0) + 1
            else:
                out[name] = self.value(part, extra, prefix + name)
        return out


def _is_native(value: Any, name: str) -> bool:
    """Whether a value is of a JSON type as it stands, so that unions prefer no cast."""
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, int):
        return name in ("integer", "number")
    if isinstance(value, float | Decimal):
        return name == "number"
    return isinstance(value, str) and name == "string"


def _integer(value: Any, _schema: Mapping[str, Any]) -> Any:
    if isinstance(value, bool):
        return MISSING
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        return int(value)
    if isinstance(value, str):
        number = _number_text(value)
        return int(number) if number is not None and number == int(number) else MISSING
    return MISSING


def _number(value: Any, _schema: Mapping[str, Any]) -> Any:
    if isinstance(value, bool):
        return MISSING
    if isinstance(value, int | Decimal | float):
        if not math.isfinite(value):
            return MISSING
        return float(value) if isinstance(value, float) else value
    if isinstance(value, str):
        number = _number_text(value)
        return MISSING if number is None else number
    return MISSING


def _number_text(text: str) -> Decimal | None:
    """Text that spells a JSON number, exactly."""
    try:
        number = Decimal(text)
    except ArithmeticError:
        return None
    if not number.is_finite() or text.strip() != text or "_" in text or abs(number.adjusted()) > 1000:
        return None
    return number


def _boolean(value: Any, _schema: Mapping[str, Any]) -> Any:
    return value if isinstance(value, bool) else MISSING


def _string(value: Any, schema: Mapping[str, Any]) -> Any:
    """Text and what has one obvious text; date-times by RFC 3339 where the schema says so."""
    kind = schema.get("format")
    if isinstance(value, enum.Enum):
        value = value.value
    if kind == "date-time":
        fitted = times.canonical_text(value) if isinstance(value, str) else None
        if isinstance(value, dt.datetime):
            fitted = times.from_datetime(value)
        return MISSING if fitted is None else fitted
    if kind == "date":
        return _date(value)
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, bool):
        return MISSING
    if isinstance(value, int | Decimal | uuid.UUID):
        return str(value)
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview) and schema.get("contentEncoding") == "base64":
        return base64.b64encode(value).decode()
    return MISSING


def _date(value: Any) -> Any:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, str) and len(value) == 10:
        try:
            return dt.date.fromisoformat(value).isoformat()
        except ValueError:
            return MISSING
    return MISSING


def _clean_text(text: str) -> Any:
    """Text as it is, unless UTF-8 has no form for it (a lone surrogate)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return MISSING
    return text if type(text) is str else str(text)


_SCALARS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "string": _string,
    "null": lambda value, schema: MISSING,
}


def plain(value: Any, path: str) -> Any:
    """A value that no schema describes, as JSON: kept as it is, checked at every depth.

    Raises:
        Misfit: what JSON has no form for (NaN, a naive date-time, bytes, an object of the author's).
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        text = _clean_text(value)
        if text is MISSING:
            raise Misfit(path, value, "text that UTF-8 can hold")
        return text
    if isinstance(value, int | float | Decimal):
        fitted = _number(value, {})
    elif isinstance(value, Mapping):
        return {_key(name, path): plain(part, f"{path}.{name}") for name, part in value.items()}
    elif isinstance(value, list | tuple):
        return [plain(part, f"{path}[{i}]") for i, part in enumerate(value)]
    elif isinstance(value, dt.datetime):
        fitted = times.from_datetime(value) or MISSING
    else:
        fitted = _string(value, {})
    if fitted is MISSING:
        raise Misfit(path, value, "a JSON value")
    return fitted


def _key(name: Any, path: str) -> str:
    if not isinstance(name, str):
        raise Misfit(f"{path}.{name!r}", name, "text as the field's name")
    return name
