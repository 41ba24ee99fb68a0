"""Columns on request that say where a row comes from: ``_file``, ``_row``, ``_modified``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from burler.errors import DeclarationError, FileError
from burler.pages import JsonPage
from burler.storage.find import File

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMAS: dict[str, dict[str, Any]] = {
    "_file": {"type": "string"},
    "_row": {"type": "integer"},
    "_modified": {"type": ["null", "string"], "format": "date-time"},
}
"""The columns there are, and the schema of each: the file's name (of a zip: with the member's behind it), the number of
the row in its file, from 1, and when the file was changed last."""

_encode = msgspec.json.Encoder().encode
_rows_of_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_rows_of_lines = msgspec.json.Decoder(msgspec.Raw).decode_lines


def check_added(names: Iterable[str]) -> tuple[str, ...]:
    """The columns to add, each once.

    Raises:
        DeclarationError: a name that is none of ``SCHEMAS``.
    """
    chosen = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in SCHEMAS:
            raise DeclarationError(f"burler.files: add={name!r}: there is no such column. Known: {', '.join(SCHEMAS)}.")
    return chosen


class Adder:
    """Adds columns to the pages of one file; counts its rows.

    Args:
        label: the file's name as rows show it.
    """

    def __init__(self, names: tuple[str, ...], file: File, label: str) -> None:
        self._names, self._label = names, label
        self._modified = file.modified_at
        self._row = 0

    def page(self, page: Any) -> Any:
        """A page with the columns.

        Raises:
            FileError: an Arrow page that has such a column, a JSON page with something that is no JSON.
        """
        if not self._names:
            return page
        return self._json(page) if isinstance(page, JsonPage) else self._arrow(page)

    def _arrow(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        count = batch.num_rows
        for name in self._names:
            if name in batch.schema.names:
                raise FileError(
                    f"file '{self._label}' has a column '{name}' of its own: leave '{name}' out of add=(...)."
                )
            if name == "_row":
                column = pa.array(range(self._row + 1, self._row + count + 1), pa.int64())
            elif name == "_file":
                column = pa.repeat(pa.scalar(self._label, pa.string()), count)
            else:
                column = pa.repeat(pa.scalar(self._modified, pa.timestamp("us", "UTC")), count)
            batch = _with_column(batch, name, column)
        self._row += count
        return batch

    def _json(self, page: JsonPage) -> JsonPage:
        fixed = {"_file": self._label, "_modified": self._modified}
        begin = b"{" + b"".join(
            _encode(name) + b":" + _encode(fixed[name]) + b"," for name in self._names if name in fixed
        )
        numbered = "_row" in self._names
        parts = []
        for row in self._rows(page):
            self._row += 1
            number = b'"_row":%d,' % self._row if numbered else b""
            inside = bytes(row).lstrip()[1:]
            added = begin + number
            parts.append((added[:-1] if inside.lstrip()[:1] == b"}" else added) + inside)
        return JsonPage(b"[" + b",".join(parts) + b"]", ())

    def _rows(self, page: JsonPage) -> list[Any]:
        data: Any = page.data
        try:
            if not page.records_path and data.lstrip()[:1] == b"{":
                try:
                    return _rows_of_lines(data)
                except msgspec.DecodeError:
                    return [msgspec.json.decode(data, type=msgspec.Raw)]  # one object over several lines
            for name in page.records_path or ():
                data = msgspec.json.decode(data, type=dict[str, msgspec.Raw])[name]
            return [] if bytes(data).strip() == b"null" else _rows_of_list(data)
        except msgspec.DecodeError as error:
            raise FileError(
                f"file '{self._label}' holds something that is no JSON ({error}): leave add=(...) out to read it."
            ) from None


def _with_column(batch: pa.RecordBatch, name: str, column: Any) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([*batch.columns, column], names=[*batch.schema.names, name])
