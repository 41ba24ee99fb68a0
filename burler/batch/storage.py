"""Where batch files lie: a folder, or any store that fsspec reaches (BATCH proposal).

A file is there whole under its final name, or not at all: also after SIGKILL, a full disk, a broken network. What the
storage gives back is the URL that goes into a message; it holds no credential, save a signature that was asked for.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import re
import secrets
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burler.batch_config import CODECS, FORMATS, PACKINGS, BatchStorage
from burler.clock import LAST_SECONDS, briefly
from burler.config.secrets import hide
from burler.errors import BurlerError, ConfigError, DeclarationError, UsageError
from burler.formats.compression import compressor
from burler.formats.names import COMPRESSIONS, ending
from burler.localfile import MOST_OF_A_NAME, Cures
from burler.storage import open_location
from burler.storage.base import UNKNOWN_TIME, FileStore, OutcomeUnknown, StoredFile, is_hidden
from burler.storage.faults import faults, said
from burler.storage.location import Location, Words, unsayable
from burler.words import counted

logger = logging.getLogger("burler")

WORDS = Words(
    place="batch_config.storage.root",
    options="batch_config.storage.options",
    use="writing batch files",
    cures=Cures(
        refused="Check the owner and the rights of the folder for batch files (batch_config.storage.root).",
        full="Make room and run again: no message names this file. 'burler batch clean' removes old batch files.",
        no_links="The file system can't do what batch files need: use another for batch_config.storage.root.",
        too_long="Use a shorter batch_config.storage.prefix.",
        other="Check the disk and run again: no message names this file.",
    ),
    again="Run again: no message names this file.",
    wrong=ConfigError,
)
NAME = re.compile(
    r"(?P<tap>[A-Za-z0-9_-][A-Za-z0-9_.-]*?)--(?P<stream>[A-Za-z0-9_.-]+)-(?P<run>[0-9a-f]{12})-(?P<number>[0-9]{5,})"
    r"\.(?:(?:jsonl|csv)(?:\.gz|\.zst)?|parquet|arrow)"
)
"""``<tap>--<stream>-<run>-<n>.<ext>``: what stands behind the prefix."""

TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{16}-(?P<name>.*)")
"""A file that is being written. Of a long name it has the beginning alone."""

_ALLOWED = re.compile(r"[A-Za-z0-9_./-]*")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
_MOST_OF_A_PART = 50  # of a tap and of a stream: with prefix and run, a name may have 255
_MOST_OF_A_PREFIX = 100
_MOST_S3_SECONDS = 7 * 86_400


# ---- names -----------------------------------------------------------------------------------------------------------


def drawn() -> str:
    """What tells the files of one run from those of others."""
    return secrets.token_hex(6)


def file_name(tap: str, stream: str, run_id: str, number: int, extension: str) -> str:
    """``<tap>--<stream>-<run>-<n>.<ext>``, of letters, digits and ``-_.`` alone: some targets do not decode what else a
    URL needs."""
    return f"{plain(tap)}--{plain(stream)}-{run_id}-{number:05d}.{extension}"


def plain(name: str) -> str:
    """A name in such letters; one that had others, or is long, gets a number that tells it from its likes."""
    made = _NOT_IN_NAMES.sub("_", name).lstrip(".")[:_MOST_OF_A_PART] or "_"
    if made == name:
        return made
    return f"{made}-{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"


def is_plain(text: str) -> bool:
    """Whether a text has only characters that burler puts into the names of batch files."""
    return _ALLOWED.fullmatch(text) is not None


def is_ours(path: str, prefix: str = "", *, hidden: bool = False) -> bool:
    """Whether a path below a folder of batch files is one of burler's under a prefix. It hides no folder.

    Args:
        hidden: one that was being written.
    """
    *folders, name = path.split("/")
    if folders:
        if not path.startswith(prefix) or any(folder.startswith(".") for folder in folders):
            return False
        prefix = ""
    if not hidden:
        return name.startswith(prefix) and NAME.fullmatch(name, len(prefix)) is not None
    found = TEMPORARY.fullmatch(name)
    if found is None or not found["name"].startswith(prefix):
        return False
    return len(found["name"]) == MOST_OF_A_NAME or NAME.fullmatch(found["name"], len(prefix)) is not None


# ---- files -----------------------------------------------------------------------------------------------------------


class NewBatchFile:
    """A batch file while it is written; nobody sees it before ``publish``. One that is dropped is discarded.

    Args:
        packing: how it is packed as a whole, and ``level`` how much; None: what is written are its bytes.

    Attributes:
        size_bytes: of it so far, as it is stored.
        url: where it is, for the manifest, once it is there; empty before.
    """

    def __init__(self, storage: Storage, name: str, packing: str | None, level: int | None) -> None:
        self._storage, self._path = storage, storage.prefix + name
        folder, _, own = self._path.rpartition("/")
        self._packer = compressor(packing, level)
        self._file = storage.store.new_file(folder, own)
        self.size_bytes, self.url = 0, ""

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Append bytes, which are packed here if they are to be.

        Raises:
            StorageError: the place is full, or gone. UsageError: it can't be written to.
        """
        packed = self._packer.compress(data)
        if packed:
            self._file.write(packed)
            self.size_bytes += len(packed)

    def publish(self, name: str | None = None) -> str:
        """Make the file durable and visible; gives its URL.

        Args:
            name: another one than ``new_file`` was given, after FileExistsError.

        Raises:
            FileExistsError: there is a file of that name; it is untouched, and so is this one.
            StorageError: see ``write``. Nothing stands under the name.
        """
        rest, self._packer = self._packer.flush(), compressor(None)
        self.write(rest)
        path = self._path if name is None else self._storage.prefix + name
        try:
            self._file.publish(path)
        except OutcomeUnknown:  # it may be there, and no message will name it
            with briefly(LAST_SECONDS):
                self._remove(path)
            raise
        self._path, self.url = path, f"{self._storage.root}/{path}"
        return self.url

    def discard(self) -> None:
        """Remove what was written. Safe at any time, and again; never touches a published file, never fails."""
        self._file.discard()

    def withdraw(self) -> None:
        """Remove a file that was published and whose message did not go out. Never fails: what can't be removed is said
        in the log."""
        self.discard()
        if self.url:
            self.url = ""
            self._remove(self._path)

    def _remove(self, path: str) -> None:
        try:
            self._storage.store.remove(path)
        except BurlerError as error:
            name = self._storage.store.locate(path)
            logger.warning("batch file %s, whose message did not go out, can't be removed: %s", name, error)


class Storage:
    """A place for batch files. Methods may be called by several threads, those of one file by one at a time.

    Attributes:
        root: the place as a URL, without credentials.
    """

    def __init__(self, location: Location, prefix: str) -> None:
        self.location, self.prefix = location, prefix
        self.store: FileStore = open_location(location, probing=False)
        self.root = location.url if location.folder is None else f"file://{location.folder}"

    def new_file(self, name: str, packing: str | None = None, level: int | None = None) -> NewBatchFile:
        """Begin a file (see there); the prefix is put before ``name``. Folders are made.

        Raises:
            StorageError, UsageError: the place can't be written to. FormatError, MissingExtra: see ``compressor``.
        """
        return NewBatchFile(self, name, packing, level)

    def presign(self, url: str, seconds: int) -> str:
        """A URL with which anybody can read a published file for so many seconds. The signature is hidden from logs and
        errors of this process.

        Raises:
            StorageError: the store did not sign it.
        """
        with faults(url, "signed", self.location.words):
            signed = self.store.sign(url.removeprefix(f"{self.root}/"), seconds)
        hide(signed.partition("?")[2])
        return signed

    def remove_leftovers(self) -> int:
        """Remove temporary files under the prefix whose process is dead, as far as that can be told: on disks. One line
        in the log, if there were any; how many."""
        folder, _, own = self.prefix.rpartition("/")
        left = [path for path in self.store.leftovers(folder) if is_ours(path.rpartition("/")[2], own, hidden=True)]
        count = sum(self.store.remove_left(path, old=False) for path in left)
        if count:
            what, place = counted(count, "temporary file"), self.store.locate(self.prefix + "x").rpartition("/")[0]
            logger.info("batch files: %s of killed runs removed from %s.", what, place)
        return count

    def check(self, presign_seconds: int | None) -> None:
        """See whether files can be written, and their URLs signed.

        Raises:
            ConfigError, UsageError, StorageError: see ``open_storage``.
        """
        self.store.try_writing(self.prefix.rpartition("/")[0])
        if presign_seconds is None:
            return
        scheme, fact = self.location.scheme, ""
        try:
            signed = self.store.sign("probe", presign_seconds)
            hide(signed.partition("?")[2])
            if "?" not in signed:
                fact = "no URL is signed without credentials"
            elif scheme in ("s3", "s3a") and presign_seconds > _MOST_S3_SECONDS:
                fact = f"{presign_seconds} is more than a signature of S3 can last: {_MOST_S3_SECONDS} (7 days)"
        except NotImplementedError:
            fact = f"{scheme}:// has no signed URLs"
        except Exception as error:  # keys that can't sign, each library in its own words
            fact = f"no URL can be signed: {said(error)}"
        if fact:
            cure = "Leave it out, or give a storage.root and credentials that sign URLs, such as s3://bucket/folder."
            raise ConfigError(f"batch_config.presign_seconds: {fact}.\n  {cure}")


def open_storage(storage: BatchStorage, *, presign_seconds: int | None = None) -> Storage:
    """The place of a ``batch_config``, looked at: what is wrong with it shows now, not after an hour of reading. What
    dead processes have left under its prefix is removed.

    Args:
        presign_seconds: URLs will be signed, and good for so long.

    Raises:
        ConfigError: a root or prefix that can't be, or a store that can't sign URLs. MissingExtra: the store's package
        is not installed. UsageError: a folder or bucket that is not there or must not be used.
        StorageError: the store does not answer.
    """
    location = locate(storage.root, options=storage.options)
    check_prefix(storage.prefix)
    if location.folder is not None and storage.options:
        is_path = storage.root.startswith((".", "/", "~", "file:"))  # else its scheme may have been forgotten
        meant = "s3://bucket/folder" if is_path else f"s3://{storage.root}"
        raise ConfigError(
            f"batch_config.storage.options are for stores, and batch_config.storage.root '{storage.root}' is a folder "
            f"of this machine.\n  Did you mean {meant}? Else leave the options out."
        )
    if location.scheme == "memory":
        logger.warning(
            "batch_config.storage.root %s: its files end with this process; no target can read them.", storage.root
        )
    elif location.scheme in ("s3", "s3a") and presign_seconds is not None:  # the signature that all regions take
        config = {"signature_version": "s3v4", **(storage.options.get("config_kwargs") or {})}
        location = dataclasses.replace(location, options={**storage.options, "config_kwargs": config})
    opened = Storage(location, storage.prefix)
    opened.check(presign_seconds)
    opened.remove_leftovers()
    return opened


def locate(root: str, words: Words = WORDS, options: Mapping[str, Any] | None = None) -> Location:
    """The place of batch files. Real targets take the characters of a URL as they stand and decode none: so those of a
    folder are written plainly, and those that mean something in a URL are refused. Paths are made absolute; links in
    them stay.

    Raises:
        ConfigError: so, with the cure; and what ``Location.parse`` raises.
    """
    location = Location.parse(root, words, options)
    if location.folder is None:
        return location
    path = os.path.abspath(location.folder)  # noqa: PTH100  # resolve() would follow links
    if wrong := unsayable(path):
        raise ConfigError(
            f"{words.place}: {path!r} has {wrong!r} in it, and readers of BATCH "
            "messages do not agree on what that means in a URL.\n  Give a folder without it; a link will do."
        )
    return dataclasses.replace(location, url=path, folder=Path(path))


def check_prefix(prefix: str, name: str = "batch_config.storage.prefix") -> None:
    """Names that burler makes have letters, digits and ``-_./`` only.

    Raises:
        ConfigError: others, or folders that are none; ``name`` is what it calls the prefix.
    """
    *folders, _ = parts = prefix.split("/")
    hidden = any(part.startswith(".") for part in parts)
    if not is_plain(prefix) or "" in folders or hidden or max(map(len, parts)) > _MOST_OF_A_PREFIX:
        raise ConfigError(
            f"{name}: {prefix!r:.300} can't begin a file's name. Use letters, digits and -_. (and "
            f"/ between folders), {_MOST_OF_A_PREFIX} at most; no part of it is empty or begins with a dot."
        )


class ExportFiles:
    """Makes files of one stream that are whole and durable under their names, or not there at all, also after a kill;
    for ``burler.batch_files``::

        files = burler.batch.ExportFiles("exports", tap="tap-shop", stream="orders", format="csv", compression="gzip")
        with files.new() as file:
            for block in copy:
                file.write(block)
        yield burler.batch_files(file.url)

    Args:
        root: a folder, or the URL of one in a store.
        tap, stream: stand in the files' names, so that ``burler batch clean`` knows them.
        format: one of jsonl, csv, parquet, arrow; what you write is yours to make.
        compression: None or "none", "gzip", "zstd": what is written is packed so.
        storage_options: what the library of a remote store is given.

    Raises:
        DeclarationError: an unknown format or compression. ConfigError, UsageError, StorageError: a place that can't
        be.
    """

    def __init__(
        self,
        root: str,
        *,
        tap: str,
        stream: str,
        format: str = "csv",
        compression: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        packing = COMPRESSIONS.get(compression or "", compression) or "none"
        if format not in FORMATS or packing not in (("none",) if format in CODECS else PACKINGS):
            raise DeclarationError(
                f"burler.batch.ExportFiles: format={format!r}, compression={compression!r} is unknown. Known: "
                f"{', '.join(FORMATS)}; {', '.join(PACKINGS)} (none alone for {', '.join(CODECS)}: they are packed "
                "inside)."
            )
        self._packing = None if packing == "none" else packing
        self._ending = ending(format, self._packing)
        self._storage = open_storage(BatchStorage(root=root, options=dict(storage_options or {})))
        self._tap, self._stream, self._run_id = tap, stream, drawn()
        self._number = 0

    @contextlib.contextmanager
    def new(self) -> Iterator[NewBatchFile]:
        """A file to write to. It is there once the block has ended well; after an error nothing of it is.

        Raises:
            StorageError: the place is full, or gone.
        """
        self._number += 1
        name = file_name(self._tap, self._stream, self._run_id, self._number, self._ending)
        file = self._storage.new_file(name, self._packing)
        try:
            yield file
            file.publish()
        except BaseException:
            file.discard()
            raise


# ---- removing old ones -----------------------------------------------------------------------------------------------

_AT_ONCE = 8
_CLEANING = dataclasses.replace(
    WORDS, place="the folder of batch files", options="the storage options", use="burler batch clean"
)


@dataclass(frozen=True, slots=True)
class Removed:
    """A file that ``prune`` removed, or would have. ``modified``: in seconds since 1970."""

    url: str
    size_bytes: int
    modified: float


def prune(
    root: str,
    *,
    older_than_seconds: float,
    prefix: str = "",
    dry_run: bool = False,
    options: Mapping[str, Any] | None = None,
    now: Callable[[], float] = time.time,
) -> list[Removed]:
    """Remove old batch files of burler's, and what killed runs have left of files that they were writing.

    A run can't remove its own files: it ends before anybody knows whether the target has read them, a target may read
    them again after an error, and those built on the Singer SDK remove none. So it is done apart from runs, by age:
    give one that is well above the longest time for which a target may lie behind.

    Removed are files whose names are of burler's making (``<tap>--<stream>-<run>-<n>`` and a known ending), in the
    folder and in those below it (not in hidden ones, nor through links), and nothing else. Temporary files go whatever
    their age if the process that wrote them has ended, unfinished uploads to S3 if they are old.

    Args:
        root: a folder, or a URL of a store.
        older_than_seconds: since the last change; 0 or more.
        prefix: as in ``batch_config.storage.prefix``: only files whose path below the root begins so.
        dry_run: remove nothing, and give what would have been.
        options: for the store's library.
        now: seconds since 1970.

    Returns:
        What was removed: files by name, then what was left of some.

    Raises:
        ConfigError: an age, root, prefix or options that can't be. UsageError, StorageError: the place can't be read or
        changed; what was removed until then stays so. A folder below it that can't be read is said in the log.
    """
    if not older_than_seconds >= 0:
        raise ConfigError(f"batch files to remove are 0 seconds old or more, not {older_than_seconds!r}.")
    location = locate(root, _CLEANING, options)
    check_prefix(prefix, "prefix")
    before = now() - older_than_seconds
    place = Storage(location, prefix)
    inside, _, own = prefix.rpartition("/")
    if location.folder is None:
        place.store.look(inside)
    elif not (location.folder / inside).is_dir():
        raise UsageError(
            f"{location.folder / inside} is not there. Give the folder of batch files (batch_config.storage.root)."
        )

    whole, left = _written(place)
    if ageless := [file for file in whole if file.modified == UNKNOWN_TIME]:
        fact = "the store does not say when they were written"
        logger.warning(
            "batch files of %s stay (%d, such as %s): %s.", location.url, len(ageless), ageless[0].path, fact
        )

    def is_removed(file: StoredFile) -> bool:
        return place.store.remove_left(file.path, old=file.modified < before, dry_run=dry_run)

    gone = [file for file in whole if file.modified < before]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        if not dry_run:
            list(pool.map(lambda file: place.store.remove(file.path), gone))
        gone += [file for file, removed in zip(left, pool.map(is_removed, left), strict=True) if removed]
    gone += place.store.abort_uploads(inside, lambda path: is_ours(path, own), before=before, dry_run=dry_run)
    return [Removed(f"{place.root}/{file.path}", file.size_bytes, file.modified) for file in gone]


def _written(place: Storage) -> tuple[list[StoredFile], list[StoredFile]]:
    """Burler's files under the prefix of a place: whole ones, and what is left of those that were being written."""
    (inside, slash, own), folder = place.prefix.rpartition("/"), place.location.folder

    def not_entered(path: str, error: OSError) -> None:
        if path.startswith(place.prefix) and not is_hidden(path):
            shown = place.store.locate(path)
            logger.warning("batch files below %s stay: it can't be listed: %s.", shown, error.strerror or error)

    whole: list[StoredFile] = []
    left: list[StoredFile] = []
    for file in place.store.files(inside, hidden=True, unreadable=not_entered):
        path = file.path.removeprefix(inside + slash)
        if folder is not None and (folder / file.path).is_symlink():
            continue
        if is_ours(path, own):
            whole.append(file)
        elif is_ours(path, own, hidden=True):
            left.append(file)
    return whole, left
