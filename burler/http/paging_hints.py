"""What is said, and what follows, where the reading of a list has come to its end and there may be more of it."""

from __future__ import annotations

import contextlib
import difflib
import logging
import re
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.config.watched import clean
from burler.context import running
from burler.declare.records_path import path_of
from burler.http.masking import mask_url
from burler.http.paginator_counts import Offset, PageNumber, UntilEmpty
from burler.http.paginator_cursor import Cursor
from burler.http.paginator_links import LinkHeader, NextUrl
from burler.http.paginators import SinglePage
from burler.http.paging_signs import ListRead, Place, Sign, rows_in

if TYPE_CHECKING:
    from burler.http.paginators import Paginator
    from burler.http.reply import Reply
    from burler.http.request import Request

logger = logging.getLogger(__name__)

_OURS = (LinkHeader, NextUrl, Cursor, PageNumber, Offset)
_HEADER = "header:"
_NOTHING = (b"", b"null", b'""', b"false", b"[]", b"{}")
_SIMILAR = 0.8  # 'nxt' and 'next' are; 'text' and 'next' are not
_MOST_FORMS = 1000
_MOST_OF_A_FORM = 10  # endpoints; there may be one for each of a thousand parents
_OUTSIDE: dict[int, Any] = {}  # what was said outside of runs


def judge_end(source: Any, request: Request, paginator: Paginator, reply: Reply, read: ListRead) -> None:
    """A loop has come to its end: say so where it may have been cut, and tell the running stream. Once for an endpoint
    of a client in a run. Not where a paginator of the author's own may stop on purpose.

    Args:
        request, reply: the last ones.
    """
    inner = paginator._inner if isinstance(paginator, UntilEmpty) else paginator
    run = running()
    if isinstance(inner, SinglePage) or (run is not None and not run._reads_all and not isinstance(inner, _OURS)):
        return
    path, more_path = getattr(inner, "path", None), getattr(inner, "more", None)
    if more_path is not None and str(reply.find(more_path)).lower() in ("false", "0"):
        return
    besides = [_place(one) for one in (path, more_path, getattr(inner, "total_pages", None)) if one is not None]
    backwards = "prev" in str(getattr(inner, "rel", path)).lower()
    if inner is not paginator and read.pages > 1 and rows_in(reply) == 0:
        return
    signs = read.more(reply, besides, totals=inner is paginator)
    sign = next((one for one in signs if not (one.names_a_page and (backwards or one.repeats(request)))), None)
    if read.pages == 1 and path is not None and reply.is_page:
        _of_a_place(source, request, reply, path, sign, read)
    elif sign is not None and _is_new(source, request, ("", *sign.place)):
        said_so = _says(sign, reply, read), _cure(sign, read, counts=isinstance(inner, PageNumber | Offset))
        logger.warning("%s: %s, though %s. %s", _named(request), _pages(read.pages), *said_so)
    if sign is not None:
        _tell_run(request, _says(sign, reply, read))


@dataclass(frozen=True, slots=True)
class Unread:
    """What is left of a list, for a message: ``why`` says so, ``cure`` names a paginator. The reply is not kept."""

    form: tuple[str, ...]
    pages: int
    why: str
    cure: str


def unread_of(request: Request, sign: Sign, reply: Reply, read: ListRead) -> Unread:
    """What a sign says of a list that an author asks for request by request."""
    return Unread(("requests", *sign.place), read.pages, _says(sign, reply, read), f"paginator={_paginator(sign)}")


def tell_unread(source: Any, request: Request, unread: Unread) -> None:
    """The same of such a list, when its function has come to its end and nobody has asked for what is left."""
    if _is_new(source, request, unread.form):
        logger.warning(
            "%s: %s, though %s, and nobody asked for the rest. Read it with client.pages or client.rows, and %s; or "
            "paginator=burler.http.SinglePage() if it is all",
            _named(request),
            _pages(unread.pages),
            unread.why,
            unread.cure,
        )
    _tell_run(request, unread.why)


def _tell_run(request: Request, why: str) -> None:
    """The stream that runs here may not be whole."""
    run = running()
    if run is not None and not run.is_in_hook:
        run.may_be_incomplete(f"{_named(request)}: {why}")


def _pages(count: int) -> str:
    return "one page was read" if count == 1 else f"{count:,} pages were read"


def _says(sign: Sign, reply: Reply, read: ListRead) -> str:
    came = _came(sign, reply, read)
    return f"{_where(sign)}{'' if sign.header else ' of the reply'} says that there are more{came and f': {came}'}"


def _where(sign: Sign) -> str:
    return f"the header '{clean(sign.header)[:100]}'" if sign.header else f"'{_dotted(sign.place)}'"


def _came(sign: Sign, reply: Reply, read: ListRead) -> str:
    """``100 of 238 rows came``; "" where nobody knows how many did."""
    rows = read.rows
    if rows is None and read.pages == 1:
        rows = rows_in(reply)
    if rows is None:
        return ""
    if sign.total is not None:
        return f"{rows:,} of {sign.total:,} rows came"
    return f"{rows:,} row{'' if rows == 1 else 's'} came"


def _cure(sign: Sign, read: ListRead, *, counts: bool = False) -> str:
    """What the author can do. ``counts``: the paginator goes on until a page is empty, so it did not miss the next."""
    if read.pages == 1 and not counts:
        return f"Say paginator={_paginator(sign)}, or paginator=burler.http.SinglePage() if it is all"
    if sign.total is None:
        return f"Look at what ends its pages, or say paginator={_paginator(sign)}"
    return (
        "Look at what ends its pages. If the source counts rows that it does not give, put "
        "burler.http.UntilEmpty(...) around your paginator"
    )


def _paginator(sign: Sign) -> str:
    """The one that follows a sign."""
    header = sign.header.lower()
    if header == "link":
        return "burler.http.LinkHeader()"
    if header and sign.names_a_page:
        return f"burler.http.Cursor('header:{sign.header}', param='{'page' if 'page' in header else '...'}')"
    return f"burler.http.NextUrl('{_dotted(sign.place)}')" if sign.url and isinstance(sign.value, str) else "..."


def _of_a_place(source: Any, request: Request, reply: Reply, path: Any, sign: Sign | None, read: ListRead) -> None:
    """The paginator looks at one place of the reply, and it names no page.

    A place that is not there may be misspelt, or the source leaves it out behind its last page. It is a warning where
    something else names more pages or has nearly its name, or where there are rows and the object that should hold it.
    """
    own = path if isinstance(path, str) else ".".join(path)
    missing, there, nested = _looked_for(path, reply)
    if not missing and sign is None:
        return
    others = [name for name in there if "prev" not in name.lower()]
    similar = next(iter(difflib.get_close_matches(missing, others, n=1, cutoff=_SIMILAR)), "") if missing else ""
    near = bool(similar) and there[similar]
    level = logging.WARNING if sign or near or (nested and rows_in(reply) != 0) else logging.INFO
    if _is_new(source, request, (own, str(level), *list(there)[:10])):
        names = clean(", ".join(f"'{name:.40}'" for name in list(there)[:10])) or "none"
        logger.log(
            level,
            "%s: one page; nothing at '%s' of the reply names a next one%s. Names there: %s%s",
            _named(request),
            own,
            "" if sign is None else f", though {_where(sign)} says that there are more",
            names,
            "" if sign is None else f". {'. '.join(filter(None, (_came(sign, reply, read), _cure(sign, read))))}",
        )


def _looked_for(path: Any, reply: Reply) -> tuple[str, dict[str, bool], bool]:
    """The name that is missing on a way ("": none is), the names that are there and whether they have a value, and
    whether these are of an object in the body and not of the body itself."""
    if _is_header(path):
        name = path[len(_HEADER) :].strip()
        there = {key.lower(): bool(value) for key, value in reply.headers.items()}
        return ("" if name.lower() in there else name.lower()), there, False
    names = path_of(path)
    way, found = reply.names_at(names)
    there = {name: reply.begins_at((*way, name)) not in _NOTHING for name in found}
    missing = len(way) < len(names) and names[len(way)] not in there
    return (names[len(way)] if missing else ""), there, bool(way)


def _place(path: Any) -> Place:
    return (_HEADER + path[len(_HEADER) :].strip(),) if _is_header(path) else path_of(path)


def _is_header(path: Any) -> bool:
    return isinstance(path, str) and path.lower().startswith(_HEADER)


def _named(request: Request) -> str:
    return f"{request.method} {request.endpoint or mask_url(request.path)}"


def _dotted(place: Place) -> str:
    return clean(".".join(place))[:100]


def _is_new(source: Any, request: Request, form: tuple[str, ...]) -> bool:
    """Whether this was not said yet of an endpoint of a client in this run. Without a name for it, paths with numbers
    in them are alike."""
    run = running()
    client = getattr(source, "owner", None) or getattr(source, "session", source)  # others of its settings share it
    told = _told_of(client, _OUTSIDE if run is None else run._told)
    endpoint = request.endpoint or re.sub(r"[^/]*\d[^/]*", "*", request.path.partition("?")[0])
    if form not in told and len(told) >= _MOST_FORMS:
        return False
    endpoints = told.setdefault(form, set())
    if endpoint in endpoints or len(endpoints) >= _MOST_OF_A_FORM:
        return False
    endpoints.add(endpoint)
    return True


def _told_of(owner: Any, told: dict[int, Any]) -> dict[tuple[str, ...], set[str]]:
    """What was said of a client. It goes with the client: another one may get its number."""
    number = id(owner)
    if number not in told:
        with contextlib.suppress(TypeError):  # some objects can't be watched
            weakref.finalize(owner, told.pop, number, None).atexit = False
        told[number] = {}
    found: dict[tuple[str, ...], set[str]] = told[number]
    return found
