"""One file, opened and read as what it is: CSV and Parquet to Arrow batches, JSON to pages of bytes; what is wrong with
a file, or with its store, is told with its name and a cure. Flat memory for files of any size, but JSON documents."""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from burler.context import StreamRun
from burler.errors import BurlerError, FileError, MissingExtra
from burler.extras import require
from burler.files.options import Csv, Options
from burler.formats import FormatError
from burler.formats.compression import PIECE_BYTES, Decompressed
from burler.formats.csv_read import CsvReader
from burler.formats.jsonl import json_lines, why_no_object
from burler.formats.zipped import members
from burler.pages import JsonPage, Origin, PageError, from_file, json_rows
from burler.records.columns.file_check import check_names
from burler.storage.find import File
from burler.storage.location import printable, shown
from burler.storage.reading import unread

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("burler")

_BOM = b"\xef\xbb\xbf"
_SNIFFED_BYTES = 1 << 20
_OF_STREAM = re.compile("stream '.*?': ")
_FIRST_LINE = re.compile(rb"\s*(\{[^\r\n]*\})[ \t\r]*\n\s*\S")
_LETTERS = "Where quotes are letters like others: csv=burler.files.Csv(quotechar=None)."
_CURES = {
    "other": "Say what it is, with format= or compression=.",
    "format": "Say what it is with format=.",
    "cut": "Is it still being written? settle_seconds leaves files alone that changed lately.",
    "limit": "If that is right, raise max_unpacked_bytes.",
    "member": "Those are read whose names say what they are, or fit member=. Say which: member='*.csv', format='csv'.",
    "quote": f"{_LETTERS} Where more may stand behind the quote that ends a field: strict_quotes=False.",
    "open": _LETTERS,
    "return": "Where it ends a row: csv=burler.files.Csv(strict_quotes=False).",
    "names": "Has it a header? csv=burler.files.Csv(header=(...)) names its columns, skip_rows=1 leaves a header out.",
    "delimiter": "Say so: csv=burler.files.Csv(delimiter=...).",
    "width": "Is the file cut off there, or is the delimiter or the quote another one (csv=burler.files.Csv(...))?",
    "long": "If it is right, raise max_line_bytes. Is it a JSON document (format='json'), or are quotes letters like "
    "others (csv=Csv(quotechar=None))?",
    "document": "If it holds an object a line: format='jsonl'. Else raise max_document_bytes.",
    "encoding": "Say which encoding it is in: csv=burler.files.Csv(encoding='latin-1'), 'cp1252', 'utf-16'.",
}
_encode = msgspec.json.Encoder().encode
_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_lines = msgspec.json.Decoder(msgspec.Raw).decode_lines
_object = msgspec.json.Decoder(msgspec.Raw).decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


@dataclass(frozen=True, slots=True)
class Table:
    """How the columns of a stream's files are told from others.

    Attributes:
        schema: of what is emitted: the fields that are wanted.
        known: all fields that the stream has, also those that are not selected; empty if nobody knows.
    """

    schema: Mapping[str, Any]
    known: tuple[str, ...] = ()

    def wanted(self, names: list[str], delimiter: str = "") -> list[str]:
        """The columns to read: those that are selected, and those that nobody knows, for the warning about them.

        Args:
            names: of all columns of a file; ``delimiter``: of CSV.

        Raises:
            FormatError: see ``check_names``.
        """
        emitted = self.schema.get("properties") or {}
        check_names(names, dict.fromkeys((*emitted, *self.known)), delimiter)
        return [name for name in names if name in emitted or name not in self.known]


def table_of(run: StreamRun | None) -> Table:
    """Which columns a stream wants, and which it knows."""
    if run is None:
        return Table({})
    return Table(run.schema, tuple(path[1] for path in run._metadata if len(path) == 2 and path[0] == "properties"))


class Contents:
    """Reads files as some options say, for one stream.

    Args:
        on_footer: is given the schema of each Parquet file before its first row.
    """

    def __init__(self, options: Options, table: Table, on_footer: Callable[[Any], Any] | None = None) -> None:
        self._options, self._table, self._on_footer = options, table, on_footer
        self._warned: set[str] = set()

    def pages(self, file: File) -> Generator[Any, None, None]:
        """The pages of a file, which ``Options.check`` let pass.

        Raises:
            FileError: it is broken. FileNotFoundError: it is gone.
        """
        options, name = self._options, str(file)
        packing, kind = options.packing(file.label), options.holds(file.label)
        with named(f"file '{name}'", _CURES, may_be_gone=True), file.store.open(file.path, "rb") as stored:
            if packing == "zip":
                yield from self._zipped(stored, file, name)
                return
            source: Any = stored
            if kind != "parquet" or packing is not None:  # from its end; what is packed as a copy
                source = Decompressed(stored, packing, limit_bytes=options.max_unpacked_bytes)
            with source:
                yield from self._content(kind, source, name, file, file.label)

    def _zipped(self, stored: BinaryIO, file: File, name: str) -> Iterator[Any]:
        options = self._options
        for member, opened in members(stored, options.is_wanted, limit_bytes=options.max_unpacked_bytes):
            whole, kind = f"{name}/{member}", options.holds(member)
            if kind is None:
                raise FileError(f"file '{whole}': its name does not say what it holds; say it with format=.")
            with named(f"file '{whole}'", _CURES), opened() as source:
                yield from self._content(kind, source, whole, file, f"{file.label}/{printable(member)}")

    def _content(self, kind: str | None, source: Any, name: str, file: File, label: str) -> Iterator[Any]:
        options, table = self._options, self._table
        pages: Iterator[Any]
        header = 0
        if kind == "parquet":
            pages = columnar_batches(source, kind, name, table, self._warned, self._on_footer)
        elif kind in ("jsonl", "json"):
            pages = _json_pages(source, options, may_be_document=kind == "json")
        else:
            csv = options.csv or Csv(delimiter="\t" if kind == "tsv" else ",")
            pages = _csv_batches(source, csv, table, options.max_line_bytes)
            header = int(csv.header is True)
        for page, before in numbered(pages):
            if options.add:
                page = _added(options.add, page, label, file.modified_at, before)
            yield from_file(page, Origin(name, header + before))


def numbered(pages: Iterable[Any]) -> Iterator[tuple[Any, int]]:
    """Pages of a file, each with how many rows are before it."""
    before = 0
    for page in pages:
        yield page, before
        before += page.data.count(b"\n") if isinstance(page, JsonPage) else page.num_rows  # of a document no matter


@contextmanager
def named(
    what: str,
    cures: Mapping[str, str],
    *,
    wrong: type[BurlerError] = FileError,
    options: str = "storage_options",
    may_be_gone: bool = False,
) -> Iterator[None]:
    """Whatever is wrong with a file, or goes wrong while it is read, is an error that names it, with a cure.

    Args:
        what: what it calls the file.
        cures: by the kinds of ``FormatError``, and of a file that is not there (``gone``).
        wrong: its class.
        options: what those of the store's library are called.
        may_be_gone: then that stays a ``FileNotFoundError``.
    """
    try:
        yield
    except FormatError as error:
        place = f", {error.place}" if error.place else ""
        fact, cure = f"{place}: {shown(error.fact)}", cures.get(error.kind, "")
    except (FileError, MissingExtra):
        raise
    except BurlerError as error:
        fact, cure = f": {shown(_OF_STREAM.sub('', str(error))).rstrip('.')}", ""
    except Exception as error:  # stores have errors of many kinds
        said, cure = unread(error, options)
        if said == "is not there":
            if may_be_gone:
                raise
            cure = cures.get("gone", "")
        fact = f" {said}"
    else:
        return
    raise wrong(f"{what}{fact}." + (f"\n  {cure}" if cure else "")) from None


# ---- CSV -------------------------------------------------------------------------------------------------------------


def _csv_batches(source: Any, csv: Csv, table: Table, most_row_bytes: int) -> Iterator[pa.RecordBatch]:
    require("pyarrow", extra="files", needed_for="burler.files (CSV)")
    from burler.files.cells import narrowing

    reader = CsvReader(source, csv.dialect(), block_bytes=csv.block_bytes, most_row_bytes=most_row_bytes)
    names = reader.names(None if isinstance(csv.header, bool) else csv.header, header=csv.header is True)
    if names is None:
        return
    if csv.header is False:
        names = [f"column{number}" for number in range(1, len(names) + 1)]
    wanted = set(table.wanted([name for name in names if name], csv.delimiter))  # others are not read
    if reader.is_at_end(blank_lines=True):
        return
    narrow = narrowing(table.schema, csv)
    for batch in reader.batches(names, [place for place, name in enumerate(names) if name in wanted]):
        yield from narrow(batch)


# ---- Parquet and Arrow -----------------------------------------------------------------------------------------------


def columnar_batches(
    source: Any,
    format: str,
    file: str,
    table: Table,
    warned: set[str],
    on_schema: Callable[[pa.Schema], Any] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet or Arrow file: the columns that are wanted, by name.

    Timestamps that know no zone are taken as UTC, with one warning a column.

    Args:
        source: an open file; one that can't seek is copied into a temporary one.
        format: "parquet" or "arrow".
        file: its name, for errors.
        warned: columns that were warned about; more are added.
        on_schema: is given the file's schema before the first row.

    Raises:
        FormatError: another format, a broken file, columns of which none is the stream's.
    """
    require("pyarrow", extra="files", needed_for=f"burler.files ({format.capitalize()})")
    import pyarrow as pa

    from burler.formats.columnar import record_batches

    naive: set[str] = set()

    def choose(schema: pa.Schema) -> list[str]:
        wanted = table.wanted(schema.names)
        if on_schema is not None:
            on_schema(schema)
        naive.update(name for name in wanted if _in_utc(schema.field(name).type) != schema.field(name).type)
        for name in sorted(naive - warned):
            logger.warning("file '%s': the timestamps of column '%s' have no zone; they are taken as UTC.", file, name)
        warned.update(naive)
        return wanted

    for batch in record_batches(source, format, choose):
        if naive:
            names = batch.schema.names
            columns = [
                column.cast(_in_utc(column.type)) if name in naive else column
                for name, column in zip(names, batch.columns, strict=True)
            ]
            batch = pa.RecordBatch.from_arrays(columns, names=names)
        yield batch


def _in_utc(kind: pa.DataType) -> pa.DataType:
    """The type with UTC in each timestamp that has no zone, at every depth."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind) and kind.tz is None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_utc(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(kind.value_field.with_type(_in_utc(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_in_utc(kind.item_type)))
    return kind


# ---- JSON: rows never become dicts here ------------------------------------------------------------------------------


def _json_pages(source: Any, options: Options, *, may_be_document: bool) -> Iterator[JsonPage]:
    ahead = b""
    if may_be_document:
        ahead = source.read(_SNIFFED_BYTES)
        # A first line that is an object by itself, and more below: JSON lines, whatever the name says.
        line = None if options.records_path else _FIRST_LINE.match(ahead.removeprefix(_BOM))
        if line is None or why_no_object(line[1], allow_nan=True):
            yield _document(ahead, source, options)
            return
    for lines, _ in json_lines(source, begin=ahead, most_line_bytes=options.max_line_bytes, allow_nan=True):
        yield JsonPage(lines, ())


def _document(begin: bytes, source: Any, options: Options) -> JsonPage:
    """A file that is one JSON document: an array of rows, an object that leads to them, or one row."""
    parts, size, most = [begin], len(begin), options.max_document_bytes
    while size <= most and (block := source.read(PIECE_BYTES)):
        parts.append(block)
        size += len(block)
    if size > most:
        raise FormatError(f"it is a JSON document of more than {most:,} bytes, read as a whole", kind="document")
    page = JsonPage(b"".join(parts).removeprefix(_BOM), options.records_path)
    if not page.data.strip():
        raise FormatError("it is empty; a JSON document should be there")
    try:
        page.data.decode()
        if all(bytes(row).startswith(b"{") for row in _raw_rows(page)):
            return page
    except (msgspec.DecodeError, UnicodeError, RecursionError, KeyError):
        pass
    try:
        json_rows(page)  # it knows what is wrong, and takes NaN
    except PageError as error:
        raise FormatError(str(error)) from None
    return page


def _raw_rows(page: JsonPage) -> list[msgspec.Raw]:
    """The rows of a page, each as it is written.

    Raises:
        msgspec.DecodeError, RecursionError: it is broken. KeyError: its path leads nowhere.
    """
    data: Any = page.data
    if not page.records_path and data.lstrip().startswith(b"{"):
        try:
            return _lines(data)
        except msgspec.DecodeError:
            return [_object(data)]  # over several lines
    for name in page.records_path or ():
        data = _fields(data)[name]
    return [] if bytes(data).strip() == b"null" else _list(data)


# ---- columns that say where a row comes from -------------------------------------------------------------------------


def _added(names: tuple[str, ...], page: Any, label: str, modified: dt.datetime | None, before: int) -> Any:
    """A page with the columns.

    Args:
        label: the file's name as rows show it.
        before: how many rows of the file are before the page.

    Raises:
        FileError: an Arrow page that has such a column, a JSON page with something that is no JSON.
    """
    if isinstance(page, JsonPage):
        return _added_to_json(names, page, label, modified, before)
    import pyarrow as pa

    own = next((name for name in names if name in page.schema.names), None)
    if own is not None:
        raise FileError(f"file '{label}' has a column '{own}' of its own: leave '{own}' out of add=(...).")
    count = page.num_rows
    made = {
        "_file": lambda: pa.repeat(pa.scalar(label, pa.string()), count),
        "_row": lambda: pa.array(range(before + 1, before + 1 + count), pa.int64()),
        "_modified": lambda: pa.repeat(pa.scalar(modified, pa.timestamp("us", "UTC")), count),
    }
    columns = [*page.columns, *(made[name]() for name in names)]
    return pa.RecordBatch.from_arrays(columns, names=[*page.schema.names, *names])


def _added_to_json(
    names: tuple[str, ...], page: JsonPage, label: str, modified: dt.datetime | None, before: int
) -> JsonPage:
    fixed = {"_file": label, "_modified": modified}
    begin = b"{" + b"".join(_encode(name) + b":" + _encode(fixed[name]) + b"," for name in names if name in fixed)
    try:
        rows = _raw_rows(page)
    except msgspec.DecodeError as error:
        raise FileError(
            f"file '{label}' holds something that is no JSON ({error}): leave add=(...) out to read it."
        ) from None
    parts = []
    for number, row in enumerate(rows, before + 1):
        added = begin + (b'"_row":%d,' % number if "_row" in names else b"")
        inside = bytes(row).lstrip()[1:]
        parts.append((added[:-1] if inside.lstrip().startswith(b"}") else added) + inside)
    return JsonPage(b"[" + b",".join(parts) + b"]", ())
