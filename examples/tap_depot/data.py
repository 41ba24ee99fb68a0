"""The depot's rows, made from a seed. This and its neighbours ``service`` and ``server`` run in spyne's Python."""

from __future__ import annotations

import datetime
import random
import threading
from decimal import Decimal
from typing import Any

BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)  # noqa: UP017 spyne's own Pythons may be older
PRODUCTS = 120
_FOLLOWING = {"new": "paid", "paid": "shipped", "shipped": "shipped"}

Row = dict[str, Any]


class Depot:
    """Orders, products and how many of them there are; several threads may ask."""

    def __init__(self, orders: int, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._clock = BEGIN
        self._orders: list[Row] = []
        self.products = [self._product(number) for number in range(1, PRODUCTS + 1)]
        for _ in range(orders):
            self._add()

    def orders(self, since: datetime.datetime | None) -> list[Row]:
        """Orders that changed then or later, the oldest change first."""
        with self._lock:
            found = [dict(row) for row in self._orders if since is None or row["Changed"] >= since]
        return sorted(found, key=lambda row: row["Changed"])

    def stock(self) -> list[Row]:
        """How many there are of each product."""
        return [{"Product": row["Number"], "Count": row["Number"] * 7 % 50} for row in self.products]

    def change(self, count: int) -> None:
        """So many orders go on to their next status, and so many come in."""
        with self._lock:
            for order in self._random.sample(self._orders, min(count, len(self._orders))):
                order["Status"] = _FOLLOWING[order["Status"]]
                order["Changed"] = self._moment()
                order["Shipped"] = order["Changed"] if order["Status"] == "shipped" else None
            for _ in range(count):
                self._add()

    def _add(self) -> None:
        draw = self._random
        lines = [
            {"Product": draw.randint(1, PRODUCTS), "Count": draw.randint(1, 9), "Price": self._price()}
            for _ in range(draw.randint(1, 4))
        ]
        changed = self._moment()
        self._orders.append(
            {
                "Number": len(self._orders) + 1,
                "Changed": changed,
                "Customer": f"customer {draw.randint(1, 40)}",
                "Status": "new",
                "Ordered": (changed - datetime.timedelta(days=draw.randint(0, 5))).date(),
                "Shipped": None,
                "Express": draw.random() < 0.1,
                "Total": sum((line["Price"] * line["Count"] for line in lines), Decimal(0)),
                "Lines": lines,
                "Note": draw.choice([None, "", "<urgent> & fragile", "Grüße"]),
            }
        )

    def _product(self, number: int) -> Row:
        draw = self._random
        return {
            "Number": number,
            "Changed": BEGIN + datetime.timedelta(hours=number),
            "Name": f"product {number}",
            "Price": self._price(),
            "Weight": Decimal(draw.randint(1, 10**9)) / 10**6,
            "Kind": draw.choice(["book", "tool", "toy"]),
            "Tags": draw.sample(["new", "cheap", "heavy"], draw.randint(0, 3)),
            "Discontinued": None if draw.random() < 0.8 else datetime.date(2024, 2, number % 28 + 1),
        }

    def _price(self) -> Decimal:
        return Decimal(self._random.randint(1, 99999)) / 100

    def _moment(self) -> datetime.datetime:
        step = self._random.randint(1, 600_000)
        self._clock += datetime.timedelta(milliseconds=step)
        return self._clock
