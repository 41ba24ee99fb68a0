"""How many rows are asked for at once: less where that is too much for the server, then more again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.graphql.paged import sizes_on_the_way
from burler.graphql.paging import WAYS, Offset, PageNumber
from burler.graphql.plan import Plan

USUAL = 100
_FITS_TO_GROW = 2
_MOST_FITS = 64


class Sizes:
    """The variables of a plan that say how many rows a page has.

    Args:
        given: the author's variables; one that is a size is where it begins.
        page_size: the author's; None: as the query's text says, else 100.
    """

    def __init__(self, plan: Plan, paging: Any, given: Mapping[str, Any], page_size: int | None) -> None:
        outer = [one.connection.size for one in plan.outer if one.connection is not None and one.connection.size]
        if isinstance(paging, Offset):
            outer.append(paging.limit)
        # Pages of another size would be other pages; of a function nobody knows.
        self._fixed = paging is not None and (isinstance(paging, PageNumber) or not isinstance(paging, WAYS))
        own = [paging.size] if isinstance(paging, PageNumber) and paging.size else []
        own += sizes_on_the_way(plan) if self._fixed else ()
        self._outer = {name: _begin(plan, name, given, page_size) for name in [*outer, *own]}
        inner = [name for name in plan.inner_sizes if name not in self._outer]
        self._inner = {name: _begin(plan, name, given, page_size) for name in inner}
        self._most = {**self._outer, **self._inner}
        self._offset = paging.limit if isinstance(paging, Offset) else None
        self._now = dict(self._most)
        self._fits = 0
        self._needed = _FITS_TO_GROW
        self._grown = False

    @property
    def size(self) -> int:
        """The rows of a page of the query itself."""
        return next((self._now[name] for name in self._outer), USUAL)

    def values(self) -> dict[str, int]:
        """The variables, with what they say now."""
        return dict(self._now)

    def fixed(self, own: Mapping[str, Any]) -> dict[str, int]:
        """The limit of ``Offset`` as it is now: a page that was too much is asked for again with a smaller one."""
        return {self._offset: self._now[self._offset]} if self._offset in own and self._offset is not None else {}

    def shrink(self) -> bool:
        """Ask for half as many; False if none can be smaller. Rows of the query first, then those in them."""
        for names in ((self._outer if not self._fixed else {}), self._inner):
            smaller = {name: max(1, self._now[name] // 2) for name in names if self._now[name] > 1}
            if smaller:
                self._now.update(smaller)
                self._fits = 0
                if self._grown:  # A limit that stays is not tried again and again: each try is a request in vain.
                    self._needed, self._grown = min(_MOST_FITS, 2 * self._needed), False
                return True
        return False

    def fitted(self) -> None:
        """A page was not too much; after some of them, twice as many rows are asked for."""
        self._fits += 1
        if self._fits >= self._needed and self._now != self._most:
            self._fits, self._grown = 0, True
            self._now = {name: min(self._most[name], 2 * size) for name, size in self._now.items()}

    @property
    def cure(self) -> str:
        """What to do where nothing can be smaller."""
        if not self._most:
            return "Make the number of rows a variable ('first: $first'): burler then asks for fewer. Or select less."
        if self._fixed and self._outer:
            return "Pages that are counted keep their size: say a smaller page_size=. Or select less."
        return "The smallest page is too much. Select fewer fields, or ask for less in each row."


def _begin(plan: Plan, name: str, given: Mapping[str, Any], page_size: int | None) -> int:
    if isinstance(given.get(name), int):
        return int(given[name])
    if page_size is not None:
        return page_size
    found = plan.variables.get(name)
    said = getattr(found.default_value, "value", None) if found is not None else None
    return int(said) if isinstance(said, str) and said.isdecimal() and int(said) > 0 else USUAL
