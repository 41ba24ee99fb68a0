"""Random lines of streams for the crash tests and the property tests: every option, in combinations that make sense."""

from __future__ import annotations

import random
from typing import Any

from storm.crashworld import KINDS, Line

FORMS = ("row", "list", "json", "json lines", "iterator", "named", "emit")
STRATEGIES = (
    "end_of_sync",
    "every_n(1)",
    "every_n(7)",
    "every_n(50)",
    "every_seconds(0.02)",
    "on_page",
    "manual",
    "user",
)
SHAPES = ("flat", "flat", "partitions", "partitions", "family", "family", "table", "table family", "partitions family")


def lines_of(seed: int) -> list[Line]:
    """The lines of one tap."""
    rng = random.Random(f"lines {seed}")
    return [line_of(rng, f"s{i}") for i in range(rng.choice([1, 1, 1, 2, 3, 5]))]


def line_of(rng: random.Random, name: str, *, shapes: tuple[str, ...] = SHAPES, big: bool = True, **fixed: Any) -> Line:
    """One line; ``fixed``: what is not left to chance. Not ``big``: few rows of little text."""
    shape = rng.choice(shapes)
    made: dict[str, Any] = {"name": name, "seed": rng.randrange(1 << 30), "page_first": rng.random() < 0.5}
    made["forms"] = tuple(rng.sample(FORMS, rng.randint(1, 3)))
    made["strategy"] = rng.choice(STRATEGIES)
    made |= _size(rng, shape) if big else {"rows": rng.randint(0, 12), "size": 8}
    made |= _table(rng) if "table" in shape else _keyed(rng)
    if "partitions" in shape or (shape == "table" and rng.random() < 0.2 and not made.get("resumable")):
        made |= _partitions(rng, made)
    if "family" in shape:
        made["depth"] = rng.choice([1, 1, 2])
        made["child_key"] = not made.get("table") and rng.random() < 0.4
        made["rollup"] = made["child_key"] and not made.get("position") and rng.random() < 0.4
        made["child_retry"] = rng.random() < 0.3
    made["beside"] = rng.random() < 0.2
    if rng.random() < 0.25:
        made["retry"] = rng.choice(["plain", "setup"])
    return Line(**(made | fixed))


def _size(rng: random.Random, shape: str) -> dict[str, Any]:
    size = rng.choice([0, 30, 30, 30, 1000, 1000, 20_000, 200_000])
    most = {0: 900, 30: 900, 1000: 300, 20_000: 50, 200_000: 12}[size]
    if "family" in shape:
        most = min(most, 70)
    return {"size": size, "rows": rng.randint(0, most) if rng.random() < 0.95 else 0}


def _table(rng: random.Random) -> dict[str, Any]:
    resumable = rng.random() < 0.6
    # A full table has an order, and so a place to go on at, only by what it is resumable by.
    made: dict[str, Any] = {"table": True, "resumable": resumable, "order": "asc" if resumable else "none"}
    if not resumable:
        made["strategy"] = "end_of_sync"
    made["versions"] = rng.choice(["auto", "auto", "auto", "off", "auto" if resumable else "block"])
    return made


def _keyed(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(KINDS)
    made: dict[str, Any] = {"kind": kind, "order": rng.choice(["asc", "asc", "none"])}
    if rng.random() < 0.3:
        made["resume"] = "exclusive"
    if kind != "text" and rng.random() < 0.3:
        made["lookback"] = rng.choice([1, 3, 20])
    if kind.startswith("date") and rng.random() < 0.3:
        made["signpost"] = True
    if made["order"] == "asc" and rng.random() < 0.15:
        made["late"] = True
    elif rng.random() < 0.15:
        made["position"] = True
    return made


def _partitions(rng: random.Random, made: dict[str, Any]) -> dict[str, Any]:
    order = rng.choice(["none", "none", "asc"])
    if made.get("late") or made.get("position") or made.get("table"):
        order = "none"
    more: dict[str, Any] = {"partitions": order, "workers": rng.choice([1, 2, 8])}
    if made.get("versions") == "block":
        more["versions"] = "auto"  # a version is about all partitions
    more["partition_key"] = rng.choice(["json", "field", "function"])
    return more
