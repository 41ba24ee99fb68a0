"""Stores that say little, fail, or tell in their own way."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from filebox import ORDER, error, ids, tap_of, zip_of
from shelf import shelf as opened

from burler.errors import FileError, MissingExtra, StorageError, UsageError
from burler.files import read, schema
from burler.lake import open_store
from burler.testing import bind_stream, canary, run_tap
from support.internals import clocks

WITH_NAME = {"properties": {**ORDER["properties"], "_file": {"type": "string"}}}


@pytest.fixture
def shelf():
    with opened() as store:
        yield store


def noted(state):
    entries = state["bookmarks"]["orders"].get("source_state")
    return json.loads(entries[0]["value"])["files"] if entries else 0


class WithCause(FileNotFoundError):
    """As fsspec's web store has it: not found, because of something else."""

    def __init__(self, cause):
        super().__init__("x.csv")
        self.__cause__ = cause


class Status(Exception):
    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status = status


# ---- what can't be told apart ------------------------------------------------------------------------


@pytest.mark.parametrize("said", [{}, {"size": None}])
def test_a_file_of_which_the_store_says_neither_time_nor_tag_is_read_in_each_run(shelf, said, caplog):
    shelf.files["in/a.csv"], shelf.said["in/a.csv"] = b"id\n1\n", said
    tap = tap_of("shelf://in/*.csv", declared={"replication_key": "id"})
    first = run_tap(tap)
    assert ids(first) == [1] and "they are read in each run" in caplog.text
    shelf.files["in/a.csv"] = b"id\n2\n"  # of the same length
    assert ids(run_tap(tap, state=first.states[-1])) == [2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"ETag": '"1"'}, {"ETag": '"2"'}),
        ({"modify": "20240501100000"}, {"modify": "20240501110000"}),
        ({"modify": "20240501100000.5"}, {"modify": "20240501100001.5"}),
        ({"modify": "Nov 20 10:00"}, {"modify": "Nov 21 10:00"}),  # as "ls -l" of a server without MLSD
        ({"Last-Modified": "Wed, 01 May 2024 10:00:00 GMT"}, {"Last-Modified": "Wed, 01 May 2024 10:00:01 GMT"}),
        ({"mtime": 5.5}, {"mtime": 5.75}),
        ({"CRC": 77}, {"CRC": 78}),
    ],
)
def test_a_file_that_was_replaced_by_one_of_the_same_length_is_read_again(shelf, before, after):
    shelf.files["in/a.csv"], shelf.said["in/a.csv"] = b"id\n1\n", before
    tap = tap_of("shelf://in/*.csv", declared={"replication_key": "id"})
    first = run_tap(tap)
    second = run_tap(tap, state=first.states[-1])
    assert ids(first) == [1] and ids(second) == []
    shelf.files["in/a.csv"], shelf.said["in/a.csv"] = b"id\n2\n", after
    assert ids(run_tap(tap, state=second.states[-1])) == [2]


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ({"modify": "20240501100000"}, "2024-05-01T10:00:00Z"),
        ({"Last-Modified": "Wed, 01 May 2024 10:00:00 GMT"}, "2024-05-01T10:00:00Z"),
        ({"updated": "2024-05-01T12:00:00+02:00"}, "2024-05-01T10:00:00Z"),
        ({"modify": "May 01 2024"}, None),
        ({"modify": "20241301100000"}, None),
    ],
)
def test_times_as_stores_write_them(shelf, said, moment):
    shelf.files["in/a.csv"], shelf.said["in/a.csv"] = b"id\n1\n", said
    schema = {"properties": {**ORDER["properties"], "_modified": {"type": ["null", "string"], "format": "date-time"}}}
    tap = tap_of("shelf://in/a.csv", schema=schema, add="_modified", declared={"replication_key": "id"})
    first = run_tap(tap)
    assert [row.get("_modified") for row in first.records("orders")] == [moment]
    assert ids(run_tap(tap, state=first.states[-1])) == [], "by its time, or by what else is said of it"


# ---- stores that fail --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [PermissionError(13, "Permission denied"), TimeoutError("nobody answers"), WithCause(Status(503))],
)
@pytest.mark.parametrize("place", ["in", "in/below"])
def test_a_folder_that_can_not_be_listed_is_an_error_and_nothing_is_forgotten(shelf, error, place):
    for name in ("in/a.csv", "in/below/b.csv"):
        shelf.files[name], shelf.said[name] = b"id\n1\n", {"ETag": name}
    tap = tap_of("shelf://in/**/*.csv", declared={"replication_key": "id"})
    first = run_tap(tap)
    assert noted(first.states[-1]) == 2
    shelf.fails[place] = error
    second = run_tap(tap, state=first.states[-1])
    assert "'shelf://in/**/*.csv' can't be listed" in str(second.result.errors["orders"])
    assert noted(second.states[-1]) == 2
    with clocks.briefly(0.2), pytest.raises((StorageError, UsageError), match="shelf://in can't be "):
        list(open_store("shelf://in").files(""))
    shelf.fails.clear()
    assert ids(run_tap(tap, state=second.states[-1])) == []


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl.bz2", "a.parquet", "a.zip"])
def test_a_file_that_its_store_does_not_give_is_not_told_as_a_broken_one(shelf, name):
    shelf.files[f"in/{name}"] = zip_of({"a.csv": b"id\n1\n"})
    shelf.fails[f"read in/{name}"] = PermissionError(13, "Permission denied")
    assert f"file 'in/{name}' can't be read: " in error(f"shelf://in/{name}")


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_a_server_that_fails_does_not_look_like_one_whose_file_is_gone(shelf, status):
    shelf.files["in/a.csv"], shelf.said["in/a.csv"] = b"id\n1\n", {"ETag": "1"}
    tap = tap_of("shelf://in/a.csv", declared={"replication_key": "id"})
    state = run_tap(tap).states[-1]
    shelf.fails["in/a.csv"] = WithCause(Status(status))
    out = run_tap(tap, state=state)
    said = str(out.result.errors["orders"])
    assert f"can't be listed: HTTP {status}" in said and noted(out.states[-1]) == 1
    assert "can't be listed" in str(run_tap(tap).result.errors["orders"]), "not 'no file fits' either"
    shelf.fails["in/a.csv"] = WithCause(Status(404))
    shelf.files["in/b.csv"] = b""
    gone = run_tap(tap, state=state)
    assert not gone.result.errors and noted(gone.states[-1]) == 0


def test_a_file_whose_store_fails_when_it_is_opened_is_not_gone(shelf):
    shelf.files["in/a.csv"], shelf.said["in/a.csv"] = b"id\n1\n", {"ETag": "1"}
    shelf.fails["open in/a.csv"] = WithCause(Status(502))
    out = run_tap(tap_of("shelf://in/*.csv", declared={"replication_key": "id"}))
    assert "can't be read: HTTP 502" in str(out.result.errors["orders"])


CAUSES = [
    (None, True),
    (Status(404), True),
    (Status(410), True),
    (Status(429), False),
    (ConnectionResetError("reset"), False),
    (FileNotFoundError("inner"), True),
    (IndexError("no such line"), True),
    (WithCause(Status(500)), False),
    (type("error_perm", (Exception,), {})("550 no such file"), True),
    (type("error_perm", (Exception,), {})("530 log in first"), False),
    (type("ClientPayloadError", (Exception,), {"__module__": "aiohttp.client"})("cut"), False),
]


def test_what_is_gone_and_what_is_broken(shelf, caplog):
    shelf.files["in/a.csv"], shelf.said["in/a.csv"] = b"id\n1\n", {"ETag": "1"}
    for cause, gone in CAUSES:
        caplog.clear()
        shelf.fails["open in/a.csv"] = WithCause(cause)
        out = run_tap(tap_of("shelf://in/*.csv", declared={"replication_key": "id"}))
        assert bool(out.result.errors) is not gone, cause
        assert ("is left out: it is gone" in caplog.text) is gone, cause


def test_a_folder_without_rights(box, monkeypatch):
    box.put("in/a.csv", "id\n1\n"), box.put("in/x/b.csv", "id\n2\n")
    real = os.scandir

    def denied(path):  # root may list everything
        if str(path).endswith("/in/x"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", denied)
    out = run_tap(tap_of(box["in/**/*.csv"]))
    assert "can't be listed: Permission denied" in str(out.result.errors["orders"])


def test_what_is_listed_is_what_glob_lists(box):
    import fsspec

    names = ("a.csv", "b.csv", "x[1].csv", "below/c.csv", "below/far/d.csv", "other/e.csv", ".hidden/f.csv")
    for number, name in enumerate(names):
        box.put(name, f"id\n{number}\n")
    (box.folder / "loop").symlink_to(box.folder)
    (box.folder / "link.csv").symlink_to("a.csv")
    store = fsspec.filesystem("file")
    patterns = (
        "*.csv",
        "**/*.csv",
        "*/*.csv",
        "**",
        "below/**/*.csv",
        "b*/c.csv",
        "?.csv",
        "[ab].csv",
        "x[[]1].csv",
        "a.csv",
    )
    for pattern in patterns:
        listed = [info["name"] for info in store.glob(box[pattern], detail=True).values() if info["type"] == "file"]
        wanted = {int(Path(name).read_text().split()[1]) for name in listed}
        assert set(ids(run_tap(tap_of(box[pattern])))) == wanted, pattern


@pytest.mark.parametrize(("pattern", "found"), [("in/*/*.csv", [1, 2]), ("in/**/*.csv", [1, 2]), ("in/sub/*.csv", [2])])
def test_linked_folders_are_entered_and_loops_are_not(box, pattern, found):
    box.put("in/own/a.csv", "id\n1\n"), box.put("real/sub/b.csv", "id\n2\n")
    (box.folder / "in/sub").symlink_to("../real/sub")
    (box.folder / "in/loop").symlink_to(".")
    (box.folder / "in/up").symlink_to("..")
    (box.folder / "real/sub/back").symlink_to(box.folder / "in")
    (box.folder / "in/nowhere").symlink_to("gone")
    wanted = tap_of(box[pattern], declared={"replication_key": "id"})
    assert sorted(set(ids(run_tap(wanted)))) == found


def test_a_file_comes_once_whatever_links_lead_to_it(box):
    box.put("in/a/1.csv", "id\n1\n"), box.put("in/b/2.csv", "id\n2\n"), box.put("out/3.csv", "id\n3\n")
    (box.folder / "in/a/l").symlink_to("../b")
    (box.folder / "in/b/l").symlink_to("../a")
    (box.folder / "in/current").symlink_to("b")
    (box.folder / "in/b/again.csv").symlink_to("2.csv")
    (box.folder / "in/x").symlink_to("../out")
    (box.folder / "in/y").symlink_to("../out")
    out = run_tap(tap_of(box["in/**/*.csv"], schema=WITH_NAME, add="_file"))
    assert sorted(row["_file"] for row in out.records("orders")) == ["a/1.csv", "b/2.csv", "x/3.csv"]
    out = run_tap(tap_of(box["in/**/*.csv"]))
    assert sorted(ids(out)) == [1, 2, 3]
    (box.folder / "in/current").unlink()
    (box.folder / "in/current").symlink_to("a")
    assert ids(run_tap(tap_of(box["in/**/*.csv"]), state=out.states[-1])) == []
    assert ids(run_tap(tap_of(box["in/current/*.csv"]))) == [1]


def test_a_store_is_asked_anew_in_each_run(shelf, monkeypatch):
    """Stores keep listings: a process that lives long would see no new file."""
    kept = {}
    real = shelf.ls

    def ls(self, path, detail=True, **more):
        return kept.setdefault(path, real(self, path, detail, **more))

    monkeypatch.setattr(shelf, "ls", ls)
    monkeypatch.setattr(shelf, "invalidate_cache", lambda self, path=None: path or kept.clear())
    shelf.files["in/a.csv"], shelf.said["in/a.csv"] = b"id\n1\n", {"ETag": "1"}
    tap = tap_of("shelf://in/*.csv", declared={"replication_key": "id"})
    first = run_tap(tap)
    shelf.files["in/b.csv"], shelf.said["in/b.csv"] = b"id\n2\n", {"ETag": "1"}
    assert ids(run_tap(tap, state=first.states[-1])) == [2]


def test_a_store_is_asked_anew_once_a_file_is_read(shelf, monkeypatch, caplog):
    kept = {}
    real = shelf.info

    def info(self, path, **more):
        return kept.setdefault(path, real(self, path, **more))

    monkeypatch.setattr(shelf, "info", info)
    monkeypatch.setattr(shelf, "invalidate_cache", lambda self, path=None: kept.clear())
    shelf.files["in/a.csv"], shelf.said["in/a.csv"] = b"id\n1\n", {"ETag": "1"}
    with bind_stream(tap_of("shelf://x"), "orders", schema=ORDER) as stream:
        pages = read("shelf://in/a.csv", stream=stream)
        next(pages)
        shelf.said["in/a.csv"] = {"ETag": "2"}
        assert list(pages) == []
    assert "was changed while it was read" in caplog.text


def test_a_member_of_an_archive_that_was_replaced(box):
    box.put("z.zip", zip_of({"a.csv": "id\n1\n"}), at=5)
    tap = tap_of(f"zip://*.csv::{box['z.zip']}", declared={"replication_key": "id"})
    first = run_tap(tap)
    assert ids(first) == [1] and ids(run_tap(tap, state=first.states[-1])) == []
    box.put("z.zip", zip_of({"a.csv": "id\n2\n"}), at=5)
    assert ids(run_tap(tap, state=first.states[-1])) == [2]


# ---- names -------------------------------------------------------------------------------------------


def test_a_name_that_is_no_utf8_stops_nothing(box):
    path = os.fsencode(box.folder) + b"/a\xff.csv"
    with open(path, "wb") as file:
        file.write(b"id\n1\n")
    tap = tap_of(box["*.csv"], schema=WITH_NAME, add="_file", declared={"replication_key": "id"})
    first = run_tap(tap)
    assert not first.result.errors
    assert first.records("orders") == [{"id": 1, "_file": "a\\udcff.csv"}]
    assert json.dumps(first.states[-1]).encode() and noted(first.states[-1]) == 1
    assert ids(run_tap(tap, state=first.states[-1])) == []
    with open(path, "wb") as file:
        file.write(b"id,name\n1\n")
    assert "a\\udcff.csv', row 2" in str(run_tap(tap).result.errors["orders"])


def test_credentials_in_an_address_are_hidden_also_where_a_store_cuts_it(shelf, caplog):
    secret = canary("key")
    shelf.fails[f"KEY:{secret}@bucket"] = ValueError(f"Invalid bucket name KEY:{secret}@bucket")
    out = run_tap(tap_of(f"shelf://KEY:{secret}@bucket/*.csv"))
    said = str(out.result.errors["orders"])
    assert "Invalid bucket name" in said and secret not in said + caplog.text


@pytest.mark.parametrize(
    ("pattern", "package", "extra"),
    [
        ("s3://bucket/*.csv", "s3fs", "s3"),
        ("gs://bucket/*.csv", "gcsfs", "gcs"),
        ("abfs://bucket/*.csv", "adlfs", "azure"),
        ("zip://*.csv::s3://bucket/a.zip", "s3fs", "s3"),
    ],
)
def test_a_package_of_a_store_that_is_missing_is_named(monkeypatch, pattern, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    cure = f"needs the package '{package}', of burler's extra '{extra}'. Install it: pip install '"
    for act in (lambda: run_tap(tap_of(pattern)), lambda: schema(pattern).load(where="tap", config={})):
        with pytest.raises(MissingExtra) as caught:
            act()
        assert f"'{pattern}' {cure}" in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "place"),
    [("in/**/*.csv", "in"), ("in/*/a.csv", "in"), ("in/*/a.csv", "in%2Fbelow"), ("in/b*/a.csv", "in%2Fbelow")],
)
def test_a_folder_of_a_bucket_that_may_not_be_listed(s3_server, pattern, place):
    s3_server.put("in/below/a.csv", b"id\n1\n")
    denied = s3_server.failing(lambda asked: (403, "AccessDenied") if f"prefix={place}" in asked else None)
    with denied, pytest.raises(FileError, match="can't be listed: AccessDenied"):
        list(read(s3_server.url(pattern), storage_options=s3_server.options))
