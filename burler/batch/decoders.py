"""Text files of a BATCH, JSON lines and csv, as pages of rows: lines of JSON."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import starmap
from typing import Any, BinaryIO, NamedTuple

from burler.batch.csv_options import CsvOptions, reading_options
from burler.errors import BatchError
from burler.formats import FormatError
from burler.formats.compression import Decompressed
from burler.formats.jsonl import json_lines
from burler.singer.messages import Batch

_log = logging.getLogger(__name__)


class Page(NamedTuple):
    """Rows: complete lines, a JSON object on each and nothing around it."""

    lines: bytes
    count: int  # type: ignore[assignment]  # of rows; a tuple's own method of that name is of no use here


def decode(
    raw: BinaryIO,
    batch: Batch,
    schema: Mapping[str, Any] | None,
    *,
    report: Callable[[str], object] | None = None,
    are_shaped: bool = False,
) -> Iterator[Page]:
    """Yield the rows of one file, in pages of about a MiB, as they come: rows before a broken one are given.

    JSON lines come byte for byte as they stand in the file. csv gives each row all fields that the schema declares,
    null for those without a value.

    Args:
        raw: the file as it is stored, open for reading. Who opened it closes it.
        batch: the message: format, compression, options.
        schema: the stream's JSON Schema. JSON lines need none, csv without one is all text.
        report: takes a sentence on what was left out; None: it is logged.
        are_shaped: whoever gets the rows holds their values against the schema: csv leaves that to him.

    Raises:
        BatchError: the file is not what the message says, or broken; says which row. The caller adds stream and URL.
        MissingExtra: a package for the format is missing.
    """
    if batch.format not in ("jsonl", "csv"):
        raise BatchError(f"format '{batch.format:.60}' is unknown. Known: jsonl, csv, parquet, arrow.")
    try:
        source = Decompressed(raw, batch.compression)
        if batch.format == "jsonl":
            yield from starmap(Page, json_lines(source))
            return
        from burler.batch import csv_read

        options = csv_options(batch.format_options)
        for lines, count in csv_read.pages(source, options, schema, report or _log.warning, are_shaped=are_shaped):
            yield Page(lines, count)
    except FormatError as error:
        raise batch_error(error, batch) from None


_CURES = {
    "quote": "Where quotes are letters like others, the message says 'quote_char': null.",
    "encoding": "Write the file in UTF-8.",
    "width": "Is it cut off there, or is the delimiter another one?",
}


def batch_error(error: FormatError, batch: Batch) -> BatchError:
    """What is wrong with the bytes of a file, with what to do about it."""
    if error.kind == "other":
        packed = f"packed with {batch.compression}" if batch.compression else "not packed"
        return BatchError(f"{error.fact}, and the message says {batch.format}, {packed}. Correct the message.")
    cure = _CURES.get(error.kind)
    return BatchError(f"{error} {cure}" if cure else str(error))


def csv_options(given: Mapping[str, Any]) -> CsvOptions:
    """The options of a message, as they are understood.

    Raises:
        BatchError: options that can't be.
    """
    try:
        return reading_options(given)
    except ValueError as error:
        raise BatchError(f"csv: {error}.") from None
