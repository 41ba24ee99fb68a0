"""A stream's JSON Schema, from a query's plan and the types of the server."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burler.errors import DeclarationError
from burler.graphql.document import core, response_key, selected_in
from burler.graphql.plan import Plan
from burler.graphql.scalars import schema_of_scalar
from burler.graphql.spots import TYPE_KEY, Emitted, Spot

if TYPE_CHECKING:
    from graphql import GraphQLSchema

logger = logging.getLogger("burler")

JsonSchema = dict[str, Any]


def check(plan: Plan, types: GraphQLSchema, *, where: str) -> None:
    """Hold a query against a server's types.

    Raises:
        DeclarationError: with the first mistakes, each with its line.
    """
    graphql = core()
    errors: list[Any] = []
    for one in (plan, *plan.follow.values()):
        errors += graphql.validate(types, graphql.DocumentNode(definitions=(one.operation,)))
    if errors:
        told = []
        for error in errors[:3]:
            line = error.locations[0].line if error.locations else None
            told.append(f"{f'line {line}: ' if line else ''}{error.message}")
        raise DeclarationError(f"{where}: does not fit the server's types: {' '.join(told)}")
    if types.query_type is None or "node" not in types.query_type.fields:
        _warn_of_ends(plan, where)


def _warn_of_ends(plan: Plan, where: str) -> None:
    """Say now what would end the stream on the day on which a connection in a row has a second page."""
    outer = {one.path for one in plan.outer}
    inner = [one.path for one in plan.root.walk() if one.connection is not None and one.path not in outer]
    for path in inner:
        if path not in plan.follow:
            name = ".".join(path)
            logger.warning(
                "%s: the server has no node(id:) by which the rest of '%s' could be read, should one page not hold it "
                "all. Say how it goes on: follow={'%s': a query}.",
                where,
                name,
                name,
            )


class SchemaOfRows:
    """Makes the schemas of a plan's rows."""

    def __init__(self, plan: Plan, types: GraphQLSchema, scalars: Mapping[str, Any], enums: bool) -> None:
        self._plan = plan
        self._types = types
        self._scalars = scalars
        self._enums = enums

    def rows(self, emitted: Emitted) -> JsonSchema:
        """The schema of a stream's rows."""
        holders: list[tuple[Any, Sequence[Any], Spot]] = []
        spot, kind = self._plan.root, self._types.query_type
        selections: Sequence[Any] = selected_in(self._plan.operation)
        for name in emitted.path:
            holders.append((kind, selections, spot))
            parts = self._fields(kind, selections, spot)
            spot = spot.children[name]
            found = parts[name]
            kind, selections = found[0][0], [one for _kind, inner in found for one in inner]
        properties = self._properties(kind, selections, spot)
        for name, source in emitted.add.items():
            for holder in reversed(holders):
                if source in holder[2].leaves:
                    properties[name] = self._properties(*holder)[source]
                    break
        return {"type": "object", "properties": properties}

    def _fields(self, kind: Any, selections: Sequence[Any], spot: Spot) -> dict[str, list[tuple[Any, Sequence[Any]]]]:
        """Of each field that has fields: the type of its objects (of its rows, for a connection) and what is asked of
        them, as often as the query names it."""
        found: dict[str, list[tuple[Any, Sequence[Any]]]] = {}
        for own, one in self._members(kind, selections, spot):
            child = spot.children.get(response_key(one))
            if child is not None:
                inner = core().get_named_type(_definition(own, one).type)
                found.setdefault(response_key(one), []).append(self._inside(inner, selected_in(one), child))
        return found

    def _inside(self, kind: Any, selections: Sequence[Any], spot: Spot) -> tuple[Any, Sequence[Any]]:
        """The type of the rows and their selections, where a connection stands around them."""
        if spot.connection is None:
            return kind, selections
        row = kind
        inner: list[Any] = []
        for own, one in _flat(self._types, kind, selections):
            if response_key(one) != spot.connection.rows_key:
                continue
            row = core().get_named_type(_definition(own, one).type)
            inner += selected_in(one)
        return row, inner

    def _members(self, kind: Any, selections: Sequence[Any], spot: Spot) -> list[tuple[Any, Any]]:
        """(type, field) of a row: those of a node and of its edge."""
        connection = spot.connection
        if connection is None or connection.node_key is None:
            return list(_flat(self._types, kind, selections))
        found = []
        for own, one in _flat(self._types, kind, selections):
            if response_key(one) == connection.node_key:
                node = core().get_named_type(_definition(own, one).type)
                found += _flat(self._types, node, selected_in(one))
            elif response_key(one) in connection.edge_keys:
                found.append((own, one))
        return found

    def _properties(self, kind: Any, selections: Sequence[Any], spot: Spot) -> JsonSchema:
        properties: JsonSchema = {}
        for own, one in self._members(kind, selections, spot):
            key = response_key(one)
            child = spot.children.get(key)
            if key == TYPE_KEY or (child is not None and child.emitted is not None):
                continue
            made = self._field(own, one, child)
            properties[key] = _united(properties[key], made) if key in properties else made
        return properties

    def _field(self, kind: Any, one: Any, child: Spot | None) -> JsonSchema:
        if one.name.value == "__typename":
            return {"type": "string"}
        declared = _definition(kind, one).type
        if child is None or child.connection is None:
            return self._type(declared, selected_in(one), child)
        row, selections = self._inside(core().get_named_type(declared), selected_in(one), child)
        made = {"type": "array", "items": {"type": "object", "properties": self._properties(row, selections, child)}}
        return made if core().is_non_null_type(declared) else _nullable(made)

    def _type(self, declared: Any, selections: Sequence[Any], child: Spot | None) -> JsonSchema:
        graphql = core()
        if graphql.is_non_null_type(declared):
            return self._not_null(declared.of_type, selections, child)
        return _nullable(self._not_null(declared, selections, child))

    def _not_null(self, declared: Any, selections: Sequence[Any], child: Spot | None) -> JsonSchema:
        graphql = core()
        if graphql.is_list_type(declared):
            return {"type": "array", "items": self._type(declared.of_type, selections, child)}
        if graphql.is_scalar_type(declared):
            return schema_of_scalar(declared.name, getattr(declared, "specified_by_url", None), self._scalars)
        if graphql.is_enum_type(declared):
            made: JsonSchema = {"type": "string"}
            return {**made, "enum": list(declared.values)} if self._enums else made
        assert child is not None
        return {"type": "object", "properties": self._properties(declared, selections, child)}


def _flat(types: GraphQLSchema, kind: Any, selections: Sequence[Any]) -> list[tuple[Any, Any]]:
    """(type, field) of all fields, those of inline fragments with the fragment's type."""
    found: list[tuple[Any, Any]] = []
    for one in selections:
        if isinstance(one, core().FieldNode):
            found.append((kind, one))
        else:
            own = types.get_type(one.type_condition.name.value) if one.type_condition else kind
            found += _flat(types, own, selected_in(one))
    return found


def _definition(kind: Any, one: Any) -> Any:
    return kind.fields[one.name.value]


def _nullable(made: JsonSchema) -> JsonSchema:
    """A schema that takes null as well."""
    if not made:
        return made
    kinds = made.get("type")
    if kinds is None:
        return made if "enum" not in made else {**made, "enum": [*made["enum"], None]}
    listed = kinds if isinstance(kinds, list) else [kinds]
    out = {**made, "type": listed if "null" in listed else ["null", *listed]}
    if "enum" in made and None not in made["enum"]:
        out["enum"] = [*made["enum"], None]
    return out


def _united(one: JsonSchema, other: JsonSchema) -> JsonSchema:
    """The schema of a field that several fragments ask for."""
    if one == other:
        return one
    if isinstance(one.get("properties"), dict) and isinstance(other.get("properties"), dict):
        properties = dict(one["properties"])
        for name, made in other["properties"].items():
            properties[name] = _united(properties[name], made) if name in properties else made
        return {**one, "properties": properties}
    if isinstance(one.get("items"), dict) and isinstance(other.get("items"), dict):
        return {**one, "items": _united(one["items"], other["items"])}
    return {"anyOf": [one, other]}
