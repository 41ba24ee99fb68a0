"""The formats that tests run for."""

from collections.abc import Sequence
from typing import Any

import pytest

ALL = ("delta", "parquet", "orc", "json", "iceberg", "rest", "postgres")
WITH_ARROW = ("delta", "parquet", "iceberg", "rest", "postgres")
"""Those that take Arrow rows, so that nothing here needs a session."""
LOCAL = ("delta", "parquet", "iceberg", "postgres")
"""Those of them that another program reads here (``format_readers``)."""
FILES = ("delta", "parquet", "iceberg")
"""Those of them that keep data folders on the file system, in a place that is known without asking."""
PARTITIONED = ("delta", "parquet", "iceberg")


def at_night(formats: Sequence[str], *few: str) -> list[Any]:
    """The same, but that those which Spark writes as it writes another one that stays are left to the night."""
    return [pytest.param(name, marks=pytest.mark.nightly) if name in few else name for name in formats]
