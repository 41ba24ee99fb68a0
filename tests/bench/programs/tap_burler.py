"""burler's side, as an author would write it and a user would run it: Singer's command line, everything selected.

Run as: tap_burler.py VARIANT WORK ROWS (VARIANT is not looked at).
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import clock
import standard

import burler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def make_tap(work: str, count: int) -> burler.Tap:
    """A tap with one stream, whose function yields ``count`` rows in one of the forms a tap may use."""
    tap = burler.tap("tap-std")
    options: dict[str, Any] = {"key_properties": "id", "schema": standard.SCHEMA}
    if work in ("keyed", "tail"):
        options |= {"replication_key": "ts", "bookmark_strategy": "every_n(1000)", "order": "asc"}
    if work == "patterns":
        options["schema"] = standard.PATTERNS
    given = SOURCES[work](count)

    if work == "tail":

        @tap.tail(standard.STREAM, **options)
        def pushed() -> Iterator[Any]:
            yield from given()
            os.kill(os.getpid(), signal.SIGTERM)

        return tap

    @tap.sync(standard.STREAM, **options)
    def std() -> Iterator[Any]:
        yield from given()

    return tap


# What is prepared before the clock starts, and what then runs.
SOURCES: dict[str, Callable[[int], Callable[[], Any]]] = {
    "pages": lambda count: lambda: standard.pages(count),
    "rows": lambda count: lambda: standard.rows(count),
    "patterns": lambda count: lambda: standard.pages(count),
    "keyed": lambda count: lambda: standard.rows(count),
    "tail": lambda count: lambda: standard.rows(count),
    "big": lambda count: lambda: standard.big_rows(count),
    "bytes": lambda count: (lambda prepared: lambda: prepared)(standard.json_pages(count)),
    "arrow": lambda count: (lambda prepared: lambda: prepared)(standard.tables(count)),
}

if __name__ == "__main__":
    tap = make_tap(sys.argv[2], int(sys.argv[3]))
    with clock.measured("burler", "msgspec"):
        tap.cli(["--tail"] if sys.argv[2] == "tail" else [])
