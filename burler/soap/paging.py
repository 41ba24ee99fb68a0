"""From one page of a SOAP operation to the next: which parameters, and when it ends."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from burler.errors import DeclarationError, PagingError
from burler.numbers import is_count


class Paging:
    """The rules of one reading of pages; see ``Client.pages``.

    Raises:
        DeclarationError: options that don't go together.
    """

    def __init__(
        self,
        operation: str,
        page_param: str | None,
        next_page: str | None,
        following: Callable[..., Any] | None,
        until: str,
        page_size: int | None,
    ) -> None:
        place = f"pages('{operation}')"
        if following is not None and (page_param is not None or next_page is not None):
            raise DeclarationError(f"{place}: following= stands alone, without page_param= and next_page=.")
        if next_page is not None and page_param is None:
            raise DeclarationError(f"{place}: next_page= needs page_param=: which parameter does the value go to?")
        if until not in ("empty", "short"):
            raise DeclarationError(f"{place}: until='{until}' is unknown. Known: 'empty', 'short'.")
        if until == "short" and page_size is None:
            raise DeclarationError(f"{place}: until='short' needs page_size=: fewer rows than what?")
        if page_size is not None and not is_count(page_size, 1):
            raise DeclarationError(f"{place}: page_size is {page_size!r:.40}; it is a whole number, 1 or more.")
        self._operation = operation
        self._param = page_param
        self._follows = next_page is not None
        self._short = page_size if until == "short" else None
        self._seen: set[bytes] = set()
        self._pages = 0

    def note(self, params: Mapping[str, Any]) -> None:
        """Remember a call.

        Raises:
            PagingError: it was made before: pages go in a circle.
        """
        self._pages += 1
        mark = hashlib.sha256(repr(sorted_deep(params)).encode(errors="replace")).digest()
        if mark in self._seen:
            token = None if self._param is None else value_of(params, self._param)
            raise PagingError(
                f"SOAP operation '{self._operation}': page {self._pages} is one that was there before "
                f"({self._param or 'params'} = {token!r:.60}), so pages go in a circle.\n"
                "  Look at what the service says of the next page."
            )
        self._seen.add(mark)

    def next(
        self, params: Mapping[str, Any], value: Any, count: int, said: Any
    ) -> tuple[Mapping[str, Any] | None, Any]:
        """Parameters and page of the next call; None at the end.

        Args:
            params, value: of the last call.
            count: rows that it gave.
            said: what the answer says of the next page.
        """
        if self._param is None:
            return None, value
        if self._follows:
            if said is None or said is False or said == "":
                return None, value
            following = self._number(value) if said is True else said
        elif not count or (self._short is not None and count < self._short):
            return None, value
        else:
            following = self._number(value)
        return with_param(params, self._param, following), following

    def _number(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise PagingError(
                f"SOAP operation '{self._operation}': page {value!r:.60} is no number, so there is none behind it.\n"
                "  Say with next_page= or following= which one is next."
            )
        return value + 1


def with_param(params: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Parameters with one set; dots in its name lead into others."""
    first, _, rest = name.partition(".")
    inner = params.get(first)
    if rest:
        value = with_param(inner if isinstance(inner, Mapping) else {}, rest, value)
    return {**params, first: value}


def value_of(params: Mapping[str, Any], name: str) -> Any:
    """The parameter of a name with dots; None where it is not there."""
    value: Any = params
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def sorted_deep(value: Any) -> Any:
    """A value in which the order of names makes no difference."""
    if isinstance(value, Mapping):
        return sorted((str(name), sorted_deep(one)) for name, one in value.items())
    return value
