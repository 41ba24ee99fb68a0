"""From a path or URL to the store of a lake. What a store promises: ``burler.storage.base``."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burler.config.secrets import raw_secrets
from burler.errors import UsageError
from burler.storage.base import Store
from burler.storage.location import hide_options, local_path

OPTIONS = "--lake-options"

_MODULES = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure"}
_SIGNED = re.compile(r"[?&](?:sig|sv|x-amz-[a-z-]+|x-goog-[a-z-]+|signature|token|key|password)=", re.IGNORECASE)
_UNSAYABLE = re.compile(r"[?#%\\\x00-\x1f\x7f]|::")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=://)")


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
    scheme = _SCHEME.match(url)
    kind = scheme[0].lower() if scheme else "file"
    if kind == "file":
        return _local(url, must_exist, options or {})
    if kind == "memory":
        return _memory(url, must_exist)
    return _remote(url, kind, must_exist, options or {})


def probe(store: Store) -> bool:
    """Whether a store keeps conditions among processes. Local and memory stores do. An object
    store is asked, once in the life of the store object: a file is created twice, and replaced with a wrong tag.

    Raises:
        UsageError: these credentials may not write there. StorageError: no answer.
    """
    return store.conditional


def _memory(url: str, must_exist: bool) -> Store:
    from burler.storage.memory import MemoryStore

    name = url.partition("://")[2].strip("/")
    if not name:
        raise UsageError(f"{url}: a lake in memory needs a name, such as memory://try.")
    store = MemoryStore(name)
    if must_exist and next(store.files("raw"), None) is None:
        raise UsageError(f"there is no lake at {url}: nothing is in it, and it ends with its process.")
    return store


def _remote(url: str, kind: str, must_exist: bool, options: Mapping[str, Any]) -> Store:
    from burler.storage.objects import ObjectStore

    hide_options(options)
    plain = _checked(url, kind)
    module = importlib.import_module(f"burler.storage.{_MODULES.get(kind, 'fsspec_store')}")
    store = ObjectStore(plain, options, module.connect)
    store.check(must_exist=must_exist)
    return store


def _checked(url: str, kind: str) -> str:
    """The URL of a store's folder without a slash at its end.

    Raises:
        UsageError: it names credentials, which are not shown, or no folder.
    """
    rest = url.partition("://")[2]
    place, _, path = rest.partition("/")
    if kind in ("http", "https"):
        raise UsageError(f"{kind}:// can't be a lake: it can't be listed. Give a folder, or s3://bucket/folder.")
    if ":" in place.rpartition("@")[0] or any(raw_secrets(url)) or _SIGNED.search(url):
        raise UsageError(
            f"the lake's {kind}:// URL has credentials in it, and the names of its files would show them.\n"
            f"  Put them into {OPTIONS}, or into the environment that the store's library reads."
        )
    wrong = _UNSAYABLE.search(rest)
    if wrong:
        raise UsageError(
            f"{url!r}: {wrong[0]!r} in a lake's URL is read differently by different programs. Leave it out."
        )
    parts = [part for part in path.split("/") if part]
    if not place or ".." in parts or "." in parts:
        raise UsageError(f"{url!r} names no folder of a store. Give one, such as s3://bucket/folder.")
    return "/".join([f"{kind}://{place}", *parts])


def _local(url: str, must_exist: bool, options: Mapping[str, Any]) -> Store:
    from burler.storage.local import LocalStore

    path = _local_path(url)
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
    return LocalStore(path)


def _local_path(url: str) -> Path:
    """See ``burler.storage.location``: the lake and BATCH have one rule."""
    try:
        path = local_path(url)
    except OSError:
        raise UsageError(f"{url} names another machine. Give a folder, such as ./lake, or a file:///... URL.") from None
    if not url or "\0" in str(path or url):
        raise UsageError("the lake's path is empty or no path. Give a folder, such as ./lake.")
    if path is None:
        return Path(url)
    if "?" in url or "#" in url:
        raise UsageError(f"{url}: '?' and '#' must be written as %3F and %23 in a file URL; or give the plain path.")
    if not path.is_absolute():
        raise UsageError(f"{url} names no folder of this machine. Give file:///folder, or the path.")
    return path
