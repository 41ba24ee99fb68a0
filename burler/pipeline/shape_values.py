"""Single values as JSON: what each JSON type takes, and what no schema describes.

No cast loses anything (specs 8): ``1.0`` is an integer, ``1.9`` is none; text that spells a number is that
number; a naive date-time is refused.
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
DROPPED = object()
"""Stands in the place of a field's schema where the field is known and not wanted (see ``shape_schema``)."""

Path = tuple[str | int, ...]

_MOST_UNKNOWN = 1000  # different paths; where field names are data there is no end of them
_MOST_DIGITS = 4000  # of an integer: Python writes no longer ones
_MOST_BITS = 13_000
_JSON_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_FULL_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class Misfit(Exception):
    """A value that its schema has no room for."""

    def __init__(self, path: Path, value: Any, wants: str) -> None:
        self.path = show(path)
        super().__init__(self.path)
        self.value = value
        self.wants = wants


def show(path: Path, *, places: bool = True) -> str:
    """``address.lines[2].text``; without places ``address.lines[].text``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]" if places else "[]"
        else:
            text += f".{part}" if text else part
    return text


def note_unknown(counts: dict[str, int], path: str, count: int) -> None:
    """Count objects in which an unknown field was found; beyond a thousand paths under one name."""
    if path not in counts and len(counts) >= _MOST_UNKNOWN:
        path = "(further fields)"
    counts[path] = counts.get(path, 0) + count


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types a schema names, "null" included, as a tuple; empty if it names none."""
    given = schema.get("type")
    if isinstance(given, str):
        return (given,)
    if isinstance(given, list | tuple):
        return tuple(name for name in given if isinstance(name, str))
    if "properties" in schema:
        return ("object",)
    return ()


ANYTHING = "burler:anything"  # in a form: values of every type, described only where a field of them is dropped
ARRAYS = (list, tuple, set, frozenset)


def check_name(name: Any, path: Path) -> None:
    """Refuse a field's name that JSON has no form for (``Misfit``)."""
    if not isinstance(name, str):
        raise Misfit((*path, repr(name)), name, "text as the field's name")
    if _clean_text(name) is MISSING:
        raise Misfit((*path, ascii(name)[1:-1]), name, "a field's name that UTF-8 can hold")


def _integer(value: Any, _schema: Mapping[str, Any]) -> Any:
    if isinstance(value, bool):
        return MISSING
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        value = _number_text(value)
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _MOST_DIGITS and value == int(value):
        return int(value)
    return int(value) if isinstance(value, int) and value.bit_length() <= _MOST_BITS else MISSING


def _number(value: Any, _schema: Mapping[str, Any]) -> Any:
    if isinstance(value, bool):
        return MISSING
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _MOST_BITS else MISSING
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else MISSING
    if isinstance(value, str):
        value = _number_text(value)
    if isinstance(value, Decimal) and value.is_finite():
        return value if type(value) is Decimal else Decimal(value)
    return MISSING


def _number_text(text: str) -> Decimal | None:
    """Text that spells a JSON number, exactly."""
    if not _JSON_NUMBER.fullmatch(text):
        return None
    try:
        number = Decimal(text)
    except ArithmeticError:
        return None
    return number if abs(number.adjusted()) <= 1000 and len(text) <= _MOST_DIGITS else None


def _boolean(value: Any, _schema: Mapping[str, Any]) -> Any:
    return value if isinstance(value, bool) else MISSING


def _string(value: Any, schema: Mapping[str, Any]) -> Any:
    """Text and what has one obvious text; date-times by RFC 3339 where the schema says so."""
    kind = schema.get("format")
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
    if isinstance(value, int):
        return str(int(value)) if value.bit_length() <= _MOST_BITS else MISSING
    if isinstance(value, Decimal):
        if not value.is_finite():
            return MISSING
        return f"{value:f}" if abs(value.adjusted()) < 100 else str(value)  # 100 rather than 1E+2 (specs 8)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview) and schema.get("contentEncoding") == "base64":
        return base64.b64encode(value).decode()
    return MISSING


def _date(value: Any) -> Any:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, str) and _FULL_DATE.fullmatch(value):
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
    return text if type(text) is str else str.__str__(text)


SCALARS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "string": _string,
    "null": lambda value, schema: MISSING,
}


def plain(value: Any, path: Path) -> Any:
    """A value that no schema describes, as JSON: kept as it is, checked at every depth.

    Raises:
        Misfit: what JSON has no form for (NaN, a naive date-time, bytes, an object of the author's).
    """
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        text = _clean_text(value)
        if text is MISSING:
            raise Misfit(path, value, "text that UTF-8 can hold")
        return text
    if isinstance(value, Mapping):
        for name in value:
            check_name(name, path)
        return {name: plain(part, (*path, name)) for name, part in value.items()}
    if isinstance(value, ARRAYS):
        return [plain(part, (*path, i)) for i, part in enumerate(value)]
    if isinstance(value, int | float | Decimal):
        fitted = _number(value, {})
    elif isinstance(value, dt.datetime):
        fitted = times.from_datetime(value) or MISSING
    else:
        fitted = _string(value, {})
    if fitted is MISSING:
        raise Misfit(path, value, "a JSON value")
    return fitted
