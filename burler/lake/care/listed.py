"""One listing of a lake, or of some of its streams, with hidden files: what check and vacuum go by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from burler.lake import layout
from burler.lake.care.places import Place
from burler.lake.manifests import replaced
from burler.storage.base import Store, StoredFile, is_hidden

_STREAM_DEPTH = 3


@dataclass(slots=True)
class StreamListing:
    """All files below a stream's folder, hidden ones too, sorted by path."""

    place: Place
    files: list[StoredFile] = field(default_factory=list)
    _by_path: dict[str, StoredFile] | None = None

    @property
    def data_files(self) -> list[StoredFile]:
        """Those that are data files, in a schema folder; replaced ones too."""
        wanted = set(replaced.all_data_files(self.place.folder, (file.path for file in self.visible)))
        return [file for file in self.files if file.path in wanted]

    @property
    def visible(self) -> list[StoredFile]:
        """Those that are not hidden, by their own name or a folder's."""
        return [file for file in self.files if not is_hidden(file.path)]

    def find(self, path: str) -> StoredFile | None:
        """The file at ``path``, if it is there."""
        if self._by_path is None:
            self._by_path = {file.path: file for file in self.files}
        return self._by_path.get(path)


@dataclass(frozen=True, slots=True)
class LakeListing:
    """``elsewhere``: files outside of all streams, if the whole lake was listed."""

    streams: tuple[StreamListing, ...]
    elsewhere: tuple[StoredFile, ...] = ()


def listed(store: Store, wanted: Sequence[Place], *, whole: bool) -> LakeListing:
    """List the folders of streams, or with ``whole`` the lake at once.

    Raises:
        StorageError: the store fails.
    """
    streams = {place.folder: StreamListing(place) for place in wanted}
    if not whole:
        for stream in streams.values():
            stream.files.extend(store.files(stream.place.folder, hidden=True))
        return LakeListing(tuple(streams.values()))
    elsewhere = []
    for file in store.files(layout.ROOT, hidden=True):
        parts = file.path.split("/")
        stream_of = streams.get("/".join(parts[:_STREAM_DEPTH])) if len(parts) > _STREAM_DEPTH else None
        if stream_of is None:
            elsewhere.append(file)
        else:
            stream_of.files.append(file)
    return LakeListing(tuple(streams.values()), tuple(elsewhere))
