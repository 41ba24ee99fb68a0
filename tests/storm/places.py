"""Where the files of a story lie, read by plain means: a folder, or a prefix on an S3 server in its own process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "batch"))  # its s3_server

_KEY, _SECRET = "AKIASTORMSTORMSTORM1", "storm"


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
            data: bytes = self._server.get(f"{self._name}/{path}")
        except self._server.client.exceptions.NoSuchKey:
            return None
        return data

    def paths(self) -> list[str]:
        """See ``Folder.paths``."""
        return [key[len(self._name) + 1 :] for key in self._server.keys(f"{self._name}/")]


def place_of(folder: Path, s3: str | None) -> Folder | Bucket:
    """A place of a story's own. ``s3``: the endpoint of a server, if it is to lie there."""
    if s3 is None:
        return Folder(folder / "files")
    import s3_server as servers

    return Bucket(servers.S3Server(s3, None, _KEY, _SECRET), folder.name)


@contextlib.contextmanager
def s3_endpoint() -> Iterator[str]:
    """The endpoint of an S3 server in a process that ends with this block."""
    import s3_server as servers

    words = [sys.executable, str(Path(__file__))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=servers.clean_environment()) as one:
        assert one.stdin is not None and one.stdout is not None
        try:
            yield json.loads(one.stdout.readline())["endpoint_url"]
        finally:
            one.stdin.close()
            try:
                one.wait(10)
            except subprocess.TimeoutExpired:
                one.kill()


@contextlib.contextmanager
def s3_server() -> Iterator[Any]:
    """The same as a server with a bucket."""
    import s3_server as servers

    with s3_endpoint() as url:
        yield servers.S3Server(url, None, _KEY, _SECRET)


class _OneAtATime:
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


if __name__ == "__main__":  # serves until its input ends; prints its endpoint first
    import s3_server as served

    with served.serving() as (_url, _door):
        _door._app = _OneAtATime(_door._app)
        print(json.dumps({"endpoint_url": _url}), flush=True)
        sys.stdin.read()
