"""What every store promises, whatever it is made of: the same tests for each."""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ftp_servers import ftp_server
from memory_lakes import in_memory
from s3_lakes import as_batch, azure_lake, gcs_lake, s3_lake

from burler.errors import LakeError
from burler.lake import Store, open_store, probe
from support.internals import lake_store

BIG = 5 << 20
# Azure's client hands its bodies over in a way that aiohttp warns of; fsspec leaves connections to FTP open.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def ftp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that knows no conditions."""
    pytest.importorskip("pyftpdlib")
    with ftp_server(tmp_path_factory.mktemp("served")) as (url, _):
        yield url


LAKES = ["local", "memory", "s3", "gcs", "azure", "other"]
PLACES = [f"batch-{kind}" for kind in LAKES if kind != "other"]


@pytest.fixture(params=[*LAKES, *PLACES])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """As lakes are opened, and as BATCH opens its places."""
    batch, kind = request.param.startswith("batch-"), request.param.removeprefix("batch-")
    if kind == "local":
        yield (as_batch if batch else open_store)(str(tmp_path / "lake"))
    elif kind == "memory":
        yield as_batch(f"memory://{tmp_path.name}") if batch else in_memory()
    elif kind == "s3":
        yield s3_lake(request.getfixturevalue("s3_server"), "some/lake", batch=batch)
    elif kind == "other":
        yield open_store(f"{request.getfixturevalue('ftp')}/{tmp_path.name}/lake")
    else:
        pytest.importorskip({"gcs": "gcsfs", "azure": "adlfs"}[kind])
        with (gcs_lake if kind == "gcs" else azure_lake)(batch=batch) as (lake, _):
            yield lake


def read(store: Store, path: str) -> bytes | None:
    blob = store.read(path)
    return None if blob is None else blob.data


def _is_other(store: Store) -> bool:
    return store.url.startswith(("ftp:", "memory://test_"))


def test_small_files_change_by_compare_and_swap(store: Store) -> None:
    assert store.read("raw/a.json") is None
    tag = store.create("raw/a.json", b"1")
    blob = store.read("raw/a.json")
    assert blob is not None and (blob.data, blob.tag) == (b"1", tag)
    new = store.replace("raw/a.json", b"2", tag=tag)
    assert new != tag and read(store, "raw/a.json") == b"2"
    with pytest.raises(lake_store.Conflict):
        store.replace("raw/a.json", b"3", tag=tag)
    with pytest.raises(lake_store.Conflict):
        store.delete("raw/a.json", tag=tag)
    assert read(store, "raw/a.json") == b"2"
    store.delete("raw/a.json", tag=new)
    assert store.read("raw/a.json") is None


def test_what_is_gone_can_be_neither_replaced_nor_deleted(store: Store) -> None:
    tag = store.create("raw/a.json", b"1")
    store.delete("raw/a.json", tag=tag)
    with pytest.raises(lake_store.Conflict):
        store.replace("raw/a.json", b"2", tag=tag)
    with pytest.raises(lake_store.Conflict):
        store.delete("raw/a.json", tag=tag)
    assert store.read("raw/a.json") is None


def test_creation_is_exclusive(store: Store) -> None:
    for name, content in (("a", b""), ("b", b"1"), ("c", b"x" * BIG)):
        store.create(f"raw/{name}.json", content)
        for other in (b"", b"2", content):
            with pytest.raises(FileExistsError):
                store.create(f"raw/{name}.json", other)
        assert read(store, f"raw/{name}.json") == content


def test_a_big_small_file_changes_by_compare_and_swap(store: Store) -> None:
    tag = store.create("raw/manifest.json", b"1" * BIG)
    new = store.replace("raw/manifest.json", b"2" * (2 * BIG), tag=tag)
    with pytest.raises(lake_store.Conflict):
        store.replace("raw/manifest.json", b"3" * (2 * BIG), tag=tag)
    blob = store.read("raw/manifest.json")
    assert blob is not None and blob.tag == new and blob.data == b"2" * (2 * BIG)


@pytest.mark.parametrize("size_bytes", [0, 7, BIG])
def test_data_files_are_there_whole_or_not_at_all(store: Store, size_bytes: int) -> None:
    content = (bytes(range(251)) * (size_bytes // 251 + 1))[:size_bytes]
    one, two = store.new_file("raw/t/s/h"), store.new_file("raw/t/s/h")
    for start in range(0, size_bytes, 1_000_003):
        one.write(memoryview(content)[start : min(start + 1_000_003, size_bytes)])
    two.write(b"two")
    assert [file.path for file in store.files("raw")] == []
    one.publish("raw/t/s/h/f.singer")
    with pytest.raises(FileExistsError):
        two.publish("raw/t/s/h/f.singer")
    two.publish("raw/t/s/h/f-2.singer")
    assert [file.path for file in store.files("raw")] == ["raw/t/s/h/f-2.singer", "raw/t/s/h/f.singer"]
    with store.open("raw/t/s/h/f.singer") as stream:
        assert stream.read() == content
    one.discard()
    two.discard()
    assert len([file.path for file in store.files("raw")]) == 2


def test_what_is_discarded_never_was(store: Store) -> None:
    file = store.new_file("raw/t")
    file.write(bytearray(b"x" * BIG))
    file.discard()
    file.discard()
    assert list(store.files("raw", hidden=True)) == []


def test_a_listing_knows_size_and_time(store: Store) -> None:
    before = time.time()
    store.create("raw/b", b"12345")
    store.create("raw/a/x", b"")
    a, b = store.files("raw")
    assert (a.path, a.size_bytes, b.path, b.size_bytes) == ("raw/a/x", 0, "raw/b", 5)
    assert before - 2 <= b.modified <= time.time() + 2


def test_listings_leave_hidden_things_out_unless_asked(store: Store) -> None:
    for path in ("raw/b/x", "raw/a/x", "raw/a-b/x", "raw/.h/x", "raw/a/.h", "raw/a/deep/er/x", "raw/ab"):
        store.create(path, b"")
    seen = ["raw/a-b/x", "raw/a/deep/er/x", "raw/a/x", "raw/ab", "raw/b/x"]
    assert [file.path for file in store.files("raw")] == seen
    assert [file.path for file in store.files("raw/a")] == ["raw/a/deep/er/x", "raw/a/x"]
    assert [file.path for file in store.files("raw", hidden=True)] == sorted([*seen, "raw/.h/x", "raw/a/.h"])
    assert store.folders("raw") == ["a", "a-b", "b"]
    assert store.folders("raw/a") == ["deep"]
    assert [file.path for file in store.files("nothing")] == [] and store.folders("nothing") == []


def test_removing_asks_for_nothing(store: Store) -> None:
    store.create("raw/a", b"1")
    store.remove("raw/a")
    store.remove("raw/a")
    store.remove("raw/none/at/all")
    assert [file.path for file in store.files("raw")] == []


def test_a_file_is_read_as_a_stream(store: Store) -> None:
    lines = b"".join(b"%d,%s\n" % (n, b"x" * (n % 97)) for n in range(60_000))
    store.create("raw/f", lines)
    with store.open("raw/f") as stream:
        assert stream.readline() == b"0,\n"
        assert b"0,\n" + b"".join(iter(lambda: stream.read(100_001), b"")) == lines
    with store.open("raw/f") as stream:
        assert list(stream) == list(io.BytesIO(lines))
    with store.open("raw/f") as stream:
        assert stream.read(10) == lines[:10]  # and the rest is left
    with pytest.raises(FileNotFoundError):
        store.open("raw/none")


def test_no_path_leads_out_of_the_lake(store: Store) -> None:
    for path in ("../x", "raw/../../x", "/etc/passwd", "raw//x", "raw/./x", "", "raw/\0"):
        for act in (
            lambda path=path: store.read(path),
            lambda path=path: store.create(path, b""),
            lambda path=path: store.remove(path),
            lambda path=path: store.open(path),
            lambda path=path: list(store.files(path or "..")),  # "" is the whole store
            lambda path=path: store.locate(path),
            lambda path=path: store.hold(path),
        ):
            with pytest.raises(LakeError, match="leads out of it"):
                act()


def test_names_with_marks_in_them(store: Store) -> None:
    paths = ["raw/t/%2Fx%23/a%00-1.singer", "raw/t/a b+c&d=e/f", "raw/t/ü/😀"]
    for path in paths:
        store.create(path, path.encode())
    assert [file.path for file in store.files("raw")] == sorted(paths)
    assert store.folders("raw/t") == ["%2Fx%23", "a b+c&d=e", "ü"]
    for path in paths:
        assert read(store, path) == path.encode()
        with store.open(path) as stream:
            assert stream.read() == path.encode()


def test_conditions_hold_and_nothing_stays_of_the_probe(store: Store) -> None:
    assert probe(store) is store.conditional is not _is_other(store)
    assert list(store.files("raw", hidden=True)) == []


def test_stores_of_one_url_are_one_lake(store: Store) -> None:
    store.create("raw/a", b"1")
    if store.url.startswith(("/", "memory://of-a", "ftp:")):
        again = open_store(store.url, must_exist=True)
    else:
        again = pickle.loads(pickle.dumps(store))
    assert again.url == store.url and read(again, "raw/a") == b"1"
    assert again.locate("raw/a") == store.locate("raw/a")
