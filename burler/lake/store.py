"""The store of a lake: opened by its URL; its shared JSON files, changed by compare-and-swap. What a store promises:
``burler.storage.base``.

Read, change, replace if nobody else did in between: so every shared file of a lake changes. Of those that people edit,
too, every digit of what burler does not know stays.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from burler.clock import Clock
from burler.errors import LakeError, StorageError, UsageError
from burler.localfile import Cures
from burler.singer.messages import encode
from burler.storage import open_location
from burler.storage.base import Conflict, FileStore, OutcomeUnknown, Store
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
    if location.folder is not None:
        if options:
            _log.warning("--lake-options are for stores, and %s is a folder of this machine: they do nothing.", url)
        _check_folder(location.folder, url, must_exist)
        return open_location(location)
    if location.scheme == "memory":
        from burler.storage.memory import ConnectMemory
        from burler.storage.objects import ObjectStore

        store: FileStore = ObjectStore(location, ConnectMemory())
    else:
        store = open_location(location)
    if not store.look("raw") and must_exist:
        raise _no_lake(store.url, "nothing is below 'raw/'")
    return store


def _no_lake(url: str, fact: str) -> UsageError:
    return UsageError(
        f"there is no lake at {url}: {fact}. Is it spelled right?\n"
        f"A new lake is made by: some-tap | burler lake write {url} --tap-id some-tap"
    )


LAKE_OF_TABLES = "_lake"
"""The folder in which ``--sink spark:OUT`` keeps the lake, inside of OUT, where none is named."""


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
        below = path / LAKE_OF_TABLES
        has_tables = must_exist and (below / "raw").is_dir() and not (path / "raw").exists()
    except OSError as error:  # a folder above it may not be entered, or the name is too long
        raise UsageError(
            f"{url} can't be looked at: {error.strerror}. Check the path, and the owner and the rights of the folders "
            "above it."
        ) from None
    if is_there and not is_folder:
        raise UsageError(f"{url} is a file, and a lake is a folder. Give the folder that holds 'raw', or a new one.")
    if must_exist and not is_folder:
        raise _no_lake(url, "no such folder")
    if has_tables:
        raise UsageError(f"{url} holds tables, and no lake. The lake that they are made from is {below}.")


Document = dict[str, Any]

_GIVE_UP_SECONDS = 60.0
_LONGEST_WAIT_SECONDS = 0.5
_MOST_DOUBLINGS = 8

Change = Callable[[bytes | None, bool], bytes | None]
"""(content or None when there is no file, whether an earlier try may have succeeded) -> new content, or
None when there is nothing (more) to write."""


def swap(store: Store, path: str, change: Change, *, clock: Clock | None = None) -> None:
    """Change a file by compare-and-swap, again and again with jitter until no other writer was in between.

    A store may report a conflict with one's own write whose reply was lost: ``change`` is told
    from the second try on, and can look for its own mark.

    Args:
        clock: time and chance; the system's by default.

    Raises:
        StorageError: the store fails, or others have been writing for a minute without a gap.
    """
    clock = clock or Clock()
    give_up, attempt = clock.monotonic() + _GIVE_UP_SECONDS, 0
    while True:
        blob = store.read(path)
        data = change(blob.data if blob else None, attempt > 0)
        if data is None:
            return
        try:
            if blob is None:
                store.create(path, data)
            else:
                store.replace(path, data, tag=blob.tag)
            return
        except (Conflict, FileExistsError, OutcomeUnknown):
            attempt += 1
        if clock.monotonic() > give_up:
            raise StorageError(f"{store.locate(path)}: others write it all the time. Run again with fewer writers.")
        clock.sleep(clock.uniform(0, min(_LONGEST_WAIT_SECONDS, 0.005 * 2 ** min(attempt, _MOST_DOUBLINGS))))


def change_json(
    store: Store,
    path: str,
    change: Callable[[Document | None], Document | None],
    parse: Callable[[bytes, str], Document],
    clock: Clock | None = None,
) -> None:
    """Compare-and-swap of a JSON file; not written when nothing changes, or ``change`` gives None."""

    def changed(data: bytes | None, _again: bool) -> bytes | None:
        document = None if data is None else parse(data, store.locate(path))
        wanted = change(document)
        if wanted is None:
            return None
        try:
            new = msgspec.json.format(encode(wanted), indent=1) + b"\n"
        except (UnicodeEncodeError, RecursionError) as error:  # half of a surrogate pair; nested too deeply
            raise unusable(store.locate(path), f"can't be changed: {error}") from None
        return None if new == data else new

    swap(store, path, changed, clock=clock)


def parse_json(data: bytes, place: str) -> Document:
    """The object that a file holds.

    Args:
        place: what is named if it holds none.

    Raises:
        LakeError: it is no JSON, or no object.
    """
    try:
        document = json.loads(data, parse_float=Decimal)  # keeps the digits of numbers it does not understand
    except (ValueError, RecursionError) as error:
        raise unusable(place, f"is no valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise unusable(place, "is no JSON object")
    return document


def unusable(place: str, fact: str) -> LakeError:
    """What is said of a descriptive file that can't be used."""
    return LakeError(f"{place} {fact}.\nRepair it, or move it away: it can be spared.")
