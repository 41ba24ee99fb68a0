"""Read, change, replace if nobody else did in between: how every shared JSON file of a lake changes. Of those that
people edit, too, every digit of what burler does not know stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from burler.clock import Clock
from burler.errors import LakeError, StorageError
from burler.singer.messages import encode
from burler.storage.base import Conflict, OutcomeUnknown, Store

Document = dict[str, Any]

_GIVE_UP_SECONDS = 60.0
_LONGEST_WAIT_SECONDS = 0.5
_MOST_DOUBLINGS = 8

Change = Callable[[bytes | None, bool], bytes | None]
"""(content or None when there is no file, whether an earlier try may have succeeded) -> new content, or
None when there is nothing (more) to write."""


def swap(store: Store, path: str, change: Change, *, clock: Clock | None = None) -> None:
    """Change a file by compare-and-swap, again and again with jitter until no other writer was in between.

    A store may report a conflict with one's own write whose reply was lost: ``change`` is told
    from the second try on, and can look for its own mark.

    Args:
        clock: time and chance; the system's by default.

    Raises:
        StorageError: the store fails, or others have been writing for a minute without a gap.
    """
    clock = clock or Clock()
    give_up, attempt = clock.monotonic() + _GIVE_UP_SECONDS, 0
    while True:
        blob = store.read(path)
        data = change(blob.data if blob else None, attempt > 0)
        if data is None:
            return
        try:
            if blob is None:
                store.create(path, data)
            else:
                store.replace(path, data, tag=blob.tag)
            return
        except (Conflict, FileExistsError, OutcomeUnknown):
            attempt += 1
        if clock.monotonic() > give_up:
            raise StorageError(f"{store.locate(path)}: others write it all the time. Run again with fewer writers.")
        clock.sleep(clock.uniform(0, min(_LONGEST_WAIT_SECONDS, 0.005 * 2 ** min(attempt, _MOST_DOUBLINGS))))


def change_json(
    store: Store,
    path: str,
    change: Callable[[Document | None], Document | None],
    parse: Callable[[bytes, str], Document],
    clock: Clock | None = None,
) -> None:
    """Compare-and-swap of a JSON file; not written when nothing changes, or ``change`` gives None."""

    def changed(data: bytes | None, _again: bool) -> bytes | None:
        document = None if data is None else parse(data, store.locate(path))
        wanted = change(document)
        if wanted is None:
            return None
        try:
            new = msgspec.json.format(encode(wanted), indent=1) + b"\n"
        except (UnicodeEncodeError, RecursionError) as error:  # half of a surrogate pair; nested too deeply
            raise LakeError(f"{store.locate(path)} can't be changed: {error}. Repair it, or move it away.") from None
        return None if new == data else new

    swap(store, path, changed, clock=clock)


def parse_json(data: bytes, place: str) -> Document:
    """The object that a file holds.

    Args:
        place: what is named if it holds none.

    Raises:
        LakeError: it is no JSON, or no object.
    """
    try:
        document = json.loads(data, parse_float=Decimal)  # keeps the digits of numbers it does not understand
    except (ValueError, RecursionError) as error:
        raise LakeError(f"{place} is no valid JSON: {error}. Repair it, or move it away: it can be spared.") from None
    if not isinstance(document, dict):
        raise LakeError(f"{place} is no JSON object. Repair it, or move it away: it can be spared.")
    return document
