"""What a store lists for a pattern. Whatever can't be listed is an error: fsspec's own ``glob`` leaves it out, and a
server that fails would look like one whose files are gone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from burler.errors import FileError
from burler.storage.faults import fact, is_gone
from burler.storage.location import shown


def listed(store: Any, path: str, pattern: str) -> list[dict[str, Any]] | None:
    """What a store says of each thing that fits a pattern; None where the folder of the pattern is not there.

    Raises:
        FileError: the store, or a folder in it, can't be listed.
    """
    try:
        store.invalidate_cache()  # a listing of an earlier run in this process
        if not has_magic(store, path):
            return _one(store, path)
        if _has_a_find_of_its_own(store):
            return list(store.glob(path, detail=True).values())
        return _matching(store, path)
    except FileNotFoundError as error:
        if is_gone(error):
            return None
        raise _failed(pattern, error) from None
    except Exception as error:  # stores have errors of their own
        raise _failed(pattern, error) from None


def has_magic(store: Any, path: str) -> bool:
    """Whether a path is a pattern. ``?`` begins the query of a web address."""
    return any(mark in path for mark in marks_of(path))


def marks_of(path: str) -> str:
    """The letters that make a path a pattern."""
    return "*[" if path.startswith(("http://", "https://")) else "*?["


def _failed(pattern: str, error: BaseException) -> FileError:
    return FileError(f"'{shown(pattern)}' can't be listed: {fact(error)}.\n  Are the path and the rights to it right?")


def _one(store: Any, path: str) -> list[dict[str, Any]] | None:
    """A name without a pattern. Where its folder is not there either, it may be that a disk is not mounted."""
    try:
        return [store.info(path)]
    except FileNotFoundError as error:
        if not is_gone(error):
            raise
    folder = path.rpartition("/")[0]
    is_web = path.startswith(("http://", "https://"))  # they have no folders
    return [] if is_web or not folder or _has_a_find_of_its_own(store) or store.isdir(folder) else None


def _has_a_find_of_its_own(store: Any) -> bool:
    """Whether a store lists what is below a folder in its own way (object stores: one request a thousand names). Those
    raise what goes wrong."""
    from fsspec import AbstractFileSystem
    from fsspec.asyn import AsyncFileSystem

    kind = type(store)
    if not isinstance(store, AbstractFileSystem):
        return True
    own = getattr(kind, "_find", AsyncFileSystem._find) is not AsyncFileSystem._find
    return own or kind.find is not AbstractFileSystem.find


def _matching(store: Any, path: str) -> list[dict[str, Any]]:
    """The same as ``store.glob``, with its errors."""
    from fsspec.utils import glob_translate

    first = min(path.find(mark) for mark in marks_of(path) if mark in path)
    cut = path.rfind("/", 0, first) + 1
    depth = None if "**" in path else path[cut:].count("/") + 1
    fits = re.compile(glob_translate(path)).match
    found = {info["name"]: info for info in _below(store, path[:cut], depth, top=True) if fits(info["name"])}
    return [found[name] for name in sorted(found)]


def _below(
    store: Any, folder: str, depth: int | None, *, top: bool = False, above: tuple[str, ...] = ()
) -> Iterator[dict[str, Any]]:
    """What is in a folder and the folders below it, so many levels deep; None: all. ``above``: the folders of the
    links on the way there; what is behind one says so (``linked``)."""
    try:
        infos = store.ls(store._strip_protocol(folder), detail=True)
    except FileNotFoundError as error:
        if top or not is_gone(error):
            raise
        return  # it went between two looks
    own = folder.rstrip("/")
    for info in infos:
        if str(info["name"]).rstrip("/") == own:
            continue
        yield {**info, "linked": True} if above else info
        if (depth is None or depth > 1) and _is_folder(store, info):
            passed = above
            if info.get("islink"):
                passed = (*above, os.path.realpath(folder))
                real = os.path.realpath(info["name"])
                if any(one == real or one.startswith(f"{real.rstrip('/')}/") for one in passed):
                    continue  # it leads back to where it came from
            yield from _below(store, info["name"], None if depth is None else depth - 1, above=passed)


def _is_folder(store: Any, info: dict[str, Any]) -> bool:
    """Whether something is a folder, or a link to one."""
    if not info.get("islink"):
        return bool(info["type"] == "directory")
    try:
        return bool(store.info(info["name"])["type"] == "directory")
    except OSError:  # it leads nowhere, which is said where links are followed
        return False
