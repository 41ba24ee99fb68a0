"""What the commands share: reading and writing files, and what ``--about`` says."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from burler.config.atomic import replace_file
from burler.errors import CatalogError, StateError, StorageError
from burler.singer.state import parse_state

logger = logging.getLogger(__name__)


def read_catalog(catalog: str | None, properties: str | None) -> Any:
    """``--catalog``, else ``--properties``; both given: the catalog wins, with one warning (specs 11.5).

    Raises:
        CatalogError: missing, unreadable, or not JSON.
    """
    if catalog and properties:
        logger.warning("--catalog and --properties are both given; --properties is not read")
    path = catalog or properties
    if path is None:
        return None
    try:
        value = msgspec.json.decode(Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise CatalogError(f"catalog {path} can't be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CatalogError(f"catalog {path} is not JSON: {error}.") from None
    except RecursionError:
        raise CatalogError(f"catalog {path} is nested too deep.") from None
    if value is None:
        raise CatalogError(f"catalog {path} holds null. Leave it out to select everything, or: burler discover APP")
    return value


def read_state(path: str | None) -> dict[str, Any] | None:
    """``--state``: a state object, a STATE message, or a file of STATE lines of which the last counts.

    Raises:
        StateError: missing, unreadable, or none of these; an object that is no state of a tap.
    """
    if path is None:
        return None
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise StateError(
            f"state file {path} can't be read: {error.strerror}. Leave --state out to start from the beginning."
        ) from None
    state = parse_state(content, source=f"state file {path}")
    if state and not {"bookmarks", "currently_syncing"} & set(state):
        raise StateError(
            f"state file {path} holds neither 'bookmarks' nor 'currently_syncing'. Is it the right file? "
            "Leave --state out to start from the beginning."
        )
    return state


def state_file(path: str) -> Callable[[dict[str, Any]], None]:
    """``--out-file``: a function that replaces a file by the latest state, atomically.

    Raises:
        StateError: it could not be written later on: no folder, no right to, no regular file.
    """
    target = Path(os.path.realpath(path))  # a link stays, what it points to is replaced
    if not target.parent.is_dir():
        raise StateError(f"--out-file {path}: the folder {target.parent} does not exist.")
    if target.exists() and not target.is_file():
        raise StateError(f"--out-file {path}: is no plain file; give a path that may be replaced.")
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise StateError(f"--out-file {path} can't be written: {error.strerror}.") from None

    def write(value: dict[str, Any]) -> None:
        try:
            replace_file(target, msgspec.json.encode(value) + b"\n")
        except OSError as error:
            raise StorageError(f"--out-file {path} can't be written: {error.strerror}.") from None

    return write
