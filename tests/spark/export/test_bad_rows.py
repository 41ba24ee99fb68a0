"""Rows that no column can hold: none may be lost in silence, and the user says how many may be left out."""

from __future__ import annotations

import json

import pytest

from burler.errors import ExportError

pytestmark = pytest.mark.usefixtures("packages")

SCHEMA = {"properties": {"id": {"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}
GOOD, BAD = b'{"id":1,"at":"2024-05-01T00:00:00Z"}', b'{"id":2,"at":"never"}'


def in_quarantine(tmp_path):
    files = sorted((tmp_path / "out" / "_quarantine").rglob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def test_one_row_too_many_fails_and_can_be_looked_at(lake, run, tmp_path):
    path = lake.commit("s", [GOOD, BAD], schema=SCHEMA)

    with pytest.raises(ExportError) as caught:
        run()

    for words in ("stream 's'", path.name, "line 3", "'at'", "--max-bad-rows 1", "_quarantine"):
        assert words in str(caught.value)
    assert "never" not in str(caught.value), "no values of rows"
    (row,) = in_quarantine(tmp_path)
    assert (row["stream"], row["line"], row["field"]) == ("s", 3, "at")
    assert json.loads(row["record"]) == {"id": 2, "at": "never"}
    assert not (tmp_path / "out" / "tap-x").exists(), "no table, and no empty folder of one"


def test_so_many_as_may_are_left_out_told_and_kept(lake, run, rows_of, tmp_path, both_ways):
    lake.commit("s", [GOOD, BAD], schema=SCHEMA)

    result = run(max_bad_rows=1)["s"]

    assert (result.rows_read, result.rows_written, result.quarantined) == (2, 1, 1)
    assert rows_of("s", "id") == [(1,)]
    assert [row["value"] for row in in_quarantine(tmp_path)] == ['"never"']
    assert run(max_bad_rows=1)["s"].skipped, "they are not read again"


def test_each_increment_has_its_own_limit_and_its_own_file(lake, run, tmp_path, with_spark):
    for _ in range(2):
        lake.commit("s", [GOOD, BAD], schema=SCHEMA)
        run(max_bad_rows=1)
    assert len(list((tmp_path / "out" / "_quarantine").rglob("*.jsonl"))) == 2
    lake.commit("s", [BAD, BAD], schema=SCHEMA)
    with pytest.raises(ExportError, match=r"2 rows .*1 may"):
        run(max_bad_rows=1)


def test_a_commit_that_fails_takes_its_quarantine_back(lake, run, tmp_path, monkeypatch):
    def refused(*args, **kwargs):
        raise OSError(28, "No space left on device")

    lake.commit("s", [GOOD, BAD], schema=SCHEMA)
    monkeypatch.setattr("deltalake.transaction.create_table_with_add_actions", refused)
    with pytest.raises(ExportError, match="No space left"):
        run(max_bad_rows=1)
    assert in_quarantine(tmp_path) == []


def test_a_repaired_row_is_no_bad_row(lake, run, rows_of):
    lake.commit("s", [b'{"id":1.0,"at":"2024-05-01 02:00:00+0200"}', b'{"id":2e0}'], schema=SCHEMA)
    result = run()["s"]
    assert rows_of("s", "id") == [(1,), (2,)]
    assert result.quarantined == 0
