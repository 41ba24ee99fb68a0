"""Files in a zip, read in place. Their names are never a path on this machine."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

from burler.formats import FormatError
from burler.formats.compression import Decompressed, damage

_MOST_MEMBERS = 100_000


def members(
    file: BinaryIO, is_wanted: Callable[[str], bool], *, limit_bytes: int
) -> Iterator[tuple[str, Callable[[], Decompressed]]]:
    """``(name, open it)`` of each member that is wanted, in the order in which they lie in the zip.

    Args:
        file: the zip, which can seek.
        is_wanted: says so of a member's whole name.
        limit_bytes: of all members together; no member gives more than the zip says of it.

    Raises:
        FormatError: no zip, a broken one, one with a password, no member that is wanted (of the kind ``member``, with
            the names of some), too much. Errors of ``file`` go through.
    """
    with _opened(file) as packed:
        infos = [info for info in packed.infolist() if not info.is_dir()]
        if len(infos) > _MOST_MEMBERS:
            raise FormatError(f"it is a zip of {len(infos):,} files; {_MOST_MEMBERS:,} are the most")
        wanted = [info for info in infos if is_wanted(info.filename)]
        if not wanted:
            there = ", ".join(repr(info.filename[:60]) for info in infos[:5]) or "nothing"
            raise FormatError(f"no member of it is one that is read. In it: {there}", kind="member")
        size = sum(info.file_size for info in wanted)
        if size > limit_bytes:
            raise FormatError(f"it holds {size:,} bytes once it is unpacked; {limit_bytes:,} are allowed", kind="limit")
        for info in wanted:
            if info.flag_bits & 1:
                raise FormatError(f"'{info.filename}' in it is packed with a password, which burler can't open")
            yield info.filename, partial(_open, packed, info, limit_bytes)


def _opened(file: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        if isinstance(error.__context__, OSError):  # of the file: zipfile takes it for one that is no zip
            raise error.__context__ from None
        raise FormatError(f"it can't be read as a zip: {error}", kind="damaged") from None


def _open(packed: zipfile.ZipFile, info: zipfile.ZipInfo, limit_bytes: int) -> Decompressed:
    try:
        return Decompressed(_Member(packed.open(info)), None, limit_bytes=limit_bytes)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise damage(error, "zip") from None


class _Member:
    """A file in a zip, whose damages are ours."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.close = file.close

    def read(self, size: int) -> bytes:
        """At most so many bytes; b"" at the end."""
        try:
            piece: bytes = self._file.read(size)
            return piece
        except OSError:
            raise  # of the file beneath
        except Exception as error:
            raise damage(error, "zip") from None
