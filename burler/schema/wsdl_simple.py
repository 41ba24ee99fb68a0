"""Simple types of XSD as JSON Schema: numbers with their bounds, texts with their lengths, dates, lists, unions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from burler.schema.wsdl_zeep import XSD, facets_of

_BOUNDS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    **{name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in
       (("long", 64), ("int", 32), ("short", 16), ("byte", 8))},
    **{name: (0, 2**bits - 1) for name, bits in
       (("unsignedLong", 64), ("unsignedInt", 32), ("unsignedShort", 16), ("unsignedByte", 8))},
}  # fmt: skip
_PLAIN: dict[str, dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    "float": {"type": "number"},
    "double": {"type": "number"},
    "decimal": {"type": "number", "format": "singer.decimal"},
    "dateTime": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
    "duration": {"type": "string", "format": "duration"},
    "base64Binary": {"type": "string", "contentEncoding": "base64"},
    "anySimpleType": {},
}
_LINE = {ord(sign): " " for sign in "\t\n\r"}
_MOST_DIGITS = 300  # beyond, 10**-digits is no float any more, and no service means it


def builtin_name(kind: Any) -> str:
    """The name of XSD's own type that a simple type of zeep comes from in the end: "int", "dateTime", ..."""
    for cls in type(kind).__mro__:
        name = cls.__dict__.get("_default_qname")
        if name is not None and name.namespace == XSD:
            return str(name.localname)
    return "anySimpleType"


def collapsed(text: str) -> str:
    """A text as XSD reads it where white space says nothing: tokens, names, addresses."""
    return " ".join(part for part in normalized(text).split(" ") if part)


def normalized(text: str) -> str:
    """A text of one line."""
    return text.translate(_LINE)


_SPACES: dict[str, Callable[[str], str]] = {"string": str, "normalizedString": normalized}


def simple_schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a simple type of zeep. A value may not be null; see ``nullable``."""
    if hasattr(kind, "item_type"):
        return {"type": "array", "items": simple_schema(kind.item_type)}
    if hasattr(kind, "item_types"):
        return (simple_schema(kind.item_class()) if kind.item_class else {}) or {"type": "string"}
    name = builtin_name(kind)
    schema = _integer(name) if name in _BOUNDS else dict(_PLAIN.get(name, {"type": "string"}))
    for facets in facets_of(kind):
        _narrow(schema, facets, _SPACES.get(name, collapsed))
    return schema


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """A copy that takes null as well."""
    out = dict(schema)
    kinds = out.get("type")
    if kinds is not None:
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        out["type"] = kinds if "null" in kinds else ["null", *kinds]
    if "enum" in out and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    if "anyOf" in out and {"type": "null"} not in out["anyOf"]:
        out["anyOf"] = [{"type": "null"}, *out["anyOf"]]
    return out


def _integer(name: str) -> dict[str, Any]:
    least, most = _BOUNDS[name]
    out: dict[str, Any] = {"type": "integer"}
    if least is not None:
        out["minimum"] = least
    if most is not None:
        out["maximum"] = most
    return out


def _narrow(schema: dict[str, Any], facets: Mapping[str, list[str]], text: Callable[[str], str]) -> None:
    """Bring one restriction into a schema. What JSON Schema has no word for, or what can't be read, stays out: a wider
    schema loses nothing.

    Args:
        text: treats the white space of a value as its type does.
    """
    kind = schema.get("type")
    if kind in ("integer", "number"):
        _digits(schema, facets)
        parse: Callable[[str], Any] = _number
        for facet, word in (("minInclusive", "minimum"), ("maxInclusive", "maximum"),
                            ("minExclusive", "exclusiveMinimum"), ("maxExclusive", "exclusiveMaximum")):  # fmt: skip
            value = _number(facets[facet][-1]) if facet in facets else None
            if value is not None:
                schema[word] = _tighter(word, schema.get(word), value)
    elif kind == "string" and "format" not in schema and "contentEncoding" not in schema:
        parse = text
        for facet, words in (("length", ("minLength", "maxLength")), ("minLength", ("minLength",)),
                             ("maxLength", ("maxLength",))):  # fmt: skip
            length = facets.get(facet, [""])[-1].strip()
            if length.isdigit() and not (words == ("minLength",) and int(length) == 0):
                schema.update(dict.fromkeys(words, int(length)))
    else:
        return
    if "enumeration" in facets:
        values = [parse(text) for text in facets["enumeration"]]
        if None not in values:
            schema["enum"] = list(dict.fromkeys(values))


def _tighter(word: str, old: Any, new: Any) -> Any:
    if old is None:
        return new
    return max(old, new) if word.lower().endswith("minimum") else min(old, new)


def _digits(schema: dict[str, Any], facets: Mapping[str, list[str]]) -> None:
    """``fractionDigits``: so many digits behind the point; with none the number is an integer."""
    text = facets.get("fractionDigits", [""])[-1].strip()
    if not text.isdigit() or schema["type"] != "number" or int(text) > _MOST_DIGITS:
        return
    schema.pop("format", None)
    if int(text) == 0:
        schema["type"] = "integer"
        schema.pop("multipleOf", None)
    else:
        schema["multipleOf"] = float(f"1e-{int(text)}")


def _number(text: str) -> int | float | None:
    """A facet's value; None for INF, NaN and what is no number. Text that a float would round is left out, too."""
    try:
        exact = Decimal(text.strip())
    except InvalidOperation:
        return None
    if not exact.is_finite() or abs(exact.adjusted()) > _MOST_DIGITS:
        return None
    if exact == exact.to_integral_value() and abs(exact) < Decimal(10) ** 40:
        return int(exact)
    return float(exact) if Decimal(repr(float(exact))) == exact else None
