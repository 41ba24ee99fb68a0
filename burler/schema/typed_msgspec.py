"""JSON Schema of what msgspec can describe: dataclasses, TypedDicts, NamedTuples, Structs, attrs classes.

msgspec's own schemas leave open whether a ``datetime`` has a zone and call a Decimal a string. So the schema is made
of msgspec's description of the types, with burler's meaning: a ``datetime`` is a date-time with a zone unless
``msgspec.Meta(tz=False)`` says otherwise, and a Decimal is an exact number.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from msgspec import inspect as mi

DECIMAL = {"type": "number", "format": "singer.decimal"}
BASE64 = {"type": "string", "contentEncoding": "base64"}

_PLAIN: dict[type, dict[str, Any]] = {
    mi.AnyType: {},
    mi.RawType: {},
    mi.NoneType: {"type": "null"},
    mi.BoolType: {"type": "boolean"},
    mi.DateType: {"type": "string", "format": "date"},
    mi.TimeDeltaType: {"type": "string", "format": "duration"},
    mi.UUIDType: {"type": "string", "format": "uuid"},
    mi.DecimalType: DECIMAL,
}
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_LENGTHS = {
    mi.StrType: ("minLength", "maxLength"),
    mi.CollectionType: ("minItems", "maxItems"),
    mi.DictType: ("minProperties", "maxProperties"),
}
_OBJECTS = (mi.StructType, mi.DataclassType, mi.TypedDictType)


class Recursive(Exception):
    """A class that holds itself; the text is the chain of classes."""


class Unknown(Exception):
    """A type that has no JSON form; the text says which and where."""


def schema_of(cls: Any, other: Callable[[type], Any]) -> Any:
    """The schema of a class, without references.

    Args:
        other: gives the schema of a class that msgspec does not know, or None.

    Raises:
        Recursive, Unknown: see there.
        TypeError, NameError: what msgspec says of types that it refuses, and of names it can't resolve.
    """
    return _Maker(other).make(mi.type_info(cls), ())


class _Maker:
    def __init__(self, other: Callable[[type], Any]) -> None:
        self._other = other

    def make(self, kind: mi.Type, chain: tuple[Any, ...], field: str = "") -> Any:
        if isinstance(kind, mi.Metadata):
            return {**self.make(kind.type, chain, field), **(kind.extra_json_schema or {})}
        if type(kind) in _PLAIN:
            return dict(_PLAIN[type(kind)])
        if isinstance(kind, mi.IntType | mi.FloatType | mi.StrType):
            return _scalar(kind)
        if isinstance(kind, mi.BytesType | mi.ByteArrayType | mi.MemoryViewType):
            return dict(BASE64)
        if isinstance(kind, mi.DateTimeType):
            return {"type": "string"} if kind.tz is False else {"type": "string", "format": "date-time"}
        if isinstance(kind, mi.TimeType):
            return {"type": "string", "format": "time"} if kind.tz else {"type": "string"}
        if isinstance(kind, mi.EnumType):
            return {"enum": [member.value for member in kind.cls]}
        if isinstance(kind, mi.LiteralType):
            return {"enum": list(kind.values)}
        if isinstance(kind, mi.UnionType):
            return {"anyOf": [self.make(part, chain, field) for part in kind.types]}
        return self._container(kind, chain, field)

    def _container(self, kind: mi.Type, chain: tuple[Any, ...], field: str) -> Any:
        if isinstance(kind, mi.CollectionType):
            out = {"type": "array", "items": self.make(kind.item_type, chain, f"{field}[]")}
            return {**out, **_lengths(kind, *_LENGTHS[mi.CollectionType])}
        if isinstance(kind, mi.TupleType):
            return _tuple([self.make(part, chain, f"{field}[]") for part in kind.item_types])
        if isinstance(kind, mi.DictType) or type(kind).__name__ == "FrozenDictType":  # since msgspec 0.21
            values: mi.Type = kind.value_type  # type: ignore[attr-defined]
            out = {"type": "object", "additionalProperties": self.make(values, chain, f"{field}.*")}
            return {**out, **_lengths(kind, *_LENGTHS[mi.DictType])}
        if isinstance(kind, mi.NamedTupleType) or (isinstance(kind, mi.StructType) and kind.array_like):
            below = _deeper(kind.cls, chain)
            return _tuple([self.make(part.type, below, f"{field}.{part.name}") for part in kind.fields])
        if isinstance(kind, _OBJECTS):
            return self._object(kind, chain, field)
        schema = self._other(kind.cls) if isinstance(kind, mi.CustomType) else None
        if schema is None:
            name = getattr(getattr(kind, "cls", kind), "__name__", type(kind).__name__)
            raise Unknown(f"field '{field.removeprefix('.')}' has the type {name}, which has no JSON form")
        return schema

    def _object(self, kind: Any, chain: tuple[Any, ...], field: str) -> dict[str, Any]:
        below = _deeper(kind.cls, chain)
        properties: dict[str, Any] = {}
        required: list[str] = []
        if isinstance(kind, mi.StructType) and kind.tag_field is not None:
            properties[kind.tag_field] = {"enum": [kind.tag]}
            required.append(kind.tag_field)
        for part in kind.fields:
            properties[part.encode_name] = self.make(part.type, below, f"{field}.{part.encode_name}")
            if part.required:
                required.append(part.encode_name)
        out: dict[str, Any] = {"type": "object", "properties": properties}
        said = _description(kind.cls)
        if said:
            out["description"] = said
        if required:
            out["required"] = required
        if getattr(kind, "forbid_unknown_fields", False):
            out["additionalProperties"] = False
        return out


def _scalar(kind: mi.IntType | mi.FloatType | mi.StrType) -> dict[str, Any]:
    if isinstance(kind, mi.StrType):
        out: dict[str, Any] = {"type": "string", **_lengths(kind, *_LENGTHS[mi.StrType])}
        return {**out, "pattern": kind.pattern} if kind.pattern is not None else out
    out = {"type": "integer" if isinstance(kind, mi.IntType) else "number"}
    out.update({word: getattr(kind, name) for name, word in _BOUNDS.items() if getattr(kind, name) is not None})
    return {**out, "multipleOf": kind.multiple_of} if kind.multiple_of is not None else out


def _lengths(kind: Any, least: str, most: str) -> dict[str, int]:
    given = {least: kind.min_length, most: kind.max_length}
    return {word: number for word, number in given.items() if number is not None}


def _tuple(places: list[Any]) -> dict[str, Any]:
    return {"type": "array", "prefixItems": places, "items": False}


def _deeper(cls: Any, chain: tuple[Any, ...]) -> tuple[Any, ...]:
    if cls in chain:
        names = [getattr(each, "__name__", repr(each)) for each in (*chain[chain.index(cls) :], cls)]
        raise Recursive(" -> ".join(names))
    return (*chain, cls)


def _description(cls: Any) -> str:
    """A class's own docstring, less those that Python writes itself."""
    cls = getattr(cls, "__origin__", cls)
    own = vars(cls).get("__doc__") or ""
    return "" if own.startswith(f"{cls.__name__}(") else inspect.cleandoc(own)
