"""What of a declaration would lose or repeat rows, or fields of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from burler.errors import DeclarationError
from burler.graphql.connections import Connection
from burler.graphql.plan import Plan
from burler.graphql.pruning import source_of
from burler.graphql.spots import LISTED, Emitted, Path, Spot


def check_follow(plan: Plan, paging: Any, path: str, followed: Connection, *, where: str) -> None:
    """The rest of a connection is asked for by its cursor, so the query must take that, and nothing else may page it.

    Args:
        plan, paging: of the query. path: the one of the connection that it is to read on, as the author wrote it.

    Raises:
        DeclarationError: it would give other rows than the rest.
    """
    rows = next((one.path for one in plan.streams if one.name is None), None)
    outer = plan.outer[0].connection if plan.outer else None
    if paging is not None:
        fact = "has paging= of its own"
    elif outer is None or [one.path for one in plan.outer] != [rows]:
        fact = "has its rows in no connection, or in one of several"
    elif outer.forward != followed.forward:
        fact = "reads the connection in the other direction"
    else:
        return
    raise DeclarationError(
        f"{where}: follow: the query for '{path}' {fact}; the rest is asked for by the connection's cursor.\n"
        "Write a query with one connection: 'query ($id: ID!, $after: String) { ship(id: $id) "
        "{ crew(first: 50, after: $after) { nodes { name } } } }'."
    )


def followed(plan: Plan, spot: Spot, path: str, *, where: str) -> Plan:
    """The plan of a query that reads more of a connection, with the streams that have their rows in it or below.

    Args:
        plan: of a query that ``check_follow`` has seen. spot: the connection. path: as the author wrote it.

    Raises:
        DeclarationError: it does not ask for the rows of one of them, which would be lost.
    """
    own = next(one.path for one in plan.streams if one.name is None)
    streams = [one for one in plan.streams if one.name is not None]
    streams.append(Emitted(LISTED, own, {}) if spot.emitted is None else replace(spot.emitted, path=own))
    for one in spot.walk():
        if one.emitted is None or one.path == spot.path:
            continue
        below = (*own, *one.path[len(spot.path) :])
        if plan.root.find(below) is None:
            name = f"of '{one.emitted.name}'" if one.emitted.name else "of the stream that runs"
            raise DeclarationError(
                f"{where}: follow: the query for '{path}' does not ask for '{'.'.join(below)}', where rows {name} are."
                "\nAsk there for all that the query itself asks for in it."
            )
        streams.append(replace(one.emitted, path=below))
    return plan.changed(plan.operation, streams)


def check_edges(root: Spot, *, where: str) -> None:
    """Fields of an edge go into the row beside those of the node.

    Raises:
        DeclarationError: both have a field of one name.
    """
    for spot in root.walk():
        for name in sorted(spot.twice):
            raise DeclarationError(
                f"{where}: an edge of '{'.'.join(spot.path)}' and its node both have '{name}', and a row has one place "
                f"for it. Use an alias: 'edge_{name}: {name}'."
            )


def check_added(root: Spot, path: Path, add: Mapping[str, str], stream: str, *, where: str) -> None:
    """What rows get of the objects around them (``add=``).

    Raises:
        DeclarationError: nothing around them has it; or they have a field of that name themselves.
    """
    row = root.find(path)
    for name, source in add.items():
        if source_of(root, path, source) is None:
            raise DeclarationError(
                f"{where}: rows of '{stream}' get '{source}', which no object around '{'.'.join(path)}' is asked for. "
                "Add it to the query."
            )
        if row is not None and (name in row.leaves or name in row.children):
            raise DeclarationError(
                f"{where}: rows of '{stream}' have a '{name}' of their own, which add= would put '{source}' in place "
                f"of. Give it another name: add={{'parent_{name}': '{source}'}}."
            )
