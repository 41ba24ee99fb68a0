"""Which streams a lake has, and under which ids a replay knows them.

A stream's id in catalogs and states is its name; where another tap of those that are read has a stream of that name,
``<tap_id>-<stream>``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from burler.errors import LakeError, UsageError
from burler.lake import layout
from burler.lake.absent import not_there
from burler.lake.catalogue import read_catalogue
from burler.lake.manifests.whole_names import WholeNames
from burler.lake.reading.choice import ALL_TIMES, Window
from burler.storage.base import Store

_log = logging.getLogger("burler.lake")

_NAMELESS = (
    "its name was cut, and nothing in the lake says it whole. A stream's: burler lake rebuild reads it from its files; "
    "a tap's: give it whole (--tap NAME)"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options ask for; empty means everything. ``schema``: see ``versions_wanted``."""

    taps: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    schema: str | None = None
    times: Window = ALL_TIMES
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A stream of the lake, not looked at yet."""

    tap_id: str
    stream: str
    id: str


def find(store: Store, asked: Asked) -> list[Found]:
    """The streams that the options name, tap by tap, in the order of each tap's catalog. No manifest is read.

    Raises:
        UsageError: a tap or stream that was asked for is not there, or the lake is empty.
    """
    taps = store.folders(layout.ROOT)
    wanted = {layout.component(tap): tap for tap in asked.taps}
    _refuse_unknown("tap", asked.taps, [layout.name_of(one) or one for one in taps], set(wanted) - set(taps), store)
    there: list[tuple[str, str]] = []
    for folder in taps:
        if not wanted or folder in wanted:
            there += _streams_of(store, folder, wanted.get(folder))
    if not there:
        raise UsageError(
            f"{store.url}: there is no stream in this lake. Fill it: some-tap | burler lake write LAKE --tap-id tap"
        )
    names = [stream for _, stream in there]
    _refuse_unknown("stream", asked.streams, names, set(asked.streams) - set(names), store)
    twins = {name for name, times in Counter(names).items() if times > 1}
    found = [Found(tap, stream, f"{tap}-{stream}" if stream in twins else stream) for tap, stream in there]
    for id, times in Counter(one.id for one in found).items():
        if times > 1:  # a stream whose own name begins with another tap's
            raise UsageError(f"{store.url}: two streams would both have the id '{id}'. Read one tap at a time: --tap")
    return [one for one in found if not asked.streams or one.stream in asked.streams]


def _refuse_unknown(what: str, asked: Sequence[str], known: Sequence[str], unknown: set[str], store: Store) -> None:
    if unknown:
        name = next((one for one in asked if one in unknown or layout.component(one) in unknown), "")
        raise UsageError(not_there(store.url, what, name, known))


def _streams_of(store: Store, tap_folder: str, name: str | None) -> list[tuple[str, str]]:
    """(tap id, stream) of one tap, in the order of its catalog; names that were cut are looked up."""
    folders, names = store.folders(f"{layout.ROOT}/{tap_folder}"), WholeNames(store)
    tap_id = name or names.tap(tap_folder)
    if tap_id is None:
        _log.warning("%s/%s is left out: %s", layout.ROOT, tap_folder, _NAMELESS)
        return []
    found = {folder: names.stream(tap_folder, folder) for folder in folders}
    for folder, stream in found.items():
        if stream is None:
            _log.warning("%s/%s/%s is left out: %s", layout.ROOT, tap_folder, folder, _NAMELESS)
    pairs = [(tap_id, stream) for stream in found.values() if stream is not None]
    order = _catalogue_order(store, pairs[0][0]) if len(pairs) > 1 else {}
    return sorted(pairs, key=lambda pair: (order.get(pair[1], len(order)), pair[1]))


def _catalogue_order(store: Store, tap_id: str) -> dict[str, int]:
    try:
        catalogue = read_catalogue(store, tap_id)
    except LakeError as error:
        _log.warning("%s", error)
        return {}
    entries = (catalogue or {}).get("streams") or ()
    return {entry["stream"]: at for at, entry in enumerate(entries) if isinstance(entry.get("stream"), str)}
