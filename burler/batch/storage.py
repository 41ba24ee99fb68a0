"""Where batch files lie: a folder, or any store that fsspec reaches (BATCH proposal).

A file is there whole under its final name, or not at all: also after SIGKILL, a full disk, a broken network. What the
storage gives back is the URL that goes into a message; it holds no credential, save a signature that was asked for.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from burler.batch.naming import is_plain
from burler.batch_config import BatchStorage
from burler.config.secrets import raw_secrets
from burler.errors import ConfigError
from burler.storage.location import hide_options, local_path

logger = logging.getLogger("burler")

_SCHEME = re.compile(r"(file|[a-z][a-z0-9+.-]+(?=:/)):", re.IGNORECASE)
_UNSAYABLE = re.compile(r"[?#%\x00-\x1f\x7f]|::")
_SIGNED = re.compile(r"[?&](?:sig|sv|se|x-amz-[a-z-]+|x-goog-[a-z-]+|signature|token|key|password)=", re.IGNORECASE)
_MOST_CHARACTERS = 100


class NewBatchFile(Protocol):
    """A batch file while it is written; nobody sees it before ``publish``. One that is dropped is discarded."""

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Append bytes.

        Raises:
            StorageError: the place is full, or gone. UsageError: it can't be written to.
        """

    def publish(self, name: str | None = None) -> str:
        """Make the file durable and visible; the URL for the manifest.

        Args:
            name: another one than ``new_file`` was given, after FileExistsError.

        Raises:
            FileExistsError: there is a file of that name; it is untouched, and so is this one.
            StorageError: see ``write``. Nothing stands under the name, and the file is discarded.
        """

    def discard(self) -> None:
        """Remove what was written. Safe at any time, and again; never touches a published file, never fails."""

    def withdraw(self) -> None:
        """Remove a file that was published and whose message did not go out. Never fails: what can't be removed is said
        in the log."""


class Storage(Protocol):
    """A place for batch files. Methods may be called by several threads, those of one file by one at a time."""

    @property
    def root(self) -> str:
        """The place as a URL, without credentials."""

    def new_file(self, name: str) -> NewBatchFile:
        """Begin a file; the prefix is put before ``name``. Folders are made.

        Raises:
            FileExistsError: a file of this name is known to be there.
            StorageError, UsageError: the place can't be written to.
        """

    def presign(self, url: str, seconds: int) -> str:
        """A URL with which anybody can read a published file for so many seconds.

        Raises:
            StorageError: the store did not sign it.
        """

    def leftovers(self) -> list[str]:
        """Temporary files under the prefix whose process is dead, as URLs. Remote stores keep none that can be told."""

    def remove_leftovers(self) -> int:
        """Remove them; how many."""


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
    hide_options(storage.options)
    check_root(storage.root)
    check_prefix(storage.prefix)
    folder = root_path(storage.root, "batch_config.storage.root")
    if folder is not None:
        if presign_seconds is not None:
            raise ConfigError(
                "batch_config.presign_seconds: files of a folder have no signed URLs. Leave it out, or give a "
                "storage.root of a store that signs them, such as s3://bucket/folder."
            )
        if storage.options:
            raise ConfigError(
                f"batch_config.storage.options are for stores, and batch_config.storage.root '{storage.root}' is a "
                f"folder of this machine.\n  Did you mean {_as_bucket(storage.root)}? Else leave the options out."
            )
        from burler.batch.storage_local import LocalStorage

        opened: Storage = LocalStorage(folder, storage.prefix)
    else:
        from burler.batch.storage_remote import RemoteStorage

        if storage.root.lower().startswith("memory:"):
            logger.warning(
                "batch_config.storage.root %s: its files end with this process; no target can read them.", storage.root
            )
        opened = RemoteStorage(storage.root, storage.prefix, storage.options, presign_seconds=presign_seconds)
    opened.remove_leftovers()
    return opened


def _as_bucket(root: str) -> str:
    """What a root may have been meant to be whose scheme was forgotten: ``bucket/folder``."""
    return "s3://bucket/folder" if root.startswith((".", "/", "~", "file:")) else f"s3://{root}"


def check_root(url: str, name: str = "batch_config.storage.root") -> None:
    """Refuse a root that names credentials, or that URLs in messages can't name: real targets take the characters of a
    URL as they stand and decode none, so a root's own characters are written plainly, and those that mean
    something in a URL are refused.

    Args:
        name: what errors call it.

    Raises:
        ConfigError: so, with the cure. The error does not show the credentials.
    """
    folder = root_path(url, name)
    if folder is None:
        _check_remote(url, name)
    said = url if folder is None else str(folder)
    wrong = _UNSAYABLE.search(said)
    if wrong or not said.isprintable():
        raise ConfigError(
            f"{name}: {said!r} has {wrong[0] if wrong else 'a character'!r} in it, and readers of BATCH messages do "
            "not agree on what that means in a URL.\n  Give a folder without it; a link to this one will do."
        )


def _check_remote(url: str, name: str) -> None:
    scheme, _, rest = url.partition("://")
    if ":" in rest.partition("/")[0].rpartition("@")[0] or any(raw_secrets(url)):
        what = "a user and password"
    elif _SIGNED.search(url):
        what = "a signature or key"
    elif scheme.lower() in ("http", "https"):
        raise ConfigError(
            f"{name}: {scheme}:// can't be written to. Give a folder, s3://bucket/folder, or another store that fsspec "
            "writes to."
        )
    elif ".." in rest.split("/") or not rest.strip("/"):
        raise ConfigError(f"{name}: {url!r} names no folder of a store. Give one, such as s3://bucket/folder.")
    else:
        return
    raise ConfigError(
        f"{name}: a {scheme}:// URL with {what} in it would show them in every BATCH message.\n"
        "  Put them into batch_config.storage.options, or into the environment that the store's library reads."
    )


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


def root_path(url: str, name: str = "storage") -> Path | None:
    """The absolute path that a root of this machine means; None for a URL of another store. Of ``file:`` URLs see
    ``burler.storage.location``, paths are as they are; links in them stay.

    Raises:
        ConfigError: neither a path nor a URL: ``s3:/bucket``, a ``file:`` URL of another machine.
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        path = str(Path(url).expanduser()) if url.startswith("~") else url
    elif scheme[1].lower() == "file":
        path = _of_file_url(url)
        if not path.startswith("/"):
            raise ConfigError(f"{name}: {url!r} names no folder of this machine. Give file:///folder, or the path.")
    elif not url[scheme.end() :].startswith("//"):
        raise ConfigError(f"{name}: {url!r} is no URL. Did you mean {scheme[1]}://{url[scheme.end() :].lstrip('/')}?")
    else:
        return None
    if not url or "\0" in path:
        raise ConfigError(f"{name}: it is empty or no path. Give a folder, such as ./batches, or s3://bucket/folder.")
    return Path(os.path.abspath(path))  # noqa: PTH100  # resolve() would follow links


def _of_file_url(url: str) -> str:
    """The path of a ``file:`` URL; nothing where it says more than a path of this machine."""
    parts = urlsplit(url)
    try:
        return "" if parts.query or parts.fragment else str(local_path(url))
    except OSError:
        return ""
