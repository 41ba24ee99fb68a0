"""Lists that an author asks for request by request (``client.json``, ``client.get``): what their replies said of more
rows, until somebody asks for those.

A loop of the author's own goes on with the next page: whatever else is asked for at the same path, or at the address
that a reply named, is taken for that. What nobody has asked for when the function has come to its end may be missing.
"""

from __future__ import annotations

import re
import threading
import weakref
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from burler.context import StreamRun, running
from burler.declare.records_path import path_of
from burler.http.origins import joined
from burler.http.paging_hints import Unread, tell_unread, unread_of
from burler.http.paging_signs import ListRead, Place, Sign, asks_for_one, rows_in, rows_place, signs_in
from burler.http.reply import Reply
from burler.patterns.progress import spec_of

if TYPE_CHECKING:
    import requests

    from burler.http.request import Request

Key = tuple[str, str]

_MOST = 10_000  # lists of one call that are not read to their end
_OBJECTS = re.compile(rb"\[\s*[{\[]")
_IDS = frozenset(("id", "_id", "uuid", "guid"))


class _List:
    """One list: how much of it was read, and what is said to be left."""

    def __init__(self, source: Any, request: Request) -> None:
        self.source, self.request = source, request
        self.read = ListRead(request)
        self.unread: Unread | None = None


class Unfollowed:
    """The lists of one call of a function that have more than was read; called when it has come to its end."""

    def __init__(self) -> None:
        self.lists: dict[Key, _List] = {}
        with _lock:
            _all.add(self)

    def __call__(self) -> None:
        """Tell what nobody has asked for."""
        for one in dict.fromkeys(self.lists.values()):
            if one.unread is not None:
                tell_unread(one.source, one.request, one.unread)


_lock = threading.Lock()
_all: weakref.WeakSet[Unfollowed] = weakref.WeakSet()


def asked(source: Any, request: Request) -> None:
    """A request is on its way: the list that it belongs to goes on. So does one of any stream, where an author's own
    thread asks: nobody knows for which."""
    run = running()
    if run is not None and (Unfollowed not in run._at_end or run.is_in_hook):
        return
    if request.method == "HEAD" or (run is None and not _all):
        return
    key = _key(joined(source.base_url, request.path))
    if run is not None:
        _goes_on(run._at_end[Unfollowed], key)  # type: ignore[arg-type]
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
        found.unread = None
    return found


def answered(source: Any, request: Request, response: requests.Response, records_path: Place | None = None) -> None:
    """The reply to a request of an author's own has come: note it if it says that there is more.

    Args:
        records_path: the way to its rows, where the request says it; None: the source's, or the stream's.
    """
    run = running()
    if run is None or request.method not in ("GET", "POST") or not _is_judged(run):
        return
    reply = Reply(response)
    if not reply.is_page or reply.content[:64].lstrip()[:1] not in (b"[", b"{"):
        return
    way, plain = _rows_of(source, run, reply, records_path)
    if way is not None:
        note(run, source, request, Reply(response, way) if way else reply, plain=plain)


def note(run: StreamRun, source: Any, request: Request, reply: Reply, *, plain: bool = True) -> None:
    """A page of a list has come, for which its author has asked.

    Args:
        plain: whether it is plain where its rows are, so that totals may be held against them.
    """
    unfollowed: Any = run._at_end.get(Unfollowed)
    key = _key(joined(source.base_url, request.path))
    found = None if unfollowed is None else unfollowed.lists.get(key)
    if not _is_judged(run) or asks_for_one(request) or (found is None and not signs_in(reply)):
        return
    if unfollowed is None:
        unfollowed = run._at_end[Unfollowed] = Unfollowed()
    if found is None:
        if len(unfollowed.lists) >= _MOST:
            return
        found = unfollowed.lists[key] = _List(source, request)
    elif found.request == request:  # the same once more
        found.read.rows = None
    found.request = request
    found.read.add(reply, totals=plain, count=True)
    sign = next((one for one in found.read.more(reply) if _leads_on(one, request, reply, found.read)), None)
    if sign is None:
        return
    found.unread = unread_of(request, sign, reply, found.read)
    if sign.url and len(unfollowed.lists) < _MOST:
        unfollowed.lists.setdefault(_key(urljoin(reply.url, sign.url)), found)


def _is_judged(run: StreamRun) -> bool:
    """Not where its author may stop on purpose, nor in a hook, which looks something up."""
    return run._reads_all and not run.is_in_hook


def _leads_on(sign: Sign, request: Request, reply: Reply, read: ListRead) -> bool:
    """Whether a sign is meant. A page that is not full is the last one for many authors, whatever the body says."""
    blind = sign.names_a_page and (sign.repeats(request) or (read.shrinks and not sign.header))
    return not blind and not (read.pages == 1 and rows_in(reply) == 0)


def _rows_of(source: Any, run: StreamRun, reply: Reply, given: Any) -> tuple[Place | None, bool]:
    """The way to the rows of a reply, and whether it is plain that this is it; None for one that is no list: an object
    may hold lists, too, and name the object behind it."""
    if reply.begins_at(()).startswith(b"["):
        return (), True
    if given is None:
        given = getattr(source, "records_path", None)
    if given is None:
        given = getattr(spec_of(run), "records_path", None)
    way = path_of(given or ())
    if way and reply.begins_at(way).startswith(b"["):
        return way, True
    guessed = rows_place(reply)
    if guessed is None or not _OBJECTS.match(reply.begins_at(guessed)):
        return None, False
    around = (name for length in range(len(guessed)) for name in reply.names_at(guessed[:length])[1])
    return (None if any(name.lower() in _IDS for name in around) else guessed), False


def _key(url: str) -> Key:
    try:
        parts = urlsplit(url)
    except ValueError:  # an address that is none leads nowhere
        return "", url
    return parts.netloc.rpartition("@")[2], parts.path
