"""Streams as Spark's driver and executors run them, without a JVM: offsets are written as JSON and read again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))


class Query:
    """One run of a query: what Spark asks a stream reader, in Spark's order."""

    def __init__(self, path: Any, options: dict[str, Any], as_loaded: Any = None) -> None:
        from pyspark_singerlake import DefaultSource

        source = DefaultSource({"path": str(path), **{name: str(value) for name, value in options.items()}})
        self.schema = source.schema() if as_loaded is None else as_loaded
        self.reader = source.streamReader(self.schema)

    def initial(self) -> str:
        return json.dumps(self.reader.initialOffset())

    def latest(self, start: str, *, limited: bool = True) -> str:
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        limit = self.reader.getDefaultReadLimit() if limited else ReadAllAvailable()
        return json.dumps(self.reader.latestOffset(json.loads(start), limit))

    def rows(self, start: str, end: str) -> list[dict[str, Any]]:
        parts = self.reader.partitions(json.loads(start), json.loads(end))
        return [row for part in parts for batch in self.reader.read(part) for row in batch.to_pylist()]

    def ids(self, start: str, end: str) -> list[int]:
        return [row["id"] for row in self.rows(start, end)]

    def batches(self, start: str | None = None) -> list[list[int]]:
        """The ids of all batches that there are now."""
        found, at = [], start or self.initial()
        while (end := self.latest(at)) != at:
            found.append(self.ids(at, end))
            at = end
        return found


@pytest.fixture
def query(packages: None) -> Callable[..., Query]:
    def made(path: Any, as_loaded: Any = None, **options: Any) -> Query:
        return Query(path, {"poll_seconds": 0, **options}, as_loaded)

    return made


class AppQuery(Query):
    """The same over a tap."""

    def __init__(self, options: dict[str, Any]) -> None:
        from pyspark_burler import DefaultSource

        self.given = {name: str(value) for name, value in options.items()}
        source = DefaultSource(self.given)
        self.schema = source.schema()
        self.reader = source.streamReader(self.schema)

    def run(self, start: str | None = None) -> list[tuple[str, str]]:
        """The batches of an availableNow run, as (start, end)."""
        self.reader.prepareForTriggerAvailableNow()
        found, at = [], start or self.initial()
        try:
            while (end := self.latest(at)) != at:
                found.append((at, end))
                at = end
        finally:
            self.reader.stop()
        return found


@pytest.fixture
def app_query(packages: None, tmp_path: Path) -> Callable[..., AppQuery]:
    """A query over the tap of ``counting.py``, which counts up to the number in a file."""
    config = {"upto": str(tmp_path / "upto"), "password": "hunter2-secret"}

    def made(**options: Any) -> AppQuery:
        app = Path(__file__).with_name("counting.py")
        given = {
            "app": app,
            "stream": "numbers",
            "config": json.dumps(config),
            "spool": tmp_path / "spool",
            "land_seconds": 0.2,
        }
        return AppQuery({name: value for name, value in {**given, **options}.items() if value is not None})

    return made


@pytest.fixture
def upto(tmp_path: Path) -> Callable[[int], None]:
    """Say how far the tap counts from now on."""

    def say(number: int) -> None:
        new = tmp_path / "upto.new"
        new.write_text(str(number))
        new.rename(tmp_path / "upto")

    return say
