"""Elements, types and operations of a WSDL by their names, and the way from them to the records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from burler.errors import DeclarationError
from burler.soap.definitions import XSD, Wsdl
from burler.soap.fields import array_item, fields_of, is_complex, list_field
from burler.suggest import near_or_all

_MOST_WRAPPERS = 10


def type_of(wsdl: Wsdl, *, element: str | None, operation: str | None, stream: str = "", where: str) -> Any:
    """The zeep type of an element, a type, or the answer of an operation.

    Args:
        stream: of neither, what is named as this stream is, whatever its case and with or without an "s".

    Raises:
        DeclarationError: there is none; or there are several, in different namespaces.
    """
    if operation is not None:
        return operation_of(wsdl, operation, where=where).output_type
    named = _named(wsdl)
    if element is None:
        wanted = {_folded(stream), _folded(stream) + "s", _folded(stream).removesuffix("s")} - {""}
        wanted |= {f"{_folded(stream)[:-3]}y"} if stream.lower().endswith("ies") else set()
        fitting = [name for name in named if _folded(name.rpartition("}")[2]) in wanted]
        if not fitting:
            raise DeclarationError(
                f"{where}: which element is a row? Say it with element=... or operation=....\n"
                f" {near_or_all(stream, _locals(named), 'Elements and types')}"
            )
    else:
        fitting = [name for name in named if element in (name, name.rpartition("}")[2])]
        if not fitting:
            known = near_or_all(element, _locals(named), "Elements and types")
            raise DeclarationError(f"{where}: there is no element or type '{element}'.{known}")
    kinds = {id(named[name]): name for name in fitting}
    if len(kinds) > 1:
        names = " or ".join(f"'{name}'" for name in list(kinds.values())[:4])
        raise DeclarationError(f"{where}: there is more than one '{element or stream}'. Write element={names}.")
    return named[fitting[0]]


class Operation:
    """An operation of a WSDL.

    Attributes:
        output_type: the zeep type of its answer.
    """

    def __init__(self, name: str, operation: Any) -> None:
        self.name = name
        self.zeep = operation
        body = operation.output.body if operation.output is not None and hasattr(operation.output, "body") else None
        self.output_type = body.type if body is not None else None


def operation_of(wsdl: Wsdl, name: str, *, where: str) -> Operation:
    """An operation by its name.

    Raises:
        DeclarationError: there is none of that name, or it answers nothing.
    """
    operations: dict[str, Any] = {}
    for own, operation in wsdl.operations():
        operations.setdefault(own, operation)
    if name not in operations:
        raise DeclarationError(f"{where}: there is no operation '{name}'.{near_or_all(name, operations, 'Operations')}")
    found = Operation(name, operations[name])
    if found.output_type is None:
        raise DeclarationError(f"{where}: the operation '{name}' answers nothing, so it gives no rows.")
    return found


@dataclass(frozen=True, slots=True)
class Way:
    """The way from a type down to another.

    Attributes:
        kind: zeep's type at its end.
        steps: names of elements; None for any element (an item of an array in SOAP's encoding).
    """

    kind: Any
    steps: tuple[str | None, ...] = ()


def way_to(kind: Any, path: str, *, where: str, what: str = "rows") -> Way:
    """The way along names with dots between them; lists and arrays stand for their items.

    Args:
        what: the option that the path was given for.

    Raises:
        DeclarationError: a name is not there.
    """
    way = Way(kind)
    for name in path.split("."):
        way = _items(way)
        fields = {field.name: field for field in fields_of(way.kind)} if is_complex(way.kind) else {}
        field = fields.get(name)
        if field is None or field.origin != "element":
            known = near_or_all(name, [one.name for one in fields.values() if one.origin == "element"], "Fields")
            raise DeclarationError(f"{where}: {what}='{path}': there is no field '{name}' there.{known}")
        way = Way(field.type, (*way.steps, field.local))
    return way


def records_at(kind: Any, rows: str | None, *, unwrap: bool, where: str) -> Way:
    """The way to the records below a type.

    Args:
        rows: the names of the steps, with dots between them.
        unwrap: without ``rows``, step down for as long as there is one field only, and it is complex.

    Raises:
        DeclarationError: a name is not there.
    """
    if rows is not None:
        return _items(way_to(kind, rows, where=where), lists=True)
    way = Way(kind)
    for _ in range(_MOST_WRAPPERS if unwrap else 0):
        way = _items(way)
        fields = fields_of(way.kind) if is_complex(way.kind) else ()
        inside = [field for field in fields if field.origin != "anyAttribute"]
        if len(inside) != 1 or inside[0].origin != "element" or not is_complex(inside[0].type):
            break
        way = Way(inside[0].type, (*way.steps, inside[0].local))
    return way


def _items(way: Way, *, lists: bool = False) -> Way:
    """The same way, on to the items where it ends at an array of SOAP's encoding.

    Args:
        lists: also where it ends at a type that is nothing but a list.
    """
    inner = array_item(way.kind)
    if inner is not None:
        return Way(inner, (*way.steps, None))
    wrapped = list_field(way.kind) if lists and is_complex(way.kind) else None
    return way if wrapped is None else Way(wrapped.type, (*way.steps, wrapped.local))


def _named(wsdl: Wsdl) -> dict[str, Any]:
    """The types of all elements and all types, by "{namespace}name"; of an element and a type of one name, the
    element's."""
    out: dict[str, Any] = {}
    for kind in wsdl.types.types:
        if kind.qname is not None and kind.qname.namespace != XSD:
            out[kind.qname.text] = kind
    for element in wsdl.types.elements:
        if element.qname.namespace != XSD:
            out[element.qname.text] = element.type
    return out


def _locals(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name.rpartition("}")[2] for name in names))


def _folded(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
