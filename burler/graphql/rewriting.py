"""One walk over an operation that gives it back changed: fields left out, fields added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burler.graphql.connections import Connection
from burler.graphql.document import changed, core, response_key, selected_in, variables_in, with_selections
from burler.graphql.spots import Spot


class Rewriter:
    """Override ``leaf``, ``enter`` and ``finish``. ``context`` is what a subclass knows of the object it is in."""

    def leaf(self, field: Any, holder: Spot, context: Any) -> bool:
        """Whether a field without fields stays."""
        return True

    def enter(self, field: Any, spot: Spot, context: Any) -> tuple[Any, Any] | None:
        """The field, changed or not, and the context of what is in it; None: it goes."""
        return field, context

    def finish(self, selections: list[Any], spot: Spot, context: Any) -> list[Any]:
        """The selections of an object, all of whose fields are done."""
        return selections

    def operation(self, operation: Any, root: Spot, context: Any) -> Any:
        """The operation anew. Variables that nothing uses any more go: servers refuse them."""
        new = with_selections(operation, self._object(selected_in(operation), root, context))
        used = variables_in(new)
        kept = tuple(one for one in new.variable_definitions or () if one.variable.name.value in used)
        return changed(new, variable_definitions=kept)

    def _object(self, selections: Sequence[Any], spot: Spot, context: Any) -> list[Any]:
        return self.finish(self._members(selections, spot, context), spot, context)

    def _members(self, selections: Sequence[Any], spot: Spot, context: Any) -> list[Any]:
        fragment = core().InlineFragmentNode
        out = []
        for one in selections:
            if isinstance(one, fragment):
                inner = self._members(selected_in(one), spot, context)
                if inner:
                    out.append(with_selections(one, inner))
                continue
            new = self._field(one, spot, context)
            if new is not None:
                out.append(new)
        return out

    def _field(self, field: Any, holder: Spot, context: Any) -> Any:
        spot = holder.children.get(response_key(field))
        if spot is None:
            return field if self.leaf(field, holder, context) else None
        entered = self.enter(field, spot, context)
        if entered is None:
            return None
        new, inside = entered
        if spot.connection is None:
            return with_selections(new, self._object(selected_in(new), spot, inside))
        return with_selections(new, self._connection(selected_in(new), spot, spot.connection, inside))

    def _connection(self, selections: Sequence[Any], spot: Spot, connection: Connection, context: Any) -> list[Any]:
        """What stands in a connection: its rows are rewritten, the rest stays."""
        out = []
        for one in selections:
            if not _is_field(one):
                out.append(with_selections(one, self._connection(selected_in(one), spot, connection, context)))
            elif response_key(one) != connection.rows_key:
                out.append(one)
            elif connection.node_key is None:
                out.append(with_selections(one, self._object(selected_in(one), spot, context)))
            else:
                out.append(with_selections(one, self._edge(selected_in(one), spot, connection, context)))
        return out

    def _edge(self, selections: Sequence[Any], spot: Spot, connection: Connection, context: Any) -> list[Any]:
        out = []
        for one in selections:
            if not _is_field(one):
                out.append(with_selections(one, self._edge(selected_in(one), spot, connection, context)))
            elif response_key(one) == connection.node_key:
                out.append(with_selections(one, self._object(selected_in(one), spot, context)))
            elif response_key(one) in connection.edge_keys:
                new = self._field(one, spot, context)
                if new is not None:
                    out.append(new)
            else:
                out.append(one)
        return out


def _is_field(node: Any) -> bool:
    return isinstance(node, core().FieldNode)
