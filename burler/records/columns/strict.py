"""A JSON Schema as the strict msgspec type that a clean record fits.

The types are those of ``burler.records.columns``, each narrowed to what Spark's JSON reader reads right. Where they
leave a schema as text holding JSON, any JSON value fits. What cannot be told for certain raises ``NeverClean``, since
narrower is safe and wider is not.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

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

Check = Callable[[Any], bool]


class NeverClean(Exception):
    """No record of this schema can be called clean; the text says why."""


@dataclass(slots=True)
class Built:
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


def record_type(schema: Mapping[str, Any], *, parse_times: bool = False) -> Built:
    """The type of a record.

    ``parse_times``: times are decoded, which is fast but loses their text. Whoever uses that type must
    compare what it encodes to with the text, and see to it that the times are in UTC.

    Raises:
        NeverClean: the schema has something that can't be told for certain.
    """
    _refuse_untold(schema, "the record")
    if "anyOf" in schema or "oneOf" in schema:
        raise NeverClean("the record itself is a union")
    built = Built(parse_times)
    try:
        built.record = _struct(schema, "record", built, "record")
    except NoColumn as reason:
        raise NeverClean(str(reason)) from None
    return built


def _refuse_untold(schema: Mapping[str, Any], place: str) -> None:
    for word in _UNTOLD:
        if word in schema:
            raise NeverClean(f"{place} has '{word}'")


def _struct(schema: Mapping[str, Any], place: str, built: Built, at: str | None) -> type:
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


def _value(given: Any, place: str, built: Built, at: str | None) -> tuple[Any, Check | None]:
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
    node: Mapping[str, Any], names: set[str], place: str, built: Built, at: str | None
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
