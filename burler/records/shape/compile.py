"""The fast path: a JSON Schema as a msgspec type, a page converted (or decoded from bytes) in C.

Where msgspec has no form for a node, or takes what burler writes otherwise, the node alone becomes a *leaf*:
msgspec lets its values through, and they are looked at a column at a time (``leaves``) or one by one.
What a stream's rows show is learned: a field whose values msgspec refuses becomes a leaf, an object in which
unknown fields turn up is counted from then on. So a stream whose numbers come as text pays for that field only.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, compress
from operator import is_not
from typing import Annotated, Any, Literal

import msgspec

from burler.pages import JsonPage, form_of
from burler.records.shape import constraints, leaves
from burler.records.shape.bad_rows import Rules
from burler.records.shape.exact import tuple_parts
from burler.records.shape.leaves import Fix, Leaf, column
from burler.records.shape.unknown import Unknown
from burler.records.shape.values import ANYTHING, ARRAYS, DROPPED, MISSING, Misfit, Template, check_name, types_of

_DECIMAL = (Decimal,)
_OPEN = (ANYTHING, "anyOf", "oneOf")
_MOST_LEARNED = 8  # of one stream, one by one; then every field is a leaf, every object is counted
_ABSENT = frozenset({msgspec.UnsetType})
_PLACE = re.compile(r" - at `(\$.*)`\Z", re.DOTALL)
_INDEX = re.compile(r"\[(?:\d+|\.\.\.)\]")
_MOST_TYPES = 64  # paths to rows that are remembered, for sources that make them up
_FEW_NAMES = 8

# No "number": msgspec makes a float of a Decimal without a word, and knows no NaN; such fields are looked at.
# Whole numbers beyond 64 bits are looked at, too: so a struct says that its numbers are within them.
_INT64 = range(-(2**63), 2**63)
_SCALARS: dict[str, Any] = {
    "boolean": bool,
    "integer": Annotated[int, msgspec.Meta(ge=_INT64.start, le=_INT64.stop - 1)],
    "string": str,
}
_BARE: dict[str, Any] = {**_SCALARS, "integer": int}
"""The same for what has bounds of its own."""
_LENGTHS = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
_SIZES = {"minItems": "min_length", "maxItems": "max_length"}
_BOUNDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}


# ---- single nodes: what one says exactly as JSON Schema does, and nothing else -------------------------------------


class _Unfit(Exception):
    """The node has no form in msgspec."""


def _either(kind: Any, other: Any) -> Any:
    """One or the other; anything at all, if one of them is."""
    return Any if kind is Any else kind | other


def is_name(name: str) -> bool:
    """Whether msgspec takes a field's name: no quote, no backslash, no control character."""
    return name.isprintable() and '"' not in name and "\\" not in name


def _arguments(schema: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """Constraints as arguments of ``msgspec.Meta``.

    Raises:
        _Unfit: one is left over.
    """
    held = constraints.CONSTRAINTS & schema.keys()
    if not held <= set(words) or constraints.ALSO in schema:
        raise _Unfit
    return {words[word]: schema[word] for word in held}


def _meta(name: str, schema: Mapping[str, Any]) -> msgspec.Meta:
    """The constraints of a text or an integer.

    Raises:
        _Unfit: msgspec can't hold one of them as JSON Schema means it.
    """
    if name == "string":
        lengths = _arguments(schema, _LENGTHS)
        if "pattern" in schema:
            longest = constraints.quick_length(schema["pattern"])
            if not longest:
                raise _Unfit
            lengths["max_length"] = min(longest, lengths.get("max_length", longest))  # longer ones are looked at
        return msgspec.Meta(**lengths)
    if name != "integer":
        raise _Unfit
    bounds = _arguments(schema, _BOUNDS)
    if not all(type(bound) is int and bound in _INT64 for bound in bounds.values()):
        raise _Unfit
    lowest = {} if "gt" in bounds else {"ge": _INT64.start}
    highest = {} if "lt" in bounds else {"le": _INT64.stop - 1}
    return msgspec.Meta(**(lowest | highest | bounds))


def _literal(schema: Mapping[str, Any], wanted: list[str]) -> Any:
    """An ``enum`` of texts or of integers."""
    choices = schema["enum"]
    kinds = {type(choice) for choice in choices} if isinstance(choices, list | tuple) else set()
    held = constraints.CONSTRAINTS & schema.keys()
    special = schema.get("format") in ("date-time", "date", "singer.decimal")
    if held != {"enum"} or constraints.ALSO in schema or special:
        raise _Unfit
    if kinds - {type(None)} not in ({str}, {int}):
        raise _Unfit
    name = "string" if str in kinds else "integer"
    if set(wanted) - {"null"} != {name} or (type(None) in kinds and "null" not in wanted):
        raise _Unfit
    if name == "integer" and not all(choice is None or choice in _INT64 for choice in choices):
        raise _Unfit
    return Literal[tuple(choices)]


# ---- what is looked at beside the type -------------------------------------------------------------------------------


def _of_type(values: list[Any], kind: type) -> list[Any]:
    """The values that are of a type, mostly all."""
    return values if set(map(type, values)) == {kind} else [value for value in values if type(value) is kind]


@dataclass(slots=True)
class ObjectNode:
    """One object of the schema: its struct, its fields, what is below it."""

    path: Template
    struct: Any = None
    known: frozenset[str] = frozenset()
    attributes: dict[str, str] = field(default_factory=dict)
    leaves: list[Leaf] = field(default_factory=list)
    objects: dict[str, ObjectNode] = field(default_factory=dict)
    lists: dict[str, ObjectNode] = field(default_factory=dict)
    maps: dict[str, ObjectNode] = field(default_factory=dict)
    """Fields that hold objects of one kind under names of any kind."""
    map_path: Template | None = None
    """The map that the object is in, if it is in one."""
    dropped: list[str] = field(default_factory=list)
    """Attributes that hold what is known and not wanted; they are emptied."""
    counts: bool = False
    """Whether fields that the schema does not know are let through by the struct, and must be counted."""
    further: bool = False
    """Whether fields beside the struct's own may belong to the object."""
    splices: bool = False
    """Whether such fields are put behind those of the struct (of a row's own node only)."""
    looks: bool = False
    """Whether there is a leaf or something to empty here or below."""
    counts_below: bool = False

    def close(self) -> None:
        """Once the node is whole: note what is below it."""
        below = [*self.objects.values(), *self.lists.values(), *self.maps.values()]
        self.looks = bool(self.leaves or self.dropped) or any(node.looks for node in below)
        self.counts_below = self.counts or any(node.counts_below for node in below)


Repair = Callable[[Leaf, Any], Any]


def repair(node: ObjectNode, structs: list[Any], one: Repair) -> None:
    """Look at every leaf's column. ``one`` gives a single value as it goes out, and raises ``Misfit``."""
    for leaf in node.leaves:
        values = column(leaf.attribute)(structs)
        fixed = leaf.fix(values) if leaf.fix is not None else None
        if leaf.required and not (fixed and leaf.sees_gaps) and msgspec.UnsetType in set(map(type, values)):
            raise Misfit(leaf.place, MISSING, "a value")  # given as UNSET, which is to give none
        leaf.given = values if fixed is not values else None
        if fixed is values:
            continue
        if fixed is None:
            leaf.moments = None
            quick = leaf.quick
            fixed = [value if type(value) in quick else one(leaf, value) for value in values]
        attribute = leaf.attribute
        # The comparison in C, since mostly few of them have changed, or all.
        for at in compress(range(len(fixed)), map(is_not, fixed, values)):
            setattr(structs[at], attribute, fixed[at])
    for attribute in node.dropped:
        for struct in structs:
            setattr(struct, attribute, msgspec.UNSET)
    if node.maps:
        _repair_maps(node, structs, one)
    for name, sub in node.objects.items():
        if sub.looks:
            below = _of_type(column(node.attributes[name])(structs), sub.struct)
            if below:
                repair(sub, below, one)
    for name, sub in node.lists.items():
        if sub.looks:
            lists = _of_type(column(node.attributes[name])(structs), list)
            below = _of_type(list(chain.from_iterable(lists)), sub.struct)
            if below:
                repair(sub, below, one)


def _repair_maps(node: ObjectNode, structs: list[Any], one: Repair) -> None:
    for name, sub in node.maps.items():
        if sub.looks:
            maps = _of_type(column(node.attributes[name])(structs), dict)
            below = _of_type(list(chain.from_iterable(map(dict.values, maps))), sub.struct)
            if below:
                repair(sub, below, one)


def count_unknown(node: ObjectNode, rows: Sequence[Mapping[str, Any]], unknown: Unknown) -> None:
    """Count objects that hold a field which the schema does not know. One pass in C a node where there are none.

    Raises:
        Misfit: a field's name has no JSON form.
    """
    if node.counts:
        extra: set[Any] = set().union(*rows) - node.known
        found: dict[Any, list[Any]] = {name: [] for name in extra}
        if len(extra) > _FEW_NAMES:  # names that are data: each row has its own
            for row in rows:
                for name in row.keys() - node.known:
                    found[name].append(row[name])
        for name, values in found.items():
            check_name(name, ())
            values = values or [row[name] for row in rows if name in row]
            unknown.note((*node.path, name), len(values), values)
    for name, sub in node.objects.items():
        if sub.counts_below:
            count_unknown_below(sub, (row.get(name) for row in rows), unknown)
    for name, sub in node.lists.items():
        if sub.counts_below:
            lists = (value for value in (row.get(name) for row in rows) if isinstance(value, ARRAYS))
            count_unknown_below(sub, chain.from_iterable(lists), unknown)


def count_unknown_below(node: ObjectNode, values: Iterator[Any], unknown: Unknown) -> None:
    """The same for values of which some may be no objects."""
    below = [value for value in values if isinstance(value, Mapping)]
    if below:
        count_unknown(node, below, unknown)


# ---- a stream's rows ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Learned:
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
    decoders: dict[tuple[str, ...] | str, Callable[[Any], Any]] = field(default_factory=dict)

    def convert(self, rows: list[dict[str, Any]]) -> list[Any]:
        """A page, converted; leaves are not looked at yet.

        Raises:
            msgspec.ValidationError: some row does not fit.
        """
        shaped: list[Any] = msgspec.convert(rows, self.page_type, builtin_types=_DECIMAL)
        return shaped

    def decode(self, page: JsonPage) -> list[Any]:
        """A page of bytes, likewise.

        Raises:
            msgspec.DecodeError, UnicodeError, ValueError: it is no JSON, or some row does not fit.
        """
        form = form_of(page)
        path = page.records_path or ()
        way = path if form == "document" else form
        decode = self.decoders.get(way)
        if decode is None:
            if len(self.decoders) >= _MOST_TYPES:
                self.decoders.clear()
            decode = self.decoders[way] = self._decoder(way)
        rows = decode(page.data)
        if form == "document":
            for _ in path:
                rows = rows.f0
        return rows or []

    def _decoder(self, way: tuple[str, ...] | str) -> Callable[[Any], Any]:
        if way == "lines":
            return msgspec.json.Decoder(self.row_type).decode_lines
        if way == "array":
            return msgspec.json.Decoder(self.page_type).decode
        kind: Any = self.page_type | None
        for name in reversed(way):  # what stands beside the path is passed over
            kind = msgspec.defstruct("Document", [("f0", kind)], rename={"f0": name})
        return msgspec.json.Decoder(kind).decode

    def key_leaf(self, key: str | None) -> Leaf | None:
        """The leaf of a field of the row, if it is one."""
        return next((leaf for leaf in self.tree.leaves if leaf.path == (key,)), None)


class FastPath:
    """Pages of a stream by msgspec, whose type is compiled anew with what rows show.

    Args:
        schema: in the form of ``shape.form``.
        raw: they are bytes: leaves hold the bytes of their values.

    Attributes:
        compiled: None: only the exact path can do the rows.
    """

    def __init__(self, schema: Mapping[str, Any], rules: Rules, *, raw: bool) -> None:
        self._schema, self._rules, self._raw = schema, rules, raw
        self._learned = _Learned()
        self._compile()

    def _compile(self) -> None:
        self.compiled = _Compiler(self._rules, self._learned, self._raw).compile(self._schema)

    def structs(self, page: Any) -> list[Any] | None:
        """A page (rows, or a ``JsonPage``) as structs of ``compiled``, once what it shows was learned; leaves are not
        looked at yet. None: the exact path must look at the rows."""
        while self.compiled is not None:
            try:
                return self.compiled.decode(page) if self._raw else self.compiled.convert(page)
            except msgspec.ValidationError as error:
                way = "".join(f".{name}" for name in page.records_path or ()) if self._raw else ""
                if not self._learn(str(error), self.compiled, way):
                    return None
                self._compile()
            except (msgspec.DecodeError, TypeError, ValueError, RecursionError):
                return None
        return None

    def _learn(self, error: str, compiled: Compiled, way: str) -> bool:
        """Take in what an error of msgspec says of the page; whether the page fares otherwise with what was learned.

        Args:
            way: the way to the rows.
        """
        found = _PLACE.search(error)
        place = found[1].removeprefix("$").removeprefix(way) if found else ""
        place = _INDEX.sub("[]", place).removeprefix("[]")
        if error.startswith("Object missing required field"):
            return False
        if error.startswith("Object contains unknown field"):
            node = compiled.nodes.get(place)
            return node is not None and self._learn_unknown(node)
        while place:
            if place in compiled.fields:
                return self._learned.add_leaf(compiled.fields[place])
            place = place[: max(place.rfind("."), place.rfind("[]"), 0)]
        return False

    def _learn_unknown(self, node: ObjectNode) -> bool:
        learned = self._learned
        if node.map_path is not None:  # its keys are part of the names to be counted: the map is looked at
            return learned.add_leaf(node.map_path)
        if node.further:
            path = node.path
            while path and path[-1] is None:  # an object in an array: the array is looked at
                path = path[:-1]
            if self._raw or path:
                return bool(path) and learned.add_leaf(path)
            news, learned.further = not learned.further, True
            return news
        # Bytes with unknown fields are decoded once more.
        if self._raw or learned.all_counts or node.path in learned.counts:
            return False
        learned.counts.add(node.path)
        learned.all_counts = len(learned.counts) > _MOST_LEARNED
        return True


def ordered(form: dict[str, Any]) -> dict[str, Any]:
    """A row's form with the fields that no struct can have at the end, where the fast path puts them."""
    properties = form.get("properties") or {}
    odd = [name for name in properties if not is_name(name)]
    if not odd:
        return form
    names = [*(name for name in properties if name not in odd), *odd]
    return {**form, "properties": {name: properties[name] for name in names}}


# ---- compiling -------------------------------------------------------------------------------------------------------


class _Compiler:
    def __init__(self, rules: Rules, learned: _Learned, raw: bool) -> None:
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
        except (_Unfit, TypeError, RecursionError):
            return None
        return Compiled(node.struct, page_type, node, self._fields, self._nodes)

    def _object(self, schema: Mapping[str, Any], path: Template, place: str) -> ObjectNode:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or any(word in schema for word in _OPEN):
            raise _Unfit
        if self._rules.hold(schema) and not constraints.CONSTRAINTS.isdisjoint(schema):
            raise _Unfit
        required = set(schema.get("required") or ())
        odd = {name for name in properties if not is_name(name)}
        if not required <= set(properties) - odd or (odd and (path or self._raw)):
            raise _Unfit
        node = ObjectNode(path, known=frozenset(properties) - odd, map_path=self._map)
        lets_in = schema.get("additionalProperties", False) is not False or bool(schema.get("patternProperties"))
        node.further = lets_in or bool(odd)
        dropped = any(sub is DROPPED for sub in properties.values())
        node.counts = not node.further and not self._raw and self._counts(path, dropped)
        if (node.further or self._map) and dropped and path and not self._raw:
            raise _Unfit  # its fields that are not wanted can't be told from further ones by the struct
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
                fields.append((attribute, _either(kind, msgspec.UnsetType), msgspec.UNSET))
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

    def _field(self, schema: Any, name: str, node: ObjectNode, path: Template, place: str) -> Any:
        self._fields[_INDEX.sub("[]", place)] = path
        if leaves.is_times(schema):
            return self._times(schema, node, path)
        if leaves.is_times_list(schema):
            return self._lists_of_times(schema, node, path)
        if not self._is_learned(path):
            before = dict(self._fields), dict(self._nodes)
            try:
                return self._native(schema, name, node, path, place)
            except (_Unfit, TypeError, ValueError):  # msgspec refuses a negative length, for one
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
        check = leaves.check_of(schema, self._rules)
        kind: Any
        if self._raw:
            if check is not None and leaves.is_plain_text(schema) and not self._is_learned(path):
                kind = str | None if "null" in types_of(schema) else str
                fix: Fix | None = leaves.unchanged_if(check)
            else:
                kind, fix = leaves.kind_and_fix(schema, check, self._rules.hold)
            node.leaves.append(Leaf(attribute, path, schema, fix, _ABSENT))
            return kind
        quick = leaves.quick_types(schema, self._rules)
        if check is None or not leaves.is_number(schema) or self._rules.hold(schema) or self._is_learned(path):
            node.leaves.append(Leaf(attribute, path, schema, check and leaves.unchanged_if(check), quick))
            return Any
        fix = leaves.unchanged_if(lambda values: leaves.no_decimals(values) or check(values))
        node.leaves.append(Leaf(attribute, path, schema, fix, quick, sees_gaps=True))
        return leaves.NUMBER | None if leaves.takes_null(schema) else leaves.NUMBER

    def _times(self, schema: Any, node: ObjectNode, path: Template) -> Any:
        """A date-time: text that is mostly in its final form already."""
        leaf = Leaf(node.attributes[path[-1] or ""], path, schema, None, _ABSENT)
        leaf.fix = leaves.times_fix(leaf, nullable=leaves.takes_null(schema))
        return self._text_leaf(leaf, node, str | None if leaves.takes_null(schema) else str)

    def _lists_of_times(self, schema: Any, node: ObjectNode, path: Template) -> Any:
        leaf = Leaf(node.attributes[path[-1] or ""], path, schema, leaves.lists_of_times, _ABSENT)
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
            raise _Unfit
        wanted = list(dict.fromkeys(types_of(schema)))
        if not wanted or (self._rules.hold(schema) and len([one for one in wanted if one != "null"]) != 1):
            raise _Unfit
        if {"integer", "number"} <= set(wanted):
            wanted.remove("integer")
        if "enum" in schema and self._rules.check_constraints:
            return _literal(schema, wanted)
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
            whole = _either(whole, kind)
        return whole

    def _scalar(self, name: str, schema: Mapping[str, Any]) -> Any:
        if name not in _SCALARS:
            raise _Unfit
        if name == "string" and schema.get("format") in ("date-time", "singer.decimal"):
            raise _Unfit
        if name == "string" and schema.get("format") == "date":
            if self._rules.hold(schema):
                raise _Unfit
            return dt.date
        return Annotated[_BARE[name], _meta(name, schema)] if self._rules.hold(schema) else _SCALARS[name]

    def _native_object(self, schema: Mapping[str, Any], name: str, node: ObjectNode, path: Template, place: str) -> Any:
        if "properties" not in schema:
            if schema.get("patternProperties") or schema.get("required") or self._rules.hold(schema):
                raise _Unfit
            values = ObjectNode(path)
            around, self._map = self._map, self._map or path
            try:
                kind = self._native(schema.get("additionalProperties", True), "", values, (*path, None), f"{place}[]")
            finally:
                self._map = around
            if values.leaves or values.lists or values.maps:
                raise _Unfit
            if values.objects:
                node.maps[name] = values.objects[""]
            return dict[str, kind]  # type: ignore[valid-type]
        if schema.get("patternProperties"):
            raise _Unfit
        sub = self._object(schema, path, place)
        node.objects[name] = sub
        return sub.struct

    def _native_array(self, schema: Mapping[str, Any], name: str, node: ObjectNode, path: Template, place: str) -> Any:
        places, rest = tuple_parts(schema)
        if places:
            raise _Unfit
        inner = ObjectNode(path)
        kind = self._native(rest, "", inner, (*path, None), f"{place}[]")
        if inner.leaves or inner.lists or inner.maps:
            raise _Unfit
        if inner.objects:
            node.lists[name] = inner.objects[""]
        if self._rules.hold(schema):
            return Annotated[list[kind], msgspec.Meta(**_arguments(schema, _SIZES))]  # type: ignore[valid-type]
        return list[kind]  # type: ignore[valid-type]
