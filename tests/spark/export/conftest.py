"""Exports as a user makes them, and their tables as others read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.internals import export_options


@pytest.fixture
def with_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows there are, Spark does them."""
    monkeypatch.setattr(export_options, "SMALL_ROWS", 0)


@pytest.fixture(params=["small", "spark"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The test runs twice: with rows that Spark does, and with rows that need none."""
    if request.param == "spark":
        monkeypatch.setattr(export_options, "SMALL_ROWS", 0)
    return str(request.param)


@pytest.fixture
def rows_of(tmp_path: Path) -> Callable[..., list[tuple[Any, ...]]]:
    """The rows of a stream's table as ``deltalake`` reads them: sorted tuples of the named columns."""

    def rows(stream: str, *columns: str, out: str = "out", tap: str = "tap-x") -> list[tuple[Any, ...]]:
        import deltalake

        table = deltalake.DeltaTable(str(tmp_path / out / tap / stream)).to_pyarrow_table(columns=list(columns))
        return sorted((tuple(row[name] for name in columns) for row in table.to_pylist()), key=repr)

    return rows


@pytest.fixture
def run(spark: Any, lake: Any, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Export the lake; results by stream."""
    from burler.spark import export

    def go(*, out: str = "out", **options: Any) -> dict[str, Any]:
        results = export(spark, str(lake.root), str(tmp_path / out), **options)
        return {result.stream: result for result in results}

    return go
