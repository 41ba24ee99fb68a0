"""The folder of a site: only burler's own files are ever replaced or removed, and no half site is left to be read."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from site_demo import write

from support.cli import Ended, burler

MARKER = ".burler-lake-site.json"


def make(lake, out: Path, *streams: str, title: str = "new", code: int = 0) -> Ended:
    """The site of a lake with these streams."""
    shutil.rmtree(lake.path, ignore_errors=True)
    for stream in streams:
        write(lake, stream)
    done = burler("lake", "docs", lake.path, out, "--title", title)
    assert done.code == code, done.stderr
    return done


def files(out: Path) -> list[str]:
    found = (path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    return sorted(name for name in found if not name.startswith("assets/"))


def title(out: Path) -> str:
    return (out / "index.html").read_text().partition("<h1>")[2].partition("</h1>")[0]


def test_pages_of_the_last_time_that_are_no_more_are_removed(lake, tmp_path):
    out = tmp_path / "deep" / "site"
    make(lake, out, "a", "b")
    before = files(out)
    assert {"taps/tap-x/a.html", "taps/tap-x/b.html"} <= set(before)
    (out / "CNAME").write_text("docs.example.org")
    (out / ".git").mkdir()
    make(lake, out, "b", title="newer")
    assert files(out) == sorted(["CNAME", *(name for name in before if "/a." not in name)])
    assert (title(out), (out / ".git").is_dir()) == ("newer", True)
    assert (out / MARKER).is_file()


@pytest.mark.parametrize("name", ["notes.txt", ".git", "index.html"])
def test_a_folder_that_holds_something_else_is_refused_and_stays(lake, tmp_path, name):
    out = tmp_path / "site"
    out.mkdir()
    (out / name).write_text("mine")
    assert "holds things that are no site of burler's" in make(lake, out, "a", code=2).stderr
    assert files(out) == [name]
    assert (out / name).read_text() == "mine"


def test_what_a_person_put_where_a_page_belongs_is_not_replaced(lake, tmp_path):
    out = tmp_path / "site"
    make(lake, out, "b", title="old")
    (out / "taps" / "tap-x" / "a.html").write_text("mine")
    assert "a.html is not burler's" in make(lake, out, "a", "b", code=2).stderr
    assert (title(out), (out / "taps" / "tap-x" / "a.html").read_text()) == ("old", "mine")
    assert not list(out.glob(".burler-lake-site-new-*"))


def test_a_link_out_of_the_folder_is_never_followed(lake, tmp_path):
    out, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    make(lake, out, "a", title="old")
    (out / "taps").rename(elsewhere)
    (out / "taps").symlink_to(elsewhere)
    before = (elsewhere / "tap-x" / "a.html").read_text()
    assert "taps is not burler's" in make(lake, out, "a", title="newer", code=2).stderr
    assert (elsewhere / "tap-x" / "a.html").read_text() == before


LISTS = [
    "{",
    "[]",
    '{"format": 1}',
    '{"format": 2, "files": []}',
    '{"format": 1, "files": ["../../victim"]}',
    '{"format": 1, "files": ["/etc/passwd"]}',
    '{"format": 1, "files": ["a/../../victim"]}',
    '{"format": 1, "files": [7]}',
]


def test_a_list_of_files_that_burler_did_not_write_ends_it(lake, tmp_path):
    out = tmp_path / "site"
    out.mkdir()
    (tmp_path / "victim").write_text("mine")
    write(lake, "a")
    for text in LISTS:
        (out / MARKER).write_text(text)
        done = burler("lake", "docs", lake.path, out)
        assert (done.code, "is not as burler writes it" in done.stderr) == (2, True), text
        assert (tmp_path / "victim").read_text() == "mine"
        assert files(out) == [MARKER]


KILLED = """
import os, pathlib, runpy, sys
real = pathlib.Path.replace
def replace(path, target):
    if str(target).endswith("b.html"):
        os.kill(os.getpid(), 9)
    return real(path, target)
pathlib.Path.replace = replace
sys.argv[:1] = ["burler", "lake", "docs"]
runpy.run_module("burler", run_name="__main__")
"""


def test_what_a_killed_run_left_is_cleared_and_its_pages_are_known(lake, tmp_path):
    out = tmp_path / "site"
    for stream in ("a", "b"):
        write(lake, stream)
    done = subprocess.run([sys.executable, "-c", KILLED, lake.path, out], check=False, timeout=60, capture_output=True)
    assert done.returncode == -9, done.stderr
    assert (out / "taps/tap-x/a.html").exists()
    assert not (out / "index.html").exists()
    assert list(out.glob(".burler-lake-site-new-*"))
    make(lake, out, "b")
    assert "taps/tap-x/a.html" not in files(out)
    assert "index.html" in files(out)
    assert not list(out.glob(".burler-lake-site-new-*"))


def test_a_full_disk_is_told_and_leaves_the_old_site(lake, tmp_path):
    """A limit on file sizes stands for the disk: writing beyond it fails as there."""
    out = tmp_path / "site"
    make(lake, out, "a", title="old")
    before = files(out)
    done = subprocess.run(
        [sys.executable, "-m", "burler", "lake", "docs", lake.path, out],
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # a torn one would stay
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert done.returncode == 1
    assert "can't be written: File too large" in done.stderr
    assert (title(out), files(out)) == ("old", before)


def test_a_second_process_does_not_write_into_the_same_site(lake, tmp_path):
    out = tmp_path / "site"
    make(lake, out, "a")
    holder = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert "another lake docs is writing there" in make(lake, out, "a", code=2).stderr
    finally:
        os.close(holder)
    make(lake, out, "a")


def test_a_file_where_the_folder_should_be_is_refused(lake, tmp_path):
    (tmp_path / "site").write_text("mine")
    assert "can't be used: Not a directory" in make(lake, tmp_path / "site", "a", code=2).stderr
    assert "Not a directory" in make(lake, tmp_path / "site" / "below", "a", code=2).stderr
    assert (tmp_path / "site").read_text() == "mine"
