"""Found by Spark by its name: makes ``spark.read.format("burler")`` work without a register()."""

from __future__ import annotations

import contextlib

with contextlib.suppress(Exception):  # a Spark session must come up also where burler is broken or half removed
    from burler.spark.source import DefaultSource  # noqa: F401
