"""The two descriptive files of a lake: ``catalogue.json`` of each tap, ``singerlake.json`` of all.

Neither is needed to read the lake, and both can be edited by hand: what burler does not know in them
it leaves as it is. On disk the Singerlake spelling is used; in code it is a catalog.
"""

from __future__ import annotations

import logging
import secrets
import sys
from collections.abc import Callable, Iterable
from typing import Any

from burler import times
from burler.clock import Clock
from burler.errors import BurlerError, LakeError, UsageError
from burler.lake import layout
from burler.lake.hashing import CANONICAL_FORM, ENCODINGS
from burler.lake.lake import LAKE_FORMAT, Lake, as_singerlake, read_singerlake, taps_of
from burler.lake.store import Document, change_json, parse_json, unusable
from burler.singer.messages import Schema
from burler.storage.base import Store

_log = logging.getLogger("burler.lake")
_TAP_NOTES = ("owner", "description", "documentation", "status")


def read_catalogue(store: Store, tap_id: str) -> Document | None:
    """A tap's catalog ``{"streams": [...]}``; None when there is none. ``catalog.json`` is read as well.

    Raises:
        LakeError: it is no JSON object with a list of streams.
    """
    for path in (layout.catalogue_path(tap_id), f"{layout.tap_folder(tap_id)}/catalog.json"):
        blob = store.read(path)
        if blob is not None:
            return as_catalogue(blob.data, store.locate(path))
    return None


def describe_streams(
    store: Store, tap_id: str, schemas: Iterable[Schema], *, mend: bool = False, clock: Clock | None = None
) -> None:
    """Put the newest schema of each stream into the tap's catalog; other entries stay, of a ``catalog.json`` too.

    Args:
        mend: what nobody can read is made anew, instead of being refused.

    Raises:
        LakeError: it is no catalog.
    """
    wanted = list(schemas)
    path = layout.catalogue_path(tap_id)

    def change(document: Document | None) -> Document:
        catalog = document or read_catalogue(store, tap_id) or {"streams": []}
        entries: list[Document] = list(catalog["streams"])
        places = {stream_named(entry): at for at, entry in enumerate(entries)}
        for schema in wanted:
            at = places.setdefault(schema.stream, len(entries))
            if at == len(entries):
                entries.append({})
            entries[at] = _entry(schema, entries[at])
        return {**catalog, "streams": entries}

    def parse(data: bytes, place: str) -> Document:
        try:
            return as_catalogue(data, place)
        except LakeError:
            if not mend:
                raise
            return {"streams": []}

    change_json(store, path, change, parse, clock)


def stream_named(entry: Document) -> str | None:
    """The stream that an entry of a catalog is of; None where it does not say."""
    name = entry.get("tap_stream_id", entry.get("stream"))
    return name if isinstance(name, str) else None


def schema_hash_rules(encoding: str = ENCODINGS[0]) -> Document:
    """What ``singerlake.json`` says of how schema folders get their names."""
    return {"function": "farmhash-fingerprint64", "canonical": CANONICAL_FORM, "encoding": encoding}


def describe_lake(
    store: Store,
    tap_id: str,
    *,
    encoding: str | None = None,
    status: Document | None = None,
    mend: bool = False,
    clock: Clock | None = None,
) -> str:
    """Make ``singerlake.json``, or add the tap to it; how this lake spells the hashes in its folders' names.

    Args:
        encoding: ``base58`` or ``base85``, for a new lake; None: the lake's own, base58 for a new one.
        status: of the run that begins; the link to its log, which people give, is kept.
        mend: what can't be used in it is dropped, instead of being refused.

    Raises:
        LakeError: it is broken.
        UsageError: the lake names its schema folders by other rules than those asked for, or than this burler knows;
            or base85 on Windows.
    """
    if encoding is not None and encoding not in ENCODINGS:
        raise UsageError(f"encoding {encoding!r} is unknown. Known: {', '.join(ENCODINGS)}.")
    path = layout.singerlake_path()
    found: list[str] = []

    def change(document: Document | None) -> Document:
        seen = None if encoding or document else Lake(store).encoding_seen()
        new = schema_hash_rules(encoding or seen or ENCODINGS[0])
        lake: Document = {} if document is None else document
        lake.setdefault("lake_id", secrets.token_hex(16))
        if lake.setdefault("format", LAKE_FORMAT) != LAKE_FORMAT:
            raise UsageError(f"{store.locate(path)} has format {lake['format']}. Upgrade burler to write there.")
        found[:] = [_encoding(lake.setdefault("schema_hash", new), store.locate(path), encoding)]
        taps = lake.setdefault("taps", {})
        taps[tap_id] = {**dict.fromkeys(_TAP_NOTES), **(taps.get(tap_id) or {})}
        if status is not None:
            taps[tap_id]["status"] = {**status, "link": _link(taps[tap_id])}
        return lake

    change_json(store, path, change, _mended if mend else as_singerlake, clock)
    return found[0]


def encoding_of(store: Store) -> str:
    """How a lake spells the hashes in its folders' names: ``base58`` or ``base85``.

    Raises:
        UsageError: by rules that this burler does not know. LakeError: ``singerlake.json`` is broken.
    """
    lake = read_singerlake(store)
    if lake is None:
        return Lake(store).encoding_seen() or ENCODINGS[0]
    return _encoding(lake.get("schema_hash", schema_hash_rules()), store.locate(layout.singerlake_path()), None)


def _encoding(rules: Any, place: str, wanted: str | None) -> str:
    known = next((encoding for encoding in ENCODINGS if rules == schema_hash_rules(encoding)), None)
    if known is None or (wanted is not None and known != wanted):
        raise UsageError(
            f"{place} asks for the schema hash {rules}; "
            f"{f'you ask for {wanted}' if known else f'this burler writes {schema_hash_rules()}'}. "
            "Write to another lake."
        )
    if known == "base85" and sys.platform == "win32":
        raise UsageError(f"{place}: base85 has characters that no folder on Windows can have. Write to another lake.")
    return known


def note_tap(store: Store, tap_id: str, notes: Document, *, link: str | None = None) -> None:
    """Put what people say of a tap into ``singerlake.json``; keys that are not given stay.

    Args:
        link: to the log of its job; an empty one removes it, None leaves it.

    Raises:
        LakeError: the file is broken. UsageError: see ``describe_lake``.
    """
    describe_lake(store, tap_id)

    def change(tap: Document) -> bool:
        tap.update(notes)
        if link is not None:
            status = tap.get("status")
            tap["status"] = {**(status if isinstance(status, dict) else {"state": status}), "link": link or None}
        return True

    _change_tap(store, tap_id, change)


def _change_tap(store: Store, tap_id: str, change: Callable[[Document], bool], clock: Clock | None = None) -> None:
    """Change what ``singerlake.json`` says of a tap, where ``change`` says so; nothing where the tap is not in it."""

    def changed(document: Document | None) -> Document | None:
        tap = taps_of(document).get(tap_id)
        return document if isinstance(tap, dict) and change(tap) else None

    change_json(store, layout.singerlake_path(), changed, as_singerlake, clock)


class RunNotes:
    """What a run says of itself and of its streams in the two files, beside its data; nothing rests on it.

    Args:
        encoding: see ``describe_lake``.

    Attributes:
        encoding: how the lake spells the hashes in its folders' names; empty before ``begin``.
    """

    def __init__(self, store: Store, tap_id: str, *, writer_id: str, encoding: str | None, clock: Clock) -> None:
        self._store, self._tap_id, self._writer_id, self._clock = store, tap_id, writer_id, clock
        self._wanted, self.encoding, self._started = encoding, "", ""
        self._undescribed: dict[str, Schema] = {}

    def begin(self) -> None:
        """Make the lake known, once: the tap is running.

        Raises:
            LakeError, UsageError: see ``describe_lake``.
        """
        if not self.encoding:
            self._started = times.format_time(self._clock.now())
            self.encoding = describe_lake(
                self._store, self._tap_id, encoding=self._wanted, status=self._status("running"), clock=self._clock
            )

    def use(self, schema: Schema) -> None:
        """A stream's schema from here on, for ``describe``."""
        self._undescribed[schema.stream] = schema

    def describe(self, stream: str | None = None) -> None:
        """Put the schema of a stream into the catalog, if it is new there; None: of all streams."""
        new = [schema for name, schema in self._undescribed.items() if stream in (None, name)]
        if new:
            describe_streams(self._store, self._tap_id, new, clock=self._clock)
            for schema in new:
                del self._undescribed[schema.stream]

    def end(self, *, failed: bool) -> None:
        """How the run ended, unless another writer's run began since. What can't be written is only told."""

        def change(tap: Document) -> bool:
            known = tap.get("status")
            if isinstance(known, dict) and known.get("writer-id") not in (None, self._writer_id):
                return False
            tap["status"] = {**self._status("failed" if failed else "complete"), "link": _link(tap)}
            return True

        try:
            if self.encoding:
                _change_tap(self._store, self._tap_id, change, self._clock)
        except BurlerError as error:
            _log.warning("tap '%s': its status in the lake could not be written: %s", self._tap_id, error)

    def _status(self, state: str) -> Document:
        ended = None if state == "running" else times.format_time(self._clock.now())
        return {"state": state, "writer-id": self._writer_id, "started": self._started, "ended": ended, "link": None}


def _link(tap: Document) -> Any:
    known = tap.get("status")
    return known.get("link") if isinstance(known, dict) else None


def _entry(schema: Schema, known: Document) -> Document:
    """One entry of a catalog; what somebody wrote beside our keys stays."""
    keys = list(schema.key_properties)
    root: Document = {"selected": True, "table-key-properties": keys}
    if schema.bookmark_properties:
        root["valid-replication-keys"] = list(schema.bookmark_properties)
    more = known.get("metadata")
    metadata: list[Document] = [
        item for item in (more if isinstance(more, list) else ()) if isinstance(item, dict) and item.get("breadcrumb")
    ]
    return {
        **known,
        "tap_stream_id": schema.stream,
        "stream": schema.stream,
        "key_properties": keys,
        "schema": schema.schema,
        "metadata": [{"breadcrumb": [], "metadata": root}, *metadata],
    }


def _mended(data: bytes, place: str) -> Document:
    """What can be used of it."""
    try:
        document = parse_json(data, place)
    except LakeError:
        return {}
    if document.get("format", LAKE_FORMAT) == LAKE_FORMAT:
        document["taps"] = {tap: notes for tap, notes in taps_of(document).items() if isinstance(notes, dict)}
    return document


def as_catalogue(data: bytes, place: str) -> Document:
    """The content of a ``catalogue.json``.

    Args:
        place: what is named if it can't be used.

    Raises:
        LakeError: it is no JSON object with a list of streams.
    """
    document = parse_json(data, place)
    streams = document.get("streams")
    if not isinstance(streams, list) or not all(isinstance(entry, dict) for entry in streams):
        raise unusable(place, "is no Singer catalog")
    return document
