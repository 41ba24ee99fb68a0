"""Lakes on the tests' servers. Those on S3 are made quickly: to make a client takes longer than most tests.

from s3_lakes import gcs_lake, s3_lake

store = s3_lake(s3_server)                        # in the folder "lake" of the test's bucket
store = s3_lake(s3_server, patience_seconds=0.2)  # gives up soon
with gcs_lake() as (store, server): ...           # an imitation; so is azure_lake()
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from cloud_servers import AzureServer, GcsServer, azure_connection, serving

from burler.lake import Store, probe
from burler.testing import canary
from support.internals import azure_store as azure
from support.internals import gcs_store as gcs
from support.internals import object_store
from support.internals import s3_store as s3

PATH = "raw/t/s/manifest.json"
PART_BYTES = 5 << 20  # the least that S3 takes
BIG = PART_BYTES * 2 + 17
CONFLICT = (409, "ConditionalRequestConflict")
"""What ``failing`` answers where S3 says: ask again."""


@functools.cache
def _bucket(options: str, _pid: int) -> s3.S3Bucket:
    return s3.connect("s3://any-bucket", json.loads(options))[0]


def _connect(url: str, options: Mapping[str, Any]) -> tuple[s3.S3Bucket, str]:
    bucket, _, path = url.removeprefix("s3://").partition("/")
    return s3.S3Bucket(_bucket(json.dumps(options), os.getpid())._fs, bucket), path


def s3_lake(server: Any, folder: str = "lake", *, patience_seconds: float | None = None) -> object_store.ObjectStore:
    """A store on the server; all of them share one client."""
    return object_store.ObjectStore(server.url(folder), server.options, _connect, patience_seconds=patience_seconds)


@contextlib.contextmanager
def gcs_lake(folder: str = "lake") -> Iterator[tuple[object_store.ObjectStore, GcsServer]]:
    """A store in a bucket of its own; needs gcsfs."""
    server = GcsServer()
    with serving(server) as url:
        yield (
            object_store.ObjectStore(f"gs://bucket/{folder}", {"endpoint_url": url, "token": "anon"}, gcs.connect),
            server,
        )


@contextlib.contextmanager
def azure_lake(folder: str = "lake") -> Iterator[tuple[object_store.ObjectStore, AzureServer]]:
    """A store in a container of its own; needs adlfs."""
    server = AzureServer()
    with serving(server) as url:
        options = {"connection_string": azure_connection(url, canary("azure-key"))}
        yield object_store.ObjectStore(f"az://bucket/{folder}", options, azure.connect), server


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

    def __init__(self, begin: str, *answers: Any, holding: str = "") -> None:
        self.begin, self.holding, self.answers = begin, holding, list(answers)

    def __call__(self, asked: str) -> Any:
        if asked.startswith(self.begin) and self.holding in asked and self.answers:
            return self.answers.pop(0)
        return None


def s3_lake_of_small_parts(server: Any, monkeypatch: pytest.MonkeyPatch) -> object_store.ObjectStore:
    """A store that has been probed, and sends data files in parts from ``BIG`` bytes on."""
    monkeypatch.setattr(s3, "PART_BYTES", PART_BYTES)
    store = s3_lake(server)
    assert probe(store)
    return store
