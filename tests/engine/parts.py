"""Partitioned taps for tests, and what the STATEs of a run claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import burler
from burler.testing import TapRun

FIELDS: dict[str, Any] = {
    "type": "object",
    "properties": {"account": {"type": "string"}, "id": {"type": "integer"}, "text": {"type": ["null", "string"]}},
}
Source = Mapping[str, Iterable[int]]


def row(account: str, number: int) -> dict[str, Any]:
    return {"account": account, "id": number}


def given(source: Source) -> Callable[..., Any]:
    """A sync function that yields the rows of its partition at or after its bookmark."""

    def rows(stream: Any, partition: dict[str, Any]) -> Any:
        account = partition["account"]
        for number in source[account]:
            if stream.bookmark is None or number >= stream.bookmark:
                yield row(account, number)

    return rows


def partitioned(
    source: Any, fn: Callable[..., Any] | None = None, *, order: str | None = None, key: Any = None, **options: Any
) -> burler.Tap:
    """A tap with the INCREMENTAL stream ``rows``, by ``id``; a partition for each account of ``source``, or what the
    function ``source`` gives."""
    tap = burler.tap("tap-parts")
    accounts = source if callable(source) else lambda: [{"account": name} for name in source]
    tap.partitions("rows", order=order, key=key)(accounts)
    said = {"key_properties": ["account", "id"], "replication_key": "id", "schema": FIELDS, **options}
    tap.sync("rows", **said)(fn or given(source))
    return tap


def key_of(account: str) -> str:
    return json.dumps({"account": account}, separators=(",", ":"))


def state_of(entries: Mapping[str, Any], flat: Any = None) -> dict[str, Any]:
    """A state in which the accounts have these bookmarks."""
    parts = {key_of(account): {"id": number} for account, number in entries.items()}
    return {
        "bookmarks": {"rows": {**({} if flat is None else {"id": flat}), **({"partitions": parts} if parts else {})}}
    }


def entry_of(state: Mapping[str, Any], stream: str = "rows") -> dict[str, Any]:
    found: dict[str, Any] = (state.get("bookmarks") or {}).get(stream) or {}
    return found


def marks(state: Mapping[str, Any], stream: str = "rows") -> dict[str, Any]:
    """The bookmark of each account in a state."""
    parts = entry_of(state, stream).get("partitions") or {}
    return {json.loads(key)["account"]: entry.get("id") for key, entry in parts.items()}


def numbers(run: TapRun, account: str | None = None, stream: str = "rows") -> list[int]:
    """The ids that came, of one account or of all."""
    return [one["id"] for one in run.records(stream) if account in (None, one["account"])]


def never_ahead(run: TapRun, source: Source, begun: Mapping[str, Any] | None = None) -> int:
    """Fail where a STATE says more than the rows before it; gives how many claims there were.

    A claim is a bookmark, of an account or flat (for all accounts without one): every row of the source up to it is
    out, here or in the runs that made the state ``begun``.
    """
    claims = 0
    start, flat_start = marks(begun or {}), entry_of(begun or {}).get("id")
    out: set[tuple[str, int]] = set()
    for message in run.messages:
        if message["type"] == "RECORD":
            out.add((message["record"]["account"], message["record"]["id"]))
        if message["type"] != "STATE":
            continue
        said, flat = marks(message["value"]), entry_of(message["value"]).get("id")
        for account, ids in source.items():
            mark = said.get(account, flat)
            before = start.get(account, flat_start)
            if mark is None:
                continue
            claims += 1
            missing = [n for n in ids if n <= mark and (before is None or n > before) and (account, n) not in out]
            assert not missing, f"{account}: STATE says {mark}, and {missing[:5]} are not out"
    return claims
