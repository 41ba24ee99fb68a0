"""Where the batch files of a story lie: a folder, or a bucket of an S3 server on this machine."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

sys.path.append(str(Path(__file__).parents[1] / "batch"))


class Store(Protocol):
    """``root``: for the tap's config. ``environment``: what its process needs to get there."""

    @property
    def root(self) -> str: ...

    @property
    def environment(self) -> Mapping[str, str]: ...

    def read(self, url: str) -> bytes:
        """The bytes of a file; one that is missing is an AssertionError."""

    def has(self, url: str) -> bool:
        """Whether there is such a file."""

    def urls(self) -> set[str]:
        """Of all files, those that are still written as well."""


class Disk:
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self.root = str(folder)
        self.environment: Mapping[str, str] = {}

    def read(self, url: str) -> bytes:
        """See ``Store.read``."""
        assert self.has(url), f"named, but missing: {url}"
        return self._path(url).read_bytes()

    def has(self, url: str) -> bool:
        """See ``Store.has``."""
        return self._path(url).exists()

    def urls(self) -> set[str]:
        """See ``Store.urls``."""
        return {f"file://{path}" for path in Path(self.root).rglob("*") if path.is_file()}

    def _path(self, url: str) -> Path:
        assert url.startswith(f"file://{self.root}/"), url
        return Path(url.removeprefix("file://"))  # as it is: names need no decoding


class Bucket:
    """Keys below a prefix."""

    def __init__(self, server: Any, name: str) -> None:
        self._server, self._name = server, name
        self.root = server.url(name)
        self.environment = {**server.environment, "NO_PROXY": "127.0.0.1"}

    def read(self, url: str) -> bytes:
        """See ``Store.read``."""
        assert self.has(url), f"named, but missing: {url}"
        data: bytes = self._server.get(url)
        return data

    def has(self, url: str) -> bool:
        """See ``Store.has``."""
        return url.startswith(f"{self.root}/") and url in self.urls()

    def urls(self) -> set[str]:
        """See ``Store.urls``."""
        return {self._server.url(key) for key in self._server.keys(f"{self._name}/")}


@contextlib.contextmanager
def s3_server() -> Iterator[Any]:
    """A server in this process, with a bucket."""
    import s3_server as servers  # type: ignore[import-not-found]

    with servers.serving() as (url, door):
        server = servers.S3Server(url, door, "AKIASTORMSTORMSTORM1", "storm")
        try:
            yield server
        finally:
            server.close()
