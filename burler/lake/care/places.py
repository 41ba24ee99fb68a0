"""Which streams a lake has, by its folders, and what their manifests say: what all care of a lake begins with.

Everything here goes by folders, not by names: a name that was cut may be in no file any more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from burler.errors import LakeError, UsageError
from burler.lake import layout
from burler.lake.absent import not_there
from burler.lake.manifests import document as doc
from burler.lake.manifests.whole_names import WholeNames
from burler.lake.snapshot import Snapshot
from burler.lake.swap import swap
from burler.storage.base import Store

_log = logging.getLogger("burler.lake")

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Place:
    """A stream's folder, and the names behind it as far as they are known (else the folders' own)."""

    tap_id: str
    stream: str
    folder: str

    @property
    def manifest(self) -> str:
        """Path of its manifest."""
        return f"{self.folder}/{MANIFEST}"

    @property
    def title(self) -> str:
        """As people read it: ``tap/stream``."""
        return f"{self.tap_id}/{self.stream}"


def places(store: Store, *, taps: Sequence[str] | None = None, streams: Sequence[str] | None = None) -> list[Place]:
    """Every stream's folder, sorted; ``taps`` and ``streams`` narrow them.

    Raises:
        UsageError: a tap or stream that was asked for is not there; names those that are.
    """
    names = WholeNames(store)
    found = []
    for tap_folder in store.folders(layout.ROOT):
        tap_id = names.tap(tap_folder) or tap_folder
        for stream_folder in store.folders(f"{layout.ROOT}/{tap_folder}"):
            folder = f"{layout.ROOT}/{tap_folder}/{stream_folder}"
            found.append(Place(tap_id, names.stream(tap_folder, stream_folder) or stream_folder, folder))
    found = _narrowed(store, "tap", taps, found, lambda place: place.tap_id)
    return _narrowed(store, "stream", streams, found, lambda place: place.stream)


def _narrowed(
    store: Store, what: str, wanted: Iterable[str] | None, found: list[Place], name: Callable[[Place], str]
) -> list[Place]:
    if wanted is None:
        return found
    wanted, have = set(wanted), set(map(name, found))
    unknown = sorted(wanted - have)
    if unknown:
        raise UsageError(not_there(store.url, what, unknown[0], have))
    return [place for place in found if name(place) in wanted]


def warn_if_alone(store: Store, what: str) -> None:
    """One loud line where the store keeps no conditions among processes."""
    if not store.conditional:
        _log.warning("%s: this store keeps no conditions: no writer may run during %s.", store.url, what)


def document_at(store: Store, path: str) -> doc.Document | None:
    """The manifest at a path as a document; None where there is none.

    Raises:
        LakeError: it is broken.
    """
    blob = store.read(path)
    return None if blob is None else doc.from_bytes(blob.data, store.locate(path))


def snapshot_of(store: Store, place: Place, document: doc.Document) -> Snapshot:
    """A manifest as readers see it.

    Raises:
        LakeError: what it says about a file is of no known shape.
    """
    where = store.locate(place.manifest)
    return doc.to_snapshot(document, tap_id=place.tap_id, stream=place.stream, folder=place.folder, place=where)


def read_snapshot(store: Store, place: Place) -> Snapshot | None:
    """A stream's manifest as readers see it; None where there is none.

    Raises:
        LakeError: it is broken.
    """
    document = document_at(store, place.manifest)
    return None if document is None else snapshot_of(store, place, document)


def change_manifest(store: Store, place: Place, change: Callable[[doc.Document], bool], *, mark: str) -> bool:
    """Compare-and-swap of a manifest that is there; whether it was changed.

    Args:
        change: alters a fresh document, and says whether there is something to write.
        mark: the commit id that ``change`` leaves in the document: tells an own write whose reply was lost.

    Raises:
        LakeError: it is broken, or has gone.
    """
    done: list[bool] = []

    def changed(data: bytes | None, again: bool) -> bytes | None:
        where = store.locate(place.manifest)
        if data is None:
            raise LakeError(f"{where} has gone meanwhile. Make it anew: burler lake rebuild {store.url}")
        document = doc.from_bytes(data, where)
        if again and mark in document["commit_ids"]:
            return None
        done[:] = [change(document)]
        return doc.to_bytes(document) if done[0] else None

    swap(store, place.manifest, changed)
    return bool(done and done[0])


def add_mark(document: doc.Document, mark: str) -> None:
    """Leave a mark among the commit ids, without a new sequence: a change that adds no data."""
    sequence = document["sequence"]
    doc.add_commit(document, mark)
    document["sequence"] = sequence


def read_json(data: bytes) -> Any:
    """JSON of whatever shape.

    Raises:
        ValueError: it is none; says why.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
