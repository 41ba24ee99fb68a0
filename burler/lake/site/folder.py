"""The folder of a site: all new pages are made beside the old ones, then take their places, then old ones go.

A file there says which files are burler's. What is not is never touched, and a folder without that file must be empty.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from burler.errors import StorageError, UsageError
from burler.localfile import FileLock, remove_leftovers, replace_file

MARKER = ".burler-lake-site.json"
_NEW = ".burler-lake-site-new-"
_PATH = re.compile(r"(?:[a-z0-9_-]+/)*[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\Z")


class SiteFolder:
    """Pages on their way into a folder; nothing of it is seen before ``publish``."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._staged: dict[str, None] = {}
        self._new = out / f"{_NEW}{secrets.token_hex(6)}"

    def write(self, path: str, content: bytes) -> None:
        """Make a page. ``path`` is relative, of small letters, digits, ``_``, ``-`` and single dots.

        Raises:
            StorageError: the disk is full, or the like.
        """
        if not _PATH.match(path) or path in self._staged:
            raise AssertionError(f"{path!r} is no path for a page, or was written before")
        target = self._new / path
        with self._told(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        self._staged[path] = None

    def publish(self) -> int:
        """Put all pages in their places and remove those of the last time that are no more; how many files there are.

        Raises:
            UsageError: a file that is not burler's stands where a page belongs. Nothing is changed then.
            StorageError: the disk is full, or the like.
        """
        old = _listed(self._out)
        for path in self._staged:
            self._check_place(path, ours=path in old)
        with self._told(MARKER):
            self._mark({**dict.fromkeys(old), **self._staged})  # killed from here on: the next time knows them all
        # The front page comes last: what it links to is there by then.
        for path in sorted(self._staged, key=lambda path: (path == "index.html", path)):
            with self._told(path):
                target = self._out / path
                target.parent.mkdir(parents=True, exist_ok=True)
                (self._new / path).replace(target)
        for path in old:
            if path not in self._staged:
                self._remove(path)
        with self._told(MARKER):
            self._mark(self._staged)
        return len(self._staged)

    def begin(self) -> None:
        """Mark the folder as a site's, and remove what a killed run has left."""
        with self._told(MARKER):
            self._out.mkdir(parents=True, exist_ok=True)
            remove_leftovers(self._out / MARKER)
            for item in self._out.glob(f"{_NEW}*"):
                shutil.rmtree(item)
            if not (self._out / MARKER).exists():
                self._mark({})
            self._new.mkdir()

    def clear(self) -> None:
        """Remove what was not published."""
        shutil.rmtree(self._new, ignore_errors=True)

    def _check_place(self, path: str, *, ours: bool) -> None:
        here = self._out
        for part in path.split("/"):
            here = here / part
            is_page = here == self._out / path
            if here.is_symlink() or (here.exists() and not (ours if is_page else here.is_dir())):
                raise UsageError(
                    f"{here} is not burler's, and a page belongs there. Move it away, or give lake docs another folder."
                )
            if is_page and here.is_dir():
                raise UsageError(f"{here} is a folder, and a page belongs there. Move it away.")

    def _remove(self, path: str) -> None:
        """An old page, and the folders that are empty after it. A link on the way is not followed."""
        parents = list((self._out / path).parents)[: path.count("/")]
        if any(parent.is_symlink() for parent in parents):
            return
        with contextlib.suppress(OSError):
            (self._out / path).unlink()
            for parent in parents:
                parent.rmdir()

    def _mark(self, files: Iterable[str]) -> None:
        text = json.dumps({"format": 1, "made by": "burler lake docs", "files": sorted(files)}, indent=1) + "\n"
        replace_file(self._out / MARKER, text.encode())

    @contextlib.contextmanager
    def _told(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(f"{self._out / path} can't be written: {error.strerror}.") from None


@contextlib.contextmanager
def site_folder(out: Path) -> Iterator[SiteFolder]:
    """A folder to make a site in: a new one, an empty one, or one that holds a site of burler's.

    Raises:
        UsageError: it is no folder, holds something else, or another process writes a site there.
        StorageError: it can't be made or written.
    """
    _check(out)
    folder = SiteFolder(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = FileLock(out, needed=False)
    except OSError as error:
        raise StorageError(f"{out} can't be made: {error.strerror}.") from None
    if not lock.taken:
        raise UsageError(f"{out}: another lake docs is writing there. Wait for it, or give another folder.")
    with lock:
        try:
            folder.begin()
            yield folder
        finally:
            folder.clear()


def _check(out: Path) -> None:
    try:
        names = {item.name for item in out.iterdir()}
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{out} can't be used: {error.strerror}. Give lake docs a folder for the site.") from None
    if MARKER in names:
        _listed(out)
    elif names:
        raise UsageError(
            f"{out} holds things that are no site of burler's ({_some(sorted(names))}). Give a new or an empty folder."
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _listed(out: Path) -> dict[str, None]:
    """The files that are ours, by the folder's own list; nothing outside of it, whatever the list says."""
    try:
        document = json.loads((out / MARKER).read_text(encoding="utf-8"))
        files = document["files"]
        if document["format"] != 1 or not all(isinstance(path, str) and _PATH.match(path) for path in files):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(
            f"{out / MARKER} is not as burler writes it: nobody knows which files are the site's. "
            "Remove the site's files, or give lake docs another folder."
        ) from None
    return dict.fromkeys(files)
