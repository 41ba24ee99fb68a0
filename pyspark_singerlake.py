"""Found by Spark by its name: makes ``spark.read.format("singerlake")`` work without a register()."""

from __future__ import annotations

import contextlib

with contextlib.suppress(ImportError):  # a Spark session must come up also where burler is broken or half removed
    from burler.spark.lakesource import DefaultSource

__all__ = ["DefaultSource"]
