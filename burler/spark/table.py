"""``burler.spark.table``: a table that an export made, read into Spark without any JAR."""

from __future__ import annotations

from burler.spark.formats.reading import table

__all__ = ["table"]
