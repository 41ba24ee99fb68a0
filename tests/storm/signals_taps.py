"""The tap of the storm of signals: all its modes. See ``signals_given`` for what it reads and what tells it the plan.

With ``rest`` in the plan its tail functions end where the source ends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import burler
from storm.signals_given import PLAN, Client, connect, given, held

MODE, INNER = PLAN["mode"], PLAN["inner"]
FIELDS = {
    "type": "object",
    "properties": {"part": {"type": "string"}, "id": {"type": "integer"}, "text": {"type": ["null", "string"]}},
}
INCREMENTAL = {
    "key_properties": ["id"],
    "replication_key": "id",
    "order": PLAN["order"],
    "bookmark_strategy": PLAN["strategy"],
    "schema": FIELDS,
}
LOG = {"key_properties": ["id"], "replication_method": burler.LOG_BASED, "schema": FIELDS}


tap = burler.tap("tap-storm")


@tap.client
def client() -> Client:
    return Client()


def begun(name: str) -> None:
    """Say that a function begins, so that one can see whether its ``finally`` has run as well."""
    sys.stderr.write(f"BEGIN {name}\n")


def ended(name: str) -> None:
    """See ``begun``."""
    sys.stderr.write(f"FINALLY {name}\n")


def polled(client: Client, stream: Any) -> Iterator[Any]:
    try:
        begun(stream.name)
        rows = given(client, stream.name, stream.bookmark or 0)
        if MODE == "lazy":
            yield rows
        elif MODE == "page":
            page = []
            for row in rows:
                page.append(row)
                if len(page) == PLAN["page_rows"]:
                    yield page
                    page = []
            yield page
        else:
            for row in rows:
                yield row
                stream.state["done"] = row["id"]
    finally:
        ended(stream.name)


def of_part(client: Client, stream: Any, partition: dict[str, Any]) -> Iterator[Any]:
    try:
        begun(partition["part"])
        for row in given(client, f"{stream.name}-{partition['part']}", stream.bookmark or 0):
            yield {"part": partition["part"], **row}
            stream.state["done"] = row["id"]
    finally:
        ended(partition["part"])


def followed(client: Client, stream: Any) -> Iterator[Any]:
    """Rows as they come: the source says when there are more."""
    try:
        begun(stream.name)
        at = stream.state.get("done", -1) + 1 if PLAN["position"] else stream.bookmark or 0
        with connect("push") as wire:
            wire.recv(100)
            if PLAN["batch"] == "overlap":
                # What comes meanwhile is in both, and so are a few of the last rows.
                next_one = max(at, held(stream.name) - 5)
                yield from stream.catch_up()
                at = next_one
            while True:
                for row in given(client, stream.name, at):
                    at = row["id"] + 1
                    yield row
                    if PLAN["position"]:
                        stream.state = {"done": row["id"]}
                if PLAN["rest"]:
                    return
                if INNER == "recv":
                    wire.recv(100)
                elif INNER == "busy":
                    sum(range(100_000))
                elif PLAN["work"]:
                    time.sleep(0.02)
                elif stream.wait(0.02):
                    return
    finally:
        ended(stream.name)


def woken(stream: Any) -> Iterator[None]:
    """The source says when there are more rows."""
    with connect("push") as wire:
        while wire.recv(100):
            yield


def declare() -> None:
    """The streams of the mode."""
    if MODE == "partitions":
        tap.partitions("rows", key="part")(lambda: [{"part": part} for part in "abcdef"])
        tap.sync("rows", **{**INCREMENTAL, "key_properties": ["part", "id"]})(of_part)
        return
    for place in PLAN["places"]:
        if place.startswith("t"):
            overlap = PLAN["batch"] == "overlap"
            tap.tail(place, overlap=overlap, **(LOG if PLAN["position"] else INCREMENTAL))(followed)
        if not place.startswith("t") or PLAN["batch"]:
            tap.sync(place, **({} if place.startswith("t") else INCREMENTAL))(polled)
        if PLAN["wake"]:
            tap.wake(place)(woken)


declare()

if __name__ == "__main__":
    tap.cli()
