"""Spark's own formats: files in version folders, a database by Spark's JDBC writer, somebody's data source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from format_samples import BASE, EVERY, NOON, TEXT, change, columns, frame, read, row

from burler.errors import ExportError
from burler.spark import table
from support.internals import opening


def files_target(kind: str, out: Path, spark: Any, **options: str) -> Any:
    place = opening.place_of(kind, str(out), "t", "s", "t", "s")
    target = opening.open_target(kind, place, source="t/s", options=options, spark=lambda: spark)
    target.open()
    return target


def test_pointer_is_enough_for_duckdb(spark: Any, tmp_path: Path) -> None:
    """The statements of the documentation."""
    import duckdb

    target = files_target("parquet", tmp_path, spark)
    target.publish(frame(spark, [row(1, "a")]), change("replace"))
    grown = columns(**BASE, more=TEXT)
    files_target("parquet", tmp_path, spark).publish(frame(spark, [row(2, more="m")], grown), change("append", grown))
    place = tmp_path / "t" / "s"
    latest = json.loads((place / "_latest.json").read_text())
    assert latest["numbers"] == {"burler:g": 1}
    assert sum(file["rows"] for file in latest["files"]) == 2
    with duckdb.connect() as connection:
        connection.execute(
            f"""set variable files = (select list('{place}/' || file.path) from
            (select unnest(files) as file from read_json('{place}/_latest.json')))"""
        )
        found = connection.execute("select id, text, more from read_parquet(getvariable('files'), union_by_name=true)")
        assert sorted(found.fetchall()) == [(1, "a", None), (2, None, "m")]
    assert read(table(spark, place)) == [{**row(1, "a"), "more": None}, row(2, more="m")]


def test_versions_beyond_the_last_go(spark: Any, tmp_path: Path) -> None:
    """A reader that began two versions ago still finds its files; one from before that does not."""
    frames = []
    for number in range(4):
        target = files_target("parquet", tmp_path, spark, keep_versions="2")
        target.publish(frame(spark, [row(number)]), change("replace"))
        frames.append(table(spark, tmp_path / "t" / "s"))
    assert read(frames[3]) == [row(3)]
    assert read(frames[2]) == [row(2)]
    assert len(list((tmp_path / "t" / "s").glob("data-*"))) == 2
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist|FileNotFound"):
        frames[1].collect()


def test_csv_keeps_null_and_empty_text_apart(spark: Any, tmp_path: Path) -> None:
    rows = [row(1, ""), row(2, None), row(3, 'a "quoted", \\ text\nof two lines'), row(4, "N")]
    target = files_target("csv", tmp_path, spark, multiLine="true")
    target.publish(frame(spark, rows[:2]), change("replace"))
    target = files_target("csv", tmp_path, spark, multiLine="true")
    grown = columns(**BASE, more=TEXT)
    target.publish(frame(spark, [{**one, "more": "m"} for one in rows[2:]], grown), change("append", grown))
    found = read(table(spark, tmp_path / "t" / "s"))
    assert [{name: one[name] for name in ("id", "at", "text")} for one in found] == rows
    assert [one["more"] for one in found] == [None, None, "m", "m"]


def test_csv_is_flat(spark: Any, tmp_path: Path) -> None:
    target = files_target("csv", tmp_path, spark)
    with pytest.raises(ExportError, match=r"format 'csv' refuses these rows.*tags"):
        most = columns(**{name: schema for name, schema in EVERY.items() if name != "blob"})
        target.publish(frame(spark, [row(1)], most), change("replace", most))
    assert not (tmp_path / "t").exists()


def test_format_that_is_not_there(spark: Any, tmp_path: Path) -> None:
    for kind in ("avro", "mongodb"):
        target = files_target(kind, tmp_path, spark)
        with pytest.raises(ExportError, match=f"no format '{kind}'"):
            target.publish(frame(spark, [row(1)]), change("replace"))


def test_times_are_cut_nowhere(spark: Any, tmp_path: Path) -> None:
    """Left to itself Spark writes milliseconds to JSON."""
    files_target("json", tmp_path, spark).publish(frame(spark, [row(1)]), change("replace"))
    texts = [path.read_text() for path in (tmp_path / "t" / "s").glob("data-*/part-*.json")]
    assert json.loads("".join(texts))["at"] == "2024-01-02T12:00:00.123456Z"
    assert NOON.microsecond == 123456


def test_another_database_by_sparks_writer(spark: Any, tmp_path: Path) -> None:
    """Derby, whose driver Spark brings. Each publication is the whole table."""
    url = f"jdbc:derby:{tmp_path}/derby;create=true"
    place = opening.place_of("jdbc", url, "", "", "tap-x", "my things")
    for rows in ([row(1, "a"), row(2, "b")], [row(3, "c")]):
        target = opening.open_target("jdbc", place, source="tap-x/my things", options={}, spark=lambda: spark)
        assert target.open().version is None
        assert not target.appends_arrow
        assert target.publish(frame(spark, rows), change("replace")).rows_written == len(rows)
    found = spark.read.format("jdbc").options(url=url, dbtable="tap_x_my_things").load()
    assert [(one["id"], one["text"]) for one in read(found)] == [(3, "c")]


def test_database_without_a_driver(spark: Any) -> None:
    place = opening.place_of("jdbc", "jdbc:nodb://host/db", "", "", "t", "s")
    target = opening.open_target("jdbc", place, source="t/s", options={"password": "hunter2222"}, spark=lambda: spark)
    target.open()
    with pytest.raises(ExportError, match="No suitable driver") as caught:
        target.publish(frame(spark, [row(1)]), change("replace"))
    assert "hunter2222" not in str(caught.value) + repr(target)


def test_somebodys_data_source(spark: Any, tmp_path: Path) -> None:
    """A format that is no files gets the options, names filled in."""
    from pyspark.sql.datasource import DataSource, DataSourceWriter, WriterCommitMessage

    class Writer(DataSourceWriter):
        def __init__(self, path: str) -> None:
            self.path = path

        def write(self, iterator: Any) -> Any:
            lines = [str(one["id"]) for one in iterator]
            if lines:
                with open(self.path, "a") as file:
                    file.write("\n".join(lines) + "\n")
            return WriterCommitMessage()

    class Lines(DataSource):
        @classmethod
        def name(cls) -> str:
            return "lines_of_ids"

        def writer(self, schema: Any, overwrite: bool) -> Any:
            assert overwrite
            return Writer(self.options["file"])

    spark.dataSource.register(Lines)
    target = files_target("lines_of_ids", tmp_path, spark, file=f"{tmp_path}/{{tap}}-{{stream}}.txt")
    target.publish(frame(spark, [row(1), row(2)]), change("replace"))
    assert sorted((tmp_path / "t-s.txt").read_text().split()) == ["1", "2"]
