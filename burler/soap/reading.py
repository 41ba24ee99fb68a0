"""An answer's XML as rows, straight from its elements: the hot path of a page.

For each complex type of the WSDL there is a plan, made once: which element is which field, and what makes its value.
zeep's objects are not built: they cost many times as much, and can't tell an empty text from null.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from burler.soap.elements import OF_SOAP, XSI, add, is_nil, local_name, open_value
from burler.soap.fields import Field, array_item, fields_of, is_complex, is_simple, list_field, text_field
from burler.soap.texts import converter, empty_value

_TYPE = f"{XSI}type"
logger = logging.getLogger("burler")

_Read = Callable[[Any], Any]
"""Makes a value of an element."""

_Step = tuple[str, int, int]
"""A group that repeats, on the way to a value: its field, the branch of its choice, the place in its sequence."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where the value of an element goes; ``position`` is its place among the fields of the row."""

    name: str
    read: _Read
    many: bool
    position: int
    groups: tuple[_Step, ...] = ()


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
        self._left_out: set[str] = set()

    def record(self, kind: Any) -> _Read:
        """What makes a row of an element of a complex type, or of the type that it says it has; it gives None for one
        that is null or empty."""
        return self._typed(kind)

    def value(self, kind: Any) -> _Read:
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
            return self._list(self._of_field(wrapped))
        text = text_field(kind)
        if text is not None:
            return self._simple(text.type)
        return self._typed(kind)

    def _soon(self, kind: Any) -> _Read:
        return self._simple(kind) if is_simple(kind) else self._late(kind)

    def _late(self, kind: Any) -> _Read:
        """The same, made when it is first needed: types may hold themselves."""
        made: list[_Read] = []

        def read(element: Any) -> Any:
            if not made:
                made.append(self.value(kind))
            return made[0](element)

        return read

    def _simple(self, kind: Any) -> _Read:
        convert, nothing = converter(kind, self._zone), empty_value(kind)

        def read(element: Any) -> Any:
            if element.attrib and self._more(element):
                return None
            if len(element):
                return open_value(element)  # no text: this does not fit, and the error shows it
            text = element.text
            return nothing if text is None else convert(text)

        return read

    def _more(self, element: Any) -> bool:
        """Whether a text is null. Other attributes have no place in it, which is said once of each."""
        for name in element.attrib:
            place = f"{local_name(element.tag)}/@{local_name(name)}"
            if not name.startswith(OF_SOAP) and place not in self._left_out:
                self._left_out.add(place)
                logger.warning("SOAP: the WSDL does not know the attribute '%s' of a text; it is left out.", place)
        return element.text is None and is_nil(element)

    def _list(self, item: _Read) -> _Read:
        def read(element: Any) -> Any:
            return None if is_nil(element) else [item(child) for child in element]

        return read

    def _typed(self, kind: Any) -> _Read:
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
        if is_nil(element):
            return None
        if element.get(_TYPE) is not None:
            own = self._type_named(element)
            if own is not None and (is_complex(own) or is_simple(own)):
                return self.value(own)(element)
        return open_value(element)

    def _row(self, element: Any, plan: _Plan) -> dict[str, Any] | None:
        if not len(element) and element.text is None and (not element.attrib or is_nil(element)):
            return None
        row = plan.empty.copy()
        for name in plan.lists:
            row[name] = []
        text = element.text
        if plan.text is not None and text is not None:
            row[plan.text[0]] = plan.text[1](text)
        elif text is not None and not text.isspace():
            add(row, "value" if "value" not in row else "_value", text)  # the WSDL knows no text there
        slots = plan.slots
        rounds: dict[tuple[str, ...], _Step] = {}
        at = 0
        for child in element:
            tag = child.tag
            found = slots.get(tag[tag.find("}") + 1 :])
            if found is None:
                self._unknown(row, child, plan)
                continue
            slot = found[0] if len(found) == 1 else _free(found, row, at)
            at = slot.position
            if slot.groups:
                _into_groups(row, slot, slot.read(child), rounds)
            elif slot.many:
                row[slot.name].append(slot.read(child))
            elif row[slot.name] is None:
                row[slot.name] = slot.read(child)
            else:  # once too often: a list does not fit, and the error shows it
                row[slot.name] = [row[slot.name], slot.read(child)]
        if element.attrib:
            _take_attributes(row, element.attrib, plan)
        return row

    def _unknown(self, row: dict[str, Any], child: Any, plan: _Plan) -> None:
        """An element that the type does not name. It goes where the type admits anything, else it is a field that the
        schema does not know, which burler counts and reports."""
        name, many = plan.open_elements
        if not name:
            add(row, local_name(child.tag), self._open(child))
            return
        value = {local_name(child.tag): self._open(child)}
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
        for position, field in enumerate(fields):
            if field.many:
                lists.append(field.name)
            if field.origin == "element":
                slot = _Slot(field.name, self._of_field(field), field.many, position)
                plan.slots.setdefault(field.local, []).append(slot)
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
                self._add_group(plan, field, position, ())
        plan.lists = tuple(lists)
        return plan

    def _add_group(self, plan: _Plan, group: Field, position: int, around: tuple[_Step, ...]) -> None:
        """The places of what stands in a group that repeats, and in those in it."""
        for at, part in enumerate(group.parts):
            groups = (*around, (group.name, part.branch, at))
            if part.origin == "group":
                self._add_group(plan, part, position, groups)
            else:
                slot = _Slot(part.name, self._of_field(part), part.many, position, groups)
                plan.slots.setdefault(part.local, []).append(slot)

    def _of_field(self, field: Field) -> _Read:
        """What makes the value of a field's element. An empty one that may not be null is an object of nothing."""
        read, kind = self._soon(field.type), field.type
        if not is_complex(kind) or field.nillable or not (field.required or field.many):
            return read

        def filled(element: Any) -> Any:
            value = read(element)
            if value is not None or is_nil(element):
                return value
            plan = self._plan(kind)
            return {**plan.empty, **{name: [] for name in plan.lists}}

        return filled


def _take_attributes(row: dict[str, Any], attributes: Any, plan: _Plan) -> None:
    rest = {}
    for name, text in attributes.items():
        known = plan.attributes.get(name)
        if known is not None:
            add(row, known[0], known[1](text))
        elif plan.open_attributes and not name.startswith(XSI):
            rest[name] = text
        elif not name.startswith(OF_SOAP):
            local = local_name(name)
            row[local if local not in row else f"attr__{local}"] = text
    if rest:
        row[plan.open_attributes] = rest


# ---- where in a row the value of an element goes: into a field, a list, or a round of a group that repeats -----------


def _free(slots: list[_Slot], row: Mapping[str, Any], at: int) -> _Slot:
    """Of several places of one name ("a", "b", "a") the first that is still empty and not before the last one taken."""
    left = [slot for slot in slots if slot.many or slot.groups or row[slot.name] is None]
    return next((slot for slot in left if slot.position >= at), left[0] if left else slots[-1])


def _into_groups(row: dict[str, Any], slot: _Slot, value: Any, rounds: dict[tuple[str, ...], _Step]) -> None:
    """Put a value into the last round of its group, or begin a round with it: where the name is there already, another
    branch of the choice begins, or it stands before what came last in the sequence."""
    holder = row
    names: tuple[str, ...] = ()
    for step in slot.groups:
        name, branch, at = step
        names = (*names, name)
        listed = holder.get(name) or []
        holder[name] = listed
        last = rounds.get(names)
        again = listed and step == slot.groups[-1] and slot.name in listed[-1] and not slot.many
        if not listed or last is None or again or branch != last[1] or at < last[2]:
            listed.append({})
        rounds[names] = step
        holder = listed[-1]
    if slot.many:
        holder.setdefault(slot.name, []).append(value)
    else:
        holder[slot.name] = value
