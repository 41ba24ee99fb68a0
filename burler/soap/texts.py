"""Texts of XML as values, by the simple types of a WSDL.

A text that is not what its type says stays text (what is no base64: in an object), so that the row does not fit its
schema, and burler's error shows the value. (zeep makes None of it, with a line in the log.)
"""

from __future__ import annotations

import base64
import binascii
import datetime
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from burler import times
from burler.soap.schemas import builtin_name, collapsed, normalized

Convert = Callable[[str], Any]

_ZONE = re.compile(r"(Z|[+-]\d\d:\d\d)$")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
_INTEGERS = frozenset(
    [
        "integer",
        "nonPositiveInteger",
        "negativeInteger",
        "nonNegativeInteger",
        "positiveInteger",
        "long",
        "int",
        "short",
        "byte",
        "unsignedLong",
        "unsignedInt",
        "unsignedShort",
        "unsignedByte",
    ]
)
_AS_IT_IS = frozenset(("string", "anySimpleType", "anyType"))
_NEVER_EMPTY = frozenset(
    [
        "boolean",
        "decimal",
        "float",
        "double",
        "date",
        "dateTime",
        "time",
        "duration",
        "gYear",
        "gYearMonth",
        "gMonth",
        "gMonthDay",
        "gDay",
    ]
)
_SPECIAL = {"INF": "inf", "+INF": "inf", "-INF": "-inf", "NaN": "nan"}


def converter(kind: Any, zone: datetime.tzinfo | None) -> Convert:
    """What makes a value of the text of a simple type.

    Args:
        kind: zeep's type.
        zone: of date-times that name none; None leaves them as they are.
    """
    if hasattr(kind, "item_type"):
        item = converter(kind.item_type, zone)
        return lambda text: [item(part) for part in text.split()]
    if hasattr(kind, "item_types"):
        return converter(kind.item_class(), zone) if kind.item_class else collapsed
    name = builtin_name(kind)
    if name in _INTEGERS:
        return _integer
    if name == "dateTime" and zone is not None:
        return lambda text: _in_zone(text.strip(), zone)
    if name in _AS_IT_IS:
        return _same
    return _BY_NAME.get(name, collapsed)


def empty_value(kind: Any) -> Any:
    """The value of ``<name/>``: an empty text, an empty list; None where nothing is no value of the type."""
    if hasattr(kind, "item_type"):
        return []
    if hasattr(kind, "item_types"):
        return empty_value(kind.item_class()) if kind.item_class else ""
    name = builtin_name(kind)
    if name in _INTEGERS or name in _NEVER_EMPTY:
        return None
    return b"" if name == "base64Binary" else ""


def _same(text: str) -> str:
    return text


def _integer(text: str) -> Any:
    try:
        return int(text) if "_" not in text else text
    except ValueError:
        # More digits than Python takes, "1.0", or no number: the shape stage says what it thinks of it.
        return text.strip()


def _decimal(text: str) -> Any:
    try:
        return Decimal(text.strip()) if "_" not in text else text
    except InvalidOperation:
        return text.strip()


def _float(text: str) -> Any:
    plain = text.strip()
    try:
        return float(_SPECIAL.get(plain, plain)) if "_" not in plain else plain
    except ValueError:
        return plain


def _boolean(text: str) -> Any:
    plain = text.strip()
    return _TRUTH.get(plain, plain)


def _date(text: str) -> str:
    """A date without the zone that XSD allows behind it: Singer's dates have none."""
    return _ZONE.sub("", text.strip())


def _date_time(text: str) -> str:
    return text.strip()


def _bytes(text: str) -> Any:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return {"no base64": text}  # any text would do for the schema: this does not fit, and the error shows it


def _in_zone(text: str, zone: datetime.tzinfo) -> str:
    """A date-time with its zone; one without gets the one that the author says it has."""
    if _ZONE.search(text):
        return text
    moment = times.naive(text)
    offset = moment.replace(tzinfo=zone).utcoffset() if moment else None
    if offset is None:
        return text
    sign = "-" if offset < datetime.timedelta(0) else "+"
    minutes = abs(offset) // datetime.timedelta(minutes=1)
    return f"{text}{sign}{minutes // 60:02d}:{minutes % 60:02d}"


_BY_NAME: dict[str, Convert] = {
    "boolean": _boolean,
    "decimal": _decimal,
    "float": _float,
    "double": _float,
    "date": _date,
    "dateTime": _date_time,
    "base64Binary": _bytes,
    "normalizedString": normalized,
}
