"""Publications that end half way: killed, or on a full disk. The table is as it was, and nothing stays behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from format_names import FILES, LOCAL
from format_samples import arrow, change, row

PUBLISHING = Path(__file__).with_name("publishing.py")


def publish(format: Any, **said: Any) -> subprocess.CompletedProcess[str]:
    """One publication in a process of its own."""
    about = {"kind": format.kind, "place": format.place, "options": dict(format.options), "rows": 10, **said}
    return subprocess.run(
        [sys.executable, str(PUBLISHING), json.dumps(about)], capture_output=True, text=True, timeout=120, check=False
    )


def contents(format: Any) -> list[tuple[int, str]]:
    """The table's rows as (id, text), read by somebody else."""
    from format_readers import reader

    return sorted(reader(format)())


@pytest.mark.parametrize("format", LOCAL, indirect=True)
def test_killed_between_write_and_commit(format: Any, packages: None) -> None:
    target = format.target()
    target.open()
    target.publish(arrow([row(1, "before")]), change("replace", numbers={"n": 1}))
    state = format.target().open()
    assert publish(format, change="merge" if format.kind == "jdbc" else "append", at="check").returncode == -9
    assert contents(format) == [(1, "before")]
    if not format.ask:
        left = [path for path in format.folder.rglob("_pending-*") if path.is_file()]
        assert left, "the kill left nothing to clean up: this test proves nothing"
    else:
        assert format.ask("select 1 from pg_tables where tablename like '%stage%'")
    assert format.target().open() == state
    assert not list(format.folder.rglob("_pending-*"))
    assert contents(format) == [(1, "before")]
    if format.ask:
        assert format.ask("select 1 from pg_tables where tablename like '%stage%'") == []
    else:
        assert len({path.parent for path in format.folder.rglob("data-*/*.parquet")}) == 1


@pytest.mark.parametrize("format", ["parquet"], indirect=True)
def test_killed_between_version_and_pointer(format: Any, packages: None) -> None:
    """The version counts; readers of the pointer see the one before, until the next export mends it."""
    target = format.target()
    target.open()
    target.publish(arrow([row(1, "before")]), change("replace", numbers={"n": 1}))
    assert publish(format, change="append", at="point").returncode == -9
    assert contents(format) == [(1, "before")]
    state = format.target().open()
    assert (state.version, dict(state.numbers)) == (1, {"n": 2})
    assert len(contents(format)) == 11


@pytest.mark.parametrize(
    ("format", "kind"),
    [
        ("delta", "append"),
        ("parquet", "append"),
        ("iceberg", "replace"),
        pytest.param("delta", "merge", marks=pytest.mark.nightly),
    ],
    indirect=["format"],
)
def test_full_disk(format: Any, kind: str, packages: None) -> None:
    """Files may grow to 64 KB only: the rows' file does not."""
    target = format.target()
    target.open()
    target.publish(arrow([row(1, "before")]), change("replace", numbers={"n": 1}))
    before = set(format.folder.rglob("*"))
    ended = publish(format, change=kind, limit=65536, rows=3000, width=400)
    assert ended.returncode == 1
    assert "ExportError" in ended.stderr
    assert contents(format) == [(1, "before")]
    assert set(format.folder.rglob("data-*/*")) <= before
    assert dict(format.target().open().numbers) == {"n": 1}
    target = format.target()
    target.open()
    target.publish(arrow([row(2, "after")]), change("append"))
    assert contents(format) == [(1, "before"), (2, "after")]


@pytest.mark.parametrize("format", FILES, indirect=True)
def test_folder_that_can_not_be_made(format: Any, packages: None) -> None:
    """A file stands where the table's folder should be."""
    from burler.errors import ExportError

    format.folder.parent.mkdir(exist_ok=True)
    format.folder.write_text("a file")
    target = format.target()
    with pytest.raises(ExportError):
        target.open()
        target.publish(arrow([row(1)]), change("replace"))
    assert format.folder.read_text() == "a file"
