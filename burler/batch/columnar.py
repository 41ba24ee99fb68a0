"""Parquet and Arrow files of a BATCH on their way: rows become typed columns, exactly, or it is an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from burler.batch.encoders import Write
from burler.batch_config import Encoding
from burler.errors import BatchError, ConfigError, DataError
from burler.extras import require

if TYPE_CHECKING:
    import pyarrow as pa

    from burler.records.columns.from_json import ColumnarLayout

_CURE = ", or take another format: batch_config.encoding.format 'jsonl' holds any row"


def layout(encoding: Encoding, schema: Mapping[str, Any], stream: str) -> ColumnarLayout:
    """See ``encoders.layout_of``.

    Raises:
        ConfigError: a compression, or a level of it, that the installed pyarrow does not have.
    """
    _check_codec(encoding)
    return layout_of(schema, stream)


def layout_of(schema: Mapping[str, Any], stream: str) -> ColumnarLayout:
    """What makes columns of a stream's rows. pyarrow must be there.

    Raises:
        BatchError: the schema has no form in columns.
    """
    from burler.records.columns import from_json

    try:
        return from_json.layout_of(schema, stream, _CURE)
    except DataError as error:
        raise BatchError(f"{error}.\nCorrect the schema in the tap{_CURE}") from None


def open_file(encoding: Encoding, layout: ColumnarLayout, write: Write) -> ColumnarEncoder:
    """See ``encoders.open_encoder``."""
    return ColumnarEncoder(encoding, layout, write)


class ColumnarEncoder:
    """One Parquet or Arrow file. Rows become columns at once, so that a wrong one is an error of the call that brings
    it, and nothing of that call is taken."""

    def __init__(self, encoding: Encoding, layout: ColumnarLayout, write: Write) -> None:
        self._layout = layout
        from burler.formats.columnar import Writer

        level = encoding.compression_options.get("level")
        self._file = Writer(encoding.format, layout.arrow_schema, write, codec=encoding.codec, level=level)
        self.size_bytes = 0

    def rows(self, lines: bytes | bytearray | memoryview, count: int) -> None:
        """See ``Encoder.rows``. Each call has a cost of its own: many rows at a time are better."""
        for batch in self._layout.batches(lines, count):
            self._file.add(batch)
        self.size_bytes += len(lines)

    def table(self, batch: pa.RecordBatch) -> None:
        """See ``Encoder.table``."""
        self._file.add(batch)
        self.size_bytes += batch.nbytes

    def finish(self) -> None:
        """See ``Encoder.finish``."""
        self._file.finish()

    def abandon(self) -> None:
        """See ``Encoder.abandon``."""
        self._file.abandon()


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
