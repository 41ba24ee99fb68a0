"""A lake: which taps and streams it has, by its folders; the names behind them; what their manifests say.

A folder says its name, unless that was too long and was cut. Then a tap's name stands in
``singerlake.json`` and in the manifests of its streams, a stream's in its manifest. What is found counts only if the
folder is the one that it would get. Whoever wants to know what there is asks here: nobody else lists folders.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from burler.errors import LakeError, StorageError, UsageError
from burler.lake import layout, replaced
from burler.lake import manifest as doc
from burler.lake.hashing import hash_encoding
from burler.lake.snapshot import DataFile, Snapshot
from burler.lake.store import Document, parse_json, unusable
from burler.storage.base import Store
from burler.suggest import did_you_mean
from burler.words import some

_log = logging.getLogger("burler.lake")

LAKE_FORMAT = 1
_SHOWN = 20


class NoSuchStream(UsageError):
    """A lake has neither a manifest nor a data file of a stream."""


@dataclass(frozen=True, slots=True)
class StreamFolder:
    """A stream's folder in a lake, and the names behind it as far as they are known (else the folders' own)."""

    store: Store = field(repr=False, compare=False)
    tap_id: str
    stream: str
    folder: str

    @property
    def manifest(self) -> str:
        """Path of its manifest."""
        return f"{self.folder}/{layout.MANIFEST}"

    @property
    def tap_folder(self) -> str:
        """``raw/<tap>``."""
        return self.folder.rpartition("/")[0]

    @property
    def title(self) -> str:
        """As people read it: ``tap/stream``."""
        return f"{self.tap_id}/{self.stream}"

    @property
    def names(self) -> tuple[str, str]:
        """(tap id, stream)."""
        return self.tap_id, self.stream

    def path(self, name: str) -> str:
        """Where a data file lies; manifests name it by what stands below the folder."""
        return f"{self.folder}/{name}"

    def name(self, path: str) -> str:
        """What manifests call the data file at ``path``."""
        return path[len(self.folder) + 1 :]

    def read_manifest(self) -> Snapshot | None:
        """Its manifest as readers see it; None where there is none.

        Raises:
            LakeError: it is broken.
        """
        blob = self.store.read(self.manifest)
        return None if blob is None else self.picture(doc.from_bytes(blob.data, self.store.locate(self.manifest)))

    def picture(self, document: doc.Document) -> Snapshot:
        """What readers see of a manifest.

        Raises:
            LakeError: what it says about a file is not of the right shape.
        """
        try:
            return Snapshot.of_manifest(document, *self.names, self.folder)
        except ValueError as error:
            raise doc.broken(self.store.locate(self.manifest), str(error)) from None

    def without_manifest(self, paths: Iterable[str]) -> Snapshot:
        """What readers see of data files that no manifest lists; they have no statistics."""
        files = sorted(map(DataFile, paths), key=lambda file: file.order)
        return Snapshot(self.tap_id, self.stream, self.folder, tuple(files))

    def listed(self) -> Snapshot:
        """The stream as its folder shows it, without statistics; not files that a compacted one stands for.

        Raises:
            LakeError: what a compacted file replaces can't be read.
        """
        return self.without_manifest(replaced.data_files(self.store, self.folder))

    def change(self, change: Callable[[doc.Document], bool], *, mark: str) -> None:
        """Compare-and-swap of a manifest that is there.

        Args:
            change: alters a fresh document, and says whether there is something to write.
            mark: the commit id that ``change`` leaves in the document: tells an own write whose reply was lost.

        Raises:
            LakeError: it is broken, or has gone.
        """

        def gone() -> doc.Document:
            where = self.store.locate(self.manifest)
            raise LakeError(f"{where} has gone meanwhile. Make it anew: burler lake rebuild {self.store.url}")

        doc.change_manifest(self.store, self.manifest, change, missing=gone, mark=mark)


class Lake:
    """What lies in a store as a lake. Nothing of it is kept but names that were looked up."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._cut_taps: dict[str, str] | None = None

    def taps(self, *, asked: Sequence[str] | None = None) -> dict[str, str]:
        """The taps that have a folder: its name -> the tap id; where nothing says that, the folder's name.

        Args:
            asked: ids that are known: the names of their folders need not be looked up.
        """
        known = {layout.component(tap): tap for tap in asked or ()}
        return {
            folder: known.get(folder) or self.tap_of(folder) or folder for folder in self.store.folders(layout.ROOT)
        }

    def wanted_taps(self, taps: Sequence[str] | None) -> dict[str, str]:
        """Those of the taps that ``taps`` names; None: all.

        Raises:
            UsageError: one is not there; names those that are.
        """
        names = self.taps(asked=taps)
        self._refuse_unknown("tap", taps, names.values())
        return {folder: tap_id for folder, tap_id in names.items() if taps is None or tap_id in taps}

    def folders(self, *, taps: Sequence[str] | None = None, streams: Sequence[str] | None = None) -> list[StreamFolder]:
        """Every stream's folder, sorted; ``taps`` and ``streams`` narrow them. No manifest is read, but of names that
        were cut.

        Raises:
            UsageError: a tap or stream that was asked for is not there; names those that are.
        """
        wanted = self.wanted_taps(taps)
        return self.narrowed([one for tap in wanted.items() for one in self.of_tap(*tap)], streams)

    def of_tap(self, folder: str, tap_id: str) -> Iterator[StreamFolder]:
        """The folders of the streams of a tap, whose own folder's name is ``folder``."""
        path = f"{layout.ROOT}/{folder}"
        for name in self.store.folders(path):
            stream = layout.name_of(name) or self._in_manifest(f"{path}/{name}", "stream", name) or name
            yield StreamFolder(self.store, tap_id, stream, f"{path}/{name}")

    def streams(self, *, taps: Sequence[str] | None = None, streams: Sequence[str] | None = None) -> list[StreamFolder]:
        """The same of folders that have a manifest or data."""
        found = [one for one in self.folders(taps=taps) if self._is_stream(one)]
        return self.narrowed(found, streams)

    def wanted(self, *, taps: Sequence[str] | None = None, streams: Sequence[str] | None = None) -> list[StreamFolder]:
        """The same, at least one.

        Raises:
            UsageError: there is none.
        """
        found = self.streams(taps=taps, streams=streams)
        if not found:
            raise self.is_empty()
        return found

    def narrowed(self, found: list[StreamFolder], streams: Sequence[str] | None) -> list[StreamFolder]:
        """Those of some folders that ``streams`` names; None: all.

        Raises:
            UsageError: one is not among them.
        """
        self._refuse_unknown("stream", streams, [one.stream for one in found])
        return [one for one in found if streams is None or one.stream in streams]

    def one(self, tap: str | None, stream: str | None, *, how: str = "Give tap and stream.") -> tuple[str, str]:
        """(tap id, stream): those that are given, or what there is if there is but one.

        Args:
            how: to name them, said where several fit.

        Raises:
            UsageError: nothing fits, or several do; names them.
        """
        if tap is not None and stream is not None:
            return tap, stream
        there = self.streams()
        found = [one for one in there if tap in (None, one.tap_id) and stream in (None, one.stream)]
        if len(found) == 1:
            return found[0].names
        shown = ", ".join(one.title for one in (found or there)[:_SHOWN]) or "none"
        if found:
            raise UsageError(f"{self.store.url}: which stream? {how} There are (tap/stream): {shown}.")
        if not there:
            raise self.is_empty()
        what, wanted = ("stream", stream) if stream is not None else ("tap", tap or "")
        have = (one.stream if what == "stream" else one.tap_id for one in there)
        raise UsageError(not_there(self.store.url, what, wanted, have))

    def snapshot(self, tap_id: str, stream: str) -> Snapshot:
        """A stream as it is now: its manifest or, where there is none, its folder listed (no statistics).

        Raises:
            NoSuchStream: the lake has no such stream; names those it has.
            LakeError: the manifest is broken.
        """
        place = StreamFolder(self.store, tap_id, stream, layout.stream_folder(tap_id, stream))
        found = place.read_manifest()
        if found is not None:
            return found
        found = place.listed()
        if not found.files:
            have = (one.title for one in self.streams())
            raise NoSuchStream(not_there(self.store.url, "stream", place.title, have))
        return found

    def has(self, tap_id: str, stream: str) -> bool:
        """Whether there is a manifest of a stream, or data."""
        return self._is_stream(StreamFolder(self.store, tap_id, stream, layout.stream_folder(tap_id, stream)))

    def tap_of(self, folder: str) -> str | None:
        """The tap whose folder in ``raw/`` this is; None if nothing says it."""
        name = layout.name_of(folder)
        if name is not None:
            return name
        if self._cut_taps is None:
            self._cut_taps = self._noted_taps()
        if folder not in self._cut_taps:
            path = f"{layout.ROOT}/{folder}"
            found = (self._in_manifest(f"{path}/{one}", "tap_id", folder) for one in self.store.folders(path))
            name = next((one for one in found if one is not None), None)
            if name is None:
                return None
            self._cut_taps[folder] = name
        return self._cut_taps[folder]

    def notes(self) -> Document:
        """What ``singerlake.json`` says of each tap, by its id, as far as it is there.

        Raises:
            LakeError: it is broken.
        """
        return taps_of(read_singerlake(self.store))

    def encoding_seen(self) -> str | None:
        """How the names of folders that are there spell hashes; None where none says it."""
        there = (folder for one in self.folders() for folder in self.store.folders(one.folder))
        return next(filter(None, map(hash_encoding, there)), None)

    def refuse_case_twins(self, tap_id: str, stream: str, others: Iterable[str]) -> None:
        """Two names that differ only in case would be one folder on many systems, and one table in most.

        Args:
            others: streams of the tap that may have no folder yet.

        Raises:
            UsageError: the tap, or the stream, is the second of such two.
        """
        below = layout.tap_folder(tap_id)
        for folder, name, more in ((layout.ROOT, tap_id, ()), (below, stream, map(layout.component, others))):
            mine = layout.component(name)
            for twin in (*self.store.folders(folder), *more):
                if twin != mine and twin.lower() == mine.lower():
                    raise UsageError(
                        f"{self.store.url}: '{name}' and '{twin}' differ only in upper and lower case, and would be "
                        "one folder on many systems. Rename one of them in the tap."
                    )

    def is_empty(self) -> UsageError:
        """What is said where there is no stream at all."""
        return UsageError(
            f"{self.store.url}: there is no stream in this lake. "
            "Fill it: some-tap | burler lake write LAKE --tap-id tap"
        )

    def warn_if_alone(self, what: str) -> None:
        """One loud line where the store keeps no conditions among processes."""
        if not self.store.conditional:
            _log.warning("%s: this store keeps no conditions: no writer may run during %s.", self.store.url, what)

    def _is_stream(self, place: StreamFolder) -> bool:
        return self.store.read(place.manifest) is not None or bool(replaced.data_files(self.store, place.folder))

    def _refuse_unknown(self, what: str, wanted: Sequence[str] | None, have: Iterable[str]) -> None:
        known = set(have)
        unknown = sorted(set(wanted or ()) - known)
        if unknown:
            raise UsageError(not_there(self.store.url, what, unknown[0], known))

    def _noted_taps(self) -> dict[str, str]:
        """Folder -> tap id."""
        try:
            return {layout.folder_of(tap): tap for tap in self.notes()}
        except (LakeError, StorageError, UsageError):  # a file that can't be read says no name
            return {}

    def _in_manifest(self, path: str, key: str, folder: str) -> str | None:
        place = f"{path}/{layout.MANIFEST}"
        try:
            blob = self.store.read(place)
            name = None if blob is None else doc.from_bytes(blob.data, self.store.locate(place)).get(key)
        except (LakeError, StorageError, UsageError):  # a file that can't be read says no name
            return None
        return name if isinstance(name, str) and layout.folder_of(name) == folder else None


def load(store: Store, tap_id: str, stream: str) -> Snapshot:
    """See ``Lake.snapshot``."""
    return Lake(store).snapshot(tap_id, stream)


def streams(store: Store) -> list[tuple[str, str]]:
    """Every (tap_id, stream) that has a manifest or data, sorted by folder."""
    return [one.names for one in Lake(store).streams()]


def read_singerlake(store: Store) -> Document | None:
    """``singerlake.json``: lake id, format, taps and their notes; None when there is none.

    Raises:
        LakeError: it is no JSON object, or its taps are none.
    """
    blob = store.read(layout.singerlake_path())
    return None if blob is None else as_singerlake(blob.data, store.locate(layout.singerlake_path()))


def as_singerlake(data: bytes, place: str) -> Document:
    """The content of a ``singerlake.json``.

    Args:
        place: what is named if it can't be used.

    Raises:
        LakeError: it is no JSON object, or its taps are none.
    """
    document = parse_json(data, place)
    taps = document.get("taps", {})
    fits = isinstance(taps, dict) and all(notes is None or isinstance(notes, dict) for notes in taps.values())
    if not fits and document.get("format", LAKE_FORMAT) == LAKE_FORMAT:
        raise unusable(place, "has 'taps' that are no JSON objects by their ids")
    return document


def taps_of(lake: Document | None) -> Document:
    """The notes of each tap in ``singerlake.json``, as far as they are there."""
    taps = (lake or {}).get("taps")
    return taps if isinstance(taps, dict) else {}


def not_there(lake_url: str, what: str, name: str, have: Iterable[str]) -> str:
    """The sentence: ``what`` (a tap, a stream) is missing, the nearest name that is there, and what there is."""
    known = sorted(set(have))
    return f"{lake_url}: there is no {what} '{name}' in this lake.{did_you_mean(name, known)} It has: {some(known)}."
