"""Two schemas as one that asks for what both ask for: ``allOf``, and keywords beside a reference.

Keywords are taken one by one. Fields are united, types and choices cut down to what both name, of two
bounds the tighter one holds, notes (``title``, ``description``, ``format``, ...) are the later schema's.
What a single schema can't say (two different ``pattern``, a union in both, types without a common one)
is left standing in ``allOf``: longer, and never wrong.

One thing is read otherwise than by the letter. ``additionalProperties: false`` closes an object, and
by the letter it closes it against the fields that the other schema declares, too, so that no row with such a
field could ever fit. Here an object that either side closes has the fields that both declare, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

from burler.schema.merge_rules import (
    ARRAY,
    NAMED,
    OBJECT,
    SEES_ALL,
    extra_of,
    is_unclear,
    matches_literal,
    must_stand,
    sees_all,
)
from burler.schema.merge_values import (
    DIFFERENT,
    common_multiple,
    common_types,
    common_values,
    distinct,
    is_mapping_or_none,
    is_plain_type,
    larger,
    mapping,
    parts_of,
    same,
    smaller,
    tighter,
    types_named,
    united,
)

Merge = Callable[[Any, Any], Any]

_PLAIN: dict[str, Merge] = {
    "required": united,
    "enum": common_values,
    "multipleOf": common_multiple,
    "minLength": larger,
    "minItems": larger,
    "minProperties": larger,
    "maxLength": smaller,
    "maxItems": smaller,
    "maxProperties": smaller,
    "uniqueItems": lambda one, two: one or two,
}
# Keywords of which a schema can hold one: equal in both, or left standing. Those in one tuple belong together.
_SINGLE = (
    *(("pattern",), ("const",), ("not",), ("anyOf",), ("oneOf",), ("contentEncoding",), ("contentMediaType",)),
    ("contains", "minContains", "maxContains"),
    ("if", "then", "else"),
    ("extends",),
    ("disallow",),
)
_BOUNDS = (("minimum", "exclusiveMinimum", True), ("maximum", "exclusiveMaximum", False))
_MOST_ROUNDS = 8


def merge_all(parts: Iterable[Any], node: Mapping[str, Any]) -> Any:
    """A node and the parts of its ``allOf`` as one schema; the node's own notes win. Nothing given is changed.

    Args:
        parts: schemas, without references.
        node: the schema that the parts stand in, without its ``allOf``.

    Returns:
        A schema: with an ``allOf`` of its own if something in it can't be said otherwise.
    """
    return _settled(_all(parts, node))


def _all(parts: Iterable[Any], node: Mapping[str, Any]) -> Any:
    given = list(parts)
    seeing = {key: node[key] for key in SEES_ALL if key in node}
    apart = [part for at, part in enumerate(given) if sees_all(part) and must_stand(part, _others(given, at, node))]
    ids_apart = {id(part) for part in apart}
    merged: Any = True
    standing: list[Any] = []  # told apart once, at the end: doing so for each part takes the square of their number
    for part in [*given, {key: value for key, value in node.items() if key not in seeing}]:
        merged = _once(merged, _names_of(part) if id(part) in ids_apart else part)
        if isinstance(merged, dict) and isinstance(merged.get("allOf"), list):
            standing += merged["allOf"]
            merged = {key: value for key, value in merged.items() if key != "allOf"}
    if not isinstance(merged, dict):
        return {"allOf": distinct([*standing, merged])} if standing and merged is not False else merged
    standing = distinct([*parts_of(merged), *standing, *apart])
    return {**merged, **({"allOf": standing} if standing else {}), **seeing}


def _others(given: list[Any], at: int, node: Mapping[str, Any]) -> Iterable[Any]:
    return chain(given[:at], given[at + 1 :], (node,))


def _settled(schema: Any) -> Any:
    """What is left in ``allOf`` may itself be one schema: merged until nothing changes."""
    for _ in range(_MOST_ROUNDS):
        if not isinstance(schema, dict) or not isinstance(schema.get("allOf"), list):
            break
        again = _all(schema["allOf"], {key: value for key, value in schema.items() if key != "allOf"})
        if same(schema, again):
            break
        schema = again
    return schema


def _names_of(part: Mapping[str, Any]) -> Any:
    """The fields of a part that stands in ``allOf``: named above as well, where readers look for columns."""
    return {"properties": part["properties"]} if isinstance(part.get("properties"), Mapping) else True


def merge(base: Any, over: Any) -> Any:
    """Two schemas, without references, as one; ``over`` is the later one. Nothing given is changed."""
    return _settled(_once(base, over))


def _once(base: Any, over: Any) -> Any:
    if base is True or same(base, over):
        return over
    if over is True:
        return base
    if base is False or over is False:
        return False
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return {"allOf": [base, over]}
    if must_stand(base, [over]) or must_stand(over, [base]):
        return _all([base, over], {})
    return _Merging(base, over).done()


def fields_of_both(one: Mapping[str, Any], two: Mapping[str, Any], both: Merge) -> dict[str, Any]:
    """All fields of both; ``both`` makes one of the two schemas of a field that both have."""
    return {**one, **{name: both(one[name], sub) if name in one else sub for name, sub in two.items()}}


class _Merging:
    """One merge of two nodes: what came out, and what of them (of ``base``, mostly) has to stand beside it."""

    def __init__(self, base: Mapping[str, Any], over: Mapping[str, Any]) -> None:
        self.base, self.over = base, over
        self.out: dict[str, Any] = {**base, **over}
        self.out.pop("allOf", None)
        self.left: dict[str, Any] = {}
        self.right: dict[str, Any] = {}

    def done(self) -> dict[str, Any]:
        self._type()
        for keyword, of_both in _PLAIN.items():
            self._take(keyword, of_both)
        for group in _SINGLE:
            self._single(group)
        for bound, exclusive, is_lower in _BOUNDS:
            self._bound(bound, exclusive, is_lower=is_lower)
        self._objects()
        self._arrays()
        for keyword in NAMED:
            self._take(keyword, _named)
        self._take("propertyNames", merge)
        rests = [rest for rest in (self.left, self.right) if rest]
        standing = [*parts_of(self.base), *parts_of(self.over), *rests]
        if standing:
            self.out["allOf"] = distinct(standing) if len(standing) > 1 else standing
        return self.out

    def _both(self, *keywords: str) -> bool:
        return any(key in self.base for key in keywords) and any(key in self.over for key in keywords)

    def _leave(self, *keywords: str) -> None:
        """``over``'s keywords alone, ``base``'s into ``allOf``."""
        for key in keywords:
            if key in self.base:
                self.left[key] = self.base[key]
                if key not in self.over:
                    self.out.pop(key, None)

    def _take(self, keyword: str, of_both: Merge) -> None:
        if keyword not in self.base or keyword not in self.over:
            return
        one, two = self.base[keyword], self.over[keyword]
        found = two if same(one, two) else of_both(one, two)
        if found is DIFFERENT:
            self._leave(keyword)
        else:
            self.out[keyword] = found

    def _single(self, group: tuple[str, ...]) -> None:
        if self._both(*group) and not all(
            same(self.base.get(key, DIFFERENT), self.over.get(key, DIFFERENT)) for key in group
        ):
            self._leave(*group)

    def _type(self) -> None:
        if not self._both("type"):
            return
        one, two = self.base["type"], self.over["type"]
        common = common_types(types_named(self.base), types_named(self.over))
        if not common or not (is_plain_type(one) and is_plain_type(two)):
            self._take("type", lambda one, two: DIFFERENT)
        elif set(common) != set(types_named(self.over)):
            self.out["type"] = common[0] if len(common) == 1 else common

    def _bound(self, bound: str, exclusive: str, *, is_lower: bool) -> None:
        if not self._both(bound, exclusive):
            return
        found = tighter(
            (self.base.get(bound), self.base.get(exclusive)),
            (self.over.get(bound), self.over.get(exclusive)),
            is_lower=is_lower,
        )
        if found is DIFFERENT:
            self._leave(bound, exclusive)
            return
        for key, value in zip((bound, exclusive), found, strict=True):
            self.out.pop(key, None)
            if value is not None:
                self.out[key] = value

    def _objects(self) -> None:
        base, over = self.base, self.over
        fields = [mapping(side.get("properties")) for side in (base, over)]
        if not self._both(*OBJECT):
            return
        if not all(is_mapping_or_none(side.get(key)) for side in (base, over) for key in OBJECT[:2]):
            self._leave(*OBJECT)  # broken: no object of fields
            return
        if is_unclear(base, fields[1]) or is_unclear(over, fields[0]):
            self._leave_both(fields)
            return
        extras = [extra_of(side) for side in (base, over)]
        # By the letter each side's rule for further fields also holds for what only the other side declares.
        fields = [_under(over, fields[0]), _under(base, fields[1])]
        if fields[0] or fields[1] or "properties" in self.out:
            self.out["properties"] = fields_of_both(fields[0], fields[1], merge)
        if self._stands_apart(extras):
            self._leave_objects(fields)
            return
        self._take("patternProperties", lambda one, two: fields_of_both(one, two, merge))
        self._take("additionalProperties", merge)

    def _stands_apart(self, extras: list[Any]) -> bool:
        """Whether one side's rule for further fields meets a pattern that only the other side knows."""
        patterns = [set(mapping(side.get("patternProperties"))) for side in (self.base, self.over)]
        strict = [extra is not True and extra != {} for extra in extras]
        return bool((strict[0] and patterns[1] - patterns[0]) or (strict[1] and patterns[0] - patterns[1]))

    def _leave_objects(self, fields: list[Mapping[str, Any]]) -> None:
        """``base``'s rules stand apart; its fields are named above as well, where readers look for columns."""
        named = {**fields[0], **fields_of_both(fields[0], fields[1], merge)}
        self._leave(*OBJECT)
        self.out["properties"] = named

    def _leave_both(self, fields: list[Mapping[str, Any]]) -> None:
        """Both sides' rules stand apart: named above, a field would be out of reach of its side's rule."""
        sides = [
            {key: side[key] for key in OBJECT if key in side} if set(side) & set(OBJECT[1:]) else {}
            for side in (self.base, self.over)
        ]
        self.left |= sides[0]
        self.right = sides[1]
        for key in OBJECT:
            self.out.pop(key, None)
        self.out["properties"] = fields_of_both(fields[0], fields[1], merge)

    def _arrays(self) -> None:
        if not self._both(*ARRAY):
            return
        plain = all(
            set(ARRAY) & set(side) == {"items"} and not isinstance(side["items"], list)
            for side in (self.base, self.over)
        )
        if plain:
            self._take("items", merge)
        else:
            self._single(ARRAY)


def _named(one: Any, two: Any) -> Any:
    """``dependencies`` and their kin: names to schemas or to lists of names."""
    if not isinstance(one, Mapping) or not isinstance(two, Mapping):
        return DIFFERENT
    out = dict(one)
    for name, value in two.items():
        mine = out.get(name, DIFFERENT)
        if mine is DIFFERENT:
            out[name] = value
        elif isinstance(mine, list) and isinstance(value, list):
            out[name] = united(mine, value)
        elif isinstance(mine, list) or isinstance(value, list):
            return DIFFERENT
        else:
            out[name] = merge(mine, value)
    return out


def _under(node: Mapping[str, Any], fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of another schema, held to what ``node`` asks of fields that it does not know."""
    extra = extra_of(node)
    if not isinstance(extra, Mapping) or not extra:
        return fields
    known, patterns = mapping(node.get("properties")), list(mapping(node.get("patternProperties")))
    return {
        name: sub if name in known or any(matches_literal(pattern, name) for pattern in patterns) else merge(extra, sub)
        for name, sub in fields.items()
    }
