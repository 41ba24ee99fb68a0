"""An answer's XML as rows, straight from its elements: the hot path of a page.

For each complex type of the WSDL there is a plan, made once: which element is which field, and what makes its value.
zeep's objects are not built: they cost many times as much, and can't tell an empty text from null.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from burler.schema.wsdl_fields import Field, array_item, fields_of, is_complex, is_simple, list_field, text_field
from burler.soap.texts import converter, empty_value

XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
_NIL = f"{XSI}nil"
_TYPE = f"{XSI}type"

Read = Callable[[Any], Any]
"""Makes a value of an element."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where the value of an element goes."""

    name: str
    read: Read
    many: bool
    group: str = ""  # the field of the group that it belongs to
    branch: int = 0


@dataclass(slots=True)
class _Plan:
    """A complex type as its rows are made."""

    empty: dict[str, Any]
    lists: tuple[str, ...]
    slots: dict[str, list[_Slot]]
    attributes: dict[str, tuple[str, Callable[[str], Any]]]
    open_attributes: str
    open_elements: tuple[str, bool]
    text: tuple[str, Callable[[str], Any]] | None


class Reader:
    """Makes rows of elements, by zeep's types.

    Args:
        types: zeep's Schema, for values that say of which type they are (``xsi:type``).
        zone: of date-times that name none.
    """

    def __init__(self, types: Any, zone: datetime.tzinfo | None = None) -> None:
        self._types = types
        self._zone = zone
        self._plans: dict[int, _Plan] = {}
        self._kept: list[Any] = []  # types whose id is a key may not go away
        self._named: dict[str, Any] = {}

    def record(self, kind: Any) -> Read:
        """What makes a row of an element of a complex type; it gives None for one that is null or empty."""
        plan = self._plan(kind)
        return lambda element: self._row(element, plan)

    def value(self, kind: Any) -> Read:
        """What makes a value of an element of any type: a row, a list, a text, ..."""
        if is_simple(kind):
            return self._simple(kind)
        if not is_complex(kind):
            return self._open
        item = array_item(kind)
        if item is not None:
            return self._list(self._late(item))
        wrapped = list_field(kind)
        if wrapped is not None:
            return self._list(self._late(wrapped.type))
        text = text_field(kind)
        if text is not None:
            return self._simple(text.type)
        return self._typed(kind)

    def _soon(self, kind: Any) -> Read:
        return self._simple(kind) if is_simple(kind) else self._late(kind)

    def _late(self, kind: Any) -> Read:
        """The same, made when it is first needed: types may hold themselves."""
        made: list[Read] = []

        def read(element: Any) -> Any:
            if not made:
                made.append(self.value(kind))
            return made[0](element)

        return read

    def _simple(self, kind: Any) -> Read:
        convert, nothing = converter(kind, self._zone), empty_value(kind)

        def read(element: Any) -> Any:
            text = element.text
            if text is not None:
                return convert(text)
            return None if _is_nil(element) else nothing

        return read

    def _list(self, item: Read) -> Read:
        def read(element: Any) -> Any:
            return None if _is_nil(element) else [item(child) for child in element]

        return read

    def _typed(self, kind: Any) -> Read:
        plan = None

        def read(element: Any) -> Any:
            nonlocal plan
            if element.get(_TYPE) is not None:
                own = self._type_named(element)
                if own is not None and is_complex(own):
                    return self._row(element, self._plan(own))
            if plan is None:
                plan = self._plan(kind)
            return self._row(element, plan)

        return read

    def _type_named(self, element: Any) -> Any:
        """The type that an element says it has; None for one that the WSDL does not know."""
        prefix, _, local = element.get(_TYPE).strip().rpartition(":")
        namespace = element.nsmap.get(prefix or None)
        name = f"{{{namespace}}}{local}" if namespace else local
        if name not in self._named:
            try:
                self._named[name] = self._types.get_type(name, fail_silently=True)
            except Exception:  # zeep's errors of names
                self._named[name] = None
        return self._named[name]

    def _open(self, element: Any) -> Any:
        """A value of which the WSDL says nothing: an object of what is in it, or its text."""
        if _is_nil(element):
            return None
        if element.get(_TYPE) is not None:
            own = self._type_named(element)
            if own is not None and (is_complex(own) or is_simple(own)):
                return self.value(own)(element)
        return open_value(element)

    def _row(self, element: Any, plan: _Plan) -> dict[str, Any] | None:
        if not len(element) and element.text is None and (not element.attrib or _is_nil(element)):
            return None
        row = plan.empty.copy()
        for name in plan.lists:
            row[name] = []
        if plan.text is not None and element.text is not None:
            row[plan.text[0]] = plan.text[1](element.text)
        slots = plan.slots
        branches: dict[str, int] = {}
        for child in element:
            tag = child.tag
            found = slots.get(tag[tag.find("}") + 1 :])
            if found is None:
                self._unknown(row, child, plan)
                continue
            slot = found[0] if len(found) == 1 else _free(found, row)
            if slot.group:
                _into_group(row[slot.group], slot, slot.read(child), branches)
            elif slot.many:
                row[slot.name].append(slot.read(child))
            else:
                row[slot.name] = slot.read(child)
        if plan.attributes or plan.open_attributes:
            _take_attributes(row, element.attrib, plan)
        return row

    def _unknown(self, row: dict[str, Any], child: Any, plan: _Plan) -> None:
        """An element that the type does not name. It goes where the type admits anything, else it is a field that the
        schema does not know, which burler counts and reports."""
        name, many = plan.open_elements
        if not name:
            row[child.tag.rpartition("}")[2]] = self._open(child)
            return
        value = {child.tag.rpartition("}")[2]: self._open(child)}
        if many:
            row[name].append(value)
        else:
            row[name] = value

    def _plan(self, kind: Any) -> _Plan:
        plan = self._plans.get(id(kind))
        if plan is None:
            plan = self._made(fields_of(kind))
            self._plans[id(kind)] = plan
            self._kept.append(kind)
        return plan

    def _made(self, fields: tuple[Field, ...]) -> _Plan:
        plan = _Plan({field.name: None for field in fields}, (), {}, {}, "", ("", False), None)
        lists = []
        for field in fields:
            if field.many:
                lists.append(field.name)
            if field.origin == "element":
                plan.slots.setdefault(field.local, []).append(_Slot(field.name, self._soon(field.type), field.many))
            elif field.origin == "attribute":
                convert = converter(field.type, self._zone) if is_simple(field.type) else str
                plan.attributes[field.local] = (field.name, convert)
            elif field.origin == "text":
                plan.text = (field.name, converter(field.type, self._zone))
            elif field.origin == "anyAttribute":
                plan.open_attributes = field.name
            elif field.origin == "any":
                plan.open_elements = (field.name, field.many)
            else:
                for part in field.parts:
                    slot = _Slot(part.name, self._soon(part.type), part.many, field.name, part.branch)
                    plan.slots.setdefault(part.local, []).append(slot)
        plan.lists = tuple(lists)
        return plan


def open_value(element: Any) -> Any:
    """An element without a type: its text, or an object of its elements and attributes; a name that comes again holds
    a list."""
    if _is_nil(element):
        return None
    out: dict[str, Any] = {
        name.rpartition("}")[2]: value for name, value in element.attrib.items() if not name.startswith(XSI)
    }
    if not len(element):
        if not out:
            return element.text
        return {**out, "value": element.text} if element.text and element.text.strip() else out
    seen: dict[str, list[Any]] = {}
    for child in element:
        seen.setdefault(child.tag.rpartition("}")[2], []).append(open_value(child))
    for name, values in seen.items():
        out[name] = values[0] if len(values) == 1 else values
    return out


def _is_nil(element: Any) -> bool:
    return element.get(_NIL) in ("true", "1")


def _free(slots: list[_Slot], row: Mapping[str, Any]) -> _Slot:
    """Of several places of one name ("a", "b", "a") the first that is still empty."""
    for slot in slots:
        if slot.many or slot.group or row[slot.name] is None:
            return slot
    return slots[-1]


def _into_group(rounds: list[dict[str, Any]], slot: _Slot, value: Any, branches: dict[str, int]) -> None:
    """Put a value into the last round of a group, or begin a round with it: where the name is there already, or
    another branch of the choice begins."""
    if not rounds or (slot.name in rounds[-1] and not slot.many) or branches[slot.group] != slot.branch:
        rounds.append({})
        branches[slot.group] = slot.branch
    if slot.many:
        rounds[-1].setdefault(slot.name, []).append(value)
    else:
        rounds[-1][slot.name] = value


def _take_attributes(row: dict[str, Any], attributes: Any, plan: _Plan) -> None:
    rest = {}
    for name, text in attributes.items():
        known = plan.attributes.get(name)
        if known is not None:
            row[known[0]] = known[1](text)
        elif not name.startswith(XSI):
            rest[name] = text
    if rest and plan.open_attributes:
        row[plan.open_attributes] = rest
