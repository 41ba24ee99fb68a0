"""Which files there are: a pattern on any store that fsspec knows, and what the store says of each file."""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from burler.config.secrets import mask
from burler.errors import DeclarationError, FileError
from burler.extras import require
from burler.files.names import shown

logger = logging.getLogger("burler")

# How stores call the time of a file's last change, and its content tag.
_TIME_KEYS = ("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "modified", "modify")
_TAG_KEYS = ("ETag", "etag", "md5Hash", "content_md5")
_DIGEST_LETTERS = 11  # 66 bits: two of a million files look alike once in a hundred million listings


@dataclass(frozen=True, slots=True)
class File:
    """A file as its store's listing has it.

    Attributes:
        path: as the store names it.
        name: without the folder that all files of the pattern share.
        size_bytes: None where the store does not say.
        modified: the last change, in microseconds since 1970; None where the store does not say.
        tag: the store's tag of the content (ETag), "" where there is none.
        pattern: that found it, without passwords.
    """

    path: str
    name: str
    size_bytes: int | None
    modified: int | None
    tag: str = ""
    pattern: str = ""
    store: Any = field(repr=False, compare=False, default=None)

    @property
    def digest(self) -> str:
        """Eleven letters for pattern, name, size, time and tag: any change of these makes another one."""
        known = "\0".join((self.pattern, self.name, str(self.size_bytes), str(self.modified), self.tag))
        return text_digest(known)

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
        return shown(self.path)


def text_digest(text: str) -> str:
    """Eleven letters that stand for a text; letters, digits, ``-`` and ``_`` only."""
    import base64

    raw = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    return base64.urlsafe_b64encode(raw)[:_DIGEST_LETTERS].decode()


def patterns_of(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """One pattern or several, as texts.

    Raises:
        DeclarationError: none, or something that is no path.
    """
    several = [given] if isinstance(given, str | os.PathLike) else list(given)
    if not several or not all(isinstance(one, str | os.PathLike) and os.fspath(one) for one in several):
        raise DeclarationError(f"burler.files: a pattern is a path or a URL, such as 'data/*.csv', not {given!r}.")
    return tuple(str(os.fspath(one)) for one in several)


def find(patterns: Sequence[str], storage_options: Mapping[str, Any] | None = None) -> list[File]:
    """The files of some patterns, each once, in the order of their names. Folders, and names that begin with a dot,
    are none.

    Args:
        storage_options: what fsspec passes on to the store (keys, endpoints).

    Raises:
        MissingExtra: fsspec, or the store's own package, is not there.
        FileError: the store can't be listed.
        DeclarationError: a URL of a kind that no store has.
    """
    found: dict[tuple[int, str], File] = {}
    for pattern in patterns:
        store, path = _store_of(pattern, storage_options)
        root, pattern_shown = _folder(path), str(mask(pattern))
        for info in _listed(store, path, pattern):
            file = _file(store, info, root, pattern_shown)
            if file is not None:
                found.setdefault((id(store), file.path), file)
    return sorted(found.values(), key=lambda file: (file.name, file.path))


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
    core = require("fsspec.core", extra="files", needed_for="burler.files")
    try:
        store, path = core.url_to_fs(pattern, **dict(storage_options or {}))
    except ImportError as error:  # fsspec says which package the store needs
        raise DeclarationError(f"burler.files: '{shown(pattern)}': {error}") from None
    except (ValueError, TypeError) as error:
        raise DeclarationError(
            f"burler.files: '{shown(pattern)}' can't be opened: {shown(str(error))}. Are URL and storage_options right?"
        ) from None
    except Exception as error:  # some stores connect at once
        raise FileError(f"'{shown(pattern)}' can't be reached: {_fact(error)}.") from error
    return store, path


def _listed(store: Any, path: str, pattern: str) -> list[dict[str, Any]]:
    """What the store lists for a pattern, links followed."""
    try:
        store.invalidate_cache()  # a listing of an earlier run in this process
        listed = store.glob(path, detail=True)
    except FileNotFoundError:
        return []
    except Exception as error:  # stores have errors of their own
        raise FileError(
            f"'{shown(pattern)}' can't be listed: {_fact(error)}.\n  Are the path and the rights to it right?"
        ) from error
    infos = []
    for info in listed.values():
        if info.get("islink"):
            try:
                info = {**store.info(info["name"]), "name": info["name"]}
            except OSError:
                logger.warning("files: '%s' is a link that leads nowhere; it is left out.", shown(info["name"]))
                continue
        elif info.get("type") == "file" and not any(info.get(key) for key in ("size", *_TIME_KEYS, *_TAG_KEYS)):
            info = _asked(store, info)  # a web server's list of links has names alone
        infos.append(info)
    return infos


def _asked(store: Any, info: dict[str, Any]) -> dict[str, Any]:
    """What the store says of one file."""
    try:
        return {**info, **store.info(info["name"]), "name": info["name"]}
    except Exception as error:
        if isinstance(error, FileNotFoundError):
            return info
        raise FileError(f"file '{shown(info['name'])}': its store can't be asked: {_fact(error)}.") from error


def _fact(error: Exception) -> str:
    return shown(getattr(error, "strerror", None) or str(error) or type(error).__name__)[:300]


def _file(store: Any, info: Mapping[str, Any], root: str, pattern: str) -> File | None:
    path = str(info["name"])
    if info.get("type") != "file" or PurePosixPath(path).name.startswith("."):
        return None
    name = path[len(root) :] if path.startswith(root) else path
    size = info.get("size")
    tag = next((str(info[key]) for key in _TAG_KEYS if info.get(key)), "")
    return File(path, name, size if isinstance(size, int) else None, _modified(store, info), tag, pattern, store)


def _modified(store: Any, info: Mapping[str, Any]) -> int | None:
    """The time of the last change in microseconds since 1970."""
    value = next((info[key] for key in _TIME_KEYS if info.get(key)), None)
    if value is None:
        try:
            value = store.modified(info["name"])
        except (NotImplementedError, OSError, KeyError, AttributeError):
            return None
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, dt.datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        return value // dt.timedelta(microseconds=1)
    return round(value * 1_000_000) if isinstance(value, int | float) else None


def _parsed(text: str) -> dt.datetime | None:
    from email.utils import parsedate_to_datetime

    for parse in (dt.datetime.fromisoformat, parsedate_to_datetime):
        try:
            return parse(text)
        except ValueError:
            continue
    return None


def _folder(path: str) -> str:
    """The folder that all files of a pattern share, with the slash at its end."""
    first = min((path.find(mark) for mark in "*?[" if mark in path), default=len(path))
    return path[: path.rfind("/", 0, first) + 1]
