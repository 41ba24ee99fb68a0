"""What a paginator is, and which there are beside those that follow links (``paginator_links``), cursors
(``paginator_cursor``) and counts (``paginator_counts``).

A paginator is frozen and keeps nothing: many threads use one at once. The loop that calls it, and that sees whether
the pages go in a circle, is in ``paging``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from burler.errors import PagingError
from burler.http.paginator_links import LinkHeader, next_url
from burler.http.paginator_parts import shown
from burler.http.reply import Reply

if TYPE_CHECKING:
    from burler.http.request import Request

PagingFunction = Callable[["Request", Reply], "Request | str | Mapping[str, Any] | None"]


@runtime_checkable
class Paginator(Protocol):
    """What ``client.pages(paginator=)`` takes; a function ``(request, reply)`` will do, too."""

    def first(self, request: Request) -> Request:
        """The first request, from the one that the call describes."""

    def following(self, request: Request, reply: Reply) -> Request | None:
        """The request behind ``request``, which was answered with ``reply``; None behind the last page."""


@dataclass(frozen=True, slots=True)
class SinglePage:
    """One request; whatever links its reply has are not followed."""

    def first(self, request: Request) -> Request:
        """The request as it is."""
        return request

    def following(self, request: Request, reply: Reply) -> Request | None:
        """None."""
        return None


@dataclass(frozen=True, slots=True)
class CalledPaginator:
    """A function ``(request, reply)`` of the author's: it gives the next request, its URL, the params that change, or
    None behind the last page."""

    function: PagingFunction

    def first(self, request: Request) -> Request:
        """The request as it is."""
        return request

    def following(self, request: Request, reply: Reply) -> Request | None:
        """What the function says.

        Raises:
            PagingError: it gave something else; a URL that leads to another host.
        """
        from burler.http.request import Request

        found = self.function(request, reply)
        if found is None or isinstance(found, Request):
            return found
        if isinstance(found, str):
            return request.replace(path=next_url(found, reply), params=None)
        if isinstance(found, Mapping):
            return request.replace(params={**(request.params or {}), **found})
        raise PagingError(
            f"the paginator {getattr(self.function, '__name__', 'function')} gave {shown(found)}. It gives a Request, "
            "a URL, a dict of params that change, or None at the end."
        )


def coerce_paginator(given: Any) -> Paginator:
    """A paginator of what an author gives: one, or a function ``(request, reply)``; None follows ``Link`` headers.

    Raises:
        TypeError: neither.
    """
    if given is None:
        return LinkHeader()
    if isinstance(given, type):
        raise TypeError(f"paginator={given.__name__} is a class: write paginator={given.__name__}(...).")
    if isinstance(given, Paginator):
        return given
    if callable(given):
        return CalledPaginator(given)
    raise TypeError(
        f"paginator={given!r:.60} is none. Take LinkHeader(), NextUrl(...), Cursor(...), PageNumber(), Offset(...) of "
        "burler.http, or a function (request, reply)."
    )
