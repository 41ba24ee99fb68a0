"""Whether records are *clean*: whether a plain JSON reader with the schema's types reads them right.

Spark's JSON reader turns some values into others without a word (milliseconds into the year 55840, 1e400 into
infinity, the second of two equal keys into the only one) and others into NULL. A file is
``clean`` only if none of its records gives it the chance; all other files are read through exact,
slower code. So the one rule here is: in doubt, not clean.

A page is decoded with a strict msgspec type made from the schema (see its end). If it
encodes to the same bytes again, all is said; if not, what a decoder cannot see is checked beside it:

* equal keys in one object: the page is encoded again, and must have as many keys as before;
* texts, numbers, names and nesting beyond the limits of Spark's reader: only long lines can have them;
* carriage returns between tokens: to Spark they end a line.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw

from burler import times
from burler.records.columns.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DIGITS,
    DOUBLE,
    STRING,
    TIMESTAMP,
    DecimalOf,
    FieldType,
    ListOf,
    MapOf,
    NoColumn,
    StructOf,
    branch_type,
    branches_of,
    type_names,
)
from burler.records.shape.proof import Plain, plain_record
from burler.records.tries import Tries
from burler.singer.messages import Vouched
from burler.times import CLOCK, DAY

INT64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_CLOCK = rf"T{CLOCK}(?:\.\d{{1,6}})?"
# With an offset the first and the last year may leave the calendar in UTC; with a Z they cannot.
_OFFSET = r"[+-](?:(?:0\d|1[0-7]):[0-5]\d|18:00)"
_DATE_TIME = Annotated[str, Meta(pattern=rf"(?a)\A(?:{DAY}{_CLOCK}Z|(?!0001|9999){DAY}{_CLOCK}{_OFFSET})\Z")]
_AWARE = Annotated[dt.datetime, Meta(tz=True)]
_DAY = Annotated[str, Meta(pattern=rf"(?a)\A{DAY}\Z")]
_BASE64 = Annotated[
    str,
    Meta(pattern=r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z"),
]
_UNTOLD = ("$ref", "allOf", "patternProperties", "dependencies", "dependentSchemas", "if")
_MAX_NAME = 10_000
_encode_lines = msgspec.json.Encoder(decimal_format="number").encode_lines
Decode = Callable[[bytes | bytearray], Any]
_KEY = b'":'
_SPACED_KEY = re.compile(rb'"[ \t]+:')
_ESCAPED_KEY = re.compile(rb"\\u00(?:22|3[aA])")

_UNFIT = (msgspec.DecodeError, ValueError, OverflowError, RecursionError, AttributeError)

_MAX_NUMBER_CHARACTERS = 1_000
_MAX_NAME_BYTES = 50_000
_MAX_LINE_BYTES = 20_000_000
_MAX_BRACKETS = 990
"""Spark's limits are 1,000 digits, 50,000 characters a name, 20,000,000 a text, 1,000 levels; the last less
the message around the record."""
_LONG_NUMBER = re.compile(rb"[0-9.eE+-]{%d}" % _MAX_NUMBER_CHARACTERS)
_TEXT = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"([ \t]*:)?')  # whole: a quote in it begins none


class NeverClean(Exception):
    """No record of this schema can be called clean; the text says why."""


class CleanCheck:
    """The check for the records of one schema. Pages may come in any order.

    ``never`` says why no record of this schema can be called clean; None if they can. ``kinds``: what its records hold
    if they are clean, where that is plain.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.never: str | None = None
        self.kinds: Plain | None = None
        self._tries = Tries()
        try:
            exact, fast = clean_type(schema), clean_type(schema, parse_times=True)
        except NeverClean as reason:
            self.never = str(reason)
        except (RecursionError, TypeError, ValueError, AttributeError) as error:
            self.never = f"the schema is of an odd shape ({type(error).__name__})"
        else:
            self.kinds = plain_record(schema)
            self._has_open_names = exact.open_names
            self._decode: Decode = msgspec.json.Decoder(_message_type(exact.record)).decode
            self._decode_fast: Decode = msgspec.json.Decoder(_message_type(fast.record)).decode
            self._moments = list(map(attrgetter, fast.moments)) if not fast.in_lists else []
            self._has_fast = not fast.in_lists

    def vouched(self, lines: bytes | bytearray, said: Vouched) -> bool:
        """The same of lines that burler has made of rows, where their maker knows that they fit: then nothing is left
        to see but the lengths of lines. False says nothing."""
        if self.never is not None or self.kinds is None or said.kinds != self.kinds or not said():
            return False
        return not _has_long_line(lines) or self._long_lines_fit(bytes(lines[:-1]).split(b"\n"))

    def page(self, lines: bytes | bytearray | Iterable[bytes]) -> bool:
        """Whether all RECORD lines of a page are clean.

        ``lines`` is one buffer of complete lines, each ended by ``\\n``, or the single lines.
        """
        if self.never is not None:
            return False
        page = lines if isinstance(lines, (bytes, bytearray)) else b"".join(map(_ended, lines))
        if not page:
            return True
        if not page.endswith(b"\n") or b"\r" in page:
            return False
        rows = page[:-1].split(b"\n")
        if max(map(len, rows)) >= _MAX_NUMBER_CHARACTERS and not self._long_lines_fit(rows):
            return False
        return self._fast(page, rows) or self._exact(page, rows)

    def _fast(self, page: bytes | bytearray, rows: Sequence[bytes | bytearray]) -> bool:
        """Whether decoding and encoding gives the very same bytes: then nothing was lost or bent.

        So it is for pages that burler made; see ``Tries`` for where it fails.
        """
        if not self._has_fast or not self._tries:
            return False
        try:
            decoded = list(map(self._decode_fast, rows))
            same = _encode_lines(decoded) == page and _times_are_ours(decoded)
            same = same and all(_in_utc(decoded, moment) for moment in self._moments)
        except _UNFIT:
            same = False
        self._tries.ended(well=same)
        return same

    def _exact(self, page: bytes | bytearray, rows: Sequence[bytes | bytearray]) -> bool:
        try:
            decoded = list(map(self._decode, rows))
            return _times_are_ours(decoded) and _keys_are_distinct(page, _encode_lines(decoded))
        except _UNFIT:
            return False

    def _long_lines_fit(self, rows: Sequence[bytes | bytearray]) -> bool:
        for row in rows:
            size = len(row)
            if size < _MAX_NUMBER_CHARACTERS:
                continue
            if size > _MAX_LINE_BYTES or row.count(b"{") + row.count(b"[") > _MAX_BRACKETS:
                return False
            if _has_long_number(row):
                return False
            if size > _MAX_NAME_BYTES and self._has_open_names and _has_long_name(row):
                return False
        return True


def _message_type(record: Any) -> type:
    """A RECORD line as the lake writes it, and nothing else."""
    return msgspec.defstruct(
        "Message",
        [
            ("type", Literal["RECORD"]),
            ("stream", str),
            ("record", record),
            ("time_extracted", str),
            ("version", INT64 | msgspec.UnsetType, msgspec.UNSET),
        ],
        forbid_unknown_fields=True,
        gc=False,
    )


def _times_are_ours(decoded: list[Any]) -> bool:
    """``time_extracted`` is as the lake writes it; a page has few different ones."""
    return all(map(times.is_lake_form, {message.time_extracted for message in decoded}))


def _in_utc(decoded: list[Any], moment: Callable[[Any], Any]) -> bool:
    """All times of a column are in UTC (msgspec keeps other offsets). A missing parent is an AttributeError."""
    return {getattr(value, "tzinfo", dt.UTC) for value in map(moment, decoded)} <= {dt.UTC}


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


def _keys_are_distinct(page: bytes | bytearray, encoded: bytes) -> bool:
    """No object of the page has a key twice: decoding it would have lost one.

    The mark of a key is ``":``. In text the quote is escaped, and stays so when encoded again: both
    sides count it alike, unless the page spells these two characters otherwise.
    """
    if page.count(_KEY) != encoded.count(_KEY):
        return False
    return not _SPACED_KEY.search(page) and not _ESCAPED_KEY.search(page)


def _has_long_line(page: bytes | bytearray) -> bool:
    """Whether a line is so long that it is looked at. In leaps, since to cut a page into lines costs more than all else
    that is done for a page that is known to be clean."""
    start, end = 0, len(page)
    while end - start > _MAX_NUMBER_CHARACTERS:
        cut = page.rfind(b"\n", start, start + _MAX_NUMBER_CHARACTERS)
        if cut < 0:
            return True
        start = cut + 1
    return False


def _has_long_number(row: bytes | bytearray) -> bool:
    """A number of more than 1,000 characters, or a text that looks like one.

    Such a run covers two neighbours of any sample taken each 500 bytes: most lines need no search.
    """
    half = _MAX_NUMBER_CHARACTERS // 2
    sample = bytes(row[::half]).translate(_NUMBER_MAP)
    return b"11" in sample and _LONG_NUMBER.search(row) is not None


_NUMBER_MAP = bytes(0x31 if byte in b"0123456789.eE+-" else 0x20 for byte in range(256))


def _has_long_name(row: bytes | bytearray) -> bool:
    return any(colon and len(text) > _MAX_NAME_BYTES for text, colon in _TEXT.findall(row))


# ---- the strict type -------------------------------------------------------------------------------------------------
# The types are those of ``burler.records.columns``, each narrowed to what Spark's JSON reader reads right. Where they
# leave a schema as text holding JSON, any JSON value fits. What cannot be told for certain raises ``NeverClean``, since
# narrower is safe and wider is not.

Check = Callable[[Any], bool]


@dataclass(slots=True)
class CleanType:
    """A record's type, and what was found out while it was built.

    ``open_names``: names that the schema does not list can occur. ``moments``: where the datetimes
    are, as attribute paths. ``in_lists``: some are in lists or maps.
    """

    parse_times: bool
    record: Any = None
    open_names: bool = False
    moments: list[str] = field(default_factory=list)
    in_lists: bool = False

    def any_json(self) -> Any:
        """Any JSON at all; its objects may hold any names."""
        self.open_names = True
        return Any

    def moment(self, at: str | None) -> Any:
        """The type of a date-time; ``at`` is its attribute path, None inside of lists and maps."""
        self.in_lists |= at is None
        self.moments.append(at or "")
        return _AWARE if self.parse_times else _DATE_TIME


def clean_type(schema: Mapping[str, Any], *, parse_times: bool = False) -> CleanType:
    """The type of a record.

    ``parse_times``: times are decoded, which is fast but loses their text. Whoever uses that type must
    compare what it encodes to with the text, and see to it that the times are in UTC.

    Raises:
        NeverClean: the schema has something that can't be told for certain.
    """
    _refuse_untold(schema, "the record")
    if "anyOf" in schema or "oneOf" in schema:
        raise NeverClean("the record itself is a union")
    built = CleanType(parse_times)
    try:
        built.record = _struct(schema, "record", built, "record")
    except NoColumn as reason:
        raise NeverClean(str(reason)) from None
    return built


def _refuse_untold(schema: Mapping[str, Any], place: str) -> None:
    for word in _UNTOLD:
        if word in schema:
            raise NeverClean(f"{place} has '{word}'")


def _struct(schema: Mapping[str, Any], place: str, built: CleanType, at: str | None) -> type:
    """An object whose fields are all known; a field may be absent."""
    properties = schema.get("properties") or {}
    if not isinstance(properties, Mapping):
        raise NeverClean(f"{place}: 'properties' is no object")
    _refuse_case_twins(properties, place)
    fields: list[Any] = []
    checks: dict[str, Check] = {}
    names = {}
    for position, (name, node) in enumerate(properties.items()):
        attribute = f"f{position}"
        names[attribute] = name
        kind, check = _value(node, f"{place}.{name}", built, at and f"{at}.{attribute}")
        fields.append((attribute, kind | msgspec.UnsetType if kind is not Any else Any, msgspec.UNSET))
        if check is not None:
            checks[attribute] = check
    namespace = {"__post_init__": _post_init(checks)} if checks else {}
    return msgspec.defstruct(
        "Record",
        fields,
        rename=names,
        namespace=namespace,
        forbid_unknown_fields=True,
        kw_only=True,
        gc=False,
    )


def _refuse_case_twins(properties: Mapping[str, Any], place: str) -> None:
    for fold in (str.lower, str.casefold, str.upper):
        if len({fold(name) for name in properties}) != len(properties):
            raise NeverClean(f"{place} has names that differ only in upper and lower case")
    if any(len(name) > _MAX_NAME for name in properties):
        raise NeverClean(f"{place} has a very long name")


def _post_init(checks: Mapping[str, Check]) -> Callable[[Any], None]:
    pairs = list(checks.items())

    def check_all(self: Any) -> None:
        for attribute, check in pairs:
            value = getattr(self, attribute)
            if value is not msgspec.UNSET and not check(value):
                raise ValueError(attribute)

    return check_all


def _value(given: Any, place: str, built: CleanType, at: str | None) -> tuple[Any, Check | None]:
    """(the type of one value, a check of what the type can't express)."""
    if given is True:
        return built.any_json(), None
    if not isinstance(given, Mapping):
        raise NeverClean(f"{place} has no schema")
    _refuse_untold(given, place)
    nullable, found = False, []
    for branch in branches_of(given):
        _refuse_untold(branch, place)
        if branch.get("type") is None and ("enum" in branch or "const" in branch):
            raise NeverClean(f"{place} lists values and names no type")
        names = type_names(branch)
        nullable |= "null" in names
        if names != {"null"}:
            found.append((branch, names - {"null"}))
    if len(found) > 1:
        raise NeverClean(f"{place} is a union")
    kind, check = _kind(*found[0], place, built, at) if found else (None, None)
    if not nullable or kind is Any or kind is None:
        return kind, check
    if kind is Raw and check is not None:
        return Raw, _or_null(check)
    return kind | None, check


def _kind(
    node: Mapping[str, Any], names: set[str], place: str, built: CleanType, at: str | None
) -> tuple[Any, Check | None]:
    """The type for the values of a branch, less null: that of its column, made narrow."""
    kind = branch_type(node)
    match kind:
        case StructOf():
            return _struct(node, place, built, at), None
        case ListOf():
            inner, check = _value(node["items"], f"{place}[]", built, None)
            return list[inner], None if check is None else _all(check)  # type: ignore[valid-type]
        case MapOf():
            built.open_names = True
            inner, check = _value(node["additionalProperties"], f"{place}{{}}", built, None)
            return dict[str, inner], None if check is None else _all_values(check)  # type: ignore[valid-type]
        case DecimalOf(scale):
            return _decimal(scale, names, place)
    if "string" in names and len(names) > 1 and (alone := branch_type({**node, "type": "string"})) in _TEXTS:
        kind = alone  # also in a union: right whether it is read as text or as the time it is
    if kind == TIMESTAMP:
        return built.moment(at), None
    if kind == DATE:
        return dt.date if built.parse_times else _DAY, None
    if kind == STRING and names != {"string"}:
        return str | int | float | bool, None
    return _SCALARS[kind] if kind in _SCALARS else built.any_json(), None


_TEXTS = (TIMESTAMP, DATE, BINARY)
_SCALARS: dict[FieldType, Any] = {BIGINT: INT64, DOUBLE: float, BOOLEAN: bool, STRING: str, BINARY: _BASE64}


def _all(check: Check) -> Check:
    return lambda values: values is None or all(map(check, values))


def _all_values(check: Check) -> Check:
    return lambda values: values is None or all(map(check, values.values()))


def _or_null(check: Check) -> Check:
    return lambda raw: bytes(raw) == b"null" or check(raw)


def _decimal(scale: int, names: set[str], place: str) -> tuple[Any, Check | None]:
    """decimal(38, scale): every digit must fit, since Spark rounds what is too fine without a word."""
    if names <= {"string"}:
        fraction = rf"(?:\.\d{{1,{scale}}})?" if scale else ""
        return Annotated[str, Meta(pattern=rf"(?a)\A-?\d{{1,{max(1, DIGITS - scale)}}}{fraction}\Z")], None
    if names == {"integer"}:
        return Raw, lambda raw: bytes(raw).removeprefix(b"-").isdigit() and _fits(bytes(raw), 0)
    if names <= {"integer", "number"}:
        return Raw, lambda raw: _fits(bytes(raw), scale)
    raise NeverClean(f"{place} is a decimal of several types")


def _fits(text: bytes, scale: int) -> bool:
    """Whether a JSON number keeps its exact value with ``scale`` digits after the point, 38 in all."""
    if not text or text[0] not in b"-0123456789" or len(text) > 100:
        return False
    try:
        number = Decimal(text.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError):
        return False
    if not number:
        return True
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return exponent + zeros >= -scale and len(digits) + exponent <= DIGITS - scale
