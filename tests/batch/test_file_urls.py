"""Where a ``file:`` URL points: one rule for roots, for what taps pass on, and for what is read."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from burler.batch.file_urls import local_path
from burler.batch.native_head import open_file
from burler.batch.storage import root_path
from burler.batch.urls import open_url
from burler.errors import BurlerError


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///data/a%20b.jsonl", "/data/a b.jsonl"),
        ("file://localhost/data/a.jsonl", "/data/a.jsonl"),
        ("FILE://LOCALHOST/data/a.jsonl", "/data/a.jsonl"),
        ("file:/data/a.jsonl", "/data/a.jsonl"),
        ("file:///data/what?.jsonl", "/data/what?.jsonl"),
        ("file:///data/a%3Fb%23c.jsonl", "/data/a?b#c.jsonl"),
        ("/data/a.jsonl", None),
        ("s3://file/a.jsonl", None),
    ],
)
def test_a_file_url_is_read_as_others_wrote_it(url: str, path: str | None) -> None:
    assert local_path(url) == (None if path is None else Path(path))


def test_a_file_of_another_machine_is_none_of_ours() -> None:
    with pytest.raises(OSError, match="it is a file of the machine 'other'"):
        local_path("file://other/data/a.jsonl")


@pytest.mark.parametrize("name", ["a%20b", "a b"])
def test_roots_and_readers_take_the_same_file_for_a_url(tmp_path: Path, name: str) -> None:
    """As it is written, where that is there: so a writer that escapes nothing is understood, too."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "x.jsonl").write_bytes(b"{}")
    url = f"file://{tmp_path}/a%20b"
    assert root_path(url) == folder
    with open_url(f"{url}/x.jsonl") as one, open_file(f"{url}/x.jsonl", {}) as other:
        assert isinstance(one, io.BufferedReader) and one.read() == other.read() == b"{}"


@pytest.mark.parametrize("url", ["file://other/x", "file:x", "file:///x?y", "file:///x#y"])
def test_a_root_is_a_folder_of_this_machine(url: str) -> None:
    with pytest.raises(BurlerError, match="names no folder of this machine"):
        root_path(url)
