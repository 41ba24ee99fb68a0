"""Where the files of a story lie, read by plain means: a folder, or a prefix on an S3 server in its own process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from support import objects, shared


class Folder:
    """A folder of this machine. ``url``: for programs; ``begin``: of the URLs of files; ``environment``: what programs
    need to get there."""

    def __init__(self, folder: Path) -> None:
        self.url = str(folder)
        self.begin = f"file://{folder}/"
        self.environment: Mapping[str, str] = {}

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None if there is none."""
        try:
            return (Path(self.url) / path).read_bytes()  # names need no decoding
        except FileNotFoundError:
            return None

    def paths(self) -> list[str]:
        """Of all files, hidden ones and those that are still written as well, sorted."""
        return sorted(os.path.relpath(path, self.url) for path in Path(self.url).rglob("*") if path.is_file())


class Bucket:
    """Keys below a prefix of a bucket; as ``Folder``."""

    def __init__(self, server: Any, name: str) -> None:
        self._server, self._name = server, name
        self.url = server.url(name)
        self.begin = f"{self.url}/"
        self.environment: Mapping[str, str] = {**server.environment, "NO_PROXY": "127.0.0.1"}

    def read(self, path: str) -> bytes | None:
        """See ``Folder.read``."""
        try:
            return self._server.get(f"{self._name}/{path}")
        except KeyError:
            return None

    def paths(self) -> list[str]:
        """See ``Folder.paths``."""
        return [key[len(self._name) + 1 :] for key in self._server.keys(f"{self._name}/")]


def place_of(folder: Path, s3: str | None) -> Folder | Bucket:
    """A place of a story's own. ``s3``: the endpoint of a server, if it is to lie there."""
    return Folder(folder / "files") if s3 is None else Bucket(objects.S3Server(s3, "storm"), folder.name)


@contextlib.contextmanager
def s3_endpoint() -> Iterator[str]:
    """The endpoint of an S3 server in a process of its own."""
    with shared.joined("objects", "support.objects") as where:
        yield where["endpoint_url"]
