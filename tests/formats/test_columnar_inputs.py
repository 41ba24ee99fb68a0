"""Odd and broken files of columns: whoever reads them, ``files.read`` (Parquet alone), ``burler.batch.read``,
``batch_files``, ``burler batch expand`` or a lake that takes their BATCH message, says the same of each."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import burler
import burler.files
from burler.errors import BurlerError
from burler.lake import LakeWriter, ingest, open_store
from burler.lake import read as read_lake
from burler.testing import run_tap

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "at": {"type": ["null", "string"], "format": "date-time"},
    },
}
NAMES = pa.table({"id": [1, 2], "name": ["value of it", "b"]})
TWO = [{"id": 1, "name": "value of it"}, {"id": 2, "name": "b"}]


def parquet(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def arrow(table: pa.Table, make: str = "new_file") -> bytes:
    out = io.BytesIO()
    with getattr(pa.ipc, make)(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def cut_between() -> bytes:
    """A stream that ends behind the first of its batches."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, NAMES.schema) as writer:
        writer.write_table(NAMES.slice(0, 1))
        size = out.tell()
        writer.write_table(NAMES.slice(1))
    return out.getvalue()[:size]


def out_of_bounds(make: str) -> bytes:
    """Where the texts begin and end stands in the file as numbers: wrong ones would be followed out of it."""
    data, ends = arrow(NAMES, make), b"\0\0\0\0\x0b\0\0\0\x0c\0\0\0"
    assert data.count(ends) == 1
    return data.replace(ends, b"\0\0\0\0\x0b\0\0\0\x0c\0\0\x40")


def times(*moments: Any, unit: str = "us", zone: str | None = None) -> pa.Table:
    return pa.table({"id": list(range(len(moments))), "at": pa.array(moments, pa.timestamp(unit, zone))})


def moment(year: int) -> dt.datetime:
    return dt.datetime(year, 12, 31, 23, 59, 59, 123456)  # noqa: DTZ001


def at(*texts: str | None) -> list[dict[str, Any]]:
    return [{"id": i, "at": text} for i, text in enumerate(texts)]


INT96 = {"use_deprecated_int96_timestamps": True}
NOT_WHOLE = "it is damaged or broken off, and no whole "
INPUTS: dict[str, tuple[str, bytes, list[dict[str, Any]] | str]] = {
    # what there is: format, bytes, the rows (without nulls) or the error
    "parquet": ("parquet", parquet(NAMES), TWO),
    "arrow": ("arrow", arrow(NAMES), TWO),
    "an arrow stream": ("arrow", arrow(NAMES, "new_stream"), TWO),
    "times of 96 bits": (
        "parquet",
        parquet(times(moment(1), moment(1970), None, moment(9999)), **INT96),
        at("0001-12-31T23:59:59.123456Z", "1970-12-31T23:59:59.123456Z", None, "9999-12-31T23:59:59.123456Z"),
    ),
    "nanoseconds of 96 bits": (
        "parquet",
        parquet(times(1, -1, unit="ns"), **INT96),
        at("1970-01-01T00:00:00.000000001Z", "1969-12-31T23:59:59.999999999Z"),
    ),
    "times without a zone in parquet": ("parquet", parquet(times(moment(2024))), at("2024-12-31T23:59:59.123456Z")),
    "times without a zone in arrow": ("arrow", arrow(times(moment(2024))), at("2024-12-31T23:59:59.123456Z")),
    "parquet without rows": ("parquet", parquet(NAMES.slice(0, 0)), []),
    "arrow without rows": ("arrow", arrow(NAMES.slice(0, 0)), []),
    "an arrow stream without rows": ("arrow", arrow(NAMES.slice(0, 0), "new_stream"), []),
    "an arrow stream cut between batches": ("arrow", cut_between(), "it is broken off: an Arrow stream ends with"),
    "arrow texts out of bounds": ("arrow", out_of_bounds("new_file"), NOT_WHOLE + "Arrow file"),
    "arrow stream texts out of bounds": ("arrow", out_of_bounds("new_stream"), NOT_WHOLE + "Arrow file"),
    "a cut off parquet": ("parquet", parquet(NAMES)[:-5], NOT_WHOLE + "Parquet file"),
    "half a parquet": ("parquet", parquet(NAMES)[:100], NOT_WHOLE + "Parquet file"),
    "a cut off arrow": ("arrow", arrow(NAMES)[:-5], NOT_WHOLE + "Arrow file"),
    "half an arrow": ("arrow", arrow(NAMES)[:200], NOT_WHOLE + "Arrow file"),
    "a broken page": (
        "parquet",
        parquet(NAMES, compression="none", write_page_checksum=True).replace(b"value of it", b"value of IT", 1),
        NOT_WHOLE + "Parquet file",
    ),
    "a name that is no text": ("arrow", arrow(NAMES).replace(b"name", b"\xd8ame"), NOT_WHOLE + "Arrow file"),
    "a text that is no text": ("arrow", arrow(NAMES).replace(b"value of", b"\xd8alue of"), NOT_WHOLE + "Arrow file"),
    "an empty parquet": ("parquet", b"", "it is empty, which no Parquet file is"),
    "an empty arrow": ("arrow", b"", "it is empty, which no Arrow file is"),
    "arrow for parquet": ("parquet", arrow(NAMES), "it is no Parquet file but an Arrow file"),
    "parquet for arrow": ("arrow", parquet(NAMES), "it is no Arrow file but a Parquet file"),
    "json for parquet": ("parquet", b'{"id":1}\n', "it is no Parquet file but JSON"),
    "csv for arrow": ("arrow", b"id,name\n1,a\n", "it is no Arrow file but something else"),
    "gzip for parquet": ("parquet", b"\x1f\x8b\x08\0\0", "it is no Parquet file but packed with gzip as a whole"),
}  # fmt: skip


def of_tap(make: Callable[[], Any]) -> list[Any]:
    tap = burler.tap("tap-x")

    @tap.sync("s", key_properties="id", schema=SCHEMA)
    def s(stream: Any) -> Any:
        yield from make()

    out = run_tap(tap)
    if out.result.errors:
        raise out.result.errors["s"]
    return out.records("s")


def batch(path: Path, form: str) -> dict[str, Any]:
    encoding = {"format": form, "compression": "none"}
    return {"type": "BATCH", "stream": "s", "encoding": encoding, "manifest": [f"file://{path}"]}


def messages(path: Path, form: str) -> io.BytesIO:
    said = {"type": "SCHEMA", "stream": "s", "schema": SCHEMA, "key_properties": ["id"]}
    return io.BytesIO(b"".join(json.dumps(message).encode() + b"\n" for message in (said, batch(path, form))))


def expanded(path: Path, form: str) -> list[Any]:
    parts: list[bytes] = []
    burler.batch.expand(messages(path, form), parts.append)
    found = map(json.loads, b"".join(parts).splitlines())
    return [message["record"] for message in found if message["type"] == "RECORD"]


def of_lake(path: Path, form: str) -> list[Any]:
    store = open_store(str(path.parent / "lake"))
    writer = LakeWriter(store, "tap-x", emit_state=lambda state: None)
    ingest(messages(path, form), writer, warn=lambda said: None)
    return list(read_lake(store).rows())


WAYS: dict[str, Callable[[Path, str], list[Any]]] = {
    "files": lambda path, form: of_tap(lambda: burler.files.read(str(path), format=form)),
    "batch_files": lambda path, form: of_tap(lambda: [burler.batch_files(path, format=form)]),
    "batch.read": lambda path, form: list(burler.batch.read(batch(path, form), SCHEMA, warn=lambda said: None).rows()),
    "expand": expanded,
    "lake": of_lake,
}


@pytest.mark.parametrize("name", INPUTS)
def test_each_way_says_the_same(tmp_path: Path, name: str) -> None:
    form, data, wanted = INPUTS[name]
    path = tmp_path / f"a.{form}"
    path.write_bytes(data)
    for way, read in WAYS.items():
        if (way, form) == ("files", "arrow"):
            continue
        try:
            found: Any = [{key: value for key, value in row.items() if value is not None} for row in read(path, form)]
        except BurlerError as error:
            found = str(error)
            assert "a." + form in found, way
        if isinstance(wanted, str):
            assert wanted in found, way
        else:
            assert found == [{k: v for k, v in row.items() if v is not None} for row in wanted], way
