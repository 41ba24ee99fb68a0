"""Lists that are read page by page by numbers: which pages were asked for, and which were not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from burler.http.paging_signs import LIMIT_NAMES, MOST_DIGITS, OFFSET_NAMES, PAGE_NAMES
from burler.verify.requests_asked import Asked, Pair, number_of, pairs_of

Kind = Literal["page", "offset"]

_SO_FEW = 3


@dataclass(frozen=True, slots=True)
class Paged:
    """Where in a list a request asks.

    Attributes:
        kind: whether ``value`` counts pages or rows.
        name: of the parameter.
        limit: rows of a page, if the request says so.
        series: a digest of the list, with this size of pages.
    """

    kind: Kind
    name: str
    value: int
    limit: int | None
    series: int


def paged_of(asked: Asked) -> tuple[Paged | None, int]:
    """Where in a list a request asks, by its parameters and a digest of all others, which is the list's."""
    pairs = pairs_of(asked)
    place: tuple[Kind, Pair] | None = None
    limit: Pair | None = None
    for pair in pairs:
        name = pair[0].lower()
        plain = re.sub(r"[^a-z]", "", name.rpartition(".")[2] if name.startswith("body.") else name)
        if not pair[1].isdecimal() or len(pair[1]) > MOST_DIGITS:
            continue
        if plain in LIMIT_NAMES and limit is None:
            limit = pair
        elif plain in PAGE_NAMES and place is None:
            place = ("page", pair)
        elif plain in OFFSET_NAMES and (place is None or place[0] == "page"):
            place = ("offset", pair)
    if place is not None and place[0] == "offset" and limit is None:
        place = None  # nobody can say how far it should go
    rest = sorted(pair for pair in pairs if pair != limit and (place is None or pair != place[1]))
    parts = asked.parts
    whole = number_of((asked.method, parts.netloc, parts.path, rest))
    size = int(limit[1]) if limit else None
    if place is None:
        return None, whole
    kind, (name, value) = place
    return Paged(kind, name.removeprefix("body."), int(value), size, number_of((whole, size, name))), whole


@dataclass(slots=True)
class Series:
    """The pages of one list that were asked for.

    Attributes:
        rows: how many rows each gave, None where that is not known, by the number or the offset asked for.
        whole: a digest of the list, whatever the size of its pages; place: of the path alone.
        shown: a URL of it, masked.
    """

    stream: str | None
    endpoint: str
    kind: Kind
    name: str
    limit: int | None
    whole: int
    place: int
    shown: str
    rows: dict[int, int | None] = field(default_factory=dict)

    @property
    def values(self) -> list[int]:
        """What was asked for, in order."""
        return sorted(self.rows)

    @property
    def step(self) -> int | None:
        """How far it goes from one to the next, if it is always as far."""
        steps = {after - before for before, after in pairwise(self.values)}
        return steps.pop() if len(steps) == 1 else None


def skipped(series: Series, *, resumed: bool = False) -> list[tuple[int, int]]:
    """What was left out between two that were asked for: first and last page number, or offset, of each hole.

    Offsets that jump without a pattern are no offsets but cursors that are numbers, and a tap that looks at the last
    page first, for the total, has not left out all in between: neither is a hole.
    """
    values = series.values[1:] if resumed else series.values
    if series.kind == "page":
        if series.limit and series.step == series.limit and series.limit > 1:
            return []  # an offset by another name
        holes = [(before + 1, after - 1) for before, after in pairwise(values) if after - before > 1]
        return holes if sum(last - first + 1 for first, last in holes) <= len(values) else []
    limit = series.limit or 0
    if limit < 1:
        return []
    holes = [(before + limit, after - 1) for before, after in pairwise(values) if after - before > limit]
    return holes if _regular(values, limit) and not _source_gives_more(series, limit) else []


def _regular(values: Sequence[int], limit: int) -> bool:
    """Whether offsets go by a pattern: always as far, or by so many pages."""
    steps = [after - before for before, after in pairwise(values)]
    if not steps:
        return False
    if all(step % limit == 0 for step in steps):
        return len(steps) > 1 or steps[0] <= 2 * limit
    if len(set(steps)) == 1:
        return len(steps) > 1 or abs(steps[0] - limit) <= 2
    return False


def _source_gives_more(series: Series, limit: int) -> bool:
    """Whether pages have more rows than were asked for, so that what looks like a hole is none."""
    return any(count is not None and count > limit for count in series.rows.values())


def repeated_rows(series: Series) -> list[tuple[int, int]]:
    """Offsets whose rows came with the page before, too: (first, last) of each. A source may give fewer rows than it
    is asked for, and who goes on behind those that came reads none twice."""
    if series.kind != "offset" or not series.limit or (series.values[0] > 1 and series.step is None):
        return []
    found = []
    for before, after in pairwise(series.values):
        count = series.rows[before]
        if count is None:  # nobody saw the rows: the usual slips alone
            count = series.limit if series.step in (1, series.limit - 1) and series.limit > 1 else 0
        if after < before + min(count, series.limit):
            found.append((after, before + min(count, series.limit) - 1))
    # Lists within a list that are read by one offset may end at different rows: a slip is one at every step.
    return found if len(found) == len(series.rows) - 1 else []


def capped(series: Series) -> int | None:
    """How many rows each page had where it goes on by more than that: the source gives no more at once than this,
    whatever it is asked for. None where it is not so."""
    if series.kind != "offset" or not series.limit or len(series.rows) < _SO_FEW:
        return None
    values = series.values
    counts = {series.rows[value] for value in values[:-1]}
    count = counts.pop() if len(counts) == 1 else None
    step = series.step
    if count is None or step is None or not 0 < count < step or step != series.limit:
        return None
    return count


def starts_late(series: Series, *, alone: bool) -> bool:
    """Whether it begins behind the first page.

    Args:
        alone: nobody asked for the first page of any list of this path.
    """
    values = series.values
    first = values[0]
    if len(values) == 1 and not alone:
        return False
    if series.kind == "page":
        return first == _SO_FEW - 1 or (len(values) > 1 and 1 < first <= _SO_FEW)
    limit = series.limit or 0
    late = limit > 1 and first in (limit, limit + 1)
    return late and (len(values) == 1 or _regular(values, limit))
