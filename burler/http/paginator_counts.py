"""Paginators that count: page numbers, offsets, and pages up to the first empty one."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from burler.http.masking import mask_url
from burler.http.misspelt import options_named
from burler.http.paginator_parts import (
    Into,
    allowing,
    check_into,
    check_path,
    check_several,
    count_of,
    dotted,
    ended,
    put,
    total_of,
    where_it_begins,
)
from burler.numbers import is_count

if TYPE_CHECKING:
    from burler.http.paginators import Paginator, PagingFunction
    from burler.http.reply import Reply
    from burler.http.request import Request

Until = Literal["empty", "short"]

logger = logging.getLogger(__name__)

_MOST_PAGES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counting:
    """What page numbers and offsets have in common.

    Attributes:
        until: "empty": the first page without rows is the end. "short": one with fewer rows than were asked for is,
            which saves a request; only for sources that always fill their pages.
        into: "params", or "json" for the body of a POST: names with dots between them are a path there.
        end_statuses: statuses of a page behind the last one, such as 404.
        may_repeat: a page that has the same rows as the one before it, or as the first, is no error.
        most_pages: more are an error: no source is meant to be without an end.
    """

    until: Until = "empty"
    into: Into = "params"
    end_statuses: Collection[int] = ()
    may_repeat: bool = False
    most_pages: int = _MOST_PAGES

    def _check(self, who: str, *params: str | None) -> None:
        if self.until not in ("empty", "short"):
            raise ValueError(f"{who}: until={self.until!r:.60} must be 'empty' or 'short'.")
        if not is_count(self.most_pages, 1):
            raise ValueError(f"{who}: most_pages={self.most_pages!r:.60} must be 1 or more.")
        check_several(who, end_statuses=self.end_statuses)
        for param in params:
            if param is not None:
                check_into(param, self.into, who)

    def _is_end(self, count: int, size: int | None) -> bool:
        return count == 0 or (self.until == "short" and count < (size or 0))


@options_named
@dataclass(frozen=True, slots=True)
class PageNumber(_Counting):
    """Pages have numbers: ``PageNumber(size=100, size_param="per_page")`` asks for ``page=1``, ``page=2`` and so on. A
    number among the params of the call is where it begins.

    Attributes:
        param: what the source calls it.
        first_page: number of the first page.
        size: how many rows a page has at most; asked for if ``size_param`` is given, needed for ``until="short"``.
        size_param: what the source calls the size.
        total_pages: where a reply says how many pages there are (``meta.pages``, ``header:X-Total-Pages``). It is read
            anew from each reply; where it is not there, ``until`` decides.
    """

    param: str = "page"
    first_page: int = field(default=1, kw_only=True)
    size: int | None = field(default=None, kw_only=True)
    size_param: str | None = field(default=None, kw_only=True)
    total_pages: str | tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._check("PageNumber", self.param, self.size_param)
        if not is_count(self.first_page, 0):
            raise ValueError(f"PageNumber: first_page={self.first_page!r:.60} must be a whole number, 0 or more.")
        if self.size is None and (self.size_param is not None or self.until == "short"):
            raise ValueError("PageNumber: size_param and until='short' need size=, how many rows a full page has.")
        if self.size is not None and not is_count(self.size, 1):
            raise ValueError(f"PageNumber: size={self.size!r:.60} must be a whole number, 1 or more.")
        if self.total_pages is not None:
            check_path(self.total_pages, "PageNumber")

    def first(self, request: Request) -> Request:
        """The request with the number of its first page."""
        if self.size_param is not None:
            request = put(request, self.size_param, self.size, self.into)
        return put(request, self.param, self._number(request), self.into)

    def following(self, request: Request, reply: Reply) -> Request | None:
        """The request for the next number.

        Raises:
            PagingError: the rows can't be counted; the total is no number.
        """
        if ended(reply, self.end_statuses):
            return None
        number = self._number(request)
        total = total_of(reply, self.total_pages)
        if total is None:
            if self._is_end(count_of(reply, "PageNumber"), self.size):
                if self.total_pages is not None and number > self.first_page:
                    logger.warning(
                        "%s: page %d is taken for the end: it has no rows, and nothing at '%s'",
                        request.endpoint or mask_url(request.path),
                        number,
                        dotted(self.total_pages),
                    )
                return None
        elif number >= self.first_page + total - 1:
            return None
        return put(allowing(request, self.end_statuses), self.param, number + 1, self.into)

    def _number(self, request: Request) -> int:
        return where_it_begins(request, self.param, self.into, self.first_page, "PageNumber")


@options_named
@dataclass(frozen=True, slots=True)
class Offset(_Counting):
    """Rows are asked for by their place: ``Offset(100)`` asks for ``offset=0&limit=100``, then ``offset=100`` and so
    on. Each page begins behind the rows that came so far, so a source that gives fewer than it was asked for loses
    none. An offset among the params of the call is where it begins.

    Rows that are added or removed at the source meanwhile shift the others: some come twice, or not at all.

    Attributes:
        limit: how many rows to ask for.
        offset_param, limit_param: what the source calls them; ``limit_param=None`` is not asked for.
        total: where a reply says how many rows there are (``meta.total``). It is read anew from each reply; where it is
            not there, ``until`` decides.
    """

    limit: int
    offset_param: str = field(default="offset", kw_only=True)
    limit_param: str | None = field(default="limit", kw_only=True)
    total: str | tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._check("Offset", self.offset_param, self.limit_param)
        if not is_count(self.limit, 1):
            raise ValueError(f"Offset: limit={self.limit!r:.60} must be a whole number, 1 or more.")
        if self.total is not None:
            check_path(self.total, "Offset")

    def first(self, request: Request) -> Request:
        """The request with its first offset, and the limit."""
        if self.limit_param is not None:
            request = put(request, self.limit_param, self.limit, self.into)
        return put(request, self.offset_param, self._offset(request), self.into)

    def following(self, request: Request, reply: Reply) -> Request | None:
        """The request for the rows behind those that came.

        Raises:
            PagingError: the rows can't be counted; the total is no number.
        """
        if ended(reply, self.end_statuses):
            return None
        count = count_of(reply, "Offset")
        offset = self._offset(request) + count
        total = total_of(reply, self.total)
        if total is None:
            if self._is_end(count, self.limit):
                return None
        elif offset >= total or not count:
            return None
        return put(allowing(request, self.end_statuses), self.offset_param, offset, self.into)

    def _offset(self, request: Request) -> int:
        return where_it_begins(request, self.offset_param, self.into, 0, "Offset")


@options_named
@dataclass(frozen=True, slots=True)
class UntilEmpty:
    """The pages of another paginator up to the first one without rows: for sources that name a next page behind the
    last one, too, or whose totals count rows that they do not give. ``UntilEmpty()`` asks for page numbers.

    Attributes:
        paginator: which pages.
    """

    paginator: Paginator | PagingFunction | None = None

    def __post_init__(self) -> None:
        _ = self._inner  # what is none is said here

    def first(self, request: Request) -> Request:
        """The first request of the other paginator."""
        return self._inner.first(request)

    def following(self, request: Request, reply: Reply) -> Request | None:
        """That of the other paginator; None behind a page without rows.

        Raises:
            PagingError: the rows can't be counted.
        """
        if count_of(reply, "UntilEmpty") == 0:
            return None
        return self._inner.following(request, reply)

    @property
    def may_repeat(self) -> bool:
        """As the other paginator says."""
        return bool(getattr(self._inner, "may_repeat", True))

    @property
    def most_pages(self) -> int | None:
        """As the other paginator says."""
        return getattr(self._inner, "most_pages", None)

    @property
    def _inner(self) -> Paginator:
        from burler.http.paginators import coerce_paginator

        return PageNumber() if self.paginator is None else coerce_paginator(self.paginator)
