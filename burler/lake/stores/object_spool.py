"""A data file on its way into an object store: kept here until it is whole, since an object can't be appended to."""

from __future__ import annotations

import contextlib
import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

from burler.errors import StorageError

MEMORY_BYTES = 1 << 20
"""Of a file in memory; more goes to a temporary file that has no name."""

Publish = Callable[[str, BinaryIO, int], None]
"""(path, content, size in bytes) -> nothing, or FileExistsError."""


class SpooledFile:
    """See ``NewFile``. It is sent when it is published."""

    def __init__(self, publish: Publish, url: str) -> None:
        self._publish, self._url = publish, url
        self._file: tempfile.SpooledTemporaryFile[bytes] | None
        self._file = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115  # see discard
        self._close = weakref.finalize(self, _close, self._file)

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """See ``NewFile.write``."""
        file = self._open()
        with self._here():
            file.write(data)

    def publish(self, path: str, /) -> None:
        """See ``NewFile.publish``. After an error it may be tried again, under the same name too."""
        file = self._open()
        with self._here():
            size = file.tell()
        self._publish(path, cast(BinaryIO, file), size)
        self.discard()

    def discard(self) -> None:
        """See ``NewFile.discard``."""
        self._file = None
        self._close()

    def _open(self) -> tempfile.SpooledTemporaryFile[bytes]:
        if self._file is None:
            raise StorageError(f"{self._url}: a file that is published or discarded takes no more.")
        return self._file

    @contextlib.contextmanager
    def _here(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"{tempfile.gettempdir()}: a file for {self._url} can't be kept until it is whole: "
                f"{error.strerror or error}.\n  Make room there, or set TMPDIR to a folder that has room."
            ) from error


def _close(file: tempfile.SpooledTemporaryFile[bytes]) -> None:
    with contextlib.suppress(OSError):
        file.close()
