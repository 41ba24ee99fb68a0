"""Where a ``file:`` URL points: one rule for roots, for what taps pass on, for what is read, and for lakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from native_taps import tap_of
from piped import batch, config, packed

from burler import batch_files
from burler.batch import read
from burler.errors import ConfigError, UsageError
from burler.lake import open_store
from burler.testing import run_tap


def root_of(url: str) -> str:
    """Where files of a root lie, as messages name it."""
    schema = {"type": "SCHEMA", "stream": "s", "schema": {"properties": {"id": {}}}, "key_properties": []}
    row = {"type": "RECORD", "stream": "s", "record": {"id": 1}}
    out = packed(config(Path("/"), storage={"root": url}), schema, row)
    if out.error is not None:
        raise out.error
    return out.of("BATCH")[0]["manifest"][0].rpartition("/")[0]


@pytest.mark.parametrize("name", ["a%20b", "a b"])
def test_lakes_and_readers_take_the_same_file_for_a_url(tmp_path: Path, name: str) -> None:
    """As it is written, where that is there: so a writer that escapes nothing is understood, too."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "x.jsonl").write_bytes(b'{"id":1}\n')
    url = f"file://{tmp_path}/a%20b"
    assert open_store(url).url == str(folder)
    assert list(read(batch(f"{url}/x.jsonl")).rows()) == [{"id": 1}]
    assert run_tap(tap_of(batch_files(f"{url}/x.jsonl"))).records("orders") == [{"id": 1}]
    if name == "a b":
        assert root_of(url) == f"file://{folder}"


@pytest.mark.parametrize("start", ["file://", "file:", "FILE://localhost"])
def test_lakes_and_roots_take_the_same_spellings(tmp_path: Path, start: str) -> None:
    """Also of a folder that is still to be made."""
    url = f"{start}{tmp_path}/new%41%3F"
    assert root_of(f"{start}{tmp_path}/new%41") == f"file://{tmp_path}/newA"
    assert open_store(url).url == f"{tmp_path}/newA?"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("file://other/x", "names no folder of this machine"),
        ("file:x", "names no folder of this machine"),
        ("file:///x?y", r"names no folder of this machine.*\(with \? and # as %3F and %23\)"),
        ("file:///x#y", r"names no folder of this machine.*\(with \? and # as %3F and %23\)"),
        ("file:///x%00y", "is empty or no path"),
    ],
)
def test_a_root_or_a_lake_is_a_folder_of_this_machine(url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        root_of(url)
    with pytest.raises(UsageError, match=says):
        open_store(url)
