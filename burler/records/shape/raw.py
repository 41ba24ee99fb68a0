"""Leaves of pages that are decoded from bytes: they hold the bytes of their values.

Numbers go out as the source wrote them, digit for digit, without ever being floats; so do values that no schema
describes. Whether a column holds such values only is seen in one pass over its joined bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any

import msgspec

from burler.records.shape.fixes import Check
from burler.records.shape.tree import Fix
from burler.records.shape.values import types_of

_NUMBER = b"0123456789.,-+eE"
_NUMBER_OR_NULL = _NUMBER + b"nul"
_UNSET = msgspec.UNSET
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_MANY = b"0" * 300
_HUGE = re.compile(rb"[eE][+-]?\d{3}")

_decoder = msgspec.json.Decoder(float_hook=Decimal)


def value_of(value: Any) -> Any:
    """What a leaf's value is in Python: numbers with a fraction as Decimals.

    Raises:
        ValueError: Python has no form for it: half of a surrogate pair, thousands of digits.
    """
    if type(value) is msgspec.Raw:
        try:
            return _decoder.decode(value)
        except ArithmeticError:
            raise ValueError("the exponent of a number is too large") from None
    if type(value) is list:
        return [value_of(item) for item in value]
    return value


def kind_and_fix(schema: Any, check: Check | None, held: Callable[[Mapping[str, Any]], bool]) -> tuple[Any, Fix | None]:
    """The msgspec type of a leaf, and its fix.

    Args:
        check: of the values as Python has them (``fixes.check_of``).
        held: whether a node says more than types.
    """
    if isinstance(schema, Mapping) and not held(schema):
        wanted = set(types_of(schema))
        if "number" in wanted and wanted <= {"number", "integer", "null"}:
            return msgspec.Raw, _numbers("null" in wanted)
        items = schema.get("items")
        if wanted in ({"array"}, {"array", "null"}) and isinstance(items, Mapping) and not held(items):
            inner = set(types_of(items))
            if "number" in inner and inner <= {"number", "integer", "null"} and "anyOf" not in items:
                kind = list[msgspec.Raw]
                return (kind | None if "null" in wanted else kind), _lists(_numbers("null" in inner))
    if (schema is True or schema == {}) and check is not None:
        return msgspec.Raw, _open
    return msgspec.Raw, _decoded(check)


def _joined(values: list[Any], between: bytes) -> bytes:
    """The bytes of those values that are there."""
    try:
        return between.join(values)
    except TypeError:
        return between.join([value for value in values if value is not _UNSET])


def _numbers(nullable: bool) -> Fix:
    """JSON was read already, so that of the letters in numbers and ``null`` only these can be made."""
    letters = _NUMBER_OR_NULL if nullable else _NUMBER

    def fix(values: list[Any]) -> list[Any] | None:
        joined = _joined(values, b",")
        return None if joined.translate(None, letters) or not _is_readable(joined) else values

    return fix


def _is_readable(joined: bytes) -> bool:
    """Whether it surely holds no number that readers refuse: of thousands of digits, or with a huge exponent."""
    if _MANY in joined.translate(_DIGITS):
        return False
    return not (b"e" in joined or b"E" in joined) or _HUGE.search(joined) is None


def _lists(numbers: Fix) -> Fix:
    def fix(values: list[Any]) -> list[Any] | None:
        inner = list(chain.from_iterable(value for value in values if type(value) is list))
        return None if numbers(inner) is None else values

    return fix


def _open(values: list[Any]) -> list[Any] | None:
    """Any JSON: on one line, in UTF-8 (the decoder looks at neither in what it passes over)."""
    joined = _joined(values, b"")
    if b"\n" in joined or b"\r" in joined:
        return None
    try:
        joined.decode()
    except UnicodeDecodeError:
        return None
    return values if _is_readable(joined) else None


def _decoded(check: Check | None) -> Fix | None:
    if check is None:
        return None

    def fix(values: list[Any]) -> list[Any] | None:
        try:
            made = [value_of(value) for value in values]
        except (msgspec.DecodeError, UnicodeError, ValueError):
            return None
        return made if check(made) else None

    return fix
