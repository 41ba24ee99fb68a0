"""A lake read as Spark's processes read it, without a JVM: planned, pickled, and read task by task."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

Read = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def plan(packages: None) -> Callable[..., list[Any]]:
    """The tasks of a batch read with these options, each as an executor gets it."""
    from support.internals import lakesource

    def planned(path: Any, *, as_loaded: Any = None, **options: Any) -> list[Any]:
        source = lakesource.DefaultSource({"path": str(path), **{name: str(value) for name, value in options.items()}})
        reader = source.reader(source.schema() if as_loaded is None else as_loaded)
        parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions()]
        return [part.value for part in parts if part.value is not None]

    return planned


@pytest.fixture
def rows(plan: Any) -> Read:
    """The rows of a batch read as dicts, in the order of the tasks."""
    from support.internals import lakesource_rows

    def read(path: Any, **options: Any) -> list[dict[str, Any]]:
        return [
            row
            for task in plan(path, **options)
            for batch in lakesource_rows.read_task(task)
            for row in batch.to_pylist()
        ]

    return read
