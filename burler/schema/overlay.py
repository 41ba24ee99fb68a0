"""Two schemas as one flat node, for those who can't do with ``allOf`` (shaping). ``schema.merge`` is the exact form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.schema.merge import common_types, fields_of_both, same, united
from burler.schema_tree import types_of

CONSTRAINTS = frozenset(
    {
        "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength",
        "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
    }
)  # fmt: skip
"""Keywords that say more of a value than its type does."""

_FORMS = {"date-time", "date"}  # formats that no text keeps both of

ALSO = "burler:also"  # in a flat node: further constraints that hold beside its own


def overlay(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """One node that asks for what both ask for, always without ``allOf``: what can't be said so, ``over`` decides.

    For those who must have one flat node (shaping). Where no type suits both, the type is a text that
    says so. ``allOf`` of the two is not looked into.
    """
    out = {**base, **over}
    both = {key: base[key] for key in CONSTRAINTS & base.keys() & over.keys() if not same(base[key], over[key])}
    if both:
        if "exclusiveMinimum" in base and "minimum" in both:  # draft 4's booleans speak of the bound beside them
            both["exclusiveMinimum"] = base["exclusiveMinimum"]
        if "exclusiveMaximum" in base and "maximum" in both:
            both["exclusiveMaximum"] = base["exclusiveMaximum"]
    if both or ALSO in base:
        out[ALSO] = [*base.get(ALSO, ()), *over.get(ALSO, ()), *([both] if both else ())]
    for keyword in ("anyOf", "oneOf"):  # one branch of each has to hold: each with each
        mine, yours = base.get(keyword), over.get(keyword)
        if isinstance(mine, list) and isinstance(yours, list):
            out[keyword] = [_joint(one, two) for one in mine for two in yours]
    for keyword in ("properties", "patternProperties"):
        mine, yours = base.get(keyword), over.get(keyword)
        if isinstance(mine, Mapping) and isinstance(yours, Mapping):
            out[keyword] = fields_of_both(mine, yours, _overlay_both)
    if "items" in base and "items" in over:
        out.update(_items_of_both(base, over))
    if isinstance(base.get("required"), list | tuple) and isinstance(over.get("required"), list | tuple):
        out["required"] = united(base["required"], over["required"])
    if base.get("additionalProperties") is False:
        out["additionalProperties"] = False
    formats = {base.get("format"), over.get("format")}
    if len(formats) == 2 and formats <= _FORMS:
        both_named = types_of(out) or ("string",)
        clash = f"string that is {' and '.join(sorted(map(str, formats)))}"
        out["type"] = [clash if name == "string" else name for name in both_named]
    elif "type" in base and "type" in over:
        one, two = types_of(base), types_of(over)
        # Where no type suits both, no value does: a type that no value has, and that says so in the error.
        out["type"] = common_types(one, two) or [f"{' or '.join(one)} that is also {' or '.join(two)}"]
    return out


def flat(node: Mapping[str, Any]) -> dict[str, Any]:
    """A node with its ``allOf`` laid over it by :func:`overlay`, at its own level."""
    out = {key: value for key, value in node.items() if key != "allOf"}
    for part in node.get("allOf") or ():
        if isinstance(part, Mapping):
            out = overlay(out, flat(part))
    return out


def _joint(one: Any, two: Any) -> Any:
    return False if one is False or two is False else _overlay_both(one, two)


def _items_of_both(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``items``, and for tuples ``additionalItems``: each place by what both say of it."""
    places = [side["items"] if isinstance(side["items"], list | tuple) else [] for side in (base, over)]
    if not any(places):
        return {"items": _overlay_both(base["items"], over["items"])}
    rests = [
        side.get("additionalItems", True) if isinstance(side["items"], list | tuple) else side["items"]
        for side in (base, over)
    ]
    firsts = []
    for i in range(max(map(len, places))):
        one, two = (items[i] if i < len(items) else rest for items, rest in zip(places, rests, strict=True))
        firsts.append(_overlay_both(one, two))
    return {"items": firsts, "additionalItems": False if False in rests else _overlay_both(*rests)}


def _overlay_both(one: Any, two: Any) -> Any:
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return overlay(flat(one), flat(two))
    return two if isinstance(two, Mapping) else one
