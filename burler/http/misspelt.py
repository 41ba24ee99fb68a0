"""Options that there are not: named as the author called, with those there are."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, ParamSpec, TypeVar

from burler.http.request import Request
from burler.suggest import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
SomeClass = TypeVar("SomeClass", bound=type)

_OF_PAGES = ("paginator", "records_path")
_OF_REQUESTS = tuple(one.name for one in dataclasses.fields(Request) if one.name not in ("method", "path"))


def no_option(call: str, name: str, known: Collection[str]) -> TypeError:
    """The error for an option that a call does not take.

    Args:
        call: as the author writes it: ``client.pages``.
    """
    hint = did_you_mean(name, known)
    if not hint and name in _OF_PAGES:
        hint = " client.pages and client.rows take it."
    return TypeError(f"{call}: there is no option '{name}'.{hint} It takes {', '.join(known)}.")


def names_options(call: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: keywords that the function does not have raise ``no_option``'s TypeError, in place of Python's,
    which names functions that no author wrote, and no keyword that would do."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.values()
        takes = frozenset(one.name for one in parameters)
        known = [one.name for one in parameters if one.name != "self"]

        @functools.wraps(function)
        def checked(*args: P.args, **given: P.kwargs) -> R:
            for name in given:
                if name not in takes:
                    raise no_option(call, name, known)
            return function(*args, **given)

        return checked

    return decorate


def options_named(made: SomeClass) -> SomeClass:
    """The same for the fields of a class, such as a paginator: ``Cursor("next", parm="after")``."""
    made.__init__ = names_options(made.__name__)(made.__init__)  # type: ignore[misc]
    return made


def request_of(call: str, method: str, path: str, asked: Mapping[str, Any], more: Collection[str] = ()) -> Request:
    """The request that a call describes.

    Args:
        call: "pages" for ``client.pages``. more: options of the call that are none of the request.

    Raises:
        TypeError: an option that there is not.
    """
    try:
        return Request(method.upper(), path, **asked)
    except TypeError:
        for name in asked:
            if name not in _OF_REQUESTS:
                raise no_option(f"client.{call}", name, [*more, *_OF_REQUESTS]) from None
        raise
