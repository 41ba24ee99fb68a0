"""A stream's schema from a class: dataclass, TypedDict, NamedTuple, msgspec.Struct, attrs class or pydantic model."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from burler.errors import DeclarationError
from burler.schema.refs import resolve_refs
from burler.schema.simplify import as_object, simplify

_LEFT_OUT = ("default", "examples", "readOnly", "writeOnly")  # a default may be a secret, and no target needs it


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
    from burler.schema import typed_msgspec

    try:
        if _is_pydantic(typing.get_origin(cls) or cls):
            raw = resolve_refs(_pydantic_schema(cls), source=place)
        else:
            raw = typed_msgspec.schema_of(_plain_form(cls), lambda other: _foreign(other, place))
    except DeclarationError:
        raise
    except typed_msgspec.Recursive as chain:
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

    from burler.schema.typed_msgspec import BASE64, DECIMAL

    class Generator(GenerateJsonSchema):
        def decimal_schema(self, schema: Any) -> dict[str, Any]:
            return dict(DECIMAL)

        def bytes_schema(self, schema: Any) -> dict[str, Any]:
            return dict(BASE64)

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
    if isinstance(node, list):
        return [_without_notes(item) for item in node]
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "patternProperties") and isinstance(value, dict):
            out[key] = {name: _without_notes(sub) for name, sub in value.items()}
        elif key not in _LEFT_OUT:
            out[key] = value if key in ("enum", "const") else _without_notes(value)
    if out.get("format") in ("password", "binary"):
        del out["format"]
    return out


def _name(cls: Any) -> str:
    return getattr(cls, "__qualname__", None) or repr(cls)
