"""The floor over HTTP: requests, ``orjson.loads``, ``orjson.dumps`` of each row's envelope, one write a page.

Run as: http_floor.py VARIANT WORK ROWS (VARIANT and WORK are not looked at).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import clock
import floor
import http_source
import orjson
import requests

if TYPE_CHECKING:
    from collections.abc import Iterator


def pages(url: str) -> Iterator[list[dict[str, Any]]]:
    """Pages as the source links them."""
    with requests.Session() as session:
        following: str | None = f"{url}/std"
        while following is not None:
            reply = session.get(following, timeout=60)
            reply.raise_for_status()
            yield orjson.loads(reply.content)
            link = reply.links.get("next")
            following = url + link["url"] if link else None


if __name__ == "__main__":
    with http_source.serving(int(sys.argv[3])) as url, clock.measured("orjson", "requests"):
        floor.write(pages(url))
