"""Odd, broken, cut and empty files of text: whoever reads them, ``files.read``, ``batch_files`` as rows,
``burler.batch.read``, ``burler batch expand``, a lake that takes their BATCH message or, what is gzip, has such a file
of its own, says the same of each. Files of columns: ``test_columnar_inputs``."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import io
import itertools
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import zstandard

import burler
import burler.files
from burler.errors import BurlerError, LakeError
from burler.lake import LakeWriter, ingest, open_store
from burler.lake import read as read_lake
from burler.singer.messages import Records, Schema, record_prefix_suffix
from burler.testing import run_tap

FIELDS = {"type": "object", "properties": {name: {"type": ["null", "string"]} for name in ("id", "name")}}
ROWS = [{"id": str(number), "name": f"n{number * 7919 % 10007}"} for number in range(2000)]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
ONE, TWO = {"id": "1", "name": "a"}, {"id": "2", "name": "b"}


def at(data: bytes, place: int) -> bytes:
    """Data with another byte at a place."""
    changed = bytearray(data)
    changed[place] ^= 0x55
    return bytes(changed)


CUT, BROKEN = "it is cut off: its gzip data ends before its end", "its gzip data can't be unpacked"
BEHIND = "there is something else behind the end of its"
GZIP: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    # what becomes of a file's text, and the error; "" for none
    "whole": (gzip.compress, ""),
    "of two members": (lambda text: gzip.compress(text[:100]) + gzip.compress(b"") + gzip.compress(text[100:]), ""),
    "with zeros behind it": (lambda text: gzip.compress(text) + bytes(100_000), ""),
    "without a byte": (lambda _text: b"", "it is empty, and so no gzip file"),
    "cut behind its first byte": (lambda text: gzip.compress(text)[:1], CUT),
    "cut in its header": (lambda text: gzip.compress(text)[:5], CUT),
    "cut in the middle": (lambda text: gzip.compress(text)[:2000], CUT),
    "cut before its checksum": (lambda text: gzip.compress(text)[:-8], CUT),
    "cut in its last byte": (lambda text: gzip.compress(text)[:-1], CUT),
    "cut in its second member": (lambda text: gzip.compress(text) + gzip.compress(b"\n" * 100)[:-3], CUT),
    "changed in the middle": (lambda text: at(gzip.compress(text), 2000), "its gzip data"),
    "of another checksum": (lambda text: at(gzip.compress(text), -6), BROKEN),
    "of another length": (lambda text: at(gzip.compress(text), -2), BROKEN),
    "with text behind it": (lambda text: gzip.compress(text) + b"more " * 20, BEHIND),
    "with a few letters behind it": (lambda text: gzip.compress(text) + b"more", BEHIND),
    "with a few letters behind zeros": (lambda text: gzip.compress(text) + bytes(70_000) + b"more", BEHIND),
    "with a few zeros behind it": (lambda text: gzip.compress(text) + bytes(3), ""),
    "cut in the header of its second member": (lambda text: gzip.compress(text) + gzip.compress(b"")[:1], CUT),
    "no gzip": (lambda text: text, "it is no gzip file"),
    "zstd": (zstandard.compress, "it is no gzip file: it is zstd"),
}
OTHERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "zstd": ("zst", zstandard.compress), "bz2": ("bz2", bz2.compress), "xz": ("xz", lzma.compress)
}  # fmt: skip


def of_packing(name: str, ending: str, pack: Callable[[bytes], bytes]) -> dict[str, Any]:
    """What happens to files of each packing."""
    cut = f"its {name} data ends before its end"
    return {
        name: (ending, pack, ""),
        f"{name} without text": (ending, lambda _text: pack(b""), []),
        f"{name} of two parts": (ending, lambda text: pack(text[:100]) + pack(text[100:]), ""),
        f"{name} without a byte": (ending, lambda _text: b"", f"it is empty, and so no {name} file"),
        f"{name} cut": (ending, lambda text: pack(text)[:-3], cut),
        f"{name} cut in the middle": (ending, lambda text: pack(text)[:2000], cut),
        f"{name} cut in its second part": (ending, lambda text: pack(text) + pack(b"\n")[:-3], cut),
        f"{name} with text behind it": (ending, lambda text: pack(text) + b"more " * 20, BEHIND),
        f"{name} with a few letters behind it": (ending, lambda text: pack(text) + b"mor", BEHIND),
        f"{name} that is none": (ending, lambda text: text, f"it is no {name} file"),
        f"{name} that is gzip": (ending, gzip.compress, f"it is no {name} file: it is gzip"),
    }


PACKED: dict[str, tuple[str, Callable[[bytes], bytes], Any]] = {
    **{f"gzip {name}": ("gz", make, said) for name, (make, said) in GZIP.items()},
    **{case: made for name, (ending, pack) in OTHERS.items() for case, made in of_packing(name, ending, pack).items()},
    "gzip in gzip": ("gz", lambda text: gzip.compress(gzip.compress(text)), "it is gzip"),
    "zstd with a frame to be skipped": (
        "zst",
        lambda text: b"\x5f\x2a\x4d\x18\2\0\0\0hi" + zstandard.compress(text),
        "",
    ),
}
HALF = '{"id": "\\ud83d"}'
LINE_FILES: dict[str, tuple[bytes | str, list[dict[str, Any]] | str]] = {
    "empty": (b"", []),
    "blank": (b" \n\r\n\t\n", []),
    "a byte order mark": (b'\xef\xbb\xbf{"id":"1","name":"a"}\n', [ONE]),
    "a byte order mark alone": (b"\xef\xbb\xbf", []),
    "blank lines between": (b'\n{"id":"1","name":"a"}\r\n\r\n  \n{"id":"2","name":"b"}', [ONE, TWO]),
    "half of a surrogate pair": (HALF, [{"id": "\ud83d"}]),
    "cut in its last line": (b'{"id":"1"}\n{"id":"2', "line 2: it is cut off: the file ends there"),
    "cut within a letter": (b'{"id":"1"}\n{"id":"\xc3', "line 2: it is no text in UTF-8"),
    "lines that make up for each other": (b'{"a":{"b":1}\n,"c":{}}{"a":1}\n', "line 1: it is no JSON object"),
    "two objects on a line": (b'{"id":"1"}\n{"id":"2"}{"id":"3"}\n', "line 2: it is no JSON object"),
    "an object on two lines": (b'{"id":"1"}\n{"id":"2",\n"name":"b"}\n', "line 2: it is no JSON object"),
    "an array": (b'{"id":"1"}\n\n[2]\n', "line 3: it is no JSON object"),
    "nested deeply": (b'{"id":' + b"[" * 100_000 + b"\n", "line 1: it is no JSON object (nested too deeply)"),
    "no text": (b'{"id":"1"}\n{"id":"\xff"}\n', "line 2: it is no text in UTF-8"),
    "UTF-16": ('{"id":"1"}\n'.encode("utf-16"), "line 1: it is no text in UTF-8"),
    "Parquet": (b"PAR1....PAR1", "it is Parquet"),
    "a zip": (b"PK\x03\x04....", "it is a zip file"),
}  # fmt: skip
CSV_FILES: dict[str, tuple[bytes | str, list[dict[str, Any]] | str]] = {
    "quotes and line ends": ('id,name\r\n1,"a\r\n""b"""\r\n\r\n2,b', [{"id": "1", "name": 'a\r\n"b"'}, TWO]),
    "null and empty": ('id,name\n1,\n2,""\n', [{"id": "1", "name": None}, {"id": "2", "name": ""}]),
    "a byte order mark": ('\ufeff"id",name\n1,a\n', [ONE]),
    "a byte order mark in a field": ("id,name\n1,\ufeffa\n", [{"id": "1", "name": "\ufeffa"}]),
    "a header alone": ("id,name\n", []),
    "a header without its end": ("id,name", []),
    "a header and blank lines": ("id,name\r\n\r\n", []),
    "a last row without its end": ('id,name\n1,"b"""', [{"id": "1", "name": 'b"'}]),
    "a quote that closes twice": ('id,name\n1,"a" "b"\n', "row 2: a quote within a field"),
    "a quote in its last letter": ('id,name\n1,a\n2,"', "row 3: a quote that never ends"),
    "a stray quote": ('id,name\n1,5" disk\n2,6" disk\n', "row 2: a quote within a field"),
    "a quote that opens by mistake": ('id,name\n1,"abc\n2,x\n3,y"z\n4,d\n', "row 2: a quote within a field"),
    "a quote behind a space": ('id,name\n1, "a, b"\n', "row 2: a quote within a field"),
    "a quote that never ends": ('id,name\n1,a\n2,"b\n3,c\n', "row 3: a quote that never ends"),
    "a header whose quote never ends": ('id,"name\n1,a\n', "row 1: a quote that never ends"),
    "rows that end with a carriage return": ("id,name\r1,a\r2,b\r", "row 1: a carriage return outside of quotes"),
    "a lone carriage return": ("id,name\n1,a\rb\n", "row 2: a carriage return outside of quotes"),
    "a row cut off": ("id,name\n1,a\n2\n", "row 3: 1 fields, where 2 columns are expected"),
    "a carriage return that ends some rows": ('id,name\n1,"a\rb"\n2,c\r3,d\n', "row 3: a carriage return"),
    "a row too long": ("id,name\n1,a,\n", "row 2: 3 fields, where 2 columns are expected"),
    "another encoding": ("id,name\n1,é\n".encode("latin-1"), "row 2: it is no text in UTF-8"),
    "UTF-16": ("id,name\n1,a\n".encode("utf-16"), "row 1: it is no text in UTF-8"),
    "zstd": (zstandard.compress(b"id,name\n"), "it is zstd"),
    "Parquet": (b"PAR1abcd", "it is Parquet"),
}  # fmt: skip
CASES = (
    {
        f"jsonl: {name}": ("jsonl", ending, make(LINES), ROWS if said == "" else said)
        for name, (ending, make, said) in PACKED.items()
    }
    | {f"jsonl: {name}": ("jsonl", "", data, wanted) for name, (data, wanted) in LINE_FILES.items()}
    | {f"csv: {name}": ("csv", "", data, wanted) for name, (data, wanted) in CSV_FILES.items()}
)  # fmt: skip


def of_files(path: Path, _form: str, _packed: str) -> list[Any]:
    found: list[Any] = []
    for page in burler.files.read(str(path)):
        is_text = hasattr(page, "data")
        found += map(json.loads, page.data.splitlines()) if is_text else page.to_pylist()
    return found


def message(path: Path, form: str, packed: str) -> dict[str, Any]:
    compression = {"": "none", "gz": "gzip", "zst": "zstd"}[packed]
    encoding = {"format": form, "compression": compression}
    return {"type": "BATCH", "stream": "s", "encoding": encoding, "manifest": [f"file://{path}"]}


def of_batch(path: Path, form: str, packed: str) -> list[Any]:
    return list(burler.batch.read(message(path, form, packed), FIELDS, warn=lambda said: None).rows())


def messages(path: Path, form: str, packed: str) -> io.BytesIO:
    said = {"type": "SCHEMA", "stream": "s", "schema": FIELDS, "key_properties": []}
    state = {"type": "STATE", "value": 1}
    return io.BytesIO(b"".join(json.dumps(one).encode() + b"\n" for one in (said, message(path, form, packed), state)))


def of_expand(path: Path, form: str, packed: str) -> list[Any]:
    parts: list[bytes] = []
    is_read = False
    try:
        burler.batch.expand(messages(path, form, packed), parts.append, warn=lambda said: None)
        is_read = True
    finally:
        found = [json.loads(line) for line in b"".join(parts).splitlines()]
        assert ("STATE" in {one["type"] for one in found}) == is_read
    return [one["record"] for one in found if one["type"] == "RECORD"]


def of_batch_files(path: Path, form: str, packed: str) -> list[Any]:
    tap = burler.tap("tap-x")

    @tap.sync("s", schema=FIELDS)
    def s(stream: Any) -> Any:
        yield burler.batch_files(path, check=False)

    out = run_tap(tap)
    if out.result.errors:
        raise out.result.errors["s"]
    return out.records("s")


def of_lake(path: Path, form: str, packed: str) -> list[Any]:
    store, states = open_store(str(path.parent / "lake")), []
    writer = LakeWriter(store, "tap-x", emit_state=states.append)
    try:
        ingest(messages(path, form, packed), writer, warn=lambda said: None)
    except BurlerError:
        assert not states
        raise
    return list(read_lake(store).rows())


@pytest.mark.parametrize("case", CASES)
def test_each_way_says_the_same(tmp_path: Path, case: str) -> None:
    form, packed, data, wanted = CASES[case]
    path = tmp_path / (f"a.{form}.{packed}" if packed else f"a.{form}")
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    ways = [of_files] if packed in ("bz2", "xz") else [of_files, of_batch, of_expand, of_batch_files, of_lake]
    for way in ways:
        if (way, data) == (of_batch_files, HALF):
            continue  # rows of a tap hold no such text
        try:
            found: Any = way(path, form, packed)
        except BurlerError as error:
            found = str(error).replace(", row", ": row").replace(", line", ": line")
            assert f"{path.name}'" in found, way
        assert wanted in found if isinstance(wanted, str) else found == wanted, (way, str(found)[:300])


@pytest.mark.parametrize("case", GZIP)
def test_the_lake_says_the_same_of_gzip(tmp_path: Path, case: str) -> None:
    make, wanted = GZIP[case]
    store = open_store(str(tmp_path))
    prefix, suffix = record_prefix_suffix("s", NOON, None)
    lines = b"".join(prefix + line + suffix for line in LINES.splitlines())
    with LakeWriter(store, "tap-x", emit_state=lambda state: None) as writer:
        writer.schema(Schema("s", FIELDS, ()))
        writer.records(Records("s", lines, len(ROWS), NOON, None))
    (path,) = tmp_path.rglob("*.singer.gz")
    path.write_bytes(make(gzip.decompress(path.read_bytes())))
    try:
        found: Any = list(read_lake(store).rows())
    except LakeError as error:
        found = str(error)
        assert path.name in found and "burler lake rebuild" in found and error.exit_code == 1
    assert wanted in found if wanted else found == ROWS, str(found)[:300]


MANY = [{"id": number, "at": "x" if number == 11_998 else "2024-01-02T00:00:00Z"} for number in range(12_000)]


@pytest.mark.parametrize(
    ("way", "kind"), [*itertools.product(["files", "batch_files"], ["csv", "jsonl", "parquet"]), ("files", "json")]
)
def test_the_error_of_a_row_names_its_file(tmp_path: Path, way: str, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    rows = pa.Table.from_pylist(MANY)
    if kind == "parquet":
        pq.write_table(rows, path)
    elif kind == "csv":
        pa.csv.write_csv(rows, path)
    else:
        text = [json.dumps(row) for row in MANY]
        path.write_text("\n".join(text) if kind == "jsonl" else f"[{','.join(text)}]")
    tap = burler.tap("tap-x")
    node = {"type": "string", "format": "date-time"}

    @tap.sync("s", schema={"type": "object", "properties": {"id": {"type": "integer"}, "at": node}})
    def s(stream: Any) -> Any:
        if way == "files":
            yield from burler.files.read(str(path))
        else:
            yield burler.batch_files(path)

    said = str(run_tap(tap).result.errors["s"])
    assert f"(file '{path}', row {11_999 + (kind == 'csv'):,}): field 'at' is text that is no date-time" in said


def zipped(**members: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members.items():
            out.writestr(name.replace("_", "."), data)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (zipped(a_csv=b"id,name\n1,a\n"), ""),
        (zipped(a_csv=b'id,name\n1,"a\n'), "a.zip/a.csv', row 2: a quote that never ends"),
        (zipped(a_jsonl=b'{"id":"1","name":"a"}\n{"id"'), "a.zip/a.jsonl', line 2: it is cut off"),
        (zipped(a_csv=b"id,name\n1,a\n")[:-30], "a.zip': it can't be read as a zip"),
        (at(zipped(a_csv=b"id,name\n" + b"1,a\n" * 1000), 50), "a.zip/a.csv': it is damaged: its zip data can't"),
        (b"", "a.zip': it can't be read as a zip"),
        (b"id,name\n1,a\n", "a.zip': it can't be read as a zip"),
        (zipped(), "no member of it is one that is read"),
    ],
)
def test_zip_files(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    try:
        assert of_files(path, "", "") == [ONE] and not said
    except BurlerError as error:
        assert said and said in str(error), str(error)
