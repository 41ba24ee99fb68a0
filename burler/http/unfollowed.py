"""Lists of which more was there than was read: what is said where the reading of one has come to its end, and what the
running stream is told.

``judge_end`` is for loops of ``client.pages``. Lists that an author asks for request by request (``client.json``,
``client.get``) are noted as their replies come: a loop of the author's own goes on with the next page, and whatever
else is asked for at the same path, or at the address that a reply named, is taken for that. What nobody has asked for
when the function has come to its end may be missing.
"""

from __future__ import annotations

import contextlib
import enum
import logging
import re
import threading
import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from burler.config.secrets import masked
from burler.context import StreamRun, call_of, running, spec_of
from burler.http.masking import mask_url
from burler.http.origins import joined
from burler.http.paginator_counts import Offset, PageNumber, UntilEmpty
from burler.http.paginator_cursor import Cursor
from burler.http.paginator_links import LinkHeader, NextUrl
from burler.http.paginators import SinglePage
from burler.http.paging_signs import (
    ListRead,
    Place,
    Sign,
    asks_for_one,
    is_count_or_page,
    offset_in,
    rows_before,
    rows_in,
    rows_place,
    signs_in,
    size_asked,
    turns_pages,
)
from burler.http.reply import Reply
from burler.paths import path_of
from burler.singer.bookmark_values import comparable
from burler.singer.metadata import FULL_TABLE
from burler.suggest import nearest

if TYPE_CHECKING:
    import requests

    from burler.http.paginators import Paginator
    from burler.http.request import Request

logger = logging.getLogger(__name__)

Key = tuple[str, str]

_OURS = (LinkHeader, NextUrl, Cursor, PageNumber, Offset)
_HEADER = "header:"
_NOTHING = (b"", b"null", b'""', b"false", b"[]", b"{}")
_SIMILAR = 0.8  # 'nxt' and 'next' are; 'text' and 'next' are not
_MOST_FORMS = 1000
_MOST_OF_A_FORM = 10  # endpoints; there may be one for each of a thousand parents
_AGAIN_SECONDS = 3600  # in a tail
_OUTSIDE: dict[int, Any] = {}  # what was said outside of runs
_MOST = 10_000  # lists of one call that are not read to their end
_OBJECTS = re.compile(rb"\[\s*[{\[]")
_IDS = frozenset(("id", "_id", "uuid", "guid"))


# Where a loop of pages ends


def judge_end(source: Any, request: Request, paginator: Paginator, reply: Reply, read: ListRead) -> None:
    """A loop has come to its end: say so where it may have been cut, and tell the running stream. Once for an endpoint
    of a client in a run. A paginator of the author's own may stop on purpose where a run goes on from a bookmark.

    Args:
        request, reply: the last ones.
    """
    inner = paginator._inner if isinstance(paginator, UntilEmpty) else paginator
    run = running()
    status = reply.response.status_code
    if status >= 400 and read.pages and status not in getattr(inner, "end_statuses", ()):
        why = f"the page that the last one led to answered {status}, which allow_statuses lets pass"
        if _is_new(source, request, ("status", str(status))):
            cure = f"If such a page is the end, say end_statuses=({status},) of your paginator; else let it be an error"
            logger.warning("%s: %s, and %s. %s", _named(request), _pages(read.pages), why, cure)
        _tell_run(request, why)
        return
    may_stop = run is not None and not isinstance(inner, (SinglePage, *_OURS))
    if run is not None and may_stop and not _is_judged(run):
        return
    path, more_path = getattr(inner, "path", None), getattr(inner, "more", None)
    besides = [_place(one) for one in (path, more_path, getattr(inner, "total_pages", None)) if one is not None]
    backwards = "prev" in str(getattr(inner, "rel", path)).lower()
    is_last = isinstance(inner, SinglePage) or (inner is not paginator and read.pages > 1 and rows_in(reply) == 0)
    ended = more_path is not None and str(reply.find(more_path)).lower() in ("false", "0")
    size = getattr(inner, "size", None) or getattr(inner, "limit", None) or size_asked(request)
    signs = read.more(reply, besides, totals=inner is paginator, size=size, ended=ended)
    sign = next((one for one in signs if one.is_null or not (is_last or _is_blind(one, request, backwards))), None)
    left = _left(run, reply) if run is not None and may_stop and sign is not None else _Left.NEEDED
    if left is _Left.NOTHING_NEW:
        return
    if read.pages == 1 and path is not None and reply.is_page and not ended and not (sign and sign.is_null):
        if _of_a_place(source, request, reply, inner, sign, read):
            _tell_run(request, f"nothing stands at '{_dotted(path_of(path))}', and rows came")
    elif sign is not None and _is_new(source, request, ("", *sign.place)):
        said_so = _says(sign, reply, read), _cure(sign, read, counts=isinstance(inner, PageNumber | Offset))
        logger.warning("%s: %s, though %s. %s", _named(request), _pages(read.pages), *said_so)
    if sign is not None and left is _Left.NEEDED:
        _tell_run(request, _says(sign, reply, read))


def _is_blind(sign: Sign, request: Request, backwards: bool) -> bool:
    return sign.names_a_page and (backwards or sign.repeats(request))


# Lists that an author asks for request by request


@dataclass(frozen=True, slots=True)
class _Unread:
    """What is left of a list, for a message. The reply is not kept.

    Attributes:
        holds: whether the bookmark would pass what is left.
    """

    sign: Sign
    says: str
    pages: int
    holds: bool


class _List:
    """One list: how much of it was read, and what is said to be left."""

    def __init__(self, source: Any, request: Request) -> None:
        self.source, self.request = source, request
        self.read = ListRead(request)
        self.way: Place = ()
        self.unread: _Unread | None = None
        self.asked: _Unread | None = None  # what was unread when the request was sent that is on its way
        self.parts: list[tuple[int, int, int | None]] = []

    def note_part(self, request: Request, sign: Sign | None) -> None:
        """Where a reply began, by the number of rows before it, and where the next one does, as the reply says."""
        begin, count = rows_before(request), self.read.last
        if begin is None or count is None or len(self.parts) >= _MOST:
            return
        following = None
        if sign is not None and sign.names_a_page:
            size = size_asked(request)
            following = offset_in(sign.url) or (begin + count if size is not None and count < size else None)
        self.parts.append((begin, count, following))

    @property
    def hole(self) -> tuple[int, int] | None:
        """Rows that were passed over: where the source said that the next page begins, and where the next one began
        that was read. Sources count from 0 or from 1."""
        begins = {begin for begin, _count, _following in self.parts}
        for _begin, _count, following in self.parts:
            if following is not None and not begins & {following, following + 1}:
                behind = [begin for begin, count, _following in self.parts if begin > following and count]
                if behind:
                    return following, min(behind)
        return None


class Unfollowed:
    """The lists of one call of a function that have more than was read; called when it has come to its end."""

    def __init__(self) -> None:
        self.lists: dict[Key, _List] = {}
        self.unchanged: list[tuple[Any, Request]] = []
        with _lock:
            _all.add(self)

    def __call__(self) -> None:
        """Tell what nobody has asked for, and which rows did not come since they have not changed."""
        for one in dict.fromkeys(self.lists.values()):
            if one.unread is not None:
                _tell_unread(one.source, one.request, one.unread)
            elif one.hole is not None:
                _tell_hole(one)
        run = running()
        if run is None or call_of(run).is_unchanged or not (run._in_block or run.replication_method == FULL_TABLE):
            return
        for source, request in self.unchanged:
            why = "answered 304 (nothing has changed), and its rows did not come"
            if _is_new(source, request, ("304",)):
                cure = "Say stream.not_modified() if no rows come, or ask with client.conditional"
                logger.warning("%s: %s. %s", _named(request), why, cure)
            _tell_run(request, why)


_lock = threading.Lock()
_all: weakref.WeakSet[Unfollowed] = weakref.WeakSet()


def asked(source: Any, request: Request) -> None:
    """A request is on its way: the list that it belongs to goes on. So does one of any stream, where an author's own
    thread asks: nobody knows for which."""
    run = running()
    if run is not None and (Unfollowed not in call_of(run).at_end or run.is_in_hook):
        return
    if request.method == "HEAD" or (run is None and not _all):
        return
    key = _key(joined(source.base_url, request.path))
    if run is not None:
        _goes_on(call_of(run).at_end[Unfollowed], key)  # type: ignore[arg-type]
        return
    with _lock:
        every = list(_all)
    for one in every:
        found = _goes_on(one, key)
        if found is not None:
            found.read.rows = None  # what comes of it is not seen here


def _goes_on(unfollowed: Unfollowed, key: Key) -> _List | None:
    found = unfollowed.lists.get(key)
    if found is not None:
        found.asked, found.unread = found.unread, None
    return found


def answered(source: Any, request: Request, response: requests.Response, records_path: Place | None = None) -> None:
    """The reply to a request of an author's own has come: note it if it says that there is more.

    Args:
        records_path: the way to its rows, where the request says it; None: the source's, or the stream's.
    """
    run = running()
    if run is None or request.method not in ("GET", "POST") or run.is_in_hook:
        return
    if response.status_code == 304 and len(_of(run).unchanged) < _MOST:
        _of(run).unchanged.append((source, request))
    if response.status_code >= 400 and Unfollowed in call_of(run).at_end:  # allowed by the author: no page has come
        known = _of(run).lists.get(_key(joined(source.base_url, request.path)))
        if known is not None:
            known.unread = known.asked
    reply = Reply(response)
    if not _is_judged(run) or not reply.is_page or reply.content[:64].lstrip()[:1] not in (b"[", b"{"):
        return
    way, guessed = _rows_of(source, run, reply, records_path)
    if way is None and Unfollowed in call_of(run).at_end:
        known = _of(run).lists.get(_key(joined(source.base_url, request.path)))
        way = known.way if known is not None and known.way and reply.begins_at(known.way) == b"null" else None
    if way is not None:
        note(run, source, request, Reply(response, way) if way else reply, guessed=guessed)


def note(run: StreamRun, source: Any, request: Request, reply: Reply, *, guessed: bool = False) -> None:
    """A page of a list has come, for which its author has asked.

    Args:
        guessed: nobody has said where its rows are.
    """
    if not _is_judged(run) or asks_for_one(request):
        return
    key = _key(joined(source.base_url, request.path))
    found = _of(run).lists.get(key) if Unfollowed in call_of(run).at_end else None
    if found is None and not turns_pages(request) and not signs_in(reply):
        return
    lists = _of(run).lists
    if found is None:
        if len(lists) >= _MOST:
            return
        found = lists[key] = _List(source, request)
    elif found.request == request:  # the same once more
        found.read.rows = None
    found.request, found.way = request, reply.records_path
    found.read.add(reply, count=True, guessed=guessed)
    signs = found.read.more(reply, size=size_asked(request))
    sign = next((one for one in signs if _leads_on(one, run, request, reply, found.read)), None)
    found.note_part(request, sign)
    if sign is None:
        return
    left = _left(run, reply)
    if left is not _Left.NOTHING_NEW:
        found.unread = _Unread(sign, _says(sign, reply, found.read), found.read.pages, holds=left is _Left.NEEDED)
    if sign.url and len(lists) < _MOST:
        lists.setdefault(_key(urljoin(reply.url, sign.url)), found)


def _of(run: StreamRun) -> Unfollowed:
    at_end = call_of(run).at_end
    found: Any = at_end.get(Unfollowed) or at_end.setdefault(Unfollowed, Unfollowed())
    return found  # type: ignore[no-any-return]


def _is_judged(run: StreamRun) -> bool:
    """Not in a hook, which looks something up, nor where its author goes on from a position of his own, of which nobody
    knows what lies behind it."""
    return not run.is_in_hook and (run._reads_all or run.raw_bookmark is not None)


class _Left(enum.Enum):
    """What is left of a list behind the rows that came."""

    NEEDED = "rows that no later run would ask for"
    LATER = "rows that the next run may ask for; or nobody knows"
    NOTHING_NEW = "rows that were there before"


def _left(run: StreamRun, reply: Reply) -> _Left:
    """Who goes on from a bookmark may read the newest first, and stop on purpose where he has been before. If he has
    not come so far, the bookmark must not move to the newest. Behind rows that rise it may."""
    if run.raw_bookmark is None or run.raw_bookmark == run.start_date:
        return _Left.NEEDED  # no run was here before
    key = run.replication_key or ""
    values = (reply.find((*reply.records_path, place, key)) for place in ("0", "-1"))
    (kind, first), (kind_of_last, last) = map(comparable, values)
    kind_of_bookmark, bookmark = comparable(run.raw_bookmark)
    if not kind == kind_of_last == kind_of_bookmark or None in (first, last, bookmark) or first < last:
        return _Left.LATER
    return _Left.NOTHING_NEW if last <= bookmark else _Left.NEEDED


def _leads_on(sign: Sign, run: StreamRun, request: Request, reply: Reply, read: ListRead) -> bool:
    """Whether a sign is meant. A page that is not full is the last one for many authors, whatever the body says. In
    runs that go on from a bookmark the first page often is."""
    short = read.shrinks or (run.raw_bookmark is not None and read.is_shorter_than(size_asked(request)))
    blind = sign.names_a_page and (sign.repeats(request) or (short and not sign.header))
    return not blind and not (read.pages == 1 and rows_in(reply) == 0)


def _rows_of(source: Any, run: StreamRun, reply: Reply, given: Any) -> tuple[Place | None, bool]:
    """The way to the rows of a reply, and whether it is guessed; None for one that is no list: an object may hold
    lists, too, and name the object behind it."""
    if reply.begins_at(()).startswith(b"["):
        return (), False
    if given is None:
        given = getattr(source, "records_path", None)
    if given is None:
        given = getattr(spec_of(run), "records_path", None)
    way = path_of(given or ())
    if way and reply.begins_at(way).startswith(b"["):
        return way, False
    guessed = rows_place(reply)
    if guessed is None or not _OBJECTS.match(reply.begins_at(guessed)):
        return None, True
    around = (name for length in range(len(guessed)) for name in reply.names_at(guessed[:length])[1])
    return (None if any(name.lower() in _IDS for name in around) else guessed), True


def _key(url: str) -> Key:
    try:
        parts = urlsplit(url)
    except ValueError:  # an address that is none leads nowhere
        return "", url
    return parts.netloc.rpartition("@")[2], parts.path


def _tell_hole(one: _List) -> None:
    """The author counted what he had asked for, and not what came."""
    expected, begun = one.hole or (0, 0)
    why = f"the source said that a page begins at row {expected:,}, and the next that was asked for began at {begun:,}"
    if _is_new(one.source, one.request, ("hole",)):
        cure = "Count the rows that came, or read it with client.pages or client.rows"
        logger.warning("%s: %s. %s", _named(one.request), why, cure)
    _tell_run(one.request, why)


def _tell_unread(source: Any, request: Request, unread: _Unread) -> None:
    """A function has come to its end, and nobody has asked for what is left of a list."""
    if _is_new(source, request, ("requests", *unread.sign.place)):
        nobody, cure = ", and nobody asked for the rest", f"paginator={_paginator(unread.sign)}"
        logger.warning(
            "%s: %s, though %s%s. Read it with client.pages or client.rows, and %s; or "
            "paginator=burler.http.SinglePage() if it is all",
            _named(request),
            _pages(unread.pages),
            unread.says,
            "" if unread.sign.is_null else nobody,
            cure,
        )
    if unread.holds:
        _tell_run(request, unread.says)


# What is said


def _tell_run(request: Request, why: str) -> None:
    """The stream that runs here may not be whole."""
    run = running()
    if run is not None and not run.is_in_hook:
        run.may_be_incomplete(f"{_named(request)}: {why}")


def _pages(count: int) -> str:
    return "one page was read" if count == 1 else f"{count:,} pages were read"


def _says(sign: Sign, reply: Reply, read: ListRead) -> str:
    if sign.is_null:
        return f"{_where(sign)} of the last one is null and no list"
    came = _came(sign, reply, read)
    return f"{_where(sign)}{'' if sign.header else ' of the reply'} says that there are more{came and f': {came}'}"


def _where(sign: Sign) -> str:
    return (
        f"the header '{masked(sign.header)[:100]}'"
        if sign.header
        else f"'{_dotted(sign.place)}'"
        if sign.place
        else "the body"
    )


def _came(sign: Sign, reply: Reply, read: ListRead) -> str:
    """``100 of 238 rows came``; "" where nobody knows how many did."""
    rows = read.rows
    if rows is None and read.pages == 1:
        rows = rows_in(reply)
    if rows is None:
        return ""
    if sign.total is not None:
        return f"{rows:,} of {sign.total:,} rows{' or more' if sign.is_least else ''} came"
    return f"{rows:,} row{'' if rows == 1 else 's'} came"


def _cure(sign: Sign, read: ListRead, *, counts: bool = False) -> str:
    """What the author can do. ``counts``: the paginator goes on until a page is empty, so it did not miss the next."""
    if sign.is_null:
        return (
            "Some sources write an empty list so, others a failure. Say what else names the end: size=, total_pages= "
            "or total= of PageNumber and Offset, more= of Cursor"
        )
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
    if header and sign.names_a_page and len(sign.place) == 1:
        return f"burler.http.Cursor('header:{sign.header}', param='{'page' if 'page' in header else '...'}')"
    if sign.url and isinstance(sign.value, str):
        place = (
            masked(repr(list(sign.place)))[:100]
            if any("." in name for name in sign.place)
            else f"'{_dotted(sign.place)}'"
        )
        return f"burler.http.NextUrl({place})"
    return "..."


def _of_a_place(source: Any, request: Request, reply: Reply, inner: Any, sign: Sign | None, read: ListRead) -> bool:
    """The paginator looks at one place of the reply, and it names no page. Gives whether that is surely a mistake: the
    place is one of a row, and there are rows without it.

    A place that is not there may be misspelt, or the source leaves it out behind its last page. It is a warning where
    something else names more pages or has nearly its name, or where there are rows, and something beside the place
    could be it by another name.
    """
    path = inner.path
    own = path if isinstance(path, str) else ".".join(path)
    missing, there, way = _looked_for(path, reply)
    if not missing and sign is None:
        return False
    of_a_row = not _is_header(path) and any(name.removeprefix("-").isdecimal() for name in path_of(path))
    is_mistake = bool(missing) and of_a_row and rows_in(reply) != 0
    others = [name for name in there if "prev" not in name.lower()]
    similar = nearest(missing, others, cutoff=_SIMILAR) if missing else None
    near = similar is not None and there[similar]
    could_be = rows_in(reply) != 0 and any(
        _could_be(name, reply.find((*way, name)), url=isinstance(inner, NextUrl)) for name in there if way and name
    )
    level = logging.WARNING if sign or near or could_be or is_mistake else logging.INFO
    if _is_new(source, request, (own, str(level), *list(there)[:10])):
        names = masked(", ".join(f"'{name:.40}'" for name in list(there)[:10])) or "none"
        logger.log(
            level,
            "%s: one page; nothing at '%s' of the reply names a next one%s. Names there: %s%s",
            _named(request),
            own,
            "" if sign is None else f", though {_where(sign)} says that there are more",
            names,
            "" if sign is None else f". {'. '.join(filter(None, (_came(sign, reply, read), _cure(sign, read))))}",
        )
    return is_mistake


def _looked_for(path: Any, reply: Reply) -> tuple[str, dict[str, bool], Place]:
    """The name that is missing on a way ("": none is), the names that are there and whether they have a value, and
    where in the body these are."""
    if _is_header(path):
        name = path[len(_HEADER) :].strip()
        there = {key.lower(): bool(value) for key, value in reply.headers.items()}
        return ("" if name.lower() in there else name.lower()), there, ()
    names = path_of(path)
    way, found = reply.names_at(names)
    there = {name: reply.begins_at((*way, name)) not in _NOTHING for name in found}
    missing = len(way) < len(names) and names[len(way)] not in there
    return (names[len(way)] if missing else ""), there, way


def _could_be(name: str, value: Any, *, url: bool) -> bool:
    """Whether a field may be what leads to the next page: an address, or a cursor; not one that is known to be
    something else."""
    if isinstance(value, bool) or is_count_or_page(name):
        return False
    if isinstance(value, dict):
        return url and any(_could_be(inner, one, url=True) for inner, one in value.items())
    return (isinstance(value, str) and "/" in value) if url else bool(value) and isinstance(value, str | int)


def _place(path: Any) -> Place:
    return (_HEADER + path[len(_HEADER) :].strip(),) if _is_header(path) else path_of(path)


def _is_header(path: Any) -> bool:
    return isinstance(path, str) and path.lower().startswith(_HEADER)


def _named(request: Request) -> str:
    return f"{request.method} {request.endpoint or mask_url(request.path)}"


def _dotted(place: Place) -> str:
    return masked(".".join(place))[:100]


def _is_new(source: Any, request: Request, form: tuple[str, ...]) -> bool:
    """Whether this was not said of an endpoint of a client in this run of a stream, or long ago. Without a name for it,
    paths with numbers in them are alike."""
    run = running()
    form = ("" if run is None else run.name, *form)
    now = time.monotonic()
    client = getattr(source, "owner", None) or getattr(source, "session", source)  # others of its settings share it
    told = _told_of(client, _OUTSIDE if run is None else run._told)
    endpoint = request.endpoint or re.sub(r"[^/]*\d[^/]*", "*", request.path.partition("?")[0])
    if form not in told and len(told) >= _MOST_FORMS:
        return False
    endpoints = told.setdefault(form, {})
    if endpoint in endpoints:
        is_new = now - endpoints[endpoint] >= _AGAIN_SECONDS
    else:
        is_new = len(endpoints) < _MOST_OF_A_FORM
    if is_new:
        endpoints[endpoint] = now
    return is_new


def _told_of(owner: Any, told: dict[int, Any]) -> dict[tuple[str, ...], dict[str, float]]:
    """What was said of a client. It goes with the client: another one may get its number."""
    number = id(owner)
    if number not in told:
        with contextlib.suppress(TypeError):  # some objects can't be watched
            weakref.finalize(owner, told.pop, number, None).atexit = False
        told[number] = {}
    found: dict[tuple[str, ...], dict[str, float]] = told[number]
    return found
