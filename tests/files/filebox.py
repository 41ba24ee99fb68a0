"""Files for tests, and taps that read them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zipfile
from pathlib import Path

import burler
import burler.files
from burler.testing import run_tap

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "total": {"type": ["null", "number"]},
        "paid": {"type": ["null", "boolean"]},
        "at": {"type": ["null", "string"], "format": "date-time"},
    },
}


def zip_of(members):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members.items():
            out.writestr(name, data)
    return sink.getvalue()


PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


class Box:
    """A folder; ``put`` writes a file with a time of change, each a second after the one before if none is given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._clock = 1_700_000_000

    def put(self, name, data, *, at=None):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = data.encode() if isinstance(data, str) else data
        ending = name.rpartition(".")[2]
        path.write_bytes(PACK[ending](data) if ending in PACK else data)
        self._clock += 1
        os.utime(path, (at or self._clock, at or self._clock))
        return path

    def __getitem__(self, pattern):
        return str(self.folder / pattern)


def tap_of(pattern, *, schema=ORDER, key="id", declared=None, **options):
    """A tap with the stream ``orders`` that reads files."""
    tap = burler.tap("tap-files")

    @tap.sync("orders", key_properties=key, schema=schema, **(declared or {}))
    def orders(stream):
        yield from burler.files.read(pattern, stream=stream, **options)

    return tap


def rows(pattern, **options):
    """The rows of one run without a state, which must go well."""
    out = run_tap(tap_of(pattern, **options))
    assert not out.result.errors, out.result.errors
    return out.records("orders")


def error(pattern, **options):
    """The one error of a run."""
    out = run_tap(tap_of(pattern, **options))
    return str(next(iter(out.result.errors.values()), "no error"))


def ids(out):
    return [row["id"] for row in out.records("orders")]
