"""Types of a WSDL as JSON Schema: complex ones as objects; numbers, texts, dates, lists and unions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from burler.errors import DeclarationError
from burler.schema.simplify import simplify
from burler.soap.definitions import XSD, Wsdl, choices_of
from burler.soap.fields import Field, array_item, fields_of, is_complex, is_simple, list_field, text_field

MOST_FIELDS = 100_000
MOST_LEVELS = 64
OPEN: dict[str, Any] = {}
"""A place that holds anything."""
_BOUNDS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    **{name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in
       (("long", 64), ("int", 32), ("short", 16), ("byte", 8))},
    **{name: (0, 2**bits - 1) for name, bits in
       (("unsignedLong", 64), ("unsignedInt", 32), ("unsignedShort", 16), ("unsignedByte", 8))},
}  # fmt: skip
_PLAIN: dict[str, dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    "float": {"type": "number"},
    "double": {"type": "number"},
    "decimal": {"type": "number", "format": "singer.decimal"},
    "dateTime": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
    "duration": {"type": "string", "format": "duration"},
    "base64Binary": {"type": "string", "contentEncoding": "base64"},
    "anySimpleType": {},
}
_LINE = {ord(sign): " " for sign in "\t\n\r"}


class ObjectSchemas:
    """Makes schemas of the types of one WSDL.

    Args:
        recursive: what to do with a type that holds itself: "error"; "open", which admits anything there; or a number:
            so often it may stand within itself, then the place is open.
        where: words that errors begin with.
    """

    def __init__(self, wsdl: Wsdl, *, recursive: str | int, where: str) -> None:
        self._wsdl = wsdl
        self._recursive = recursive
        self._where = where
        self._fields = 0

    def of(self, kind: Any, path: tuple[str, ...] = (), around: tuple[Any, ...] = ()) -> dict[str, Any]:
        """The schema of a type.

        Args:
            kind: zeep's type.
            path: the names that lead to it, for errors.
            around: the types that hold it, from the outside.

        Raises:
            DeclarationError: the type holds itself, and ``recursive`` is "error".
        """
        if is_simple(kind):
            return simple_schema(kind)
        if not is_complex(kind):
            return dict(OPEN)  # xsd:anyType
        item = array_item(kind)
        if item is not None:
            return {"type": "array", "items": nullable(self.of(item, path, around))}
        known = _identity(kind)
        if known in around and not self._may_repeat(known, path, around):
            return dict(OPEN)
        around = (*around, known)
        wrapped = list_field(kind)
        if wrapped is not None:
            return self._list(wrapped, path, around)
        text = text_field(kind)
        if text is not None:
            return nullable(simple_schema(text.type))
        return self._object(kind, path, around)

    def record(self, kind: Any) -> dict[str, Any]:
        """The same for a type of rows, which is an object also where it looks like the wrapper of a list."""
        if is_complex(kind) and array_item(kind) is None:
            return self._object(kind, (), (_identity(kind),))
        return self.of(kind)

    def _may_repeat(self, known: Any, path: tuple[str, ...], around: tuple[Any, ...]) -> bool:
        if isinstance(self._recursive, int):
            return around.count(known) <= self._recursive
        if self._recursive == "open":
            return False
        name = str(known).rpartition("}")[2] if isinstance(known, str) else "a type without a name"
        raise DeclarationError(
            f"{self._where}: the type '{name}' holds itself at '{'.'.join(path)}'; a schema must end somewhere.\n"
            '  recursive="open" admits anything there; recursive=2 describes two rounds of it.'
        )

    def _object(self, kind: Any, path: tuple[str, ...], around: tuple[Any, ...]) -> dict[str, Any]:
        own = fields_of(kind)
        properties = {field.name: self._field(field, path, around) for field in own}
        required = [field.name for field in own if field.required]
        for derived in self._derived(kind):
            for field in fields_of(derived):
                schema = nullable(self._field(field, path, around))
                if field.name not in properties:
                    properties[field.name] = schema
                elif properties[field.name] not in (schema, self._field(field, path, around)):
                    properties[field.name] = simplify({"anyOf": [properties[field.name], schema]})
        out: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            out["required"] = required
        return out

    def _derived(self, kind: Any) -> list[Any]:
        """Of an abstract type, all that derive from it: a value is one of them."""
        notes = self._wsdl.notes
        name = kind.qname.text if kind.qname is not None and kind.is_global else None
        if name not in notes.abstract:
            return []
        names, queue = [], [name]
        while queue:
            for derived in notes.derived.get(queue.pop(0), ()):
                if derived not in names:
                    names.append(derived)
                    queue.append(derived)
        return [self._wsdl.types.get_type(name) for name in names]

    def _field(self, field: Field, path: tuple[str, ...], around: tuple[Any, ...]) -> dict[str, Any]:
        path = (*path, field.name)
        self._count(path)
        if field.origin == "anyAttribute":
            return {"type": ["null", "object"]}
        if field.origin == "group":
            parts = {part.name: nullable(self._field(part, path, around)) for part in field.parts}
            return {"type": ["null", "array"], "items": {"type": "object", "properties": parts}}
        if field.origin == "any":
            return {"type": ["null", "array"]} if field.many else dict(OPEN)
        if field.many:
            return self._list(field, path, around)
        schema = self.of(field.type, path, around)
        return schema if field.required and not field.nillable else nullable(schema)

    def _count(self, path: tuple[str, ...]) -> None:
        """A few types that hold each other can stand for more fields than there is memory for."""
        self._fields += 1
        if self._fields > MOST_FIELDS:
            fact = f"has more than {MOST_FIELDS:,} fields, types within types counted each time"
        elif len(path) > MOST_LEVELS:
            fact = f"is nested deeper than {MOST_LEVELS} levels, at '{'.'.join(path[:4])}...'"
        else:
            return
        raise DeclarationError(
            f"{self._where}: the schema {fact}.\n"
            "  Take a smaller part with element=... or rows=..., or give a schema of your own with parse=...."
        )

    def _list(self, field: Field, path: tuple[str, ...], around: tuple[Any, ...]) -> dict[str, Any]:
        item = self.of(field.type, path, around)
        return {"type": ["null", "array"], "items": nullable(item) if field.nillable else item}


def _identity(kind: Any) -> Any:
    """What makes two types the same one: the name of a global type, else the object that zeep made."""
    return kind.qname.text if kind.is_global and kind.qname is not None else id(kind)


# ---- simple types ----------------------------------------------------------------------------------------------------


def builtin_name(kind: Any) -> str:
    """The name of XSD's own type that a simple type of zeep comes from in the end: "int", "dateTime", ..."""
    for cls in type(kind).__mro__:
        name = cls.__dict__.get("_default_qname")
        if name is not None and name.namespace == XSD:
            return str(name.localname)
    return "anySimpleType"


def collapsed(text: str) -> str:
    """A text as XSD reads it where white space says nothing: tokens, names, addresses."""
    return " ".join(part for part in normalized(text).split(" ") if part)


def normalized(text: str) -> str:
    """A text of one line."""
    return text.translate(_LINE)


_SPACES: dict[str, Callable[[str], str]] = {"string": str, "normalizedString": normalized}


def simple_schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a simple type of zeep. A value may not be null; see ``nullable``."""
    if hasattr(kind, "item_type"):
        return {"type": "array", "items": simple_schema(kind.item_type)}
    if hasattr(kind, "item_types"):
        return (simple_schema(kind.item_class()) if kind.item_class else {}) or {"type": "string"}
    name = builtin_name(kind)
    schema = _integer(name) if name in _BOUNDS else dict(_PLAIN.get(name, {"type": "string"}))
    choices = choices_of(kind)
    if choices and (schema == {"type": "string"} or schema.get("type") == "integer"):
        read: Callable[[str], Any] = int if name in _BOUNDS else _SPACES.get(name, collapsed)
        with contextlib.suppress(ValueError):  # a value that can't be read: a wider schema loses nothing
            schema["enum"] = list(dict.fromkeys(map(read, choices)))
    return schema


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """A copy that takes null as well."""
    out = dict(schema)
    kinds = out.get("type")
    if kinds is not None:
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        out["type"] = kinds if "null" in kinds else ["null", *kinds]
    if "enum" in out and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    if "anyOf" in out and {"type": "null"} not in out["anyOf"]:
        out["anyOf"] = [{"type": "null"}, *out["anyOf"]]
    return out


def _integer(name: str) -> dict[str, Any]:
    least, most = _BOUNDS[name]
    out: dict[str, Any] = {"type": "integer"}
    if least is not None:
        out["minimum"] = least
    if most is not None:
        out["maximum"] = most
    return out
