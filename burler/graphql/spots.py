"""Where things are in a reply: objects, connections and the rows of streams, by the names that the reply has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from burler.errors import DeclarationError
from burler.graphql.connections import Connection, connection_of
from burler.graphql.document import argument_variables, fields_in, response_key, selected_in
from burler.suggest import near_or_all

if TYPE_CHECKING:
    from graphql import FieldNode

Path = tuple[str, ...]
LISTED = "\0"  # in place of a stream's name: rows that go into a list in a row
TYPE_KEY = "burler_type"  # __typename where the pager needs it
_INSIDE = ("edges", "node", "nodes")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of another stream in the reply of a query: ``streams={"crew": Rows("ships.crew", add={"ship_id": "id"})}``.

    Attributes:
        path: the names that lead to them, with dots between: ``edges``, ``node`` and ``nodes`` of connections are left
            out.
        add: fields that each row gets of what stands around it: name in the row -> name in the nearest object around
            it that has this name.
    """

    path: str | Sequence[str]
    add: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Emitted:
    """A stream of a query: its name (None: the stream that runs), the way to its rows, what they get."""

    name: str | None
    path: Path
    add: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Spot:
    """A field with fields of its own, in the reply. Where it is a connection, ``children`` and ``leaves`` are those of
    its nodes, and of its edges.

    Attributes:
        path: the names on the way to it, without those inside of connections.
        children: fields that have fields; ``leaves``: all others.
        emitted: the stream whose rows stand here.
        inner: whether a connection or a stream's rows stand below.
        variables: the names of those in its arguments.
        sure: those of the children that each object has, be they null: no directive, no fragment makes them optional.
        twice: names that a connection's edges and their nodes both have.
        id_key: the name under which the reply has the object's ``id``; "" where the query does not ask for it.
    """

    path: Path
    connection: Connection | None
    children: Mapping[str, Spot]
    leaves: frozenset[str]
    emitted: Emitted | None
    inner: bool
    variables: frozenset[str] = frozenset()
    sure: frozenset[str] = frozenset()
    twice: frozenset[str] = frozenset()
    id_key: str = ""

    def walk(self) -> Iterator[Spot]:
        """This one and all below, from above."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def find(self, path: Path) -> Spot | None:
        """The one at a path that begins here."""
        found: Spot | None = self
        for name in path:
            found = found.children.get(name) if found is not None else None
        return found


def spots_of(operation: Any, streams: Sequence[Emitted] = (), *, connections: bool = True) -> Spot:
    """All of an operation's spots, from its root. ``connections=False``: what looks like a connection is none."""
    find = connection_of if connections else lambda fields: None
    return _spot((), [operation], None, {one.path: one for one in streams}, find)


def _id_key(groups: Mapping[str, Sequence[FieldNode]], connection: Connection | None) -> str:
    """An alias may call another field "id", and the id something else; the id of an edge is not the row's."""
    keys = [key for key, fields in groups.items() if all(one.name.value == "id" for one in fields)]
    if connection is not None:
        keys = [key for key in keys if key not in connection.edge_keys]
    return "id" if "id" in keys else next(iter(keys), "")


def _spot(
    path: Path,
    holders: Sequence[Any],
    connection: Connection | None,
    streams: Mapping[Path, Emitted],
    find: Callable[[Sequence[FieldNode]], Connection | None],
) -> Spot:
    groups: dict[str, list[FieldNode]] = {}
    for holder in holders:
        for one in _row_fields(holder, connection):
            groups.setdefault(response_key(one), []).append(one)
    children = {
        key: _spot((*path, key), fields, find(fields), streams, find)
        for key, fields in groups.items()
        if fields[0].selection_set is not None
    }
    inner = any(one.inner or one.connection is not None or one.emitted is not None for one in children.values())
    variables = {name for one in holders if path for name in argument_variables(one)}
    return Spot(
        path,
        connection,
        children,
        frozenset(groups) - set(children),
        streams.get(path),
        inner,
        frozenset(variables),
        _sure(holders, connection) & children.keys(),
        _twice(holders, connection),
        _id_key(groups, connection),
    )


def _sure(holders: Sequence[Any], connection: Connection | None) -> frozenset[str]:
    if connection is not None:
        return frozenset()
    found = [
        frozenset(response_key(one) for one in selected_in(holder) if hasattr(one, "alias") and not one.directives)
        for holder in holders
    ]
    return found[0].intersection(*found[1:]) if found else frozenset()


def _twice(holders: Sequence[Any], connection: Connection | None) -> frozenset[str]:
    if connection is None or connection.node_key is None:
        return frozenset()
    edges = [
        edge for one in holders for edge in fields_in(selected_in(one)) if response_key(edge) == connection.rows_key
    ]
    nodes = [one for edge in edges for one in fields_in(selected_in(edge)) if response_key(one) == connection.node_key]
    own = {response_key(one) for node in nodes for one in fields_in(selected_in(node))}
    return frozenset(own.intersection(connection.edge_keys))


def _row_fields(holder: Any, connection: Connection | None) -> Iterator[FieldNode]:
    """The fields of an object; of a connection, those of its rows."""
    fields = fields_in(selected_in(holder))
    if connection is None:
        yield from fields
        return
    for one in fields:
        if response_key(one) != connection.rows_key:
            continue
        if connection.node_key is None:
            yield from fields_in(selected_in(one))
            continue
        for member in fields_in(selected_in(one)):
            key = response_key(member)
            if key == connection.node_key:
                yield from fields_in(selected_in(member))
            elif key in connection.edge_keys:
                yield member


def resolve(root: Spot, path: str | Sequence[str], *, what: str, where: str) -> Path:
    """The path of a stream's rows, without what is inside of connections.

    Raises:
        DeclarationError: no such path, or one that leads to a scalar.
    """
    names = path.split(".") if isinstance(path, str) else list(path)
    found, out = root, []
    for name in names:
        child = found.children.get(name)
        if child is None and found.connection is not None and name in _INSIDE:
            continue
        if child is None:
            known = sorted(found.children)
            hint = near_or_all(name, known, "There")
            fact = "has no fields of its own" if name in found.leaves else "is no field"
            raise DeclarationError(f"{where}: {what}: '{name}' {fact} {_at(found)} that holds rows.{hint}")
        found = child
        out.append(str(name))
    if not out:
        raise DeclarationError(f"{where}: {what} is empty; name the field that holds the rows.")
    return tuple(out)


def only_rows(root: Spot, *, where: str) -> Path:
    """The path of the rows where nobody says it: the only connection that stands in no other one, or the only field.

    Raises:
        DeclarationError: there are several, or none.
    """
    outer = list(_outer(root))
    if len(outer) == 1:
        return outer[0].path
    if not outer:
        found, seen = root, 0
        while len(found.children) == 1 and not (seen and found.leaves):
            found, seen = next(iter(found.children.values())), seen + 1
        if seen and (found.leaves or not found.children):
            return found.path
    names = ", ".join(".".join(one.path) for one in outer) or ", ".join(root.children) or "none"
    raise DeclarationError(
        f"{where}: where are the rows? Say rows='...', or streams={{...}} for several. Fields that hold some: {names}."
    )


def _outer(spot: Spot) -> Iterator[Spot]:
    for child in spot.children.values():
        if child.connection is not None:
            yield child
        else:
            yield from _outer(child)


def _at(spot: Spot) -> str:
    return f"under '{'.'.join(spot.path)}'" if spot.path else "of the query"
