"""What a complex type of a WSDL holds, as a row has it: one list of fields, which the schema, the reader of replies and
the one of zeep's objects all follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

Origin = Literal["element", "attribute", "text", "any", "anyAttribute", "group"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a row.

    Attributes:
        name: in the row.
        source: in zeep's objects ("_value_1" for the text of an element with attributes).
        type: zeep's type; None for a group and for anything.
        local: the name in XML without its namespace; "" where there is none.
        many: a list.
        required: it is there in each row.
        nillable: it may be there and null.
        parts: of a group that repeats: the fields of one round.
        branch: of such a part: which branch of a choice it belongs to; 0 in a sequence.
    """

    name: str
    source: str
    origin: Origin
    type: Any = None
    local: str = ""
    many: bool = False
    required: bool = False
    nillable: bool = False
    parts: tuple[Field, ...] = ()
    branch: int = 0


def is_complex(kind: Any) -> bool:
    """Whether a zeep type is one with elements or attributes."""
    from zeep.xsd import ComplexType

    return isinstance(kind, ComplexType)


def is_simple(kind: Any) -> bool:
    """Whether a zeep type is a text: a string, a number, a list of them, ..."""
    from zeep.xsd import AnySimpleType

    return isinstance(kind, AnySimpleType)


def fields_of(kind: Any) -> tuple[Field, ...]:
    """The fields of a complex type: its elements, those of its base first, then its attributes."""
    named: dict[str, Field] = {}
    for field in _elements(kind):
        same = named.get(field.name)
        if same is None:
            named[field.name] = field
        elif same.type is not field.type or same.many != field.many:  # of two branches of a choice
            named[field.name] = Field(field.name, field.source, "any")
    for name, attribute in kind.attributes:
        if attribute.name is None:
            named[name] = Field(name, name, "anyAttribute")
        else:
            named[name] = Field(
                name, name, "attribute", attribute.type, attribute.qname.text, required=attribute.required
            )
    return tuple(named.values())


def text_field(kind: Any) -> Field | None:
    """The one field of a type that is nothing but a text; None for other types."""
    if not is_complex(kind) or array_item(kind) is not None:
        return None
    fields = [field for field in fields_of(kind) if field.origin != "anyAttribute"]
    return fields[0] if len(fields) == 1 and fields[0].origin == "text" else None


def list_field(kind: Any) -> Field | None:
    """The one field of a type that is nothing but a list in a wrapper (``ArrayOfContact``); None for other types."""
    if array_item(kind) is not None:
        return None
    fields = [field for field in fields_of(kind) if field.origin != "anyAttribute"]
    return fields[0] if len(fields) == 1 and fields[0].origin == "element" and fields[0].many else None


def array_item(kind: Any) -> Any:
    """The type of the items of an array in SOAP's own encoding; None for other types."""
    array = kind._array_type if is_complex(kind) else None
    return array.array_type if array is not None else None


def _text(kind: Any) -> Field:
    source, element = kind.elements_nested[0]
    name = "_value" if any(own == "value" for own, _ in kind.attributes) else "value"
    return Field(name, source, "text", element.type)


def _elements(kind: Any) -> Iterator[Field]:
    from zeep.xsd import Element

    content = kind._element
    if content is None or content == []:
        return
    if isinstance(content, Element):
        if is_simple(content.type):
            yield _text(kind)
        return
    for name, container in kind.elements_nested:
        if container.accepts_multiple:
            yield Field(name, name, "group", many=True, parts=_parts(container))
        else:
            yield from _inside(container, not container.is_optional)


def _parts(container: Any) -> tuple[Field, ...]:
    """The fields of one round of a container that repeats."""
    from zeep.xsd import Choice, Group

    while isinstance(container, Group):
        container = container.child
    if not isinstance(container, Choice):
        return tuple(_inside(container, False))
    out: list[Field] = []
    for at, item in enumerate(container):
        one = Choice([item])  # each branch by itself, with the names that it has there
        out += [replace(field, branch=at) for field in _inside(one, False)]
    return tuple(out)


def _inside(container: Any, required: bool) -> Iterator[Field]:
    """Fields of a sequence, a choice, a group.

    Args:
        required: the container itself is there in each row. A choice says of itself that it is optional.
    """
    from zeep.xsd import Any as AnyElement
    from zeep.xsd import Element, Group

    if isinstance(container, Group):
        if container.child.accepts_multiple:
            yield Field("_value_1", "_value_1", "group", many=True, parts=_parts(container.child))
        else:
            yield from _inside(container.child, required and not container.child.is_optional)
        return
    for name, item in container.elements_nested:
        there = required and not item.is_optional
        if isinstance(item, AnyElement):
            yield Field(name, name, "any", many=item.accepts_multiple)
        elif isinstance(item, Element):
            yield Field(
                name, name, "element", item.type, item.qname.localname, item.accepts_multiple, there, item.nillable
            )
        elif item.accepts_multiple:
            yield Field(name, name, "group", many=True, parts=_parts(item))
        else:
            yield from _inside(item, there)
