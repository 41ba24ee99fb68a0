"""zeep's objects as rows, for those who call zeep themselves."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from burler.extras import require
from burler.soap.elements import open_value
from burler.soap.fields import Field, fields_of, is_complex, is_simple, list_field, text_field
from burler.soap.schemas import builtin_name
from burler.soap.texts import empty_value

Change = Callable[[Any], Any]
_G_TYPES: dict[str, str] = {
    "gYear": "{:04d}",
    "gYearMonth": "{:04d}-{:02d}",
    "gMonthDay": "--{:02d}-{:02d}",
    "gDay": "---{:02d}",
    "gMonth": "--{:02d}",
}


def rows(
    objects: Any, *, schema: Mapping[str, Any] | None = None, zone: datetime.tzinfo | None = None
) -> list[dict[str, Any]]:
    """zeep's objects as rows: dicts of Python values, in the form that ``burler.wsdl`` describes. A page at a time.

    Wrappers are gone: a type that holds one list and nothing else is that list; the text of an element with attributes
    is its field ``value``. What is absent is None.

    Args:
        objects: a list of what zeep gives for a complex type, or one of them, or None.
        schema: make only the fields that it has in ``properties``.
        zone: of date-times that name none.

    Raises:
        TypeError: something among them is no object of zeep's.
    """
    require("zeep", extra="wsdl", needed_for="burler.soap.rows")
    if objects is None:
        return []
    wanted = None if schema is None else frozenset(schema.get("properties", ()))
    many = objects if isinstance(objects, list) else [objects]
    maker = _Maker(zone)
    plans: dict[type, _Plan] = {}
    out = []
    for one in many:
        kind = type(one)
        plan = plans.get(kind)
        if plan is None:
            xsd_type = getattr(kind, "_xsd_type", None)
            if not is_complex(xsd_type):
                raise TypeError(
                    f"burler.soap.rows: {kind.__name__} is no object of a complex type. Give the answer's list of them."
                )
            plan = plans[kind] = maker.plan(xsd_type, wanted)
        out.append(plan.row(one.__values__))
    return out


class _Plan:
    """What to do with the values of one type: take them, and change those that need it."""

    def __init__(self, names: list[tuple[str, str]], changes: list[tuple[str, Change]], whole: bool) -> None:
        self._names = names
        self._changes = changes
        self._whole = whole  # the values are the row as they stand, but for the changes

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        row = dict(values) if self._whole else {name: values.get(source) for name, source in self._names}
        for name, change in self._changes:
            row[name] = change(row[name])
        return row


class _Maker:
    """Makes plans; each type's once."""

    def __init__(self, zone: datetime.tzinfo | None) -> None:
        self._zone = zone
        self._plans: dict[Any, _Plan] = {}
        self._kept: list[Any] = []
        self._shapes: dict[type, Change] = {}

    def plan(self, kind: Any, wanted: frozenset[str] | None = None) -> _Plan:
        fields = [field for field in fields_of(kind) if wanted is None or field.name in wanted]
        names = [(field.name, field.source) for field in fields]
        changes = [(field.name, change) for field in fields if (change := self._change_of(field)) is not None]
        # zeep leaves out branches of a choice that are not there, so only a type without one is taken as it stands.
        whole = wanted is None and all(field.origin in ("element", "attribute") and field.required for field in fields)
        return _Plan(names, changes, whole and all(name == source for name, source in names))

    def _inner(self, kind: Any) -> _Plan:
        plan = self._plans.get(id(kind))
        if plan is None:
            self._kept.append(kind)
            plan = self._plans[id(kind)] = self.plan(kind)
        return plan

    def _change_of(self, field: Field) -> Change | None:
        if field.origin == "anyAttribute":
            return lambda value: value or None
        if field.origin in ("any", "group") or field.type is None:
            return self._any
        if field.many:
            return self._items(field)
        return self._filled(field) if field.required else self._value(field.type)

    def _items(self, field: Field) -> Change:
        one = self._filled(field)
        if one is None:
            return lambda value: value or []
        return lambda value: [one(item) for item in value or ()]

    def _filled(self, field: Field) -> Change | None:
        """What changes a value that may not be null: zeep says None for an empty text, so there it was one."""
        change = self._value(field.type)
        if not is_simple(field.type) or field.nillable:
            return change
        nothing = empty_value(field.type)
        if nothing is None:
            return change
        if change is None:
            return lambda value: nothing if value is None else value
        return lambda value: nothing if value is None else change(value)

    def _value(self, kind: Any) -> Change | None:
        """What changes a value of a type; None where it may stay as it is."""
        if is_simple(kind):
            return self._simple(kind)
        return self._any if is_complex(kind) else self._open  # the value itself says of which type it is

    def _simple(self, kind: Any) -> Change | None:
        name = builtin_name(kind)
        if name == "dateTime" and self._zone is not None:
            zone = self._zone
            return lambda value: (
                value.replace(tzinfo=zone) if isinstance(value, datetime.datetime) and value.tzinfo is None else value
            )
        if name == "duration":
            return _duration
        if name in _G_TYPES:
            form = _G_TYPES[name]
            return lambda value: form.format(*value[:-1]) if isinstance(value, tuple) else value
        return None

    def _any(self, value: Any) -> Any:
        """A value of any kind."""
        if isinstance(value, list):  # also zeep's ArrayValue
            return [self._any(item) for item in value]
        if hasattr(type(value), "_xsd_type"):
            return self._shape(type(value))(value.__values__)
        if isinstance(value, Mapping):
            return {name: self._any(item) for name, item in value.items()}
        if hasattr(value, "iterchildren"):
            return {value.tag.rpartition("}")[2]: open_value(value)}
        if hasattr(value, "xsd_obj"):
            return self._any(value.value)
        return value

    def _open(self, value: Any) -> Any:
        """The value of an element without a type: zeep gives its elements as a list."""
        if isinstance(value, list) and value and all(hasattr(item, "iterchildren") for item in value):
            return open_value(value[0].getparent())
        return self._any(value)

    def _shape(self, made: type) -> Change:
        """What makes a value of the values of a class of zeep's: a list, a text, or a row."""
        shape = self._shapes.get(made)
        if shape is None:
            kind: Any = getattr(made, "_xsd_type")  # noqa: B009 zeep makes the attribute
            wrapped, text = list_field(kind), text_field(kind)
            if wrapped is not None:
                source, items = wrapped.source, self._items(wrapped)
                shape = lambda values: items(values.get(source))  # noqa: E731
            elif text is not None:
                source = text.source
                shape = lambda values: values.get(source)  # noqa: E731
            else:
                shape = self._inner(kind).row
            self._shapes[made] = shape
        return shape


def _duration(value: Any) -> Any:
    """A duration with years or months has no Python type of its own: zeep's is written out."""
    if hasattr(value, "tdelta"):
        import isodate  # type: ignore[import-untyped]

        return isodate.duration_isoformat(value)
    return value
