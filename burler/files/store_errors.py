"""What a store's errors mean: a file that is gone, or a store that does not answer."""

from __future__ import annotations

from burler.errors import FileError
from burler.files.names import shown

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
