"""What is said where one page was read and there may be more of them."""

from __future__ import annotations

import difflib
import logging
import re
from typing import TYPE_CHECKING, Any

from burler.config.watched import clean
from burler.declare.records_path import path_of
from burler.http.masking import mask_url
from burler.http.paginator_links import LinkHeader
from burler.http.paging_signs import Place, names_more

if TYPE_CHECKING:
    from burler.http.paginators import Paginator
    from burler.http.reply import Reply
    from burler.http.request import Request

logger = logging.getLogger(__name__)

_HEADER = "header:"
_NOTHING = (b"", b"null", b'""', b"false", b"[]", b"{}")
_SIMILAR = 0.8  # 'nxt' and 'next' are; 'text' and 'next' are not
_MOST_FORMS = 1000
_MOST_OF_A_FORM = 10  # endpoints; there may be one for each of a thousand parents
_told: dict[tuple[str, ...], set[str]] = {}


def tell_of_more(base_url: str, request: Request, paginator: Paginator | None, reply: Reply) -> None:
    """Say where a first reply leads to no second page, although it may have one: a full table would be cut to its first
    page. Once for an endpoint of a source.

    Args:
        paginator: which the author named; None where it was the usual one.
    """
    if not reply.is_page:
        return
    path = getattr(paginator, "path", None)
    if paginator is None or isinstance(paginator, LinkHeader):
        _of_links(base_url, request, reply)
    elif path is not None:
        _of_a_place(base_url, request, reply, path, getattr(paginator, "more", None))


def _of_links(base_url: str, request: Request, reply: Reply) -> None:
    """No ``Link`` header leads on, perhaps because nobody knew that there are pages."""
    place = names_more(reply)
    if place and _is_new((base_url, "", *place), request):
        logger.warning(
            "%s: one page was read, though '%s' of the reply says that there are more. Say paginator=%s, "
            "or paginator=burler.http.SinglePage() if it is all",
            _named(request),
            _dotted(place),
            f"burler.http.NextUrl('{_dotted(place)}')" if _is_url(reply.find(place)) else "...",
        )


def _is_url(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://", "/", "?"))


def _of_a_place(base_url: str, request: Request, reply: Reply, path: Any, more_path: Any) -> None:
    """The paginator looks at one place of the reply, and it names no page.

    A place that is not there may be misspelt, or the source leaves it out behind its last page. It is a warning where
    another field names more pages or has nearly its name, or where there are rows and the object that should hold it.
    """
    own = path if isinstance(path, str) else ".".join(path)
    besides = [path_of(one) for one in (path, more_path) if one is not None and not _is_header(one)]
    if more_path is not None and str(reply.find(more_path)).lower() in ("false", "0"):
        return
    missing, there, nested = _looked_for(path, reply)
    more = names_more(reply, besides)
    if not missing and not more:
        return
    others = [name for name in there if "prev" not in name.lower()]
    similar = next(iter(difflib.get_close_matches(missing, others, n=1, cutoff=_SIMILAR)), "") if missing else ""
    near = bool(similar) and there[similar]
    level = logging.WARNING if more or near or (nested and _has_rows(reply)) else logging.INFO
    if _is_new((base_url, own, str(level), *list(there)[:10]), request):
        logger.log(
            level,
            "%s: one page; nothing at '%s' of the reply names a next one%s. Names there: %s",
            _named(request),
            own,
            f", though '{_dotted(more)}' says that there are more" if more else "",
            clean(", ".join(f"'{name:.40}'" for name in list(there)[:10])) or "none",
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


def _is_header(path: Any) -> bool:
    return isinstance(path, str) and path.lower().startswith(_HEADER)


def _has_rows(reply: Reply) -> bool:
    try:
        return reply.rows_found() > 0
    except ValueError:
        return True


def _named(request: Request) -> str:
    return f"{request.method} {request.endpoint or mask_url(request.path)}"


def _dotted(place: Place) -> str:
    return clean(".".join(place))[:100]


def _is_new(form: tuple[str, ...], request: Request) -> bool:
    """Whether this was not said yet of an endpoint. Without a name for it, paths with numbers in them are alike."""
    endpoint = request.endpoint or re.sub(r"[^/]*\d[^/]*", "*", request.path.partition("?")[0])
    if form not in _told and len(_told) >= _MOST_FORMS:
        return False
    endpoints = _told.setdefault(form, set())
    if endpoint in endpoints or len(endpoints) >= _MOST_OF_A_FORM:
        return False
    endpoints.add(endpoint)
    return True
