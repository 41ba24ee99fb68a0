"""Commands of taps that a test has made: ``command(tap, "discover")`` is ``burler discover`` of that very object; and
what the log warns of meanwhile."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from burler import Tap
from support.cli import Ended, burler

tap: Tap | None = None
"""The one whose command runs: for ``command`` this module is its app."""


def command(of: Tap, name: str, *args: Any, **more: Any) -> Ended:
    """``burler NAME`` of the tap, in this process."""
    global tap
    tap = of
    try:
        return burler(name, f"{__name__}:tap", *args, **more)
    finally:
        tap = None


def discovered(of: Tap) -> dict[str, dict[str, Any]]:
    """The catalog of a tap: each entry by the stream's name."""
    done = command(of, "discover")
    assert done.code == 0, done.stderr
    return {entry["stream"]: entry for entry in json.loads(done.stdout)["streams"]}


def metadata_of(entry: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    """The metadata of an entry by breadcrumb."""
    return {tuple(one["breadcrumb"]): one["metadata"] for one in entry["metadata"]}


def exact(text: str | bytes) -> Any:
    """JSON with every digit: a number with a point or an exponent is a Decimal. No NaN, and no name twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        assert len(made) == len(pairs), "a name stands twice in one object"
        return made

    def no_constant(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_float=Decimal, parse_constant=no_constant, object_pairs_hook=once)


@contextlib.contextmanager
def warnings() -> Iterator[list[str]]:
    """What the log says that is more than INFO."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("burler").addHandler(handler)
    try:
        yield said
    finally:
        logging.getLogger("burler").removeHandler(handler)
