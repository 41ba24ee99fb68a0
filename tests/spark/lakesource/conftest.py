"""A lake read as Spark's processes read it, without a JVM: planned, pickled, and read task by task."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

Read = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def tasks(packages: None) -> Callable[..., list[list[dict[str, Any]]]]:
    """The rows of a batch read with these options, as dicts, task by task."""
    from pyspark_singerlake import DefaultSource

    def read(path: Any, *, as_loaded: Any = None, **options: Any) -> list[list[dict[str, Any]]]:
        source = DefaultSource({"path": str(path), **{name: str(value) for name, value in options.items()}})
        reader = source.reader(source.schema() if as_loaded is None else as_loaded)
        parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions()]
        return [[row for batch in reader.read(part) for row in batch.to_pylist()] for part in parts]

    return read


@pytest.fixture
def rows(tasks: Any) -> Read:
    """All rows, in the order of the tasks."""
    return lambda path, **options: [row for task in tasks(path, **options) for row in task]
