"""The rows of a BATCH message, whoever made it: as lines of JSON, as dicts, or as Arrow (BATCH
proposal).

An error names the message: the line it stood in (where known), its stream, and the file without what may be secret in
its URL. Rows before the place of the error have been given: whoever reads must not acknowledge anything behind the
message.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import starmap
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from burler import times
from burler.batch.allowed import Allowed
from burler.batch.message import AGAIN, batch_of, reading_options, with_keys
from burler.batch_config import CODECS
from burler.errors import BatchError, ConfigError, MessageError
from burler.extras import require
from burler.files.contents import named
from burler.formats.compression import Decompressed
from burler.formats.jsonl import json_lines
from burler.formats.names import HEAD_BYTES, kind_of
from burler.localfile import Cures
from burler.singer.messages import Batch, Schema, encode, parse_line
from burler.storage import location
from burler.storage.location import Words
from burler.storage.reading import open_file

if TYPE_CHECKING:
    import pyarrow as pa

    from burler.records.columns.from_json import ColumnarLayout

logger = logging.getLogger(__name__)

_WORDS = Words("a batch file's URL", "the storage options", "reading batch files", Cures(refused=""), wrong=ConfigError)
_CURES = {
    "quote": "Where quotes are letters like others, the message says 'quote_char': null.",
    "encoding": "Write the file in UTF-8.",
    "width": "Is it cut off there, or is the delimiter another one?",
    "names": "Is it a file of another stream? Has it a header, and does the message say so ('header')?",
    "delimiter": "Correct the message.",
    "strange": "Is it a file of another stream?",
    "format": "The message must say what its files are.",
    "cut": f"Was it written to its end before the message went out? {AGAIN}",
    "gone": f"Is it the path as this machine sees it, and was the file not cleaned away? {AGAIN}",
}
_exact_rows = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode_lines


class Page(NamedTuple):
    """Rows: complete lines, a JSON object on each and nothing around it."""

    lines: bytes
    count: int  # type: ignore[assignment]  # of rows; a tuple's own method of that name is of no use here


def read(
    message: Mapping[str, Any] | str | bytes | Batch,
    schema: Mapping[str, Any] | Schema | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    allow: Allowed | Iterable[str] | None = None,
    line: int | None = None,
    warn: Callable[[str], object] = logger.warning,
) -> BatchReading:
    """Read a BATCH message: ``burler.batch.read(message).pages()``, ``.rows()`` or ``.arrow(schema)``.

    Args:
        message: a dict, a line of JSON, or a ``Batch``.
        schema: the stream's JSON Schema. JSON lines need none; csv, Parquet and Arrow do: it says what the text of a
            cell is, and which columns there should be: one that is missing is an error where it is ``required`` (with
            a ``Schema`` also where it is of the key), else there is a warning. Rows of JSON lines pass unseen.
        options: for the library that reaches the files (credentials, an endpoint). They appear in no error. ``headers``
            among them go to one server: the first http(s) URL of ``allow``.
        allow: URLs or paths of folders: files are read below these alone, once links and redirects are followed. None:
            what the environment variable ``BURLER_ALLOW`` says; without it all but ``/proc``, ``/sys`` and ``/dev``,
            and servers on this machine or on link-local addresses.
        line: the number of the message's line, for errors.
        warn: gets a sentence for each oddity that loses nothing.

    Raises:
        BatchError: it is no BATCH message, or its two dialects contradict each other. No file has been looked at.
        ConfigError: an ``allow`` that can't be.
    """
    where = "" if line is None else f"line {line}: "
    try:
        batch = message if isinstance(message, Batch) else batch_of(_wire(message))
    except MessageError as error:
        raise BatchError(f"{where}{error}") from None
    plain = with_keys(schema.schema, schema.key_properties) if isinstance(schema, Schema) else schema
    return BatchReading(batch, plain, options or {}, Allowed.of(allow), where, warn)


@dataclass(eq=False, repr=False)
class BatchReading:
    """The rows of a BATCH; see ``read``. Each call of ``pages``, ``rows`` or ``arrow`` reads the files anew, a page in
    memory at a time."""

    batch: Batch
    schema: Mapping[str, Any] | None
    options: Mapping[str, Any]
    allowed: Allowed
    where: str
    warn: Callable[[str], object]
    _warned: set[str] = field(default_factory=set)

    def pages(self) -> Iterator[Page]:
        """Yield rows as ``(lines, count)``: complete lines, a JSON object in each; those of JSON lines as they stand in
        the file, byte for byte.

        Raises:
            BatchError: a file is missing, broken off, not of the format or compression that the message says, not of
                the schema, or not of the size that the message says.
        """
        for number in range(len(self.batch.manifest)):
            yield from self.file_pages(number)

    def file_pages(self, number: int) -> Iterator[Page]:
        """Yield the pages of one file of the manifest, counted from 0."""
        with self._opened(number) as raw:
            rows = 0
            for page in self._pages(raw):
                rows += page.count
                yield page
            self._check_rows(number, rows)

    def records(self, page: Page, received: dt.datetime | None = None) -> bytes:
        """A page as RECORD lines: what stands in a row stays as it is.

        Args:
            received: stands for the time of extraction where the message has none.
        """
        if not page.lines:
            return b""
        batch, moment = self.batch, self.batch.time_extracted or received
        prefix = b'{"type":"RECORD","stream":' + encode(batch.stream) + b',"record":'
        end = b"" if moment is None else f',"time_extracted":"{times.format_time(moment)}"'.encode()
        if batch.version is not None:
            end += b',"version":' + str(batch.version).encode()
        end += b"}\n"
        return prefix + page.lines[:-1].replace(b"\n", end + prefix) + end

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield rows as dicts; numbers with a point or an exponent as exact Decimals.

        Raises:
            BatchError: see ``pages``.
        """
        for page in self.pages():
            yield from _dicts(page.lines)

    def arrow(self, schema: Mapping[str, Any] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield RecordBatches in the columns that the stream's schema has in batch files.

        Args:
            schema: the stream's JSON Schema, if ``read`` was given none.

        Raises:
            BatchError: see ``pages``; or a value that its column can't hold.
        """
        schema = self.schema if schema is None else schema
        if schema is None:
            raise BatchError(
                f"{self.where}stream '{self.batch.stream}': columns need the stream's schema. "
                "Give it: burler.batch.read(message, schema)"
            )
        require("pyarrow", extra="batch", needed_for="columns of batch files")
        from burler.batch.column_readers import columnar_layout

        layout = columnar_layout(schema, self.batch.stream)
        for number in range(len(self.batch.manifest)):
            yield from self.file_columns(number, layout, schema)
        for remark in layout.remarks():
            self._warn_once(remark)

    def file_columns(
        self, number: int, layout: ColumnarLayout, schema: Mapping[str, Any] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file of the manifest, counted from 0, in the columns of a layout.

        Args:
            schema: that the layout is of; None: the one that ``read`` was given.

        Raises:
            BatchError: see ``arrow``.
        """
        from burler.batch.column_readers import columnar_batches, own_batches

        with self._opened(number) as raw:
            rows = 0
            if self.batch.format in CODECS:
                found = columnar_batches(raw, self.batch.format, schema or self.schema or {}, layout, self._warn_once)
            else:
                found = own_batches(layout, self._pages(raw))
            for batch in found:
                rows += batch.num_rows
                yield batch
            self._check_rows(number, rows)

    @contextlib.contextmanager
    def _opened(self, number: int) -> Iterator[IO[bytes]]:
        """A file, of the size that the message says. Errors from here on name the message and the file."""
        packed = f"packed with {self.batch.compression}" if self.batch.compression else "not packed"
        cures = {**_CURES, "other": f"The message says {self.batch.format}, {packed}: correct it."}
        with named(self._name(number), cures, wrong=BatchError, options=_WORDS.options):
            raw, there = open_file(self.batch.manifest[number], self.options, self.allowed, _WORDS)
            with raw:
                stated = there if self.batch.file_stats is None else self.batch.file_stats[number][1]
                if there not in (None, stated):
                    raise BatchError(
                        f"it has {there:,} bytes where the message says {stated:,}. It is broken off, or was replaced "
                        f"after the message. {AGAIN}"
                    )
                yield raw

    def _pages(self, raw: IO[bytes]) -> Iterator[Page]:
        """The rows of a file as they come: those before a broken one are given."""
        batch, schema = self.batch, self.schema
        if batch.format == "jsonl":
            return starmap(Page, json_lines(Decompressed(raw, self._packing(raw))))
        require("pyarrow", extra="batch", needed_for=f"reading a BATCH of format '{batch.format}'")
        from burler.batch.column_readers import columnar_pages, csv_pages

        if batch.format in CODECS:
            return starmap(Page, columnar_pages(raw, batch.format, schema, self._warn_once))
        try:
            options = reading_options(batch.format_options)
        except ValueError as error:
            raise BatchError(f"csv: {error}.") from None
        source = Decompressed(raw, self._packing(raw))
        return starmap(Page, csv_pages(source, options, schema, self._warn_once))

    def _packing(self, raw: IO[bytes]) -> str | None:
        """How a file is packed. Some taps pack their files and say that they do not: a text file never begins so."""
        if self.batch.compression is None and kind_of(cast(io.BufferedReader, raw).peek(HEAD_BYTES)) == "gzip":
            self._warn_once("files are packed with gzip, though the message says they are not; they are unpacked")
            return "gzip"
        return self.batch.compression

    def _check_rows(self, number: int, rows: int) -> None:
        batch = self.batch
        if batch.file_stats is not None and batch.file_stats[number][0] not in (None, rows):
            raise BatchError(
                f"it has {rows:,} rows where the message says {batch.file_stats[number][0]:,}. It is broken off, or "
                f"was replaced after the message. {AGAIN}"
            )
        if batch.size is not None and rows > batch.size:
            self._warn_once("a file has more rows than the 'size' of its message; all are read")
        if _is_counted_by_size(batch) and rows < cast(int, batch.size):
            self._warn_once("a file has fewer rows than the 'size' of its message: it may be cut off")

    def failure(self, number: int, fact: str) -> BatchError:
        """An error about a file of the manifest, counted from 0. ``fact``: what follows its name."""
        return BatchError(f"{self._name(number)}{fact}")

    def _name(self, number: int) -> str:
        return f"{self.where}stream '{self.batch.stream}': batch file '{_shown(self.batch.manifest[number])}'"

    def _warn_once(self, fact: str) -> None:
        if fact not in self._warned:
            self._warned.add(fact)
            self.warn(f"{self.where}stream '{self.batch.stream}': {fact}")


def uncounted(batch: Batch) -> tuple[str, ...]:
    """The files of a message of which nothing says how much they hold: plain text without ``file_stats``. Where such a
    file is cut off at a line end, nobody sees it."""
    tells = batch.format in CODECS or batch.compression or batch.file_stats or _is_counted_by_size(batch)
    return () if tells else tuple(map(_shown, batch.manifest))


def _shown(url: str) -> str:
    """A URL as people may see it: without what stands behind ``?`` in those of other machines, which may be a
    signature, and without passwords."""
    return location.shown(url.partition("?")[0] if "://" in url and not url.lower().startswith("file:") else url)


@dataclass(slots=True)
class Expanded:
    """What was done: lines that came in, BATCH messages among them, and RECORDs that were made of those.

    Attributes:
        uncounted: files of which nothing says how many rows they have, so that one may be cut off at a line end.
        first_uncounted: one of them.
    """

    lines: int = 0
    batches: int = 0
    records: int = 0
    uncounted: int = 0
    first_uncounted: str = ""

    def message_read(self, batch: Batch) -> None:
        """All files of a message were read."""
        self.batches += 1
        files = uncounted(batch)
        self.uncounted += len(files)
        self.first_uncounted = self.first_uncounted or next(iter(files), "")


def _is_counted_by_size(batch: Batch) -> bool:
    return batch.file_stats is None and batch.size is not None and len(batch.manifest) == 1


def _dicts(lines: bytes) -> list[dict[str, Any]]:
    try:
        return _exact_rows(lines)
    except (msgspec.DecodeError, ArithmeticError, RecursionError):  # half of a surrogate pair, as JSON allows it
        return [json.loads(line, parse_float=Decimal) for line in lines.split(b"\n") if line.strip()]


def _wire(message: Mapping[str, Any] | str | bytes) -> Mapping[str, Any]:
    wire = parse_line(message) if isinstance(message, str | bytes) else message
    if str(wire.get("type", "")).upper() != "BATCH":
        raise BatchError(f"a BATCH message was expected, not {str(wire.get('type'))[:40]}")
    return wire
