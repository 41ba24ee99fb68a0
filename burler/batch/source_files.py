"""``burler.batch_files``: files that the source made itself (UNLOAD, COPY, report downloads), for a function to yield.

What becomes of them is decided while the tap runs (``source_intake``): with BATCH on they are passed on untouched where
they are what the stream's rows would be, else they are read as rows.

Source: BATCH proposal, "pass through".
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import re
from codecs import BOM_UTF8
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, ClassVar
from urllib.parse import unquote, urlsplit

import msgspec

from burler.batch.allowed import OWN
from burler.batch.csv_options import reading_options
from burler.batch_config import CODECS, CSV_DEFAULTS, FORMATS, PACKINGS
from burler.config.secrets import hide
from burler.context import StreamRun, running
from burler.errors import DeclarationError
from burler.extras import require
from burler.files.contents import Table, columnar_batches, named, table_of
from burler.formats import FormatError
from burler.formats.compression import Decompressed
from burler.formats.csv_read import CsvReader
from burler.formats.jsonl import json_lines
from burler.formats.names import COMPRESSIONS, HEAD_BYTES, format_of, kind_of, shown_kind, split_name
from burler.localfile import Cures
from burler.log_settings import near
from burler.numbers import is_count
from burler.pages import JsonPage, Origin, from_file
from burler.records.columns.demands import check_names
from burler.storage import location
from burler.storage.location import Words, local_path
from burler.storage.reading import open_file

logger = logging.getLogger("burler")

_PACKINGS = (*PACKINGS, "bz2", "xz")
"""How files may be packed as a whole. No BATCH message can say bz2 and xz: such files are read as rows."""

_STEP_BYTES = 1 << 16
_MOST_BYTES = 1 << 24
"""So much of a file is read to find the end of its first row."""
_MOST_UNPACKED_BYTES = 1 << 36
_MARKED = "it begins with a byte order mark"
_TEXT = {"type": ["null", "string"]}
_WORDS = Words("burler.batch_files", "storage_options", "burler.batch_files", Cures(refused=""))
_WHOLE = "Was it written to its end?"
_CURES = {
    "gone": "Was it written? A relative path counts from the folder that the tap was started in.",
    "cut": _WHOLE,
    "empty": _WHOLE,
    "damaged": _WHOLE,
    "format": f"{_WHOLE} Where it is another format, say it: burler.batch_files(..., format='csv').",
    "lines": "In JSON lines each line is a row. Is it another format, or a document that holds the rows?",
    "names": "Has it a header (header=True), or none (header=False, columns=[...])?",
    "delimiter": "Say so: burler.batch_files(..., delimiter=...).",
    "width": "Is it cut off there, or is the delimiter another one?",
}
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
        return Rows(self, running())


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
    kind, packing, has_tabs = _written(format, compression, absolute)
    if temporary and any(local_path(url) is None for url in absolute):
        raise _wrong("temporary=True is for local files; those of a store are yours to remove.")
    if time_extracted is not None and not (isinstance(time_extracted, dt.datetime) and time_extracted.tzinfo):
        raise _wrong(f"time_extracted is a datetime with a time zone, not {time_extracted!r:.60}.")
    options = {"delimiter": delimiter, "quote_char": quote_char, "header": header, "null": null}
    return BatchFiles(
        absolute,
        kind,
        packing,
        _csv_options(options, kind, has_tabs=has_tabs),
        _sizes(size, len(absolute)),
        _columns(columns),
        bookmark,
        time_extracted,
        temporary,
        check,
        dict(storage_options or {}),
    )


# ---- URLs ------------------------------------------------------------------------------------------------


def _absolute(given: Any) -> str:
    """A URL; that of a local file with ``file://``."""
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str) or not text:
        raise _wrong(f"takes paths and URLs as text, not {given!r:.60}.")
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
        where = location.shown(f"{parts.scheme}://***@{_host}")
        cure = "Give them to the store's library: storage_options={...}, or its environment variables."
        raise _wrong(f"a URL with credentials in it ({where}): it would go into messages.\n  {cure}")
    if parts.query:
        hide(parts.query)
    return text


# ---- what the files are ------------------------------------------------------------------------------------


def _written(format: str | None, compression: str | None, urls: Sequence[str]) -> tuple[str, str | None, bool]:
    """Format, packing, and whether tabs stand between fields: what is said and what the files' names say, as one.

    Raises:
        DeclarationError: they contradict each other, or nobody says it.
    """
    if format is not None and format not in FORMATS:
        raise _wrong(f"format {format!r:.40} is not known. Known: {', '.join(FORMATS)}.")
    asked = "none" if compression == "none" else COMPRESSIONS.get(compression or "")
    if compression is not None and asked not in _PACKINGS:
        raise _wrong(f"compression {compression!r:.40} is not known. Known: {', '.join(_PACKINGS)}.")
    names = [unquote(urlsplit(url).path).rpartition("/")[2] for url in urls]
    held = {format_of(name) or "" for name in names}
    kinds = {_KINDS.get(one) for one in held} or {"jsonl" if format is None else format}
    packings = {split_name(name)[1] for name in names} or {None}
    if len(kinds) > 1 or (len(packings) > 1 and compression is None):
        raise _wrong("these files are written in several ways, as their names say.\n  Yield one batch_files for each.")
    named, packed = kinds.pop(), packings.pop() if len(packings) == 1 else None
    example = location.shown("".join(urls[:1]))
    if "zip" in packings or packed == "zip":
        raise _wrong(f"'{example}' is a zip, which holds files of its own: use burler.files.read.")
    for option, said, meant, by_name in (
        ("format", format, format, named),
        ("compression", compression, asked, packed),
    ):
        if said is not None and by_name is not None and meant != by_name:
            raise _wrong(
                f"{option}='{said}', but the name of '{example}' says {by_name}. Leave {option}= out, or rename it."
            )
    kind = format or named
    if kind is None:
        raise _wrong(
            f"the name of '{example}' does not say what it holds.\n  Say it: format='jsonl' (an object a line), 'csv', "
            "'parquet' or 'arrow'."
        )
    packing = packed if compression is None else asked
    return kind, None if packing == "none" else packing, held == {"tsv"}


def _csv_options(given: dict[str, Any], kind: str, *, has_tabs: bool) -> dict[str, Any]:
    said = {name: value for name, value in given.items() if value is not None}
    if kind != "csv":
        if said:
            raise _wrong(f"{next(iter(said))}= is about csv, and these files are {kind}.")
        return {}
    made = {**CSV_DEFAULTS, **({"delimiter": "\t"} if has_tabs else {}), **said}
    made["quote_char"] = made["quote_char"] or None
    try:
        reading_options(made)
    except ValueError as error:
        raise _wrong(f"{error}.") from None
    return made


def _sizes(size: Any, count: int) -> int | tuple[int, ...] | None:
    if size is None:
        return None
    sizes = (size,) if isinstance(size, str) or not isinstance(size, Sequence) else tuple(size)
    if not all(is_count(one, 0) for one in sizes):
        raise _wrong(f"size is a number of rows, or one for each file, not {size!r:.60}.")
    if isinstance(size, Sequence) and len(sizes) != count:
        raise _wrong(f"size has {len(sizes)} numbers for {count} files. Give one for each, or one for all.")
    return sizes if isinstance(size, Sequence) else sizes[0]


def _columns(columns: Any) -> tuple[str, ...] | None:
    if columns is None:
        return None
    made = None if isinstance(columns, str | bytes) or not isinstance(columns, Iterable) else tuple(columns)
    if not made or not all(isinstance(name, str) and name for name in made) or len(set(made)) < len(made):
        raise _wrong(f"columns is a list of names, each once, not {columns!r:.60}.")
    return made


def _wrong(fact: str) -> DeclarationError:
    return DeclarationError(f"burler.batch_files: {fact}")


# ---- what files say of themselves ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that is there and begins as it should.

    Attributes:
        rows: how many it has: as its footer counts them (Parquet), else at the most, by the author's word.
        counted: as its footer counts them.
        size_bytes: as stored; None where its store does not say.
        columns: as its header or its schema has them; None where it has none (JSON lines, CSV without a header).
        keys: of JSON lines: the keys of the first row.
        types: pyarrow's schema (Parquet, Arrow).
        codec: of Parquet's first column.
        may_be_names: of CSV without a header: its first row is the one name that it is said to have.
        is_empty: it has no row and need not be in a manifest.
        remark: why it can't be passed on, where the file itself is the reason.
    """

    url: str
    rows: int | None = None
    counted: int | None = None
    size_bytes: int | None = None
    columns: tuple[str, ...] | None = None
    keys: tuple[str, ...] | None = None
    types: Any = None
    codec: str | None = None
    line_end: str = "\n"
    may_be_names: bool = False
    is_empty: bool = False
    remark: str | None = None


def checked(files: BatchFiles) -> list[SourceFile]:
    """Look at each file: it is there, its first bytes fit its compression and unpack, its header can be read.

    No more than the beginning of a file of text is read, and the footer of Parquet.

    Raises:
        FileError: a file that is not there, is broken, or is not what it should be; with its name.
        MissingExtra: pyarrow, zstandard or the library of a store is not installed.
    """
    sizes = files.size if isinstance(files.size, tuple) else [files.size] * len(files.urls)
    if not files.check:
        return list(map(SourceFile, files.urls, sizes))
    return [_checked(files, url, size) for url, size in zip(files.urls, sizes, strict=True)]


def _checked(files: BatchFiles, url: str, size: int | None) -> SourceFile:
    with _opened(files, url) as (raw, size_bytes):
        said: dict[str, Any] = {"size_bytes": size_bytes}
        if files.format in CODECS:
            said |= _of_columns(files, raw)
        else:
            text = Decompressed(raw, files.compression)
            _check_compression(files, text.head())
            said |= _of_lines(text) if files.format == "jsonl" else _of_csv(text, files)
            while text.stored_bytes < _STEP_BYTES and text.read1(_STEP_BYTES):  # a small file is looked at whole
                pass
    return SourceFile(url, **{"rows": size, **said})


@contextmanager
def _opened(files: BatchFiles, url: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """A file, and how many bytes it has as it is stored. What goes wrong names it."""
    with named(shown_url(url), _CURES):
        raw, size_bytes = open_file(url, files.storage_options, OWN, _WORDS, piece_bytes=_STEP_BYTES)
        with raw:
            yield raw, size_bytes


def _check_compression(files: BatchFiles, first: bytes) -> None:
    """A file says itself how it is packed."""
    found = kind_of(first)
    if found in CODECS:
        raise FormatError(f"it is {shown_kind(found)}, not text", kind="format")
    if first and found != files.compression:
        said = "packed with " + files.compression if files.compression else "not packed"
        fact = f"it should be {said}, by its name or by compression=, and it is {found or 'not'}"
        raise FormatError(f"{fact}.\n  Say it: burler.batch_files(..., compression='{found or 'none'}')")


def _of_lines(source: Decompressed) -> dict[str, Any]:
    """The keys of the first row."""
    text = b""
    while b"\n" not in text.lstrip():
        if len(text) >= _MOST_BYTES:
            raise FormatError(f"no line ends within its first {_MOST_BYTES:,} bytes")
        if not (piece := source.read1(max(_STEP_BYTES, len(text)))):
            break
        text += piece
    if not text.strip():
        return {"is_empty": True, "keys": ()}
    marked = text.startswith(BOM_UTF8)
    line = text.removeprefix(BOM_UTF8).lstrip().partition(b"\n")[0]
    try:
        row = msgspec.json.decode(line.decode(), type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise FormatError(f"its first line is no JSON object{near(line)}", kind="lines") from None
    return {"keys": tuple(row), "remark": _MARKED if marked else None}


def _of_csv(source: Decompressed, files: BatchFiles) -> dict[str, Any]:
    """The names of the columns, or the first row of a file without header, cut as whoever gets the file cuts it."""
    header = bool(files.format_options["header"])
    reader = CsvReader(
        source, reading_options(files.format_options).dialect, block_bytes=_STEP_BYTES, most_row_bytes=_MOST_BYTES
    )
    names = reader.names(None if header else files.columns, header=header)
    if names is None:
        if header:
            raise FormatError("it is empty, and should begin with a row of names", kind="names")
        return {"is_empty": True}
    said = {"line_end": reader.line_end, "remark": _MARKED if reader.is_marked else None}
    if not header:
        return {**said, "may_be_names": reader.first(may_be_blank=True) == names}
    check_names(names, (), files.format_options["delimiter"])
    if not all(names):
        raise FormatError("a column has no name in the first line", kind="names")
    return {**said, "columns": tuple(names), "is_empty": reader.is_at_end()}


def _of_columns(files: BatchFiles, opened: Any) -> dict[str, Any]:
    """Schema and footer. A file that is packed as a whole, or can't be read from its end, says nothing yet: it is never
    passed on, and whoever reads it copies it first."""
    if files.compression is not None:
        return {"remark": f"it is packed as a whole ({files.compression}), which no reader of {files.format} expects"}
    require("pyarrow", extra="files", needed_for="burler.batch_files (Parquet, Arrow)")
    from burler.formats.columnar import check_head, read_footer

    if not opened.seekable():
        check_head(opened.read(HEAD_BYTES), files.format)
        return {"remark": "it can't be read from its end where it lies, so nobody knows its columns"}
    footer = read_footer(opened, files.format)
    names = tuple(footer.schema.names)
    check_names(names, ())
    counted = {} if footer.rows is None else {"rows": footer.rows, "counted": footer.rows}
    return {**counted, "columns": names, "types": footer.schema, "codec": footer.codec}


def shown_url(url: str) -> str:
    """A file as people may see it."""
    return location.shown(str(local_path(url) or url))


# ---- their rows ------------------------------------------------------------------------------------------


class Rows:
    """An iterator of the pages of some files, one file after the other.

    Args:
        run: the stream whose rows they are; None: of no stream that runs here.
        found: what ``checked`` gave; None: they are looked at when the first page is asked for.
    """

    def __init__(self, files: BatchFiles, run: StreamRun | None, found: Sequence[SourceFile] | None = None) -> None:
        self._files, self._run, self._found = files, run, found
        self._pages = self._of_all()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._pages)

    def close(self) -> None:
        """No more pages are wanted. What was temporary goes: the next run has it made anew."""
        self._pages.close()
        for url in self._files.urls:
            self._remove(url)

    def _of_all(self) -> Generator[Any, None, None]:
        files, run = self._files, self._run
        table, warned = table_of(run), set[str]()
        for file in checked(files) if self._found is None else self._found:
            if not file.is_empty:
                if run is not None:
                    run.tally.add("files")
                    run.tally.add("bytes", count=file.size_bytes or 0)
                yield from _pages(files, file, table, warned)
            self._remove(file.url)
        if run is not None and run.manual and files.bookmark is not msgspec.UNSET:
            run.save_bookmark(files.bookmark)

    def _remove(self, url: str) -> None:
        if self._files.temporary and (path := local_path(url)) is not None:
            path.unlink(missing_ok=True)


def _pages(files: BatchFiles, file: SourceFile, table: Table, warned: set[str]) -> Generator[Any, None, None]:
    """The pages of one file.

    Raises:
        FileError: it is broken; rows before the place were given.
    """
    name, is_columns, before = shown_url(file.url), files.format in CODECS, 0
    with _opened(files, file.url) as (stored, _):
        source: Any = stored
        if not is_columns or files.compression is not None or not stored.seekable():
            source = Decompressed(stored, files.compression, limit_bytes=_MOST_UNPACKED_BYTES)
        if is_columns:
            for batch in columnar_batches(source, files.format, name, table, warned):
                yield from_file(batch, Origin(name, before))
                before += batch.num_rows
            return
        before = int(files.format_options.get("header", False))
        text = _csv(files, file, source, table) if files.format == "csv" else json_lines(source, allow_nan=True)
        for lines, count in text:
            yield JsonPage(lines, (), Origin(name, before))
            before += count


def _csv(files: BatchFiles, file: SourceFile, opened: Decompressed, table: Table) -> Iterator[tuple[bytes, int]]:
    """Read as whoever gets the file in a BATCH message reads it, so that the rows are the same on both ways."""
    require("pyarrow", extra="batch", needed_for="reading BATCH files in csv")
    from burler.batch.column_readers import csv_pages

    fields: Mapping[str, Any] = table.schema.get("properties") or {}
    columns = file.columns or files.columns or tuple(fields)
    table.wanted(list(columns), files.format_options["delimiter"])
    schema = {"type": "object", "properties": {column: fields.get(column, _TEXT) for column in columns}}
    options = reading_options({**files.format_options, "line_end": file.line_end})
    return csv_pages(opened, options, schema, logger.warning, are_shaped=True)
