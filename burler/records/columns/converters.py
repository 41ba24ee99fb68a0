"""JSON source text to exact Python values, by column type. One converter is built per type.

A converter takes the bytes of one JSON value, never ``null``. Nothing is rounded: what a type can't hold
raises ``ColumnMisfit``. Only two things are let go, both counted: fields that the schema does not declare, and digits
of a second beyond the sixth. What is the same value in another spelling (``1.0`` for an integer) is counted as
repaired.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Context, Decimal, DecimalException
from typing import Any

import msgspec

from burler import times
from burler.records.columns.types import DIGITS, DecimalOf, FieldType, ListOf, MapOf, Scalar, StructOf
from burler.words import counted

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Counts by field path: undeclared fields dropped, times cut to microseconds, values in an odd spelling."""

    dropped: Counter[str] = field(default_factory=Counter)
    truncated: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)

    def add(self, other: Report) -> None:
        """Count what another has counted."""
        self.dropped.update(other.dropped)
        self.truncated.update(other.truncated)
        self.repaired.update(other.repaired)

    def remarks(self, cure: str) -> list[str]:
        """One sentence for each field that was dropped, and for each whose times were cut.

        Args:
            cure: what else to do about the first, behind "Declare it in the tap".
        """
        lost = [
            f"field '{path}' is not in the schema and has no column: left out of {counted(count, 'row')}. "
            f"Declare it in the tap{cure}"
            for path, count in sorted(self.dropped.items())
        ]
        return lost + [
            f"field '{path}': {counted(count, 'time')} cut to microseconds, all that the column holds"
            for path, count in self.truncated.items()
        ]


Convert = Callable[[bytes, Report], Any]
WANTED_WIDE = "an integer that a double holds exactly, since the column has numbers with fractions too"


class ColumnMisfit(Exception):
    """A value that its column can't hold exactly."""

    def __init__(self, path: Path, raw: bytes, wanted: str) -> None:
        super().__init__(path)
        self.path, self.wanted = path, wanted
        self.text = raw.decode("utf-8", "replace")


_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_array = msgspec.json.Decoder(list[msgspec.Raw])
_string = msgspec.json.Decoder(str)
_wide = Context(prec=2 * DIGITS)
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
"""Text that is a decimal. Python's own reading also takes ``1_000``, blanks around it, and digits of any script."""
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[Tt ]00:00(?::00(?:\.0+)?)?(?:[Zz]|[+-]00:?00)?)?", re.ASCII)


def converter(kind: FieldType, path: Path) -> Convert:
    """The function from a JSON value's bytes to a Python value that Arrow takes for ``kind``."""
    match kind:
        case StructOf(fields):
            return _struct({name: converter(inner, (*path, name)) for name, inner in fields}, path)
        case ListOf(item):
            return _list(converter(item, (*path, "[]")), path)
        case MapOf(value):
            return _map(converter(value, (*path, "{}")), path)
        case DecimalOf(scale):
            return _decimal(scale, path)
        case Scalar(name):
            return _SCALARS.get(name, _text)(path)


def row_type(names: Iterable[str], forms: Iterable[Any], nothing: msgspec.Raw, *, closed: bool = True) -> Any:
    """A type of objects for the decoder; None where a name can't be a field's (quotes, control characters, ...).

    Args:
        forms: what the decoder is to read of the fields; ``msgspec.Raw``: source text, ``nothing`` where none is.
        closed: other fields are refused.
    """
    rename = {f"f{place}": name for place, name in enumerate(names)}
    fields = [
        (field, form, nothing if form is msgspec.Raw else None) for field, form in zip(rename, forms, strict=False)
    ]
    try:
        return msgspec.defstruct("Row", fields, rename=rename, forbid_unknown_fields=closed, gc=False)
    except ValueError:
        return None


def _struct(fields: dict[str, Convert], path: Path) -> Convert:
    def convert(raw: bytes, report: Report) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for name, value in _parsed(_object, raw, path, "an object").items():
            field = fields.get(name)
            if field is None:
                report.dropped[".".join((*path, name))] += 1
            elif (inner := bytes(value)) != b"null":
                row[name] = field(inner, report)
        return row

    return convert


def _list(item: Convert, path: Path) -> Convert:
    def convert(raw: bytes, report: Report) -> list[Any]:
        values = map(bytes, _parsed(_array, raw, path, "an array"))
        return [None if inner == b"null" else item(inner, report) for inner in values]

    return convert


def _map(value: Convert, path: Path) -> Convert:
    def convert(raw: bytes, report: Report) -> list[tuple[str, Any]]:
        pairs = _parsed(_object, raw, path, "an object").items()
        return [(key, None if (text := bytes(inner)) == b"null" else value(text, report)) for key, inner in pairs]

    return convert


def _parsed(decoder: Any, raw: bytes, path: Path, wanted: str) -> Any:
    try:
        return decoder.decode(raw)
    except _BROKEN:
        raise ColumnMisfit(path, raw, wanted) from None


def _is_number(raw: bytes) -> bool:
    return raw[:1] in b"-0123456789"


def _decimal(scale: int, path: Path) -> Convert:
    step = Decimal(1).scaleb(-scale)

    def convert(raw: bytes, report: Report) -> Decimal:
        text = (
            raw.decode("ascii", "replace") if _is_number(raw) else _parsed(_string, raw, path, f"decimal(38,{scale})")
        )
        if _DECIMAL.fullmatch(text) is None:
            raise ColumnMisfit(path, raw, f"decimal(38,{scale})")
        try:
            number = Decimal(text)
            held = number.quantize(step, context=_wide)
        except DecimalException:
            raise ColumnMisfit(path, raw, f"decimal(38,{scale})") from None
        if held != number or len(held.as_tuple().digits) > DIGITS:
            raise ColumnMisfit(path, raw, f"decimal(38,{scale})")
        return held

    return convert


def _bigint(path: Path) -> Convert:
    where = ".".join(path)

    def convert(raw: bytes, report: Report) -> int:
        if not _is_number(raw):
            raise ColumnMisfit(path, raw, "an integer")
        number = Decimal(raw.decode("ascii"))
        # adjusted() first: int() of 1e999999999 would fill the memory.
        if number and (number.adjusted() > 19 or number != number.to_integral_value()):
            raise ColumnMisfit(path, raw, "an integer of 64 bits")
        whole = int(number)
        if not -(2**63) <= whole < 2**63:
            raise ColumnMisfit(path, raw, "an integer of 64 bits")
        if not raw.removeprefix(b"-").isdigit():
            report.repaired[where] += 1
        return whole

    return convert


def _whole_double(path: Path) -> Convert:
    whole = _bigint(path)

    def convert(raw: bytes, report: Report) -> float:
        number = whole(raw, report)
        if int(float(number)) != number:
            raise ColumnMisfit(path, raw, WANTED_WIDE)
        return float(number)

    return convert


def _double(path: Path) -> Convert:
    def convert(raw: bytes, report: Report) -> float:
        number = float(raw) if _is_number(raw) else math.inf
        if math.isinf(number):
            raise ColumnMisfit(path, raw, "a finite number")
        return 0.0 if raw == b"-0" else number  # no integer has a negative zero: readers of JSON agree

    return convert


def _boolean(path: Path) -> Convert:
    def convert(raw: bytes, report: Report) -> bool:
        if raw not in (b"true", b"false"):
            raise ColumnMisfit(path, raw, "true or false")
        return raw == b"true"

    return convert


def _text(path: Path) -> Convert:
    def convert(raw: bytes, report: Report) -> str:
        if raw[:1] == b'"':
            return str(_parsed(_string, raw, path, "text"))
        return raw.decode("utf-8")  # source text: 1.10 stays 1.10, an object stays JSON

    return convert


def _json(path: Path) -> Convert:
    def convert(raw: bytes, report: Report) -> str:
        return raw.decode("utf-8")

    return convert


def _variant(path: Path) -> Convert:
    def convert(raw: bytes, report: Report) -> str:
        if len(raw) > _VARIANT_BYTES:
            raise ColumnMisfit(path, raw, f"a VARIANT of at most {_VARIANT_BYTES:,} bytes")
        text = _parsed(_valid, raw, path, "JSON") and raw.decode("utf-8")
        if _is_deep(raw):
            raise ColumnMisfit(path, raw, f"what a VARIANT holds (nested {_VARIANT_LEVELS} levels deep at most)")
        try:
            json.loads(text, parse_int=_variant_number, parse_float=_variant_number, object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            raise ColumnMisfit(path, raw, f"what a VARIANT holds ({error})") from None
        return text

    return convert


_VARIANT_BYTES = 16_000_000
_VARIANT_LEVELS = 800
"""Spark's parser ends at 1,000; that of Python before 3.12 a little below."""
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_BRACKET = re.compile(rb"[\[{\]}]")
_valid = msgspec.json.Decoder(msgspec.Raw)


def _is_deep(raw: bytes) -> bool:
    """Whether valid JSON is nested deeper than a VARIANT may be."""
    if raw.count(b"[") + raw.count(b"{") <= _VARIANT_LEVELS:
        return False
    level = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", raw)):
        level += 1 if bracket in b"[{" else -1
        if level > _VARIANT_LEVELS:
            return True
    return False


def _variant_number(text: str) -> str:
    """A number that Spark's VARIANT takes as it is: 38 digits, or a finite double in the notation of one."""
    if sum(map(str.isdigit, text)) > DIGITS if "e" not in text.lower() else math.isinf(float(text)):
        raise ValueError("a number is too great, or has too many digits")
    return text


def _once(pairs: list[tuple[str, Any]]) -> None:
    names = {name for name, _ in pairs}
    if len(names) < len(pairs):
        raise ValueError("a key comes twice")


def _timestamp(path: Path) -> Convert:
    where = ".".join(path)

    def convert(raw: bytes, report: Report) -> dt.datetime:
        text = _parsed(_string, raw, path, "an RFC 3339 date-time")
        try:
            moment, cut = times.lenient(text)
        except ValueError:
            raise ColumnMisfit(path, raw, "an RFC 3339 date-time in years 1 to 9999") from None
        if cut:
            report.truncated[where] += 1
        elif not times.is_plain(text):
            report.repaired[where] += 1
        return moment

    return convert


def _date(path: Path) -> Convert:
    where = ".".join(path)

    def convert(raw: bytes, report: Report) -> dt.date:
        text = _parsed(_string, raw, path, "a date")
        match = _MIDNIGHT.fullmatch(text)
        try:
            day = dt.date.fromisoformat(match.group(1) if match else "")
        except ValueError:
            raise ColumnMisfit(path, raw, "a date (YYYY-MM-DD)") from None
        if match is not None and match.group(1) != text:
            report.repaired[where] += 1
        return day

    return convert


def _binary(path: Path) -> Convert:
    def convert(raw: bytes, report: Report) -> bytes:
        text = _parsed(_string, raw, path, "base64")
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise ColumnMisfit(path, raw, "base64") from None

    return convert


_SCALARS: dict[str, Callable[[Path], Convert]] = {
    "bigint": _bigint,
    "double": _double,
    "boolean": _boolean,
    "timestamp": _timestamp,
    "date": _date,
    "binary": _binary,
    "json": _json,
    "variant": _variant,
    "wide": _whole_double,
}
