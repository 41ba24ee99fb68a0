"""From converted rows to lines: the same bytes before and after each row, the row in between, all in C."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from burler.singer.messages import Vouched

_encoder = msgspec.json.Encoder(decimal_format="number")

SPILL_BYTES = 56 * 1024  # what a pipe holds, nearly
_CHUNK_BYTES = 32 * 1024  # as much as is encoded at once: it stays in the cache, and in memory that was used before
_MOST_ROWS = 256
FIRST_ROWS = 16


class Output:
    """Where lines go: a buffer, and what stands before and after each row. Here they stay in it.

    A buffer that grows to a whole page is memory that was not used before, which costs more than to write the page in
    parts: whoever hands lines on says from how many bytes on (``most_bytes``), and how (``flush``).

    Args:
        prefix, suffix: the suffix ends the line.

    Attributes:
        count: lines in the buffer. vouched: what is known of all rows in it.
    """

    __slots__ = ("_rows", "buffer", "count", "most_bytes", "prefix", "suffix", "vouched")

    def __init__(self, buffer: bytearray, prefix: bytes, suffix: bytes) -> None:
        self.buffer = buffer
        self.prefix = prefix
        self.suffix = suffix
        self.count = 0
        self.vouched: Vouched | None = None
        self.most_bytes = sys.maxsize
        self._rows = FIRST_ROWS

    def append(
        self,
        rows: list[Any],
        further: Mapping[int, Mapping[str, Any]] | None = None,
        vouched: Vouched | None = None,
    ) -> int:
        """Append rows; how many have become lines: all, or those before a chunk that holds a value without a form in
        JSON.

        Args:
            further: more fields of some rows, by their places in ``rows``.
            vouched: what is known of the rows.
        """
        self.vouched = None if self.count else vouched  # of rows of several pages nothing is said
        done, size = 0, 1 if further else self._rows
        while done < len(rows):
            begun = len(self.buffer)
            chunk = rows[done : done + size] if done or size < len(rows) else rows
            try:
                self._encode(chunk, further.get(done) if further else None)
            except (TypeError, ValueError, RecursionError):
                del self.buffer[begun:]
                return done
            done += len(chunk)
            self.count += len(chunk)
            written = len(self.buffer) - begun
            if not further:
                size = self._rows = max(1, min(_MOST_ROWS, _CHUNK_BYTES * len(chunk) // max(1, written)))
            if len(self.buffer) >= self.most_bytes:
                self.flush()
        return done

    def flush(self) -> None:
        """Hand on what is in the buffer, where somebody takes it."""

    def pass_on(self, lines: bytes, count: int) -> None:
        """Take lines that were made elsewhere."""
        self.vouched = None
        self.buffer += lines
        self.count += count

    def _encode(self, rows: list[Any], further: Mapping[str, Any] | None) -> None:
        buffer, prefix = self.buffer, self.prefix
        buffer += prefix
        if len(rows) == 1:
            _encoder.encode_into(rows[0], buffer, -1)
            if further:
                _splice(further, buffer)
            buffer += self.suffix
            return
        lines = _encoder.encode_lines(rows)
        if not prefix and self.suffix == b"\n":
            buffer += lines
            return
        # Text in JSON holds no line end, so that each one here stands behind a row.
        buffer += lines.replace(b"\n", self.suffix + prefix)
        if prefix:
            del buffer[-len(prefix) :]


def _splice(fields: Mapping[str, Any], buffer: bytearray) -> None:
    """Put more fields into the object that the buffer ends with."""
    empty = buffer.endswith(b"{}")
    del buffer[-1:]
    if not empty:
        buffer += b","
    buffer += _encoder.encode(fields)[1:]
