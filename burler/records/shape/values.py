"""Single values as JSON: what each JSON type takes.

No cast loses anything: ``1.0`` is an integer, ``1.9`` is none; text that spells a number is that
number; a naive date-time is refused. What database drivers and NumPy give (times, UUIDs, addresses, their own
kinds of numbers) has one text or number each.
"""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import math
import numbers
import re
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from burler import times

MISSING = object()
DROPPED = object()
"""Stands in the place of a field's schema where the field is known and not wanted (see ``shape.form``)."""

Path = tuple[str | int, ...]
Template = tuple[str | None, ...]
"""A path for any row: names, and None for the items of an array."""

_MOST_DIGITS = 4300  # of an integer: Python reads and writes no longer ones
_LARGEST_EXPONENT = 1000  # beyond it readers refuse the whole line
_SURE_BITS = 14_000  # an integer of so many has fewer digits than that
_DAY = dt.timedelta(days=1)
_WITH_TEXT = (
    uuid.UUID, ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network,
    ipaddress.IPv4Interface, ipaddress.IPv6Interface,
)  # fmt: skip
_INTEGRAL = (int, numbers.Integral)  # NumPy's are registered there
_REAL = (float, numbers.Real)
_JSON_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


class Misfit(Exception):
    """A value that its schema has no room for."""

    def __init__(self, path: Path, value: Any, wants: str) -> None:
        self.path = show(path)
        super().__init__(self.path)
        self.value = value
        self.wants = wants


def show(path: Path | Template) -> str:
    """``address.lines[2].text``; of a template ``address.lines[].text``."""
    text = ""
    for part in path:
        if part is None or isinstance(part, int):
            text += "[]" if part is None else f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def template(path: Path) -> Template:
    """A path for any item of its arrays: None in place of each number."""
    return tuple(None if isinstance(part, int) else part for part in path)


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
    if clean_text(name) is MISSING:
        raise Misfit((*path, ascii(name)[1:-1]), name, "a field's name that UTF-8 can hold")


def is_writable(number: Decimal) -> bool:
    """Whether a Decimal is a number that readers of JSON take."""
    return number.is_finite() and abs(number.adjusted()) <= _LARGEST_EXPONENT


def not_finite(value: Any) -> bool:
    """NaN or an infinity, of whatever kind of number."""
    if isinstance(value, str):
        return False
    if isinstance(value, Decimal):
        return not value.is_finite()
    try:
        return isinstance(value, numbers.Real) and not math.isfinite(value)
    except OverflowError:  # an integer beyond floats
        return False


def _whole(value: int) -> Any:
    """An integer as a plain one, unless it has more digits than Python writes."""
    value = int(value)
    if value.bit_length() > _SURE_BITS:
        try:
            str(value)
        except ValueError:
            return MISSING
    return value


def _integer(value: Any, _schema: Mapping[str, Any]) -> Any:
    if isinstance(value, bool):
        return MISSING
    if isinstance(value, str):
        value = _number_text(value)
    if isinstance(value, Decimal):
        whole = value.is_finite() and value.adjusted() < _MOST_DIGITS and value == value.to_integral_value()
        return int(value) if whole else MISSING
    if isinstance(value, _INTEGRAL):
        return _whole(int(value))
    if isinstance(value, _REAL):
        value = float(value)
        return int(value) if value.is_integer() else MISSING
    return MISSING


def _number(value: Any, _schema: Mapping[str, Any]) -> Any:
    if isinstance(value, bool):
        return MISSING
    if isinstance(value, str):
        value = _number_text(value)
    if isinstance(value, Decimal):
        return MISSING if not is_writable(value) else value if type(value) is Decimal else Decimal(value)
    if isinstance(value, _INTEGRAL):
        return _whole(int(value))
    if isinstance(value, _REAL):
        value = float(value)
        return value if math.isfinite(value) else MISSING
    return MISSING


def _number_text(text: str) -> Decimal | None:
    """Text that spells a JSON number, exactly."""
    if not _JSON_NUMBER.fullmatch(text):
        return None
    try:
        number = Decimal(text)
    except ArithmeticError:
        return None
    return number if len(text) <= _MOST_DIGITS else None


def _boolean(value: Any, _schema: Mapping[str, Any]) -> Any:
    return value if isinstance(value, bool) else MISSING


def _string(value: Any, schema: Mapping[str, Any]) -> Any:
    """Text and what has one obvious text; date-times by RFC 3339 where the schema says so."""
    kind = schema.get("format")
    if kind == "date-time":
        fitted = times.strict(value) if isinstance(value, str) else None
        if isinstance(value, dt.datetime):
            fitted = times.rfc3339(value)
        return MISSING if fitted is None else fitted
    if kind == "date":
        return _date(value)
    if kind == "singer.decimal":
        return _decimal_text(value)
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode() if schema.get("contentEncoding") == "base64" else MISSING
    if isinstance(value, dt.timedelta):
        return times.time_of_day(value) if kind == "time" and dt.timedelta(0) <= value < _DAY else times.duration(value)
    return _text_of(value)


def _text_of(value: Any) -> Any:
    """The one text of a value of a well-known type."""
    if isinstance(value, bool):
        return MISSING
    if isinstance(value, _INTEGRAL):
        whole = _whole(int(value))
        return MISSING if whole is MISSING else str(whole)
    if isinstance(value, Decimal):
        if not value.is_finite():
            return MISSING
        return f"{value:f}" if abs(value.adjusted()) < 100 else str(value)  # 100 rather than 1E+2
    if isinstance(value, _WITH_TEXT):
        return clean_text(str(value))
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return MISSING


def _decimal_text(value: Any) -> Any:
    """A number as text in plain decimal notation (``format: singer.decimal``), digit for digit."""
    number = _number(value, {})
    if isinstance(number, float):
        number = Decimal(repr(number))
    return MISSING if number is MISSING else _text_of(number)


def _date(value: Any) -> Any:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    return str(value) if isinstance(value, str) and times.is_date(value) else MISSING


def clean_text(text: str) -> Any:
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
