"""What needs no Spark starts none; what does asks for a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from burler.errors import UsageError
from burler.spark import export
from support.internals import export_options

pytestmark = pytest.mark.usefixtures("packages")


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever would start a Spark here finds no way to, and no session that is there."""
    monkeypatch.setenv("SPARK_REMOTE", "no address")
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)


@pytest.mark.parametrize("kind", ["delta", "parquet", "iceberg"])
def test_few_rows_start_no_spark_in_any_run(lake: Any, tmp_path: Path, kind: str) -> None:
    """A full table that comes anew each night, and one that grows."""
    for version in (1, 2):
        for stream, keys in (("users", ("id",)), ("log", ())):
            lake.commit(stream, [{"id": version}], keys=keys, version=version, activate=version)
        lake.commit("more", [{"id": version, "name": "a"}])
        results = export(None, str(lake.root), tmp_path / "out", format=kind)
        assert {one.stream: one.rows_read for one in results} == {"users": 1, "log": 1, "more": 1}


def test_more_rows_ask_for_a_session(lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_options, "SMALL_ROWS", 3)
    lake.commit("few", [{"id": at, "name": "a"} for at in range(3)])
    lake.commit("many", [{"id": at, "name": "a"} for at in range(4)])

    (few,) = export(None, str(lake.root), str(tmp_path / "out"), streams=["few"])
    with pytest.raises(UsageError, match="no address of a Spark Connect server"):
        export(None, str(lake.root), str(tmp_path / "out"), streams=["many"])

    assert few.rows_written == 3
