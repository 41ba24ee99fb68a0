"""``engine="session"``: the SQL is what Spark's own parser takes, and a session without the JARs is told so.

No Delta and no Iceberg JAR exists for this Spark, so nothing here shows what they do with the statements.
"""

from __future__ import annotations

from typing import Any

import pytest
from format_samples import WIDE, change

from burler.errors import UsageError
from support.internals import bysession, column_kinds, opening

ODD = column_kinds.StructOf(
    (
        ("i`d", column_kinds.BIGINT),
        ("a.b", column_kinds.STRING),
        ("at", column_kinds.BIGINT),
        ("list", column_kinds.ListOf(column_kinds.DecimalOf(3))),
    )
)


def parse(spark: Any, statement: str) -> str:
    """The plan that Spark makes of a statement; its parser's error if it makes none."""
    return str(spark._jsparkSession.sessionState().sqlParser().parsePlan(statement).toString())


def test_merge_parses_and_compares_the_way_it_should(spark: Any) -> None:
    made = change("merge", ODD, keys=("i`d", "a.b"), newer=("at",))
    plan = parse(spark, bysession.merge_sql(f"delta.{bysession.quoted('/o/é x/things')}", "given", made))
    assert "MergeIntoTable" in plan
    assert "insertaction" in plan
    assert "updateaction" in plan
    assert "'t.i`d = 's.i`d" in plan.replace("`i``d`", "i`d")
    assert "isnotnull('s.at)" in plan
    # Spark itself decides by the condition: the same rows as in the contract of all formats.
    condition = bysession.merge_sql("t", "s", made).partition("WHEN MATCHED AND ")[2].partition(" THEN UPDATE")[0]
    rows = [(1, 1), (1, 2), (2, 1), (None, 1), (1, None), (None, None)]
    judged = spark.createDataFrame(rows, "given int, old int").selectExpr(
        "given", "old", f"coalesce({condition.replace('s.`at`', 'given').replace('t.`at`', 'old')}, false) as wins"
    )
    assert [row.wins for row in judged.collect()] == [True, False, True, False, True, True]


def test_new_columns_and_properties_parse(spark: Any) -> None:
    [statement] = bysession.columns_sql("c.n.t", change("merge", WIDE), ["id", "at", "text"])
    plan = parse(spark, statement)
    assert "AddColumns" in plan
    assert plan.count("qualifiedcoltype") == len(WIDE.fields) - 3
    assert bysession.columns_sql("c.n.t", change("merge", WIDE), [name for name, _ in WIDE.fields]) == []
    assert "a 'b\\ c" in parse(spark, bysession.properties_sql("c.n.t", {"x": "a 'b\\ c"}))


def test_numbers_come_back_from_table_properties(spark: Any, tmp_path: Any) -> None:
    """Shown by a table of Spark's own: what an export stored is what it reads, and none of it is redacted."""
    options = {"catalog": "spark_catalog.default"}
    target = bysession.SessionTarget("iceberg", "/o/tap_x/urls", "tap-x/url of secrets", options, lambda: spark)
    table = "spark_catalog.default.tap_x__urls"
    spark.sql(f"create table {table} (id bigint, at timestamp, text string) using parquet location '{tmp_path}/t'")
    try:
        assert target._properties(spark) == {}
        spark.sql(bysession.properties_sql(table, target._about(change("merge", numbers={"burler:token": 7}), 3)))
        said = target._properties(spark)
        assert said == {
            "export.source": "tap-x/url of secrets",
            "export.numbers": '{"burler:token": 7}',
            "export.version": "3",
        }
    finally:
        spark.sql(f"drop table {table}")
    assert target._properties(spark) is None


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_session_without_the_jars(spark: Any, kind: str, tmp_path: Any) -> None:
    place = opening.place_of(f"session:{kind}", str(tmp_path), "t", "s", "t", "s")
    options = {"catalog": "lake.raw"} if kind == "iceberg" else {}
    target = opening.open_target(f"session:{kind}", place, source="t/s", options=options, spark=lambda: spark)
    with pytest.raises(UsageError, match=f"no format '{kind}'. Start it with its JAR"):
        target.open()


def test_session_needs_a_catalog_for_iceberg(tmp_path: Any) -> None:
    place = opening.place_of("session:iceberg", str(tmp_path), "t", "s", "t", "s")
    with pytest.raises(UsageError, match="--option catalog="):
        opening.open_target("session:iceberg", place, source="t/s", options={}, spark=lambda: None)
    with pytest.raises(UsageError, match="takes the option catalog only"):
        opening.open_target("session:delta", place, source="t/s", options={"x": "1"}, spark=lambda: None)
