"""``burler.batch_files``: files that the source made itself (UNLOAD, COPY, report downloads), for a function to yield.

What becomes of them is decided while the tap runs (``native_intake``): with BATCH on they are passed on untouched where
they are what the stream's rows would be, else they are read as rows.

Source: BATCH proposal, "pass through".
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import msgspec

from burler.batch.csv_options import reading_options
from burler.batch_config import CSV_DEFAULTS, FORMATS
from burler.config.secrets import hide
from burler.context import running
from burler.errors import DeclarationError
from burler.formats.names import COMPRESSIONS, format_of, split_name
from burler.storage import location
from burler.storage.location import local_path

PACKINGS = ("none", "gzip", "zstd", "bz2", "xz")
"""How files may be packed as a whole. No BATCH message can say bz2 and xz: such files are read as rows."""

_KINDS = {"csv": "csv", "tsv": "csv", "jsonl": "jsonl", "parquet": "parquet", "arrow": "arrow"}
_NOT_PLAIN = re.compile(r"[?#%\x00-\x1f\x7f]|[^\x00-\x7f]")  # other programs take all else as it stands
_USERS_ALLOWED = ("abfs", "abfss", "wasb", "wasbs")  # there a container stands before the "@"


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """Files of a source, all written in one way; made by :func:`batch_files`.

    Attributes:
        urls: absolute URLs, those of local files as ``file://``.
        format: one of jsonl, csv, parquet, arrow.
        compression: of whole files: None, gzip, zstd, bz2 or xz.
        format_options: of csv, all of ``CSV_DEFAULTS``; else empty.
        size: rows in a file at the most, as the author says; or one number for each file.
        columns: the fields that the author says are in each row.
        bookmark: the replication key's greatest value in the files; UNSET: not said.
    """

    urls: tuple[str, ...]
    format: str = "jsonl"
    compression: str | None = None
    format_options: Mapping[str, Any] = field(default_factory=dict)
    size: int | tuple[int, ...] | None = None
    columns: tuple[str, ...] | None = None
    bookmark: Any = msgspec.UNSET
    time_extracted: dt.datetime | None = None
    temporary: bool = False
    check: bool = True
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    is_batch_files: ClassVar[bool] = True  # by this the engine knows them

    def __repr__(self) -> str:
        shown = ", ".join(location.shown(url) for url in self.urls[:3]) + (", ..." if len(self.urls) > 3 else "")
        return f"<BatchFiles {shown} ({self.format}, {self.compression or 'none'})>"

    def __iter__(self) -> Iterator[Any]:
        """The rows as pages, as the stream that is running here wants them: for whoever has to see them."""
        from burler.batch.native_rows import Rows

        return Rows(self, running())

    def size_of(self, number: int) -> int | None:
        """How many rows a file holds at the most, by the author's word."""
        return self.size[number] if isinstance(self.size, tuple) else self.size


def batch_files(
    urls: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: str | None = None,
    compression: str | None = None,
    size: int | Sequence[int] | None = None,
    columns: Iterable[str] | None = None,
    delimiter: str | None = None,
    quote_char: str | None = None,
    header: bool | None = None,
    null: str | None = None,
    bookmark: Any = msgspec.UNSET,
    time_extracted: dt.datetime | None = None,
    temporary: bool = False,
    check: bool = True,
    storage_options: Mapping[str, Any] | None = None,
) -> BatchFiles:
    """Files that the source itself has written, for a sync function to yield::

        yield burler.batch_files(client.unload(stream), size=client.count(stream))

    While BATCH is on they go out as they are, in BATCH messages, without a look at their rows, if

    - their columns are the stream's selected fields, no more and no fewer. CSV says so in its header, Parquet and Arrow
      with their schema, which must hold the types that burler would write. JSON lines say nothing: only those pass
      whose fields you declare with ``columns``, so it is you who vouches for them;
    - nothing of the tap has to see the rows: a hook, a substream;
    - the message can say what they are, and the operator has not asked for another encoding.

    Else they are read as rows, shaped, and written into files of burler's own; the log says why, once. While BATCH is
    off they are read as rows, too. What the schema says beyond names and types (``enum``, ``maximum``, ...) is never
    checked in files that are passed on.

    Args:
        urls: paths or URLs, all of files written in one way. A store's credentials never stand in a URL. A URL that is
            signed (has a query) is passed on in the proposal's dialect only (``"dialect": "sip"``).
        format: jsonl, csv, parquet or arrow; None: the files' names say.
        compression: of whole files: gzip, zstd, bz2, xz or none; None: the files' names say.
        size: how many rows a file has, at the most; a list: each file of its own. None: nobody knows, but of Parquet.
        columns: the fields of each row, where the files do not say: jsonl, csv without header (then in order).
        delimiter, quote_char, header, null: of csv; ``,``, ``"``, True, and nothing between two delimiters. ``null`` is
            a text that is not quoted. ``quote_char=""``: none.
        bookmark: the greatest value of the stream's replication key in these files. Files that are passed on are not
            read: without it the bookmark stays where it is. A stream without such a key ends where one is said.
        time_extracted: when the source made them; None: now.
        temporary: the files belong to this run: burler removes them once it has read them as rows, or the run fails.
            Files that were passed on stay, for the target.
        check: look whether each file is there and begins as it should. False: take your word, and ``columns``.
        storage_options: what the library of a remote store is given (fsspec); never part of a message.

    Raises:
        DeclarationError: something that can't be, with what to do.
    """
    given = list(urls) if isinstance(urls, Iterable) and not isinstance(urls, str | bytes) else [urls]
    absolute = tuple(_absolute(one) for one in given)
    said = {_said_by_name(url) for url in absolute} or {(format or "jsonl", None, None)}
    kind, packing, tabs = _united(format, compression, said, absolute)
    if temporary and any(local_path(url) is None for url in absolute):
        raise _wrong("temporary=True is for local files; those of a store are yours to remove.")
    options = {"delimiter": delimiter, "quote_char": quote_char, "header": header, "null": null}
    return BatchFiles(
        absolute,
        kind,
        packing,
        _csv_options(options, kind, tabs=tabs),
        _sizes(size, len(absolute)),
        _columns(columns),
        bookmark,
        _moment(time_extracted),
        temporary,
        check,
        dict(storage_options or {}),
    )


# ---- URLs ------------------------------------------------------------------------------------------------


def _absolute(given: Any) -> str:
    """A URL; that of a local file with ``file://``."""
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise _wrong(f"takes paths and URLs, not {given!r:.60}.")
    text = os.fspath(given)
    if isinstance(text, bytes):
        raise _wrong("takes paths as text, not as bytes.")
    if "://" not in text:
        if text.startswith("file:"):
            raise _wrong(f"{text!r:.60} is no URL that is understood: write file:///folder/name, or a plain path.")
        path = Path(text).absolute()
        return path.as_uri() if _NOT_PLAIN.search(str(path)) else f"file://{path}"
    parts = urlsplit(text)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise _wrong(f"{text!r:.60}: a URL of a local file has three slashes: file:///folder/name.")
        return text
    user, at, _host = parts.netloc.rpartition("@")
    if at and (":" in user or parts.scheme not in _USERS_ALLOWED):
        for secret in user.split(":"):
            hide(secret)
        raise _wrong(
            f"a URL with credentials in it ({location.shown(f'{parts.scheme}://***@{_host}')}): it would go into "
            "messages."
            "\n  Give them to the store's library: storage_options={...}, or its environment variables."
        )
    if parts.query:
        hide(parts.query)
    return text


# ---- what the files are ------------------------------------------------------------------------------------


def _said_by_name(url: str) -> tuple[str | None, str | None, bool | None]:
    """Format, packing and whether fields have tabs between them, as a file's name says it."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    found = format_of(name)
    return _KINDS.get(found or ""), split_name(name)[1], found == "tsv"


def _united(
    format: str | None, compression: str | None, said: set[tuple[str | None, str | None, bool | None]], urls: Any
) -> tuple[str, str | None, bool]:
    """What is said and what the names say, as one.

    Raises:
        DeclarationError: they contradict each other, or nobody says it.
    """
    if format is not None and format not in FORMATS:
        raise _wrong(f"format {format!r:.40} is not known. Known: {', '.join(FORMATS)}.")
    asked = None if compression in (None, "none") else COMPRESSIONS.get(compression, "")
    if asked is not None and asked not in PACKINGS:
        raise _wrong(f"compression {compression!r:.40} is not known. Known: {', '.join(PACKINGS)}.")
    kinds = {kind for kind, _packing, _tabs in said}
    packings = {packing for _kind, packing, _tabs in said}
    example = location.shown(urls[0]) if urls else ""
    if len(kinds) > 1 or (len(packings) > 1 and compression is None):
        raise _wrong("these files are written in several ways, as their names say.\n  Yield one batch_files for each.")
    named, packed = kinds.pop(), packings.pop() if len(packings) == 1 else None
    if "zip" in packings or packed == "zip":
        raise _wrong(f"'{example}' is a zip, which holds files of its own: use burler.files.read.")
    if format is not None and named is not None and format != named:
        raise _wrong(f"format='{format}', but the name of '{example}' says {named}. Leave format= out, or rename it.")
    kind = format or named
    if kind is None:
        raise _wrong(
            f"the name of '{example}' does not say what it holds.\n  Say it: format='jsonl' (an object a line), 'csv', "
            "'parquet' or 'arrow'."
        )
    if compression is not None and packed is not None and asked != packed:
        raise _wrong(
            f"compression='{compression}', but the name of '{example}' says {packed}. Leave compression= out, or "
            "rename it."
        )
    tabs = bool(urls) and all(tabs for _kind, _packing, tabs in said)
    return kind, asked if compression is not None else packed, tabs


def _csv_options(given: dict[str, Any], kind: str, *, tabs: bool) -> dict[str, Any]:
    said = {name: value for name, value in given.items() if value is not None}
    if kind != "csv":
        if said:
            raise _wrong(f"{next(iter(said))}= is about csv, and these files are {kind}.")
        return {}
    made = {**CSV_DEFAULTS, **({"delimiter": "\t"} if tabs else {}), **said}
    made["quote_char"] = made["quote_char"] or None
    try:
        reading_options(made)
    except ValueError as error:
        raise _wrong(f"{error}.") from None
    return made


def _sizes(size: Any, count: int) -> int | tuple[int, ...] | None:
    if size is None:
        return None
    several = isinstance(size, Sequence) and not isinstance(size, str)
    sizes = tuple(size) if several else (size,)
    if any(isinstance(one, bool) or not isinstance(one, int) or one < 0 for one in sizes):
        raise _wrong(f"size is a number of rows, or one for each file, not {size!r:.60}.")
    if several and len(sizes) != count:
        raise _wrong(f"size has {len(sizes)} numbers for {count} files. Give one for each, or one for all.")
    return sizes if several else sizes[0]


def _columns(columns: Any) -> tuple[str, ...] | None:
    if columns is None:
        return None
    made = None if isinstance(columns, str | bytes) or not isinstance(columns, Iterable) else tuple(columns)
    if not made or not all(isinstance(name, str) and name for name in made) or len(set(made)) < len(made):
        raise _wrong(f"columns is a list of names, each once, not {columns!r:.60}.")
    return made


def _moment(given: Any) -> dt.datetime | None:
    if given is None or (isinstance(given, dt.datetime) and given.tzinfo is not None):
        return given
    raise _wrong(f"time_extracted is a datetime with a time zone, not {given!r:.60}.")


def _wrong(fact: str) -> DeclarationError:
    return DeclarationError(f"burler.batch_files: {fact}")
