"""The one walk of a JSON Schema that makes columns: what the values of a node may be, what lies below it, and which
type its column has.

All fields are nullable: Singer rows may lack any field. Columns hold less than JSON says: text is text, or JSON of
something that has no narrower type. The schema tells them apart, for who writes a column and for who reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from burler.errors import BurlerError, DataError
from burler.records.columns.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DIGITS,
    DOUBLE,
    JSON,
    NULL,
    OPEN,
    STRING,
    TIMESTAMP,
    DecimalOf,
    FieldType,
    ListOf,
    MapOf,
    Scalar,
    StructOf,
    replaced,
    widen,
)

_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})
_ALL = _SCALARS | {"object", "array"}


@dataclass(frozen=True, slots=True)
class Node:
    """A node, its unions taken apart.

    ``names``: the JSON types that its values may have; all of them where nothing is said.
    """

    branches: tuple[Mapping[str, Any], ...]
    names: frozenset[str]
    is_open: bool

    @property
    def texts(self) -> str:
        """What text in a column is: "text" itself; "json" for values that are no text; "either" where both are
        possible, which only the text can tell."""
        if "string" not in self.names:
            return "json"
        return "text" if self.names <= _SCALARS else "either"

    @property
    def wants_text(self) -> bool:
        """Whether its numbers are written as text (``singer.decimal``)."""
        return "string" in self.names and not self.names & {"number", "integer"} and not self.is_open

    @property
    def is_whole(self) -> bool:
        """Whether its numbers are integers."""
        return "integer" in self.names and "number" not in self.names

    @property
    def trims(self) -> bool:
        """Whether zeros at the end of its decimals come from the column alone: nobody has said how many digits."""
        return any(
            branch.get("format") == "singer.decimal" and "scale" not in branch and "multipleOf" not in branch
            for branch in self.branches
        )

    def says(self, key: str, value: str) -> bool:
        """Whether a branch has this keyword."""
        return any(branch.get(key) == value for branch in self.branches)

    @property
    def properties(self) -> Mapping[str, Any]:
        """The fields that are declared."""
        found: dict[str, list[Any]] = {}
        for branch in self.branches:
            for name, below in _mapping(branch.get("properties")).items():
                found.setdefault(name, []).append(below)
        return {name: _either(below) for name, below in found.items()}

    @property
    def is_closed(self) -> bool:
        """Whether no other field may be there."""
        return any(branch.get("additionalProperties") is False for branch in self.branches)

    @property
    def values(self) -> Any:
        """The node of a map's values."""
        return self._first("additionalProperties")

    @property
    def items(self) -> Any:
        """The node of a list's items."""
        return self._first("items")

    def _first(self, key: str) -> Any:
        return _either([branch[key] for branch in self.branches if key in branch])


def node_of(given: Any) -> Node:
    """A schema's node; anything that is no object stands for one that says nothing."""
    branches = tuple(_branches(_mapping(given)))
    names: set[str] = set()
    is_open = False
    for branch in branches:
        found = type_names(branch)
        is_open |= not found
        names |= found or _ALL
    return Node(branches, frozenset(names), is_open)


def _branches(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    node = merged(node)
    parts = branches(node)
    if parts is None:
        return [node]
    rest = without_branches(node)
    return [found for part in parts for found in _branches({**rest, **part})]


def _either(nodes: list[Any]) -> Any:
    """One node for the places below several alternatives."""
    return {"anyOf": nodes} if len(nodes) > 1 else nodes[0] if nodes else {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _with_json_record(record: StructOf, schema: Mapping[str, Any]) -> StructOf:
    made = _with_json(record, node_of(schema))
    assert isinstance(made, StructOf)
    return made


def _with_json(kind: FieldType, node: Node) -> FieldType:
    match kind:
        case StructOf(fields):
            below = node.properties
            return StructOf(tuple((name, _with_json(inner, node_of(below.get(name)))) for name, inner in fields))
        case ListOf(item):
            return ListOf(_with_json(item, node_of(node.items)))
        case MapOf(value):
            return MapOf(_with_json(value, node_of(node.values)))
    return JSON if kind == STRING and node.texts != "text" else kind


# ---- types of columns ------------------------------------------------------------------------------------------------

_INT64 = (-(2**63), 2**63 - 1)
_SINGER_DECIMAL_SCALE = 18


def record_type(
    schema: Mapping[str, Any],
    *,
    stream: str = "",
    error: type[BurlerError] = DataError,
    open_as: Scalar = STRING,
) -> StructOf:
    """The columns of a stream's rows.

    The top level is always a struct of the declared properties, also where ``additionalProperties`` is
    open: a table has columns (undeclared fields are dropped and counted by who reads the rows).

    Args:
        error: what to raise.
        open_as: the type of a value that may be any JSON, or one of types that no other type holds. ``JSON``, as in
            batch files: a column of text whose values may be more than text and other scalars holds JSON of all of
            them, of text too, so that a reader gets back what was sent.

    Raises:
        error: no properties, a recursive schema or a ``$ref`` (resolve references first).
    """
    properties = merged(schema).get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise error(f"stream '{stream}': its schema declares no properties, so there are no columns to make")
    try:
        described = ((name, _describe(node, (name,))) for name, node in properties.items())
        record = StructOf(
            tuple((name, replaced(kind, OPEN, STRING if open_as == JSON else open_as)) for name, kind in described)
        )
        return _with_json_record(record, schema) if open_as == JSON else record
    except RecursionError:
        raise error(f"stream '{stream}': its schema is recursive; a table can't be") from None
    except _Refused as refused:
        raise error(f"stream '{stream}': {refused}") from None


class _Refused(Exception):
    """A schema node that can't become a type; its text says where."""


def _describe(node: Any, path: tuple[str, ...]) -> FieldType:
    """The type of one schema node."""
    if not isinstance(node, Mapping):
        return OPEN  # true: anything
    if "$ref" in node:
        raise _Refused(f"field '{'.'.join(path)}' holds a $ref; resolve references first")
    if len(path) > 200:
        raise RecursionError
    node = merged(node)
    parts = branches(node)
    if parts is not None:
        return _union([_describe({**without_branches(node), **part}, path) for part in parts])
    names = type_names(node)
    if not names:
        return OPEN
    if "number" in names:
        names = names - {"integer"}  # every integer is a number: the number rule holds
    return _union([_one(name, node, path, alone=names <= {name, "null"}) for name in sorted(names)])


def _one(name: str, node: Mapping[str, Any], path: tuple[str, ...], *, alone: bool) -> FieldType:
    """The type of a node seen as one JSON type. ``alone``: it may be nothing else (null apart)."""
    if name == "null":
        return NULL
    if name == "integer":
        return _integer(node)
    if name == "number":
        return _number(node)
    if name == "boolean":
        return BOOLEAN
    if name == "string":
        return _text(node) if alone else (_singer_decimal(node) or STRING)
    if name == "array":
        items = node.get("items")
        if "prefixItems" in node or not isinstance(items, Mapping):
            return OPEN
        return ListOf(_describe(items, (*path, "[]")))
    if name == "object":
        return _object(node, path)
    raise _Refused(f"field '{'.'.join(path)}' has the unknown type '{name}'")


def _integer(node: Mapping[str, Any]) -> FieldType:
    low, high = _INT64
    # An exclusive bound may stand one beyond the last value.
    bounds = {
        "minimum": (low, high),
        "maximum": (low, high),
        "exclusiveMinimum": (low - 1, high + 1),
        "exclusiveMaximum": (low - 1, high + 1),
    }
    wide = any(_is_number(node.get(key)) and not least <= node[key] <= most for key, (least, most) in bounds.items())
    return _singer_decimal(node) or (DecimalOf(0) if wide else BIGINT)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _number(node: Mapping[str, Any]) -> FieldType:
    named = _singer_decimal(node)
    if named is not None:
        return named
    step = node.get("multipleOf")
    if _is_number(step):
        _, digits, exponent = Decimal(str(step)).normalize().as_tuple()
        if digits == (1,) and isinstance(exponent, int) and -DIGITS <= exponent <= 0:
            return DecimalOf(-exponent)
    return DOUBLE


def _singer_decimal(node: Mapping[str, Any]) -> DecimalOf | None:
    if node.get("format") != "singer.decimal":
        return None
    try:
        scale = int(Decimal(str(node.get("scale", _SINGER_DECIMAL_SCALE))))
    except (InvalidOperation, ValueError, OverflowError):
        scale = _SINGER_DECIMAL_SCALE
    return DecimalOf(min(max(scale, 0), DIGITS))


def _text(node: Mapping[str, Any]) -> FieldType:
    if node.get("contentEncoding") == "base64":
        return BINARY
    return {"date-time": TIMESTAMP, "date": DATE}.get(node.get("format", ""), _singer_decimal(node) or STRING)


def _object(node: Mapping[str, Any], path: tuple[str, ...]) -> FieldType:
    properties, more = node.get("properties"), node.get("additionalProperties", False)
    if properties is not None and not isinstance(properties, Mapping):
        raise _Refused(f"field '{'.'.join(path)}' has 'properties' that are no object")
    if "patternProperties" in node or (properties and more is not False):
        return OPEN  # open, or open beside named fields
    if properties:
        return StructOf(tuple((name, _describe(inner, (*path, name))) for name, inner in properties.items()))
    if isinstance(more, Mapping) and more:
        return MapOf(_describe(more, (*path, "{}")))
    return OPEN


def _union(kinds: list[FieldType]) -> FieldType:
    """What holds all of a node's types; any JSON where they do not widen."""
    united: FieldType = NULL
    for kind in kinds:
        nested = any(not isinstance(one, Scalar | DecimalOf) or one == OPEN for one in (united, kind))
        wider = None if nested and NULL not in (united, kind) and united != kind else widen(united, kind)
        if wider is None:
            return OPEN
        united = wider
    return united


def type_names(node: Mapping[str, Any]) -> set[str]:
    """JSON type names of a node; from its values or keywords where ``type`` is absent."""
    given = node.get("type")
    if isinstance(given, str):
        return {given}
    if isinstance(given, list):
        return {str(name) for name in given}
    values = node.get("enum") if isinstance(node.get("enum"), list) else [node["const"]] if "const" in node else []
    if values:
        return {_json_type(value) for value in values or []}
    return {"object"} if "properties" in node else {"array"} if "items" in node else set()


def _json_type(value: Any) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "number"


def branches(node: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The alternatives of a node; None where it has none."""
    for key in ("anyOf", "oneOf"):
        given = node.get(key)
        if isinstance(given, list) and given:
            return [branch if isinstance(branch, Mapping) else {"type": []} for branch in given]
    return None


def without_branches(node: Mapping[str, Any]) -> dict[str, Any]:
    """What a node says beside its alternatives, for each of them."""
    # "type" too: a branch that names none then takes the node's, one that does narrows it.
    return {key: value for key, value in node.items() if key not in ("anyOf", "oneOf")}


def merged(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """``allOf`` laid into its node: keywords of later parts win, properties are joined."""
    parts = node.get("allOf")
    if not isinstance(parts, list):
        return node
    out: dict[str, Any] = {key: value for key, value in node.items() if key != "allOf"}
    for part in parts:
        if isinstance(part, Mapping):
            inner = merged(part)
            properties = {**out.get("properties", {}), **inner.get("properties", {})}
            out |= dict(inner)
            if properties:
                out["properties"] = properties
    return out
