"""What ``check`` sees outside of single streams: names, the descriptive files, what processes left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from burler.errors import BurlerError, LakeError, StateError
from burler.lake import catalogue, layout
from burler.lake.care.findings import Finding, finding
from burler.lake.care.listed import LakeListing
from burler.lake.care.locks import guarded
from burler.lake.care.places import Place
from burler.lake.writing.state import StoredState
from burler.localfile import TEMPORARY
from burler.storage.base import Store, StoredFile

LEFTOVER_SECONDS = 86_400.0
"""A hidden file that did not change for so long is no file that is being written."""
_NO_STATE = (
    f"Put back the one before it ({layout.PREVIOUS_STATE}) with burler state set; burler state reset begins anew."
)


def look(store: Store, listing: LakeListing, wanted: Sequence[Place], *, whole: bool, now: float) -> Iterator[Finding]:
    """Findings about names, ``singerlake.json`` (if the ``whole`` lake is looked at), catalogues and leftovers."""
    folders: dict[str, list[str]] = {}
    for place in wanted:
        tap_folder, _, stream_folder = place.folder.rpartition("/")
        folders.setdefault(tap_folder, []).append(stream_folder)
    if whole:
        yield from _twins(layout.ROOT, [folder.rpartition("/")[2] for folder in folders])
        yield from _readable(store, layout.singerlake_path(), "describes the lake")
    for tap_folder, names in folders.items():
        yield from _twins(tap_folder, names)
        for name in ("catalogue.json", "catalog.json"):
            yield from _readable(store, f"{tap_folder}/{name}", "is the tap's catalogue")
        yield from _states(store, tap_folder)
    yield from leftovers(store, listing.elsewhere, now)


def leftovers(store: Store, files: Sequence[StoredFile], now: float) -> Iterator[Finding]:
    """Hidden files of processes that were killed; not where a writer is at work."""
    busy = guarded(store, files, now=now)
    for file in files:
        folder, _, name = file.path.rpartition("/")
        days = (now - file.modified) / 86_400
        if name.startswith(TEMPORARY) and folder not in busy and now - file.modified >= LEFTOVER_SECONDS:
            yield finding("leftover", file.path, f"a hidden file that nobody has written to for {days:,.1f} days")


def _twins(folder: str, names: list[str]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name in names:
        twin = seen.setdefault(name.lower(), name)
        if twin != name:
            yield finding("twins", f"{folder}/{name}", f"differs from {twin} only in upper and lower case")


def _states(store: Store, tap_folder: str) -> Iterator[Finding]:
    """What can't be read of the tap's state, and of the one before it."""
    for name, cure in ((layout.STATE, _NO_STATE), (layout.PREVIOUS_STATE, "Remove it: it can be spared.")):
        path = f"{tap_folder}/{name}"
        blob = store.read(path)
        try:
            if blob is not None:
                StoredState.from_bytes(blob.data, store.locate(path))
        except StateError:
            yield finding("json", path, "is the tap's state, and can't be used", cure)


def _readable(store: Store, path: str, what: str) -> Iterator[Finding]:
    blob = store.read(path)
    if blob is None:
        return
    try:
        if path == layout.singerlake_path():
            catalogue.encoding_of(store)
        else:
            catalogue.as_catalogue(blob.data, store.locate(path))
    except BurlerError as error:
        cure = None if isinstance(error, LakeError) else "Keep it: another program made this lake."
        yield finding("json", path, f"{what}, and can't be used: {str(error).partition('. Repair')[0]}", cure)
