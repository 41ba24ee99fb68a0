"""Where a ``file:`` URL points: one rule for roots, for what taps pass on, for what is read, and for lakes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from burler.errors import BurlerError, UsageError
from burler.lake import open_store
from support.internals import batch_storage, batch_urls, file_urls, native_head


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
    assert file_urls.local_path(url) == (None if path is None else Path(path))


def test_a_file_of_another_machine_is_none_of_ours() -> None:
    with pytest.raises(OSError, match="it is a file of the machine 'other'"):
        file_urls.local_path("file://other/data/a.jsonl")


@pytest.mark.parametrize("name", ["a%20b", "a b"])
def test_roots_and_readers_take_the_same_file_for_a_url(tmp_path: Path, name: str) -> None:
    """As it is written, where that is there: so a writer that escapes nothing is understood, too."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "x.jsonl").write_bytes(b"{}")
    url = f"file://{tmp_path}/a%20b"
    assert batch_storage.root_path(url) == folder
    assert open_store(url).url == str(folder)
    with batch_urls.open_url(f"{url}/x.jsonl") as one, native_head.open_file(f"{url}/x.jsonl", {}) as other:
        assert isinstance(one, io.BufferedReader) and one.read() == other.read() == b"{}"


@pytest.mark.parametrize("start", ["file://", "file:", "FILE://localhost"])
def test_lakes_and_roots_take_the_same_spellings(tmp_path: Path, start: str) -> None:
    """Also of a folder that is still to be made."""
    url = f"{start}{tmp_path}/new%41%3F"
    assert batch_storage.root_path(url) == tmp_path / "newA?"
    assert open_store(url).url == f"{tmp_path}/newA?"


@pytest.mark.parametrize(
    ("url", "lake"),
    [
        ("file://other/x", "names another machine"),
        ("file:x", "names no folder of this machine"),
        ("file:///x?y", "must be written as %3F"),
        ("file:///x#y", "must be written as %3F"),
        ("file:///x%00y", "is empty or no path"),
    ],
)
def test_a_root_or_a_lake_is_a_folder_of_this_machine(url: str, lake: str) -> None:
    with pytest.raises(BurlerError, match=r"names no folder of this machine|is empty or no path"):
        batch_storage.root_path(url)
    with pytest.raises(UsageError, match=lake):
        open_store(url)
