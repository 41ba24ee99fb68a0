"""The tap of the tail storm: reads the files of a ``World``, and blocks where its plan says.

The environment says which: STORM_PLAN holds the plan as JSON, with ``folder``, ``port``, ``world`` and ``rest`` (true:
it blocks nowhere, and its tail functions end where the source ends).
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import burler

LINE_BYTES = 10
PLAN: dict[str, Any] = json.loads(os.environ["STORM_PLAN"])
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


def connect(kind: str) -> socket.socket:
    """A connection to the hub, which then knows of it."""
    made = socket.create_connection(("127.0.0.1", PLAN["port"]))
    made.sendall(f"{PLAN['world']} {kind} {os.getpid()}\n".encode())
    return made


class Client:
    """A connection to the source. ``number``: how many this process has made."""

    def __init__(self) -> None:
        self._socket = connect("client")
        self.number = int(self._socket.recv(100))

    def close(self) -> None:
        """Close it."""
        self._socket.close()


tap = burler.tap("tap-storm")


@tap.client
def client() -> Client:
    return Client()


def numbers(place: str, start: int) -> Iterator[int]:
    """The rows that a place holds, from ``start`` on."""
    with (Path(PLAN["folder"]) / f"{place}.txt").open("rb") as file:
        file.seek(start * LINE_BYTES)
        while whole := file.read(LINE_BYTES * 100):
            for at in range(0, len(whole) - LINE_BYTES + 1, LINE_BYTES):
                yield int(whole[at : at + LINE_BYTES])


def block() -> None:
    """Block, or be busy, for ever."""
    if PLAN["rest"]:
        return
    with connect("stuck") as other:
        other.recv(100)  # its answer
        if INNER == "recv":
            other.recv(1)  # there never is one
        elif INNER == "sleep":
            time.sleep(600)
        while True:
            sum(range(100))


def given(client: Client, place: str, start: int) -> Iterator[dict[str, Any]]:
    """Rows of a place from ``start`` on; gets stuck, while the first client is there."""
    found: Any = numbers(place, start)
    if PLAN["order"] == "none":
        found = list(found)
        random.Random(place).shuffle(found)
    times = max(1, PLAN["size"] // 9)
    for number in found:
        if number == PLAN["stuck"] and client.number == 1:
            block()
        if not PLAN["rest"]:
            sum(range(PLAN["work"]))
        text = f"{number:09}" * times
        yield {"id": number, "text": text}


def begun(name: str) -> None:
    """Say that a function begins, so that one can see whether its ``finally`` has run as well."""
    sys.stderr.write(f"BEGIN {name}\n")


def ended(name: str) -> None:
    """See ``begun``."""
    sys.stderr.write(f"FINALLY {name}\n")


def polled(client: Client, stream: Any) -> Iterator[Any]:
    begun(stream.name)
    try:
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
    begun(partition["part"])
    try:
        for row in given(client, f"{stream.name}-{partition['part']}", stream.bookmark or 0):
            yield {"part": partition["part"], **row}
            stream.state["done"] = row["id"]
    finally:
        ended(partition["part"])


def followed(client: Client, stream: Any) -> Iterator[Any]:
    """Rows as they come: the hub says when there are more."""
    begun(stream.name)
    try:
        at = stream.state.get("done", -1) + 1 if PLAN["position"] else stream.bookmark or 0
        with connect("push") as wire:
            wire.recv(100)
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


def declare() -> None:
    """The streams of the mode."""
    if MODE == "partitions":
        tap.partitions("rows", key="part")(lambda: [{"part": part} for part in "abcdef"])
        tap.sync("rows", **{**INCREMENTAL, "key_properties": ["part", "id"]})(of_part)
        return
    for place in PLAN["places"]:
        if place.startswith("t"):
            tap.tail(place, **(LOG if PLAN["position"] else INCREMENTAL))(followed)
        else:
            tap.sync(place, **INCREMENTAL)(polled)


declare()

if __name__ == "__main__":
    tap.cli()
