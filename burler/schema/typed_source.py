"""A stream's schema from a class: dataclass, TypedDict, NamedTuple, msgspec.Struct, attrs class or pydantic model."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import inspect as mi

from burler.errors import DeclarationError
from burler.schema.refs import resolve_refs
from burler.schema.simplify import as_object, simplify
from burler.schema_tree import changed

_LEFT_OUT = ("default", "examples", "readOnly", "writeOnly")  # a default may be a secret, and no target needs it
_DECIMAL = {"type": "number", "format": "singer.decimal"}
_BASE64 = {"type": "string", "contentEncoding": "base64"}

_PLAIN: dict[type, dict[str, Any]] = {
    mi.AnyType: {},
    mi.RawType: {},
    mi.NoneType: {"type": "null"},
    mi.BoolType: {"type": "boolean"},
    mi.DateType: {"type": "string", "format": "date"},
    mi.TimeDeltaType: {"type": "string", "format": "duration"},
    mi.UUIDType: {"type": "string", "format": "uuid"},
    mi.DecimalType: _DECIMAL,
}
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_LENGTHS = {
    mi.StrType: ("minLength", "maxLength"),
    mi.CollectionType: ("minItems", "maxItems"),
    mi.DictType: ("minProperties", "maxProperties"),
}
_OBJECTS = (mi.StructType, mi.DataclassType, mi.TypedDictType)


@dataclass(frozen=True, slots=True)
class Typed:
    """A schema that a class describes; see ``typed``."""

    cls: Any

    def load(self, *, where: str, config: Mapping[str, Any]) -> dict[str, Any]:
        """The schema.

        Raises:
            DeclarationError: a type that JSON has no form for, a name that can't be resolved, a class that
                holds itself, or one that is no object.
        """
        place = f"{where}: typed({_name(self.cls)})"
        schema = _schema_of(self.cls, place)
        out = as_object(schema)
        if out is None:
            raise DeclarationError(f"{place}: the class describes no object with named fields, so no stream's rows.")
        return out


def typed(cls: Any) -> Typed:
    """A schema from a typed class.

    A field is required if it has no default (``NotRequired`` in a TypedDict); it may be null only if its type says so.

    Raises:
        TypeError: not such a class.
    """
    if not is_typed(cls):
        raise TypeError(
            "typed() takes a dataclass, TypedDict, NamedTuple, msgspec.Struct, attrs class or pydantic model, "
            f"not {cls!r:.80}"
        )
    return Typed(cls)


def is_typed(value: Any) -> bool:
    """Whether a value is a class that ``typed`` takes (or a generic one with its parameters); loads nothing."""
    cls = typing.get_origin(value) or value
    return isinstance(cls, type) and (
        dataclasses.is_dataclass(cls)
        or issubclass(cls, msgspec.Struct)
        or _is_typed_dict(cls)
        or _is_named_tuple(cls)
        or hasattr(cls, "__attrs_attrs__")
        or _is_pydantic(cls)
    )


def _is_typed_dict(cls: type) -> bool:
    return issubclass(cls, dict) and hasattr(cls, "__total__") and hasattr(cls, "__required_keys__")


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_field_defaults")


def _is_pydantic(cls: Any) -> bool:
    """A pydantic model or dataclass."""
    if not isinstance(cls, type):
        return False
    is_model = callable(getattr(cls, "model_json_schema", None)) and hasattr(cls, "model_fields")
    return is_model or (dataclasses.is_dataclass(cls) and "__pydantic_validator__" in vars(cls))


def _schema_of(cls: Any, place: str) -> Any:
    """The finished schema of a class, object or not."""
    try:
        if _is_pydantic(typing.get_origin(cls) or cls):
            raw = resolve_refs(_pydantic_schema(cls), source=place)
        else:
            raw = _schema_of_types(_plain_form(cls), lambda other: _foreign(other, place))
    except DeclarationError:
        raise
    except _Recursive as chain:
        raise DeclarationError(
            f"{place}: the class holds itself: {chain}.\n"
            "  Singer schemas can't be recursive: give an inner field the type Any."
        ) from None
    except NameError as error:
        raise DeclarationError(
            f"{place}: the name '{error.name or error}' in an annotation can't be resolved.\n"
            "  Define or import it at the top of the module."
        ) from None
    except RecursionError:
        raise DeclarationError(f"{place}: the class is nested too deep.") from None
    except Exception as error:  # whatever msgspec and pydantic raise of a class that they can't describe
        fact = next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
        raise DeclarationError(f"{place}: no schema can be made of it: {fact}.") from None
    return simplify(_without_notes(raw))


def _plain_form(cls: Any) -> Any:
    """A NamedTuple as a class of named fields, as ``_asdict()`` gives it; others as they are."""
    if not (isinstance(cls, type) and _is_named_tuple(cls)):
        return cls
    hints = typing.get_type_hints(cls, include_extras=True)
    defaults = cls._field_defaults  # type: ignore[attr-defined]
    fields = [
        (name, hints.get(name, Any), defaults[name]) if name in defaults else (name, hints.get(name, Any))
        for name in cls._fields  # type: ignore[attr-defined]
    ]
    return msgspec.defstruct(cls.__name__, fields, kw_only=True)


def _foreign(cls: Any, place: str) -> Any:
    """The schema of a pydantic model inside a class that is none; None for other classes."""
    return _schema_of(cls, f"{place}, {_name(cls)}") if _is_pydantic(cls) else None


def _pydantic_schema(cls: Any) -> dict[str, Any]:
    """What pydantic says of the model as ``model_dump()`` gives it: Decimals are numbers, bytes are base64."""
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def decimal_schema(self, schema: Any) -> dict[str, Any]:
            return dict(_DECIMAL)

        def bytes_schema(self, schema: Any) -> dict[str, Any]:
            return dict(_BASE64)

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    config = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}
    make = getattr(cls, "model_json_schema", None) or TypeAdapter(cls).json_schema
    out: dict[str, Any] = make(
        mode="serialization", by_alias=bool(config.get("serialize_by_alias")), schema_generator=Generator
    )
    return out


def _without_notes(node: Any) -> Any:
    """A schema without what speaks of input only, at every depth."""
    if not isinstance(node, Mapping):
        return node
    out = {key: value for key, value in node.items() if key not in _LEFT_OUT}
    if out.get("format") in ("password", "binary"):
        del out["format"]
    return changed(out, lambda _, part: _without_notes(part))


def _name(cls: Any) -> str:
    return getattr(cls, "__qualname__", None) or repr(cls)


# ---- classes that msgspec can describe: dataclasses, TypedDicts, NamedTuples, Structs, attrs classes -----------------
# msgspec's own schemas leave open whether a ``datetime`` has a zone and call a Decimal a string. So the schema is made
# of msgspec's description of the types, with burler's meaning: a ``datetime`` is a date-time with a zone unless
# ``msgspec.Meta(tz=False)`` says otherwise, and a Decimal is an exact number.


class _Recursive(Exception):
    """A class that holds itself; the text is the chain of classes."""


class _Unknown(Exception):
    """A type that has no JSON form; the text says which and where."""


def _schema_of_types(cls: Any, other: Callable[[type], Any]) -> Any:
    """The schema of a class, without references.

    Args:
        other: gives the schema of a class that msgspec does not know, or None.

    Raises:
        _Recursive, _Unknown: see there.
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
            return dict(_BASE64)
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
            raise _Unknown(f"field '{field.removeprefix('.')}' has the type {name}, which has no JSON form")
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
        raise _Recursive(" -> ".join(names))
    return (*chain, cls)


def _description(cls: Any) -> str:
    """A class's own docstring, less those that Python writes itself."""
    cls = getattr(cls, "__origin__", cls)
    own = vars(cls).get("__doc__") or ""
    return "" if own.startswith(f"{cls.__name__}(") else inspect.cleandoc(own)
