"""``burler.batch_files``: files that the source made itself (UNLOAD, COPY, report downloads), for a function to yield.

What becomes of them is decided while the tap runs (``Intake``): with BATCH on they are passed on untouched where
they are what the stream's rows would be, else they are read as rows.

Source: BATCH proposal, "pass through".
"""

from __future__ import annotations

import datetime as dt
import json
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

from burler.batch.message import reading_options
from burler.batch_config import CODECS, CSV_DEFAULTS, FORMATS, PACKINGS, BatchConfig
from burler.config.secrets import hide
from burler.context import StreamRun, running
from burler.errors import DeclarationError
from burler.extras import require
from burler.files.contents import Table, columnar_batches, named, numbered, table_of
from burler.formats import FormatError
from burler.formats.compression import Decompressed
from burler.formats.csv_read import CsvReader
from burler.formats.jsonl import json_lines
from burler.formats.names import COMPRESSIONS, HEAD_BYTES, format_of, split_name
from burler.localfile import Cures
from burler.numbers import is_count
from burler.pages import JsonPage, Origin, from_file
from burler.records.columns.file_check import check_names, mismatch
from burler.singer.messages import Batch
from burler.storage import location
from burler.storage.location import Words, local_path
from burler.storage.reading import open_file
from burler.storage.web import Gate
from burler.words import some

logger = logging.getLogger("burler")

_PACKINGS = (*PACKINGS, "bz2", "xz")
"""How files may be packed as a whole. No BATCH message can say bz2 and xz: such files are read as rows."""

_SHOWN = 5
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
    "other": "Say what it is: burler.batch_files(..., format=..., compression=...).",
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
        return rows(self, running())


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
    size = tuple(size) if isinstance(size, Sequence) else size
    sizes = size if isinstance(size, tuple) else () if size is None else (size,) * len(absolute)
    if size is not None and not (len(sizes) == len(absolute) and all(is_count(one, 0) for one in sizes)):
        raise _wrong(f"size is a number of rows, or one for each of {len(absolute)} files, not {size!r:.60}.")
    names = None if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
    if names is not None and (isinstance(columns, str) or not names or len(set(names)) < len(names)):
        raise _wrong(f"columns is a list of names, each once, not {columns!r:.60}.")
    csv = {"delimiter": delimiter, "quote_char": quote_char, "header": header, "null": null}
    options = _csv_options({name: said for name, said in csv.items() if said is not None}, kind, has_tabs=has_tabs)
    more = bookmark, time_extracted, temporary, check, dict(storage_options or {})
    return BatchFiles(absolute, kind, packing, options, size, names, *more)


def _absolute(given: Any) -> str:
    """A URL; that of a local file with ``file://``."""
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str) or not text:
        raise _wrong(f"takes paths and URLs as text, not {given!r:.60}.")
    if "://" not in text:
        path = str((local_path(text) or Path(text)).absolute())
        return Path(path).as_uri() if _NOT_PLAIN.search(path) else f"file://{path}"
    parts = urlsplit(text)
    if parts.scheme == "file" and parts.netloc not in ("", "localhost"):
        raise _wrong(f"{text!r:.60}: a URL of a local file has three slashes: file:///folder/name.")
    user, at, host = parts.netloc.rpartition("@")
    if at and (":" in user or parts.scheme not in _USERS_ALLOWED):
        for secret in user.split(":"):
            hide(secret)
        where = location.shown(f"{parts.scheme}://***@{host}")
        cure = "Give them to the store's library: storage_options={...}, or its environment variables."
        raise _wrong(f"a URL with credentials in it ({where}): it would go into messages.\n  {cure}")
    if parts.query:
        hide(parts.query)
    return text


def _written(format: str | None, compression: str | None, urls: Sequence[str]) -> tuple[str, str | None, bool]:
    """Format, packing, and whether tabs stand between fields: what is said, else what the files' names say.

    Raises:
        DeclarationError: nobody says it, or the names say several things.
    """
    if format is not None and format not in FORMATS:
        raise _wrong(f"format {format!r:.40} is not known. Known: {', '.join(FORMATS)}.")
    asked = COMPRESSIONS.get(compression or "", compression)
    if compression is not None and asked not in _PACKINGS:
        raise _wrong(f"compression {compression!r:.40} is not known. Known: {', '.join(_PACKINGS)}.")
    names = [unquote(urlsplit(url).path).rpartition("/")[2] for url in urls]
    held = {format_of(name) for name in names}
    kinds = {_KINDS.get(one or "") for one in held} if format is None else {format}
    packings = {split_name(name)[1] for name in names} if compression is None else {None if asked == "none" else asked}
    if len(kinds) > 1 or len(packings) > 1:
        raise _wrong("these files are written in several ways, as their names say.\n  Yield one batch_files for each.")
    kind, packing = (kinds.pop(), packings.pop()) if names else (format or "jsonl", None)
    example = location.shown("".join(urls[:1]))
    if packing == "zip":
        raise _wrong(f"'{example}' is a zip, which holds files of its own: use burler.files.read.")
    if kind is None:
        raise _wrong(
            f"the name of '{example}' does not say what it holds.\n  Say it: format='jsonl' (an object a line), 'csv', "
            "'parquet' or 'arrow'."
        )
    return kind, packing, held == {"tsv"}


def _csv_options(said: dict[str, Any], kind: str, *, has_tabs: bool) -> dict[str, Any]:
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
    return [
        SourceFile(url, **{"rows": size, **(_said(files, url) if files.check else {})})
        for url, size in zip(files.urls, sizes, strict=True)
    ]


@contextmanager
def _opened(files: BatchFiles, url: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """A file, and how many bytes it has as it is stored. What goes wrong names it."""
    with named(f"file '{shown_url(url)}'", _CURES):
        raw, size_bytes = open_file(url, files.storage_options, Gate(), _WORDS, piece_bytes=_STEP_BYTES)
        with raw:
            yield raw, size_bytes


def _said(files: BatchFiles, url: str) -> dict[str, Any]:
    """What a file says of itself: attributes of a ``SourceFile``."""
    with _opened(files, url) as (raw, size_bytes):
        if files.format in CODECS:
            return {"size_bytes": size_bytes, **_of_columns(files, raw)}
        text = Decompressed(raw, files.compression)
        said = _of_lines(text) if files.format == "jsonl" else _of_csv(text, files)
        while text.stored_bytes < _STEP_BYTES and text.read1(_STEP_BYTES):  # a small file is looked at whole
            pass
        return {"size_bytes": size_bytes, **said}


def _of_lines(source: Decompressed) -> dict[str, Any]:
    """The keys of the first row."""
    begin = source.read(len(BOM_UTF8))
    lines, _ = next(json_lines(source, begin=begin, most_line_bytes=_MOST_BYTES, allow_nan=True), (b"", 0))
    row = json.loads(lines.partition(b"\n")[0] or b"{}", parse_int=str)
    remark = _MARKED if begin == BOM_UTF8 else None
    return {"keys": tuple(row), "is_empty": not lines, "remark": remark}


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
        return said
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


def rows(
    files: BatchFiles, run: StreamRun | None, found: Sequence[SourceFile] | None = None
) -> Generator[Any, None, None]:
    """The pages of some files, one file after the other. Temporary files go once they are read, or nobody wants more:
    the next run has them made anew.

    Args:
        run: the stream whose rows they are; None: of no stream that runs here.
        found: what ``checked`` gave; None: they are looked at when the first page is asked for.
    """
    table, warned = table_of(run), set[str]()
    try:
        for file in checked(files) if found is None else found:
            if not file.is_empty:
                if run is not None:
                    run.tally.add("files")
                    run.tally.add("bytes", count=file.size_bytes or 0)
                yield from _pages(files, file, table, warned)
            _remove(files, [file.url])
    finally:
        _remove(files, files.urls)
    if run is not None and run.manual and files.bookmark is not msgspec.UNSET:
        run.save_bookmark(files.bookmark)


def _remove(files: BatchFiles, urls: Iterable[str]) -> None:
    for path in filter(None, map(local_path, urls if files.temporary else ())):
        path.unlink(missing_ok=True)


def _pages(files: BatchFiles, file: SourceFile, table: Table, warned: set[str]) -> Generator[Any, None, None]:
    """The pages of one file.

    Raises:
        FileError: it is broken; rows before the place were given.
    """
    name, is_columns = shown_url(file.url), files.format in CODECS
    with _opened(files, file.url) as (stored, _):
        source: Any = stored
        if not is_columns or files.compression is not None:
            source = Decompressed(stored, files.compression, limit_bytes=_MOST_UNPACKED_BYTES)
        if is_columns:
            pages: Iterator[Any] = columnar_batches(source, files.format, name, table, warned)
        else:
            text = _csv(files, file, source, table) if files.format == "csv" else json_lines(source, allow_nan=True)
            pages = (JsonPage(lines, ()) for lines, _ in text)
        header = int(files.format_options.get("header", False))
        for page, before in numbered(pages):
            yield from_file(page, Origin(name, header + before))


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


# ---- whether they are passed on --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Passed:
    """Files that go out as they are: one message for each.

    Attributes:
        bookmark: the replication key's greatest value in them, by the author's word; ``msgspec.UNSET`` without.
    """

    files: BatchFiles
    checked: tuple[SourceFile, ...]

    is_passed: ClassVar[bool] = True

    @property
    def bookmark(self) -> Any:
        """See the class. Files that have no rows, as far as they say so themselves, move it no more than rows would."""
        return self.files.bookmark if any(file.counted != 0 for file in self.checked) else msgspec.UNSET

    @property
    def count(self) -> int:
        """How many rows they have, as far as anybody knows. The author's number may be more than there are."""
        return sum(file.rows or 0 for file in self.checked)

    @property
    def size_bytes(self) -> int:
        """Their bytes as stored, as far as stores say."""
        return sum(file.size_bytes or 0 for file in self.checked)

    def batches(
        self, stream: str, *, time_extracted: dt.datetime | None, version: int | None, dialect: str
    ) -> list[Batch]:
        """The messages, in the files' order. ``file_stats`` has the rows only where a footer counts them."""
        made = []
        for file in self.checked:
            options: dict[str, Any] = {}
            if self.files.format == "csv":
                options = {**self.files.format_options, "line_end": file.line_end}
            elif file.types:
                options = {"compression": "none" if file.codec in (None, "uncompressed") else file.codec}
            message = Batch(
                stream,
                (file.url,),
                self.files.format,
                self.files.compression,
                options,
                size=file.rows,
                time_extracted=self.files.time_extracted or time_extracted,
                version=version,
                file_stats=None if file.size_bytes is None else ((file.counted, file.size_bytes),),
                dialect=dialect,
            )
            made.append(message)
        return made


class Intake:
    """Takes what one stream's function yields.

    Args:
        config: None: BATCH is off for this stream.
        rows_needed: why something of the tap must see each row, as "a hook is called for its rows"; None: nothing must.
    """

    def __init__(self, *, config: BatchConfig | None, rows_needed: str | None = None) -> None:
        self._config, self._rows_needed = config, rows_needed
        self._said = False

    def take(self, files: BatchFiles, run: StreamRun) -> Passed | Iterator[Any]:
        """Look at files of a stream, and decide.

        Raises:
            FileError: one is not there, or is not what it should be. MissingExtra: see ``checked``.
        """
        found = checked(files)
        if self._config is None:
            return rows(files, run, found)
        reason = next(_reasons(files, found, run, self._config, self._rows_needed), None)
        if reason is None:
            passed = Passed(files, tuple(file for file in found if not file.is_empty))
            uncounted = sum(file.rows is None for file in passed.checked)
            counts = {"passed_files": len(passed.checked), "bytes": passed.size_bytes, "uncounted_files": uncounted}
            for name, count in counts.items():
                if count:  # those that are read count where that is done
                    run.tally.add(name, count=count)
            return passed
        if not self._said:
            self._said = True
            logger.info("stream '%s': its files are read and written anew: %s.", run.name, reason)
        return rows(files, run, found)


def _reasons(
    files: BatchFiles, found: Sequence[SourceFile], run: StreamRun, config: BatchConfig, rows_needed: str | None
) -> Iterator[str]:
    """Why files can't be passed on as they are, each as the end of a sentence: what needs the rows, what a message
    can't say, what the operator asked for, and each file's own.

    The stream's selected schema is held against their columns. What it says beyond names and (of Parquet and Arrow)
    types is not: nobody looks at the rows.
    """
    urls = [urlsplit(url) for url in files.urls]
    if rows_needed:
        yield rows_needed
    if (files.compression or "none") not in PACKINGS:
        yield f"no BATCH message can say '{files.compression}'"
    if config.dialect != "sip" and any(url.query for url in urls):
        yield f"their URLs have a query, which targets of dialect '{config.dialect}' cut off (dialect 'sip' does not)"
    if config.presign_seconds is not None and not all(url.query or url.scheme == "file" for url in urls):
        yield "presign_seconds asks for signed URLs, and these are not"
    if config.dialect == "meltano" and files.format == "csv" and dict(files.format_options) != dict(CSV_DEFAULTS):
        yield "dialect 'meltano' can't say how csv is written"
    if config.encoding_given:
        yield from _other_encoding(files, config)
    yield from _deselected_inside(run)
    for file in found:
        if not file.is_empty and (reason := file.remark or _columns(files, file, run)):
            yield f"'{shown_url(file.url)}': {reason}"


def _other_encoding(files: BatchFiles, config: BatchConfig) -> Iterator[str]:
    """Where the files are not what the operator asked for. The codec inside of Parquet and Arrow is no matter: such
    files say it themselves."""
    wanted = config.encoding
    if files.format != wanted.format:
        yield f"batch_config asks for {wanted.format}, and they are {files.format}"
    if files.compression != wanted.packing:
        asked, theirs = (f"packed with {one}" if one else "not packed" for one in (wanted.packing, files.compression))
        yield f"batch_config asks for {wanted.format} {asked}, and they are {theirs}"
    for name, value in files.format_options.items():
        option = wanted.format_options.get(name, CSV_DEFAULTS[name])
        if name != "line_end" and option != value:
            yield f"batch_config asks for csv with {name} {option!r}, and theirs is {value!r}"


def _deselected_inside(run: StreamRun) -> Iterator[str]:
    """A field within a field that is not selected: in files nobody takes it out."""
    for path in run._metadata:
        if len(path) > 2 and path[0] == "properties" and path[1] in (run.schema.get("properties") or {}):
            node: Any = run.schema
            for key in path:
                node = node.get(key) if hasattr(node, "get") else None
            if node is None:
                yield f"field '{'.'.join(path[1::2])}' is not selected"


def _columns(files: BatchFiles, file: SourceFile, run: StreamRun) -> str | None:
    """Where its columns are not the stream's selected fields."""
    wanted = tuple(run.schema.get("properties") or ())
    columns = file.columns or files.columns
    if columns is None:
        cure = "batch_files(columns=[...]) says it"
        return f"{files.format} does not say which fields its rows have ({cure})"
    if files.columns is not None and set(columns) != set(files.columns):
        return f"its columns are not those of columns= ({_differences(columns, files.columns, 'columns=')})"
    if set(columns) != set(wanted):
        return _differences(columns, wanted, "the selected schema")
    if file.keys is not None and (more := [key for key in file.keys if key not in wanted]):
        return f"its first row has '{more[0]}', which columns= does not name"
    if files.format == "csv" and not files.format_options["header"] and columns != wanted:
        return "it has no header, and its columns stand in another order than the schema's"
    if file.types is None:
        return None

    return mismatch(file.types, run.schema, run.name)


def _differences(columns: Sequence[str], wanted: Sequence[str], of: str) -> str:
    more = [f"'{name[:60]}'" for name in columns if name not in wanted]
    less = [f"'{name[:60]}'" for name in wanted if name not in columns]
    has = f"it has {some(more, _SHOWN)}, which {of} does not" if more else ""
    lacks = f"{'and ' if more else 'it '}lacks {some(less, _SHOWN)}" if less else ""
    return f"{has} {lacks}".strip()
