"""The batch files that are being written, one of a stream at a time: begun, ended, named in a message.

A message is handed on only once its file is whole and durable under its final name; a file whose message surely did not
go out is removed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from burler.batch.batch_file import BatchFile, plain
from burler.batch.encoders import Layout
from burler.batch.storage import Storage
from burler.batch_config import BatchConfig
from burler.errors import OutputClosed
from burler.singer.messages import Message
from burler.target.open_files import OpenFiles
from burler.target.roll import Clock

MOST_OPEN_FILES = 200
"""At a time; then the one that was begun first ends early."""


@dataclass(slots=True)
class Made:
    """Files whose messages went out: how many, their rows, their bytes as stored."""

    files: int = 0
    rows: int = 0
    stored_bytes: int = 0


class BatchFiles(OpenFiles[BatchFile]):
    """Of one writer.

    Args:
        tap, run_id: stand in the names of files.
        emit: takes the message of each file that has ended.

    Attributes:
        made: what went out so far.
    """

    def __init__(
        self,
        storage: Storage,
        config: BatchConfig,
        *,
        tap: str,
        emit: Callable[[Message], object],
        clock: Clock,
        run_id: str | None = None,
    ) -> None:
        super().__init__(clock, most=MOST_OPEN_FILES, age_seconds=config.batch_age_seconds)
        self._storage = storage
        self._config = config
        self._tap = tap
        self._emit = emit
        self._run_id = run_id or secrets.token_hex(6)
        self._numbers: dict[str, int] = {}
        self.made = Made()

    @property
    def root(self) -> str:
        """Where files lie, as a URL."""
        return self._storage.root

    def usable(self, stream: str, version: int | None) -> BatchFile | None:
        """The open file of a stream, if rows of a version may go into it. One that they may not is ended."""
        file = self._open.get(stream)
        if file is not None and (file.version != version or self._is_old(file)):
            self.end(file)
            return None
        return file

    def begin(self, stream: str, layout: Layout, version: int | None, place: int) -> BatchFile:
        """Begin a file of a stream that has none open.

        Args:
            place: of its first row in the writer's sequence.
        """
        self._make_place()
        name = plain(stream)  # two streams may have the same in the names of files
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        file = BatchFile(
            self._storage,
            self._config.encoding,
            layout,
            tap=self._tap,
            stream=stream,
            run_id=self._run_id,
            number=number,
            version=version,
            begun=place,
            opened=self._clock.monotonic(),
        )
        self._open[stream] = file
        return file

    def is_full(self, file: BatchFile) -> bool:
        """Whether no more rows belong into it."""
        return file.records >= self._config.batch_size or file.size_bytes >= self._config.batch_bytes

    def end(self, file: BatchFile) -> None:
        """Publish a file, and send its message; one without rows is dropped."""
        if not file.records:
            del self._open[file.stream]
            file.discard()
            return
        file.publish()
        del self._open[file.stream]
        self._send(file)
        self.made.files += 1
        self.made.rows += file.records
        self.made.stored_bytes += file.stored_bytes

    def end_of(self, stream: str) -> None:
        """End the file of a stream, if one is open."""
        if stream in self._open:
            self.end(self._open[stream])

    def _send(self, file: BatchFile) -> None:
        """The message of a file. Where it surely did not go out, the file is removed. After other errors the line may
        be out, or what is kept of it still get out (a disk has room again): then the file stays."""
        try:
            url = file.url
            if self._config.presign_seconds is not None:
                url = self._storage.presign(url, self._config.presign_seconds)
            message = file.message(url, self._config.dialect)
        except BaseException:
            file.withdraw()
            raise
        try:
            self._emit(message)
        except OutputClosed:  # nobody read the whole line, and nobody will
            file.withdraw()
            raise
