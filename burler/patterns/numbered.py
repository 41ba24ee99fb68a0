"""Numbered pages and offsets, with guards against sources that don't look at the number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from burler.errors import BurlerError
from burler.numbers import is_count
from burler.patterns.items import count_rows, is_page

_MOST_PAGES = 100_000
Page = TypeVar("Page")


def pages(
    fetch: Callable[[int], Page | None], first: int = 1, *, most_pages: int = _MOST_PAGES, may_repeat: bool = False
) -> Iterator[Page]:
    """``yield from pages(lambda number: client.get("/orders", page=number).json())``: page after page, up to the first
    one that is empty or None.

    Args:
        fetch: gives the rows of a page as a list; bytes of JSON or an Arrow table work as well. None says that there is
            no such page.
        most_pages: more are an error: no source is meant to be without an end.
        may_repeat: pages that are like the one before them, or like the first, are no error.

    Raises:
        BurlerError: a page that repeats itself; too many pages; something that is no page.
    """
    guard = _Guard("page", most_pages, may_repeat)
    return _pages(fetch, first, guard)


def _pages(fetch: Callable[[int], Page | None], number: int, guard: _Guard) -> Iterator[Page]:
    while True:
        page = fetch(number)
        if page is None or not guard.rows(page, number):
            return
        yield page
        number += 1


def offsets(
    fetch: Callable[[int, int], Page | None],
    size: int = 1000,
    *,
    most_pages: int = _MOST_PAGES,
    may_repeat: bool = False,
) -> Iterator[Page]:
    """``yield from offsets(lambda offset, size: client.get("/orders", skip=offset, take=size).json())``: page after
    page, up to the first one that is empty or None. Each begins behind the rows that came so far, not ``size`` further
    on: a source that gives fewer at a time than it is asked for would lose rows otherwise.

    Args:
        fetch: called with the offset and the size, gives the rows of a page as a list (or an Arrow table).
        size: how many rows to ask for.
        most_pages, may_repeat: see ``pages``.

    Raises:
        BurlerError: a page that repeats itself; too many pages; something that is no page, or bytes.
    """
    if not is_count(size, 1):
        raise BurlerError(f"offsets(): size is {size!r:.60}; it must be 1 or more.")
    return _offsets(fetch, size, _Guard("offset", most_pages, may_repeat))


def _offsets(fetch: Callable[[int, int], Page | None], size: int, guard: _Guard) -> Iterator[Page]:
    offset = 0
    while True:
        page = fetch(offset, size)
        if page is None:
            return
        if count_rows(page) is None:
            raise BurlerError("offsets() counts rows, which it can't in bytes. Give reply.json(), a list of rows.")
        count = guard.rows(page, offset)
        if not count:
            return
        yield page
        offset += count


class _Guard:
    """Looks at each page: whether it is one, is empty, is one too many, or has been there before."""

    def __init__(self, what: str, most_pages: int, may_repeat: bool) -> None:
        self._what = what
        self._most = most_pages
        self._may_repeat = may_repeat
        self._count = 0
        self._first: tuple[int, Any] | None = None
        self._last: tuple[int, Any] | None = None

    def rows(self, page: Any, number: int) -> int:
        """How many rows a page has, 0 if it is the end; 1 or more for bytes, of which that is not known.

        Raises:
            BurlerError: see ``pages``.
        """
        here = f"{self._what} {number}"
        if not is_page(page):
            kind = type(page).__name__
            raise BurlerError(f"{here}: a page is a list of rows, not a value of type {kind}; list(...) makes one.")
        count = count_rows(page)
        if count is None:
            count = 0 if bytes(getattr(page, "data", page)).strip() in (b"", b"[]") else 1
        if not count:
            return 0
        self._count += 1
        if self._count > self._most:
            raise BurlerError(
                f"{here} would be more than {self._most} pages (most_pages). If there are so many, raise it; else the "
                "source never gives an empty page: return None at its end."
            )
        for before in () if self._may_repeat else (self._last, self._first):
            if before is not None and _same(before[1], page):
                raise BurlerError(
                    f"{here} holds the same as {self._what} {before[0]}: does the request carry the number, and does "
                    "the source look at it? Return None at the end, or say may_repeat=True."
                )
        self._last = (number, page)
        self._first = self._first or self._last
        return count


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
