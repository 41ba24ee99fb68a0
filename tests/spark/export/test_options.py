"""Wrong inputs: each is one clear error, before anything is read or started."""

from __future__ import annotations

import datetime as dt

import pytest

from burler.errors import UsageError
from burler.spark import export
from support.cli import burler

pytestmark = pytest.mark.usefixtures("packages")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("mode", "merge", "mode is 'merge'; it must be append or upsert"),
        ("format", "", "format is ''"),
        ("since", "yesterday", "since is 'yesterday'; it must be a date or a time"),
        ("since", 5, "since is 5"),
        ("partition_by", ("a", "a"), "twice"),
        ("file_bytes", 0, "file_bytes is 0"),
        ("file_bytes", True, "file_bytes is True"),
        ("max_bad_rows", -1, "max_bad_rows"),
        ("timestamps", "nanos", "timestamps"),
        ("open_types", "json", "open_types"),
        ("engine", "duckdb", "engine is 'duckdb'; it must be burler or session"),
    ],
)
def test_options_that_can_not_be(lake, tmp_path, option, value, words):
    lake.commit("users", [{"id": 1}])
    with pytest.raises(UsageError) as caught:
        export(None, str(lake.root), str(tmp_path / "out"), **{option: value})
    assert words in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "since",
    [
        "2024-05-01",
        "2024-05-01T00:00:00Z",
        "2024-05-01T02:00:00+02:00",
        dt.date(2024, 5, 1),
        dt.datetime.fromisoformat("2024-05-01"),
        dt.datetime(2024, 5, 1, 5, 30, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))),
    ],
    ids=str,
)
def test_a_moment_may_be_said_in_many_ways(lake, tmp_path, since):
    for stream, moment in (("before", "2024-04-30T23:59:59"), ("after", "2024-05-01T00:00:00")):
        lake.commit(stream, [{"id": 1}], time=dt.datetime.fromisoformat(moment).replace(tzinfo=dt.UTC))
    results = export(None, str(lake.root), tmp_path / "out", since=since)
    assert {one.stream: one.rows_read for one in results} == {"before": 0, "after": 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mode", "merge"], "'merge' is not one of 'append', 'upsert'"),
        (["--max-bad-rows", "-1"], "-1 is not in the range"),
        (["--file-size", "big"], "'big' is no size"),
        (["--engine", "duckdb"], "'duckdb' is not one of"),
    ],
)
def test_command_line_options_that_can_not_be(lake, tmp_path, arguments, words):
    lake.commit("users", [{"id": 1}])
    done = burler("export", lake.root, tmp_path / "out", *arguments)
    assert done.code == 2
    assert words in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--option", "compression"], "--option 'compression' is not of the form KEY=VALUE"),
        (["--option", "=x"], "is not of the form KEY=VALUE"),
        (["--format", "dleta"], "dleta"),
        (["--since", "soon"], "since is 'soon'"),
        (["--streams", "users,nobody"], "no stream 'nobody' in this lake. It has: users"),
        (["--tap-id", "tap-y"], "no tap 'tap-y'"),
    ],
)
def test_command_line_arguments_that_make_no_sense(lake, tmp_path, arguments, words):
    lake.commit("users", [{"id": 1, "name": "a"}])
    done = burler("export", lake.root, tmp_path / "out", *arguments)
    assert done.code == 2
    assert words in done.one_critical()
    assert not list((tmp_path / "out").rglob("*"))


def test_streams_may_be_named_together_or_one_by_one(lake, tmp_path):
    for stream in ("a", "b", "c"):
        lake.commit(stream, [{"id": 1, "name": "a"}])
    done = burler("export", lake.root, tmp_path / "out", "--streams", "a,b", "--stream", "c")
    assert done.code == 0, done.stderr
    assert [line.split()[0] for line in done.text.splitlines()] == ["tap-x/a", "tap-x/b", "tap-x/c"]


def test_an_out_that_is_a_file_and_a_lake_that_is_nothing(lake, tmp_path):
    lake.commit("users", [{"id": 1, "name": "a"}])
    (tmp_path / "out").write_text("a file")
    done = burler("export", lake.root, tmp_path / "out")
    assert done.code == 1
    assert "out" in done.one_critical()
    assert (tmp_path / "out").read_text() == "a file"
    with pytest.raises(UsageError):
        export(None, str(tmp_path / "nothing"), str(tmp_path / "out"))


def test_tables_do_not_go_among_a_lake_s_own_files(lake, tmp_path):
    lake.commit("users", [{"id": 1}])
    before = sorted(tmp_path.rglob("*"))

    for out in (lake.root / "raw", lake.root / "raw" / "tables", f"{lake.root}/./raw"):
        with pytest.raises(UsageError, match=r"inside of the lake's own folder .*raw"):
            export(None, str(lake.root), out)

    assert sorted(tmp_path.rglob("*")) == before
