"""Whole queries in Spark: checkpoints, restarts, repeated batches, and tables that are right afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from burler.lake import care, open_store
from burler.lake import read as lake_rows
from burler.spark import upsert

KEYED = {"type": "object", "properties": {"id": {"type": "integer"}, "n": {"type": "integer"}}}


@pytest.fixture
def table(tmp_path):
    from deltalake import DeltaTable

    def read():
        found = DeltaTable(str(tmp_path / "table"))
        rows = found.to_pyarrow_table().select(["id", "n"]).to_pylist()
        return {row["id"]: row["n"] for row in rows}, len(rows), found.version()

    return read


@pytest.fixture
def run(spark, tmp_path):
    """One availableNow run of a query into an upserted Delta table; its progress, batch by batch."""

    def ran(format, path=None, **options):
        reader = spark.readStream.format(format)
        for name, value in options.items():
            reader = reader.option(name, str(value))
        frame = reader.load() if path is None else reader.load(str(path))
        writer = frame.writeStream.foreachBatch(upsert(tmp_path / "table", keys="id"))
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
        return [(one["batchId"], one["numInputRows"]) for one in query.recentProgress if one["numInputRows"]]

    return ran


def forget_the_last_batch(checkpoint: Path) -> None:
    """As a kill leaves it that came after the sink's commit and before Spark's."""
    last = max((path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()), key=lambda p: int(p.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


def test_a_lake_as_a_dataframe(spark, lake):
    for at in range(4):
        lake.commit("users", [{"id": at * 10 + row, "n": at} for row in range(3)], schema=KEYED)
    frame = spark.read.format("singerlake").option("task_bytes", 500).load(str(lake.root))
    expected = sorted((row["id"], row["n"]) for row in lake_rows(str(lake.root)).rows())
    assert sorted((row.id, row.n) for row in frame.collect()) == expected
    assert frame.where("id >= 30").count() == 3 and frame.count() == 12
    spark.sql(f"create temporary view from_lake using singerlake options (path '{lake.root}', fields 'id')")
    assert spark.sql("select count(distinct id) c from from_lake").first().c == 12
    spark.sql("drop view from_lake")
    empty = spark.read.format("singerlake").option("since", "2030-01-01").load(str(lake.root))
    assert empty.count() == 0 and empty.columns == frame.columns
    lake.commit("users", [b'{"id":1e99,"n":1}'], schema=KEYED)
    with pytest.raises(Exception, match=r"line 2, field 'id'"):
        spark.read.format("singerlake").load(str(lake.root)).collect()


def test_what_is_wrong_with_a_lakes_stream_is_told_once(spark, lake, tmp_path):
    """At ``load`` where that can be, else by the query, with Spark's own failure nowhere below burler's text."""
    lake.commit("users", [{"id": 1, "n": 1}], schema=KEYED)
    with pytest.raises(Exception, match="earliest or latest or the number of a commit"):
        spark.readStream.format("singerlake").option("starting", "tomorrow").load(str(lake.root))
    with pytest.raises(Exception, match=r"there is no stream 'uesrs' in this lake\. Did you mean 'users'"):
        spark.readStream.format("singerlake").option("stream", "uesrs").load(str(lake.root))
    frame = spark.readStream.format("singerlake").option("versions", "all").load(str(lake.root))
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(Exception) as caught:
        query.awaitTermination()
    said = str(caught.value)
    assert "option 'versions' is for spark.read alone" in said and "UnboundLocalError" not in said


def test_a_lake_streams_into_a_table_through_restarts(lake, run, table, tmp_path):
    for at in range(4):
        lake.commit("users", [{"id": row, "n": at * 10 + row} for row in range(3)], schema=KEYED)
    assert run("singerlake", lake.root, maxFilesPerTrigger=2, poll_seconds=0.1) == [(0, 6), (1, 6)]
    assert table() == ({0: 30, 1: 31, 2: 32}, 3, 1)
    care.compact(open_store(str(lake.root)))
    lake.commit("users", [{"id": 2, "n": 99}], schema=KEYED)
    forget_the_last_batch(tmp_path / "checkpoint")
    assert run("singerlake", lake.root, poll_seconds=0.1) == [(1, 6), (2, 1)] or table()[2] == 2
    assert table() == ({0: 30, 1: 31, 2: 99}, 3, 2)  # the repeated batch made no version


def test_a_tap_streams_into_a_table_through_restarts(run, table, tmp_path):
    upto = tmp_path / "upto"
    upto.write_text("120")
    given = {
        "app": Path(__file__).with_name("counting.py"),
        "stream": "numbers",
        "config": json.dumps({"upto": str(upto)}),
        "spool": tmp_path / "spool",
        "keep_hours": 0,
    }
    run("burler", maxRowsPerTrigger=70, **given)
    latest = {n % 50: n for n in range(121)}
    assert table()[:2] == (latest, 50)
    upto.write_text("130")
    version = table()[2]
    forget_the_last_batch(tmp_path / "checkpoint")
    run("burler", **given)
    assert table()[:2] == (latest | {n % 50: n for n in range(131)}, 50)
    assert table()[2] == version + 1


def test_no_plan_shows_what_a_source_was_given_in_confidence(spark, tmp_path):
    """Spark prints the options of streams and views with their plans, where a conf does not name them."""
    (tmp_path / "upto").write_text("3")
    app = Path(__file__).with_name("counting.py")
    config = json.dumps({"upto": str(tmp_path / "upto"), "password": "hunter2-secret"})
    given = {"app": str(app), "stream": "numbers", "config": config}

    frame = spark.readStream.format("burler").options(**given, spool=str(tmp_path / "spool")).load()
    shown = frame._jdf.queryExecution().toString()
    view = f"create temporary view confided using burler options (app '{app}', stream 'numbers', config '{config}')"
    explained = spark.sql(f"explain extended {view}").first()[0]

    assert "numbers" in shown and "numbers" in explained, "options are shown"
    assert "hunter2" not in shown + explained + repr(frame)
