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

import ast
import functools
import linecache
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from burler.call import caller, place_of, short_path, wanted
from burler.declare import registry as reg
from burler.declare.field import check_mapping
from burler.declare.option_checks import SETUP_PARAMETERS
from burler.declare.options import OPTION_NAMES, meant, stream_name
from burler.declare.spec import UserFunction
from burler.errors import DeclarationError
from burler.suggest import nearest

if TYPE_CHECKING:
    from datetime import timedelta

    from burler.declare.handle import StreamHandle
    from burler.declare.strategies import Strategy

_METHODS = {
    "sync": reg.SYNC_PARAMETERS,
    "bookmark": reg.BOOKMARK_PARAMETERS,
    "schema": reg.SCHEMA_PARAMETERS,
    "metadata": reg.METADATA_PARAMETERS,
    "post_transform": reg.TRANSFORM_PARAMETERS,
    "partitions": reg.PARTITIONS_PARAMETERS,
    "acknowledge": reg.ACKNOWLEDGE_PARAMETERS,
    "ack": reg.ACKNOWLEDGE_PARAMETERS,
    "tail": reg.TAIL_PARAMETERS,
    "wake": reg.WAKE_PARAMETERS,
    "setup_retry": SETUP_PARAMETERS,
}
_SLOTS = {"schema": "schema_fn", "ack": "acknowledge"}
_BESIDE = ("partition_order", "partition_key", "overlap")
_KNOWN = tuple(dict.fromkeys((*OPTION_NAMES, *_METHODS, *_BESIDE, "name", "names", "emits")))


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
        parent: ClassVar[str | type | StreamHandle | None]
        emitted_by: ClassVar[str | type | StreamHandle | None]
        partition_order: ClassVar[str | None]
        overlap: ClassVar[bool]


def register_class(registry: reg.Registry, cls: type, *, name: str | None = None, **options: Any) -> tuple[str, ...]:
    """Declare the streams of a class; gives their names.

    Raises:
        DeclarationError: neither ``sync`` nor ``tail``, misspelt attributes, wrong options, names that are taken.
    """
    place = class_place(cls)
    if not isinstance(cls, type):
        raise DeclarationError(f"{place}: @tap.stream decorates a class; functions take @tap.sync('name').")
    _check_attributes(cls, place)
    if _raw(cls, "sync") is None and _raw(cls, "tail") is None:
        own = [one for one in vars(cls) if not one.startswith("_")]
        near = ((nearest(part, own), part) for part in ("sync", "tail"))
        hint = next((f" It has '{one}'. Did you mean '{part}'?" for one, part in near if one), "")
        raise DeclarationError(
            f"{place}: class {cls.__name__} has no method 'sync'; it gives the rows: def sync(self, client): ...{hint}"
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
    """file:line of a class: of its first own function, else of the class itself where its source can be read,
    else of the line that registers it."""
    if not isinstance(cls, type):
        return place_of(cls)
    functions = [value for value in vars(cls).values() if hasattr(value, "__code__")]
    own = [fn for fn in functions if getattr(fn, "__qualname__", "").startswith(f"{cls.__qualname__}.")]
    if own:
        return place_of(own[0])
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    line = _lines_of_classes(file).get(cls.__qualname__) if file else None
    if file and line:
        return f"{short_path(file)}:{line}"
    return place_of(functions[0]) if functions else caller().place


@functools.lru_cache(maxsize=64)
def _lines_of_classes(file: str) -> dict[str, int]:
    """Where the classes of a file stand; Python notes it on the class from 3.13 on only. {} without the source."""
    found: dict[str, int] = {}

    def walk(node: ast.AST, path: str) -> None:
        for child in ast.iter_child_nodes(node):
            below = path
            if isinstance(child, ast.ClassDef):
                found.setdefault(f"{path}{child.name}", child.lineno)
                below = f"{path}{child.name}."
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                below = f"{path}{child.name}.<locals>."
            walk(child, below)

    try:
        walk(ast.parse("".join(linecache.getlines(file))), "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return found


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
    key = _partition_key(cls, place)
    registry.declare_partition_options(stream, order=getattr(cls, "partition_order", None), key=key, place=place)
    registry.declare_overlap(stream, getattr(cls, "overlap", False), place=place)
    for part, allowed in _METHODS.items():
        if part in but or _raw(cls, part) is None:
            continue
        if _is_method(cls, part):
            function = method_of(cls, part, allowed)
            registry.declare(stream, _SLOTS.get(part, part), function, place=function.place)
        elif part == "metadata" and isinstance(_raw(cls, part), Mapping):
            values = getattr(cls, part)
            check_mapping(values, where=f"stream '{stream}' ({place})")
            registry.declare(stream, "fixed_metadata", values, place=place)
        elif part != "schema":
            raise _no_method(cls, part, place)


def _partition_key(cls: type, place: str) -> Any:
    """What names a partition, as a class says it: a field's name, or a function without ``self``."""
    key = getattr(cls, "partition_key", None)
    static = isinstance(_raw(cls, "partition_key"), staticmethod | classmethod)
    code = getattr(key, "__code__", None)
    if not static and code is not None and code.co_varnames[: code.co_argcount][:1] == ("self",):
        raise DeclarationError(
            f"{place}: class {cls.__name__}: partition_key is called with the partition alone. "
            "Write @staticmethod above it, and no self."
        )
    return key


def method_of(cls: type, name: str, allowed: tuple[str, ...]) -> UserFunction:
    """A method of a class as a function that a session calls: on an instance, or, if static, as it is.

    Raises:
        DeclarationError: nothing that Python binds to an instance, no ``self``, or parameters that nothing is given
            for.
    """
    fn, raw = getattr(cls, name), _raw(cls, name)
    if not _is_method(cls, name) or not callable(fn):
        raise _no_method(cls, name, class_place(cls))
    static = isinstance(raw, staticmethod | classmethod)
    names = wanted(fn, allowed if static else ("self", *allowed), what=f"{cls.__name__}.{name}")
    if not static and names[:1] != ("self",):
        raise DeclarationError(f"{place_of(fn)}: {cls.__name__}.{name} needs 'self' as its first parameter.")
    return UserFunction(fn, names if static else names[1:], place_of(fn), None if static else cls)


def _no_method(cls: type, name: str, place: str) -> DeclarationError:
    """What Python would not call as a method must not be passed over: a hook that hides values would be lost."""
    raw = _raw(cls, name)
    what = f"the class {raw.__name__}" if isinstance(raw, type) else type(raw).__name__
    cure = f"Write def {name}(self, ...), or, if it takes no self: {name} = staticmethod(...)."
    if name == "metadata":
        cure += " A mapping of fields is fine, too."
    return DeclarationError(f"{place}: class {cls.__name__}: {name} must be a method, not {what}. {cure}")


def _raw(cls: type, name: str) -> Any:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def _is_method(cls: type, name: str) -> bool:
    """A function, or what stands for one and is bound as one (``functools.wraps``, ``functools.lru_cache``)."""
    raw = _raw(cls, name)
    if isinstance(raw, staticmethod | classmethod):
        return True
    return hasattr(raw, "__code__") or (callable(raw) and hasattr(raw, "__wrapped__") and hasattr(raw, "__get__"))


def _check_attributes(cls: type, place: str) -> None:
    """A misspelt attribute would be lost in silence: ``key_propertes`` means a stream without keys, and so does
    ``primary_keys`` of a class that comes from another framework."""
    for base in cls.__mro__[:-1]:
        for name in vars(base):
            if name.startswith("_") or name in _KNOWN:
                continue
            close = meant(name, _KNOWN, cutoff=0.88)
            if close:
                raise DeclarationError(
                    f"{place}: class {cls.__name__} has '{name}'. Did you mean '{close}'? "
                    "(A name of your own may begin with '_'.)"
                )
