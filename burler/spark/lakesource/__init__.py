"""``spark.read.format("singerlake")``: the rows of one stream of a lake as a DataFrame, and as a stream of its commits.

Importing this package loads no pyspark: ``DefaultSource``, which Spark looks for, is made when it is
first asked for.

What to open for what:

    options   what a reader may be told, and how big its tasks are
    chosen    which files it reads; ranges: which commits a stream reads
    tasks     how files become tasks
    rows      rows on an executor
"""

from __future__ import annotations

from typing import Any

__all__ = ["DefaultSource"]


def __getattr__(name: str) -> Any:
    if name != "DefaultSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from burler.spark.lakesource.datasource import lake_source

    value = globals()[name] = lake_source()
    return value
