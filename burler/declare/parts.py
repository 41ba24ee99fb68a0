"""What the decorators of a tap have in common: a function becomes one part of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from burler.call import caller, place_of, wanted
from burler.declare import registry as reg
from burler.declare.options import check_name
from burler.declare.spec import UserFunction

Function = TypeVar("Function", bound=Callable[..., Any])


class Parts:
    """Base of :class:`burler.Tap`."""

    _registry: reg.Registry

    def _part(
        self, stream: str, part: str, allowed: tuple[str, ...], *, decorator: str | None = None
    ) -> Callable[[Function], Function]:
        """A decorator that declares a function as one part (a field of ``StreamSpec``) of a stream.

        Args:
            decorator: its name, if it is not the part's.
        """
        check_name(stream, caller().place, decorator=decorator or part)

        def decorate(fn: Function) -> Function:
            names = wanted(fn, allowed, what=f"the {part} function of '{stream}'")
            function = UserFunction(fn, names, place_of(fn))
            self._registry.declare(stream, part, function, place=function.place)
            return fn

        return decorate
