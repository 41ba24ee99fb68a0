"""A tap that counts: the source of the streaming tests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import burler

tap = burler.tap(
    "tap-counting",
    config_spec={
        "type": "object",
        "properties": {
            "upto": {"type": "string"},
            "password": {"type": "string"},
            "fail_at": {"type": "integer"},
            "with_square": {"type": "boolean"},
        },
    },
)

KEYS = 50
"""Numbers fall on so many ids, so that an upsert has something to do."""


@tap.schema("numbers")
def numbers_schema(config: dict[str, Any]) -> dict[str, Any]:
    square = {"square": {"type": "integer"}} if config.get("with_square") else {}
    return {"type": "object", "properties": {"id": {"type": "integer"}, "n": {"type": "integer"}, **square}}


@tap.sync("numbers", key_properties="id", replication_key="n", order="asc", bookmark_strategy="every_n(20)")
def numbers(stream: Any, config: dict[str, Any]) -> Any:
    """From the bookmark on, up to the number in the file."""
    for n in range(stream.bookmark or 0, int(Path(config["upto"]).read_text()) + 1):
        if n == config.get("fail_at"):
            raise RuntimeError(f"the source broke at {n}, password {config['password']}")
        square = {"square": n * n} if config.get("with_square") else {}
        yield {"id": n % KEYS, "n": n, **square}


@tap.sync("others", key_properties="id", schema={"type": "object", "properties": {"id": {"type": "integer"}}})
def others() -> Any:
    """Another stream of the same tap."""
    yield {"id": 1}


@tap.schema("pushed")
def pushed_schema() -> dict[str, Any]:
    """The same numbers, from a source that pushes."""
    return {"type": "object", "properties": {"id": {"type": "integer"}, "n": {"type": "integer"}}}


@tap.sync("pushed", key_properties="id", replication_key="n", order="asc")
def missed(stream: Any, config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What was pushed while nobody listened."""
    _note_call(config, "sync")
    yield from _pushed(stream.bookmark or 0, int(Path(config["upto"]).read_text()))


@tap.tail("pushed")
def pushed(stream: Any, config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Stays connected."""
    _note_call(config, "tail")
    first = stream.bookmark or 0
    while True:
        upto = int(Path(config["upto"]).read_text())
        yield from _pushed(first, upto)
        first = max(first, upto + 1)
        time.sleep(0.05)


def _pushed(first: int, last: int) -> Iterator[dict[str, Any]]:
    return ({"id": n, "n": n} for n in range(first, last + 1))


def _note_call(config: dict[str, Any], what: str) -> None:
    with Path(config["upto"]).with_name("calls").open("a") as file:
        file.write(what + "\n")
