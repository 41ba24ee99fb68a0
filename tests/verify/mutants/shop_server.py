"""A small shop with an HTTP API, for the tap beside it: `python shop_server.py --port 8000`.

GET /products?page=1&per_page=7                     all products, by id
GET /orders?updated_since=TIME&sort=updated_at      orders changed at TIME or later, oldest change first, then by id
GET /order_lines?order_ids=3,9                      the lines of some orders

Lists come as {"items": [...], "next_page": 2}; `next_page` is null on the last one. Each request needs the token.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

PER_PAGE = 7
ORDERS, PRODUCTS = 34, 30
FIRST = datetime(2023, 12, 20, 8, 15, tzinfo=UTC)
# Orders changed by one import have one time; each of these lies across the end of a page of 7.
SAME_TIME = {6: 5, 7: 5, 8: 5, 14: 13, 21: 20, 22: 20, 28: 27, 33: 32}


def times() -> list[datetime]:
    """When each order was changed last, oldest first: from December into February, hours and days apart."""
    found: list[datetime] = []
    for at in range(ORDERS):
        own = FIRST + timedelta(days=at * 1.5, minutes=at * 17, seconds=at)
        found.append(found[SAME_TIME[at]] if at in SAME_TIME else own)
    return found


def text(moment: datetime) -> str:
    """A time as the API writes it."""
    return moment.isoformat().replace("+00:00", "Z")


def products() -> list[dict]:
    """All products, by id."""
    return [
        {
            "id": at,
            "sku": f"SKU-{at:03}",
            "title": f"Thing no. {at}",
            "price": f"{at * 3 + 1}.{at * 7 % 100:02}",
            "weight_kg": round(0.25 + at * 0.13, 2) if at % 4 else None,
            "in_stock": at % 3 != 0,
            "image_url": f"https://images.shop.example/{at}.jpg",
            "category": {"id": at % 5 + 1, "name": ("garden", "kitchen", "office", "toys", "books")[at % 5]},
        }
        for at in range(1, PRODUCTS + 1)
    ]


def orders() -> list[dict]:
    """All orders, by time of change, then id. Ids say nothing about the time of change."""
    moments = times()
    return sorted((_order(1 + at * 11 % ORDERS, at, moment) for at, moment in enumerate(moments)), key=by_change)


def by_change(order: dict) -> tuple[datetime, int]:
    """What orders are sorted by."""
    return datetime.fromisoformat(order["updated_at"]), order["id"]


def _order(number: int, at: int, updated: datetime) -> dict:
    return {
        "id": number,
        "number": f"A-{1000 + number}",
        "status": ("open", "paid", "sent", "returned")[at % 4],
        "placed_on": (updated - timedelta(days=1 + at % 3)).date().isoformat(),
        "updated_at": text(updated),
        "total": round(12.35 + number * 4.4, 2),
        "item_count": 1 + at % 5,
        "is_gift": at % 6 == 0,
        "note": None if at % 3 else f"leave it at door {at}",
        "customer": {
            "id": 500 + at % 9,
            "name": f"Customer {at % 9}",
            "email": None if at % 9 == 4 else f"c{at % 9}@mail.example",
        },
        "address": None if at % 5 == 2 else {"street": f"Long Road {at}", "city": "Rivertown", "zip": f"{10000 + at}"},
        "tags": ["vip", "late"][: at % 3],
    }


def lines_of(number: int) -> list[dict]:
    """The lines of an order: one or two."""
    return [
        {
            "order_id": number,
            "line_no": line,
            "product_id": (number * 3 + line) % PRODUCTS + 1,
            "quantity": 1 + (number + line) % 4,
            "unit_price": round(3.95 + number * 0.5, 2),
            "discount": None if (number + line) % 3 else 0.15,
        }
        for line in range(1, 2 + number % 3 // 2)
    ]


class Shop(ThreadingHTTPServer):
    """The server. `hits` are the paths and queries it was asked for, in that order."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, token: str, *, port: int = 0, latency_seconds: float = 0.015) -> None:
        self.token = token
        self.latency_seconds = latency_seconds
        self.hits: list[str] = []
        self.orders, self.products = orders(), products()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @contextmanager
    def running(self):
        """Serve in a thread until the block ends."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            self.server_close()
            thread.join()

    def handle_error(self, request, client_address) -> None:
        """A client that has gone is nothing to tell."""

    def answer(self, path: str, query: dict[str, str]) -> dict:
        """The answer to a request. KeyError: no such path; ValueError: a parameter nobody can read."""
        if path == "/products":
            return self._page(self.products, query)
        if path == "/orders":
            return self._page(self._orders(query), query)
        if path == "/order_lines":
            return {"items": [line for number in query["order_ids"].split(",") for line in lines_of(int(number))]}
        raise KeyError(path)

    def _orders(self, query: dict[str, str]) -> list[dict]:
        since = datetime.fromisoformat(query.get("updated_since", text(FIRST)))
        found = [order for order in self.orders if datetime.fromisoformat(order["updated_at"]) >= since]
        wanted = query.get("sort", "updated_at")
        if wanted.removeprefix("-") == "id":
            found.sort(key=lambda order: order["id"])
        elif wanted.removeprefix("-") != "updated_at":
            raise ValueError(f"sort={wanted}")
        return found[::-1] if wanted.startswith("-") else found

    def _page(self, rows: list[dict], query: dict[str, str]) -> dict:
        page, size = int(query.get("page", 1)), int(query.get("per_page", PER_PAGE))
        end = page * size
        return {"items": rows[end - size : end], "next_page": page + 1 if end < len(rows) else None}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body go out at once
    server: Shop

    def log_message(self, format: str, *args) -> None:
        """Requests are counted, not logged."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.server.hits.append(self.path)
        time.sleep(self.server.latency_seconds)
        if self.headers.get("Authorization") != f"Bearer {self.server.token}":
            return self._send(401, {"error": "the token is not known"})
        try:
            return self._send(200, self.server.answer(parts.path, dict(parse_qsl(parts.query))))
        except KeyError:
            return self._send(404, {"error": "no such path"})
        except (ValueError, TypeError) as error:
            return self._send(400, {"error": str(error)})

    def _send(self, status: int, content: dict) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A small shop with an HTTP API.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--token", default="a-token-for-the-shop")
    flags = parser.parse_args()
    with Shop(flags.token, port=flags.port) as shop:
        print(shop.url, flush=True)
        shop.serve_forever()


if __name__ == "__main__":
    main()
