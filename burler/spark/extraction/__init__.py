"""``burler extract``: a tap's partitions as Spark tasks that write lake files on the executors.

The driver holds locks and claims, commits what tasks have written, puts their states together and says STATE, as a
local run into the lake does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.spark.extraction.extracting import extract

__all__ = ["extract"]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(__name__, {"extract": "extracting"})
