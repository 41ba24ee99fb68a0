"""Data folders of file tables: each publication writes one of its own, and what killed ones leave is removed.

Nothing is ever overwritten: files go to ``data-<export id>`` inside the table's folder, and
only the publication (a Delta commit, a new pointer) makes them count. A note ``_pending-<export id>.json`` beside it
lets a later export remove what a killed one left.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from burler.errors import ExportError
from burler.spark.owner import is_over, write_owner

MARKS = {"_delta_log": "delta", "_versions": "parquet (or another of files)", "metadata": "iceberg"}
"""What lies in a table's folder, by its format."""


@contextlib.contextmanager
def data_folder(table: Path, holds: Callable[[Path], bool]) -> Iterator[Path]:
    """A fresh folder inside the table for one publication's files; removed again if the block fails.

    Args:
        holds: whether the table's current version refers to files of a folder; asked when the block failed: an error
            after the commit itself (a checkpoint that failed, Ctrl-C) must not cost its files.

    Raises:
        ExportError: the table's folder can't be made or written.
    """
    export_id = secrets.token_hex(8)
    folder, note = table / f"data-{export_id}", table / f"_pending-{export_id}.json"
    made = [one for one in (table, *table.parents) if not one.exists()]
    try:
        try:
            table.mkdir(parents=True, exist_ok=True)
            write_owner(note)
        except OSError as error:
            raise unwritable(table, error) from None
        yield folder
    except BaseException:
        if not holds(folder):
            shutil.rmtree(folder, ignore_errors=True)
            for remove in (note.unlink, *(one.rmdir for one in made)):  # what came to nothing leaves no empty folders
                with contextlib.suppress(OSError):
                    remove()
        raise
    finally:
        with contextlib.suppress(OSError):
            note.unlink(missing_ok=True)


def refuse_other_formats(table: Path, own: str) -> None:
    """Two formats in one folder would each take the other's files for theirs, or show a reader the wrong table.

    Args:
        own: the name in ``MARKS`` that may be there.

    Raises:
        ExportError: the folder holds a table of another format.
    """
    for mark, kind in MARKS.items():
        if mark != own and (table / mark).exists():
            raise ExportError(
                f"{table} holds a table of format {kind}; it stays untouched. "
                "Choose another OUT, or move that table away"
            )


def unwritable(table: Path, error: OSError) -> ExportError:
    """The error for a folder that takes no files."""
    return ExportError(
        f"{table}: nothing can be written there ({error.strerror or error}). Nothing was published.\n"
        "Make room or correct the permissions, then run the export again"
    )


def remove_leftovers(table: Path, published: Callable[[], set[str]]) -> None:
    """Remove what killed exports left: data folders that a note says are pending and no version ever had.

    A folder whose publication happened (the kill came between it and the clean-up) only loses its note.

    Args:
        published: names of all data folders that a version refers to; called only if there are notes.
    """
    notes = [note for note in table.glob("_pending-*.json") if is_over(note, note)]
    if not notes:
        return
    kept = published()
    for note in notes:
        folder = table / f"data-{note.stem.removeprefix('_pending-')}"
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)
        # What an older burler staged there.
        shutil.rmtree(folder.with_name("_staging-" + folder.name.removeprefix("data-")), ignore_errors=True)
        with contextlib.suppress(OSError):
            note.unlink(missing_ok=True)


def pending(table: Path) -> set[str]:
    """Names of the data folders that an export may still be writing."""
    return {f"data-{note.stem.removeprefix('_pending-')}" for note in table.glob("_pending-*.json")}
