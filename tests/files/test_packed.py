"""Packed files: gz, bz2, xz, zst and zip; broken, torn, hostile, huge."""

from __future__ import annotations

import gzip
import io
import zipfile

import pyarrow
import pyarrow.parquet
import pytest
from filebox import error, ids, rows, tap_of, zip_of

from burler.testing import run_tap

TEXT = "id,name\n" + "".join(f"{i},{i:x}\n" for i in range(2000))


def zst(data):
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return sink.getvalue().to_pybytes()


PACKED = {
    "gz": lambda data: gzip.compress(data),
    "bz2": lambda data: __import__("bz2").compress(data),
    "xz": lambda data: __import__("lzma").compress(data),
    "zst": zst,
    "zip": lambda data: zip_of({"inside.csv": data}),
}


def place(box, name, data):
    path = box.folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("packing", PACKED)
def test_what_is_packed_is_read(box, packing):
    place(box, f"a.csv.{packing}", PACKED[packing](TEXT.encode()))
    assert len(rows(box[f"a.csv.{packing}"])) == 2000
    place(box, "b.bin", PACKED[packing](TEXT.encode()))
    for spelled in {packing, {"gz": "gzip", "zst": "zstd"}.get(packing, packing)}:
        assert len(rows(box["b.bin"], format="csv", compression=spelled)) == 2000


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz", "zip"])
def test_a_bomb_is_stopped(box, packing):
    place(box, f"a.csv.{packing}", PACKED[packing](b"id\n" + b"1\n" * 1_500_000))
    said = error(box["a*"], max_unpacked_bytes=100_000)
    assert "100,000" in said and "max_unpacked_bytes" in said


def test_a_zip_that_says_it_is_too_much_is_refused_before_any_row(box):
    place(box, "a.zip", zip_of({"a.csv": "id\n1\n", "b.csv": b"id\n" + b"1\n" * 10_000}))
    out = run_tap(tap_of(box["a.zip"], max_unpacked_bytes=20_000))
    assert ids(out) == [] and "holds 20,008 bytes" in str(out.result.errors["orders"])


def test_a_zip_that_lies_about_its_size_gives_no_more_than_it_says(box):
    data = bytearray(zip_of({"a.csv": b"id\n" + b"1\n" * 100_000}))
    real = (200_003).to_bytes(4, "little")
    assert data.count(real) == 2
    place(box, "a.zip", bytes(data.replace(real, (5).to_bytes(4, "little"))))
    out = run_tap(tap_of(box["a.zip"]))
    assert len(ids(out)) <= 1 and "a.zip/a.csv'" in str(out.result.errors["orders"])


def test_members_are_chosen_by_a_pattern_and_each_has_its_format(box):
    zipped = zip_of(
        {
            "2024/a.csv": "id,name\n1,a\n",
            "2024/b.jsonl": '{"id": 2}\n',
            "readme.txt": "hello",
            "__MACOSX/2024/a.csv": "x",
            ".hidden.csv": "x",
            "empty/": "",
        }
    )
    place(box, "all.zip", zipped)
    assert [row["id"] for row in rows(box["all.zip"])] == [1, 2]
    assert [row["id"] for row in rows(box["all.zip"], member="*.csv")] == [1]
    assert "all.zip/.hidden.csv'" in error(box["all.zip"], member=".hidden*")
    assert [row["id"] for row in rows(box["all.zip"], member="2024/*.jsonl")] == [2]
    said = error(box["all.zip"], member="*.xml")
    assert "no member of it is one" in said and "2024/a.csv" in said
    assert "its name does not say" in error(box["all.zip"], member="readme.txt")


def test_hostile_member_names_are_names_and_no_paths(box, tmp_path):
    names = ["../../outside.csv", "/etc/absolute.csv", "C:\\windows.csv", "a/../../b.csv", "x\ny.csv"]
    schema = {"properties": {"id": {"type": "integer"}, "_file": {"type": "string"}}}
    place(box, "a.zip", zip_of({name: f"id\n{i}\n" for i, name in enumerate(names)}))
    before = sorted(path for path in tmp_path.parent.rglob("*"))
    found = rows(box["a.zip"], schema=schema, add="_file")
    assert [row["_file"] for row in found] == [f"a.zip/{name}" for name in names]
    assert sorted(path for path in tmp_path.parent.rglob("*")) == before


def test_a_zip_with_a_password_or_nothing_in_it(box):
    data = bytearray(zip_of({"a.csv": "id\n1\n"}))
    at = data.find(b"PK\x01\x02")
    data[at + 8] |= 1
    data[6] |= 1
    place(box, "a.zip", bytes(data))
    assert "packed with a password" in error(box["a.zip"])
    sink = io.BytesIO()
    zipfile.ZipFile(sink, "w").close()
    place(box, "b.zip", sink.getvalue())
    assert "In it: nothing" in error(box["b.zip"])


def test_a_long_row_in_a_zip_is_read_from_its_beginning_once_more(box):
    text = "id,name\n" + "1,a\n" * 3000 + f"2,{'x' * 50_000}\n3,b\n"
    place(box, "a.zip", zip_of({"a.csv": text, "b.csv": "id\n4\n"}))
    from burler.files import Csv

    found = rows(box["a.zip"], csv=Csv(block_bytes=4096))
    assert [row["id"] for row in found] == [1] * 3000 + [2, 3, 4]


def test_packed_parquet_goes_through_a_temporary_file_without_a_name(box):
    table = pyarrow.table({"id": [1, 2], "name": ["a", None]})
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    place(box, "a.zip", zip_of({"t.parquet": sink.getvalue()}))
    place(box, "b.parquet.gz", gzip.compress(sink.getvalue()))
    wanted = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    assert rows(box["a.zip"]) == wanted and rows(box["b*"]) == wanted
