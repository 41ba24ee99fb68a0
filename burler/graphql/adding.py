"""What the pager needs and the author did not write: pageInfo, cursors, and what an object is called."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from burler.errors import DeclarationError
from burler.graphql.connections import with_page_info
from burler.graphql.document import argument, changed, core, leaf, name_node
from burler.graphql.rewriting import Rewriter
from burler.graphql.spots import TYPE_KEY, Path, Spot

CURSOR_VARIABLE = "burlerAfter"


def outer_connections(root: Spot) -> tuple[Spot, ...]:
    """Connections that stand in no other one, on the way to a stream's rows: variables of the query page them. One
    that is a list in a row that goes out is not among them: the row holds all of it."""
    found = []
    for spot in root.walk():
        around = [root.find(spot.path[:n]) for n in range(1, len(spot.path))]
        within = any(one is not None and one.connection is not None for one in around)
        in_row = spot.emitted is None and any(one is not None and one.emitted is not None for one in around)
        leads_on = any(one.emitted is not None for one in spot.walk())
        if spot.connection is not None and not within and not in_row and leads_on:
            found.append(spot)
    return tuple(found)


def anchor_of(root: Spot, path: Path) -> Path | None:
    """The nearest object around a connection that is asked for its ``id``: the rest of the connection's rows are asked
    for by it."""
    for n in range(len(path) - 1, 0, -1):
        spot = root.find(path[:n])
        if spot is not None and spot.id_key in spot.leaves:
            return path[:n]
    return None


def with_additions(operation: Any, root: Spot, *, paged: bool, where: str) -> Any:
    """The operation, with all that the pager needs.

    Args:
        paged: add cursors to outer connections that have none.

    Raises:
        DeclarationError: a cursor that is no variable, or one that pages two connections.
    """
    outer = outer_connections(root) if paged else ()
    used: set[str] = set()
    added: dict[Path, str] = {}
    for spot in outer:
        assert spot.connection is not None
        name = spot.connection.cursor
        if name is None:
            added[spot.path] = CURSOR_VARIABLE + "".join(part[:1].upper() + part[1:] for part in spot.path)
        elif name in used:
            raise DeclarationError(f"{where}: ${name} pages two connections. Give each a variable of its own.")
        else:
            used.add(name)
    anchors = {anchor_of(root, spot.path) for spot in root.walk() if spot.connection is not None}
    rewriter = _Additions(added, {one for one in anchors if one is not None}, where)
    with_cursors = changed(
        operation,
        variable_definitions=(
            *(operation.variable_definitions or ()),
            *(variable_definition(name, named_type("String")) for name in added.values()),
        ),
    )
    return rewriter.operation(with_cursors, root, None)


class _Additions(Rewriter):
    def __init__(self, cursors: dict[Path, str], anchors: Collection[Path], where: str) -> None:
        self._cursors = cursors
        self._anchors = anchors
        self._where = where

    def enter(self, field: Any, spot: Spot, context: Any) -> tuple[Any, Any] | None:
        if spot.connection is None:
            return field, context
        field = with_page_info(field, spot.connection)
        if spot.path in self._cursors:
            name = "after" if spot.connection.forward else "before"
            if argument(field, name) is not None:
                raise DeclarationError(
                    f"{self._where}: '{'.'.join(spot.path)}' always begins at the same '{name}'. Make it a variable, "
                    "or leave it out."
                )
            field = with_argument(field, name, self._cursors[spot.path])
        return field, context

    def finish(self, selections: list[Any], spot: Spot, context: Any) -> list[Any]:
        if spot.path not in self._anchors or TYPE_KEY in spot.leaves:
            return selections
        return [*selections, leaf("__typename", TYPE_KEY)]


def with_argument(field: Any, name: str, variable: str) -> Any:
    """A field, an argument of which is a variable."""
    graphql = core()
    value = graphql.ArgumentNode(name=name_node(name), value=graphql.VariableNode(name=name_node(variable)))
    others = [one for one in field.arguments or () if one.name.value != name]
    return changed(field, arguments=(*others, value))


def named_type(name: str, *, required: bool = False) -> Any:
    """A type by its name."""
    graphql = core()
    node = graphql.NamedTypeNode(name=name_node(name))
    return graphql.NonNullTypeNode(type=node) if required else node


def variable_definition(name: str, kind: Any) -> Any:
    """The declaration of a variable without a default."""
    graphql = core()
    return graphql.VariableDefinitionNode(
        variable=graphql.VariableNode(name=name_node(name)), type=kind, default_value=None, directives=()
    )
