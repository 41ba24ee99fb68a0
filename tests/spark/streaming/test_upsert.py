"""``burler.spark.upsert``: one row a key, one commit a batch, and a batch that comes again changes nothing."""

from __future__ import annotations

import pytest

from burler.errors import ExportError, UsageError
from burler.spark import upsert


@pytest.fixture
def table(tmp_path):
    """The table's rows as ``deltalake`` reads them, and its version."""
    from deltalake import DeltaTable

    def read(*columns):
        found = DeltaTable(str(tmp_path / "table"))
        rows = found.to_pyarrow_table().select(list(columns)).to_pylist()
        return sorted((tuple(row.values()) for row in rows), key=repr), found.version()

    return read


def test_the_latest_row_of_each_key_stays(spark, tmp_path, table):
    put = upsert(tmp_path / "table", keys="id", order_by=["at"], query_id="q")
    put(spark.createDataFrame([(1, 1, "a"), (1, 3, "c"), (1, 2, "b"), (2, 9, "x")], "id int, at int, t string"), 0)
    assert table("id", "at", "t") == ([(1, 3, "c"), (2, 9, "x")], 0)
    put(spark.createDataFrame([(1, 2, "late"), (2, 9, "again"), (3, None, "new")], "id int, at int, t string"), 1)
    assert table("id", "at", "t") == ([(1, 3, "c"), (2, 9, "again"), (3, None, "new")], 1)


def test_a_large_batch_is_as_right_as_a_small_one(spark, tmp_path, table):
    """Up to 100,000 rows are merged as Arrow, more are written by Spark."""
    put = upsert(tmp_path / "table", keys="id", order_by=["at"], query_id="q", delete_where="gone")
    put(spark.createDataFrame([(1, 9, False), (2, 1, False)], "id long, at long, gone boolean"), 0)
    put(spark.range(100_001).selectExpr("id % 5 as id", "id % 7 as at", "id % 5 = 3 as gone"), 1)
    assert table("id", "at", "gone") == ([(0, 6, False), (1, 9, False), (2, 6, False), (4, 6, False)], 1)


def test_a_batch_that_comes_again_changes_nothing(spark, tmp_path, table):
    put = upsert(tmp_path / "table", keys=["id"], order_by="at", query_id="q")
    first = spark.createDataFrame([(1, 1)], "id long, at long")
    put(first, 0)
    put(first, 0)
    put(spark.createDataFrame([(1, 5)], "id long, at long"), 1)
    put(spark.createDataFrame([(1, 6)], "id long, at long"), 1)
    assert table("id", "at") == ([(1, 5)], 1)
    with pytest.raises(ExportError, match=r"batch 0 comes after batch 1[\s\S]*query_id"):
        put(first, 0)
    other = upsert(tmp_path / "table", keys="id", order_by="at", query_id="another checkpoint")
    other(spark.createDataFrame([(2, 1)], "id long, at long"), 0)
    put(first, 1)  # what the first query has said is not forgotten
    assert table("id", "at") == ([(1, 5), (2, 1)], 2)


def test_deletes_new_columns_and_what_does_not_fit(spark, tmp_path, table):
    put = upsert(tmp_path / "table", keys="id", order_by="at", query_id="q", delete_where="gone")
    put(spark.createDataFrame([(1, 1, False), (2, 1, True), (3, 1, None)], "id long, at long, gone boolean"), 0)
    assert table("id", "gone") == ([(1, False), (3, None)], 0)
    put(spark.createDataFrame([(1, 2, True, 0.5), (4, 1, False, 1.5)], "id long, at long, gone boolean, p float"), 1)
    assert table("id", "p") == ([(3, None), (4, 1.5)], 1)
    with pytest.raises(ExportError, match="column 'p'"):
        put(spark.createDataFrame([(5, 1, False, "x")], "id long, at long, gone boolean, p string"), 2)
    with pytest.raises(ExportError, match="'P' of the batch and 'p' of the table differ in case alone"):
        put(spark.createDataFrame([(5, 1, False, 0.5)], "id long, at long, gone boolean, P float"), 2)
    with pytest.raises(ExportError, match=r"without a value in the key \(id\)"):
        put(spark.createDataFrame([(None, 1, False)], "id long, at long, gone boolean"), 2)
    with pytest.raises(UsageError, match="'nokey'"):
        upsert(tmp_path / "table", keys="nokey", order_by="at", query_id="q")(spark.range(1), 2)
    assert table("id") == ([(3,), (4,)], table("id")[1])


def test_what_can_not_be_known_is_asked_for(spark, tmp_path):
    with pytest.raises(UsageError, match="query_id"):
        upsert(tmp_path / "table", keys="id")(spark.range(1), 0)
    with pytest.raises(UsageError, match="order_by"):
        upsert(tmp_path / "table", keys="id", query_id="q")(spark.range(1), 0)
    with pytest.raises(UsageError, match="needs keys"):
        upsert(tmp_path / "table", keys=[])
    with pytest.raises(UsageError, match=r"column 'd' is of type interval"):
        upsert(tmp_path / "t", keys="id", order_by="id", query_id="q")(spark.sql("select 1 id, interval 1 day d"), 0)
