"""The text of a query becomes one operation in which no fragment is left to look up, with graphql-core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from burler.errors import DeclarationError
from burler.extras import require

if TYPE_CHECKING:
    from graphql import FieldNode, FragmentDefinitionNode, OperationDefinitionNode, SelectionNode, ValueNode

Selections = Iterable[Any]
_MOST_DEEP = 100


def core() -> Any:
    """The package graphql-core.

    Raises:
        MissingExtra: it is not installed.
    """
    return require("graphql", extra="graphql", needed_for="burler.graphql")


def read_operation(text: str, operation: str | None, *, where: str) -> OperationDefinitionNode:
    """The query of a text, with each fragment where it is spread.

    Args:
        operation: its name, if the text has several.
        where: words that errors begin with.

    Raises:
        DeclarationError: no GraphQL, no query, several of them, a fragment that is missing or holds itself.
    """
    graphql = core()
    try:
        document = graphql.parse(text)
    except graphql.GraphQLSyntaxError as error:
        line = error.locations[0].line if error.locations else 1
        raise DeclarationError(f"{where}, line {line} of its text: {error.message}") from None
    except RecursionError:
        raise DeclarationError(f"{where}: its text is nested too deep.") from None
    found = _operation(document, operation, where)
    fragments = {one.name.value: one for one in document.definitions if isinstance(one, graphql.FragmentDefinitionNode)}
    spread = _Spread(fragments, where)
    return with_selections(  # type: ignore[no-any-return]
        found, spread.selections(found.selection_set.selections, ())
    )


def _operation(document: Any, wanted: str | None, where: str) -> Any:
    graphql = core()
    operations = [one for one in document.definitions if isinstance(one, graphql.OperationDefinitionNode)]
    names = [one.name.value if one.name else "" for one in operations]
    if wanted is None and len(operations) > 1:
        raise DeclarationError(f"{where}: its text holds several operations ({', '.join(names)}); say operation=...")
    chosen = [one for one, name in zip(operations, names, strict=True) if wanted in (None, name)]
    if not chosen:
        raise DeclarationError(
            f"{where}: its text holds no operation{'' if wanted is None else f' {wanted!r}'}. "
            f"There are: {', '.join(filter(None, names)) or 'none with a name'}."
        )
    if chosen[0].operation != graphql.OperationType.QUERY:
        raise DeclarationError(f"{where}: is a {chosen[0].operation.value}; a tap reads: write a query.")
    return chosen[0]


class _Spread:
    """Puts fragments where they are spread."""

    def __init__(self, fragments: dict[str, FragmentDefinitionNode], where: str) -> None:
        self._fragments = fragments
        self._where = where

    def selections(self, given: Selections, inside: tuple[str, ...]) -> list[SelectionNode]:
        """The selections without spreads; ``inside`` are the fragments that stand around them."""
        graphql = core()
        out: list[SelectionNode] = []
        for one in given:
            if isinstance(one, graphql.FragmentSpreadNode):
                out.append(self._fragment(one, inside))
            elif one.selection_set is None:
                out.append(one)
            else:
                out.append(with_selections(one, self.selections(one.selection_set.selections, inside)))
        return out

    def _fragment(self, spread: Any, inside: tuple[str, ...]) -> Any:
        name = spread.name.value
        found = self._fragments.get(name)
        if found is None:
            known = ", ".join(self._fragments) or "none"
            raise DeclarationError(f"{self._where}: there is no fragment '{name}'. There are: {known}.")
        if name in inside or len(inside) > _MOST_DEEP:
            raise DeclarationError(f"{self._where}: the fragment '{name}' holds itself.")
        return core().InlineFragmentNode(
            type_condition=found.type_condition,
            directives=tuple(spread.directives or ()),
            selection_set=selection_set(self.selections(found.selection_set.selections, (*inside, name))),
        )


def selection_set(selections: Selections) -> Any:
    """A selection set of these."""
    return core().SelectionSetNode(selections=tuple(selections))


def name_node(text: str) -> Any:
    """A name."""
    return core().NameNode(value=text)


def leaf(name: str, alias: str | None = None) -> Any:
    """A field without arguments."""
    return core().FieldNode(
        alias=None if alias is None else name_node(alias),
        name=name_node(name),
        arguments=(),
        directives=(),
        selection_set=None,
    )


def with_selections(node: Any, selections: Selections) -> Any:
    """A field, an inline fragment or an operation with other selections."""
    return changed(node, selection_set=selection_set(selections))


def changed(node: Any, **changes: Any) -> Any:
    """A node of the same kind with other parts."""
    parts = {key: getattr(node, key) for key in type(node).keys if key != "loc"}
    return type(node)(**{**parts, **changes, "loc": node.loc})


def response_key(field: FieldNode) -> str:
    """The name of a field in the reply."""
    return field.alias.value if field.alias else field.name.value


def selected_in(node: Any) -> tuple[Any, ...]:
    """The selections of a field, a fragment or an operation; none of a scalar."""
    return () if node.selection_set is None else tuple(node.selection_set.selections)


def fields_in(selections: Selections) -> Iterator[FieldNode]:
    """All fields, those of inline fragments among them."""
    graphql = core()
    for one in selections:
        if isinstance(one, graphql.FieldNode):
            yield one
        else:
            yield from fields_in(selected_in(one))


def argument(field: FieldNode, name: str) -> ValueNode | None:
    """The value of a field's argument."""
    return next((one.value for one in field.arguments or () if one.name.value == name), None)


def variable_in(value: Any) -> str | None:
    """The name of the variable that a value is; None for any other value."""
    return value.name.value if isinstance(value, core().VariableNode) else None


def argument_variables(field: FieldNode) -> set[str]:
    """The names of the variables in a field's arguments, at any depth."""
    found: set[str] = set()
    left: list[Any] = [one.value for one in field.arguments or ()]
    while left:
        value = left.pop()
        if isinstance(value, core().VariableNode):
            found.add(value.name.value)
        left += getattr(value, "values", None) or ()
        left += [one.value for one in getattr(value, "fields", None) or ()]
    return found


def variables_in(node: Any) -> set[str]:
    """The names of all variables that a part of a query uses."""
    graphql = core()
    found: set[str] = set()

    class Visitor(graphql.Visitor):  # type: ignore[misc, name-defined, unused-ignore]
        def enter_variable(self, one: Any, *_args: Any) -> None:
            found.add(one.name.value)

    for part in (*selected_in(node), *(node.directives or ())):
        graphql.visit(part, Visitor())
    return found
