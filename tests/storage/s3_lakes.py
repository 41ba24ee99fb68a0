"""Stores on the tests' servers, and what stores do that are not as S3 is.

from s3_lakes import gcs_lake, s3_lake

store = s3_lake(s3_server)                   # in the folder "lake" of the test's bucket
with unconditional(s3_server): ...           # the server takes conditions and does not look at them
with gcs_lake() as (store, server): ...      # an imitation; so is azure_lake()
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator
from typing import Any

from cloud_servers import AzureServer, GcsServer, Server, azure_connection, serving

from burler.lake import Store, open_store
from burler.testing import canary
from support.internals import batch_config, batch_storage

PATH = "raw/t/s/manifest.json"
BIG = (16 << 20) + 17
"""A data file that is sent in two parts."""
CONFLICT = (409, "ConditionalRequestConflict")
"""What ``failing`` answers where S3 says: ask again."""
_NUMBERS = itertools.count(1)


def as_batch(root: str, options: dict[str, Any] | None = None) -> Store:
    """The store of a place as BATCH opens it: what a bucket keeps is not found out first."""
    return batch_storage.open_storage(batch_config.BatchStorage(root, "", options or {})).store


def s3_lake(server: Any, folder: str = "lake", *, batch: bool = False) -> Store:
    """A store on the server."""
    if batch:
        return as_batch(server.url(folder), server.options)
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
def _cloud_lake(kind: str, *, batch: bool = False) -> Iterator[tuple[Store, Any]]:
    server, options = _cloud(kind)
    url = f"{kind}://bucket/some/lake-{next(_NUMBERS)}"
    yield as_batch(url, options) if batch else open_store(url, options=options), server


gcs_lake = functools.partial(_cloud_lake, "gs")
"""A store in a folder of its own; needs gcsfs."""
azure_lake = functools.partial(_cloud_lake, "az")
"""A store in a folder of its own; needs adlfs."""


def again(store: Store, server: Any, *, must_exist: bool = False) -> Store:
    """The same place, opened anew."""
    options = _cloud(store.url[:2])[1] if isinstance(server, Server) else server.options
    return open_store(store.url, must_exist=must_exist, options=options)


@contextlib.contextmanager
def unconditional(server: Any, *, writes: bool = True, deletes: bool = True) -> Iterator[None]:
    """The server takes conditional requests, and does not look at the condition."""

    def rule(asked: str) -> dict[str, None]:
        changes = deletes if asked.startswith("DELETE") else writes
        return dict.fromkeys(("If-Match", "If-None-Match")) if changes else {}

    with server.failing(rule):
        yield


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
