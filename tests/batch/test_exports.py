"""``ExportFiles``: files of a source that pass through a tap's own code."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import burler
from burler.errors import DeclarationError
from burler.testing import run_tap

ORDERS = {"properties": {"id": {"type": "integer"}, "total": {"type": ["null", "string"]}}}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("compression", "ending"), [(None, ".csv"), ("none", ".csv"), ("gz", ".csv.gz")])
def test_what_is_written_is_a_file_that_batch_files_takes(tmp_path: Path, compression: str | None, ending: str):
    tap = burler.tap("tap-shop")
    files = burler.batch.ExportFiles(str(tmp_path / "out"), tap="tap-shop", stream="orders", compression=compression)

    @tap.sync("orders", key_properties="id", schema=ORDERS)
    def orders():
        for row in (b'1,"a"\n', b"2,\n"):
            with files.new() as file:
                file.write(b"id,total\n")
                file.write(row)
            yield burler.batch_files(file.url)

    run = run_tap(tap, {"batch_config": {"storage": {"root": str(tmp_path / "own")}}})
    urls = [url for message in run.messages if message["type"] == "BATCH" for url in message["manifest"]]
    data = [Path(url.removeprefix("file://")).read_bytes() for url in urls]
    assert [gzip.decompress(one) if ending.endswith("gz") else one for one in data] == [
        b'id,total\n1,"a"\n', b"id,total\n2,\n"
    ]  # fmt: skip
    assert all(name.endswith(ending) for name in names(tmp_path / "out"))
    assert run_tap(tap).records("orders") == [{"id": 1, "total": "a"}, {"id": 2, "total": None}]
    cleaned = burler.batch.prune(str(tmp_path / "out"), older_than_seconds=0, now=lambda: 4e9)
    assert len(cleaned) == 4 and names(tmp_path / "out") == []


def test_after_an_error_nothing_of_a_file_is_there(tmp_path: Path):
    files = burler.batch.ExportFiles(str(tmp_path), tap="t", stream="s")
    with pytest.raises(RuntimeError), files.new() as file:
        file.write(b"id\n1\n")
        raise RuntimeError("the source is gone")
    assert file.url == "" and names(tmp_path) == []


@pytest.mark.parametrize(
    "given", [{"format": "xml"}, {"compression": "zip"}, {"format": "parquet", "compression": "gzip"}]
)
def test_what_can_not_be_is_refused(tmp_path: Path, given: dict[str, str]):
    with pytest.raises(DeclarationError, match="ExportFiles"):
        burler.batch.ExportFiles(str(tmp_path), tap="t", stream="s", **given)
