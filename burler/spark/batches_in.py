"""An export of messages in place of a lake: BATCH lines and what stands around them, as a lake for the time of one run.

The rows of the files that BATCH messages name, and RECORDs between them, become lake files in the export's staging, by
the same writer that every lake is written by: each value stays as its source text has it, schemas may change between
messages, versions and ACTIVATE_VERSION count. Such a lake is new each time, and so each export of it is a whole one.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from burler.errors import StorageError, UsageError
from burler.singer.messages import encode

_log = logging.getLogger("burler.spark")

Messages = Iterable[Mapping[str, Any] | str | bytes]
TAP_ID = "batches"


def is_messages(lake: object) -> bool:
    """Whether ``lake`` is a list of messages, or a file of them, and no lake."""
    if isinstance(lake, str | Path):
        return "://" not in str(lake) and Path(lake).is_file()
    return True


def tap_of(lake: object) -> str:
    """The tap's name for messages that come without one: that of their file."""
    return (Path(lake).name.partition(".")[0] if isinstance(lake, str | Path) else "") or TAP_ID


def lay(lake: str | Path | Messages, folder: Path, tap_id: str, options: Mapping[str, Any] | None = None) -> str:
    """Write the messages to a lake in ``folder``; its path.

    Args:
        lake: a file of messages, one a line, or the messages as dicts or lines.
        options: for the library that reaches the files of BATCH messages.

    Raises:
        UsageError: the file can't be read, or there is no stream in it.
        MessageError: a line is no message, a BATCH can't be read, or data came before its SCHEMA; with its line.
    """
    from burler.lake.store import open_store
    from burler.lake.writer import LakeWriter, ingest

    source: BinaryIO = _opened(lake) if isinstance(lake, str | Path) else io.BytesIO(_lines(lake))
    with source:
        writer = LakeWriter(open_store(str(folder)), tap_id, emit_state=lambda state: None)
        try:
            ingest(source, writer, warn=_log.warning, storage_options=options)
        except StorageError as error:
            raise StorageError(f"{error} (the rows of BATCH files are laid there before Spark reads them)") from None
    if not (folder / "raw").is_dir():
        raise UsageError(f"{_said(lake)} holds no stream: neither a SCHEMA nor a BATCH or RECORD message")
    return str(folder)


def _opened(path: str | Path) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None


def _lines(messages: Messages) -> bytes:
    return b"".join(_line(number, message) + b"\n" for number, message in enumerate(messages, 1))


def _line(number: int, message: object) -> bytes:
    if isinstance(message, str | bytes):
        return (message.encode() if isinstance(message, str) else message).rstrip(b"\r\n")
    if not isinstance(message, Mapping):
        raise UsageError(f"message {number} is {type(message).__name__}; a dict or a line of JSON was expected")
    try:
        return encode(message)
    except (UnicodeEncodeError, ValueError):  # half of a surrogate pair: only the standard library writes it
        return json.dumps(message).encode()


def _said(lake: object) -> str:
    return str(lake) if isinstance(lake, str | Path) else "the list of messages"
