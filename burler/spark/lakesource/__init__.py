"""``spark.read.format("singerlake")``: the rows of one stream of a lake as a DataFrame, and as a stream of its commits.

Importing this package loads no pyspark: ``DefaultSource``, which Spark looks for, is made when it is
first asked for.
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
