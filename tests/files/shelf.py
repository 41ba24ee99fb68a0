"""A store for tests: what it lists and what it says of its files stands in dicts, and it may fail."""

from __future__ import annotations

import contextlib
import io

import fsspec
from fsspec import AbstractFileSystem


class Shelf(AbstractFileSystem):
    """``shelf://...``: folders are there as soon as a file is in them."""

    protocol = "shelf"
    cachable = False
    files: dict[str, bytes] = {}  # noqa: RUF012  (a store is made anew for each pattern; what it holds stays)
    said: dict[str, dict] = {}  # noqa: RUF012
    fails: dict[str, Exception] = {}  # noqa: RUF012

    def _check(self, path):
        if path in self.fails:
            raise self.fails[path]

    def info(self, path, **_more):
        path = self._strip_protocol(path)
        self._check(path)
        if path in self.files:
            size = {"size": len(self.files[path])}
            return {"name": path, "type": "file", **size, **self.said.get(path, {})}
        if any(name.startswith(f"{path}/") for name in self.files):
            return {"name": path, "type": "directory", "size": 0}
        raise FileNotFoundError(path)

    def ls(self, path, detail=True, **_more):
        path = self._strip_protocol(path)
        self._check(path)
        below = {
            f"{path}/{name[len(path) + 1 :].partition('/')[0]}" for name in self.files if name.startswith(f"{path}/")
        }
        if not below:
            raise FileNotFoundError(path)
        return [self.info(name) for name in sorted(below)]

    def _open(self, path, mode="rb", **_more):
        self._check(f"open {path}")
        return Opened(self.files[path], self.fails.get(f"read {path}"))


class Opened(io.BytesIO):
    """A file; one that may not be read, too."""

    def __init__(self, data, error):
        super().__init__(data)
        self._error = error

    def read(self, size=-1, /):
        if self._error is not None:
            raise self._error
        return super().read(size)


@contextlib.contextmanager
def shelf():
    """The store, empty."""
    fsspec.register_implementation("shelf", Shelf, clobber=True)
    kept = (Shelf.files, Shelf.said, Shelf.fails)
    for one in kept:
        one.clear()
    try:
        yield Shelf
    finally:
        for one in kept:
            one.clear()
