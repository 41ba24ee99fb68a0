"""The loop over pages: send, give the page, ask which request follows, and see when they go in a circle."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl, urlsplit

import msgspec

from burler.config.secrets import masked
from burler.context import running, spec_of
from burler.errors import HttpError, NotModified, PagingError, SourceError
from burler.http import unfollowed
from burler.http.masking import is_secret_name, mask_url
from burler.http.origins import joined
from burler.http.paginators import Paginator, PagingFunction, coerce_paginator
from burler.http.paging_signs import ListRead, turns_pages
from burler.http.reply import EmptyBody, Reply
from burler.pages import JsonPage, PageError, as_page, json_rows
from burler.paths import path_of

if TYPE_CHECKING:
    from burler.http.request import Request

_GLIMPSE = 100
_PAGE_WORDS = ("page", "cursor", "next", "continu", "offset", "after", "start")

RecordsPath = str | Sequence[str] | None


class Source(Protocol):
    """What pages are read from: a Client, or something else that sends requests."""

    @property
    def base_url(self) -> str:
        """What paths stand behind; "" if that is not known."""

    @property
    def records_path(self) -> RecordsPath:
        """The way to the rows; None: not said."""

    def send(self, request: Request, *, check: Any = None) -> Any:
        """The response of a request, with its body; ``check(response)`` raises ValueError for one that is none."""


def pages(
    source: Source,
    request: Request,
    *,
    paginator: Paginator | PagingFunction | None = None,
    records_path: RecordsPath = None,
) -> Iterator[JsonPage]:
    """The pages behind a request, each as the bytes that came, for a sync function to yield.

    Replies without a page (204, and statuses that were allowed) give none. A body that is no JSON is asked for again,
    like a reply that broke off. Each body is read whole before its page is given, so a loop that ends early leaves no
    connection behind.

    Args:
        paginator: which request follows; None follows ``Link`` headers, if there are any.
        records_path: the way to the rows in each body; None: the source's, and if that has none, the stream's.

    Raises:
        TypeError: a paginator that is none. ValueError: a path that is none.
        HttpError: a request that was not answered, from the page on that it was for.
        PagingError: the pages go in a circle, or one leads to another host.
    """
    way = _path(source, records_path)
    return (page for page, _ in _loop(source, request, coerce_paginator(paginator), way, said=paginator is not None))


def rows(
    source: Source,
    request: Request,
    *,
    paginator: Paginator | PagingFunction | None = None,
    records_path: RecordsPath = None,
) -> Iterator[dict[str, Any]]:
    """The rows of those pages as dicts, for who has to look into them; numbers with a fraction are Decimals.

    Args:
        paginator, records_path: see ``pages``.

    Raises:
        SourceError: a page that can't be read, behind the rows before the place. And see ``pages``.
    """
    way = _path(source, records_path)
    return _rows(_loop(source, request, coerce_paginator(paginator), way, said=paginator is not None))


def _rows(found: Iterator[tuple[JsonPage, str]]) -> Iterator[dict[str, Any]]:
    for page, where in found:
        if page.records_path is None:
            page = JsonPage(page.data, _path_of_stream())
        try:
            read = json_rows(page)
        except PageError as error:
            yield from error.rows
            raise SourceError(f"{where}: {masked(str(error))}.") from None
        yield from read


def _path(source: Source, given: RecordsPath) -> tuple[str, ...] | None:
    given = source.records_path if given is None else given
    return None if given is None else path_of(given)


def _path_of_stream() -> tuple[str, ...]:
    """``records_path`` of the stream that runs here; () if it has none, or where none runs."""
    run = running()
    spec = None if run is None else spec_of(run)
    return path_of(getattr(spec, "records_path", None) or ())


def _loop(
    source: Source, first: Request, paginator: Paginator, path: tuple[str, ...] | None, *, said: bool
) -> Iterator[tuple[JsonPage, str]]:
    """Pages, each with a word on where it came from. ``said``: the paginator is the author's own choice."""
    seen = _Seen(paginator, source.base_url)
    read = ListRead(first, params=_own_params(paginator), total=getattr(paginator, "total", None))
    request: Request | None = first
    number = 0
    while request is not None:
        number += 1
        where = f"{request.method} {request.endpoint or mask_url(request.path)}, page {number}"
        try:
            request = paginator.first(request) if number == 1 else request
            seen.request(request, number)
        except PagingError as error:
            raise PagingError(f"{where}: {masked(str(error))}") from None
        try:
            reply = _reply(source, request, _path_of_stream() if path is None else path)
        except NotModified:
            if number > 1:
                raise
            return
        except HttpError as error:
            raise _of_page(error, number) from None
        if reply.is_page:
            page = as_page(reply.content)
            yield (page if path is None else JsonPage(page.data, path)), where
        try:
            seen.reply(reply, number)
            following = paginator.following(request, reply)
        except PagingError as error:
            raise PagingError(f"{where}: {masked(str(error))}") from None
        if reply.is_page:
            read.add(reply)  # now: a paginator may have counted its rows
        if following is None:
            _ended(source, request, paginator, reply, read, said=said)
        request = following
        del reply


def _own_params(paginator: Paginator) -> list[str]:
    """The parameters that say which page, as the author has named them."""
    names = (getattr(paginator, name, None) for name in ("param", "offset_param"))
    return [name for name in names if isinstance(name, str)]


def _ended(source: Source, request: Request, paginator: Paginator, reply: Reply, read: ListRead, *, said: bool) -> None:
    """No page follows. Where the author names the page in the request, and no paginator, a loop of his own may ask for
    the next one."""
    if said or read.pages > 1 or not turns_pages(request):
        unfollowed.judge_end(source, request, paginator, reply, read)
    elif reply.is_page and (run := running()) is not None:
        unfollowed.note(run, source, request, reply)


def _of_page(error: HttpError, number: int) -> HttpError:
    """The error, with the page it happened at: its address may be one that nobody wrote."""
    if number > 1:
        first, *others = str(error).split("\n")
        said = f"{first.removesuffix('.')} (page {number}, to which the page before it led)."
        error.args = ("\n".join([said, *others]),)
    return error


def _reply(source: Source, request: Request, path: tuple[str, ...]) -> Reply:
    url = urlsplit(joined(source.base_url, request.path))
    origin = f"{url.scheme}://{url.netloc.rpartition('@')[2]}" if url.scheme else ""
    checked: list[Reply] = []

    def check(response: Any) -> None:
        reply = Reply(response, path, origin)
        if reply.is_page and not reply.is_json():
            raise ValueError("its body is no JSON") if reply.content.strip() else EmptyBody("its body is empty")
        checked[:] = [reply]

    response = source.send(request, check=check)
    if checked and checked[0].response is response:
        return checked[0]
    return Reply(response, path, origin)


class _Seen:
    """Sees when pages go in a circle: a request that was there before, or the same rows once more."""

    def __init__(self, paginator: Paginator, base_url: str) -> None:
        self._base_url = base_url
        self._requests: set[int] = set()  # 64 bits each: 100,000 pages are some megabytes
        self._may_repeat = getattr(paginator, "may_repeat", True)
        self._most_pages = getattr(paginator, "most_pages", None)
        self._pages: list[tuple[int, int]] = []  # the first and the last: number, digest of rows
        self._first: Request | None = None

    def request(self, request: Request, number: int) -> None:
        """Note a request that will be sent.

        Raises:
            PagingError: it was sent before; it is one too many.
        """
        digest = _digest(request, self._base_url)
        if digest in self._requests:
            raise PagingError(
                f"the pages go in a circle: {_changed(self._first, request)} was asked for before. Look at what the "
                "paginator takes from the reply, and whether the source looks at it."
            )
        if self._most_pages is not None and number > self._most_pages:
            raise PagingError(
                f"more than {self._most_pages:,} pages (most_pages). If there are so many, raise it; else the source "
                "never gives an empty page: say total_pages=, end_statuses=, or use another paginator."
            )
        self._requests.add(digest)
        self._first = self._first or request

    def reply(self, reply: Reply, number: int) -> None:
        """Note the rows that came.

        Raises:
            PagingError: they are those of the page before, or of the first.
        """
        if self._may_repeat or not reply.is_page:
            return
        try:
            count = reply.rows_found()
        except ValueError:
            return  # the paginator says so, if it wants to count
        if not count:
            return
        digest = reply.rows_digest()
        for before, known in self._pages:
            if digest == known:
                raise PagingError(
                    f"it holds the same rows as page {before}: does the source look at the number that is asked for? "
                    "If rows may be that equal, say may_repeat=True."
                )
        self._pages = [*self._pages[:1], (number, digest)]


def _digest(request: Request, base_url: str) -> int:
    """The same for requests that ask for the same, whatever the order of their params."""
    url = urlsplit(joined(base_url, request.path))
    query = parse_qsl(url.query, keep_blank_values=True)
    query += [(str(name), str(value)) for name, value in (request.params or {}).items() if value is not None]
    headers = sorted((str(name).lower(), str(value)) for name, value in (request.headers or {}).items())
    asked = [request.method.upper(), url.scheme, url.netloc, url.path, sorted(query), headers]
    text = repr(asked).encode(errors="backslashreplace") + _bytes_of(request.json) + repr(request.data).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def _bytes_of(body: Any) -> bytes:
    try:
        return msgspec.json.encode(body, order="deterministic")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr(body).encode(errors="backslashreplace")


def _changed(before: Request | None, request: Request) -> str:
    """What the paginator put into a request that was not in the first one, for a message: its token."""
    if before is not None and request.path != before.path:
        return mask_url(request.path)[: 2 * _GLIMPSE]
    parts = []
    for now, was in ((request.params, before and before.params), (request.headers, before and before.headers)):
        parts += [_pair(name, value) for name, value in (now or {}).items() if (was or {}).get(name) != value]
    if isinstance(request.json, Mapping) and request.json != (before and before.json):
        parts.append(f"the body {masked(_bytes_of(request.json).decode(errors='replace'))[:_GLIMPSE]}")
    return ", ".join(parts) or "the same request"


def _pair(name: str, value: Any) -> str:
    """A parameter; one that says how to go on is shown although it may be called a token."""
    hidden = is_secret_name(name) and not any(word in name.lower() for word in _PAGE_WORDS)
    return f"{name}=***" if hidden else f"{name}={masked(str(value))[:_GLIMPSE]}"
