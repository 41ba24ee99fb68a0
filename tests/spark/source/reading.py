"""``format("burler")`` as Spark's processes ask it, without a JVM: planned here, pickled, and read task by task."""

from __future__ import annotations

import json
import pickle
from typing import Any


def source(**options: Any) -> Any:
    """What Spark makes of the options; those that are no text are given as JSON."""
    from pyspark_burler import DefaultSource

    return DefaultSource(
        {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
    )


class Planned:
    """The tasks of a DataFrame, as they arrive at executors."""

    def __init__(self, *filters: Any, schema: Any = None, **options: Any) -> None:
        made = source(**options)
        self.schema = made.schema()
        self.reader = made.reader(self.schema if schema is None else schema)
        if filters:
            assert list(self.reader.pushFilters(list(filters))) == list(filters), "Spark applies them again"
        self.parts = [pickle.loads(pickle.dumps(part)) for part in self.reader.partitions()]

    def batches(self) -> list[list[Any]]:
        """Task by task."""
        return [list(self.reader.read(part)) for part in self.parts]

    def tasks(self) -> list[list[dict[str, Any]]]:
        """The rows, task by task."""
        return [[row for batch in task for row in batch.to_pylist()] for task in self.batches()]


def rows_of(**options: Any) -> list[dict[str, Any]]:
    return [row for task in Planned(**options).tasks() for row in task]
