"""An operation that is ready to be sent, and what of its reply goes where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from burler.graphql.adding import (
    CURSOR_VARIABLE,
    anchor_of,
    named_type,
    outer_connections,
    variable_definition,
    with_argument,
)
from burler.graphql.document import changed, core, name_node, response_key, selected_in, selection_set
from burler.graphql.rewriting import Rewriter
from burler.graphql.spots import LISTED, TYPE_KEY, Emitted, Path, Spot, spots_of

if TYPE_CHECKING:
    from graphql import OperationDefinitionNode

ID_VARIABLE = "burlerId"


@dataclass(frozen=True, eq=False)
class Plan:
    """An operation, and the streams whose rows its reply holds.

    Attributes:
        operation: complete: what the pager needs is in it.
        streams: the one that runs has the name None.
        follow: plans of the author's own for the rest of a connection in a connection, by its path.
        paged: whether variables of the operation page its outer connections.
        connections: whether there are connections at all.
    """

    operation: OperationDefinitionNode
    streams: tuple[Emitted, ...]
    follow: Mapping[Path, Plan] = field(default_factory=dict)
    paged: bool = True
    connections: bool = True
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def root(self) -> Spot:
        """All places of the reply."""
        return spots_of(self.operation, self.streams, connections=self.connections)

    @cached_property
    def text(self) -> str:
        """The operation as it is sent."""
        return str(core().print_ast(self.operation))

    @cached_property
    def name(self) -> str:
        """The operation's name, "" if it has none."""
        return self.operation.name.value if self.operation.name else ""

    @cached_property
    def outer(self) -> tuple[Spot, ...]:
        """The connections that variables page."""
        return outer_connections(self.root) if self.paged else ()

    @cached_property
    def idle(self) -> frozenset[Path]:
        """Places from which nothing goes into any row: whether they are whole is nobody's concern."""
        paths = [one.path for one in self.streams]
        return frozenset(
            spot.path
            for spot in self.root.walk()
            if not any(one == spot.path[: len(one)] or spot.path == one[: len(spot.path)] for one in paths)
        )

    @cached_property
    def beside(self) -> frozenset[Path]:
        """The connections of the query that do not lead to the rows of the stream that runs: they are read to their
        end before those go out, whose bookmark says where all of the query is asked from the next time."""
        main = next((one.path for one in self.streams if one.name is None), None)
        return frozenset(one.path for one in self.outer if main is not None and main[: len(one.path)] != one.path)

    @cached_property
    def has_beside(self) -> bool:
        """Whether rows of other streams stand beside those of the stream that runs, neither in nor around them."""
        main = next((one.path for one in self.streams if one.name is None), None)
        others = [one.path for one in self.streams if one.name is not None] if main is not None else []
        return any(main[: len(one)] != one and one[: len(main)] != main for one in others if main is not None)

    @cached_property
    def variables(self) -> dict[str, Any]:
        """The definitions of the variables, by name."""
        return {one.variable.name.value: one for one in self.operation.variable_definitions or ()}

    @cached_property
    def inner_sizes(self) -> tuple[str, ...]:
        """Variables that say how many rows a connection in a connection has."""
        outer = {one.path for one in self.outer}
        names = [
            one.connection.size for one in self.root.walk() if one.connection is not None and one.path not in outer
        ]
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @cached_property
    def plain(self) -> bool:
        """Whether rows can go out as bytes: nothing has to be taken out of them, nothing added to them."""
        for one in self.streams:
            spot = self.root.find(one.path)
            around = [self.root.find(one.path[:n]) for n in range(1, len(one.path))]
            if spot is None or spot.inner or one.add or TYPE_KEY in spot.leaves:
                return False
            if spot.connection is not None and spot.connection.edge_keys:
                return False
            if any(above is None or above.connection is not None or above.emitted for above in around):
                return False
        return True

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made of this plan before, or what ``make`` makes now."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def changed(self, operation: Any, streams: Iterable[Emitted] | None = None) -> Plan:
        """The same with another operation; streams that are no longer in it go."""
        kept = tuple(self.streams if streams is None else streams)
        root = spots_of(operation, kept, connections=self.connections)
        kept = tuple(one for one in kept if root.find(one.path) is not None)
        return Plan(operation, kept, self.follow, self.paged, self.connections)

    def only(self, paths: frozenset[Path]) -> Plan:
        """What is left to be asked for when only these of the outer connections have another page."""
        return self.once(("only", paths), lambda: self._only(paths))  # type: ignore[no-any-return]

    def _only(self, paths: frozenset[Path]) -> Plan:
        if paths == {one.path for one in self.outer} and all(
            any(one.path[: len(path)] == path for path in paths) for one in self.streams
        ):
            return self
        # Rows around a connection are whole on its first page, and come once.
        streams = [one for one in self.streams if any(one.path[: len(path)] == path for path in paths)]
        return self.changed(_Only(paths).operation(self.operation, self.root, None), streams)

    def rest(self, path: Path, kind: str) -> Plan | None:
        """The plan that asks for the further rows of a connection in a connection: the author's, or one that asks
        Relay's ``node(id:)`` for the nearest object around it that has an id.

        Args:
            kind: the name of that object's type.

        Returns:
            None if no object around it has an id.
        """
        if path in self.follow:
            return self.follow[path]
        anchor = anchor_of(self.root, path)
        if anchor is None:
            return None
        return self.once(("rest", path, kind), lambda: self._rest(path, anchor, kind))  # type: ignore[no-any-return]

    def _rest(self, path: Path, anchor: Path, kind: str) -> Plan:
        graphql = core()
        spot = self.root.find(path)
        assert spot is not None and spot.connection is not None
        narrowed = _Rest(path, spot.connection.forward).operation(self.operation, self.root, None)
        inner = graphql.InlineFragmentNode(
            type_condition=named_type(kind),
            directives=(),
            selection_set=selection_set(_at(narrowed, self.root, anchor)),
        )
        asked = graphql.ArgumentNode(name=name_node("id"), value=graphql.VariableNode(name=name_node(ID_VARIABLE)))
        node = graphql.FieldNode(
            alias=None,
            name=name_node("node"),
            arguments=(asked,),
            directives=(),
            selection_set=selection_set([inner]),
        )
        cursor = self.variables.get(spot.connection.cursor or "")
        operation = changed(
            self.operation,
            name=name_node(f"{self.name or 'Burler'}_{'_'.join(path)}"),
            selection_set=selection_set([node]),
            variable_definitions=(
                *(one for name, one in self.variables.items() if name not in (ID_VARIABLE, CURSOR_VARIABLE)),
                variable_definition(ID_VARIABLE, named_type("ID", required=True)),
                variable_definition(CURSOR_VARIABLE, cursor.type if cursor else named_type("String")),
            ),
        )
        inside = [one for one in self.streams if one.path[: len(path)] == path]
        streams = [Emitted(one.name, ("node", *one.path[len(anchor) :]), one.add) for one in inside]
        if not any(one.path == path for one in inside):
            streams.append(Emitted(LISTED, ("node", *path[len(anchor) :]), {}))
        operation = Rewriter().operation(operation, spots_of(operation, streams), None)
        return Plan(operation, tuple(streams), _moved(self.follow, len(anchor)))


def _moved(follow: Mapping[Path, Plan], cut: int) -> dict[Path, Plan]:
    return {("node", *path[cut:]): plan for path, plan in follow.items() if len(path) > cut}


class _Only(Rewriter):
    """Leaves what is on the way to some places, and all that is in them."""

    def __init__(self, paths: frozenset[Path]) -> None:
        self._paths = paths

    def leaf(self, field: Any, holder: Spot, context: Any) -> bool:
        return self._reaches(holder.path)  # objects on the way may hold what rows get (add=)

    def enter(self, field: Any, spot: Spot, context: Any) -> tuple[Any, Any] | None:
        return (field, context) if self._reaches(spot.path) else None

    def _reaches(self, path: Path) -> bool:
        return any(path[: len(one)] == one or one[: len(path)] == path for one in self._paths)


class _Rest(_Only):
    """Leaves a connection, which gets a cursor of ours, and nothing else of what is around it."""

    def __init__(self, path: Path, forward: bool) -> None:
        super().__init__(frozenset([path]))
        self._path = path
        self._argument = "after" if forward else "before"

    def leaf(self, field: Any, holder: Spot, context: Any) -> bool:
        return holder.path[: len(self._path)] == self._path or response_key(field) == TYPE_KEY

    def enter(self, field: Any, spot: Spot, context: Any) -> tuple[Any, Any] | None:
        if spot.path == self._path:
            field = with_argument(field, self._argument, CURSOR_VARIABLE)
        return super().enter(field, spot, context)


def _at(operation: Any, root: Spot, path: Path) -> list[Any]:
    """The selections of the object at a path."""
    holders = [operation]
    spot = root
    for name in path:
        spot = spot.children[name]
        holders = [one for holder in holders for one in _named(selected_in(holder), name)]
        if spot.connection is not None:
            holders = [one for holder in holders for one in _named(selected_in(holder), spot.connection.rows_key)]
            if spot.connection.node_key is not None:
                holders = [one for holder in holders for one in _named(selected_in(holder), spot.connection.node_key)]
    return [one for holder in holders for one in selected_in(holder)]


def _named(selections: Iterable[Any], name: str) -> list[Any]:
    found = []
    for one in selections:
        if not isinstance(one, core().FieldNode):
            found += _named(selected_in(one), name)
        elif response_key(one) == name:
            found.append(one)
    return found
