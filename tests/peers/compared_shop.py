"""The source of docs/comparison.md: a shop's orders since a moment, sorted by it, three a page."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from support import servers
from support.servers import Asked

ORDERS = [
    {"id": number, "customer": name, "total": 4.5 * number, "updated_at": f"2026-01-0{number}T12:00:00Z"}
    for number, name in enumerate(("Ada", "Bo", "Cy", "Di", "Eve", "Flo", "Gil"), 1)
]
PAGE_ROWS = 3


class Shop:
    """What it has, and in ``asked`` the path and query of each request, in order. ``fault`` gives another status."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = list(rows)
        self.asked: list[str] = []
        self.url = ""

    def fault(self, path: str) -> int:
        """The status of a request that gets no page, or 0."""
        return 0

    def answer(self, asked: Asked) -> Any:
        """A page of orders."""
        path = asked.path + "?" + "&".join(map("=".join, asked.pairs))
        self.asked.append(path)
        if status := self.fault(path):
            return status
        since, page = asked.query.get("since", ""), int(asked.query.get("page", "1"))
        found = [row for row in self.rows if row["updated_at"] >= since]
        following = page + 1 if len(found) > page * PAGE_ROWS else None
        reply = {"data": found[(page - 1) * PAGE_ROWS : page * PAGE_ROWS], "next_page": following}
        return 200, {"Content-Type": "application/json"}, reply


@contextlib.contextmanager
def serving(shop: Shop | None = None) -> Iterator[Shop]:
    """The shop, until the block ends."""
    shop = shop or Shop(ORDERS)
    with servers.serving(shop.answer) as server:
        shop.url = server.url
        yield shop
