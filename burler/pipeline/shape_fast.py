"""The fast path: a JSON Schema as a msgspec type, a page converted in C.

What msgspec alone would let pass is checked a column at a time: fields that no schema knows, date-times
that are not in UTC or carry more than six digits (msgspec keeps offsets and rounds digits), Decimals
that are no numbers. A schema this path has no form for gives None, and its rows take the exact path.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from operator import itemgetter
from typing import Annotated, Any

import msgspec

from burler.pipeline.shape_values import ANYTHING, DROPPED, note_unknown, types_of

_LARGEST = 1.7976931348623157e308
_FLOAT = Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]  # a bound on both sides refuses NaN and infinities
_DATE_TIME = Annotated[dt.datetime, msgspec.Meta(tz=True)]
_SCALAR = {"boolean": bool, "integer": int, "number": int | _FLOAT | Decimal, "string": str, "null": None}
_OPEN = (ANYTHING, "anyOf", "oneOf", "allOf", "not", "patternProperties", "$ref")
_ZULU = {"Z"}
_DECIMAL = (Decimal,)
_NULL = type(None)
_LONGEST = len("2024-01-02T03:04:05.123456Z")


@dataclass(slots=True)
class ObjectNode:
    """What the column checks need of one object in the schema."""

    path: str
    known: frozenset[str]
    date_times: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    number_lists: tuple[str, ...] = ()
    objects: dict[str, ObjectNode] = field(default_factory=dict)
    lists: dict[str, ObjectNode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compiled:
    """The type of a page, and the tree for the column checks."""

    page_type: Any
    tree: ObjectNode
    attributes: Mapping[str, str]

    def convert(self, rows: list[dict[str, Any]]) -> list[Any]:
        """The page, converted. Decimals pass only as such: text that spells one is for the exact path.

        Raises:
            msgspec.ValidationError: some row does not fit.
        """
        shaped: list[Any] = msgspec.convert(rows, self.page_type, builtin_types=_DECIMAL)
        return shaped


class _Unfit(Exception):
    """The schema needs the exact path."""


def compile_schema(schema: Mapping[str, Any]) -> Compiled | None:
    """The type of a stream's rows; None if only the exact path can do them."""
    try:
        row_type, tree, attributes = _object(schema, "")
    except _Unfit:
        return None
    return Compiled(list[row_type], tree, attributes)  # type: ignore[valid-type]


def _object(schema: Mapping[str, Any], path: str) -> tuple[Any, ObjectNode, dict[str, str]]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or any(word in schema for word in _OPEN):
        raise _Unfit
    if schema.get("additionalProperties", False) is not False:
        raise _Unfit
    node = ObjectNode(path, frozenset(properties))
    required = set(schema.get("required") or ())
    if not required <= set(properties):
        raise _Unfit
    fields: list[Any] = []
    attributes = {name: f"f{i}" for i, name in enumerate(properties)}
    for name, sub in properties.items():
        if sub is DROPPED:
            continue
        kind = _value(sub, name, node, f"{path}.{name}" if path else name)
        if name in required:
            fields.append((attributes[name], kind))
        else:
            fields.append((attributes[name], kind | msgspec.UnsetType, msgspec.UNSET))
    renamed = {attribute: name for name, attribute in attributes.items()}
    try:
        struct = msgspec.defstruct("Row", fields, rename=renamed, kw_only=True, gc=False)
    except ValueError:  # a name with a quote, a backslash or a control character
        raise _Unfit from None
    return struct, node, attributes


def _value(schema: Any, name: str, node: ObjectNode, path: str) -> Any:
    if not isinstance(schema, Mapping) or any(word in schema for word in _OPEN):
        raise _Unfit
    wanted = [kind for kind in types_of(schema) if kind != "null"]
    nullable = "null" in types_of(schema)
    if set(wanted) == {"integer", "number"}:
        wanted = ["number"]
    if len(wanted) != 1:
        raise _Unfit
    kind: Any
    if wanted[0] == "object":
        kind, node.objects[name], _ = _object(schema, path)
    elif wanted[0] == "array":
        inner = ObjectNode(path, frozenset())
        kind = list[_value(schema.get("items"), "", inner, path + "[]")]  # type: ignore[misc]
        if inner.date_times or inner.lists or inner.number_lists:
            raise _Unfit
        if inner.numbers:
            node.number_lists = (*node.number_lists, name)
        if inner.objects:
            node.lists[name] = inner.objects[""]
    elif wanted[0] == "string" and schema.get("format") == "date-time":
        kind = _DATE_TIME
        node.date_times = (*node.date_times, name)
    elif wanted[0] == "string" and schema.get("format") == "date":
        kind = dt.date
    elif wanted[0] in _SCALAR:
        kind = _SCALAR[wanted[0]]
        if wanted[0] == "number":
            node.numbers = (*node.numbers, name)
    else:
        raise _Unfit
    return kind | None if nullable else kind


def count_unknown(tree: ObjectNode, rows: list[dict[str, Any]], counts: dict[str, int]) -> bool:
    """Count objects that hold a field which the schema does not know: dotted path -> objects. One C pass a
    node where there are none. False if a field's name has no JSON form."""
    extra: set[Any] = set().union(*rows) - tree.known
    for name in extra:
        if not isinstance(name, str) or not _has_form(name):
            return False
        path = f"{tree.path}.{name}" if tree.path else name
        note_unknown(counts, path, sum(name in row for row in rows))
    return all(count_unknown(node, below, counts) for node, below in _below(tree, rows) if below)


def _has_form(name: str) -> bool:
    """Whether UTF-8 can hold a field's name."""
    return name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)


def odd_values(tree: ObjectNode, rows: list[dict[str, Any]]) -> bool:
    """Whether a value is there that msgspec would take and not write as burler does, or that the column
    checks can't see: see ``_odd_time``, ``_odd_number``; an object or a list of another type than dict and list."""
    for name in tree.date_times:
        if _odd_time([row.get(name) for row in rows]):
            return True
    for name in tree.numbers:
        if _odd_number([row.get(name) for row in rows]):
            return True
    for name in tree.number_lists:
        lists = [value for value in [row.get(name) for row in rows] if value]
        if lists and (set(map(type, lists)) != {list} or _odd_number(list(chain.from_iterable(lists)))):
            return True
    for name in tree.objects:
        if not set(map(type, [row.get(name) for row in rows])) <= {dict, _NULL}:
            return True
    for name in tree.lists:
        column = [row.get(name) for row in rows]
        if not set(map(type, column)) <= {list, _NULL}:
            return True
        if not set(map(type, chain.from_iterable(filter(None, column)))) <= {dict, _NULL}:
            return True
    return any(odd_values(node, below) for node, below in _below(tree, rows) if below)


def _odd_time(column: list[Any]) -> bool:
    """Neither text in UTC with at most six digits, nor an aware datetime in UTC."""
    kinds = set(map(type, column))
    kinds.discard(_NULL)
    if kinds == {str}:
        texts = [text for text in column if text]
        return bool(texts) and (set(map(itemgetter(-1), texts)) != _ZULU or max(map(len, texts)) > _LONGEST)
    if kinds == {dt.datetime}:
        return bool({moment.tzinfo for moment in column if moment is not None} - {dt.UTC})
    return bool(kinds)


def _odd_number(column: Iterable[Any]) -> bool:
    """A Decimal that is infinite or no number."""
    if Decimal not in set(map(type, column)):
        return False
    return not all(value.is_finite() for value in column if type(value) is Decimal)


def _below(tree: ObjectNode, rows: list[dict[str, Any]]) -> Iterator[tuple[ObjectNode, list[dict[str, Any]]]]:
    """The rows of each object nested one level deeper (``odd_values`` has seen that they are dicts)."""
    for name, node in tree.objects.items():
        yield node, [value for value in [row.get(name) for row in rows] if value is not None]
    for name, node in tree.lists.items():
        lists = [value for value in [row.get(name) for row in rows] if value]
        yield node, [value for value in chain.from_iterable(lists) if value is not None]
