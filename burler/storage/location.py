"""Where files lie: a path or URL with the options of its store, and what of both must not be shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from burler.config.secrets import hide, mask, masked, raw_secrets
from burler.errors import UsageError
from burler.localfile import Cures

_SCHEME = re.compile(r"(file|[a-z][a-z0-9+.-]+(?=:/)):", re.IGNORECASE)
_UNSAYABLE = re.compile(r"[?#%\\\x00-\x1f\x7f]|::")
_SIGNED = re.compile(r"[?&](?:sig|sv|se|x-amz-[a-z-]+|x-goog-[a-z-]+|signature|token|key|password)=", re.IGNORECASE)
_SECRET_OPTIONS = frozenset({"key", "secret", "token", "connection_string", "sas_token", "account_key", "credential"})
_WORDS = frozenset({"anon", "cloud", "cache", "browser", "google_default"})  # ways that gcsfs finds a token by itself
# A path that is a web address, also one below another store ("zip://*.csv::http://..."), and one within a sentence.
_ADDRESS = re.compile(r"(?:[\w+.-]+(?:://[^\s?]*?)?::)*https?://", re.IGNORECASE)
_QUERY = re.compile(r"(https?://[^\s'\"<>?]*)\?[^\s'\"<>]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Words:
    """How errors name a place and its options: in the words of whoever was asked for them.

    Attributes:
        place: the option that names it: ``batch_config.storage.root``, ``the lake``.
        options: the option that holds those of the store's library.
        use: what it is wanted for, as MissingExtra says it: ``writing batch files``.
        cures: of errors of a local disk.
        again: what to do when a store fails on the way.
        wrong: the class of errors about the place itself and its options.
    """

    place: str
    options: str
    use: str
    cures: Cures
    again: str = "Then run again: nothing is half written."
    wrong: type[UsageError] = UsageError


@dataclass(frozen=True, slots=True)
class Location:
    """A folder of this machine, or one of another store. Nothing was asked of it so far.

    Attributes:
        url: the path of the folder as it was given, or its URL without a slash at its end. It may be shown.
        folder: the path, if it is one of this machine.
        options: for the store's library. Their secrets are kept out of logs.
        words: for errors.
    """

    url: str
    folder: Path | None
    options: Mapping[str, Any] = field(repr=False)
    words: Words = field(repr=False)

    @property
    def scheme(self) -> str:
        """``s3``; ``file`` for a folder of this machine."""
        return "file" if self.folder is not None else self.url.partition("://")[0]

    @staticmethod
    def parse(url: str, words: Words, options: Mapping[str, Any] | None = None) -> Location:
        """The place that a path or URL means. ``~`` is the user's home. See ``local_path`` for ``file:`` URLs.

        Raises:
            UsageError: as ``words.wrong``: neither a path nor a URL; one that shows credentials, in its names of files
                too (these are not shown); one that programs read differently; ``http:``, which can't be written to.
        """
        hide_options(options or {})
        folder = folder_of(url, words)
        if folder is not None:
            return Location(str(folder), folder, options or {}, words)
        return Location(_checked(url, words), None, options or {}, words)


def folder_of(url: str, words: Words) -> Path | None:
    """The path that a path or a ``file:`` URL means; None for a URL of another store. ``~`` is the user's home.

    Raises:
        UsageError: as ``words.wrong``: neither a path nor a URL (``s3:/bucket``), a ``file:`` URL of another machine.
    """
    scheme = _SCHEME.match(url)
    of_url = scheme is not None
    if scheme is not None and scheme[1].lower() != "file":
        rest = url[scheme.end() :]
        if not rest.startswith("//"):
            raise words.wrong(f"{words.place}: {url!r} is no URL. Did you mean {scheme[1]}://{rest.lstrip('/')}?")
        return None
    path: Path | None = Path(os.path.expanduser(url) if url.startswith("~") else url)  # noqa: PTH111  # "~x" stays
    if of_url:
        try:
            path = None if "?" in url or "#" in url else local_path(url)
        except OSError:
            path = None
        if path is None or not path.is_absolute():
            raise words.wrong(
                f"{words.place}: {url!r} names no folder of this machine. Give file:///folder (with ? and # as %3F and "
                "%23), or the path."
            )
    if not url or path is None or "\0" in str(path):
        raise words.wrong(f"{words.place}: it is empty or no path. Give a folder, or s3://bucket/folder.")
    return path


def _checked(url: str, words: Words) -> str:
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    place, _, path = rest.partition("/")
    secret = ""
    if ":" in place.rpartition("@")[0] or any(raw_secrets(url)):
        secret = "a user and password"
    elif _SIGNED.search(url):
        secret = "a signature or key"
    if secret:
        raise words.wrong(
            f"{words.place}: the {scheme}:// URL has credentials in it ({secret}), and all that names its files would "
            "show them.\n"
            f"  Put them into {words.options}, or into the environment that the store's library reads."
        )
    if scheme in ("http", "https"):
        raise words.wrong(
            f"{words.place}: {scheme}:// can't be written to, nor listed. Give a folder, s3://bucket/folder, or "
            "another store that fsspec writes to."
        )
    parts = [part for part in path.split("/") if part]
    if not place or ".." in parts or "." in parts:
        raise words.wrong(f"{words.place}: {url!r} names no folder of a store. Give one, such as s3://bucket/folder.")
    if wrong := unsayable(rest):
        raise words.wrong(
            f"{words.place}: {url!r} has {wrong!r} in it, which programs read differently in a URL. Leave it out."
        )
    return "/".join([f"{scheme}://{place}", *parts])


def unsayable(path: str) -> str:
    """What programs read differently where a path stands in a URL: the character, or "" where there is none."""
    wrong = _UNSAYABLE.search(path)
    return wrong[0] if wrong else "" if path.isprintable() else "a character"


def local_path(url: str) -> Path | None:
    """The path of a ``file:`` URL; None for all that is no such URL.

    The path is taken as it is written, and percent-decoded where nothing of that name is there: readers and writers of
    manifests disagree. A ``?`` or ``#`` is a letter of the name.

    Raises:
        OSError: a file of another machine.
    """
    scheme, colon, rest = url.partition(":")
    if not colon or scheme.lower() != "file":
        return None
    if rest.startswith("//"):
        host, _, path = rest[2:].partition("/")
        if host.lower() not in ("", "localhost"):
            raise OSError(f"it is a file of the machine '{host}'")
        rest = f"/{path}"
    plain = Path(rest)
    return plain if "%" not in rest or os.path.lexists(plain) else Path(unquote(rest))


def hide_options(options: Mapping[str, Any]) -> None:
    """Keep the secrets among a store's options out of logs and errors of this process. The libraries have names of
    their own for them (``connection_string``)."""
    found = list(raw_secrets(dict(options)))
    found += [value for name, value in options.items() if name in _SECRET_OPTIONS and isinstance(value, str)]
    for secret in found:
        if secret not in _WORDS:
            hide(secret)


def is_web(path: str) -> bool:
    """Whether a path is a web address, or something in or below one."""
    return _ADDRESS.match(path) is not None


def shown(text: str) -> str:
    """A path, URL or sentence as people may see it: without passwords, without the queries of web addresses, which may
    be signed, and in letters that can be written."""
    if is_web(text) and " " not in text.partition("?")[0]:
        text = text.partition("?")[0] + ("?..." if "?" in text else "")
    return printable(masked(str(mask(_QUERY.sub(r"\1?...", text)))))


def printable(text: str) -> str:
    """A name in letters that can be written: bytes of it that are no UTF-8 as ``\\udcff``."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def without_query(name: str) -> str:
    """The end of a web address without what stands behind ``?``, which may be a signature."""
    return name.partition("?")[0]
