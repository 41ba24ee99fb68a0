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

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from burler.call import caller, place_of, short_path, wanted
from burler.declare.hooks import HOOKS
from burler.declare.options import OPTIONS, meant, stream_name
from burler.declare.registry import Registry
from burler.declare.spec import UserFunction
from burler.errors import DeclarationError
from burler.suggest import nearest

if TYPE_CHECKING:
    from datetime import timedelta

    from burler.declare.options import NamedStream
    from burler.declare.strategies import Strategy

_KNOWN = tuple(dict.fromkeys((*OPTIONS, *HOOKS, "name", "names", "emits")))


class Stream:
    """Base of streams in class style.

    Attributes: ``name`` (default: the class's name, ``CallNotes`` is call_notes), or ``names`` for several
    streams that the same methods serve; ``emits``: name -> options, for streams whose rows ``sync`` yields
    as ``(name, rows)`` beside its own; and every option of ``@tap.sync`` under its name.

    Methods, with parameters by name as the decorators' functions have: ``sync`` or ``tail`` or both, ``bookmark``,
    ``schema`` (or an attribute), ``metadata`` (or a mapping), ``post_transform``, ``partitions`` (with the attributes
    ``partition_order`` and ``partition_key``), ``acknowledge`` (or ``ack``), ``setup_retry``, ``wake``. The attribute
    ``overlap`` stands beside ``tail``.
    """

    name: ClassVar[str]
    names: ClassVar[tuple[str, ...] | list[str]]
    emits: ClassVar[Mapping[str, Mapping[str, Any]]]

    if TYPE_CHECKING:
        # What a class may set without a checker's complaint; ``schema``, ``metadata`` and ``partition_key`` may be
        # methods as well, so nothing is said of them. Words are plain text here: a class below may choose another one.
        key_properties: ClassVar[str | Sequence[str]]
        replication_key: ClassVar[str | None]
        replication_method: ClassVar[str | None]
        bookmark_strategy: ClassVar[str | Strategy]
        order: ClassVar[str | None]
        on_unsorted: ClassVar[str | None]
        resume: ClassVar[str | None]
        lookback: ClassVar[float | timedelta | None]
        bookmark_format: ClassVar[str | None]
        signpost: ClassVar[bool | None]
        resumable_by: ClassVar[str | None]
        retry_sync_on: ClassVar[type[Exception] | tuple[type[Exception], ...] | list[type[Exception]] | None]
        max_retries: ClassVar[int | None]
        workers: ClassVar[int | None]
        rollup: ClassVar[bool | None]
        versions: ClassVar[bool | None]
        on_bad_record: ClassVar[str | None]
        check_constraints: ClassVar[bool | None]
        source_state: ClassVar[bool | None]
        records_path: ClassVar[str | Sequence[str] | None]
        new_record_polling_interval_ms: ClassVar[int | None]
        max_full_table_age_seconds: ClassVar[float | None]
        parent: ClassVar[str | type | NamedStream | None]
        emitted_by: ClassVar[str | type | NamedStream | None]
        partition_order: ClassVar[str | None]
        overlap: ClassVar[bool]


def register_class(registry: Registry, cls: type, *, name: str | None = None, **options: Any) -> tuple[str, ...]:
    """Declare the streams of a class; gives their names.

    Raises:
        DeclarationError: neither ``sync`` nor ``tail``, misspelt attributes, wrong options, names that are taken.
    """
    place = _place(cls)
    _check_attributes(cls, place)
    if _raw(cls, "sync") is None and _raw(cls, "tail") is None:
        near = ((nearest(part, (one for one in vars(cls) if one[0] != "_")), part) for part in ("sync", "tail"))
        hint = next((f" It has '{one}'. Did you mean '{part}'?" for one, part in near if one), "")
        raise DeclarationError(
            f"{place}: class {cls.__name__} has no method 'sync'; it gives the rows: def sync(self, client): ...{hint}"
        )
    names = _names(cls, name, place)
    for stream in names:
        _register(registry, cls, stream, options, place)
    emits = getattr(cls, "emits", {})
    if not isinstance(emits, Mapping) or not all(isinstance(options, Mapping) for options in emits.values()):
        raise DeclarationError(
            f"{place}: class {cls.__name__}: emits is a mapping of stream names to their options, such as "
            '{"notes": {"key_properties": "id"}}.'
        )
    for stream, beside in emits.items():
        registry.declare_options(stream, {"emitted_by": names[0], **beside}, place=place, file=_file(cls))
    return names


def register_rest(registry: Registry, cls: type, stream: str) -> None:
    """Declare what a class says of a stream whose sync function is known already: a chain above it names it.

    Raises:
        DeclarationError: see ``register_class``.
    """
    _check_attributes(cls, _place(cls))
    _register(registry, cls, stream, {}, _place(cls), but="sync")


def method_of(cls: type, name: str, allowed: tuple[str, ...]) -> UserFunction:
    """A method of a class as a function that a session calls: on an instance, or, if static, as it is.

    Raises:
        DeclarationError: nothing that Python binds to an instance, no ``self``, or parameters that nothing is given
            for.
    """
    fn, raw = getattr(cls, name), _raw(cls, name)
    if not _is_method(raw) or not callable(fn):
        # What Python would not call as a method must not be passed over: a hook that hides values would be lost.
        what = f"the class {raw.__name__}" if isinstance(raw, type) else type(raw).__name__
        raise DeclarationError(
            f"{_place(cls)}: class {cls.__name__}: {name} must be a method, not {what}. Write def {name}(self, ...), "
            f"or, if it takes no self: {name} = staticmethod(...)."
            + (" A mapping of fields is fine, too." if name == "metadata" else "")
        )
    static = isinstance(raw, staticmethod | classmethod)
    names = wanted(fn, allowed if static else ("self", *allowed), what=f"{cls.__name__}.{name}")
    if not static and names[:1] != ("self",):
        raise DeclarationError(f"{place_of(fn)}: {cls.__name__}.{name} needs 'self' as its first parameter.")
    return UserFunction(fn, names if static else names[1:], place_of(fn), None if static else cls)


def _register(
    registry: Registry, cls: type, stream: str, more: Mapping[str, Any], place: str, *, but: str = ""
) -> None:
    """Declare a stream by what a class says of it; ``but``: a part that is declared already."""
    raw = {name: _raw(cls, name) for name in HOOKS}
    values = ("schema", "metadata") if isinstance(raw["metadata"], Mapping) else ("schema",)
    methods = [name for name in HOOKS if raw[name] is not None and (name not in values or _is_method(raw[name]))]
    options = {name: getattr(cls, name) for name in OPTIONS if hasattr(cls, name) and name not in methods}
    registry.declare_options(stream, {**options, **more}, place=place, file=_file(cls), beside=None)
    for name in methods:
        if name != but:
            function = method_of(cls, name, HOOKS[name].parameters)
            registry.declare(stream, HOOKS[name].part, function, place=function.place)
    if raw["metadata"] is not None and "metadata" not in methods:
        registry.declare_metadata(stream, raw["metadata"], place)


def _place(cls: type) -> str:
    """file:line of a class: of its first own function, else of the class itself where its source can be read,
    else of the line that registers it."""
    for value in vars(cls).values():
        if hasattr(value, "__code__") and value.__qualname__.startswith(f"{cls.__qualname__}."):
            return place_of(value)
    try:
        return f"{short_path(inspect.getsourcefile(cls) or '')}:{inspect.findsource(cls)[1] + 1}"
    except (OSError, TypeError, SyntaxError, RecursionError):
        return caller().place


def _file(cls: type) -> str | None:
    return getattr(sys.modules.get(cls.__module__), "__file__", None)


def _names(cls: type, name: str | None, place: str) -> tuple[str, ...]:
    names = getattr(cls, "names", None)
    if names is not None and (name is not None or hasattr(cls, "name")):
        raise DeclarationError(f"{place}: class {cls.__name__} has both name and names; keep one of the two.")
    if names is None:
        return (name or stream_name(cls),)
    if not isinstance(names, list | tuple) or not names:
        raise DeclarationError(f"{place}: class {cls.__name__}: names must be a list of stream names.")
    return tuple(names)


def _raw(cls: type, name: str) -> Any:
    return inspect.getattr_static(cls, name, None)


def _is_method(raw: Any) -> bool:
    """A function, or what stands for one and is bound as one (``functools.wraps``, ``functools.lru_cache``)."""
    wraps = callable(raw) and hasattr(raw, "__wrapped__") and hasattr(raw, "__get__")
    return wraps or hasattr(raw, "__code__") or isinstance(raw, staticmethod | classmethod)


def _check_attributes(cls: type, place: str) -> None:
    """A misspelt attribute would be lost in silence: ``key_propertes`` means a stream without keys, and so does
    ``primary_keys`` of a class that comes from another framework."""
    for name in dict.fromkeys(name for base in cls.__mro__[:-1] for name in vars(base)):
        if not name.startswith("_") and name not in _KNOWN and (close := meant(name, _KNOWN, cutoff=0.88)):
            raise DeclarationError(
                f"{place}: class {cls.__name__} has '{name}'. Did you mean '{close}'? "
                "(A name of your own may begin with '_'.)"
            )
