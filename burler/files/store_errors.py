"""What errors of stores and formats mean: a file that is gone, one that is broken, a store that does not answer."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from burler.errors import BurlerError, FileError
from burler.files.names import shown
from burler.formats import FormatError

_GONE = (404, 410)
_ASKED_IN_VAIN = ("aiohttp", "requests", "urllib3", "ftplib")


def is_gone(error: BaseException) -> bool:
    """Whether a ``FileNotFoundError`` of a store says that there is no such file. fsspec's web and FTP stores say the
    same of a server that is broken or lets nobody in; what it said stands in the cause."""
    cause = error.__cause__
    if cause is None:
        return True
    status = getattr(cause, "status", None)
    if isinstance(status, int):
        return status in _GONE
    if isinstance(cause, FileNotFoundError):
        return is_gone(cause)
    if type(cause).__name__ == "error_perm":  # FTP's "550 no such file", and other things that may not be
        return str(cause).startswith("550")
    return not isinstance(cause, OSError | EOFError) and type(cause).__module__.partition(".")[0] not in _ASKED_IN_VAIN


def fact(error: BaseException) -> str:
    """What a store said, in few words."""
    if isinstance(error, FileNotFoundError) and not is_gone(error):
        error = error.__cause__ or error
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    status = getattr(error, "status", None)
    return shown(f"HTTP {status} {getattr(error, 'message', '')}".strip() if isinstance(status, int) else text)[:300]


def check_gone(error: FileNotFoundError, name: str) -> None:
    """Nothing, if a file is gone.

    Raises:
        FileError: its store has failed.
    """
    if not is_gone(error):
        raise FileError(f"file '{name}': its store does not answer as it should: {fact(error)}.") from None


@contextmanager
def said(name: str) -> Iterator[None]:
    """What a store says while a file is read becomes a ``FileError`` that names it; a file that is gone stays a
    ``FileNotFoundError``."""
    try:
        yield
    except BurlerError:
        raise
    except FileNotFoundError as error:
        check_gone(error, name)
        raise
    except Exception as error:  # stores have errors of many kinds
        raise FileError(f"file '{name}' can't be read: {fact(error)}.") from None


_CURES = {
    "cut": "Is it still being written? settle_seconds leaves files alone that changed lately.",
    "limit": "If that is right, raise max_unpacked_bytes.",
}


@contextmanager
def named(name: str) -> Iterator[None]:
    """What is wrong with a file's bytes becomes a ``FileError`` that names it, with a cure."""
    try:
        yield
    except FormatError as error:
        cure = _CURES.get(error.kind)
        raise FileError(f"file '{name}': {shown(str(error))}" + (f"\n  {cure}" if cure else "")) from None


class StoreFile(io.RawIOBase):
    """A file of a store, whose errors name it (see ``said``)."""

    def __init__(self, file: Any, name: str) -> None:
        super().__init__()
        self._file, self._name = file, name

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes; b"" at the end."""
        with said(self._name):
            piece: bytes = self._file.read(size)
            return piece

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """Whether the file says so."""
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """The place."""
        return int(self._file.tell())

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            super().close()
            self._file.close()
