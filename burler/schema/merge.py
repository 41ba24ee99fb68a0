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

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

from burler.schema_tree import types_of

OBJECT = ("properties", "patternProperties", "additionalProperties")
ARRAY = ("items", "prefixItems", "additionalItems")
NAMED = ("dependencies", "dependentSchemas", "dependentRequired")
SEES_ALL = ("unevaluatedProperties", "unevaluatedItems")
"""These judge what all keywords beside them, and below them in allOf, leave over; a merge would show them more."""
_SEEN = frozenset((*SEES_ALL, *OBJECT, *ARRAY, *NAMED, "allOf", "anyOf", "oneOf", "if", "contains"))
_LITERAL = re.compile(r"\^?[A-Za-z0-9_ :/@#=~-]*\$?")  # patterns that mean just what they say

DIFFERENT = object()
"""No one value says both."""
_LARGEST = 2**63

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

Merge = Callable[[Any, Any], Any]


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
        common = common_types(types_of(self.base), types_of(self.over))
        if not common or not (is_plain_type(one) and is_plain_type(two)):
            self._take("type", lambda one, two: DIFFERENT)
        elif set(common) != set(types_of(self.over)):
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


# ---- keywords that reach beyond their own schema: what two schemas say of fields that one of them does not declare ---


def sees_all(part: Any) -> bool:
    """Whether a schema judges what its other keywords leave over."""
    return isinstance(part, Mapping) and any(key in part for key in SEES_ALL)


def must_stand(part: Any, others: Iterable[Any]) -> bool:
    """Whether a schema would judge more if it were merged with one of the others."""
    return sees_all(part) and any(isinstance(other, Mapping) and not _SEEN.isdisjoint(other) for other in others)


def extra_of(node: Mapping[str, Any]) -> Any:
    """What a schema asks of fields that it does not know."""
    return node.get("additionalProperties", True)


def is_unclear(node: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Whether it can't be told, for one of these fields, if a pattern takes it from ``node``'s rule for further ones.

    No regular expression of a document is run on its names: one of ten letters can take years.
    """
    extra, known = extra_of(node), mapping(node.get("properties"))
    if not isinstance(extra, Mapping) or not extra or all(name in known for name in fields):
        return False
    patterns = mapping(node.get("patternProperties"))
    return not all(isinstance(pattern, str) and _LITERAL.fullmatch(pattern) for pattern in patterns)


def matches_literal(pattern: str, name: str) -> bool:
    """Whether a pattern, which is not ``is_unclear``, is found in a name."""
    begins, ends = pattern.startswith("^"), pattern.endswith("$")
    text = pattern.removeprefix("^").removesuffix("$")
    if begins and ends:
        return name == text
    return name.startswith(text) if begins else name.endswith(text) if ends else text in name


# ---- the values of single keywords, of two schemas at once -----------------------------------------------------------


def same(one: Any, two: Any) -> bool:
    """Whether two JSON values are equal; ``true`` is not 1, and 1.0 is."""
    if one is two:
        return True
    if isinstance(one, bool) or isinstance(two, bool):
        return False
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(same(value, two[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    return bool(one == two)


def key_of(value: Any) -> Any:
    """Something hashable that two values have in common exactly when they are the ``same``."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, Mapping):
        return (dict, frozenset((name, key_of(part)) for name, part in value.items()))
    if isinstance(value, list | tuple):
        return (list, tuple(map(key_of, value)))
    try:
        hash(value)
    except TypeError:  # nothing that JSON has
        return (id, id(value))
    return (None, value)


def common_types(one: Sequence[str], two: Sequence[str]) -> list[str]:
    """The types that both name; an integer is a number."""
    fits = [name for name in two if name in one or (name == "integer" and "number" in one)]
    return fits + [name for name in one if name == "integer" and "number" in two and name not in fits]


def united(one: Any, two: Any) -> Any:
    """All names of both, each once."""
    if not isinstance(one, list | tuple) or not isinstance(two, list | tuple):
        return DIFFERENT
    return distinct([*one, *two])


def common_values(one: Any, two: Any) -> Any:
    """The choices that both offer."""
    if not isinstance(one, list | tuple) or not isinstance(two, list | tuple):
        return DIFFERENT
    known = set(map(key_of, one))
    return [value for value in two if key_of(value) in known] or DIFFERENT


def larger(one: Any, two: Any) -> Any:
    """The larger of two numbers."""
    return max(one, two) if _are_numbers((one, two)) else DIFFERENT


def smaller(one: Any, two: Any) -> Any:
    """The smaller of two numbers."""
    return min(one, two) if _are_numbers((one, two)) else DIFFERENT


def common_multiple(one: Any, two: Any) -> Any:
    """The least number that both divide, if it is one of the two or an integer (others have no exact text) that
    JSON's readers can hold."""
    if not _are_numbers((one, two)) or not (0 < one < math.inf and 0 < two < math.inf):
        return DIFFERENT
    first, second = (Fraction(number if isinstance(number, int) else str(number)) for number in (one, two))
    product = Fraction(
        math.lcm(first.numerator * second.denominator, second.numerator * first.denominator),
        first.denominator * second.denominator,
    )
    for given, exact in ((one, first), (two, second)):
        if product == exact:
            return given
    return int(product) if product.denominator == 1 and product < _LARGEST else DIFFERENT


def tighter(one: tuple[Any, Any], two: tuple[Any, Any], *, is_lower: bool) -> Any:
    """The tighter of two (bound, exclusive bound) pairs, or ``DIFFERENT``.

    ``exclusive`` is a number of its own, or, as draft 4 has it, says whether the bound itself is left out. A pair
    that comes back may hold both numbers: then both hold.
    """
    is_old = [isinstance(pair[1], bool) for pair in (one, two)]
    numbers = [value for pair in (one, two) for value in pair if value is not None and not isinstance(value, bool)]
    if not _are_numbers(numbers) or (any(is_old) and any(_is_new(pair) for pair in (one, two))):
        return DIFFERENT
    pick = max if is_lower else min
    if not any(is_old):
        bounds = [value for value in (one[0], two[0]) if value is not None]
        exclusive = [value for value in (one[1], two[1]) if value is not None]
        return (pick(bounds) if bounds else None, pick(exclusive) if exclusive else None)
    pairs = [pair for pair in (one, two) if pair[0] is not None]
    if not pairs:
        return (None, None)
    best = pick(pair[0] for pair in pairs)
    return (best, True if any(pair[1] is True and pair[0] == best for pair in pairs) else None)


def _is_new(pair: tuple[Any, Any]) -> bool:
    return pair[1] is not None and not isinstance(pair[1], bool)


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def distinct(parts: Iterable[Any]) -> list[Any]:
    """Each value once: the first of those that are the ``same``."""
    found: dict[Any, Any] = {}
    for part in parts:
        found.setdefault(key_of(part), part)
    return list(found.values())


def parts_of(node: Mapping[str, Any]) -> list[Any]:
    """The parts of a schema's ``allOf``; what is no list stands as a part of its own."""
    parts = node.get("allOf", [])
    return parts if isinstance(parts, list) else [{"allOf": parts}]


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def is_mapping_or_none(value: Any) -> bool:
    """Whether names to schemas can be read from it."""
    return value is None or isinstance(value, Mapping)


def is_plain_type(value: Any) -> bool:
    """Whether it is a type or a list of types (draft 3 also had schemas there)."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(name, str) for name in value))


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
