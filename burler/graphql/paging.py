"""Which variables ask for the next page, where a query is not paged by Relay's connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from burler.errors import DeclarationError, PagingError
from burler.numbers import is_count

Variables = dict[str, Any]


class Seen(Protocol):
    """What a page is judged by."""

    @property
    def rows(self) -> int:
        """The entries of the list that is paged: also those that are null, and those that hold the rows."""

    def find(self, path: str) -> Any:
        """What stands at a path of ``data``: names with dots between; None where nothing does."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The reply names the next page: ``Cursor("items_page.cursor", variable="cursor")``. Null, or nothing, ends it.

    Attributes:
        path: names under ``data``, as the reply has them.
        variable: the query's variable that takes it.
    """

    path: str
    variable: str = "cursor"

    def names(self) -> tuple[str, ...]:
        """The variables that are its own."""
        return (self.variable,)

    def first(self, given: Variables, size: int) -> Variables:
        """The variables of the first page."""
        return {}

    def following(self, now: Variables, seen: Seen, size: int) -> Variables | None:
        """The variables of the next page, None after the last one."""
        cursor = seen.find(self.path)
        if cursor is None or cursor == "":
            return None
        if isinstance(cursor, dict | list | bool):
            raise PagingError(f"'{self.path}' should be a cursor and is {type(cursor).__name__}")
        return {self.variable: cursor}


@dataclass(frozen=True, slots=True)
class Offset:
    """Variables count rows: ``Offset("offset", limit="limit")``, until a page is empty, or, with ``total``, until as
    many rows have come as the reply says there are.

    Attributes:
        variable: how many rows to pass over.
        limit: how many a page has; burler gives it the page size.
        total: names under ``data`` that lead to the number of all rows.
        until: "empty" (a page without rows is the last one), or "short" (one with fewer rows than asked for is, which
            saves a request, and loses rows where the server gives fewer than it is asked for).
    """

    variable: str = "offset"
    limit: str = "limit"
    total: str | None = None
    until: str = "empty"

    def __post_init__(self) -> None:
        _check_until("Offset", self.until)

    def names(self) -> tuple[str, ...]:
        """The variables that are its own."""
        return self.variable, self.limit

    def first(self, given: Variables, size: int) -> Variables:
        """The variables of the first page."""
        return {self.variable: given.get(self.variable) or 0, self.limit: size}

    def following(self, now: Variables, seen: Seen, size: int) -> Variables | None:
        """The variables of the next page, None after the last one."""
        done = now[self.variable] + seen.rows
        if self.total is not None:
            total = _count(seen, self.total)
            if done >= total:
                return None
            if not seen.rows:
                raise PagingError(
                    f"'{self.total}' says that there are {total} rows, and none come after {done}.\n"
                    "Many servers give so many and no more: ask for parts, by a date for example. If it counts rows "
                    "that nobody gets, leave total= out"
                )
        elif not seen.rows or (self.until == "short" and seen.rows < now[self.limit]):
            return None
        return {self.variable: done, self.limit: size}


@dataclass(frozen=True, slots=True)
class PageNumber:
    """A variable counts pages: ``PageNumber("page", size="perPage")``.

    Attributes:
        variable: the number of the page.
        first_page: the number of the first one.
        size: the variable of the page size, which stays the same for all pages; None if the query has none.
        more: names under ``data`` that lead to a boolean that says whether there is another page.
        total_pages: names that lead to the number of pages.
        until: without these two: "empty" (a page without rows is the last one) or "short" (one with fewer than asked
            for is).
    """

    variable: str = "page"
    first_page: int = 1
    size: str | None = None
    more: str | None = None
    total_pages: str | None = None
    until: str = "empty"

    def __post_init__(self) -> None:
        _check_until("PageNumber", self.until)
        if not is_count(self.first_page, 0):
            raise DeclarationError(
                f"PageNumber: first_page is {self.first_page!r:.40}; it is a whole number, 0 or more."
            )
        if self.until == "short" and self.size is None:
            raise DeclarationError("PageNumber(until='short') needs size=, the variable of the page size.")

    def names(self) -> tuple[str, ...]:
        """The variables that are its own."""
        return (self.variable,) if self.size is None else (self.variable, self.size)

    def first(self, given: Variables, size: int) -> Variables:
        """The variables of the first page."""
        sizes = {} if self.size is None else {self.size: size}
        given_page = given.get(self.variable)
        return {self.variable: self.first_page if given_page is None else given_page, **sizes}

    def following(self, now: Variables, seen: Seen, size: int) -> Variables | None:
        """The variables of the next page, None after the last one."""
        number = now[self.variable]
        if self.more is not None:
            more = seen.find(self.more)
            if not isinstance(more, bool):
                raise PagingError(f"'{self.more}' should say true or false and is {more!r:.40}")
            if not more:
                return None
        elif self.total_pages is not None:
            if number - self.first_page + 1 >= _count(seen, self.total_pages):
                return None
        elif not seen.rows or (self.until == "short" and seen.rows < now[self.size or ""]):
            return None
        return {self.variable: number + 1}


Paging = Cursor | Offset | PageNumber
WAYS = (Cursor, Offset, PageNumber)
Own = Callable[[Mapping[str, Any], Any], Mapping[str, Any] | None]


def _check_until(what: str, until: str) -> None:
    if until not in ("short", "empty"):
        raise DeclarationError(f"{what}: until is {until!r:.40}; it is 'short' or 'empty'.")


def _count(seen: Seen, path: str) -> int:
    number = seen.find(path)
    if isinstance(number, bool) or not isinstance(number, int):
        raise PagingError(f"'{path}' should be a number of rows or pages and is {number!r:.40}")
    return number
