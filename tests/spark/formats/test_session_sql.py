"""``engine="session"``: the SQL is what Spark's own parser takes, and a session without the JARs is told so.

No Delta and no Iceberg JAR exists for this Spark, so nothing here shows what they do with the statements.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from format_samples import INTEGER, TEXT, change, columns, frame

from burler.errors import UsageError
from burler.spark import export
from support.internals import opening

TABLE = "spark_catalog.default.tap_x__urls"
OLD = {"i`d": INTEGER, "a.b": TEXT, "at": INTEGER}
ODD = columns(**OLD, **{"new one": {"type": "array", "items": {"type": "number", "multipleOf": 0.001}}})


class WithIceberg:
    """The session as if it had Iceberg: it parses a MERGE, which Spark's own tables do not know, and does the rest."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self.merges: list[tuple[str, str]] = []
        found = SimpleNamespace(load=lambda path: SimpleNamespace(schema=None))
        self.read = SimpleNamespace(format=lambda kind: found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.spark, name)

    def sql(self, statement: str) -> Any:
        if statement.startswith("MERGE"):
            plan = self.spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)
            self.merges.append((statement, str(plan.toString())))
            return None
        return self.spark.sql(statement)


@pytest.fixture
def session(spark: Any, tmp_path: Path) -> Any:
    """With a table that an export by this engine has made."""
    made = {"export.source": "tap-x/url of secrets", "export.version": "3", "export.numbers": "{}"}
    properties = ", ".join(f"'{name}' = '{text.encode().hex()}'" for name, text in made.items())
    spark.sql(
        f"create table {TABLE} (`i``d` bigint, `a.b` string, at bigint) using parquet location '{tmp_path}/t' "
        f"tblproperties ({properties})"
    )
    yield WithIceberg(spark)
    spark.sql(f"drop table if exists {TABLE}")


def test_a_merge_is_sql_that_spark_parses_and_its_numbers_come_back(session: Any) -> None:
    """Properties that are named like secrets are not redacted, and columns that are new are added."""
    options = {"catalog": "spark_catalog.default"}
    given = {"source": "tap-x/url of secrets", "options": options, "spark": lambda: session}
    target = opening.open_target("session:iceberg", "/o/tap_x/urls", **given)
    state = target.open()
    assert (state.version, dict(state.numbers)) == (3, {})

    rows = frame(session.spark, [{"i`d": 1, "a.b": "x", "at": 5}], ODD)
    merge = change("merge", ODD, keys=("i`d", "a.b"), newer=("at",), numbers={"burler:token": 7})
    assert target.publish(rows, merge).rows_written == 1

    state = opening.open_target("session:iceberg", "/o/tap_x/urls", **given).open()
    assert (state.version, dict(state.numbers)) == (4, {"burler:token": 7})
    assert [one["name"] for one in state.schema["fields"]] == ["i`d", "a.b", "at", "new one"]
    ((statement, plan),) = session.merges
    assert "MergeIntoTable" in plan and "insertaction" in plan and "updateaction" in plan
    assert "'t.i`d = 's.i`d" in plan.replace("`i``d`", "i`d")
    assert "isnotnull('s.at)" in plan
    # Spark itself decides by the condition: the same rows as in the contract of all formats.
    condition = statement.partition("WHEN MATCHED AND ")[2].partition(" THEN UPDATE")[0]
    judged = session.createDataFrame(
        [(1, 1), (1, 2), (2, 1), (None, 1), (1, None), (None, None)], "given int, old int"
    ).selectExpr(f"coalesce({condition.replace('s.`at`', 'given').replace('t.`at`', 'old')}, false) as wins")
    assert [row.wins for row in judged.collect()] == [True, False, True, False, True, True]


def test_a_session_without_the_jars_and_wrong_options(spark: Any, lake: Any, tmp_path: Path) -> None:
    lake.commit("users", [{"id": 1}])
    for kind, options, said in (
        ("delta", {}, "no format 'delta'. Start it with its JAR"),
        ("iceberg", {"catalog": "lake.raw"}, "no format 'iceberg'. Start it with its JAR"),
        ("iceberg", {}, "--option catalog="),
        ("delta", {"x": "1"}, "takes the option catalog only"),
    ):
        with pytest.raises(UsageError, match=said):
            export(spark, str(lake.root), tmp_path / "out", format=kind, options=options, engine="session")
