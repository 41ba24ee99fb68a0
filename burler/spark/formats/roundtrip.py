"""Proof that files give back what was written into them.

Spark's writers and readers of other formats than Parquet don't always agree: ORC moves times before 1970 and dates of
1582, XML and CSV trim. So what goes in and what comes out are each reduced to a number a column, and compared before
anything is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from burler.errors import ExportError
from burler.records.columns.types import VARIANT, DecimalOf, FieldType, Scalar, StructOf
from burler.spark.columns import named
from burler.spark.remote import capabilities

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROWS = "burler_rows"
_MOST_COLUMNS = 100
"""Of more columns together there is one number, and an error can't name the column: a query has its limits."""
_EXACT = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false", "timeZone": "UTC"}


class Written:
    """Rows on their way into files: ``frame`` is what is written, ``against`` what is read again."""

    def __init__(self, rows: DataFrame, columns: StructOf) -> None:
        from pyspark.sql import Observation

        self._marks = _marks(columns)
        self._rows = rows
        self._seen = Observation() if capabilities(rows.sparkSession).has_observe else None
        self.frame = rows
        if self._seen is not None:
            self.frame = rows.observe(self._seen, *(mark.alias(name) for name, mark in self._marks.items()))

    def against(self, back: DataFrame, place: str, kind: str) -> int:
        """How many rows there are.

        Args:
            back: the same columns, read from the files.

        Raises:
            ExportError: they can't be read, or differ; names the columns.
        """
        wanted = self._seen.get if self._seen is not None else self._counted(self._rows)
        try:
            found = self._counted(back)
        except Exception as error:  # Spark raises many kinds
            text = str(error).strip().partition("\n")[0][:200]
            raise ExportError(
                f"{place}: what was written as {kind} can't be read again ({text}). Nothing was published.\n{_CURE}"
            ) from None
        if found == wanted:
            return int(found[_ROWS] or 0)
        names = [name for name in self._marks if name != _ROWS and found[name] != wanted[name]]
        fact = f"{wanted[_ROWS]} rows were written and {found[_ROWS]} come back"
        if found[_ROWS] == wanted[_ROWS]:
            fact = f"values of {', '.join(repr(name) for name in names)} don't come back as they were written"
        raise ExportError(f"{place}: {kind} can't hold these rows exactly: {fact}. Nothing was published.\n{_CURE}")

    def _counted(self, rows: DataFrame) -> Mapping[str, Any]:
        made = rows.agg(*(mark.alias(name) for name, mark in self._marks.items())).first()
        return dict(made.asDict()) if made is not None else {}


_CURE = "Choose --format delta or parquet, other options of the format, or deselect the field"


def _marks(columns: StructOf) -> dict[str, Column]:
    """A sum of hashes for each column; equal whatever the order of the rows."""
    from pyspark.sql import functions as f

    hashes = {name: f.xxhash64(_plain(name, kind)) for name, kind in columns.fields}
    if len(hashes) > _MOST_COLUMNS:
        hashes = {"the columns": f.xxhash64(*hashes.values())}
    marks = {name: f.sum(one.cast("decimal(20,0)")) for name, one in hashes.items()}
    return {**marks, _ROWS: f.count(f.lit(1))}


def _plain(name: str, kind: FieldType) -> Column:
    """The column, or, where Spark hashes none of its type (maps, VARIANT), its JSON."""
    from pyspark.sql import functions as f

    if isinstance(kind, Scalar | DecimalOf) and kind != VARIANT:
        return named(name)
    return f.to_json(f.struct(named(name)), _EXACT)
