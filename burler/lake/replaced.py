"""Which data files count where files are listed: those that a compacted file stands for do not.

A compacted file holds the rows of others, which stay in place until ``vacuum``. Beside it stands
``<name>.replaces.json``, written before it, which names them::

    {"format": 1, "replaces": ["<hash>/<name>", ...], "through": ["<hash>/<name>", ...], "written": "2024-..."}

``replaces`` are files that a writer made, ``through`` compacted files that have been compacted once more. All names are
relative to the stream's folder. Names of compacted files end with a number that writers never reach, so that only these
have to be looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from burler.errors import LakeError
from burler.lake.layout import parse_file_name
from burler.storage.base import Store

FIRST_NUMBER = 100_000_000
"""Names of compacted files have an ``n`` from here on."""

SUFFIX = ".replaces.json"
FORMAT = 1
_LONGEST_NAME = 255 - len("..lock")
"""What file systems allow, less what a local store puts around a name that it changes."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """What a compacted file stands for. Names are relative to the stream's folder.

    ``replaces`` are files that a writer made, ``through`` compacted ones between. ``written``: when it was compacted.
    """

    replaces: tuple[str, ...]
    through: tuple[str, ...] = ()
    written: str = ""


class _Wire(msgspec.Struct):
    format: int
    replaces: list[str]
    through: list[str] = []
    written: str = ""


def is_compacted(path: str) -> bool:
    """Whether a data file's name is one that only ``compact`` gives."""
    parsed = parse_file_name(path.rpartition("/")[2])
    return parsed is not None and parsed.n >= FIRST_NUMBER


def note_path(path: str) -> str:
    """Where the note of the data file at ``path`` stands; a name that would be too long loses its beginning."""
    folder, slash, name = path.rpartition("/")
    over = len(name) + len(SUFFIX) - _LONGEST_NAME
    return f"{folder}{slash}{name if over <= 0 else '~' + name[over + 1 :]}{SUFFIX}"


def to_bytes(replacement: Replacement) -> bytes:
    """As it stands in the file."""
    wire = _Wire(FORMAT, list(replacement.replaces), list(replacement.through), replacement.written)
    return msgspec.json.format(msgspec.json.encode(wire), indent=1) + b"\n"


def from_bytes(data: bytes, place: str) -> Replacement:
    """What such a file says.

    Raises:
        LakeError: no JSON, of another shape, or of a newer format; names it and the cure.
    """
    try:
        wire = msgspec.json.decode(data, type=_Wire)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LakeError(
            f"{place} is broken ({error}): nothing says which files the one beside it replaces.\n"
            "If the files it was made from are still there, move both away; else move this one away alone."
        ) from None
    if wire.format != FORMAT:
        raise LakeError(f"{place} has format {wire.format}; this burler knows {FORMAT}. Upgrade burler.")
    return Replacement(tuple(wire.replaces), tuple(wire.through), wire.written)


def read(store: Store, path: str) -> Replacement | None:
    """What the data file at ``path`` replaces, as the file beside it says; None where there is none.

    Raises:
        LakeError: it is broken.
    """
    note = note_path(path)
    blob = store.read(note)
    return None if blob is None else from_bytes(blob.data, store.locate(note))


def data_files(store: Store, folder: str) -> list[str]:
    """Paths of the data files of a stream that count, found by listing, sorted.

    Files outside of a schema folder are none.

    Raises:
        LakeError: what a compacted file replaces can't be read.
    """
    return standing(store, folder, all_data_files(folder, (file.path for file in store.files(folder))))


def all_data_files(folder: str, paths: Iterable[str]) -> list[str]:
    """Those of ``paths`` that are data files of the stream at ``folder``, replaced ones too."""
    below = len(folder) + 1
    return [path for path in paths if "/" in path[below:] and parse_file_name(path.rpartition("/")[2])]


def standing(store: Store, folder: str, paths: Iterable[str]) -> list[str]:
    """``paths`` of data files less those whose rows stand in another of them."""
    paths = list(paths)
    known = {path: read(store, path) for path in paths if is_compacted(path)}
    hidden = hidden_by(folder, {path: one for path, one in known.items() if one is not None}, set(paths))
    return [path for path in paths if path not in hidden]


def hidden_by(folder: str, compacted: Mapping[str, Replacement], there: set[str]) -> set[str]:
    """Files that must not be read beside ``compacted`` ones (path -> what it replaces).

    Compactions that were killed before their commit may overlap with later ones: of those one counts, at best one
    whose parts are gone, else the larger.

    Args:
        there: the data files there are.
    """

    def place(path: str) -> tuple[bool, int, str]:
        parts = compacted[path].replaces
        return all(f"{folder}/{part}" in there for part in parts), -len(parts), path

    covered: set[str] = set()
    hidden: set[str] = set()
    for path in sorted(compacted, key=place):
        parts = {f"{folder}/{part}" for part in compacted[path].replaces}
        if parts & covered:
            hidden.add(path)
            continue
        covered |= parts
        hidden |= parts | {f"{folder}/{part}" for part in compacted[path].through}
    return hidden
