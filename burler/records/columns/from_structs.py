"""Shaped rows as the columns of a file, without lines of JSON in between: for BATCH files in Parquet and Arrow.

Shaping has made structs of the rows, whose fields hold what the lines would show. A field's values become an array
where that is surely what a reader of the lines would make of them; where it is not, the page goes as lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from burler.records.arrow.kernels import Unsure
from burler.records.columns.struct_fields import Fields

_MOST_MISSES = 20  # pages one after another that had to become lines


class RowsDirect:
    """Makes columns of one stream's pages.

    Args:
        form: the stream's schema as ``shape.form`` makes it.
        arrow_schema: the columns wanted: those of the stream's schema (``burler.records.columns.types.arrow_schema``).
    """

    def __init__(self, form: Mapping[str, Any], arrow_schema: pa.Schema) -> None:
        self._wanted = arrow_schema
        self._columns = Fields(form, list(arrow_schema))
        self._misses = 0

    def batch(self, structs: list[Any]) -> pa.RecordBatch | None:
        """A page of shaped rows as columns; None where they must become lines."""
        if self._misses >= _MOST_MISSES or not structs:
            return None
        try:
            arrays = self._columns.arrays(structs)
            made = pa.RecordBatch.from_arrays(arrays, schema=self._wanted)
        except (Unsure, ArithmeticError, ValueError, TypeError, pa.lib.ArrowException):  # lines say what is wrong
            self._misses += 1
            return None
        self._misses = 0
        return made
