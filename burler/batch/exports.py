"""Files that an author writes himself: whole and durable under their names, or not there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from burler.batch.encoders import PackedText
from burler.batch.names import drawn, file_name
from burler.batch.storage import NewBatchFile, open_storage
from burler.batch_config import FORMATS, PACKINGS, BatchStorage, Encoding
from burler.errors import DeclarationError
from burler.formats.names import COMPRESSIONS, ending


class ExportFile:
    """A file on its way. ``url``: where it is, once it is whole; empty before."""

    def __init__(self, new_file: NewBatchFile, compression: str | None) -> None:
        self._text = PackedText(new_file.write, compression)
        self._publish = new_file.publish
        self.url = ""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes; they are packed here, if they are to be.

        Raises:
            StorageError: the place is full, or gone.
        """
        self._text.add(data)

    def _end(self) -> None:
        self._text.finish()
        self.url = self._publish()


class ExportFiles:
    """Makes files of one stream that are whole and durable under their names, or not there at all, also after a kill;
    for ``burler.batch_files``::

        files = burler.batch.ExportFiles("exports", tap="tap-shop", stream="orders", format="csv", compression="gzip")
        with files.new() as file:
            for block in copy:
                file.write(block)
        yield burler.batch_files(file.url)

    Args:
        root: a folder, or the URL of one in a store.
        tap, stream: stand in the files' names, so that ``burler batch clean`` knows them.
        format: one of jsonl, csv, parquet, arrow; what you write is yours to make.
        compression: None or "none", "gzip", "zstd": what is written is packed so.
        storage_options: what the library of a remote store is given.

    Raises:
        DeclarationError: an unknown format or compression. ConfigError, UsageError, StorageError: a place that can't
        be.
    """

    def __init__(
        self,
        root: str,
        *,
        tap: str,
        stream: str,
        format: str = "csv",
        compression: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        packing = COMPRESSIONS.get(compression or "", compression)
        if format not in FORMATS or (packing or "none") not in PACKINGS:
            raise DeclarationError(
                f"burler.batch.ExportFiles: format={format!r}, compression={compression!r} is unknown. Known: "
                f"{', '.join(FORMATS)}; {', '.join(PACKINGS)}."
            )
        packing = None if packing == "none" else packing
        columnar = Encoding(format).is_columnar
        if columnar and packing is not None:
            raise DeclarationError(f"burler.batch.ExportFiles: {format} is packed inside; leave compression= out.")
        self._encoding = Encoding(format, packing)
        self._storage = open_storage(BatchStorage(root=root, options=dict(storage_options or {})))
        self._tap, self._stream, self._run_id = tap, stream, drawn()
        self._number = 0

    @contextlib.contextmanager
    def new(self) -> Iterator[ExportFile]:
        """A file to write to. It is there once the block has ended well; after an error nothing of it is.

        Raises:
            StorageError: the place is full, or gone.
        """
        self._number += 1
        extension = ending(self._encoding.format, self._encoding.packing)
        name = file_name(self._tap, self._stream, self._run_id, self._number, extension)
        new_file = self._storage.new_file(name)
        try:
            file = ExportFile(new_file, self._encoding.packing)
            yield file
            file._end()
        except BaseException:
            new_file.discard()
            raise
