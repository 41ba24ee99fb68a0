"""``burler extract``: a tap's partitions as Spark tasks that write lake files on the executors (specs 11.22).

The driver holds locks and claims, commits what tasks have written, puts their states together and says STATE, as a
local run into the lake does.
"""

from __future__ import annotations

from typing import Any

from burler.extras import lazy_names

__all__ = ["extract"]

_HOME = {"extract": "extracting"}


def __getattr__(name: str) -> Any:
    return lazy_names(__name__, _HOME)(name)
