"""What a source's files say of themselves, without their rows: columns, types, how many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from burler.batch.csv_options import reading_options
from burler.batch.native import BatchFiles
from burler.batch.native_head import MOST_BYTES, STEP_BYTES, Head, open_file, size_of
from burler.errors import FileError
from burler.extras import require
from burler.formats import FormatError
from burler.formats.csv_read import CsvReader
from burler.formats.names import HEAD_BYTES
from burler.log_settings import near
from burler.storage.location import local_path, shown

_BOM = b"\xef\xbb\xbf"
_NEEDED = "burler.batch_files (Parquet, Arrow)"


@dataclass(frozen=True, slots=True)
class NativeFile:
    """A file that is there and begins as it should.

    Attributes:
        number: its place in ``BatchFiles.urls``.
        size_bytes: as stored; None where its store does not say.
        columns: as its header or its schema has them; None where it has none (JSON lines, CSV without a header).
        keys: of JSON lines: the keys of the first row.
        first: of CSV without a header: the fields of the first row.
        rows: as its footer counts them (Parquet).
        types: pyarrow's schema (Parquet, Arrow).
        codec: of Parquet's first column.
        is_empty: it has no row and need not be in a manifest.
        remark: why it can't be passed on, where the file itself is the reason.
    """

    url: str
    number: int
    size_bytes: int | None = None
    columns: tuple[str, ...] | None = None
    keys: tuple[str, ...] | None = None
    first: tuple[str, ...] | None = None
    rows: int | None = None
    types: Any = None
    codec: str | None = None
    line_end: str = "\n"
    is_empty: bool = False
    remark: str | None = None


def checked(files: BatchFiles) -> list[NativeFile]:
    """Look at each file: it is there, its first bytes fit its compression and unpack, its header can be read.

    No more than the beginning of a file of text is read, and the footer of Parquet.

    Raises:
        FileError: a file that is not there, is broken, or is not what it should be; with its name.
        MissingExtra: pyarrow, zstandard or the library of a store is not installed.
    """
    if not files.check:
        return [NativeFile(url, number) for number, url in enumerate(files.urls)]
    return [_checked(files, url, number) for number, url in enumerate(files.urls)]


def _checked(files: BatchFiles, url: str, number: int) -> NativeFile:
    name, options = shown(url), files.storage_options
    with open_file(url, options) as opened:
        said: dict[str, Any] = {"size_bytes": size_of(url, options)}
        if files.format in ("parquet", "arrow"):
            said |= _of_columns(files, opened, name)
        else:
            head = Head(opened, files.compression, name)
            said |= _of_lines(head, name) if files.format == "jsonl" else _of_csv(head, files, name)
            head.end_if_near()
    return NativeFile(url, number, **said)


# ---- text ------------------------------------------------------------------------------------------------


def _of_lines(head: Head, name: str) -> dict[str, Any]:
    """The keys of the first row."""
    text = head.until_line()
    if not text.strip():
        return {"is_empty": True, "keys": ()}
    marked = text.startswith(_BOM)
    line = text.removeprefix(_BOM).lstrip().partition(b"\n")[0]
    try:
        row = msgspec.json.decode(line.decode(), type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise FileError(
            f"file '{name}': its first line is no JSON object{near(line)}.\n"
            "  In JSON lines each line is a row. Is it another format, or a document that holds the rows?"
        ) from None
    return {"keys": tuple(row), "remark": "it begins with a byte order mark" if marked else None}


def _of_csv(head: Head, files: BatchFiles, name: str) -> dict[str, Any]:
    """The names of the columns, or the first row of a file without header, cut as whoever gets the file cuts it."""
    columns, has_names = files.columns, bool(files.format_options["header"])
    reader = CsvReader(
        _Text(head), reading_options(files.format_options).dialect, block_bytes=STEP_BYTES, most_row_bytes=MOST_BYTES
    )
    try:
        first = reader.first(may_be_blank=not has_names and (columns is None or len(columns) == 1))
        if first is None:
            if has_names:
                raise FormatError("it is empty, and should begin with a row of names. Has it none (header=False)?")
            return {"is_empty": True}
    except FormatError as error:
        raise FileError(f"file '{name}': {error}") from None
    fields = tuple(first)
    remark = "it begins with a byte order mark" if reader.is_marked else None
    said = {"line_end": reader.line_end(), "remark": remark}
    if has_names:
        _refuse_twice(fields, name)
        if not all(fields):
            raise FileError(f"file '{name}': a column has no name in the first line. Has it a header (header=False)?")
        reader.drop_first()
        return {**said, "columns": fields, "is_empty": reader.is_at_end()}
    if columns is not None:
        _by_place(fields, columns, name, files.format_options["delimiter"])
    return {**said, "first": fields}


def _by_place(fields: tuple[str, ...], columns: tuple[str, ...], name: str, delimiter: str) -> None:
    if len(fields) != len(columns):
        raise FileError(
            f"file '{name}': row 1 has {len(fields)} fields, where columns= names {len(columns)}.\n"
            f"  Is the delimiter {delimiter!r}?"
        )
    if fields == columns and len(columns) > 1:
        raise FileError(f"file '{name}': row 1 holds the names of the columns, so it has a header.\n  Say header=True.")


class _Text:
    """A file's text, as far as anybody wants to read it for its first row."""

    def __init__(self, head: Head) -> None:
        self._head, self._at = head, 0

    def read(self, size: int) -> bytes:
        """Some more; b"" at the end."""
        if self._at >= MOST_BYTES:
            raise FormatError(f"no row ends within its first {MOST_BYTES:,} bytes")
        if self._at == len(self._head.text) and not self._head.more():
            return b""
        given = self._head.text[self._at : self._at + size]
        self._at += len(given)
        return given


# ---- columns -----------------------------------------------------------------------------------------------


def _of_columns(files: BatchFiles, opened: Any, name: str) -> dict[str, Any]:
    """Schema and footer. A file that is packed as a whole, or can't be read from its end, says nothing yet: it is never
    passed on, and whoever reads it copies it first."""
    if files.compression is not None:
        return {"remark": f"it is packed as a whole ({files.compression}), which no reader of {files.format} expects"}
    require("pyarrow", extra="files", needed_for=_NEEDED)
    from burler.formats.columnar import check_head, read_footer

    try:
        if not opened.seekable():
            check_head(opened.read(HEAD_BYTES), files.format)
            return {"remark": "it can't be read from its end where it lies, so nobody knows its columns"}
        footer = read_footer(opened, files.format)
    except FormatError as error:
        cure = (
            "Was it written to its end? Where it is another format, say it: burler.batch_files(..., format='csv')."
            if error.kind == "format"
            else "Was it written to its end?"
        )
        raise FileError(f"file '{name}': {shown(str(error))}\n  {cure}") from None
    except OSError as error:
        raise FileError(f"file '{name}' can't be read: {shown(str(error))[:200]}.") from None
    names = tuple(footer.schema.names)
    _refuse_twice(names, name)
    return {"columns": names, "rows": footer.rows, "types": footer.schema, "codec": footer.codec}


def _refuse_twice(columns: Sequence[str], name: str) -> None:
    twice = next((column for i, column in enumerate(columns) if column in columns[:i]), None)
    if twice is not None:
        raise FileError(f"file '{name}': two columns are named {twice[:60]!r}, and a row has one field of a name.")


def shown_name(file: NativeFile) -> str:
    """A file as people may see it."""
    path = local_path(file.url)
    return shown(file.url if path is None else str(path))
