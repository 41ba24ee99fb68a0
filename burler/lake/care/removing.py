"""Taking away data files that no manifest names, so that no writer can commit one that is gone.

First the manifest says, by compare-and-swap, which names will go (``removed``); a commit of one of them is refused from
then on, and a rebuild that read the manifest before must read it again. Then they go.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from burler import times
from burler.lake.care.places import Place, add_mark, change_manifest
from burler.lake.layout import SortKey, sort_key
from burler.lake.manifests import document as doc
from burler.lake.manifests import replaced
from burler.lake.swap import swap
from burler.storage.base import Store

_AT_ONCE = 8
GONE = "~"
"""No file of a lake has a name that begins so."""
_REMEMBERED_SECONDS = 90 * 86_400.0


def remove_unlisted(store: Store, place: Place, names: Iterable[str], *, now: float) -> list[str]:
    """Remove data files that the manifest does not list now; the names of those that went.

    Args:
        names: relative to the stream's folder.
        now: seconds since 1970.

    Raises:
        LakeError: the manifest is broken or gone; nothing is removed. StorageError: the store fails.
    """
    wanted = list(dict.fromkeys(names))
    mark = secrets.token_hex(16)
    going: list[str] = []
    compacted: list[str] = []

    def change(document: doc.Document) -> bool:
        listed = set(document["files"])
        compacted[:] = [name for name in listed if replaced.is_compacted(name)]
        going[:] = [name for name in wanted if name not in listed]
        if going:
            _note(document, going, now)
            add_mark(document, mark)
        return bool(going)

    change_manifest(store, place, change, mark=mark)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(store.remove, [f"{place.folder}/{name}" for name in going]):
            pass
    for name in going:
        if replaced.is_compacted(name):  # after the file: without its note that would count beside its parts
            store.remove(replaced.note_path(f"{place.folder}/{name}"))
    # Last of all: as long as a part is there it must not count, and once it is gone its name may be used again.
    gone = set(going)
    for name in compacted:
        forget(store, place, f"{place.folder}/{name}", gone)
    return going


def _note(document: doc.Document, going: list[str], now: float) -> None:
    """Forget what is known of files that go, and have nobody commit them any more."""
    committed, stats = doc.replaced_names(document), document["file_stats"]
    removed = dict(document.get("removed") or {})
    written, oldest = (_time(moment) for moment in (now, now - _REMEMBERED_SECONDS))
    for name in [name for name, when in removed.items() if str(when) < oldest]:
        del removed[name]
    for name in going:
        stats.pop(name, None)
        if name not in committed:  # what was committed once is not committed again
            removed[name] = written
    if removed or "removed" in document:
        document["removed"] = removed
    gone = set(going)
    for name in document["files"]:
        parts = (stats.get(name) or {}).get("replaces")
        if parts:
            stats[name]["replaces"] = pruned(parts, gone)


def pruned(parts: dict[str, int], going: Collection[str]) -> dict[str, int]:
    """What a compacted file replaces, less files that are gone.

    The first and the last in replay order stay: they say how much of it a reader has who has read up to some commit,
    and where it stands. They get a mark, since a later file may have the same name.
    """

    def place(name: str) -> tuple[int, SortKey]:
        return parts[name], sort_key(name)

    here = {name: number for name, number in parts.items() if name not in going and not is_gone(name)}
    ends = {min(parts, key=place), max(parts, key=place)} - here.keys()
    return {**{_marked(name): parts[name] for name in sorted(ends, key=place)}, **here}


def _marked(name: str) -> str:
    folder, slash, file = name.rpartition("/")
    return name if is_gone(name) else f"{folder}{slash}{GONE}{file}"


def is_gone(name: str) -> bool:
    """Whether a name among those that a compacted file replaces is of a file that was removed."""
    return name.rpartition("/")[2].startswith(GONE)


def forget(store: Store, place: Place, path: str, names: Collection[str]) -> None:
    """Have the note beside the compacted file at ``path`` no longer name files that are gone."""
    note_path = replaced.note_path(path)

    def changed(data: bytes | None, _again: bool) -> bytes | None:
        if data is None:
            return None
        note = replaced.from_bytes(data, store.locate(note_path))
        kept = replace(
            note,
            replaces=tuple(name for name in note.replaces if name not in names),
            through=tuple(name for name in note.through if name not in names),
        )
        return None if kept == note else replaced.to_bytes(kept)

    swap(store, note_path, changed)


def _time(seconds: float) -> str:
    return times.format_time(dt.datetime.fromtimestamp(seconds, dt.UTC))
