"""Streams whose sync function fails at first, for the tests of retries."""

from __future__ import annotations

from typing import Any

from taps import ids, make

import burler


class Expired(Exception):
    """What the source raises here."""


def failing(times: int, *, before: Any = (), then: Any = None, error: Any = Expired) -> Any:
    """A sync function that gives some rows and fails, so many times; ``.seen`` has the bookmark of each try."""
    seen: list[Any] = []

    def rows(stream: Any) -> Any:
        seen.append(stream.bookmark)
        if len(seen) <= times:
            yield from before
            raise error
        yield from ids(1, 2, 3) if then is None else then

    rows.seen = seen  # type: ignore[attr-defined]
    return rows


def one(fn: Any, **options: Any) -> burler.Tap:
    return make(a=(fn, {"retry_sync_on": Expired, **options}))


def out_of(run: Any) -> list[int]:
    return [one["id"] for one in run.records("a")]
