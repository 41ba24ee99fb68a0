"""What writes the rows of one file: the interface, and which module has it for which format."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from burler.batch_config import Encoding
from burler.errors import ConfigError
from burler.formats import FormatError
from burler.formats.compression import Compressor, compressor

_MODULES = {"jsonl": "jsonl", "csv": "csv_write", "parquet": "columnar", "arrow": "columnar"}

Write = Callable[[bytes | bytearray | memoryview], object]
"""Takes the bytes of a file, in order. They may be kept, and are never changed afterwards."""


class Layout(Protocol):
    """What a format makes of a stream's schema: once for each SCHEMA, kept from file to file."""

    def remarks(self) -> list[str]:
        """One sentence for each thing that could not be kept (fields without a column, digits that were cut), since it
        was asked last."""


class Encoder(Protocol):
    """One file on its way."""

    @property
    def size_bytes(self) -> int:
        """How much came in, uncompressed."""

    def rows(self, lines: bytes | bytearray | memoryview, count: int) -> None:
        """Take rows: one JSON object a line, nothing around it. The buffer is free once this returns.

        Raises:
            BatchError: a value that its column can't hold; then none of these rows was taken, and the file goes on with
                others. StorageError: what ``write`` raises.
        """

    def table(self, batch: Any) -> None:
        """Take a RecordBatch with exactly the columns of the layout; formats of columns only."""

    def finish(self) -> None:
        """The end of the file: the rest goes to ``write``."""

    def abandon(self) -> None:
        """The file is given up; nothing more is written."""


def layout_of(encoding: Encoding, schema: Mapping[str, Any], stream: str) -> Layout:
    """The layout of a stream's files.

    Raises:
        BatchError: a schema that the format has no form for. MissingExtra: a package is missing.
    """
    return cast(Layout, _module(encoding).layout(encoding, schema, stream))


def open_encoder(encoding: Encoding, layout: Layout, write: Write) -> Encoder:
    """Begin a file."""
    return cast(Encoder, _module(encoding).open_file(encoding, layout, write))


def packer(encoding: Encoding) -> Compressor:
    """What compresses one file as a whole.

    Raises:
        ConfigError: a level that the compression does not have. MissingExtra: a package is missing.
    """
    try:
        return compressor(encoding.packing, encoding.compression_options.get("level"))
    except FormatError as error:
        raise ConfigError(f"batch_config.encoding.compression_options.{error}") from None


def prepare(encoding: Encoding) -> None:
    """Import what the encoding needs, and try it: what is wrong with it shows before the first message.

    Raises:
        MissingExtra: a package is missing. ConfigError: options that can't be.
    """
    schema = {"properties": {"a": {"type": "string"}}}
    open_encoder(encoding, layout_of(encoding, schema, ""), lambda _data: None).abandon()


def _module(encoding: Encoding) -> Any:
    return importlib.import_module(f"burler.batch.{_MODULES[encoding.format]}")
