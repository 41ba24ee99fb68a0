"""The versions of a table made of plain files: one JSON document each, and ``_latest.json`` for readers.

A version is published by the exclusive creation of ``_versions/<n>.json``: of two who made one
from the same version, the second finds the name taken. ``_latest.json`` is a copy of the newest, replaced in one step,
so that readers in other programs need to know one name only; a kill between the two is mended by the next export.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burler.errors import ExportError
from burler.localfile import create_file, locked_beside, replace_file

LATEST = "_latest.json"
VERSIONS = "_versions"
_MADE_BY = "burler export"


class Taken(Exception):
    """The version that was to be made exists: somebody else's."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """One data file: path relative to the table, bytes, rows (None where nobody counted)."""

    path: str
    size: int
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a table: its number, what its files are, and what was stored with it."""

    number: int
    source: str
    format: str
    schema: Mapping[str, Any]
    files: tuple[TableFile, ...]
    numbers: Mapping[str, int]
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files)

    def folders(self) -> set[str]:
        """Names of the data folders that it uses."""
        return {file.path.partition("/")[0] for file in self.files}

    def to_json(self) -> str:
        """The document, as it is stored."""
        document = {
            "made_by": _MADE_BY,
            "version": self.number,
            "source": self.source,
            "format": self.format,
            "options": dict(self.options),
            "files": [{"path": one.path, "bytes": one.size, "rows": one.rows} for one in self.files],
            "partition_by": list(self.partition_by),
            "numbers": dict(self.numbers),
            "metadata": dict(self.metadata),
            "schema": dict(self.schema),
        }
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def read_version(path: Path) -> Version:
    """The version in a file.

    Raises:
        ExportError: the file can't be read or was not made by an export.
    """
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return Version(
            number=int(said["version"]),
            source=said["source"],
            format=said["format"],
            schema=said["schema"],
            files=tuple(TableFile(one["path"], int(one["bytes"]), one["rows"]) for one in said["files"]),
            numbers={str(name): int(number) for name, number in said["numbers"].items()},
            partition_by=tuple(said["partition_by"]),
            options=said["options"],
            metadata=said["metadata"],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExportError(
            f"{path} is no description of a table by burler export ({type(error).__name__}: {error}).\n"
            "Remove the table's folder to have it made anew, or choose another OUT"
        ) from None


def numbers(table: Path) -> list[int]:
    """The version numbers that there are, rising."""
    found = (path.stem for path in (table / VERSIONS).glob("*.json"))
    return sorted(int(stem) for stem in found if stem.isdigit())


def version_path(table: Path, number: int) -> Path:
    """Where version ``number`` is described."""
    return table / VERSIONS / f"{number:010d}.json"


def newest(table: Path) -> Version | None:
    """The newest version; None where there is no table."""
    known = numbers(table)
    return read_version(version_path(table, known[-1])) if known else None


def publish(table: Path, version: Version) -> None:
    """Make ``version`` the newest, whole at once or not at all.

    Raises:
        Taken: a version of this number exists. OSError: the folder can't be written; nothing is visible then.
    """
    folder = table / VERSIONS
    folder.mkdir(exist_ok=True)
    try:
        create_file(version_path(table, version.number), version.to_json().encode())
    except FileExistsError:
        raise Taken from None


def point(table: Path) -> None:
    """Let ``_latest.json`` say what the newest version says; an old one is never put over a newer.

    Raises:
        OSError, StorageError: the folder can't be written; the version is published all the same.
    """
    latest = table / LATEST
    with locked_beside(latest):
        known = numbers(table)
        if not known:
            return
        said = version_path(table, known[-1]).read_bytes()
        if not latest.exists() or latest.read_bytes() != said:
            replace_file(latest, said)
