"""A lake with everything that real ones have: schema versions, other compressions, partition folders, activations."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from burler.lake import read_lines
from burler.singer.messages import ActivateVersion
from support.internals import hashing

DAY = 86_400.0
TEXT = {"type": ["null", "string"]}


def later(days: float) -> Callable[[], float]:
    """A clock that is so many days ahead."""
    return lambda: time.time() + days * DAY


def fill(lake: Any, *rows: int, stream: str = "users", start: int = 0, **schema: Any) -> None:
    """Rows as given numbers of ids, each number a file of its own."""
    with lake.writer() as writer:
        writer.schema(lake.schema(stream, **schema))
        for count in rows:
            lake.clock.forward(60)
            ids = range(start, start + count)
            writer.records(lake.page(stream, *ids, at=lake.clock.moment))
            writer.flush()
            start += count


def put(lake: Any, stream: str, name: str, rows: list[dict[str, Any]], at: dt.datetime, schema: Any) -> Path:
    """A data file that nobody committed, as a writer of another make would leave it. ``name`` is its compression, or
    the whole path below the schema's folder, with {times} in it."""
    line = hashing.schema_line(schema)
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    path = lake.path / "raw" / lake.tap_id / stream / hashing.schema_hash(line) / name.format(times=f"{stamp}-{stamp}")
    path.parent.mkdir(parents=True, exist_ok=True)
    moment = at.strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    messages = [{"type": "RECORD", "stream": stream, "record": row, "time_extracted": moment} for row in rows]
    data = b"".join([line + b"\n", *(json.dumps(one).encode() + b"\n" for one in messages)])
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(data))
    return path


@pytest.fixture
def rich(lake: Any) -> Any:
    """Two taps; streams with several schema versions, bz2 and plain files, partition folders, table versions."""
    fill(lake, 3, 2)
    fill(lake, 4, start=10, name=TEXT)
    with lake.writer(compression="bz2") as writer:
        writer.schema(lake.schema(name=TEXT, age={"type": "integer"}))
        writer.records(
            lake.page("users", {"id": 30, "name": "é", "age": 4}, {"id": 31, "age": 9}, at=lake.clock.moment)
        )
    with lake.writer(compression=None) as writer:
        writer.schema(lake.schema("orders of/us"))
        for version in (5, 6):
            writer.records(lake.page("orders of/us", 1, 2, at=lake.clock.moment, version=version))
            writer.activate_version(ActivateVersion("orders of/us", version))
            writer.flush()
        writer.records(lake.page("orders of/us", {"id": "no integer"}, at=lake.clock.moment))
    lake.clock.forward(3600)
    newest = lake.schema(name=TEXT, age={"type": "integer"})
    put(lake, "users", "year=2024/month=1/users-{times}.singer.gz", [{"id": 50, "age": 5}], lake.clock.moment, newest)
    other = type(lake)(lake.path, lake.store, lake.clock, tap_id="tap-y")
    fill(other, 1)
    return lake


def document(lake: Any, stream: str = "users") -> dict[str, Any]:
    return json.loads(lake.manifest_path(stream).read_bytes())


def save(lake: Any, changed: dict[str, Any], stream: str = "users") -> None:
    lake.manifest_path(stream).write_text(json.dumps(changed))


DEAD_LOCK = (
    b'{"writer-id":"gone-1","acquired":"2024-01-02T12:00:00.000000Z","updated":"2024-01-02T12:00:00.000000Z",'
    b'"epoch":1,"ttl-ms":1000}'
)
"""A ``singerlake.lock`` of a writer elsewhere that nobody has heard of since."""


def lines(lake: Any, stream: str = "users") -> list[bytes]:
    """All lines but SCHEMA, in replay order."""
    return [
        line for file in lake.load(stream).files for line in read_lines(lake.store, file.path) if b'"RECORD"' in line
    ]
