"""What a reader of columns must know of a JSON Schema node: what its values may be, and what lies below it.

Columns hold less than JSON says: text is text, or JSON of something that has no narrower type. The
schema tells them apart, for who writes a column and for who reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from burler.columns import types
from burler.columns.kinds import JSON, STRING, FieldType, ListOf, MapOf, StructOf

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
            for name, below in _object(branch.get("properties")).items():
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
    branches = tuple(_branches(_object(given)))
    names: set[str] = set()
    is_open = False
    for branch in branches:
        found = types.type_names(branch)
        is_open |= not found
        names |= found or _ALL
    return Node(branches, frozenset(names), is_open)


def _branches(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    node = types.merged(node)
    parts = types.branches(node)
    if parts is None:
        return [node]
    rest = types.without_branches(node)
    return [found for part in parts for found in _branches({**rest, **part})]


def _either(nodes: list[Any]) -> Any:
    """One node for the places below several alternatives."""
    return {"anyOf": nodes} if len(nodes) > 1 else nodes[0] if nodes else {}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def with_json(record: StructOf, schema: Mapping[str, Any]) -> StructOf:
    """The columns of batch files: a column of text whose values may be more than text and other scalars holds JSON of
    all of them, of text too, so that a reader gets back what was sent."""
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
