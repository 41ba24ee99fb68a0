"""What a table holds: the stream as it stands, or its history; from when on; how its files are cut."""

from __future__ import annotations

import datetime as dt

import pytest

from burler.errors import ExportError

pytestmark = pytest.mark.usefixtures("packages")

INTEGER, TEXT = {"type": ["null", "integer"]}, {"type": ["null", "string"]}
MOMENT = {"type": ["null", "string"], "format": "date-time"}
DAY = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)


def test_append_keeps_every_row_also_of_older_table_versions(lake, run, rows_of):
    for version in (1, 2):
        lake.commit("users", [{"id": 1, "name": f"v{version}"}] * 2, version=version, activate=version)
        run(mode="append")
    assert rows_of("users", "id", "name", "_sdc_version") == [(1, "v1", 1)] * 2 + [(1, "v2", 2)] * 2
    assert run(mode="append")["users"].skipped


def test_append_is_added_to_and_never_written_again(lake, run, tmp_path, with_spark):
    lake.commit("users", [{"id": 1, "name": "a"}])
    run(mode="append")
    first = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.parquet")}
    lake.commit("users", [{"id": 1, "name": "b"}])

    result = run(mode="append")["users"]

    assert (result.rows_read, result.rows_written) == (1, 1)
    assert {path: path.stat().st_mtime_ns for path in first} == first


def test_another_mode_makes_the_table_anew_each_time_it_changes(lake, run, rows_of):
    lake.commit("users", [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}])
    counted = []
    for mode in ("upsert", "append", "upsert", None):
        result = run(mode=mode)["users"]
        counted.append((len(rows_of("users", "id")), result.skipped))
    assert counted == [(1, False), (2, False), (1, False), (1, True)]


def test_upsert_wants_keys(lake, run, rows_of):
    lake.commit("log", [{"id": 1, "name": "a"}], keys=())
    lake.commit("users", [{"id": 1, "name": "a"}])

    with pytest.raises(ExportError, match=r"'log': it has no keys.*--mode upsert"):
        run(mode="upsert")

    assert rows_of("users", "id") == [(1,)], "the other stream went on"


def test_a_deleted_row_stays_with_the_time_it_was_deleted(lake, run, rows_of):
    schema = {"properties": {"id": INTEGER, "name": TEXT, "_sdc_deleted_at": MOMENT}}
    lake.commit("users", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], schema=schema)
    run()
    lake.commit("users", [{"id": 2, "_sdc_deleted_at": "2024-05-01T00:00:00Z"}], schema=schema)
    run()

    assert rows_of("users", "id", "name", "_sdc_deleted_at") == [(1, "a", None), (2, None, DAY)]


def test_since_passes_over_files_that_are_wholly_older(lake, run, rows_of):
    for days in range(4):
        lake.commit("users", [{"id": days, "name": "a"}], time=DAY + dt.timedelta(days=days))
        lake.commit("log", [{"id": days, "name": "a"}], time=DAY + dt.timedelta(days=days), keys=())

    assert run(since="2024-05-03")["users"].rows_read == 2
    assert rows_of("users", "id") == rows_of("log", "id") == [(2,), (3,)]

    # A later one takes nothing away and reads nothing again; an earlier one needs the older files.
    assert run(since=dt.date(2024, 5, 4))["users"].skipped
    lake.commit("users", [{"id": 9, "name": "old"}], time=DAY)
    assert run(since="2024-05-03T00:00:00Z")["users"].skipped
    assert run(since=DAY + dt.timedelta(days=1))["users"].rows_read == 3
    assert rows_of("users", "id") == [(1,), (2,), (3,)]
    run()
    assert rows_of("users", "id") == [(0,), (1,), (2,), (3,), (9,)]
    assert run()["users"].skipped


def test_a_table_is_partitioned_as_asked_and_anew_when_asked_otherwise(lake, run, rows_of, tmp_path, both_ways):
    import deltalake

    def columns():
        return deltalake.DeltaTable(str(tmp_path / "out" / "tap-x" / "users")).metadata().partition_columns

    lake.commit("users", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": None}])
    run(partition_by="name")
    assert columns() == ["name"]
    lake.commit("users", [{"id": 1, "name": "b"}, {"id": 4, "name": "x/y=%"}])
    assert run(partition_by=["name"])["users"].rows_read == 2, "an increment"
    assert rows_of("users", "id", "name") == [(1, "b"), (2, "b"), (3, None), (4, "x/y=%")]

    assert run()["users"].rows_read == 5
    assert columns() == []
    assert rows_of("users", "id", "name") == [(1, "b"), (2, "b"), (3, None), (4, "x/y=%")]


@pytest.mark.parametrize(
    ("by", "words"),
    [("nme", "there is no column 'nme' to partition by"), (["o"], "column 'o' (list, map or object)")],
)
def test_columns_to_partition_by_that_can_not_be(lake, run, by, words):
    schema = {"properties": {"id": INTEGER, "name": TEXT, "o": {"properties": {"a": INTEGER}}}}
    lake.commit("users", [{"id": 1}], schema=schema if by == ["o"] else {"properties": {"id": INTEGER, "name": TEXT}})

    with pytest.raises(ExportError, match="stream 'users'") as caught:
        run(partition_by=by)

    assert words in str(caught.value)


def test_decimals_partition_parquet_tables_alone(lake, run, tmp_path):
    """deltalake spells the partition of -1.05 so that no reader can open the table."""
    cents = {"type": "number", "multipleOf": 0.01}
    lake.commit("users", [{"id": 1, "p": -1.05}], schema={"properties": {"id": INTEGER, "p": cents}})

    with pytest.raises(
        ExportError, match=r"column 'p' \(decimal\) can't partition a Delta table.*\n.*--format parquet"
    ):
        run(partition_by="p")

    assert not list((tmp_path / "out").rglob("*.json"))
    assert run(partition_by="p", format="parquet", out="parquet")["users"].rows_written == 1


def test_file_bytes_decides_how_many_files_there_are(lake, run, tmp_path, with_spark):
    for part in range(4):
        lake.commit("users", [{"id": 1000 * part + at, "name": "x" * 200} for at in range(1000)])

    run(file_bytes=60_000)
    files = len(list((tmp_path / "out").rglob("*.parquet")))
    run(mode="append", file_bytes=1 << 30)

    assert files > 1
    assert len(list((tmp_path / "out" / "tap-x" / "users").rglob("*.parquet"))) == files + 1


def test_a_sequence_of_equal_rows_is_decided_by_the_last_line(lake, run, rows_of, both_ways):
    """Equal keys and equal times, first in the lake, then between table and lake."""
    lake.commit("users", [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}], time=DAY)
    run()
    assert rows_of("users", "name", "_sdc_sequence") == [("b", 1)]
    lake.commit("users", [{"id": 1, "name": "c"}, {"id": 1, "name": "d"}], time=DAY)
    run()
    assert rows_of("users", "name", "_sdc_sequence") == [("d", 2)]


def test_the_next_export_of_a_session_needs_no_code_that_the_last_one_did_not(lake, run, spark, with_spark):
    """The moment of an export stood in its plan as a number once: Spark compiled each export from nothing."""
    lake.commit("users", [{"id": n, "name": f"name {n}"} for n in range(50)])
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME().getCount
    given = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    before = {name: spark.conf.get(name) for name in given}
    counts = [compiled()]
    try:
        for name, value in given.items():
            spark.conf.set(name, value)
        for name in ("one", "two", "three"):
            run(out=name)
            counts.append(compiled())
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert counts[0] < counts[1] and counts[2] == counts[3]


@pytest.mark.parametrize(("values", "files"), [(10, 1), (1_500, 2)])
def test_a_table_is_written_by_all_tasks_where_their_files_are_not_too_small(
    lake, run, tmp_path, with_spark, values, files
):
    """Some 24 MB of rows, and two tasks at a time."""
    for part in range(4):
        lake.commit("log", [{"id": n, "name": "x" * 4_000} for n in range(values * part, values * (part + 1))], keys=())
    run()
    assert len(list((tmp_path / "out").rglob("*.parquet"))) == files
