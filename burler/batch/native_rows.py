"""The rows of a source's files as pages, where they are not passed on as they are."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, cast

import msgspec

from burler.batch.native import BatchFiles
from burler.batch.native_checks import NativeFile, checked, shown_name
from burler.batch.native_head import open_file
from burler.context import StreamRun
from burler.errors import BatchError, FileError
from burler.files.columnar_pages import columnar_batches
from burler.files.csv_pages import Table
from burler.files.json_pages import json_line_pages
from burler.files.pages import table_of
from burler.files.store_errors import named
from burler.formats.compression import Decompressed
from burler.pipeline.pages import JsonPage
from burler.singer.messages import Batch
from burler.storage.location import local_path

_MOST_LINE_BYTES = 1 << 28
_MOST_UNPACKED_BYTES = 1 << 36
_TEXT = {"type": ["null", "string"]}


class Rows:
    """An iterator of the pages of some files, one file after the other.

    Args:
        run: the stream whose rows they are; None: of no stream that runs here.
        checked_files: what ``checked`` gave; None: they are looked at when the first page is asked for.
    """

    def __init__(
        self, files: BatchFiles, run: StreamRun | None, checked_files: Sequence[NativeFile] | None = None
    ) -> None:
        self._files, self._run = files, run
        self._checked = checked_files
        self._warned: set[str] = set()
        self._pages = self._of_all()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._pages)

    def close(self) -> None:
        """No more pages are wanted. What was temporary goes: the next run has it made anew."""
        self._pages.close()
        if self._files.temporary:
            for url in self._files.urls:
                _remove(url)

    def _of_all(self) -> Generator[Any, None, None]:
        files, run = self._files, self._run
        table = dataclasses.replace(
            table_of(run), delimiter_option="delimiter={!r}", header_option="header=False, columns=[...]"
        )
        for file in checked(files) if self._checked is None else self._checked:
            if not file.is_empty:
                if run is not None:
                    run.tally.add("files")
                    run.tally.add("bytes", count=file.size_bytes or 0)
                with contextlib.closing(_pages(files, file, table, self._warned)) as pages:
                    yield from pages
            if files.temporary:
                _remove(file.url)
        if run is not None and run.manual and files.bookmark is not msgspec.UNSET:
            run.save_bookmark(files.bookmark)


def _remove(url: str) -> None:
    path = local_path(url)
    if path is not None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _pages(files: BatchFiles, file: NativeFile, table: Table, warned: set[str]) -> Generator[Any, None, None]:
    """The pages of one file.

    Raises:
        FileError: it is broken; rows before the place were given.
    """
    name = shown_name(file)
    raw = open_file(file.url, files.storage_options)
    is_columns = files.format in ("parquet", "arrow")
    if is_columns and files.compression is None and getattr(raw, "seekable", lambda: False)():
        with raw:
            yield from columnar_batches(raw, files.format, name, table, warned)
        return
    with named(name), Decompressed(raw, files.compression, limit_bytes=_MOST_UNPACKED_BYTES) as opened:
        if is_columns:
            yield from columnar_batches(opened, files.format, name, table, warned)
        elif files.format == "csv":
            yield from _csv(files, file, opened, table, name)
        else:
            yield from json_line_pages(opened, name, max_line_bytes=_MOST_LINE_BYTES)


def _csv(files: BatchFiles, file: NativeFile, opened: Decompressed, table: Table, name: str) -> Iterator[JsonPage]:
    """Read as whoever gets the file in a BATCH message reads it, so that the rows are the same on both ways."""
    from burler.batch.decoders import decode

    columns = file.columns or files.columns
    if columns is None:
        columns = tuple(table.schema.get("properties") or ())
    table.check(list(columns), name, files.format_options["delimiter"])
    fields: Mapping[str, Any] = table.schema.get("properties") or {}
    schema = {"type": "object", "properties": {column: fields.get(column, _TEXT) for column in columns}}
    options = {**files.format_options, "line_end": file.line_end}
    message = Batch("", (file.url,), "csv", None, options)
    try:
        for page in decode(cast(BinaryIO, opened), message, schema, are_shaped=True):
            yield JsonPage(bytes(page.lines), ())
    except BatchError as error:
        raise FileError(f"file '{name}': {error}") from None
