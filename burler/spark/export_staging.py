"""Where an export puts what is only on its way: beside the tables, hidden, and gone when the export has ended.

Spark's executors write there too, so it lies under OUT where OUT is a folder: on a cluster that is a place that all of
them see. What a killed export has left is removed by the next one.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from burler.errors import ExportError
from burler.spark.owner import is_over, write_owner

_PREFIX = "_staging-"
_OWNER = "_owner.json"


class Staging:
    """One export's staging. Nothing is made before somebody asks for a folder in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, *names: str) -> Path:
        """A folder inside, made if missing; with a note of the export's process, which is there before all else.

        Raises:
            ExportError: it can't be made.
        """
        folder = self.root.joinpath(*names)
        try:
            if not self.root.exists():
                self.root.mkdir(parents=True)
                write_owner(self.root / _OWNER)
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExportError(
                f"{folder} can't be written: {error.strerror}. Nothing was published. "
                "Make room, or give an OUT that can be written"
            ) from None
        return folder


@contextlib.contextmanager
def staging(out: Path | None) -> Iterator[Staging]:
    """The staging of one export, gone at the end of the block. ``out``: None where OUT is no folder."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="burler-export-") as made:
            yield Staging(Path(made))
        return
    _remove_leftovers(out)
    there = out.exists()
    folder = out / f"{_PREFIX}{secrets.token_hex(8)}"
    try:
        yield Staging(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not there:
            with contextlib.suppress(OSError):
                out.rmdir()  # an export that came to nothing leaves nothing


def _remove_leftovers(out: Path) -> None:
    for folder in out.glob(f"{_PREFIX}*"):
        if is_over(folder / _OWNER, folder):
            shutil.rmtree(folder, ignore_errors=True)
