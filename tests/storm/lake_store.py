"""Where the lake of a storm lies: a folder, or a prefix on an S3 server in a process of its own.

python lake_storm_store.py      serves until its input ends; prints its URL first
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

sys.path.append(str(Path(__file__).parents[1] / "batch"))


class Place(Protocol):
    """``url``: for the writers. ``environment``: what their processes need to get there."""

    @property
    def url(self) -> str: ...

    @property
    def environment(self) -> Mapping[str, str]: ...

    def read(self, path: str) -> bytes | None:
        """The bytes of a file below ``raw``'s parent, read by plain means; None if there is none."""

    def paths(self) -> list[str]:
        """Of all files, hidden ones as well, sorted."""


class Folder:
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.url = str(folder)
        self.environment: Mapping[str, str] = {}

    def read(self, path: str) -> bytes | None:
        """See ``Place.read``."""
        try:
            return (Path(self.url) / path).read_bytes()
        except FileNotFoundError:
            return None

    def paths(self) -> list[str]:
        """See ``Place.paths``."""
        root = Path(self.url)
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


class Bucket:
    """Keys below a prefix of a bucket."""

    def __init__(self, server: Any, name: str) -> None:
        self._server, self._name = server, name
        self.url = server.url(name)
        self.environment = {**server.environment, "NO_PROXY": "127.0.0.1"}

    def read(self, path: str) -> bytes | None:
        """See ``Place.read``."""
        try:
            data: bytes = self._server.get(f"{self._name}/{path}")
        except self._server.client.exceptions.NoSuchKey:
            return None
        return data

    def paths(self) -> list[str]:
        """See ``Place.paths``."""
        return [key[len(self._name) + 1 :] for key in self._server.keys(f"{self._name}/")]


@contextlib.contextmanager
def s3_server() -> Iterator[Any]:
    """A server with a bucket, in a process that ends with this block."""
    import s3_server as servers  # type: ignore[import-not-found]

    command = [sys.executable, str(Path(__file__))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=servers.clean_environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = json.loads(process.stdout.readline())["endpoint_url"]
            server = servers.S3Server(url, None, "AKIASTORMSTORMSTORM1", "storm")
            yield server
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


class OneAtATime:
    """Requests one after the other: moto compares and writes in two steps, which a real store does in one.

    A request whose sender goes away in the middle of it is none.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        if len(body) < length:
            raise ConnectionAbortedError
        environ["wsgi.input"] = io.BytesIO(body)
        with self._lock:
            return list(self._app(environ, start_response))


def _serve() -> None:
    import s3_server as servers

    with servers.serving() as (url, door):
        door._app = OneAtATime(door._app)
        print(json.dumps({"endpoint_url": url}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _serve()
