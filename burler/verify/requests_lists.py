"""The lists that a tap reads page by page, and the last word of each on whether there is more."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urljoin

from burler.http.masking import is_secret_name
from burler.http.paging_signs import LIMIT_NAMES, plain
from burler.verify.requests_asked import Asked, number_of, parts_of
from burler.verify.requests_body import Told
from burler.verify.requests_pages import Paged, Series


@dataclass(frozen=True, slots=True)
class Open:
    """A reply that said there is more, behind which nobody asked."""

    stream: str | None
    endpoint: str
    says: str
    rows: int
    shown: str


class Lists:
    """Notes pages.

    Args:
        most: pages are kept of all lists together.

    Attributes:
        first: lists, and paths, that were asked for without saying which page, or for their first one. Digests.
        full: there were more pages than are kept.
    """

    def __init__(self, most: int) -> None:
        self.series: dict[int, Series] = {}
        self.open: dict[int, Open] = {}
        self._leads: dict[int, int] = {}
        self._rows: dict[int, int] = {}  # by place, of requests that say no page
        self.first: set[int] = set()
        self.full = False
        self._most = most
        self._pages = 0

    def asked(
        self, stream: str | None, endpoint: str, asked: Asked, paged: Paged | None, whole: int, place: int
    ) -> None:
        """A page is asked for."""
        here = _place(stream, asked.url)
        self.open.pop(here, None)
        self.open.pop(self._leads.pop(here, here), None)
        if paged is None or paged.value <= 1:
            if len(self.first) < self._most:
                self.first.update((whole, place))
            else:
                self.full = True
        if paged is None:
            return
        key = number_of((stream, paged.series))
        series = self.series.get(key)
        if series is None:
            if self._pages >= self._most:
                self.full = True
                return
            series = Series(stream, endpoint, paged.kind, paged.name, paged.limit, whole, place, asked.shown)
            self.series[key] = series
        if paged.value not in series.rows:
            if self._pages >= self._most:
                self.full = True
                return
            self._pages += 1
            series.rows[paged.value] = None

    def told(self, stream: str | None, endpoint: str, asked: Asked, paged: Paged | None, told: Told) -> None:
        """A page has come."""
        place = _place(stream, asked.url)
        series = None if paged is None else self.series.get(number_of((stream, paged.series)))
        if series is not None and paged is not None and paged.value in series.rows:
            series.rows[paged.value] = told.rows
            if paged.value < max(series.rows):
                return  # a further one was asked for already
        rows = told.rows or 0
        if paged is None and (place in self._rows or len(self._rows) < self._most):
            rows = self._rows[place] = self._rows.get(place, 0) + rows
        said = next((one for one in told.more if told.rows and _leads_on(asked, paged, series, rows, *one)), None)
        if said is not None and len(self.open) < self._most:
            try:
                target = _target(asked, *said)
            except ValueError:  # an address that is none leads nowhere
                return
            leads = self._leads[place] = place if target is None else _place(stream, target)
            self.open[leads] = Open(stream, endpoint, said[0], told.rows or 0, asked.shown)


def _place(stream: str | None, url: str) -> int:
    parts = parts_of(url)
    return number_of((stream, parts.netloc, parts.path))


def _target(asked: Asked, name: str, value: Any) -> str | None:
    """The address of the next page, if the reply named one."""
    if isinstance(value, dict):
        value = next((one for one in (value.get("href"), value.get("url")) if one), None)
    if isinstance(value, str) and (name == "Link" or value.startswith(("http://", "https://", "/", "?"))):
        return urljoin(asked.url, value)
    return None


def _leads_on(asked: Asked, paged: Paged | None, series: Series | None, rows: int, name: str, value: Any) -> bool:
    """Whether what was said means a further page. A total does by what stands before it; a page that is not full is
    the last one for most taps, whatever else it says; a cursor that was sent along is only repeated.

    Args:
        rows: of the page; where none is named, of all that came from this place.
    """
    if paged is not None and paged.limit and rows < paged.limit:
        return False
    last = name.rpartition(".")[2].lower()
    if type(value) not in (int, Decimal) and not (isinstance(value, str) and value.isdecimal() and "next" not in last):
        return not (isinstance(value, str) and (value in asked.url or _in_body(asked.body, value)))
    if "next" in last:
        return True
    if paged is None:  # nobody asked for a page by its number
        return _asks_for_all(asked) and int(value) > (1 if "page" in last else rows)
    if paged.kind == "offset":
        return "page" not in last and paged.value + rows < int(value)
    pages = paged.value + (series is not None and 0 in series.rows)
    if "page" in last:
        return pages < int(value)
    return paged.limit is not None and pages * paged.limit < int(value)


def _asks_for_all(asked: Asked) -> bool:
    """Whether a request leaves nothing out, so that totals speak of what it asks for. Who asks leaves nothing out."""
    pairs = parse_qsl(asked.parts.query)
    return all(value not in ("0", "1") if plain(name) in LIMIT_NAMES else is_secret_name(name) for name, value in pairs)


def _in_body(body: Any, value: str) -> bool:
    text = body.decode("latin-1") if isinstance(body, bytes) else body
    return isinstance(text, str) and value in text
