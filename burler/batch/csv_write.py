"""CSV files of a BATCH: rows as text in columns, which databases load as they are (BATCH proposal)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import msgspec

from burler.batch.csv_columns import columns_of
from burler.batch.csv_options import CsvOptions, writing_options
from burler.batch.encoders import Write, packer
from burler.batch_config import Encoding
from burler.errors import BatchError, ConfigError
from burler.formats.csv import Column
from burler.formats.csv_write import NOTHING, Cells, CsvText, Misfit
from burler.formats.jsonl import veil
from burler.log_settings import near, value

_PART_BYTES = 1 << 16
_rows_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode_lines
_row_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class CsvLayout:
    """The columns of a stream's files, and what of its rows has none."""

    def __init__(self, options: CsvOptions, schema: Mapping[str, Any], stream: str) -> None:
        self.options = options
        self.stream = stream
        self.columns = columns_of(schema)
        if not self.columns:
            raise BatchError(
                f"stream '{stream}': its schema declares no properties, so there are no columns for csv.\n"
                "  Declare them, or take the format jsonl."
            )
        self.names = {column.name for column in self.columns}
        self.typed = _typed_decoder(self.columns)
        self.text = CsvText(options.dialect)
        self._dropped: Counter[str] = Counter()

    def drop(self, names: Counter[str]) -> None:
        """Note fields that the schema does not declare."""
        self._dropped += names

    def remarks(self) -> list[str]:
        """See ``Layout.remarks``."""
        given = [
            f"field '{name}' is not in the schema and has no column: left out of {count:,} "
            f"{'row' if count == 1 else 'rows'}. Declare it in the tap, or take the format jsonl"
            for name, count in sorted(self._dropped.items())
        ]
        self._dropped.clear()
        return given

    def header(self) -> bytes:
        """The row of names, in quotes where they need them."""
        return self.text.header([column.name for column in self.columns])


def layout(encoding: Encoding, schema: Mapping[str, Any], stream: str) -> CsvLayout:
    """See ``encoders.layout_of``.

    Raises:
        ConfigError: options that can't be.
        BatchError: a schema without fields.
    """
    try:
        options = writing_options(encoding.format_options)
    except ValueError as error:
        raise ConfigError(f"batch_config.encoding.format_options: {error}.") from None
    return CsvLayout(options, schema, stream)


def open_file(encoding: Encoding, layout: CsvLayout, write: Write) -> CsvEncoder:
    """See ``encoders.open_encoder``."""
    return CsvEncoder(encoding, layout, write)


class CsvEncoder:
    """One CSV file."""

    def __init__(self, encoding: Encoding, layout: CsvLayout, write: Write) -> None:
        self._layout = layout
        self._packer = packer(encoding)
        self._write = write
        self._header = layout.header() if layout.options.header else b""
        self.size_bytes = 0

    def rows(self, lines: bytes | bytearray | memoryview, count: int) -> None:
        """See ``Encoder.rows``."""
        dropped: Counter[str] = Counter()
        taken, made = 0, []
        for part in _parts(bytes(lines)):
            rows, text = self._encoded(part, dropped)
            taken += rows
            made.append(text)
        if taken != count:
            raise BatchError(f"stream '{self._layout.stream}': {taken:,} rows came where {count:,} were announced")
        self._layout.drop(dropped)
        self.size_bytes += len(lines)
        self._pack(b"".join(made))

    def table(self, batch: Any) -> None:
        """CSV takes no columns."""
        raise NotImplementedError

    def finish(self) -> None:
        """See ``Encoder.finish``."""
        self._pack(b"")
        rest = self._packer.flush()
        if rest:
            self._write(rest)

    def abandon(self) -> None:
        """Nothing is held."""

    def _pack(self, data: bytes) -> None:
        ready = self._packer.compress(self._header + data)
        self._header = b""
        if ready:
            self._write(ready)

    def _encoded(self, lines: bytes, dropped: Counter[str]) -> tuple[int, bytes]:
        """How many rows there are, and their text."""
        layout = self._layout
        count, values, veiled = _columns(lines, layout, dropped)
        try:
            return count, layout.text.rows(layout.columns, values, veiled=veiled)
        except Misfit as misfit:
            raise BatchError(
                f"stream '{layout.stream}': field '{misfit.column.name}': {value(f'{misfit.value!r:.80}')} can't stand "
                f"in its csv column: {misfit.fact}.\n  Correct the schema, or take the format jsonl."
            ) from None


def _parts(lines: bytes) -> Iterator[bytes]:
    """Lines in parts, so that few values are in memory at once."""
    at = 0
    while at < len(lines):
        end = lines.rfind(b"\n", at, at + _PART_BYTES) + 1 or lines.find(b"\n", at) + 1 or len(lines)
        yield lines[at:end]
        at = end


def _columns(lines: bytes, layout: CsvLayout, dropped: Counter[str]) -> tuple[int, list[Cells], bool]:
    """The number of rows, each column's values, and whether half surrogate pairs in them are veiled."""
    if layout.typed is not None:
        try:
            rows = layout.typed.decode_lines(lines)
        except (msgspec.DecodeError, RecursionError):  # a field that is not declared, or what follows below
            pass
        else:
            return (
                len(rows),
                list(zip(*map(msgspec.structs.astuple, rows), strict=True)) or [()] * len(layout.columns),
                False,
            )
    found, veiled = _decoded(lines, layout.stream)
    if not layout.names.issuperset(chain.from_iterable(found)):
        dropped.update(name for row in found for name in row if name not in layout.names)
    return len(found), [[row.get(column.name, NOTHING) for row in found] for column in layout.columns], veiled


def _decoded(lines: bytes, stream: str) -> tuple[list[dict[str, Any]], bool]:
    try:
        return _rows_of(lines), False
    except (msgspec.DecodeError, RecursionError):
        pass
    found = []
    for line in filter(None, lines.split(b"\n")):
        try:
            found.append(_row_of(veil(line) or line))
        except (msgspec.DecodeError, RecursionError) as error:
            raise BatchError(
                f"stream '{stream}': a row can't be read ({error}){near(line)}.\n"
                "  It is no JSON object, or nested too deeply for csv; the format jsonl takes rows as they are."
            ) from None
    return found, True


def _typed_decoder(columns: tuple[Column, ...]) -> Any:
    """A decoder to objects that have the columns' values in order, which is faster than one to dicts, and stops at
    fields that are no columns; None where a name is not to be had in one."""
    names = {f"f{place}": column.name for place, column in enumerate(columns)}
    fields = [(field, msgspec.Raw, NOTHING) for field in names]
    try:
        row = msgspec.defstruct("Row", fields, rename=names, forbid_unknown_fields=True, gc=False)
    except ValueError:  # quotes, backslashes and control characters
        return None
    return msgspec.json.Decoder(row)
