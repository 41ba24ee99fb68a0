"""Functional style: ``contacts = tap.stream("contacts")``, then ``@contacts.sync``, ``contacts.substream("notes")``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, Unpack, overload

from burler.call import caller
from burler.declare.classes import Stream, method_of, register_class, register_rest
from burler.declare.hooks import HOOKS
from burler.declare.options import NOT_GIVEN, Order, StreamOptions
from burler.declare.registry import NamedFunction, Registry
from burler.errors import DeclarationError
from burler.schema.sources import Generated, SchemaLike, generated

Function = TypeVar("Function", bound=Callable[..., Any])


class StreamHandle:
    """One stream that is being declared; every method declares a part of it, as ``tap``'s own decorators do."""

    def __init__(self, registry: Registry, name: str, *, of: str) -> None:
        self._registry = registry
        self._of = of
        self.name = name

    def __repr__(self) -> str:
        return f"<stream {self.name!r} of {self._of}>"

    def __call__(self, target: Function) -> Function:
        """Decorator: ``@tap.stream("contacts")`` on a function, which gives the rows, or on a class."""
        if not isinstance(target, type):
            return self.sync(target)
        if self._registry.has(self.name, "sync"):
            self._resolve_in_class(target)
        else:
            register_class(self._registry, target, name=self.name)
        self._registry.classes.add(target)  # load_streams leaves it alone
        return target

    def _resolve_in_class(self, cls: type) -> None:
        """``@tap.stream("thing").sync("sync_a_thing")`` above a class: the name is one of its methods."""
        self._registry.check_open(caller().place)
        declared = self._registry.streams[self.name]
        named = declared.parts.get("sync")
        if not isinstance(named, NamedFunction):
            raise DeclarationError(f"stream '{self.name}' ({declared.places['sync']}): has a sync function already.")
        if getattr(cls, named.name, None) is None:
            raise DeclarationError(f"stream '{self.name}' ({named.place}): class {cls.__name__} has no '{named.name}'.")
        declared.parts["sync"] = replace(method_of(cls, named.name, HOOKS["sync"].parameters), place=named.place)
        if issubclass(cls, Stream):
            register_rest(self._registry, cls, self.name)

    def _decorate(self, hook: str, fn: Any, options: Mapping[str, Any] | None = None) -> Any:
        decorate = self._registry.decorator(hook, self.name, options)
        return decorate if fn is NOT_GIVEN else decorate(fn)

    @overload
    def sync(self, fn: str, **options: Unpack[StreamOptions]) -> StreamHandle: ...
    @overload
    def sync(self, fn: Function) -> Function: ...
    @overload
    def sync(self, **options: Unpack[StreamOptions]) -> Callable[[Function], Function]: ...
    def sync(self, fn: Any = NOT_GIVEN, **options: Unpack[StreamOptions]) -> Any:
        """The function that gives the rows: ``@contacts.sync``, ``@contacts.sync(order="asc")``, or its name as
        text, which is looked up when the tap starts; then the handle comes back, for chains."""
        if not isinstance(fn, str):
            return self._decorate("sync", fn, options)
        here = caller()
        if options:
            self._registry.declare_options(self.name, options, place=here.place)
        self._registry.declare(self.name, "sync", NamedFunction(fn, here.namespace, here.place), place=here.place)
        return self

    @overload
    def bookmark(self, fn: Function) -> Function: ...
    @overload
    def bookmark(self) -> Callable[[Function], Function]: ...
    def bookmark(self, fn: Any = NOT_GIVEN) -> Any:
        """Decorator, with or without empty parentheses: see ``Tap.bookmark``."""
        return self._decorate("bookmark", fn)

    @overload
    def schema(self, method: SchemaLike) -> StreamHandle: ...
    @overload
    def schema(self, method: Function) -> Function: ...
    @overload
    def schema(self, method: Generated = ...) -> Callable[[Function], Function]: ...
    def schema(self, method: Any = generated) -> Any:
        """A schema, or a decorator of the function that gives it: see ``Tap.schema``."""
        if isinstance(method, Generated):
            return self._decorate("schema", NOT_GIVEN)
        if callable(method) and not isinstance(method, type):
            return self._decorate("schema", method)
        self._registry.declare_schema(self.name, method, caller())
        return self

    @overload
    def metadata(self, fn: Function) -> Function: ...
    @overload
    def metadata(self, fn: Mapping[str, Mapping[str, Any]]) -> StreamHandle: ...
    @overload
    def metadata(self) -> Callable[[Function], Function]: ...
    def metadata(self, fn: Any = NOT_GIVEN) -> Any:
        """Metadata as a mapping, or a decorator of the function that writes it: see ``Tap.metadata``."""
        if fn is NOT_GIVEN or callable(fn):
            return self._decorate("metadata", fn)
        self._registry.declare_metadata(self.name, fn, caller().place)
        return self

    @overload
    def post_transform(self, fn: Function) -> Function: ...
    @overload
    def post_transform(self) -> Callable[[Function], Function]: ...
    def post_transform(self, fn: Any = NOT_GIVEN) -> Any:
        """Decorator, with or without empty parentheses: see ``Tap.post_transform``."""
        return self._decorate("post_transform", fn)

    @overload
    def partitions(self, fn: Function) -> Function: ...
    @overload
    def partitions(
        self, *, order: Order = None, key: str | Callable[[Any], str] | None = None
    ) -> Callable[[Function], Function]: ...
    def partitions(self, fn: Any = NOT_GIVEN, *, order: Order = None, key: Any = None) -> Any:
        """Decorator, with or without parentheses: see ``Tap.partitions``."""
        return self._decorate("partitions", fn, {"partition_order": order, "partition_key": key})

    @overload
    def acknowledge(self, fn: Function) -> Function: ...
    @overload
    def acknowledge(self) -> Callable[[Function], Function]: ...
    def acknowledge(self, fn: Any = NOT_GIVEN) -> Any:
        """Decorator, with or without empty parentheses: see ``Tap.acknowledge``."""
        return self._decorate("acknowledge", fn)

    ack = acknowledge
    """The same as ``acknowledge``."""

    @overload
    def tail(self, fn: Function) -> Function: ...
    @overload
    def tail(self, *, overlap: bool = False, **options: Unpack[StreamOptions]) -> Callable[[Function], Function]: ...
    def tail(self, fn: Any = NOT_GIVEN, *, overlap: bool = False, **options: Unpack[StreamOptions]) -> Any:
        """Decorator, with or without parentheses: see ``Tap.tail``."""
        return self._decorate("tail", fn, options if overlap is False else {**options, "overlap": overlap})

    @overload
    def wake(self, fn: Function) -> Function: ...
    @overload
    def wake(self) -> Callable[[Function], Function]: ...
    def wake(self, fn: Any = NOT_GIVEN) -> Any:
        """Decorator, with or without empty parentheses: see ``Tap.wake``."""
        return self._decorate("wake", fn)

    def substream(self, name: str, **options: Unpack[StreamOptions]) -> StreamHandle:
        """A stream that is synced for each row of this one; its function may ask for ``parent``, the row."""
        here = caller()
        if options.get("parent") is not None:
            raise DeclarationError(f"stream '{name}' ({here.place}): its parent is '{self.name}'; leave out parent=.")
        self._registry.declare_options(name, {**options, "parent": self.name}, place=here.place, file=here.file)
        return StreamHandle(self._registry, name, of=self._of)
