"""Files are read back as they were written, or with one clear error."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import zlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from burler.errors import LakeError
from burler.lake import read, read_lines, schema_message
from support.internals import hashing


@pytest.fixture
def file(lake: Any) -> Any:
    """A lake with one file of some size."""
    source = random.Random(1)
    with lake.writer() as writer:
        writer.schema(lake.schema(note={"type": "string"}))
        writer.records(lake.page("users", *({"id": n, "note": source.randbytes(300).hex()} for n in range(5000))))
    return lake.load().files[0]


@pytest.fixture(params=["isal", "zlib"], autouse=True)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "zlib":
        monkeypatch.setitem(__import__("sys").modules, "isal", None)


def test_lines_come_back(lake: Any, file: Any) -> None:
    lines = list(read_lines(lake.store, file.path))
    assert lines[0] == hashing.schema_line(lake.schema(note={"type": "string"})) + b"\n"
    assert [json.loads(line)["record"]["id"] for line in lines[1:]] == list(range(5000))
    pages = [page.lines for page in read(lake.store).pages()]
    assert len(pages) > 1
    assert b"".join(pages) == b"".join(lines[1:])


LENGTHS = (100, 70_000, 131_070, 131_071, 131_072, 131_073, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3_000_000)


def test_pages_end_with_lines_however_long_these_are(lake: Any) -> None:
    line = hashing.schema_line(lake.schema()) + b"\n"
    begin, end = b'{"type":"RECORD","stream":"users","record":{"id":', b"}}\n"
    for seed in range(4):
        source = random.Random(seed)
        lake.tap_id = f"tap-{seed}"
        lines = [begin + str(n).rjust(source.choice(LENGTHS) - len(begin + end)).encode() + end for n in range(12)]
        folder = lake.path / "raw" / lake.tap_id / "users" / hashing.schema_hash(line[:-1])
        folder.mkdir(parents=True)
        content = gzip.compress(b"".join([line, *lines]), compresslevel=1)
        (folder / "users-20240102T120000Z-20240102T120000Z.singer.gz").write_bytes(content)
        pages = [page.lines for page in read(lake.store, lake.tap_id).pages()]
        assert b"".join(pages) == b"".join(lines)
        assert all(page.endswith(b"\n") for page in pages)
        assert all(len(page) < (1 << 20) + 131_072 + max(map(len, lines)) for page in pages)


def test_a_missing_file_is_named(lake: Any, file: Any) -> None:
    Path(lake.store.locate(file.path)).unlink()
    with pytest.raises(LakeError, match=r"missing although the lake lists it"):
        list(read_lines(lake.store, file.path))


def rewrite(lake: Any, file: Any, change: Callable[[bytes], bytes], folder: str | None = None) -> str:
    path = Path(lake.store.locate(file.path))
    data = gzip.decompress(path.read_bytes())
    target = path if folder is None else path.parent.with_name(folder) / path.name
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(gzip.compress(change(data)))
    return str(target.relative_to(lake.path))


def test_a_changed_or_moved_file_does_not_hash_to_its_folder(lake: Any, file: Any) -> None:
    with pytest.raises(LakeError, match="line 1 hashes to"):
        list(read_lines(lake.store, rewrite(lake, file, lambda data: data, folder="1" * 11)))
    with pytest.raises(LakeError, match="line 1 hashes to"):
        list(read_lines(lake.store, rewrite(lake, file, lambda data: data.replace(b"id", b"ie", 1))))


@pytest.mark.parametrize("folder", ["customers1", "year=2020", "v2", "Y8Mjkb4i9yM0"])
def test_folders_of_other_writers_are_opaque(lake: Any, file: Any, folder: str) -> None:
    path = rewrite(lake, file, lambda data: data, folder=folder)
    assert len(list(read_lines(lake.store, path))) == 5001


def test_a_folder_named_in_base85_is_held_against_line_1_too(lake: Any, file: Any) -> None:
    with pytest.raises(LakeError, match="line 1 hashes to"):
        list(read_lines(lake.store, rewrite(lake, file, lambda data: data, folder="UMnRs&Xg$g")))
    line = next(read_lines(lake.store, file.path))
    path = rewrite(lake, file, lambda data: data, folder=hashing.schema_hash(line[:-1], "base85"))
    assert len(list(read_lines(lake.store, path))) == 5001


def test_line_1_must_be_a_schema(lake: Any, file: Any) -> None:
    with pytest.raises(LakeError, match="line 1 is no SCHEMA"):
        list(read_lines(lake.store, rewrite(lake, file, lambda data: data.partition(b"\n")[2])))
    with pytest.raises(LakeError, match="no complete first line"):
        list(read_lines(lake.store, rewrite(lake, file, lambda data: data[:20])))


def test_a_last_line_without_an_end_is_broken(lake: Any, file: Any) -> None:
    with pytest.raises(LakeError, match="last line has no end"):
        list(read_lines(lake.store, rewrite(lake, file, lambda data: data[:-1])))


def test_bz2_and_plain_damage(lake: Any) -> None:
    for compression in ("bz2", None):
        with lake.writer(compression=compression) as writer:
            writer.schema(lake.schema())
            writer.records(lake.page("users", *range(10)))
    assert lake.ids() == [*range(10), *range(10)]
    for path in lake.files():
        path.write_bytes(path.read_bytes()[:-3])
    for file in lake.load().files:
        with pytest.raises(LakeError, match="truncated or corrupt"):
            list(read_lines(lake.store, file.path))
    (path,) = lake.files("**/*.bz2")
    path.write_bytes(bz2.compress(b"")[:4] + b"garbage garbage garbage garbage")
    with pytest.raises(LakeError, match="Restore it"):
        list(read_lines(lake.store, str(path.relative_to(lake.path))))


def test_long_lines_and_carriage_returns_stay_whole(lake: Any) -> None:
    long = "x" * 3_000_000
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", {"id": 1, "t": long}, {"id": 2}))
        line = b'{"type":"RECORD","stream":"users",\r"record":{"id":3}}\n'
        writer.page("users", line, 1, ["2024-01-02T12:00:00.000000Z"])
    lines = list(read_lines(lake.store, lake.load().files[0].path))
    assert lines[3] == line
    assert json.loads(lines[1])["record"]["t"] == long


def test_schema_message(lake: Any, file: Any) -> None:
    stream = lake.load()
    message = schema_message(lake.store, stream, file.hash)
    assert message == lake.schema(note={"type": "string"})
    lake.manifest_path().unlink()
    assert schema_message(lake.store, lake.load(), file.hash) == message
    with pytest.raises(LakeError, match="nothing in the lake says"):
        schema_message(lake.store, stream, "1" * 11)


def test_a_schema_keeps_the_digits_of_its_numbers(lake: Any) -> None:
    """Also where a float would not have them, and wherever it is read from."""
    fine = Decimal("0.10000000000000000001")
    with lake.writer() as writer:
        writer.schema(lake.schema(price={"type": "number", "multipleOf": fine, "minimum": 1.5}))
        writer.records(lake.page("users", 1))
    (digest,) = lake.load().hashes
    for _ in range(2):
        price = schema_message(lake.store, lake.load(), digest).schema["properties"]["price"]
        assert (price["multipleOf"], price["minimum"]) == (fine, Decimal("1.5"))
        lake.manifest_path().unlink(missing_ok=True)


def test_zlib_reads_what_isal_wrote(lake: Any, file: Any) -> None:
    data = Path(lake.store.locate(file.path)).read_bytes()
    assert zlib.decompress(data, 31).count(b"\n") == 5001
