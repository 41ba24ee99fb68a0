"""Class style: a stream as a class, registered by ``@tap.stream``.

    @tap.stream
    class Contacts(burler.Stream):
        key_properties = "id"
        schema = burler.json_file("schemas/contacts.json")

        def sync(self, client):
            yield from client.contacts()

It becomes the same frozen spec as the decorators make. An instance is made once per run and stream, so what
methods keep on ``self`` does not leak from one run into the next.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from burler.declare import registry as reg
from burler.declare.inject import place_of, wanted
from burler.declare.options import OPTION_NAMES, stream_name
from burler.declare.spec import UserFunction
from burler.errors import DeclarationError

_METHODS = {
    "sync": reg.SYNC_PARAMETERS,
    "bookmark": reg.BOOKMARK_PARAMETERS,
    "schema": reg.SCHEMA_PARAMETERS,
    "metadata": reg.METADATA_PARAMETERS,
    "post_transform": reg.TRANSFORM_PARAMETERS,
}
_KNOWN = tuple(dict.fromkeys((*OPTION_NAMES, *_METHODS, "name", "names", "emits")))


class Stream:
    """Base of streams in class style.

    Attributes: ``name`` (default: the class's name, ``CallNotes`` is call_notes), or ``names`` for several
    streams that the same methods serve; ``emits``: name -> options, for streams whose rows ``sync`` yields
    as ``(name, rows)`` beside its own; and every option of ``@tap.sync`` under its name.

    Methods, with parameters by name as the decorators' functions have: ``sync`` (required), ``bookmark``,
    ``schema`` (or an attribute), ``metadata`` (or a mapping), ``post_transform``.
    """

    name: ClassVar[str]
    names: ClassVar[tuple[str, ...] | list[str]]
    emits: ClassVar[Mapping[str, Mapping[str, Any]]]


def register_class(registry: reg.Registry, cls: type, *, name: str | None = None, **options: Any) -> tuple[str, ...]:
    """Declare the streams of a class; gives their names.

    Raises:
        DeclarationError: no ``sync``, misspelt attributes, wrong options, names that are taken.
    """
    place = class_place(cls)
    if not isinstance(cls, type):
        raise DeclarationError(f"{place}: @tap.stream decorates a class; functions take @tap.sync('name').")
    _check_attributes(cls, place)
    if not callable(getattr(cls, "sync", None)):
        raise DeclarationError(
            f"{place}: class {cls.__name__} has no method 'sync'; it gives the rows: def sync(self, client): ..."
        )
    names = _names(cls, name, place)
    module_file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    for stream in names:
        _register(registry, cls, stream, options, place)
        registry.declare_module(stream, module_file)
    emits = getattr(cls, "emits", {})
    if not isinstance(emits, Mapping) or not all(isinstance(options, Mapping) for options in emits.values()):
        raise DeclarationError(
            f"{place}: class {cls.__name__}: emits is a mapping of stream names to their options, such as "
            '{"notes": {"key_properties": "id"}}.'
        )
    for stream, beside in emits.items():
        registry.declare_options(stream, {"emitted_by": names[0], **beside}, place=place)
        registry.declare_module(stream, module_file)
    return names


def class_place(cls: Any) -> str:
    """file:line of a class: of its first own function, as Python keeps no line for the class itself."""
    if isinstance(cls, type):
        functions = [value for value in vars(cls).values() if hasattr(value, "__code__")]
        return place_of(functions[0]) if functions else f"{cls.__module__}.{cls.__qualname__}"
    return place_of(cls)


def _names(cls: type, name: str | None, place: str) -> tuple[str, ...]:
    names = getattr(cls, "names", None)
    if names is not None and (name is not None or hasattr(cls, "name")):
        raise DeclarationError(f"{place}: class {cls.__name__} has both name and names; keep one of the two.")
    if names is None:
        return (name or stream_name(cls),)
    if not isinstance(names, list | tuple) or not names:
        raise DeclarationError(f"{place}: class {cls.__name__}: names must be a list of stream names.")
    return tuple(names)


def register_rest(registry: reg.Registry, cls: type, stream: str) -> None:
    """Declare what a class says of a stream whose sync function is known already: a chain above it names it.

    Raises:
        DeclarationError: see ``register_class``.
    """
    place = class_place(cls)
    _check_attributes(cls, place)
    _register(registry, cls, stream, {}, place, but=("sync",))


def _register(
    registry: reg.Registry, cls: type, stream: str, more: Mapping[str, Any], place: str, *, but: tuple[str, ...] = ()
) -> None:
    options = {key: getattr(cls, key) for key in OPTION_NAMES if hasattr(cls, key) and not _is_method(cls, key)}
    registry.declare_options(stream, {**options, **more}, place=place)
    for part, allowed in _METHODS.items():
        if part in but:
            continue
        if _is_method(cls, part):
            fn = getattr(cls, part)
            raw = _raw(cls, part)
            static = isinstance(raw, staticmethod | classmethod)
            names = wanted(fn, allowed if static else ("self", *allowed), what=f"{cls.__name__}.{part}")
            if not static and names[:1] != ("self",):
                raise DeclarationError(f"{place_of(fn)}: {cls.__name__}.{part} needs 'self' as its first parameter.")
            function = UserFunction(fn, names if static else names[1:], place_of(fn), None if static else cls)
            slot = "schema_fn" if part == "schema" else part
            registry.declare(stream, slot, function, place=function.place)
        elif part == "metadata" and hasattr(cls, part):
            registry.declare(stream, "fixed_metadata", getattr(cls, part), place=place)


def _raw(cls: type, name: str) -> Any:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def _is_method(cls: type, name: str) -> bool:
    raw = _raw(cls, name)
    return isinstance(raw, staticmethod | classmethod) or hasattr(raw, "__code__")


def _check_attributes(cls: type, place: str) -> None:
    """A misspelt attribute would be lost in silence: ``key_propertes`` means a stream without keys."""
    for base in cls.__mro__[:-1]:
        for name in vars(base):
            if name.startswith("_") or name in _KNOWN:
                continue
            close = difflib.get_close_matches(name, _KNOWN, n=1, cutoff=0.88)
            if close:
                raise DeclarationError(
                    f"{place}: class {cls.__name__} has '{name}'. Did you mean '{close[0]}'? "
                    "(A name of your own may begin with '_'.)"
                )
