"""A new project on the disk: whole, or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from burler.errors import StorageError, UsageError
from burler.localfile import new_folder
from burler.scaffold import readme, templates
from burler.scaffold.kinds import Kind
from burler.scaffold.names import TapName

PLUGIN = "meltano-plugin.yml"
"""The file with the definition of the tap as a plugin of Meltano."""


@dataclass(frozen=True, slots=True)
class Project:
    """What was made: the project's folder, and its files by relative path."""

    folder: Path
    files: tuple[str, ...]


def make_project(name: TapName, kind: Kind, *, into: Path, check: Callable[[], None] = lambda: None) -> Project:
    """Make ``into/<name>``. It is filled under a hidden name beside its place, and renamed when it is whole. Where
    ``into`` is not there, it is made then, and the hidden name stands in the nearest folder above it.

    Args:
        check: called between the steps; what it raises ends the work, and nothing is left behind.

    Raises:
        UsageError: ``into`` is, or stands in, what is no folder, or something stands in the project's place already.
        StorageError: it can't be written: no right to, no room.
    """
    folder = into / name.command
    nearest = _checked_place(into, folder)
    files = templates.render(kind, name)
    try:
        with new_folder(folder, beside=nearest) as made:
            _write(made, files, check)
            filled = readme.fill(files["README.md"], made / name.package, kind)
            (made / "README.md").write_text(filled, encoding="utf-8")
            (made / PLUGIN).write_text(readme.plugin(made / name.package), encoding="utf-8")
            check()
            into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise _there(folder) from None
        raise StorageError(f"{folder} can't be made: {error.strerror}. Nothing was left behind.") from None
    return Project(folder, tuple(sorted([*files, PLUGIN])))


def _checked_place(into: Path, folder: Path) -> Path:
    """The folder that is there: ``into``, or the nearest one above it."""
    try:
        nearest = next(place for place in (into, *into.parents) if _stands(place))
        if not nearest.is_dir():
            raise UsageError(f"--into {into}: {nearest} is no folder. Give another place.")
        if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir() or any(folder.iterdir())):
            raise _there(folder)
    except OSError as error:
        raise UsageError(f"{error.filename or folder} can't be looked at: {error.strerror}.") from None
    return nearest


def _stands(place: Path) -> bool:
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _there(folder: Path) -> UsageError:
    return UsageError(
        f"{folder} is there already and is no empty folder; it was not touched. Give another name, or another place: "
        "--into DIR"
    )


def _write(folder: Path, files: Mapping[str, str], check: Callable[[], None]) -> None:
    for path, text in files.items():
        check()
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")
