"""The names behind a lake's folders, by one rule for all commands.

A folder says its name, unless that was too long and was cut. Then a tap's name stands in
``singerlake.json`` and in the manifests of its streams, a stream's in its manifest. What is found counts only if the
folder is the one that it would get.
"""

from __future__ import annotations

from burler.errors import LakeError, UsageError
from burler.lake import layout
from burler.lake.catalogue import read_singerlake, taps_of
from burler.lake.manifests import document as doc
from burler.storage.base import Store


class WholeNames:
    """Names of taps and streams of one lake; a file that can't be read says none."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._taps: dict[str, str] | None = None

    def tap(self, folder: str) -> str | None:
        """The tap whose folder in ``raw/`` this is; None if nothing says it."""
        name = layout.name_of(folder)
        if name is not None:
            return name
        if self._taps is None:
            self._taps = self._noted_taps()
        if folder not in self._taps:
            path = f"{layout.ROOT}/{folder}"
            found = (self._in_manifest(f"{path}/{one}", "tap_id", folder) for one in self._store.folders(path))
            name = next((one for one in found if one is not None), None)
            if name is None:
                return None
            self._taps[folder] = name
        return self._taps[folder]

    def stream(self, tap_folder: str, folder: str) -> str | None:
        """The stream whose folder in that of its tap this is; None if nothing says it."""
        path = f"{layout.ROOT}/{tap_folder}/{folder}"
        return layout.name_of(folder) or self._in_manifest(path, "stream", folder)

    def _noted_taps(self) -> dict[str, str]:
        """Folder -> tap id."""
        try:
            taps = taps_of(read_singerlake(self._store))
        except LakeError:
            return {}
        return {_component(tap): tap for tap in taps}

    def _in_manifest(self, path: str, key: str, folder: str) -> str | None:
        place = f"{path}/manifest.json"
        blob = self._store.read(place)
        try:
            name = None if blob is None else doc.from_bytes(blob.data, self._store.locate(place)).get(key)
        except LakeError:
            return None
        return name if isinstance(name, str) and _component(name) == folder else None


def _component(name: str) -> str:
    try:
        return layout.component(name)
    except UsageError:  # empty, or half of a surrogate pair: no folder's name
        return ""
