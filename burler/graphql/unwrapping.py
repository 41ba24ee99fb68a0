"""Rows as dicts: connections in them become lists, rows of other streams are taken out, null rows are counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.errors import GraphQLError, PagingError
from burler.graphql.adding import anchor_of
from burler.graphql.connections import Connection
from burler.graphql.plan import ID_VARIABLE, Plan
from burler.graphql.raw import PageInfo
from burler.graphql.replies import shown
from burler.graphql.spots import LISTED, TYPE_KEY, Emitted, Path, Spot

Row = dict[str, Any]
Chain = tuple[Row, ...]
_ABSENT = object()
Further = Callable[[Plan, Mapping[str, Any], Any, Chain], Iterator[tuple[str | None, list[Any]]]]


@dataclass(slots=True)
class Rest:
    """Rows of a stream that are still to be asked for: those of one parent row, behind a cursor."""

    stream: str | None
    plan: Plan
    values: dict[str, Any]
    cursor: Any
    chain: Chain


@dataclass(slots=True)
class Unwrapped:
    """What one reply held.

    Attributes:
        rows: of each stream, in the order of the reply. Streams of the plan that had none are there with [].
        infos: what each outer connection says of the next page; None where it is null.
        rest: connections of other streams whose next pages are still to be read.
        nulls: rows that were null. missing: streams where null stands in place of all rows.
    """

    rows: dict[str | None, list[Row]]
    infos: dict[Path, PageInfo | None] = field(default_factory=dict)
    rest: list[Rest] = field(default_factory=list)
    nulls: int = 0
    missing: set[str | None] = field(default_factory=set)


def unwrap(
    plan: Plan, data: Any, chain: Chain, further: Further, *, where: str, paged: Collection[Path] = ()
) -> Unwrapped:
    """The rows of a reply's ``data``.

    Args:
        chain: objects around it, from the outside in: rows get fields of theirs (``add``).
        further: asks for the pages behind a cursor of a connection whose rows go into a row.
        paged: connections whose pages the author turns.

    Raises:
        GraphQLError: a list where an object should be, and the like. PagingError: a connection that has more rows than
            it gives, and no way to ask for them.
    """
    walk = _Walk(plan, further, where, paged)
    walk.root(data, chain)
    return walk.out


class _Walk:
    def __init__(self, plan: Plan, further: Further, where: str, paged: Collection[Path]) -> None:
        self._plan = plan
        self._paged = paged
        self._further = further
        self._where = where
        self._outer = {one.path for one in plan.outer}
        self.out = Unwrapped({one.name: [] for one in plan.streams})

    def root(self, data: Any, chain: Chain) -> None:
        """All of a reply."""
        spot = self._plan.root
        if data is not None:
            self._object(spot, self._dict(spot, data, "an object"), chain, (), listed=False)

    def value(self, spot: Spot, value: Any, chain: Chain, holders: tuple[Row | None, ...], *, listed: bool) -> Any:
        """What goes into the row where ``value`` stood. ``holders`` are the objects on the way here, one for each name
        of the path, None where a list lies between it and here; ``listed``: a list or a connection was passed."""
        if spot.connection is not None:
            return self._connection(spot, spot.connection, value, chain, holders, listed=listed)
        if spot.emitted is not None:
            self._emit(spot.emitted, self._rows(spot, value, chain, holders, listed=listed), chain)
            return None
        if isinstance(value, list):
            below = (None,) * len(holders)
            return [self.value(spot, one, chain, below, listed=True) for one in value]
        if value is None:
            return self._none(spot, listed=listed)
        return self._object(spot, self._dict(spot, value, "an object"), chain, holders, listed=listed)

    def _none(self, spot: Spot, *, listed: bool) -> None:
        """Null, or nothing, where rows of streams should be, unless it is only one row that lacks them."""
        if not listed:
            self.out.missing.update(one.emitted.name for one in spot.walk() if one.emitted is not None)

    def _rows(self, spot: Spot, value: Any, chain: Chain, holders: Any, *, listed: bool) -> list[Row]:
        """Rows that stand in no connection: a list, or one object."""
        if value is None:
            self._none(spot, listed=listed)
            return []
        if isinstance(value, list):
            holders = (None,) * len(holders)
            self.out.nulls += value.count(None)
            return [row for one in value for row in self._rows(spot, one, chain, holders, listed=True)]
        return [self._object(spot, self._dict(spot, value, "rows"), chain, holders, listed=listed)]

    def _dict(self, spot: Spot, value: Any, what: str) -> Row:
        if isinstance(value, dict):
            return value
        name = f"'{'.'.join(spot.path)}'" if spot.path else "'data'"
        raise GraphQLError(f"{self._where}: {name} of the reply should be {what} and is {shown(value)}.")

    def _object(self, spot: Spot, value: Row, chain: Chain, holders: Any, *, listed: bool) -> Row:
        inside = (*chain, value)
        row = dict(value)
        around = (*holders, value)
        for key, child in spot.children.items():
            if not (child.inner or child.connection is not None or child.emitted is not None):
                continue
            if child.path in self._plan.idle:
                continue
            if key not in row:
                if key in spot.sure:
                    at = ".".join(spot.path) or "data"
                    raise GraphQLError(
                        f"{self._where}: the query asks for '{key}', and '{at}' of the reply does not have it."
                    )
                self._none(child, listed=listed)
                continue
            new = self.value(child, value[key], inside, around, listed=listed)
            if child.emitted is None:
                row[key] = new
            else:
                del row[key]
        row.pop(TYPE_KEY, None)
        return row

    def _connection(
        self, spot: Spot, connection: Connection, value: Any, chain: Chain, holders: Any, *, listed: bool
    ) -> Any:
        outer = spot.path in self._outer and not listed
        if value is None:
            if outer:
                self.out.infos[spot.path] = None
            return self._none(spot, listed=listed)
        nodes = self._nodes(spot, connection, self._dict(spot, value, "a connection"))
        below = (None,) * len(holders)
        rows = [self._object(spot, one, chain, below, listed=True) for one in nodes]
        info = self._info(spot, connection, value)
        if info.absent:
            self._none(spot, listed=listed)
        if outer or (spot.path in self._paged and not listed):
            self.out.infos[spot.path] = info
        elif info.more or info.silent:
            rest = self._rest(spot, info, chain, holders)
            if spot.emitted is not None:
                self.out.rest.append(rest)
            else:
                rows += self._all(rest)
        if spot.emitted is None:
            return rows
        self._emit(spot.emitted, rows, chain)
        return None

    def _nodes(self, spot: Spot, connection: Connection, value: Row) -> list[Row]:
        listed = value.get(connection.rows_key, _ABSENT)
        if listed is not None and not isinstance(listed, list):
            said = "is not there" if listed is _ABSENT else f"is {shown(listed)}"
            raise GraphQLError(
                f"{self._where}: '{connection.rows_key}' of '{'.'.join(spot.path)}' should be a list and {said}."
            )
        nodes: list[Row] = []
        for one in listed or ():
            node, extra = one, {}
            if connection.node_key is not None and one is not None:
                edge = self._dict(spot, one, "edges")
                node = edge.get(connection.node_key)
                extra = {key: edge[key] for key in connection.edge_keys if key in edge}
            if node is None:
                self.out.nulls += 1
            else:
                nodes.append({**self._dict(spot, node, "rows"), **extra})
        return nodes

    def _info(self, spot: Spot, connection: Connection, value: Row) -> PageInfo:
        info = value.get(connection.info_key)
        listed = value[connection.rows_key]
        rows, absent = len(listed or ()), listed is None
        if not isinstance(info, dict):
            return PageInfo(None, None, rows, absent)
        more, cursor = info.get(connection.more_key), info.get(connection.cursor_key)
        if not isinstance(more, bool | None) or not isinstance(cursor, str | int | None):
            raise PagingError(
                f"{self._where}: '{'.'.join(spot.path)}' does not say as connections do whether there are more rows: "
                f"{shown(info)}."
            )
        return PageInfo(more, cursor, rows, absent)

    def _rest(self, spot: Spot, info: PageInfo, chain: Chain, holders: tuple[Row | None, ...]) -> Rest:
        """How to ask for what a connection in a connection did not give.

        Raises:
            PagingError: there is no way.
        """
        name = ".".join(spot.path)
        if info.silent:
            raise PagingError(silent(self._where, name))
        if info.absent:
            raise PagingError(lost(self._where, name))
        if info.cursor in (None, ""):
            raise PagingError(f"{self._where}: '{name}' says that there are more rows, and not where they begin.")
        anchor = anchor_of(self._plan.root, spot.path)
        holder = holders[len(anchor)] if anchor is not None and len(anchor) < len(holders) else None
        kind, own = (holder or {}).get(TYPE_KEY), spot.path in self._plan.follow
        plan = self._plan.rest(spot.path, str(kind)) if own or (holder is not None and kind) else None
        if plan is None:
            own_way = "" if self._plan.paged else " If it is what paging= is for: connections=False."
            raise PagingError(
                f"{self._where}: '{name}' has more rows than the page of it that one of its parents brought.\n"
                "Ask for the parent's 'id' beside it: then burler reads the rest by the server's node(id:). Or say "
                f"how, follow={{'{name}': a query}}; or ask for more at once.{own_way}"
            )
        stream = None if spot.emitted is None else spot.emitted.name
        values = _around(plan, chain) if own else {ID_VARIABLE: self._id_of(anchor, holder)}
        return Rest(stream, plan, values, info.cursor, chain)

    def _id_of(self, anchor: Path | None, holder: Row | None) -> Any:
        spot = None if anchor is None else self._plan.root.find(anchor)
        return None if spot is None or holder is None else holder.get(spot.id_key)

    def _all(self, rest: Rest) -> list[Row]:
        rows: list[Row] = []
        for stream, found in self._further(rest.plan, rest.values, rest.cursor, rest.chain):
            if stream == LISTED:
                rows += found
            else:
                self.out.rows.setdefault(stream, []).extend(found)
        return rows

    def _emit(self, emitted: Emitted, rows: list[Row], chain: Chain) -> None:
        if emitted.add:
            added = {name: self.added(emitted, source, chain) for name, source in emitted.add.items()}
            for row in rows:
                row.update(added)
        self.out.rows[emitted.name] += rows

    def added(self, emitted: Emitted, source: str, chain: Chain) -> Any:
        """A field of the nearest object around a row that has it."""
        for holder in reversed(chain):
            if source in holder:
                return holder[source]
        raise GraphQLError(
            f"{self._where}: rows of '{emitted.name or '.'.join(emitted.path)}' get '{source}' of what is around them, "
            "and nothing there has it."
        )


def _around(plan: Plan, chain: Chain) -> dict[str, Any]:
    """The variables of an author's own query that are named like fields of the objects around, the nearest first."""
    sizes = {one.connection.size for one in plan.outer if one.connection is not None} | set(plan.inner_sizes)
    return {name: one[name] for one in chain for name in plan.variables if name in one and name not in sizes}


def silent(where: str, name: str) -> str:
    """What is wrong with a connection that does not say whether it is whole."""
    return (
        f"{where}: '{name}' has rows and does not say whether there are more: its pageInfo is null.\n"
        "If it is no connection with pages, say connections=False."
    )


def lost(where: str, name: str, parent: Any = None) -> str:
    """What is wrong with a page that is null although there are rows on it, or were, when the server announced it.

    Args:
        parent: the id by which it was asked for.
    """
    of = "" if parent is None else f" of the object {parent!r:.60}"
    return (
        f"{where}: the server says that '{name}'{of} has another page, and null stands where its rows should be.\n"
        "Run again; if it stays so, tell those who run the server: the rows from there on can't be read."
    )
