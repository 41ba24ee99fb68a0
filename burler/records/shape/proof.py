"""What converted rows are known to hold, so that nobody needs to read their lines to find out.

A struct's type says most of it; for fields that msgspec lets through, the types of the values are looked at, a column
at a time, and only if somebody asks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from burler.records.columns.types import type_names
from burler.records.shape.compile import Compiled, ObjectNode
from burler.records.shape.leaves import Leaf, column, finite
from burler.records.shape.values import DROPPED

_INT64 = (-(2**63), 2**63 - 1)
_TYPES: dict[str, frozenset[type]] = {
    "text": frozenset({str}),
    "truth": frozenset({bool}),
    "whole": frozenset({int}),
    "number": frozenset({int, float}),
    "date": frozenset({dt.date}),
}
_BY_STRUCT = ("text", "truth", "whole", "array")  # whole: within 64 bits, see ``compile``
Test = Callable[[list[Any]], bool]


class Vouch:
    """Says of some rows whether each is exactly what its schema calls for, and what that is (``kinds``)."""

    __slots__ = ("_answer", "_structs", "_tests", "kinds")

    def __init__(self, kinds: Plain, tests: list[Test], structs: list[Any]) -> None:
        self.kinds = kinds
        self._tests, self._structs = tests, structs
        self._answer: bool | None = None

    def __call__(self) -> bool:
        """Whether it is so; False says nothing."""
        if self._answer is None:
            self._answer = all(test(self._structs) for test in self._tests)
            self._structs = []
        return self._answer


@dataclass(frozen=True, slots=True)
class Voucher:
    """What can be said of rows of one compiled schema."""

    kinds: Plain
    tests: list[Test]
    times: list[Leaf]

    def vouch(self, structs: list[Any]) -> Vouch | None:
        """For rows that were looked at just now, and that have no fields beside their structs'."""
        if any(leaf.moments is None for leaf in self.times):
            return None
        return Vouch(self.kinds, self.tests, structs)


def voucher(compiled: Compiled, schema: Any) -> Voucher | None:
    """None where rows of this schema may hold what only their lines show.

    Args:
        schema: the form of which ``compiled`` was made.
    """
    kinds = plain_record(schema)
    tests: list[Test] = []
    times: list[Leaf] = []
    if kinds is None or not _plan(compiled.tree, kinds, lambda structs: structs, tests, times):
        return None
    return Voucher(kinds, tests, times)


def _plan(node: ObjectNode, kinds: Plain, reach: Any, tests: list[Test], times: list[Leaf]) -> bool:
    fields = dict(kinds[2])
    if set(fields) != set(node.attributes):
        return False
    leaves = {leaf.attribute: leaf for leaf in node.leaves}
    for name, kind in fields.items():
        attribute = node.attributes[name]
        leaf = leaves.get(attribute)
        if leaf is not None and kind[0] == "time":
            times.append(leaf)
        elif kind[0] == "object" and leaf is None and name in node.objects:
            sub = node.objects[name]
            if not _plan(sub, kind, _below(reach, attribute, sub.struct), tests, times):
                return False
        elif leaf is not None or kind[0] == "date":
            if kind[0] not in _TYPES:
                return False
            tests.append(_typed(reach, attribute, kind))
        elif kind[0] not in _BY_STRUCT or (kind[0] == "array" and kind[2][0] not in _IN_ARRAYS):
            return False
    return True


def _below(reach: Any, attribute: str, struct: type) -> Any:
    values = column(attribute)
    return lambda structs: [value for value in values(reach(structs)) if type(value) is struct]


def _typed(reach: Any, attribute: str, kind: Plain) -> Test:
    values = column(attribute)
    allowed = _TYPES[kind[0]] | {msgspec.UnsetType} | ({type(None)} if kind[1] else set())

    def test(structs: list[Any]) -> bool:
        found = values(reach(structs))
        types = set(map(type, found))
        if not types <= allowed:
            return False
        if not finite(found, types):
            return False
        if int in types:
            whole = found if len(types) == 1 else [value for value in found if type(value) is int]
            return bool(_INT64[0] <= min(whole) and max(whole) <= _INT64[1])
        return True

    return test


# ---- plain fields: what each holds can be told from a row that was shaped, without its JSON --------------------------

Plain = tuple[Any, ...]
"""``(kind, nullable)``, of an array ``("array", nullable, items)``, of an object ``("object", nullable, ((name, plain),
...))``, sorted. Kinds: text, truth, whole, number, time, date. Whoever makes rows and whoever checks lines call the
same function, each on the schema it goes by; only where both get the same may the one trust the other."""

_NEVER_PLAIN = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependencies", "dependentSchemas"}
    | {"prefixItems", "additionalItems", "contentEncoding", "multipleOf"}
)
_PLAIN_FORMATS = {"date-time": "time", "date": "date"}
_PLAIN_KINDS = {"string": "text", "boolean": "truth", "integer": "whole", "number": "number"}
_IN_ARRAYS = ("text", "truth", "whole")


def plain_record(schema: Mapping[str, Any]) -> Plain | None:
    """What a record holds; None if some field is not plain."""
    return None if not _NEVER_PLAIN.isdisjoint(schema) else _plain_fields(schema, False)


def _plain_fields(schema: Mapping[str, Any], nullable: bool) -> Plain | None:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    found = [(name, plain(node)) for name, node in properties.items() if node is not DROPPED]
    if not found or any(kind is None for _, kind in found):
        return None
    return ("object", nullable, tuple(sorted(found)))


def plain(node: Any) -> Plain | None:
    """What a field holds; None if it is not plain."""
    if not isinstance(node, Mapping) or "type" not in node or not _NEVER_PLAIN.isdisjoint(node):
        return None
    types = type_names(node)
    nullable = "null" in types
    types -= {"integer", "null"} if "number" in types else {"null"}
    if len(types) != 1 or node.get("format") == "singer.decimal":
        return None
    (name,) = types
    if name == "array":
        items = plain(node.get("items"))
        return None if items is None else ("array", nullable, items)
    if name == "object":
        return None if node.get("additionalProperties", False) is not False else _plain_fields(node, nullable)
    kind = _PLAIN_FORMATS.get(str(node.get("format"))) if name == "string" else None
    kind = kind or _PLAIN_KINDS.get(name)
    return None if kind is None else (kind, nullable)
