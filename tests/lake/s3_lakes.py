"""Lakes on the tests' servers, and what stores do that are not as S3 is.

from s3_lakes import gcs_lake, s3_lake

store = s3_lake(s3_server)                   # in the folder "lake" of the test's bucket
with unconditional(s3_server): ...           # the server takes conditions and does not look at them
with gcs_lake() as (store, server): ...      # an imitation; so is azure_lake()
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from cloud_servers import AzureServer, GcsServer, Server, azure_connection, serving

from burler.lake import Store, open_store
from burler.testing import canary

PATH = "raw/t/s/manifest.json"
BIG = (16 << 20) + 17
"""A data file that is sent in two parts."""
CONFLICT = (409, "ConditionalRequestConflict")
"""What ``failing`` answers where S3 says: ask again."""
_NUMBERS = itertools.count(1)


def s3_lake(server: Any, folder: str = "lake") -> Store:
    """A store on the server."""
    return open_store(server.url(folder), options=server.options)


@functools.cache
def _cloud(kind: str) -> tuple[Server, dict[str, Any]]:
    """One imitation of each kind for all tests of this process."""
    server = {"gs": GcsServer, "az": AzureServer}[kind]()
    url = serving(server)
    if kind == "gs":
        return server, {"endpoint_url": url, "token": "anon"}
    return server, {"connection_string": azure_connection(url, canary("azure-key"))}


@contextlib.contextmanager
def _cloud_lake(kind: str) -> Iterator[tuple[Store, Any]]:
    server, options = _cloud(kind)
    yield open_store(f"{kind}://bucket/some/lake-{next(_NUMBERS)}", options=options), server


gcs_lake = functools.partial(_cloud_lake, "gs")
"""A store in a folder of its own; needs gcsfs."""
azure_lake = functools.partial(_cloud_lake, "az")
"""A store in a folder of its own; needs adlfs."""


def again(store: Store, server: Any, *, must_exist: bool = False) -> Store:
    """The same place, opened anew."""
    options = _cloud(store.url[:2])[1] if isinstance(server, Server) else server.options
    return open_store(store.url, must_exist=must_exist, options=options)


@contextlib.contextmanager
def in_front_of(server: Any, act: Callable[[Any, dict[str, Any], Any], Any]) -> Iterator[None]:
    """``act(app, environ, start_response)`` takes the requests of an S3 server meanwhile."""
    door = server._door
    app, door._moto = door._moto, lambda environ, start_response: act(app, environ, start_response)
    try:
        yield
    finally:
        door._moto = app


@contextlib.contextmanager
def unconditional(server: Any, *, writes: bool = True, deletes: bool = True) -> Iterator[None]:
    """The server takes conditional requests, and does not look at the condition."""

    def act(app: Any, environ: dict[str, Any], start_response: Any) -> Any:
        if deletes if environ["REQUEST_METHOD"] == "DELETE" else writes:
            environ = {name: value for name, value in environ.items() if name not in _CONDITIONS}
        return app(environ, start_response)

    with in_front_of(server, act):
        yield


_CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")


def twice(app: Any, environ: dict[str, Any], start_response: Any) -> Any:
    """A proxy that makes each PUT a second time, and hands on what came of that."""
    if environ["REQUEST_METHOD"] == "PUT":
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        list(app({**environ, "wsgi.input": io.BytesIO(body)}, lambda *_args: None))
        environ = {**environ, "wsgi.input": io.BytesIO(body)}
    return app(environ, start_response)


class Backend:
    """moto's own memory, for many objects at once."""

    def __init__(self, server: Any) -> None:
        from moto.s3.models import s3_backends

        self._bucket = server.bucket
        account = next(a for a in s3_backends if server.bucket in s3_backends[a]["aws"].buckets)
        self._backend = s3_backends[account]["aws"]

    def put(self, key: str, data: bytes = b"") -> None:
        self._backend.put_object(self._bucket, key, data)

    def clear(self) -> None:
        self._backend.buckets[self._bucket].keys.clear()


def content(store: Store, path: str = PATH) -> bytes | None:
    """The bytes of a small file; None: there is none."""
    blob = store.read(path)
    return None if blob is None else blob.data


class Once:
    """A rule: the first requests that begin so and hold a word get those answers, one after another."""

    def __init__(self, begin: str | tuple[str, ...], *answers: Any, holding: str = "") -> None:
        self.begin, self.holding, self.answers = begin, holding, list(answers)

    def __call__(self, asked: str) -> Any:
        if asked.startswith(self.begin) and self.holding in asked and self.answers:
            return self.answers.pop(0)
        return None
