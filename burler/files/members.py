"""Files in a zip: found by a pattern, read in place. Their names are never a path on this machine."""

from __future__ import annotations

import fnmatch
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO

from burler.errors import FileError
from burler.files.names import FORMATS, format_of
from burler.files.unpacking import Unpacked, said

_MOST_MEMBERS = 100_000


def members(
    file: BinaryIO, name: str, pattern: str | None, *, given: str | None, limit_bytes: int
) -> Iterator[tuple[str, Callable[[], Unpacked]]]:
    """``(name, open it)`` of each member that is wanted, in the order in which they lie in the zip.

    Args:
        file: the zip, which can seek.
        name: of the zip, for errors.
        pattern: which members, as a pattern of their whole name (``*`` takes slashes too); None: all whose name says
            that they are of a format that can be read, or all, if ``given`` says which it is.
        given: the format of all, if the reader was told.
        limit_bytes: of all members together; no member gives more than the zip says of it.

    Raises:
        FileError: no zip, a broken one, one with a password, no member that is wanted, too much.
    """
    with said(name), zipfile.ZipFile(file) as packed:
        infos = [info for info in packed.infolist() if not info.is_dir()]
        if len(infos) > _MOST_MEMBERS:
            raise FileError(f"file '{name}' is a zip of {len(infos):,} files; {_MOST_MEMBERS:,} are the most.")
        wanted = [info for info in infos if _is_wanted(info.filename, pattern, given)]
        if not wanted:
            raise FileError(_none(name, infos, pattern))
        size = sum(info.file_size for info in wanted)
        if size > limit_bytes:
            raise FileError(
                f"file '{name}' holds {size:,} bytes once it is unpacked; {limit_bytes:,} are allowed.\n"
                "  If that is right, raise max_unpacked_bytes."
            )
        for info in wanted:
            whole = f"{name}/{info.filename}"
            if info.flag_bits & 1:
                raise FileError(f"file '{whole}' is packed with a password, which burler can't open.")
            yield info.filename, partial(_open, packed, info, whole, limit_bytes)


def _open(packed: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, limit_bytes: int) -> Unpacked:
    with said(name):
        return Unpacked(packed.open(info), name, limit_bytes)


def _is_wanted(name: str, pattern: str | None, given: str | None) -> bool:
    """Whether a member is meant. What programs leave beside files is not, unless the pattern says so."""
    base = name.rpartition("/")[2]
    hidden = (base.startswith("."), (pattern or "").rpartition("/")[2].startswith("."))
    foreign = (name.startswith("__MACOSX/"), (pattern or "").startswith("__MACOSX/"))
    if hidden == (True, False) or foreign == (True, False):
        return False
    if pattern is not None:
        return fnmatch.fnmatchcase(name, pattern)
    return given is not None or format_of(name) is not None


def _none(name: str, infos: list[zipfile.ZipInfo], pattern: str | None) -> str:
    there = ", ".join(repr(info.filename[:60]) for info in infos[:5]) or "nothing"
    what = f"no member fits '{pattern}'" if pattern else f"no member's name says what it is ({', '.join(FORMATS)})"
    return f"file '{name}': {what}. In it: {there}.\n  Say which with member='*.csv', or what they are with format=."
