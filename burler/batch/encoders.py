"""What a stream's rows become in its batch files: JSON lines, CSV, Parquet, Arrow; compressed as a whole or inside.

Rows become text or typed columns exactly, or it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from burler.batch.message import writing_options
from burler.batch_config import Encoding
from burler.errors import BatchError, ConfigError, DataError
from burler.extras import require
from burler.formats import FormatError
from burler.formats.compression import compressor
from burler.records.columns.from_csv import columns_of
from burler.records.columns.to_csv import CsvLayout
from burler.singer.messages import Schema

if TYPE_CHECKING:
    from burler.formats.columnar import Writer
    from burler.records.columns.from_json import ColumnarLayout

Write = Callable[[bytes | bytearray | memoryview], object]
"""Takes the bytes of a file, in order. They may be kept, and are never changed afterwards."""

_OTHER_FORMAT = ", or take another format: batch_config.encoding.format 'jsonl' holds any row"


class Layout:
    """What a format makes of a stream's schema: once for each SCHEMA, kept from file to file.

    Attributes:
        encoding: of the files.
        keys: the key of the rows.
        arrow_schema: their columns; None for formats of text.
        parts: makes of rows (one JSON object a line, nothing around it) and their number what a file takes. A
            ``BatchError`` is a value that its column can't hold; then none of these rows is taken.
        remarks: one sentence for each thing that could not be kept (fields without a column, digits that were cut),
            since it was asked last.

    Raises:
        BatchError: a schema that the format has no form for. ConfigError: options that can't be. MissingExtra: a
            package is missing.
    """

    parts: Callable[[bytes | bytearray | memoryview, int], Iterable[Any]]
    remarks: Callable[[], list[str]]

    def __init__(self, encoding: Encoding, message: Schema) -> None:
        self.encoding, self.keys = encoding, message.key_properties
        schema, stream = message.schema, message.stream
        self.arrow_schema: Any = None
        self._header, self._level = b"", encoding.compression_options.get("level")
        try:
            compressor(encoding.packing, self._level)
        except FormatError as error:
            raise ConfigError(f"batch_config.encoding.compression_options.{error}") from None
        if encoding.is_columnar:
            _check_codec(encoding)
            columns = columnar_layout(schema, stream)
            self.arrow_schema, self.parts, self.remarks = columns.arrow_schema, columns.batches, columns.remarks
        elif encoding.format == "csv":
            csv = self._csv(schema, stream)
            self.parts, self.remarks = lambda lines, count: (csv.text(lines, count),), csv.remarks
        else:  # each row as it came: the proposal's default, which every target of BATCH reads
            self.parts, self.remarks = lambda lines, _count: (lines,), list

    def begin(self, write: Write) -> Writer | None:
        """Begin a file; gives what takes the batches of ``parts``, and any other batch of its columns; None where parts
        are text, for ``write`` itself."""
        if self.encoding.is_columnar:
            from burler.formats.columnar import Writer

            return Writer(self.encoding.format, self.arrow_schema, write, codec=self.encoding.codec, level=self._level)
        write(self._header)
        return None

    def _csv(self, schema: Mapping[str, Any], stream: str) -> CsvLayout:
        try:
            options = writing_options(self.encoding.format_options)
        except ValueError as error:
            raise ConfigError(f"batch_config.encoding.format_options: {error}.") from None
        columns = columns_of(schema)
        if not columns:
            raise BatchError(
                f"stream '{stream}': its schema declares no properties, so there are no columns for csv.\n"
                "  Declare them, or take the format jsonl."
            )
        made = CsvLayout(columns, options.dialect, stream)
        self._header = made.header if options.header else b""
        return made


def prepare(encoding: Encoding) -> None:
    """Import what the encoding needs, and try it: what is wrong with it shows before the first message.

    Raises:
        MissingExtra: a package is missing. ConfigError: options that can't be.
    """
    Layout(encoding, Schema("", {"properties": {"a": {"type": "string"}}}))


def columnar_layout(schema: Mapping[str, Any], stream: str) -> ColumnarLayout:
    """What makes columns of a stream's rows. pyarrow must be there.

    Raises:
        BatchError: the schema has no form in columns.
    """
    from burler.records.columns import from_json

    try:
        return from_json.layout_of(schema, stream, _OTHER_FORMAT)
    except DataError as error:
        raise BatchError(f"{error}.\nCorrect the schema in the tap{_OTHER_FORMAT}") from None


def _check_codec(encoding: Encoding) -> None:
    """Refuse what would only fail once the first rows are written."""
    arrow = require("pyarrow", extra="batch", needed_for=f"batch_config.encoding.format '{encoding.format}'")
    codec, level = encoding.codec, encoding.compression_options.get("level")
    if codec is None:
        return
    place = "batch_config.encoding.compression"
    if not arrow.Codec.is_available(codec):
        raise ConfigError(f"{place} '{codec}': this pyarrow was built without it. Take another, for example 'zstd'")
    if level is None:
        return
    if not arrow.Codec.supports_compression_level(codec):
        raise ConfigError(f"{place}_options.level {level}: '{codec}' has no levels. Remove it")
    least, most = arrow.Codec.minimum_compression_level(codec), arrow.Codec.maximum_compression_level(codec)
    if not least <= level <= most:
        raise ConfigError(f"{place}_options.level {level}: levels of '{codec}' go from {least} to {most}")
