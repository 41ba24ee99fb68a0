"""JSON files of a lake that people edit, too: every digit of what burler does not know stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from burler.clock import Clock
from burler.errors import LakeError
from burler.lake.swap import swap
from burler.singer.messages import encode
from burler.storage.base import Store

Document = dict[str, Any]


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
