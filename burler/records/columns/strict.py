"""A JSON Schema as the strict msgspec type that a clean record fits.

The types are those of ``burler.records.columns``, each narrowed to what Spark's JSON reader reads right. Where they
leave a schema as text holding JSON, any JSON value fits. What cannot be told for certain raises ``NeverClean``, since
narrower is safe and wider is not.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

INT64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_PRECISION = 38
_DEFAULT_SCALE = 18
_DATE = (
    r"(?!0000)(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|02-(?:0[1-9]|1\d|2[0-8]))"
    r"|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_CLOCK = r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?"
# With an offset the first and the last year may leave the calendar in UTC; with a Z they cannot.
_OFFSET = r"[+-](?:(?:0\d|1[0-7]):[0-5]\d|18:00)"
_DATE_TIME = Annotated[str, Meta(pattern=rf"(?a)\A(?:{_DATE}{_CLOCK}Z|(?!0001|9999){_DATE}{_CLOCK}{_OFFSET})\Z")]
_AWARE = Annotated[dt.datetime, Meta(tz=True)]
_DAY = Annotated[str, Meta(pattern=rf"(?a)\A{_DATE}\Z")]
_BASE64 = Annotated[
    str,
    Meta(pattern=r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z"),
]
_TYPES = {"null", "boolean", "integer", "number", "string", "array", "object"}
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

    def string(self, node: Mapping[str, Any], at: str | None) -> Any:
        """The type of a text; ``at`` is its attribute path, None inside of lists and maps."""
        if node.get("contentEncoding") == "base64":
            return _BASE64
        form = node.get("format")
        if form == "date-time":
            self.in_lists |= at is None
            self.moments.append(at or "")
            return _AWARE if self.parse_times else _DATE_TIME
        if form == "date":
            return dt.date if self.parse_times else _DAY
        return str


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
    built.record = _struct(schema, "record", built, "record")
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


def _value(node: Any, place: str, built: Built, at: str | None) -> tuple[Any, Check | None]:
    """(the type of one value, a check of what the type can't express)."""
    if node is True:
        return built.any_json(), None
    if not isinstance(node, Mapping):
        raise NeverClean(f"{place} has no schema")
    _refuse_untold(node, place)
    for word in ("anyOf", "oneOf"):
        if word in node:
            return _union_of_schemas(node, word, place, built, at)
    kinds = _kinds(node, place)
    if not kinds:
        return built.any_json(), None
    nullable = "null" in kinds
    kind, check = _kind(kinds - {"null"}, node, place, built, at)
    if nullable and kind is not Any and kind is not None and kind is not Raw:
        kind = kind | None
    if nullable and kind is Raw and check is not None:
        check = _or_null(check)
    return kind, check


def _kinds(node: Mapping[str, Any], place: str) -> frozenset[str]:
    """The JSON types a node allows; empty for any."""
    kinds = node.get("type")
    if kinds is None and ("enum" in node or "const" in node):
        raise NeverClean(f"{place} lists values and names no type")
    if kinds is None:
        return frozenset({"object"} if "properties" in node else {"array"} if "items" in node else ())
    listed = frozenset([kinds] if isinstance(kinds, str) else kinds)
    if not listed <= _TYPES:
        raise NeverClean(f"{place} has an unknown type")
    return listed


def _union_of_schemas(
    node: Mapping[str, Any], word: str, place: str, built: Built, at: str | None
) -> tuple[Any, Check | None]:
    """``anyOf`` of one schema and null is that schema; any other union can't be told."""
    branches = node[word]
    if not isinstance(branches, list) or not all(isinstance(branch, Mapping) for branch in branches):
        raise NeverClean(f"{place}: '{word}' is no list of schemas")
    if any(key in node for key in ("type", "properties", "items", "anyOf", "oneOf") if key != word):
        raise NeverClean(f"{place} has '{word}' beside other types")
    shared = {key: value for key, value in node.items() if key != word}
    others = [branch for branch in branches if branch.get("type") not in ("null", ["null"])]
    if len(others) != 1:
        raise NeverClean(f"{place} is a union")
    kind, check = _value({**shared, **others[0]}, place, built, at)
    if kind is Raw and check is not None:
        return Raw, _or_null(check)
    return (kind if kind is Any or kind is None else kind | None), check


def _kind(
    kinds: frozenset[str], node: Mapping[str, Any], place: str, built: Built, at: str | None
) -> tuple[Any, Check | None]:
    """The type for the JSON types of a node, less null."""
    if not kinds:
        return None, None
    if "string" in kinds and (text := built.string(node, at)) is not str:
        return text, None  # also in a union: right whether it is read as text or as the time it is
    if node.get("format") == "singer.decimal":
        return _decimal(node, node.get("scale", _DEFAULT_SCALE), kinds, place)
    if kinds == {"integer"}:
        return _integer(node)
    if kinds <= {"integer", "number"}:
        scale = _decimal_scale(node.get("multipleOf"))
        return (float, None) if scale is None else _decimal(node, scale, kinds, place)
    if kinds == {"boolean"}:
        return bool, None
    if kinds == {"string"}:
        return str, None
    if kinds == {"array"}:
        return _array(node, place, built)
    if kinds == {"object"}:
        return _object(node, place, built, at)
    if "string" in kinds and not kinds & {"array", "object"}:
        return str | int | float | bool, None
    return built.any_json(), None


def _array(node: Mapping[str, Any], place: str, built: Built) -> tuple[Any, Check | None]:
    items = node.get("items")
    if not isinstance(items, Mapping) or "prefixItems" in node:
        built.open_names = True
        return list[Any], None
    kind, check = _value(items, f"{place}[]", built, None)
    return list[kind], None if check is None else _all(check)  # type: ignore[valid-type]


def _object(node: Mapping[str, Any], place: str, built: Built, at: str | None) -> tuple[Any, Check | None]:
    """A struct where every field is known; a map where one schema is for all; else text holding JSON."""
    rest = node.get("additionalProperties", False)
    if node.get("properties"):
        if rest is False:
            return _struct(node, place, built, at), None
        return dict[str, built.any_json()], None  # type: ignore[misc]
    built.open_names = True
    if isinstance(rest, Mapping):
        kind, check = _value(rest, f"{place}{{}}", built, None)
        return dict[str, kind], None if check is None else _all_values(check)  # type: ignore[valid-type]
    return dict[str, Any], None


def _all(check: Check) -> Check:
    return lambda values: values is None or all(map(check, values))


def _all_values(check: Check) -> Check:
    return lambda values: values is None or all(map(check, values.values()))


def _or_null(check: Check) -> Check:
    return lambda raw: bytes(raw) == b"null" or check(raw)


def _integer(node: Mapping[str, Any]) -> tuple[Any, Check | None]:
    """64 bits; up to 38 digits where the schema's own bounds leave 64 bits."""
    if any(_is_number(node.get(key)) and not fits(node[key]) for key, fits in _BOUNDS.items()):
        return Raw, _raw_matches(rb"-?\d{1,38}")
    return INT64, None


# An exclusive bound may stand one beyond the last value.
_BOUNDS: dict[str, Callable[[Any], bool]] = {
    "minimum": lambda bound: -(2**63) <= bound <= 2**63 - 1,
    "maximum": lambda bound: -(2**63) <= bound <= 2**63 - 1,
    "exclusiveMinimum": lambda bound: -(2**63) - 1 <= bound <= 2**63,
    "exclusiveMaximum": lambda bound: -(2**63) - 1 <= bound <= 2**63,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _decimal_scale(multiple_of: Any) -> int | None:
    """s where ``multipleOf`` is 10^-s, s >= 0; else None (then the value is a double)."""
    if not _is_number(multiple_of):
        return None
    _, digits, exponent = Decimal(str(multiple_of)).normalize().as_tuple()
    return -exponent if digits == (1,) and isinstance(exponent, int) and exponent <= 0 else None


def _decimal(node: Mapping[str, Any], scale: Any, kinds: frozenset[str], place: str) -> tuple[Any, Check | None]:
    """decimal(38, scale): every digit must fit, since Spark rounds what is too fine without a word."""
    if not isinstance(scale, int) or isinstance(scale, bool) or not 0 <= scale <= _PRECISION:
        raise NeverClean(f"{place}: {scale!r} is no scale of a decimal of 38 digits")
    whole = _PRECISION - scale
    if kinds <= {"string"}:
        fraction = rf"(?:\.\d{{1,{scale}}})?" if scale else ""
        return Annotated[str, Meta(pattern=rf"(?a)\A-?\d{{1,{max(1, whole)}}}{fraction}\Z")], None
    if kinds <= {"integer", "number"}:
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
    return exponent + zeros >= -scale and len(digits) + exponent <= _PRECISION - scale


def _raw_matches(pattern: bytes) -> Check:
    match = re.compile(pattern).fullmatch
    return lambda raw: match(bytes(raw)) is not None


# ---- plain fields: what each holds can be told from a row that was shaped, without its JSON --------------------------

Plain = tuple[Any, ...]
"""``(kind, nullable)``, of an array ``("array", nullable, items)``, of an object ``("object", nullable, ((name, plain),
...))``, sorted. Kinds: text, truth, whole, number, time, date."""

_NEVER_PLAIN = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependencies", "dependentSchemas"}
    | {"prefixItems", "additionalItems", "contentEncoding", "multipleOf"}
)
_PLAIN_FORMATS = {"date-time": "time", "date": "date"}
_PLAIN_KINDS = {
    frozenset({"boolean"}): "truth",
    frozenset({"integer"}): "whole",
    frozenset({"number"}): "number",
    frozenset({"number", "integer"}): "number",
}
_IN_ARRAYS = ("text", "truth", "whole")


def plain_record(schema: Mapping[str, Any], left_out: Any = None) -> Plain | None:
    """What a record holds; None if some field is not plain.

    Args:
        left_out: stands in ``properties`` for a field that is known and does not come.
    """
    if not _NEVER_PLAIN.isdisjoint(schema):
        return None
    return _fields(schema, False, left_out)


def _fields(schema: Mapping[str, Any], nullable: bool, left_out: Any) -> Plain | None:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    found = []
    for name, node in properties.items():
        if left_out is not None and node is left_out:
            continue
        kind = _plain(node, left_out)
        if kind is None:
            return None
        found.append((name, kind))
    return ("object", nullable, tuple(sorted(found))) if found else None


def _plain(node: Any, left_out: Any) -> Plain | None:
    if not isinstance(node, Mapping) or not _NEVER_PLAIN.isdisjoint(node) or node.get("format") == "singer.decimal":
        return None
    said = node.get("type")
    types = {said} if isinstance(said, str) else set(said) if isinstance(said, list | tuple) else set()
    nullable = "null" in types
    types.discard("null")
    if types == {"string"}:
        return _PLAIN_FORMATS.get(str(node.get("format")), "text"), nullable
    if types == {"array"}:
        items = _plain(node.get("items"), left_out)
        return ("array", nullable, items) if items is not None and items[0] in _IN_ARRAYS else None
    if types == {"object"}:
        return None if node.get("additionalProperties", False) is not False else _fields(node, nullable, left_out)
    kind = _PLAIN_KINDS.get(frozenset(types))
    return None if kind is None else (kind, nullable)
