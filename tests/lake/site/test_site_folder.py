"""The folder of a site: only burler's own files are ever replaced or removed, and no half site is left to be read."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from site_demo import NOW

from burler.errors import StorageError, UsageError
from burler.lake import LakeWriter
from burler.singer.messages import Schema
from support.internals import lake_site, site_output


def fill(out: Path, *pages: str, text: str = "new") -> int:
    with site_output.site_folder(out) as folder:
        for page in pages:
            folder.write(page, text.encode())
        return folder.publish()


def files(out: Path) -> list[str]:
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())


def test_pages_of_the_last_time_that_are_no_more_are_removed_with_their_folders(tmp_path):
    out = tmp_path / "deep" / "site"
    assert fill(out, "index.html", "taps/a/index.html", "taps/b/index.html") == 3
    (out / "CNAME").write_text("docs.example.org")
    assert fill(out, "index.html", "taps/b/index.html", text="newer") == 2
    assert files(out) == [site_output.MARKER, "CNAME", "index.html", "taps/b/index.html"]
    assert not (out / "taps" / "a").exists()
    assert (out / "index.html").read_text() == "newer"


@pytest.mark.parametrize("name", ["notes.txt", ".git", "index.html"])
def test_a_folder_that_holds_something_else_is_refused_and_stays(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match="holds things that are no site of burler's"):
        fill(tmp_path, "index.html")
    assert files(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_what_a_person_put_where_a_page_belongs_is_not_replaced(tmp_path):
    fill(tmp_path, "index.html", text="old")
    (tmp_path / "taps").mkdir()
    (tmp_path / "taps" / "a.html").write_text("mine")
    with pytest.raises(UsageError, match=r"a\.html is not burler's"):
        fill(tmp_path, "index.html", "taps/a.html")
    assert (tmp_path / "index.html").read_text() == "old"
    assert (tmp_path / "taps" / "a.html").read_text() == "mine"
    assert not list(tmp_path.glob(".burler-lake-site-new-*"))


def test_a_link_out_of_the_folder_is_never_followed(tmp_path):
    out, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    fill(out, "index.html", "taps/a.html")
    (out / "taps").rename(elsewhere)
    (out / "taps").symlink_to(elsewhere)
    with pytest.raises(UsageError, match="taps is not burler's"):
        fill(out, "index.html", "taps/a.html", text="newer")
    fill(out, "index.html")  # the old page is behind the link: it is not ours to remove any more
    assert (elsewhere / "a.html").read_text() == "new"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"format": 1}',
        '{"format": 2, "files": []}',
        '{"format": 1, "files": ["../../victim"]}',
        '{"format": 1, "files": ["/etc/passwd"]}',
        '{"format": 1, "files": ["a/../../victim"]}',
        '{"format": 1, "files": [7]}',
    ],
    ids=["torn", "list", "no-files", "newer", "up", "absolute", "around", "number"],
)
def test_a_list_of_files_that_burler_did_not_write_ends_it(tmp_path, text):
    out = tmp_path / "site"
    out.mkdir()
    (tmp_path / "victim").write_text("mine")
    (out / site_output.MARKER).write_text(text)
    with pytest.raises(UsageError, match="is not as burler writes it"):
        fill(out, "index.html")
    assert (tmp_path / "victim").read_text() == "mine"
    assert files(out) == [site_output.MARKER]


def test_what_a_killed_run_left_is_cleared_and_its_pages_are_known(tmp_path):
    code = (
        "import os, pathlib, sys\n"
        "from support.internals import site_output; site_folder = site_output.site_folder\n"
        "real = pathlib.Path.replace\n"
        "def replace(path, target):\n"
        "    if str(target).endswith('b.html'): os.kill(os.getpid(), 9)\n"
        "    return real(path, target)\n"
        "pathlib.Path.replace = replace\n"
        "with site_folder(pathlib.Path(sys.argv[1])) as folder:\n"
        "    for page in ('a.html', 'b.html', 'index.html'): folder.write(page, b'x')\n"
        "    folder.publish()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, timeout=60)
    assert done.returncode == -9
    assert (tmp_path / "a.html").exists()
    assert not (tmp_path / "index.html").exists()
    assert list(tmp_path.glob(".burler-lake-site-new-*"))
    fill(tmp_path, "index.html")
    assert files(tmp_path) == [site_output.MARKER, "index.html"]
    assert not list(tmp_path.glob(".burler-lake-site-new-*"))


def test_an_error_on_the_way_leaves_the_old_site_as_it_was(tmp_path):
    fill(tmp_path, "index.html", "a.html", text="old")
    with pytest.raises(RuntimeError), site_output.site_folder(tmp_path) as folder:
        folder.write("index.html", b"new")
        raise RuntimeError
    assert files(tmp_path) == [site_output.MARKER, "a.html", "index.html"]
    assert (tmp_path / "index.html").read_text() == "old"


def test_a_full_disk_is_told_and_leaves_the_old_site(tmp_path):
    """A limit on file sizes stands for the disk: writing beyond it fails as there."""
    fill(tmp_path, "index.html", text="old")
    code = (
        "import pathlib, resource, signal, sys\n"
        "from burler.errors import StorageError\n"
        "from support.internals import site_output; site_folder = site_output.site_folder\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    with site_folder(pathlib.Path(sys.argv[1])) as folder:\n"
        "        folder.write('index.html', b'x' * 2000)\n"
        "        folder.publish()\n"
        "except StorageError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60, capture_output=True, text=True
    )
    assert "index.html can't be written: File too large" in done.stdout
    assert (tmp_path / "index.html").read_text() == "old"
    assert files(tmp_path) == [site_output.MARKER, "index.html"]


def test_a_second_process_does_not_write_into_the_same_site(tmp_path):
    fill(tmp_path, "index.html")
    holder = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another lake docs is writing there"):
            fill(tmp_path, "index.html")
    finally:
        os.close(holder)
    fill(tmp_path, "index.html")


def test_a_file_where_the_folder_should_be_is_refused(tmp_path):
    (tmp_path / "site").write_text("mine")
    with pytest.raises(UsageError, match="can't be used: Not a directory"):
        fill(tmp_path / "site", "index.html")
    with pytest.raises((UsageError, StorageError), match="Not a directory"):
        fill(tmp_path / "site" / "below", "index.html")
    assert (tmp_path / "site").read_text() == "mine"


@pytest.mark.parametrize("path", ["../x", "/x", "a//b", "a/.hidden", "A.html", "", "a/../b", "ü.html"])
def test_no_page_can_be_written_outside_or_hidden(tmp_path, path):
    with pytest.raises(AssertionError), site_output.site_folder(tmp_path / "site") as folder:
        folder.write(path, b"x")
    assert not list(tmp_path.glob("x*"))


def test_the_site_of_a_changed_lake_replaces_the_old_one(lake, tmp_path):
    out = tmp_path / "site"
    for stream in ("first", "second"):
        with LakeWriter(lake.store, "tap-x", emit_state=lambda state: None) as writer:
            writer.schema(Schema(stream, {"type": "object"}, ()))
        lake_site.build_site(lake.store, out, url="x", now=NOW)
    assert (out / "taps" / "tap-x" / "second.html").exists()
    for path in (lake.path / "raw" / "tap-x" / "first").rglob("*.json"):
        path.unlink()
    (lake.path / "raw" / "tap-x" / "catalogue.json").unlink()
    lake_site.build_site(lake.store, out, url="x", now=NOW)
    assert not (out / "taps" / "tap-x" / "first.html").exists()
    assert json.loads((out / site_output.MARKER).read_text())["made by"] == "burler lake docs"
