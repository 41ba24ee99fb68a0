"""The bytes of a COPY, straight into files: whole, durable, under their final names; or not there at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from burler.batch import ExportFiles

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Made:
    """A file that is there. ``rows``: how many, without the header."""

    url: str
    rows: int


class Exports:
    """Makes files of one stream.

    Args:
        folder: where they go: a folder, or a URL of a store.
        compression: "none" or "gzip".
        most_bytes: a file that has so many, unpacked, is followed by another one.
    """

    def __init__(self, folder: str, tap: str, stream: str, *, compression: str, most_bytes: int) -> None:
        self._files = ExportFiles(folder, tap=tap, stream=stream, format="csv", compression=compression)
        self._most_bytes = most_bytes

    def files(self, rows: Iterable[Any]) -> Iterator[Made]:
        """Write rows as they come, each of them whole (COPY sends them so), and give each file once it is whole.

        Args:
            rows: bytes; the first of them is the header, which each file gets. Without rows there is no file.

        Raises:
            StorageError: the disk is full, or the place gone. The file that was being written is gone, too.
        """
        source = iter(rows)
        header = bytes(next(source, b""))
        for first in source:
            yield self._file(header, first, source)

    def _file(self, header: bytes, first: Any, source: Iterator[Any]) -> Made:
        with self._files.new() as file:
            count = self._write(file, header, first, source)
        return Made(file.url, count)

    def _write(self, file: Any, header: bytes, first: Any, source: Iterator[Any]) -> int:
        block: list[Any] = [header]
        count, size, total = -1, 0, 0  # the header is no row
        for row in chain((first,), source):
            block.append(row)
            size += len(row)
            if size >= _BLOCK_BYTES:
                file.write(b"".join(block))
                count, total, size = count + len(block), total + size, 0
                block.clear()
                if total >= self._most_bytes:
                    break
        file.write(b"".join(block))
        return count + len(block)
