"""What in a reply says that there are more pages, whatever paginator there is: the names that sources use for it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burler.http.reply import Reply

Place = tuple[str, ...]

_MOST_BYTES = 10_000  # of what is looked into beside the rows
_MOST_LETTERS = 60

# Names without their signs, in small letters.
_OF_NEXT = "page|pages|records|results|items|rows|batch|set"
_NEXT = re.compile(
    rf"(odata)?next({_OF_NEXT})?(url|uri|link|href|path|cursor|token|offset|marker|key|id|start|after|number)?"
    r"|continue|continuation(token)?"
)
_CURSOR = re.compile(r"cursor|pagetoken|offset|marker")
_MORE = re.compile(rf"(has|is)?(more|next)({_OF_NEXT})?(available)?|(is)?truncated")
_LAST = re.compile(r"(is)?last(page)?|done")
_PAGES = re.compile(r"(total|number|num)(of)?pages|pages?(count|total)|pages")
_PAGE = re.compile(r"(current|this)?page(number|no|num|index)?|number")
_TOTAL = re.compile(r"total(count|results?|items|records|rows|size|elements|hits|entries|matches)|numfound")
_SIZES = re.compile(r"(page)?(size|limit)|perpage|itemsperpage|maxresults|offset|skip|start(at|index)?|page|count")


def names_more(reply: Reply, besides: Collection[Place] = ()) -> Place:
    """The place of a reply that says that there is a further page; () if none does. One that says that there is none
    outweighs all others.

    Args:
        besides: places that are not looked at.
    """
    found: Place = ()
    for box, fields in _boxes(reply):
        for name, value in fields.items():
            if (*box, name) in besides:
                continue
            says = _says_more(name, value, fields, reply)
            if says is False:
                return ()
            if says and not found:
                found = (*box, name)
    return found


def _boxes(reply: Reply) -> Iterator[tuple[Place, dict[str, Any]]]:
    """What stands beside the rows: the fields of the objects around them, and those of small objects in these."""
    way = reply.records_path
    if not way and not any(reply.begins_at((name,)).startswith(b"[") for name in reply.names_at(())[1]):
        return  # the body is a row itself
    for length in range(max(1, len(way))):
        around, names = reply.names_at(way[:length])
        if len(around) < length:
            return
        places = [(*around, name) for name in names if name and (*around, name) != way[: length + 1]]
        fields = {place[-1]: reply.find(place) for place in places if reply.size_at(place) <= _MOST_BYTES}
        yield around, fields
        yield from (((*around, name), one) for name, one in fields.items() if isinstance(one, dict))


def _says_more(name: str, value: Any, fields: dict[str, Any], reply: Reply) -> bool | None:
    """Whether a field says that there is a further page; None: nothing of the kind, False: that there is none.

    Args:
        fields: those beside it, and itself.
    """
    plain = _plain(name)
    if isinstance(value, bool):
        if _LAST.fullmatch(plain):
            return not value
        return value if _MORE.fullmatch(plain) else None
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    if isinstance(value, int | Decimal):
        return _of_number(plain, value, fields, reply)
    if isinstance(value, dict):  # {"href": "..."}
        return (
            bool(_NEXT.fullmatch(plain) and any(one and isinstance(one, str | int) for one in value.values())) or None
        )
    if isinstance(value, list):  # [{"rel": "next", "href": "..."}]
        return (plain in ("link", "links") and any(map(_is_next_link, value))) or None
    if isinstance(value, str) and value.strip():
        return bool(_NEXT.fullmatch(plain) or _CURSOR.fullmatch(plain)) or None
    return None


def _of_number(plain: str, value: int | Decimal, fields: dict[str, Any], reply: Reply) -> bool | None:
    if _NEXT.fullmatch(plain):
        return value > 0 or None
    if _PAGES.fullmatch(plain):
        page = max([1, *_numbers(fields, _PAGE)])
        return value > page or None
    sized = plain == "total" and any(_SIZES.fullmatch(_plain(name)) for name in fields)
    if sized or _TOTAL.fullmatch(plain):
        try:
            return 0 < reply.rows_found() < value or None
        except ValueError:
            return None
    return None


def _numbers(fields: dict[str, Any], names: re.Pattern[str]) -> list[int]:
    return [value for name, value in fields.items() if type(value) is int and names.fullmatch(_plain(name))]


def _is_next_link(link: Any) -> bool:
    if not isinstance(link, dict):
        return False
    relations = (str(link.get(name) or "").lower() for name in ("rel", "relation", "name"))
    return "next" in relations and any(link.get(name) for name in ("href", "url", "uri"))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name[: 2 * _MOST_LETTERS].lower())[:_MOST_LETTERS]
