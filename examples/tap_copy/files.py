"""The bytes of a COPY, straight into files: whole, durable, under their final names; or not there at all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from burler.batch import ExportFiles

from .copying import Piece


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

    def files(self, pieces: Iterable[Piece]) -> Iterator[Made]:
        """Write pieces as they come, those of each part into files of its own, and give each file once it is whole.

        Args:
            pieces: see ``copied``. Each file gets the header; without rows there is no file.

        Raises:
            StorageError: the disk is full, or the place gone. The files that were being written are gone, too.
        """
        parts: dict[int, _Part] = {}
        with contextlib.ExitStack() as unfinished:
            for piece in pieces:
                part = parts.get(piece.part)
                if part is None:
                    part = parts[piece.part] = _Part(self._files)
                    unfinished.push(part.give_up)
                if piece.rows:
                    part.write(piece)
                if part.rows and (piece.is_last or part.size >= self._most_bytes):
                    yield part.finish()


class _Part:
    """The file that the rows of one COPY go to just now. ``rows``, ``size``: how many, and their bytes."""

    def __init__(self, files: ExportFiles) -> None:
        self._files = files
        self._open = contextlib.ExitStack()
        self._file: Any = None
        self.rows = self.size = 0

    def write(self, piece: Piece) -> None:
        """Append rows, to a new file if there is none."""
        if self._file is None:
            self._file = self._open.enter_context(self._files.new())
            self._file.write(piece.header)
        self._file.write(piece.data)
        self.rows += piece.rows
        self.size += len(piece.data)

    def finish(self) -> Made:
        """Publish the file."""
        self._open.close()
        made = Made(self._file.url, self.rows)
        self._file, self.rows, self.size = None, 0, 0
        return made

    def give_up(self, *error: Any) -> None:
        """Remove the file, if there is one: after an error nobody finishes it."""
        self._open.__exit__(*error)
