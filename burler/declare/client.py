"""``tap.client``: the decorator and, inside a run, the client itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from burler.call import place_of, wanted
from burler.config.loading import variable_of
from burler.context import current_run
from burler.declare import registry as reg
from burler.declare.options import NOT_GIVEN
from burler.declare.spec import UserFunction
from burler.errors import ConfigError, DeclarationError

Function = TypeVar("Function", bound=Callable[..., Any])


class ClientHandle:
    """Called with a function, it declares it; otherwise it stands for the running tap's client:
    ``tap.client.describe()`` is the client's own ``describe``."""

    __slots__ = ("_burler_tap",)  # every other name belongs to the client

    def __init__(self, tap: Any) -> None:
        object.__setattr__(self, "_burler_tap", tap)

    def __reduce__(self) -> tuple[Any, ...]:
        return ClientHandle, (self._burler_tap,)

    @overload
    def __call__(self, fn: Function) -> Function: ...
    @overload
    def __call__(self) -> ClientHandle: ...
    def __call__(self, fn: Any = NOT_GIVEN) -> Any:
        """Decorator, with or without empty parentheses: the function (or class) that makes the client, once per run,
        from ``config``."""
        if fn is NOT_GIVEN:
            return self
        names = wanted(fn, reg.CLIENT_PARAMETERS, what="the client function")
        self._burler_tap._registry.set_function("client", UserFunction(fn, names, place_of(fn)))
        return fn

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)  # what copy, pickle and inspect ask of any object
        run = current_run(f"tap.client.{name}", self._burler_tap)
        return getattr(run.client, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(current_run(f"tap.client.{name}", self._burler_tap).client, name, value)

    def __repr__(self) -> str:
        return f"<client of {self._burler_tap!r}>"


def client_from(given: Any, *, tap_name: str, place: str) -> UserFunction:
    """The client function behind ``burler.tap(CoolClient, ...)``: a class or a factory, or a client that is
    made already. Parameters other than ``config`` are taken from the config by their names.

    Raises:
        DeclarationError: nothing that could be a client.
    """
    if given is None or isinstance(given, bool | int | float | bytes | list | tuple | dict | set):
        raise DeclarationError(
            f"{place}: a tap's name must be text like 'tap-contacts', or its client's class or factory, not {given!r}."
        )
    if not callable(given):
        return UserFunction(lambda: given, (), place)
    try:
        parameters: Any = inspect.signature(given).parameters
    except ValueError:
        parameters = None
    if parameters is None or "config" in parameters or not _needed(parameters):
        return UserFunction(given, wanted(given, reg.CLIENT_PARAMETERS, what="the client"), place)

    def make(config: dict[str, Any]) -> Any:
        missing = [name for name in _needed(parameters) if name not in config]
        if missing:
            how = ", ".join(f"'{name}' ({variable_of(tap_name, (name,))})" for name in missing)
            raise ConfigError(f"{tap_name}: the client ({place}) needs {how}. Put it into the --config file.")
        takes = {name for name, one in parameters.items() if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}
        return given(**{name: value for name, value in config.items() if name in takes})

    return UserFunction(make, ("config",), place)


def _needed(parameters: Any) -> list[str]:
    return [
        name
        for name, one in parameters.items()
        if one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    ]


def name_from(file: str | None, module: str) -> str:
    """A tap's name from its module: ``tap_contacts`` -> tap-contacts, ``tap_crm.main`` -> tap-crm; a script's from
    its file."""
    from pathlib import Path

    base = module.partition(".")[0]
    if base in ("", "__main__") and file:
        path = Path(file)
        base = path.parent.name if path.stem in ("__init__", "__main__") else path.stem
    base = base.replace("_", "-").strip("-").lower() or "tap"
    return base
