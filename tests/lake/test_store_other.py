"""A lake on a store that knows no conditions, here a real FTP server: for a single writer, and told so. And one on S3
whose network fails."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ftp_servers import ftp_server
from s3_lakes import CONFLICT, s3_lake

from burler.errors import StorageError, UsageError
from burler.lake import Store, care, open_store, probe
from support.internals import clocks

pytest.importorskip("pyftpdlib")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The URL of a server, and the folder it serves; everybody may write."""
    with ftp_server(tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.fixture
def served(server: tuple[str, Path], request: pytest.FixtureRequest) -> tuple[str, Path]:
    """The same, with a folder of the test's own."""
    return f"{server[0]}/{request.node.name}", server[1] / request.node.name


@pytest.fixture
def store(served: tuple[str, Path]) -> Store:
    return open_store(f"{served[0]}/lake")


def test_a_lake_that_is_not_there(store: Store, served: tuple[str, Path]) -> None:
    with pytest.raises(UsageError, match="there is no lake at"):
        open_store(f"{served[0]}/lake", must_exist=True)
    store.create("raw/a", b"")
    assert open_store(f"{served[0]}/lake", must_exist=True).locate("raw/a") == f"{served[0]}/lake/raw/a"


def test_a_server_that_is_gone() -> None:
    with clocks.briefly(0.2), pytest.raises((StorageError, UsageError)) as caught:
        open_store("ftp://127.0.0.1:9/lake")
    assert "ftp://127.0.0.1:9/lake" in str(caught.value) and "--lake-options" not in str(caught.value)


def test_a_scheme_that_nobody_knows() -> None:
    with pytest.raises(UsageError, match="nowhere://") as caught:
        open_store("nowhere://x/lake")
    assert "batch" not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://u:very-secret@h/x", "sftp://h/x?password=very-secret"])
def test_credentials_in_a_url_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UsageError, match="has credentials in it") as caught:
        open_store(url)
    assert "very-secret" not in str(caught.value)


def old(path: Path, days: float) -> Path:
    moment = time.time() - days * 86_400
    os.utime(path, (moment, moment))
    return path


def with_leftovers(lake: Any, url: str, folder: Path) -> tuple[Path, Path]:
    """A lake with a file that is being written, and one that was left long ago."""
    lake.store = open_store(f"{url}/lake")
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", *range(10)))
        writer.state(lake.state(1))
    data = next(file.path for file in lake.store.files("raw") if ".singer" in file.path)
    inside = (folder / "lake" / data).parent
    for name in (".tmp-new", ".tmp-left"):
        (inside / name).write_bytes(b"{}")
    return inside / ".tmp-new", old(inside / ".tmp-left", 9)


def test_vacuum_and_check_go_by_the_times_of_the_server(served: tuple[str, Path], lake: Any) -> None:
    new, left = with_leftovers(lake, *served)
    below = f"raw/{left.relative_to(served[1] / 'lake' / 'raw')}"
    assert [one.path for one in care.check(lake.store).findings if one.kind == "leftover"] == [below]
    (removed,) = care.vacuum(lake.store, yes=True).files
    assert removed.path == below and 8.9 < removed.age_seconds / 86_400 < 9.1
    assert new.exists() and not left.exists()


def test_files_are_looked_at_one_after_the_other(served: tuple[str, Path], lake: Any) -> None:
    """On the one connection that such a store has, answers to several threads are mixed up."""
    lake.store = open_store(f"{served[0]}/lake")
    for start in range(6):
        with lake.writer() as writer:
            writer.schema(lake.schema())
            writer.records(lake.page("users", start))
            writer.state(lake.state(start))
    assert care.check(lake.store, jobs=6).files == 6
    assert care.rebuild(lake.store, jobs=6).is_whole and lake.ids() == list(range(6))


def test_what_is_of_no_known_age_is_told_and_stays(tmp_path: Path, lake: Any) -> None:
    """A server without MLSD: its list says ``Nov 24 00:18``, of no year and no zone."""
    with ftp_server(tmp_path, says_times=False) as (url, folder):
        new, left = with_leftovers(lake, url, folder)
        orphan = left.with_name("users-20240101T000000Z-20240101T000000Z.singer")
        orphan.write_bytes(b"{}")
        for age in (0.0, 7 * 86_400.0):
            done = care.vacuum(lake.store, older_than_seconds=age, yes=True)
            assert not done.files
            (problem,) = done.problems
            assert (
                "files that nothing refers to (3, such as " in problem
                and "does not say when they were written" in problem
            )
        assert new.exists() and left.exists() and orphan.exists()
        assert not [one for one in care.check(lake.store).findings if one.kind == "leftover"]
        assert not care.rebuild(lake.store).problems and lake.ids() == list(range(10))


def test_a_whole_lake_by_a_single_writer(served: tuple[str, Path], lake: Any) -> None:
    from burler.lake import load, read_lines

    lake.store = open_store(f"{served[0]}/lake")
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", *range(10)))
        writer.state(lake.state(1))
    assert lake.ids() == list(range(10)) and lake.states == [{"at": 1}]
    local = open_store(str(served[1] / "lake"))
    assert [line for f in load(local, "tap-x", "users").files for line in read_lines(local, f.path)]


def test_a_lake_is_whole_although_the_network_is_not(s3_server: Any, lake: Any) -> None:
    lake.store = store = s3_lake(s3_server)
    assert probe(store)
    answers = itertools.cycle([None, "answer is lost", None, CONFLICT, None, None, (503, "SlowDown"), None, "hang up"])
    with s3_server.failing(lambda asked: next(answers)), lake.writer(max_file_records=30) as writer:
        writer.schema(lake.schema())
        for page in range(6):
            writer.records(lake.page("users", *range(20 * page, 20 * page + 20)))
            writer.state(lake.state(page))
    assert lake.ids() == list(range(120)) and lake.states[-1] == {"at": 5}
    there = {file.path.rpartition("/")[2] for file in store.files("raw") if ".singer" in file.path}
    assert there == {file.path.rpartition("/")[2] for file in lake.load().files} and len(there) == 4
    assert [file.path for file in store.files("raw", hidden=True) if "/." in file.path] == []
