"""What the commands share: catalogs and states read, files written, the store of a lake and its options."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from burler.cli.helping import OPTIONS, option
from burler.cli.options_batch import read_options
from burler.errors import CatalogError, StateError, StorageError, UsageError
from burler.localfile import remove_leftovers, replace_file
from burler.singer.messages import encode
from burler.singer.state import read_state_file

if TYPE_CHECKING:
    from burler.storage.base import Store

logger = logging.getLogger(__name__)


def read_catalog(catalog: str | None, properties: str | None) -> Any:
    """``--catalog``, else ``--properties``; both given: the catalog wins, with one warning.

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


def read_state(path: str | None, *, merge: bool = False) -> dict[str, Any] | None:
    """``--state``: a state object, a STATE message, or a file of STATE lines of which the last counts.

    Args:
        merge: the lines carry only what changed (``state_scope: touched``); all of them count.

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
    return read_state_file(content, source=f"state file {path}", merge=merge)


def state_file(path: str) -> Callable[[dict[str, Any]], None]:
    """``--out-file``: a function that replaces a file by the latest state, atomically.

    Raises:
        StateError: it could not be written later on: no folder, no right to, no regular file.
    """
    target = replaceable("--out-file", path, StateError)

    def write(value: dict[str, Any]) -> None:
        try:
            replace_file(target, encode(value) + b"\n")
        except OSError as error:
            raise StorageError(f"--out-file {path} can't be written: {error.strerror}.") from None

    return write


def replaceable(option: str, path: str, wrong: type[UsageError]) -> Path:
    """The file that an option names, for ``replace_file``: a link stays, what it points to is replaced.

    What killed runs have left beside it is removed.

    Raises:
        wrong: it could not be written later on: no folder, no right to, no regular file.
    """
    if not path:
        raise wrong(f"{option} needs the name of a file.")
    try:
        given, target = Path(path), Path(os.path.realpath(path))
        if path.endswith("/") or (given.exists() and not given.is_file()):
            raise wrong(f"{option} {path}: is no plain file; give a path that may be replaced.")
        if not target.parent.is_dir():
            raise wrong(f"{option} {path}: the folder {target.parent} does not exist.")
        with contextlib.suppress(FileNotFoundError):  # it need not be there; a name that is too long, a loop: told here
            target.stat()
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise wrong(f"{option} {path} can't be written: {reason}.") from None
    remove_leftovers(target)
    return target


def keep_apart(option: str, path: str | None, others: Iterable[tuple[str, str | None]]) -> None:
    """An output must not take the place of another file of the run.

    Args:
        others: options with their paths; what stdout and stderr are redirected to counts as well.

    Raises:
        UsageError: it would.
    """
    if path is None:
        return
    for name, other in others:
        if other is not None and _is_same(path, other):
            raise UsageError(f"{option} {path} is the file of {name}, too. Give each a file of its own.")
    for fd, name in ((1, "stdout"), (2, "stderr")):
        with contextlib.suppress(OSError, ValueError):
            there = os.fstat(fd)
            if stat.S_ISREG(there.st_mode) and os.path.samestat(there, Path(path).stat()):
                raise UsageError(f"{option} {path} is what {name} goes to. Give each a file of its own.")


def _is_same(one: str, other: str) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return os.path.realpath(one) == os.path.realpath(other) or Path(one).samefile(other)
    return False


LAKE_OPTIONS = "--lake-options"


def lake_options_in(section: str = OPTIONS) -> Callable[[Any], Any]:
    """The decorator that gives a command ``--lake-options``, under a heading of its help."""
    return option(
        LAKE_OPTIONS,
        section=section,
        metavar="JSON|FILE",
        help="For the library that reaches the lake's store; secrets belong in a FILE or the environment.",
    )


lake_options = lake_options_in()


def open_lake(url: str, options: str | None, *, must_exist: bool = False) -> Store:
    """The lake's store. ``options``: what ``--lake-options`` was given.

    Raises:
        UsageError: options that are no JSON object; and what ``open_store`` raises.
    """
    from burler.lake.store import open_store

    return open_store(url, must_exist=must_exist, options=read_lake_options(options))


def read_lake_options(text: str | None) -> dict[str, Any] | None:
    """What ``--lake-options`` was given, as an object.

    Raises:
        UsageError: it is no JSON object, nor a file that holds one.
    """
    return read_options(LAKE_OPTIONS, text)
