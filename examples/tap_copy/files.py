"""The bytes of a COPY, straight into files: whole, durable, under their final names; or not there at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from burler.batch.batch_file import file_name
from burler.batch.packing import packer
from burler.batch.storage import open_storage
from burler.batch_config import BatchStorage

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
        self._storage = open_storage(BatchStorage(root=folder))
        self._tap, self._stream, self._run_id = tap, stream, secrets.token_hex(6)
        self._compression = None if compression == "none" else compression
        self._most_bytes = most_bytes
        self._number = 0

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
        ending = "csv.gz" if self._compression else "csv"
        self._number += 1
        new = self._storage.new_file(file_name(self._tap, self._stream, self._run_id, self._number, ending))
        try:
            count = self._write(new, header, first, source)
            return Made(new.publish(), count)
        except BaseException:
            new.discard()
            raise

    def _write(self, new: Any, header: bytes, first: Any, source: Iterator[Any]) -> int:
        packing = packer(self._compression, {})
        block: list[Any] = [header]
        count, size, total = -1, 0, 0  # the header is no row
        for row in chain((first,), source):
            block.append(row)
            size += len(row)
            if size >= _BLOCK_BYTES:
                new.write(packing.compress(b"".join(block)))
                count, total, size = count + len(block), total + size, 0
                block.clear()
                if total >= self._most_bytes:
                    break
        new.write(packing.compress(b"".join(block)))
        new.write(packing.flush())
        return count + len(block)
