"""One batch file while it is written, and the message that names it."""

from __future__ import annotations

import datetime as dt
import re
import secrets
import zlib
from functools import partial
from typing import Any

from burler.batch.encoders import Layout, open_encoder
from burler.batch.storage import Storage
from burler.batch_config import Encoding
from burler.errors import BatchError
from burler.formats.names import ending
from burler.singer.messages import Batch

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
_MOST_CHARACTERS = 50  # of a tap and of a stream: with prefix and run, a name may have 255


class BatchFile:
    """A file of one stream and version.

    ``begun``: the number, in the writer's sequence, of the first message in it; ``opened``: monotonic seconds of its
    clock.
    """

    def __init__(
        self,
        storage: Storage,
        encoding: Encoding,
        layout: Layout,
        *,
        tap: str,
        stream: str,
        run_id: str,
        number: int,
        version: int | None,
        begun: int,
        opened: float,
    ) -> None:
        self._encoding = encoding
        self.stream, self.version, self.begun, self.opened = stream, version, begun, opened
        self.records = 0
        self.url = ""
        self.stored_bytes = 0
        self._first: dt.datetime | None = None
        extension = ending(encoding.format, encoding.packing)
        self._name = partial(file_name, tap, stream, number=number, extension=extension)
        try:
            self._new_file = storage.new_file(self._name(run_id=run_id))
        except FileExistsError:
            self._new_file = storage.new_file(self._name(run_id=secrets.token_hex(6)))
        try:
            self._encoder = open_encoder(encoding, layout, self._write)
        except BaseException:
            self._new_file.discard()
            raise

    @property
    def size_bytes(self) -> int:
        """How much came in, uncompressed."""
        return self._encoder.size_bytes

    def rows(self, lines: bytes | bytearray | memoryview, count: int, time_extracted: dt.datetime | None) -> None:
        """Append bare rows.

        Raises:
            BatchError: a value that its column can't hold; the rows before it were taken.
        """
        try:
            self._encoder.rows(lines, count)
        except BatchError:
            if count == 1:
                raise
            whole, half = bytes(lines), count // 2
            cut = 0
            for _ in range(half):
                cut = whole.index(b"\n", cut) + 1
            self.rows(whole[:cut], half, time_extracted)
            self.rows(whole[cut:], count - half, time_extracted)
            return
        self._took(count, time_extracted)

    def table(self, batch: Any, time_extracted: dt.datetime | None) -> None:
        """Append columns."""
        self._encoder.table(batch)
        self._took(batch.num_rows, time_extracted)

    def publish(self) -> None:
        """Make the file whole and durable under its final name."""
        self._encoder.finish()
        try:
            self.url = self._new_file.publish()
        except FileExistsError:  # another run has drawn the same number
            self.url = self._new_file.publish(self._name(run_id=secrets.token_hex(6)))

    def message(self, url: str, dialect: str) -> Batch:
        """The message that names the file."""
        encoding = self._encoding
        options = dict(encoding.format_options)
        if encoding.is_columnar:
            options["compression"] = encoding.codec or "none"
        return Batch(
            self.stream,
            (url,),
            encoding.format,
            encoding.packing,
            options,
            {} if encoding.packing is None else dict(encoding.compression_options),
            size=self.records,
            time_extracted=self._first,
            version=self.version,
            file_stats=((self.records, self.stored_bytes),),
            dialect=dialect,
        )

    def discard(self) -> None:
        """Give the file up."""
        self._encoder.abandon()
        self._new_file.discard()

    def withdraw(self) -> None:
        """Remove the file although it has its final name."""
        self._new_file.withdraw()

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        self.stored_bytes += len(data)
        self._new_file.write(data)

    def _took(self, count: int, time_extracted: dt.datetime | None) -> None:
        self.records += count
        if time_extracted is not None and (self._first is None or time_extracted < self._first):
            self._first = time_extracted


def file_name(tap: str, stream: str, run_id: str, number: int, extension: str) -> str:
    """``<tap>--<stream>-<run>-<n>.<ext>``, of letters, digits and ``-_.`` alone: some targets do not decode what else a
    URL needs."""
    return f"{plain(tap)}--{plain(stream)}-{run_id}-{number:05d}.{extension}"


def plain(name: str) -> str:
    """A name in such letters; one that had others, or is long, gets a number that tells it from its likes."""
    made = _NOT_IN_NAMES.sub("_", name).lstrip(".")[:_MOST_CHARACTERS] or "_"
    if made == name:
        return made
    return f"{made}-{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"
