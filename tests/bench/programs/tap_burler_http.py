"""burler reading a source over HTTP, as an author would write it and a user would run it.

Run as: tap_burler_http.py VARIANT WORK ROWS (VARIANT and WORK are not looked at).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import clock
import http_source
import standard

import burler

if TYPE_CHECKING:
    from collections.abc import Iterator


def make_tap(url: str) -> burler.Tap:
    """A tap with the one stream."""
    tap = burler.tap("tap-std")

    @tap.client
    def client() -> Any:
        return burler.http.Client(url)

    @tap.sync(standard.STREAM, key_properties="id", schema=standard.SCHEMA)
    def std(client: Any) -> Iterator[Any]:
        yield from client.pages("/std")

    return tap


if __name__ == "__main__":
    with http_source.serving(int(sys.argv[3])) as url:
        tap = make_tap(url)
        with clock.measured("burler", "requests"):
            tap.cli([])
