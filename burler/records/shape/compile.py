"""The fast path: a JSON Schema as a msgspec type, a page converted (or decoded from bytes) in C.

Where msgspec has no form for a node, or takes what burler writes otherwise, the node alone becomes a *leaf*:
msgspec lets its values through, and they are looked at a column at a time (``fixes``) or one by one.
What a stream's rows show is learned: a field whose values msgspec refuses becomes a leaf, an object in which
unknown fields turn up is counted from then on. So a stream whose numbers come as text pays for that field only.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any

import msgspec

from burler.records.shape import constraints, fixes
from burler.records.shape import raw as raw_bytes
from burler.records.shape.exact import tuple_parts
from burler.records.shape.rules import Rules
from burler.records.shape.tree import Fix, Leaf, ObjectNode, Template
from burler.records.shape.types import BARE, SCALARS, SIZES, Unfit, arguments, either, is_name, literal, meta
from burler.records.shape.values import ANYTHING, DROPPED, types_of

_DECIMAL = (Decimal,)
_OPEN = (ANYTHING, "anyOf", "oneOf")
_MOST_LEARNED = 8  # of one stream, one by one; then every field is a leaf, every object is counted
_ABSENT = frozenset({msgspec.UnsetType})
_PLACE = re.compile(r" - at `(\$.*)`\Z", re.DOTALL)
_INDEX = re.compile(r"\[(?:\d+|\.\.\.)\]")


@dataclass(slots=True)
class Learned:
    """What the rows of a stream have shown: fields that are looked at, objects that hold unknown fields."""

    leaves: set[Template] = field(default_factory=set)
    counts: set[Template] = field(default_factory=set)
    further: bool = False
    all_leaves: bool = False
    all_counts: bool = False

    def add_leaf(self, path: Template) -> bool:
        """Whether that is news."""
        if self.all_leaves or path in self.leaves:
            return False
        self.leaves.add(path)
        self.all_leaves = len(self.leaves) > _MOST_LEARNED
        return True


@dataclass(frozen=True, slots=True)
class Compiled:
    """The type of a row, the tree of what is looked at, and the places that errors of msgspec name."""

    row_type: Any
    page_type: Any
    tree: ObjectNode
    fields: Mapping[str, Template]
    nodes: Mapping[str, ObjectNode]

    def convert(self, rows: list[dict[str, Any]]) -> list[Any]:
        """The page, converted; leaves are not looked at yet.

        Raises:
            msgspec.ValidationError: some row does not fit.
        """
        shaped: list[Any] = msgspec.convert(rows, self.page_type, builtin_types=_DECIMAL)
        return shaped

    def key_leaf(self, key: str | None) -> Leaf | None:
        """The leaf of a field of the row, if it is one."""
        return next((leaf for leaf in self.tree.leaves if leaf.path == (key,)), None)


def compile_schema(schema: Mapping[str, Any], rules: Rules, learned: Learned, *, raw: bool) -> Compiled | None:
    """The type of a stream's rows; None if only the exact path can do them.

    Args:
        schema: in the form of ``shape.form``.
        raw: for decoding bytes: leaves hold the bytes of their values.
    """
    return _Compiler(rules, learned, raw).compile(schema)


def ordered(form: dict[str, Any]) -> dict[str, Any]:
    """A row's form with the fields that no struct can have at the end, where the fast path puts them."""
    properties = form.get("properties") or {}
    odd = [name for name in properties if not is_name(name)]
    if not odd:
        return form
    names = [*(name for name in properties if name not in odd), *odd]
    return {**form, "properties": {name: properties[name] for name in names}}


def learn(error: msgspec.ValidationError, compiled: Compiled, learned: Learned, *, raw: bool) -> bool:
    """Take in what an error of msgspec says of the page; whether the page fares otherwise with what was learned."""
    found = _PLACE.search(str(error))
    place = _INDEX.sub("[]", found[1]) if found else "$"
    place = place.removeprefix("$").removeprefix("[]")
    if str(error).startswith("Object missing required field"):
        return False
    if str(error).startswith("Object contains unknown field"):
        return _learn_unknown(compiled.nodes.get(place), learned, raw=raw)
    while place:
        if place in compiled.fields:
            return learned.add_leaf(compiled.fields[place])
        place = place[: max(place.rfind("."), place.rfind("[]"), 0)]
    return False


def _learn_unknown(node: ObjectNode | None, learned: Learned, *, raw: bool) -> bool:
    if node is None:
        return False
    if node.map_path is not None:  # its keys are part of the names to be counted: the map is looked at
        return learned.add_leaf(node.map_path)
    if node.further:
        path = node.path
        while path and path[-1] is None:  # an object in an array: the array is looked at
            path = path[:-1]
        if raw or path:
            return bool(path) and learned.add_leaf(path)
        news, learned.further = not learned.further, True
        return news
    if raw or learned.all_counts or node.path in learned.counts:  # bytes with unknown fields are decoded once more
        return False
    learned.counts.add(node.path)
    learned.all_counts = len(learned.counts) > _MOST_LEARNED
    return True


class _Compiler:
    def __init__(self, rules: Rules, learned: Learned, raw: bool) -> None:
        self._rules = rules
        self._learned = learned
        self._raw = raw
        self._map: Template | None = None  # the map that is being looked into
        self._fields: dict[str, Template] = {}
        self._nodes: dict[str, ObjectNode] = {}

    def compile(self, schema: Mapping[str, Any]) -> Compiled | None:
        try:
            node = self._object(schema, (), "")
            page_type: Any = list[node.struct]  # type: ignore[name-defined]
            msgspec.convert([], page_type)  # msgspec refuses a type here, if it does
        except (Unfit, TypeError, RecursionError):
            return None
        return Compiled(node.struct, page_type, node, self._fields, self._nodes)

    def _object(self, schema: Mapping[str, Any], path: Template, place: str) -> ObjectNode:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or any(word in schema for word in _OPEN):
            raise Unfit
        if self._held(schema) and not constraints.CONSTRAINTS.isdisjoint(schema):
            raise Unfit
        required = set(schema.get("required") or ())
        odd = {name for name in properties if not is_name(name)}
        if not required <= set(properties) - odd or (odd and (path or self._raw)):
            raise Unfit
        node = ObjectNode(path, known=frozenset(properties) - odd, map_path=self._map)
        lets_in = schema.get("additionalProperties", False) is not False or bool(schema.get("patternProperties"))
        node.further = lets_in or bool(odd)
        dropped = any(sub is DROPPED for sub in properties.values())
        node.counts = not node.further and not self._raw and self._counts(path, dropped)
        if (node.further or self._map) and dropped and path and not self._raw:
            raise Unfit  # its fields that are not wanted can't be told from further ones by the struct
        fields: list[Any] = []
        names: dict[str, str] = {}
        for i, (name, sub) in enumerate(properties.items()):
            attribute = f"f{i}"
            if name in odd:
                continue
            if sub is DROPPED:
                if self._raw:
                    node.dropped.append(attribute)
                    fields.append((attribute, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET))
                    names[attribute] = name
                continue
            node.attributes[name] = attribute
            names[attribute] = name
            kind = self._field(sub, name, node, (*path, name), f"{place}.{name}")
            if name in required:
                fields.append((attribute, kind))
                for leaf in node.leaves:
                    leaf.required = leaf.required or leaf.attribute == attribute
            else:
                fields.append((attribute, either(kind, msgspec.UnsetType), msgspec.UNSET))
        loose = node.further and not path and not self._raw and (self._learned.further or odd or dropped)
        strict = not node.counts and not loose
        node.splices = bool(loose)
        node.struct = msgspec.defstruct(
            "Row", fields, rename=names, kw_only=True, gc=False, forbid_unknown_fields=strict
        )
        node.close()
        self._nodes[_INDEX.sub("[]", place)] = node
        return node

    def _counts(self, path: Template, dropped: bool) -> bool:
        return self._map is None and (dropped or self._learned.all_counts or path in self._learned.counts)

    def _held(self, schema: Mapping[str, Any]) -> bool:
        """Whether a node says more than types, and that is looked at."""
        return self._rules.check_constraints and constraints.constrained(schema)

    def _field(self, schema: Any, name: str, node: ObjectNode, path: Template, place: str) -> Any:
        self._fields[_INDEX.sub("[]", place)] = path
        if fixes.is_times(schema):
            return self._times(schema, node, path)
        if fixes.is_times_list(schema):
            return self._lists_of_times(schema, node, path)
        if not self._is_learned(path):
            before = dict(self._fields), dict(self._nodes)
            try:
                return self._native(schema, name, node, path, place)
            except (Unfit, TypeError, ValueError):  # msgspec refuses a negative length, for one
                self._fields, self._nodes = before
                node.objects.pop(name, None)
                node.lists.pop(name, None)
                node.maps.pop(name, None)
        return self._leaf(schema, node, path)

    def _is_learned(self, path: Template) -> bool:
        """Whether its values are looked at in any case, since msgspec refused some."""
        return self._learned.all_leaves or path in self._learned.leaves

    def _leaf(self, schema: Any, node: ObjectNode, path: Template) -> Any:
        attribute = node.attributes[path[-1] or ""]
        check = fixes.check_of(schema, self._rules)
        kind: Any
        if self._raw:
            if check is not None and fixes.is_plain_text(schema) and not self._is_learned(path):
                kind = str | None if "null" in types_of(schema) else str
                fix: Fix | None = fixes.unchanged_if(check)
            else:
                kind, fix = raw_bytes.kind_and_fix(schema, check, self._held)
            node.leaves.append(Leaf(attribute, path, schema, fix, _ABSENT))
            return kind
        quick = fixes.quick_types(schema, self._rules)
        fix = fixes.unchanged_if(check) if check is not None else None
        node.leaves.append(Leaf(attribute, path, schema, fix, quick))
        return Any

    def _times(self, schema: Any, node: ObjectNode, path: Template) -> Any:
        """A date-time: text that is mostly in its final form already."""
        leaf = Leaf(node.attributes[path[-1] or ""], path, schema, None, _ABSENT)
        leaf.fix = fixes.times_fix(leaf, nullable=fixes.takes_null(schema))
        return self._text_leaf(leaf, node, str | None if fixes.takes_null(schema) else str)

    def _lists_of_times(self, schema: Any, node: ObjectNode, path: Template) -> Any:
        leaf = Leaf(node.attributes[path[-1] or ""], path, schema, fixes.lists_of_times, _ABSENT)
        return self._text_leaf(leaf, node, list[str] | None if "null" in types_of(schema) else list[str])

    def _text_leaf(self, leaf: Leaf, node: ObjectNode, kind: Any) -> Any:
        """A leaf that has a type of its own when bytes are decoded, until values of another one turn up."""
        node.leaves.append(leaf)
        if not self._raw:
            return Any
        if self._is_learned(leaf.path):
            leaf.fix = None
            return msgspec.Raw
        return kind

    def _native(self, schema: Any, name: str, node: ObjectNode, path: Template, place: str) -> Any:
        """The msgspec type of a node, which holds nothing that has to be looked at."""
        if not isinstance(schema, Mapping) or any(word in schema for word in _OPEN):
            raise Unfit
        wanted = list(dict.fromkeys(types_of(schema)))
        if not wanted or (self._held(schema) and len([one for one in wanted if one != "null"]) != 1):
            raise Unfit
        if {"integer", "number"} <= set(wanted):
            wanted.remove("integer")
        if "enum" in schema and self._rules.check_constraints:
            return literal(schema, wanted)
        kinds: list[Any] = []
        for one in wanted:
            if one == "null":
                kinds.append(None)
            elif one == "object":
                kinds.append(self._native_object(schema, name, node, path, place))
            elif one == "array":
                kinds.append(self._native_array(schema, name, node, path, place))
            else:
                kinds.append(self._scalar(one, schema))
        whole = kinds[0]
        for kind in kinds[1:]:
            whole = either(whole, kind)
        return whole

    def _scalar(self, name: str, schema: Mapping[str, Any]) -> Any:
        if name not in SCALARS:
            raise Unfit
        if name == "string" and schema.get("format") in ("date-time", "singer.decimal"):
            raise Unfit
        if name == "string" and schema.get("format") == "date":
            if self._held(schema):
                raise Unfit
            return dt.date
        return Annotated[BARE[name], meta(name, schema)] if self._held(schema) else SCALARS[name]

    def _native_object(self, schema: Mapping[str, Any], name: str, node: ObjectNode, path: Template, place: str) -> Any:
        if "properties" not in schema:
            if schema.get("patternProperties") or schema.get("required") or self._held(schema):
                raise Unfit
            values = ObjectNode(path)
            around, self._map = self._map, self._map or path
            try:
                kind = self._native(schema.get("additionalProperties", True), "", values, (*path, None), f"{place}[]")
            finally:
                self._map = around
            if values.leaves or values.lists or values.maps:
                raise Unfit
            if values.objects:
                node.maps[name] = values.objects[""]
            return dict[str, kind]  # type: ignore[valid-type]
        if schema.get("patternProperties"):
            raise Unfit
        sub = self._object(schema, path, place)
        node.objects[name] = sub
        return sub.struct

    def _native_array(self, schema: Mapping[str, Any], name: str, node: ObjectNode, path: Template, place: str) -> Any:
        places, rest = tuple_parts(schema)
        if places:
            raise Unfit
        inner = ObjectNode(path)
        kind = self._native(rest, "", inner, (*path, None), f"{place}[]")
        if inner.leaves or inner.lists or inner.maps:
            raise Unfit
        if inner.objects:
            node.lists[name] = inner.objects[""]
        if self._held(schema):
            return Annotated[list[kind], msgspec.Meta(**arguments(schema, SIZES))]  # type: ignore[valid-type]
        return list[kind]  # type: ignore[valid-type]
