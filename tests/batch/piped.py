"""Short names for tests of what stands between a tap and a target: lines in, lines out, files in a folder."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from burler.batch import convert, expand, pack, read
from support.internals import batch_config

SCHEMA = {
    "type": "SCHEMA",
    "stream": "users",
    "schema": {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}},
    "key_properties": ["id"],
}
TIME = "2024-01-02T03:04:05.000000Z"


def lines(*messages: Any) -> bytes:
    """Messages as a tap writes them; bytes are lines as they are."""
    return b"".join((m if isinstance(m, bytes) else json.dumps(m).encode()) + b"\n" for m in messages)


def rows(*ids: int) -> bytes:
    """Rows as they stand in a file of JSON lines."""
    return b"".join(b'{"id":%d, "name":"n%d"}\n' % (number, number) for number in ids)


def record(number: int, stream: str = "users", **more: Any) -> dict[str, Any]:
    """A RECORD."""
    return {"type": "RECORD", "stream": stream, "record": {"id": number, "name": f"n{number}"}, **more}


def state(value: Any) -> dict[str, Any]:
    """A STATE."""
    return {"type": "STATE", "value": {"at": value}}


def file(path: Path, content: bytes, *, packed: bool = False) -> str:
    """A file; its URL."""
    path.write_bytes(gzip.compress(content) if packed else content)
    return f"file://{path}"


def batch(*urls: str, **more: Any) -> dict[str, Any]:
    """A BATCH of JSON lines, as the proposal has it."""
    return {"type": "BATCH", "stream": "users", "time_extracted": TIME, "manifest": list(urls), **more}


def config(root: Path, form: str = "jsonl", compression: str = "none", **more: Any) -> batch_config.BatchConfig:
    """A ``batch_config`` for files in a folder."""
    encoding = {"format": form, "compression": compression}
    return batch_config.read_batch_config({"encoding": encoding, "storage": {"root": str(root)}, **more})


class Piped:
    """One call of ``expand``, ``pack`` or ``convert``: what it wrote, said and raised."""

    def __init__(self, function: Callable[..., Any], data: bytes | Any, *given: Any, **options: Any) -> None:
        self.parts: list[bytes] = []
        self.warnings: list[str] = []
        self.error: Exception | None = None
        self.done: Any = None
        source = io.BytesIO(data) if isinstance(data, bytes) else data
        try:
            self.done = function(source, self.parts.append, *given, warn=self.warnings.append, **options)
        except Exception as error:
            self.error = error

    @property
    def raw(self) -> bytes:
        return b"".join(self.parts)

    @property
    def messages(self) -> list[dict[str, Any]]:
        self.check()
        return parsed(self.raw)

    def check(self) -> None:
        """Whatever happened, lines are whole."""
        assert self.raw == b"" or self.raw.endswith(b"\n")

    def of(self, kind: str, stream: str | None = None) -> list[dict[str, Any]]:
        return [m for m in self.messages if m["type"] == kind and stream in (None, m.get("stream"))]

    @property
    def ids(self) -> list[int]:
        return [m["record"]["id"] for m in self.of("RECORD")]


def parsed(raw: bytes) -> list[dict[str, Any]]:
    """Lines as messages, every digit kept."""
    return [json.loads(line, parse_float=Decimal) for line in raw.split(b"\n") if line.strip()]


def expanded(*messages: Any, **options: Any) -> Piped:
    """``expand`` of messages."""
    return Piped(expand, lines(*messages), **options)


def packed(given: batch_config.BatchConfig, *messages: Any, **options: Any) -> Piped:
    """``pack`` of messages."""
    return Piped(pack, lines(*messages), given, **options)


def converted(given: batch_config.BatchConfig, *messages: Any, **options: Any) -> Piped:
    """``convert`` of messages."""
    return Piped(convert, lines(*messages), given, **options)


def written(form: str, schema: Any, *given: str, compression: str = "none", options: Any = None, **more: Any) -> bytes:
    """The file that ``pack`` makes of rows, which are JSON; ``options`` of the format, ``more`` of ``encoding``.

    In memory: a disk would be waited for, file by file.
    """
    import fsspec

    encoding = {"format": form, "compression": compression, "format_options": options or {}, **more}
    out = packed(
        batch_config.read_batch_config({"encoding": encoding, "storage": {"root": "memory://written"}}),
        {"type": "SCHEMA", "stream": "users", "schema": schema, "key_properties": []},
        *(f'{{"type":"RECORD","stream":"users","record":{row}}}'.encode() for row in given),
    )
    if out.error is not None:
        raise out.error
    (message,) = out.of("BATCH")
    store = fsspec.filesystem("memory")
    data = store.cat(message["manifest"][0])
    store.rm("/written", recursive=True)
    return data


def pages_of(
    data: bytes, form: str, schema: Any = None, compression: str | None = None, told: Any = None, **options: Any
) -> Iterator[tuple[bytes, int]]:
    """The pages that ``read`` gives of a file; ``told`` is a list for what it remarks."""
    with tempfile.TemporaryDirectory() as folder:
        url = file(Path(folder) / "file", data)
        message = batch(url, format={"name": form, "options": options}, compression={"name": compression})
        yield from read(message, schema, warn=([] if told is None else told).append).pages()


def lines_of(data: bytes, *given: Any, **options: Any) -> bytes:
    """The lines of all pages."""
    pages = list(pages_of(data, *given, **options))
    assert all(count and lines.count(b"\n") == count and lines.endswith(b"\n") for lines, count in pages)
    return b"".join(lines for lines, _ in pages)
