"""The tap of the soak: all kinds of streams at a high pace, each with rows 1, 2, 3 and so on, so that a reader sees
what is missing. The source is nothing but the bookmark: each poll gives the rows that follow it.

``SOAK_TRACE`` names a file that then gets, each minute, what of Python's memory has grown since the second minute.
"""

from __future__ import annotations

import os
import threading
import time
import tracemalloc
from pathlib import Path

import burler

PLAIN, TABLE_ROWS, SHOPS = 8, 2000, 6
ROW = {"properties": {"id": {"type": "integer"}, "shop": {"type": "string"}, "text": {"type": "string"}}}
KEYED = {"key_properties": "id", "replication_key": "id", "schema": ROW}
TEXT = "x" * 80

tap = burler.tap("tap-soak")


class Source:
    """Stands for a connection: it is closed when a new one is made."""

    made = 0

    def __init__(self) -> None:
        Source.made += 1
        self.file = Path(os.devnull).open()  # noqa: SIM115 (a leak is seen as an open file)

    def close(self) -> None:
        """Close it."""
        self.file.close()


@tap.client
def client():
    """A connection to the source."""
    return Source()


def following(bookmark, count):
    """The row at the bookmark, and those that follow it."""
    first = bookmark or 1
    return [{"id": i, "text": TEXT} for i in range(first, first + count)]


def plain(number):
    """A polled stream; each has a pace of its own, every second one is in no order."""
    order = {} if number % 2 else {"order": "asc"}

    @tap.sync(f"plain{number}", new_record_polling_interval_ms=50 + 60 * number, **order, **KEYED)
    def rows(client, stream):
        found = following(stream.bookmark, 100)
        return found if order else list(reversed(found))


for number in range(PLAIN):
    plain(number)


@tap.sync("orders", order="asc", new_record_polling_interval_ms=200, **KEYED)
def orders(client, stream):
    """With lines."""
    yield from following(stream.bookmark, 20)


@tap.sync("lines", parent="orders", key_properties="id", schema=ROW)
def lines(parent):
    """Three for each order."""
    return [{"id": parent["id"] * 3 + n - 2, "text": TEXT} for n in range(3)]


tap.partitions("shops", key="shop")(lambda: [{"shop": f"s{n}"} for n in range(SHOPS)])


@tap.sync("shops", order="asc", new_record_polling_interval_ms=300, **KEYED | {"key_properties": ["shop", "id"]})
def shops(stream, partition):
    """In partitions."""
    for row in following(stream.bookmark, 30):
        yield {**row, **partition}


@tap.sync("table", key_properties="id", schema=ROW, max_full_table_age_seconds=3)
def table():
    """A full table, with a version each time."""
    return [{"id": i, "text": TEXT} for i in range(1, TABLE_ROWS + 1)]


tries = [0]


@tap.sync("failing", order="asc", new_record_polling_interval_ms=100, **KEYED)
def failing(stream):
    """Every fourth poll fails, in the middle of its rows."""
    tries[0] += 1
    for n, row in enumerate(following(stream.bookmark, 50)):
        if n == 25 and tries[0] % 4 == 0:
            raise ConnectionResetError("the source has gone away")
        yield row


def pushing(name, rows_each, seconds):
    """A stream that pushes, and loses its connection now and then; its place is its state."""

    @tap.tail(name, key_properties="id", schema=ROW, replication_method="LOG_BASED")
    def events(stream):
        place = stream.state.get("place", 0)
        for _ in range(2000):
            for _ in range(rows_each):
                place += 1
                yield {"id": place, "text": TEXT}
            stream.state = {"place": place}
            if stream.wait(seconds):
                return
        raise ConnectionResetError("lost")

    @tap.ack(name)
    def ack(state):
        assert state["place"] > 0


pushing("events", 10, 0.01)
pushing("bells", 1, 0.05)


def trace(path):
    """Say what grows; for ever."""
    first = None
    while True:
        time.sleep(60)
        now = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, tracemalloc.__file__)])
        if first is None:
            time.sleep(60)
            first = tracemalloc.take_snapshot()
            continue
        grown = now.compare_to(first, "lineno")[:12]
        held = sum(one.size for one in now.statistics("filename"))
        text = [f"{time.strftime('%H:%M:%S')} Python holds {held / 1e6:.2f} MB; most grown:", *map(str, grown), ""]
        with path.open("a") as file:
            file.write("\n".join(text) + "\n")


if os.environ.get("SOAK_TRACE"):
    tracemalloc.start(1)
    threading.Thread(target=trace, args=(Path(os.environ["SOAK_TRACE"]),), daemon=True).start()
