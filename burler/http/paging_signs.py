"""What in a reply says that there are more rows than it has, whatever paginator there is: the names that sources use
for it, in bodies and in headers. And how much of a list was read, to be held against that."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from burler.http.paginator_links import links_of
from burler.http.request import query_pairs

if TYPE_CHECKING:
    from burler.http.reply import Reply
    from burler.http.request import Request

Place = tuple[str, ...]

# All names are without signs, in small letters. Of parameters: which page, which row, how many of them.
PAGE_NAMES = frozenset({
    "page", "pageno", "pagenum", "pagenumber", "pageindex", "pagenr", "currentpage", "p",
})  # fmt: skip
OFFSET_NAMES = frozenset({
    "offset", "skip", "start", "startat", "startindex", "startposition", "startrow", "firstresult", "resultoffset",
    "sysparmoffset", "pageoffset", "rowoffset", "from",
})  # fmt: skip
LIMIT_NAMES = frozenset({
    "limit", "pagesize", "perpage", "size", "count", "maxresults", "maxresult", "max", "top", "first", "rows", "num",
    "take", "pagelimit", "resultrecordcount", "sysparmlimit", "itemsperpage", "recordsperpage", "results",
    "pageperpage", "n",
})  # fmt: skip
MOST_DIGITS = 9  # what has more is a time
_CURSOR_NAMES = re.compile(r".*(cursor|marker|pagetoken|nexttoken|skiptoken)|continu(e|ation)(token)?|scroll(id)?")
_MIDDLE = re.compile(
    r"(starting|start)?after(id)?|(ending|end)?before(id)?|(since|max)id|next(link|page|url)?|startkey"
)

# Of what replies say.
_OF_NEXT = "page|pages|records|results|items|rows|batch|set"
_NEXT = re.compile(
    rf"(odata)?next({_OF_NEXT})?(url|uri|link|href|path|cursor|token|offset|marker|key|id|start|after|number)?"
    r"|continue|continuation(token)?|lastevaluatedkey"
)
_CURSOR = re.compile(r"cursor|pagetoken|offset|marker")
_MORE = re.compile(rf"(has|is)?(more|next)({_OF_NEXT})?(available|incollection)?|(is)?truncated|exceededtransferlimit")
_LAST = re.compile(r"(is)?last(page)?|done|endof(stream|list|results|data)")
_PAGES = re.compile(r"(total|number|num)(of)?pages|pages?(count|total)|pages|lastpage(number)?")
_PAGE = re.compile(r"(current|this)?page(number|no|num|index)?|number")
_ROWS = "results?|items|records|rows|elements|hits|entries|matches|objects|resources"
_TOTAL = re.compile(
    rf"total(number)?(of)?(count|size|{_ROWS})(count)?|(records|results|rows|hits)total|({_ROWS})filtered"
    rf"|(nb|numberof)({_ROWS})|numfound|odatacount|filter(ed)?(count|total)"
)
_FILTERED = re.compile(
    rf"({_ROWS})filtered|filter(ed)?(count|total)"
)  # beside it other totals count what was not asked for, too
# Totals in other objects count other things: facets, what was not read yet. A field 'total' may be a sum of money. It
# counts rows beside the size of a page; else unless it stands in an object that is a thing of its own, or speaks of
# money.
_SIZES = re.compile(r"(page)?(size|limit)|perpage|itemsperpage|maxresults|offset|skip|start(at|index)?|page|count")
_BESIDE = re.compile(
    r"(search|response|result)?(meta(data)?|info)|pag(es?|er|ing|ination|e(info(rmation)?|context|details?))|hits|cursor|list"
    r"|results?|response|links?|total"
)
_OF_A_THING = re.compile(
    r"id|uuid|guid|name|title|number|email|(sub|net|gross)total|.*(currency|price|amount|tax(es)?|vat|discount|costs?|balance)"
)

_OTHER = re.compile(
    r"(prev|first|last|self|current|this|before|total|count|num|size|per|limit|max|version|status|request|time|took)[a-z]*"
)

_HEADER = "header:"
_OF_HEADERS = re.compile(r"x-((ms|wp|pagination)-)?", re.IGNORECASE)  # what stands before such a name
_RANGE = re.compile(r"\s*(?:(?!bytes\b)[\w-]+\s+)?\d+-(\d+)/(\d+)\s*", re.IGNORECASE)  # PostgREST names no unit
_TRUTHS = {"true": True, "false": False}
_MOST_BYTES = 10_000  # of what is looked into beside the rows
_MOST_LETTERS = 60


@dataclass(frozen=True, slots=True)
class Sign:
    """A place of a reply that says that there are more rows.

    Attributes:
        place: names that lead to it in the body; of a header ``("header:Link",)``, and what leads on in one of JSON.
        value: what stands there; None for null in place of the rows.
        total: how many rows there are in all; None where it says by itself that there is a further page.
        names_a_page: it says which page comes next. Some sources do so of a page behind the last one, too, or say
            once more which one was asked for. A truth value or a count is meant as it stands.
    """

    place: Place
    value: Any
    total: int | None = None
    names_a_page: bool = False

    @property
    def is_null(self) -> bool:
        """Whether it is null in place of the rows."""
        return self.value is None

    @property
    def is_least(self) -> bool:
        """Whether there are at least so many rows in all."""
        return isinstance(self.value, dict) and self.value.get("relation") == "gte"

    @property
    def header(self) -> str:
        """The header's name; "" of a place in the body."""
        return self.place[0].removeprefix(_HEADER) if self.place[0].startswith(_HEADER) else ""

    @property
    def url(self) -> str:
        """The address of the next page; "" where it names none."""
        value = self.value
        if isinstance(value, dict):
            value = value.get("href") or value.get("url")
        if not isinstance(value, str):
            return ""
        if self.header.lower() == "link":
            return next((target for target, names in links_of(value) if "next" in names), "")
        return value if value.startswith(("http://", "https://", "/", "?")) else ""

    def repeats(self, request: Request) -> bool:
        """Whether it only repeats the cursor that was sent along."""
        sent = [request.path, *(value for _name, value in _asked(request)), *map(str, (request.headers or {}).values())]
        return self.names_a_page and isinstance(self.value, str) and self.value in sent


def signs_in(reply: Reply, besides: Collection[Place] = (), *, pages: int | None = 1) -> list[Sign] | None:
    """The places of a reply that say that there is more; totals of rows, too, whatever they are. None where one says
    clearly that there is nothing more: that outweighs all others.

    Args:
        besides: places that are not looked at. pages: so many were read; None: not known.
    """
    found: list[Sign] = []
    skipped = {_known(place) for place in besides}
    for box, fields in _boxes(reply):
        for name, value in fields.items():
            place = (*box, name)
            if _known(place) in skipped:
                continue
            value = _read(value)
            word = plain(name)
            total = _total(word, value, fields, box, reply.records_path)
            if total is not None:
                found.append(Sign(place, value, total))
                continue
            says = _says_more(word, value, fields, pages)
            if says is False:
                return None
            if says:
                counts = isinstance(value, bool) or bool(_PAGES.fullmatch(word)) or word == "contentrange"
                found.append(Sign(place, value, names_a_page=not counts))
    return found


def more_said(reply: Reply, *, rows: int, pages: int) -> Sign | None:
    """What the last reply of a list says of more, where so many rows and pages came of it from its beginning."""
    behind_the_end = pages > 1 and rows_in(reply) == 0
    for sign in signs_in(reply, pages=pages) or ():
        if (0 < rows < sign.total) if sign.total is not None else not (behind_the_end and sign.names_a_page):
            return sign
    return None


class ListRead:
    """How much of a list was read, and how many rows it has in all, as its replies say.

    Attributes:
        pages: so many replies have come.
        rows: so many rows; None: not known.

    Args:
        first: the first request, as its author made it. Where that begins in the middle of the list and nobody knows
            how much stands before it, totals say nothing.
        params: names of parameters that say where it begins, beside the usual ones.
        total: where the author says that a total stands.
    """

    def __init__(self, first: Request, *, params: Collection[str] = (), total: str | Place | None = None) -> None:
        self.pages = 0
        self.rows: int | None = 0
        self._page: int | None = None  # rows of the last reply; None: not counted
        self._page_before: int | None = None
        self._most = 0  # of those before the last one
        self._bytes: tuple[int, int, int] = (0, 0, 0)  # of the last reply's rows, those before it, and the most
        self._before = rows_before(first, {plain(name.rpartition(".")[2]) for name in params})
        self._named = (total,) if isinstance(total, str) else total
        self._totals: dict[Place, Sign] = {}

    def add(self, reply: Reply, *, count: bool = False, guessed: bool = False) -> None:
        """A reply has come. Its rows are counted where that is of use: it costs a part of what it costs to read them.

        Args:
            count: the rows are counted in any case.
            guessed: nobody has said where the rows are. Those of all lists in it count: whichever of them a total
                speaks of, there is more where it says more.
        """
        self.pages += 1
        if self._before is not None and (self._totals or self.pages == 1):
            for sign in self._totals_in(reply):
                known = self._totals.get(sign.place)
                # The least: what comes into the list while it is read need not be in it.
                if known is None or (sign.total or 0) < (known.total or 0):
                    self._totals[sign.place] = sign
        self._most = max(self._most, self._page or 0)
        self._page_before, self._page = self._page, None
        if count or self._totals or reply.is_counted:
            self._page = rows_in_lists(reply) if guessed else rows_in(reply)
        self.rows = None if self.rows is None or self._page is None else self.rows + self._page
        bytes_now = reply.size_at(reply.records_path) if reply.is_page else 0
        self._bytes = bytes_now, self._bytes[0], max(self._bytes[2], bytes_now)

    @property
    def last(self) -> int | None:
        """So many rows came with the last reply; None: not counted."""
        return self._page

    @property
    def shrinks(self) -> bool:
        """Whether the last reply has fewer rows than one before it."""
        return self.is_shorter_than(self._most)

    def is_shorter_than(self, size: int | None) -> bool:
        """Whether the last reply is known to have fewer rows."""
        return self._page is not None and self._page < (size or 0)

    def more(
        self,
        reply: Reply,
        besides: Collection[Place] = (),
        *,
        totals: bool = True,
        size: int | None = None,
        ended: bool = False,
    ) -> Iterator[Sign]:
        """What says that there is more than was read, behind the last reply. Nothing does if one place says clearly
        that there is not.

        Args:
            besides: places that are not looked at. totals: whether totals of rows are.
            size: how many rows a full page has, if somebody says so.
            ended: a place among ``besides`` says that there is no more.
        """
        null = reply.is_page and reply.begins_at(reply.records_path) == b"null"
        if null and _speaks_of_an_error(reply):
            yield Sign(reply.records_path, None)
            return
        found = signs_in(reply, besides, pages=None if self._before != 0 else self.pages) if reply.is_page else []
        if found is None or ended:
            return
        behind_the_end = self.pages > 1 and rows_in(reply) == 0
        yield from (one for one in found if one.total is None and not (behind_the_end and one.names_a_page))
        reached = False
        for sign in self._totals.values() if totals and self.rows is not None else ():
            reached = reached or (self._before or 0) + (self.rows or 0) >= (sign.total or 0)
            # A reply without a row may be none of a list; not where its author says where the total stands.
            if (self.rows or sign.place == self._named) and (self._before or 0) + (self.rows or 0) < (sign.total or 0):
                yield sign
        # Some sources write an empty list so, others a failure. Behind a page that is not full it is merely the end.
        full = self._most if self.pages > 2 else max(self._most, size or 0)
        _now, bytes_before, most_bytes = self._bytes
        is_full = bytes_before >= 0.8 * most_bytes if self._page_before is None else self._page_before >= full
        if null and self.pages > 1 and not reached and is_full:
            yield Sign(reply.records_path, None)

    def _totals_in(self, reply: Reply) -> list[Sign]:
        found = [one for one in signs_in(reply) or () if one.total is not None]
        if self._named is not None:
            value = _read(reply.find(self._named[0] if len(self._named) == 1 else self._named))
            if isinstance(value, int | Decimal) and not isinstance(value, bool):
                found.append(Sign(self._named, value, int(value)))
        return found


def is_count_or_page(name: str) -> bool:
    """Whether a field beside the rows is known to be something else than what leads to the next page."""
    word = plain(name)
    return any(names.fullmatch(word) for names in (_OTHER, _TOTAL, _PAGES, _PAGE, _SIZES))


def turns_pages(request: Request) -> bool:
    """Whether a request says itself which page it asks for, so that its author turns the pages."""
    unset = [(str(name), "0") for name, value in (request.params or {}).items() if value is None]  # of the first page
    return any(
        _is_place(plain(name), value) or _CURSOR_NAMES.fullmatch(plain(name)) for name, value in _asked(request) + unset
    )


def asks_for_one(request: Request) -> bool:
    """Whether a request asks for one row at the most: for a total, or whether there is one."""
    return any(value in ("0", "1") and plain(name) in LIMIT_NAMES for name, value in _asked(request))


def size_asked(request: Request) -> int | None:
    """How many rows a request asks for at once; None if it does not say."""
    found = (int(value) for name, value in _asked(request) if plain(name) in LIMIT_NAMES and value.isdecimal())
    return next(found, None)


def rows_place(reply: Reply) -> Place | None:
    """The way to the rows where nobody says it: the body itself, or the biggest list in its first two levels; None
    where there is none."""
    if reply.begins_at(())[:1] == b"[":
        return ()
    return max(_lists_in(reply), key=reply.size_at, default=None)


def _speaks_of_an_error(reply: Reply) -> bool:
    return any(
        plain(name) in ("error", "errors", "fault", "exception") and reply.find((*way, name))
        for way, names in map(
            reply.names_at, (reply.records_path[:length] for length in range(len(reply.records_path)))
        )
        for name in names
    )


def rows_in_lists(reply: Reply) -> int:
    """How many items the lists have that may hold the rows."""
    return sum(reply.length_at(place) or 0 for place in _lists_in(reply))


def _lists_in(reply: Reply) -> list[Place]:
    boxes: list[Place] = [(), *((name,) for name in reply.names_at(())[1])]
    return [
        (*box, name)
        for box in boxes
        if reply.begins_at(box)[:1] == b"{"
        for name in reply.names_at(box)[1]
        if name and reply.begins_at((*box, name))[:1] == b"[" and name not in ("errors", "links", "warnings")
    ]


def rows_before(request: Request, params: Collection[str] = ()) -> int | None:
    """How many rows of the list a request leaves out at its beginning; None: not known."""
    before = 0
    for name, value in _asked(request):
        word = plain(name)
        if _is_place(word, value):
            if word in OFFSET_NAMES:
                before = int(value) if int(value) > 1 else 0
            elif int(value) > 1:
                return None
        elif value and (word in params or _CURSOR_NAMES.fullmatch(word) or _MIDDLE.fullmatch(word)):
            return None
    return before


def offset_in(url: str) -> int | None:
    """How many rows an address leaves out; None where it does not say."""
    found = ((plain(name), value) for name, value in parse_qsl(url.partition("?")[2]))
    return next((int(value) for word, value in found if word in OFFSET_NAMES and _is_place(word, value)), None)


def _is_place(word: str, value: str) -> bool:
    """Whether a parameter is the number of a page or of a row; 'from' and 'start' may be a date."""
    return (word in PAGE_NAMES or word in OFFSET_NAMES) and value.isdecimal() and len(value) <= MOST_DIGITS


def _asked(request: Request) -> list[tuple[str, str]]:
    """The parameters of a request: of its query, and in two levels of a JSON body."""
    pairs = [*parse_qsl(request.path.partition("?")[2]), *query_pairs(request.params)]
    boxes = [request.json, *request.json.values()] if isinstance(request.json, Mapping) else []
    for box in boxes:
        if isinstance(box, Mapping):
            pairs += [(str(name), str(one)) for name, one in box.items() if isinstance(one, str | int)]
    return pairs


def rows_in(reply: Reply) -> int | None:
    """How many rows a reply has; None where they can't be counted."""
    try:
        return reply.rows_found()
    except ValueError:
        return None


def _boxes(reply: Reply) -> Iterator[tuple[Place, dict[str, Any]]]:
    """What stands beside the rows: the fields of the objects around them, those of small objects in these, and in these
    once more (``meta.pagination.total``); and the headers, also what one has in JSON (``X-Pagination``)."""
    yield from _boxes_of_body(reply)
    headers = {f"{_HEADER}{name}": value for name, value in reply.headers.items()}
    yield (), headers
    for name, value in headers.items():
        if value.startswith("{") and "pag" in plain(name) and len(value) <= _MOST_BYTES:
            with contextlib.suppress(ValueError, RecursionError):
                yield (name,), json.loads(value, parse_float=Decimal)


def _boxes_of_body(reply: Reply) -> Iterator[tuple[Place, dict[str, Any]]]:
    way = reply.records_path
    if not way and reply.begins_at(()).startswith(b"["):
        return  # it is the rows, and costs something to split
    if not way and not any(reply.begins_at((name,)).startswith(b"[") for name in reply.names_at(())[1]):
        return  # the body is a row itself
    for length in range(max(1, len(way))):
        around, names = reply.names_at(way[:length])
        if len(around) < length:
            return
        places = [(*around, name) for name in names if name and (*around, name) != way[: length + 1]]
        fields = {place[-1]: reply.find(place) for place in places if reply.size_at(place) <= _MOST_BYTES}
        yield around, fields
        inner = [((*around, name), one) for name, one in fields.items() if isinstance(one, dict)]
        yield from inner
        yield from (
            ((*box, name), one)
            for box, box_fields in inner
            for name, one in box_fields.items()
            if isinstance(one, dict)
        )


def _says_more(word: str, value: Any, fields: Mapping[str, Any], pages: int | None) -> bool | None:
    """Whether a field says that there is a further page; None: nothing of the kind, False: that there is none.

    Args:
        fields: those beside it, and itself.
    """
    if isinstance(value, bool):
        if _LAST.fullmatch(word):
            return not value
        return value if _MORE.fullmatch(word) else None
    if isinstance(value, int | Decimal):
        if _NEXT.fullmatch(word):
            return value > 0 or None
        if _PAGES.fullmatch(word):
            numbers = _numbers(fields, _PAGE)
            return (bool(numbers or pages) and value > max([pages or 1, *numbers])) or None
        return None
    if isinstance(value, dict):  # {"href": "..."}
        return bool(_NEXT.fullmatch(word) and any(value.values())) or None
    if isinstance(value, list):  # [{"rel": "next", "href": "..."}]
        return (word in ("link", "links") and any(map(_is_next_link, value))) or None
    if not isinstance(value, str) or not value.strip():
        return None
    if word == "link":
        return any("next" in names for _target, names in links_of(value)) or None
    if word == "contentrange":
        found = _RANGE.fullmatch(value)
        return (found is not None and int(found[1]) + 1 < int(found[2])) or None
    return bool(_NEXT.fullmatch(word) or _CURSOR.fullmatch(word)) or None


def _total(word: str, value: Any, fields: Mapping[str, Any], box: Place, way: Place) -> int | None:
    """How many rows there are in all.

    Args:
        fields: those beside it, and itself. box: where they stand. way: where the rows do.
    """
    more = 0
    if isinstance(value, dict) and word == "total":  # {"value": 238, "relation": "eq"}
        more = int(value.get("relation") == "gte")  # counted up to there: there are more
        value = value.get("value")
    if (
        isinstance(value, bool)
        or not isinstance(value, int | Decimal)
        or not (word == "total" or _TOTAL.fullmatch(word))
    ):
        return None
    if not abs(value) < 10**_MOST_LETTERS or value != int(value):
        return None
    words = [plain(name) for name in fields]
    if not _FILTERED.fullmatch(word) and any(map(_FILTERED.fullmatch, words)):
        return None
    in_header = any(name.startswith(_HEADER) for name in (*box, *fields))
    inner = (name for place, name in enumerate(box) if way[: place + 1] != box[: place + 1])
    if not in_header and not all(_BESIDE.fullmatch(plain(name)) for name in inner):
        return None
    counts = word != "total" or in_header or any(map(_SIZES.fullmatch, words))
    return int(value) + more if counts or not any(map(_OF_A_THING.fullmatch, words)) else None


def _read(value: Any) -> Any:
    """A value; numbers and truth values that were written as text, as such."""
    if isinstance(value, str):
        if value.isdecimal() and len(value) <= MOST_DIGITS:
            return int(value)
        return _TRUTHS.get(value.lower(), value)
    return value


def _numbers(fields: Mapping[str, Any], names: re.Pattern[str]) -> list[int]:
    numbers = ((name, _read(value)) for name, value in fields.items())
    return [value for name, value in numbers if type(value) is int and names.fullmatch(plain(name))]


def _is_next_link(link: Any) -> bool:
    if not isinstance(link, dict):
        return False
    relations = (str(link.get(name) or "").lower() for name in ("rel", "relation", "name"))
    return "next" in relations and any(link.get(name) for name in ("href", "url", "uri"))


def _known(place: Place) -> Place:
    """A place, to be compared: headers have their names in any case."""
    return tuple(name.lower() for name in place) if place[0].lower().startswith(_HEADER) else place


@functools.lru_cache(4096)
def plain(name: str) -> str:
    """A name without signs, in small letters, as the names here are."""
    if name.startswith(_HEADER):
        name = _OF_HEADERS.sub("", name.removeprefix(_HEADER), count=1)
    return re.sub(r"[^a-z]", "", name[: 2 * _MOST_LETTERS].lower())[:_MOST_LETTERS]
