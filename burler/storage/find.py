"""Which files there are: a pattern on any store that fsspec knows, and what the store says of each file. Whatever can't
be listed is an error: fsspec's own ``glob`` leaves it out, and a server that fails would look like one whose files are
gone."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from burler.config.secrets import hide, mask, raw_secrets
from burler.errors import BurlerError, FileError, MissingExtra
from burler.extras import require, require_store
from burler.localfile import Cures
from burler.storage import times
from burler.storage.base import is_hidden
from burler.storage.faults import fact, is_gone, open_filesystem
from burler.storage.location import Words, hide_options, is_web, printable, shown, without_query

logger = logging.getLogger("burler")

# How stores call the tag of a file's content.
_TAG_KEYS = ("ETag", "etag", "md5Hash", "content_md5", "CRC", "sha", "blob_id")
_WORDS = Words("burler.files", "storage_options", "burler.files", Cures(refused=""))
_DIGEST_LETTERS = 11  # 66 bits: two of a million files look alike once in a hundred million listings


@dataclass(frozen=True, slots=True)
class File:
    """A file as its store's listing has it.

    Attributes:
        path: as the store names it.
        name: without the folder that all files of the pattern share.
        size_bytes: None where the store does not say.
        modified: the last change, in microseconds since 1970; None where the store does not say.
        tag: the store's tag of the content (ETag), or a time of change that nobody can read; "" where there is none.
        pattern: that found it, without passwords.
        title: what people call it, if that is not its path.
    """

    path: str
    name: str
    size_bytes: int | None
    modified: int | None
    tag: str = ""
    pattern: str = ""
    store: Any = field(repr=False, compare=False, default=None)
    title: str = ""

    @property
    def digest(self) -> str:
        """Eleven letters for pattern, name, size, time and tag: any change of these makes another one. Letters, digits,
        ``-`` and ``_`` only."""
        known = "\0".join((self.pattern, self.name, str(self.size_bytes), str(self.modified), self.tag))
        raw = hashlib.sha256(known.encode("utf-8", "surrogateescape")).digest()
        return base64.urlsafe_b64encode(raw)[:_DIGEST_LETTERS].decode()

    @property
    def label(self) -> str:
        """The name as states and rows show it: without the query of a web address, which may be signed, and in letters
        that can be written."""
        return printable(without_query(self.name) if is_web(self.path) else self.name)

    @property
    def is_told(self) -> bool:
        """Whether the store says anything by which a change can be seen. The size alone is nothing: a correction may
        be of the same length (what has no validator has no state)."""
        return self.modified is not None or bool(self.tag)

    def differs(self, other: File) -> bool:
        """Whether something that is known of both is not the same."""
        pairs = ((self.size_bytes, other.size_bytes), (self.modified, other.modified), (self.tag, other.tag))
        return any(mine != theirs for mine, theirs in pairs if mine not in (None, "") and theirs not in (None, ""))

    @property
    def modified_at(self) -> dt.datetime | None:
        """The time of the last change, in UTC."""
        if self.modified is None:
            return None
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=self.modified)

    def __str__(self) -> str:
        return shown(self.title or self.path)


@dataclass(frozen=True, slots=True)
class Found:
    """What there is: the ``files``, and the patterns (as people may see them) whose folder is ``missing``."""

    files: list[File]
    missing: tuple[str, ...] = ()


def find(patterns: Sequence[str], storage_options: Mapping[str, Any] | None = None) -> Found:
    """The files of some patterns, each once (also where links lead to it), in the order of their names. Folders, and
    names that begin with a dot, are none.

    Args:
        storage_options: what fsspec passes on to the store (keys, endpoints).

    Raises:
        MissingExtra: fsspec, or the package of the store, is not there.
        FileError: the store can't be listed, its own package is not there, or no store has such URLs.
    """
    found: dict[tuple[int, str], File] = {}
    linked: set[tuple[int, str]] = set()
    missing = []
    for pattern in patterns:
        store, path = _store_of(pattern, storage_options)
        root, pattern_shown = _folder(path), str(mask(pattern))
        infos = _listed(store, path, pattern)
        if infos is None:
            missing.append(shown(pattern))
        for info in _followed(store, infos or ()):
            file = _file(store, info, root, pattern_shown)
            if file is not None:
                found.setdefault((id(store), file.path), file)
                if info.get("linked"):
                    linked.add((id(store), file.path))
    files = sorted(found.items(), key=lambda item: (item[1].name, item[1].path))
    if linked:
        files = _once(files, linked)
    return Found([file for _, file in files], tuple(missing))


def _once(
    files: list[tuple[tuple[int, str], File]], linked: set[tuple[int, str]]
) -> list[tuple[tuple[int, str], File]]:
    """Files without those that are only another way to one of them."""
    real = {key: (key[0], os.path.realpath(key[1])) for key, _ in files}
    ways: dict[tuple[int, str], tuple[int, str]] = {}
    for key, _ in sorted(files, key=lambda item: item[0] in linked):  # the straight way before the others
        ways.setdefault(real[key], key)
    return [(key, file) for key, file in files if ways[real[key]] == key]


def again(file: File) -> File | None:
    """The same file as its store has it now; None if it is gone."""
    try:
        file.store.invalidate_cache(file.path)
        info = file.store.info(file.path)
    except FileNotFoundError:
        return None
    root = file.path[: len(file.path) - len(file.name)]
    return _file(file.store, {**info, "name": file.path}, root, file.pattern)


def _store_of(pattern: str, storage_options: Mapping[str, Any] | None) -> tuple[Any, str]:
    require("fsspec", extra="files", needed_for="burler.files")
    require_store(pattern, needed_for=f"'{shown(pattern)}'")
    for secret in raw_secrets(pattern):  # "s3://KEY:SECRET@bucket": the store would say it, without the "s3://"
        hide(secret)
    if is_web(pattern) and "?" in pattern:
        hide(pattern.partition("?")[2])
    hide_options(storage_options or {})
    try:
        return open_filesystem(pattern, storage_options or {}, _WORDS)
    except BurlerError as error:
        raise error if isinstance(error, MissingExtra) else FileError(str(error)) from None


def _followed(store: Any, infos: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the store lists, links followed."""
    found = []
    for info in infos:
        if info.get("islink"):
            try:
                info = {**store.info(info["name"]), "name": info["name"], "linked": True}
            except OSError:
                logger.warning("files: '%s' is a link that leads nowhere; it is left out.", shown(info["name"]))
                continue
        elif info.get("type") == "file" and not any(info.get(key) for key in ("size", *times.KEYS, *_TAG_KEYS)):
            info = _asked(store, info)  # a web server's list of links has names alone
        found.append(info)
    return found


def _asked(store: Any, info: dict[str, Any]) -> dict[str, Any]:
    """What the store says of one file."""
    try:
        return {**info, **store.info(info["name"]), "name": info["name"]}
    except Exception as error:
        if isinstance(error, FileNotFoundError) and is_gone(error):
            return info
        raise FileError(f"file '{shown(info['name'])}': its store can't be asked: {fact(error)}.") from None


def _file(store: Any, info: Mapping[str, Any], root: str, pattern: str) -> File | None:
    path = str(info["name"])
    # Of folders too a store's own files are hidden; here a pattern names the folders.
    if info.get("type") != "file" or is_hidden(PurePosixPath(path).name):
        return None
    name = path[len(root) :] if path.startswith(root) else path
    size = info.get("size")
    moment = times.said_time(store, info)
    modified = times.micros(moment)
    unread = moment if modified is None and isinstance(moment, str) else ""
    tag = next((str(info[key]) for key in _TAG_KEYS if info.get(key)), unread)
    return File(path, name, size if isinstance(size, int) else None, modified, tag, pattern, store)


def _folder(path: str) -> str:
    """The folder that all files of a pattern share, with the slash at its end. That of a web address is above its
    query."""
    end = len(without_query(path)) if is_web(path) else len(path)
    return path[: path.rfind("/", 0, min(_first_mark(path), end)) + 1]


def _listed(store: Any, path: str, pattern: str) -> list[dict[str, Any]] | None:
    """What a store says of each thing that fits a pattern; None where the folder of the pattern is not there.

    Raises:
        FileError: the store, or a folder in it, can't be listed.
    """
    try:
        store.invalidate_cache()  # a listing of an earlier run in this process
        return _one(store, path) if _first_mark(path) == len(path) else _matching(store, path)
    except FileNotFoundError as error:
        if is_gone(error):
            return None
        raise _failed(pattern, error) from None
    except Exception as error:  # stores have errors of their own
        raise _failed(pattern, error) from None


def _first_mark(path: str) -> int:
    """Where the first of the letters stands that make a path a pattern; its length if none does. ``?`` begins the query
    of a web address."""
    found = re.search(r"[*[]" if is_web(path) else r"[*?[]", path)
    return found.start() if found else len(path)


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
    # Web servers and object stores have no folders.
    return [] if is_web(path) or not folder or _has_a_find_of_its_own(store) or store.isdir(folder) else None


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

    first = _first_mark(path)
    cut = path.rfind("/", 0, first) + 1
    depth = None if "**" in path else path[cut:].count("/") + 1
    if first > cut and _has_a_find_of_its_own(store):  # it asks for the names that begin so alone
        return list(store.glob(path, detail=True).values())
    fits = re.compile(glob_translate(path)).match
    found = {info["name"]: info for info in below(store, path[:cut], depth) if fits(info["name"])}
    return [found[name] for name in sorted(found)]


def below(store: Any, folder: str, depth: int | None = None) -> Iterator[dict[str, Any]]:
    """What a store of fsspec's has in a folder and the folders below it, so many levels deep; None: all.

    Raises:
        FileNotFoundError: there is no such folder. And what the store raises, where its own ``find`` leaves out what
            can't be listed.
    """
    if depth is None and _has_a_find_of_its_own(store):
        return iter(store.find(folder, detail=True, withdirs=True).values())
    return _below(store, folder, depth, top=True)


def _below(
    store: Any, folder: str, depth: int | None, *, top: bool = False, above: tuple[str, ...] = ()
) -> Iterator[dict[str, Any]]:
    """``below``, folder by folder. ``above``: the folders of the links on the way there; what is behind one says so
    (``linked``)."""
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
