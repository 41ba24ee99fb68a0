"""Which list an author's own variables page (``paging=``), and how many entries of it a reply holds.

That is not the number of rows: rows may lie deeper than the list (``orders.items``), and entries may be null.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from burler.errors import PagingError
from burler.graphql.paging import WAYS, Cursor, Own, PageNumber, Paging
from burler.graphql.plan import Plan
from burler.graphql.raw import PageInfo, find
from burler.graphql.spots import Path, Spot
from burler.graphql.unwrapping import Unwrapped, lost

logger = logging.getLogger("burler")


@dataclass(slots=True)
class Page:
    """One reply, as the pager and an author's function see it.

    Attributes:
        items: (stream, rows). infos: see ``Unwrapped``. missing: null stands in place of all rows.
        entries: of the list that is paged; None where nobody knows which that is.
    """

    content: bytes
    items: list[tuple[str | None, Any]]
    infos: dict[Path, PageInfo | None]
    entries: int | None
    missing: bool
    unwrapped: Unwrapped | None = None

    @property
    def rows(self) -> int:
        """The entries of the list that is paged, null ones as well.

        Raises:
            PagingError: a function pages, and there are several lists that it may mean.
        """
        if self.entries is None:
            raise PagingError(
                "page.rows is not known: variables of the query stand in several fields on the way to the rows, and "
                "their lists differ in length; count with page.find('...') instead"
            )
        return self.entries

    def parted(self) -> tuple[Page, Page]:
        """The rows of other streams, and those of the stream that runs."""
        left = self.unwrapped.rest if self.unwrapped is not None else []
        parts = []
        for own in (False, True):
            items = [one for one in self.items if (one[0] is None) is own]
            rest = [one for one in left if (one.stream is None) is own]
            made = None if self.unwrapped is None else replace(self.unwrapped, rest=rest)
            parts.append(replace(self, items=items, unwrapped=made))
        return parts[0], parts[1]

    def find(self, path: str) -> Any:
        """What stands at a path under ``data``; None where nothing does."""
        return find(self.content, path)


@dataclass(frozen=True, slots=True)
class Paged:
    """What is paged in a plan.

    Attributes:
        ways: the paths of the streams whose rows are paged, each with the lengths of those parts of it that lead to a
            field that the variables may stand in; 0 where none has one.
        fields: the fields that they stand in beyond doubt: their connections are the author's to follow.
    """

    ways: tuple[tuple[Path, tuple[int, ...]], ...]
    fields: frozenset[Path]

    def whole(self, plan: Plan) -> bool:
        """Whether the rows of all streams stand in lists, or in connections whose pages the author turns."""
        spots = [plan.root.find(one.path) for one in plan.streams]
        return all(one is None or one.connection is None or one.path in self.fields for one in spots)

    def entries(self, root: Spot, data: Any) -> int | None:
        """The entries of the list in ``data``, null ones as well; None where there are several lists that it may be.
        Of lists side by side (of two streams, of the objects in a list around it) those of the longest: there is
        another page as long as one of them goes on."""
        found = 0
        for path, depths in self.ways:
            counts = {_entries(root, path, depth, data) for depth in depths}
            if len(counts) > 1:
                return None
            found = max(found, *counts)
        return found


def paged_in(plan: Plan, paging: Paging | Own, own: Mapping[str, Any]) -> Paged:
    """What an author's way to page turns the pages of.

    Args:
        own: the variables that the way has set so far. Which ones a function sets shows after its first page only.
    """
    names = set(paging.names()) if isinstance(paging, WAYS) else set(own)
    ways = tuple((path, depths[:1]) for path, depths in _ways(plan, names))
    fields = frozenset(path[: depths[0]] for path, depths in ways)
    if not ways and not names:
        sizes = set(sizes_on_the_way(plan))
        alone = [one for one in _ways(plan, set(plan.variables) - sizes) if len(one[1]) == 1]
        fields = frozenset(path[: depths[0]] for path, depths in (*_ways(plan, _cursors(plan)), *alone))
        ways = _ways(plan, plan.variables)
    if not ways:
        main = [one.path for one in plan.streams if one.name is None]
        ways = tuple((path, (0,)) for path in main or [one.path for one in plan.streams])
    return Paged(ways, fields)


def check_page(paging: Paging | Own, page: Page, number: int, *, where: str) -> None:
    """Some servers say null of pages behind the last one; of a page that was announced it can't be the end.

    Raises:
        PagingError: it is null, and was announced.
    """
    if not page.missing or number == 1:
        return
    announced = ""
    if isinstance(paging, Cursor):
        announced = paging.path
    elif isinstance(paging, PageNumber):
        announced = paging.more or paging.total_pages or ""
    if announced:
        raise PagingError(lost(where, announced))
    logger.warning("%s: null in place of the rows of page %d is taken for a page without rows.", where, number)


def sizes_on_the_way(plan: Plan) -> tuple[str, ...]:
    """The variables of ``first`` and ``last`` on the way to the rows of an author's own pages."""
    found = []
    for one in plan.streams:
        for n in range(1, len(one.path) + 1):
            spot = plan.root.find(one.path[:n])
            if spot is not None and spot.connection is not None:
                found.append(spot.connection.size)
                break
    return tuple(dict.fromkeys(name for name in found if name is not None))


def _ways(plan: Plan, names: Collection[str]) -> tuple[tuple[Path, tuple[int, ...]], ...]:
    found = []
    for one in plan.streams:
        around = {depth: plan.root.find(one.path[:depth]) for depth in range(1, len(one.path) + 1)}
        depths = [depth for depth, spot in around.items() if spot and not spot.variables.isdisjoint(names)]
        if depths:
            found.append((one.path, tuple(depths)))
    return tuple(found)


def _cursors(plan: Plan) -> set[str]:
    """The variables of the cursors that the author's text has."""
    return {
        one.connection.cursor
        for one in plan.root.walk()
        if one.connection is not None and one.connection.cursor is not None
    }


def _entries(root: Spot, path: Path, depth: int, data: Any) -> int:
    """The entries of the first list that stands at ``path[:depth]`` or below it, on the way to ``path``; of one object
    that is a row, 1."""
    spot, holders = root, [data]
    for n, name in enumerate(path, 1):
        spot = spot.children[name]
        values = [one.get(name) for one in holders if isinstance(one, Mapping)]
        if n >= depth:
            lengths = [len(listed) for one in values if (listed := _listed(spot, one)) is not None]
            if lengths:
                return max(lengths)
        holders = [inner for one in values for inner in _objects(spot, one)]
    return int(any(isinstance(one, Mapping) for one in holders))


def _listed(spot: Spot, value: Any) -> list[Any] | None:
    if spot.connection is not None and isinstance(value, Mapping):
        value = value.get(spot.connection.rows_key)
    return value if isinstance(value, list) else None


def _objects(spot: Spot, value: Any) -> list[Any]:
    """The objects in a value: those of a list, of a list of lists, of a connection."""
    listed = _listed(spot, value)
    if listed is None:
        return [] if spot.connection is not None else [value]
    if spot.connection is None:
        return [inner for one in listed for inner in _objects(spot, one)]
    key = spot.connection.node_key
    if key is None:
        return listed
    return [{**one, **(one.get(key) or {})} for one in listed if isinstance(one, Mapping)]
