"""The store of a lake. What a store promises: ``burler.storage.base``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burler.errors import UsageError
from burler.localfile import Cures
from burler.storage import open_location
from burler.storage.base import Store
from burler.storage.location import Location, Words

_log = logging.getLogger("burler.lake")

WORDS = Words(
    place="the lake",
    options="--lake-options",
    use="a lake",
    cures=Cures(refused="Check the owner and the rights of the lake's folder."),
)


def open_store(url: str, *, must_exist: bool = False, options: Mapping[str, Any] | None = None) -> Store:
    """The store at a path or URL: a folder or ``file://``, ``memory://name``, ``s3://bucket/folder``, ``gs://``,
    ``az://`` or ``abfs://``, or any other URL of fsspec (for a single writer).

    Args:
        must_exist: nothing there is an error.
        options: for the library that reaches the store. Secrets among them stay out of logs.

    Raises:
        UsageError: a URL that can't be, that names credentials, or where something else stands; a bucket that is not
            there or must not be used; with ``must_exist``, no lake. MissingExtra: the store's package is missing.
        StorageError: the store does not answer.
    """
    location = Location.parse(url, WORDS, options)
    if location.scheme == "memory":
        from burler.storage.memory import ConnectMemory
        from burler.storage.objects import ObjectStore

        memory = ObjectStore(location, ConnectMemory())
        if must_exist and not memory.look("raw"):
            raise UsageError(f"there is no lake at {url}: nothing is in it, and it ends with its process.")
        return memory
    if location.folder is not None:
        if options:
            _log.warning("--lake-options are for stores, and %s is a folder of this machine: they do nothing.", url)
        _check_folder(location.folder, url, must_exist)
        return open_location(location)
    store = open_location(location)
    if not store.look("raw") and must_exist:
        raise UsageError(
            f"there is no lake at {store.url}: nothing is below 'raw/'. Is it spelled right?\n"
            f"A new lake is made by: some-tap | burler lake write {store.url} --tap-id some-tap"
        )
    return store


def probe(store: Store) -> bool:
    """Whether a store keeps conditions among processes. Local and memory stores do. An object
    store is asked, once in the life of the store object: a file is created twice, and replaced with a wrong tag.

    Raises:
        UsageError: these credentials may not write there. StorageError: no answer.
    """
    return store.conditional


def _check_folder(path: Path, url: str, must_exist: bool) -> None:
    try:
        is_there, is_folder = path.exists(), path.is_dir()
    except OSError as error:  # a folder above it may not be entered, or the name is too long
        raise UsageError(
            f"{url} can't be looked at: {error.strerror}. Check the path, and the owner and the rights of the folders "
            "above it."
        ) from None
    if is_there and not is_folder:
        raise UsageError(f"{url} is a file, and a lake is a folder. Give the folder that holds 'raw', or a new one.")
    if must_exist and not is_folder:
        raise UsageError(
            f"there is no lake at {url}: no such folder. Is it spelled right?\n"
            f"A new lake is made by: some-tap | burler lake write {url} --tap-id some-tap"
        )
