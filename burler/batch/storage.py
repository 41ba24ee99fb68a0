"""Where batch files lie: a folder, or any store that fsspec reaches (BATCH proposal).

A file is there whole under its final name, or not at all: also after SIGKILL, a full disk, a broken network. What the
storage gives back is the URL that goes into a message; it holds no credential, save a signature that was asked for.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burler.batch.names import is_ours, is_plain
from burler.batch_config import BatchStorage
from burler.clock import LAST_SECONDS, briefly
from burler.config.secrets import hide
from burler.errors import BurlerError, ConfigError
from burler.localfile import Cures
from burler.storage import open_location
from burler.storage.base import FileStore, OutcomeUnknown
from burler.storage.faults import faults, said
from burler.storage.location import Location, Words, unsayable

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
_MOST_CHARACTERS = 100
_MOST_S3_SECONDS = 7 * 86_400


class NewBatchFile:
    """A batch file while it is written; nobody sees it before ``publish``. One that is dropped is discarded."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage, self._path = storage, storage._path(name)
        folder, _, own = self._path.rpartition("/")
        self._file = storage.store.new_file(folder, own)
        self._published = False

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Append bytes.

        Raises:
            StorageError: the place is full, or gone. UsageError: it can't be written to.
        """
        try:
            self._file.write(data)
        except BaseException:
            self.discard()
            raise

    def publish(self, name: str | None = None) -> str:
        """Make the file durable and visible; the URL for the manifest.

        Args:
            name: another one than ``new_file`` was given, after FileExistsError.

        Raises:
            FileExistsError: there is a file of that name; it is untouched, and so is this one.
            StorageError: see ``write``. Nothing stands under the name, and the file is discarded.
        """
        path = self._path if name is None else self._storage._path(name)
        try:
            self._file.publish(path)
        except FileExistsError:
            raise
        except BaseException as error:
            self.discard()
            if isinstance(error, OutcomeUnknown):  # it may be there, and no message will name it
                with briefly(LAST_SECONDS):
                    self._remove(path)
            raise
        self._path, self._published = path, True
        return self._storage.url(path)

    def discard(self) -> None:
        """Remove what was written. Safe at any time, and again; never touches a published file, never fails."""
        self._file.discard()

    def withdraw(self) -> None:
        """Remove a file that was published and whose message did not go out. Never fails: what can't be removed is said
        in the log."""
        self.discard()
        if self._published:
            self._published = False
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

    def new_file(self, name: str) -> NewBatchFile:
        """Begin a file; the prefix is put before ``name``. Folders are made.

        Raises:
            StorageError, UsageError: the place can't be written to.
        """
        return NewBatchFile(self, name)

    def url(self, path: str) -> str:
        """The URL of a file."""
        return f"{self.root}/{path}"

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

    def leftovers(self) -> list[str]:
        """Temporary files under the prefix whose process is dead, as URLs. Remote stores keep none that can be told."""
        return [self.url(path) for path in self._left()]

    def remove_leftovers(self) -> int:
        """Remove them; how many. One line in the log, if there were any."""
        count = sum(self.store.remove_left(path, old=False) for path in self._left())
        if count:
            what = "file" if count == 1 else "files"
            place = self.store.locate(self.prefix + "x").rpartition("/")[0]
            logger.info("batch files: %d temporary %s of killed runs removed from %s.", count, what, place)
        return count

    def _left(self) -> list[str]:
        folder, _, own = self.prefix.rpartition("/")
        return [path for path in self.store.leftovers(folder) if is_ours(path.rpartition("/")[2], own, hidden=True)]

    def _path(self, name: str) -> str:
        if not is_plain(name) or "/" in name or name.startswith("."):
            raise ValueError(f"a batch file can't be named {name!r}")
        return self.prefix + name

    def _check(self, presign_seconds: int | None) -> None:
        self.store.try_writing(self.prefix.rpartition("/")[0])
        if presign_seconds is None:
            return
        scheme = self.location.scheme
        cure = f"Leave it out, or use a store and credentials that sign URLs ({scheme}:// does not)."
        if scheme in ("s3", "s3a") and presign_seconds > _MOST_S3_SECONDS:
            raise ConfigError(
                f"batch_config.presign_seconds: {presign_seconds} is more than a signature of S3 can last: "
                f"{_MOST_S3_SECONDS} (7 days)."
            )
        try:
            signed = self.store.sign("probe", presign_seconds)
        except NotImplementedError:
            raise ConfigError(f"batch_config.presign_seconds: {scheme}:// has no signed URLs. {cure}") from None
        except Exception as error:  # keys that can't sign, each library in its own words
            raise ConfigError(f"batch_config.presign_seconds: no URL can be signed: {said(error)}.\n  {cure}") from None
        if "?" not in signed:
            raise ConfigError(f"batch_config.presign_seconds: no URL is signed without credentials. {cure}")
        hide(signed.partition("?")[2])


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
    if location.folder is not None:
        if presign_seconds is not None:
            raise ConfigError(
                "batch_config.presign_seconds: files of a folder have no signed URLs. Leave it out, or give a "
                "storage.root of a store that signs them, such as s3://bucket/folder."
            )
        if storage.options:
            is_path = storage.root.startswith((".", "/", "~", "file:"))  # else its scheme may have been forgotten
            meant = "s3://bucket/folder" if is_path else f"s3://{storage.root}"
            raise ConfigError(
                f"batch_config.storage.options are for stores, and batch_config.storage.root '{storage.root}' is a "
                f"folder of this machine.\n  Did you mean {meant}? Else leave the options out."
            )
    elif location.scheme == "memory":
        logger.warning(
            "batch_config.storage.root %s: its files end with this process; no target can read them.", storage.root
        )
    elif location.scheme in ("s3", "s3a") and presign_seconds is not None:  # the signature that all regions take
        config = {"signature_version": "s3v4", **(storage.options.get("config_kwargs") or {})}
        location = dataclasses.replace(location, options={**storage.options, "config_kwargs": config})
    opened = Storage(location, storage.prefix)
    opened._check(presign_seconds)
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
    if not is_plain(prefix) or "" in folders or hidden or max(map(len, parts)) > _MOST_CHARACTERS:
        raise ConfigError(
            f"{name}: {prefix!r:.300} can't begin a file's name. Use letters, digits and -_. (and "
            f"/ between folders), {_MOST_CHARACTERS} at most; no part of it is empty or begins with a dot."
        )
