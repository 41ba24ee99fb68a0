"""Relay's connections: fields that hold a page of rows and say whether there is another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.graphql.document import (
    argument,
    changed,
    fields_in,
    leaf,
    response_key,
    selected_in,
    selection_set,
    variable_in,
    with_selections,
)

if TYPE_CHECKING:
    from graphql import FieldNode

_ARGUMENTS = ("first", "after", "last", "before")
_BESIDE = {"nodes", "edges", "pageInfo", "totalCount", "__typename"}
INFO, MORE, CURSOR = "burler_page", "burler_more", "burler_cursor"


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection of a query, in the names that its reply has.

    Attributes:
        rows_key: of ``nodes`` or ``edges``.
        node_key: of ``node`` in an edge; None with ``nodes``.
        edge_keys: other fields of an edge, which go into the row.
        info_key, more_key, cursor_key: of ``pageInfo`` and of what it says; empty where nobody asks for it.
        cursor: the variable that asks for the next page; None where the text has none.
        size: the variable that says how many rows a page has.
        forward: from the first row on, else from the last one back.
    """

    rows_key: str
    node_key: str | None
    edge_keys: tuple[str, ...]
    info_key: str
    more_key: str
    cursor_key: str
    cursor: str | None
    size: str | None
    forward: bool


def connection_of(fields: Sequence[FieldNode]) -> Connection | None:
    """What a field is as a connection; None if it is none.

    A field with ``edges { node }`` is one, and one with ``nodes`` that has ``pageInfo``, an argument of connections, or
    nothing else beside. Better a server that says that it has no ``pageInfo`` than rows that are missing in silence.

    Args:
        fields: the field, as often as the query names it under one key (in several fragments).
    """
    inner = {one.name.value: one for field in fields for one in fields_in(selected_in(field))}
    info = inner.get("pageInfo")
    field = fields[0]
    nodes, edges = inner.get("nodes"), inner.get("edges")
    rows, node_key, edge_keys = nodes, None, ()
    if nodes is None and edges is not None:
        members = list(fields_in(selected_in(edges)))
        node = next((one for one in members if one.name.value == "node"), None)
        rows = None if node is None else edges
        node_key = None if node is None else response_key(node)
        others = (response_key(one) for one in members if one.name.value not in ("node", "cursor"))
        edge_keys = tuple(dict.fromkeys(others))  # type: ignore[assignment]
    if rows is None or rows.selection_set is None:
        return None
    asked = info is not None or any(argument(field, name) is not None for name in _ARGUMENTS)
    if not asked and node_key is None and not set(inner) <= _BESIDE:
        return None
    forward = not (argument(field, "before") or argument(field, "last"))
    more, cursor = ("hasNextPage", "endCursor") if forward else ("hasPreviousPage", "startCursor")
    said = {} if info is None else {one.name.value: response_key(one) for one in fields_in(selected_in(info))}
    return Connection(
        response_key(rows),
        node_key,
        edge_keys,
        "" if info is None else response_key(info),
        said.get(more, ""),
        said.get(cursor, ""),
        variable_in(argument(field, "after" if forward else "before")),
        variable_in(argument(field, "first" if forward else "last")),
        forward,
    )


def with_page_info(field: FieldNode, connection: Connection) -> FieldNode:
    """The field, which says whether there is another page, and where it begins."""
    if connection.info_key and connection.more_key and connection.cursor_key:
        return field
    more, cursor = ("hasNextPage", "endCursor") if connection.forward else ("hasPreviousPage", "startCursor")
    info = changed(leaf("pageInfo", INFO), selection_set=selection_set([leaf(more, MORE), leaf(cursor, CURSOR)]))
    if not connection.info_key:
        return with_selections(field, [*selected_in(field), info])  # type: ignore[no-any-return]
    # An author's own pageInfo that says too little: what is missing is added to it.
    added = [leaf(name, key) for name, key, has in _missing(connection, more, cursor) if not has]
    return with_selections(field, _completed(selected_in(field), added))  # type: ignore[no-any-return]


def _missing(connection: Connection, more: str, cursor: str) -> tuple[tuple[str, str, str], ...]:
    return (more, MORE, connection.more_key), (cursor, CURSOR, connection.cursor_key)


def _completed(selections: Sequence[Any], added: list[Any]) -> list[Any]:
    out = []
    for one in selections:
        if getattr(one, "name", None) is not None and one.name.value == "pageInfo":
            one = with_selections(one, [*selected_in(one), *added])
        elif getattr(one, "name", None) is None:
            one = with_selections(one, _completed(selected_in(one), added))
        out.append(one)
    return out
