"""``tap.load_streams("tap_crm.streams")``: import the modules that declare streams."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from burler.declare.classes import Stream, register_class
from burler.declare.registry import Registry
from burler.errors import BurlerError, DeclarationError
from burler.logs import broken_import


def load_streams(registry: Registry, name: str, *, namespace: Mapping[str, Any], place: str) -> None:
    """Import a module, or every module of a package at any depth, in the order of their names. Decorated
    functions declare themselves; classes on ``burler.Stream`` that nobody has registered yet are registered
    (those whose name begins with ``_``, and those that give no rows and that others build on, are bases).

    Args:
        name: a module's name; with a leading dot, relative to the package of the caller.

    Raises:
        DeclarationError: there is no such module, it fails to import, or it declares no stream;
            a class with neither ``sync`` nor ``tail`` that nothing builds on.
    """
    registry.check_open(place)
    if not isinstance(name, str) or not name.strip("."):
        raise DeclarationError(f"{place}: tap.load_streams({name!r}): give a module's name, as 'tap_crm.streams'.")
    call = f"{place}: tap.load_streams({name!r})"
    modules = [_import(_absolute(name, namespace, call), call)]
    modules += list(_below(modules[0], call))
    found = _declared_in(modules, registry)
    for module in modules:
        for value in list(vars(module).values()):
            if _is_stream(value, module) and (value in registry.classes or not _is_base(value)):
                found = True
                if value not in registry.classes:
                    registry.classes.add(value)
                    register_class(registry, value)
    if not found:
        raise DeclarationError(
            f"{call} found no stream. A module declares one with the tap's decorators, "
            "or as a class on burler.Stream with a method 'sync' or 'tail'."
        )


def _absolute(name: str, namespace: Mapping[str, Any], call: str) -> str:
    package = namespace.get("__package__") or ""
    try:
        return importlib.util.resolve_name(name, package)
    except ImportError:
        fact = f"there are more dots than packages above '{package}'" if package else "this file is in no package"
        raise DeclarationError(f"{call}: {fact}; give the whole name.") from None


def _import(name: str, call: str) -> ModuleType:
    """Whatever importing an author's module raises becomes one error that says where."""
    try:
        return importlib.import_module(name)
    except BurlerError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise DeclarationError(f"{call}: there is no module '{error.name}'.") from None
        raise DeclarationError(f"{call}: module '{name}' {broken_import(error)}") from error


def _below(module: ModuleType, call: str) -> Iterator[ModuleType]:
    """All modules of a package, but for tests and ``__main__``. Packages are walked by hand: the standard library's
    walker imports them itself, and an error there would come without its place."""
    for info in sorted(pkgutil.iter_modules(getattr(module, "__path__", [])), key=lambda info: info.name):
        if info.name not in ("__main__", "tests") and not info.name.startswith("test_"):
            below = _import(f"{module.__name__}.{info.name}", call)
            yield below
            yield from _below(below, call)


def _declared_in(modules: list[ModuleType], registry: Registry) -> bool:
    """Whether a part of a stream was declared in one of the modules, now or when it was imported before."""
    names = {module.__name__ for module in modules}
    files = {getattr(module, "__file__", None) for module in modules} - {None}
    for stream in registry.streams.values():
        functions = (getattr(part, "fn", None) for part in stream.parts.values())
        if stream.module_file in files or any(getattr(fn, "__module__", None) in names for fn in functions):
            return True
    return False


def _is_stream(value: Any, module: ModuleType) -> bool:
    if not isinstance(value, type) or not issubclass(value, Stream) or value is Stream:
        return False
    return value.__module__ == module.__name__ and not value.__name__.startswith("_")


def _is_base(cls: type[Stream]) -> bool:
    """Whether a class has neither ``sync`` nor ``tail`` since others that build on it have one. One that nobody builds
    on is a stream whose method is missing or misspelt, and would be lost."""
    return not (hasattr(cls, "sync") or hasattr(cls, "tail")) and bool(cls.__subclasses__())
