"""``burler extract``: a tap's partitions as Spark tasks that write lake files on the executors (specs 11.22).

The driver holds locks and claims, commits what tasks have written, puts their states together and says STATE, as a
local run into the lake does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.spark.extraction.extracting import extract

__all__ = ["extract"]

_HOME = {"extract": "extracting"}


if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker

    def __getattr__(name: str) -> Any:
        return lazy_names(__name__, _HOME)(name)
