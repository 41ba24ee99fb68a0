"""The columns that burler adds to a stream's own, and how a column is named in Spark.

``_burler_*`` columns exist only while a table is made; they carry line order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from burler.errors import ExportError
from burler.records.columns.types import BIGINT, STRING, TIMESTAMP, StructOf, names_in

if TYPE_CHECKING:
    from pyspark.sql import Column

EXTRACTED_AT = "_sdc_extracted_at"
BATCHED_AT = "_sdc_batched_at"
VERSION = "_sdc_version"
SEQUENCE = "_sdc_sequence"
SOURCE_FILE = "_sdc_source_file"

RANK = "_burler_rank"
BLOCK = "_burler_block"
LINE = "_burler_line"
ROW_NUMBER = "_burler_row"

_VARIABLE = re.compile(r"\$\{[^}$\s]+\}")

ADDED = StructOf(
    (
        (EXTRACTED_AT, TIMESTAMP),
        (BATCHED_AT, TIMESTAMP),
        (VERSION, BIGINT),
        (SEQUENCE, BIGINT),
        (SOURCE_FILE, STRING),
    )
)
ORDER = StructOf(((RANK, BIGINT), (BLOCK, BIGINT), (LINE, BIGINT)))

STAGED = StructOf(
    (
        (EXTRACTED_AT, TIMESTAMP),
        (VERSION, BIGINT),
        (SEQUENCE, BIGINT),
        (SOURCE_FILE, STRING),
        *ORDER.fields,
    )
)
"""What stands after the stream's columns in rows that were read and are not yet a table's."""


def table_columns(record: StructOf, stream: str) -> StructOf:
    """A table's columns: the stream's, then the ``_sdc_*`` ones.

    Raises:
        ExportError: a field of the stream has the name of a column that burler adds.
    """
    taken = {name for name, _ in ADDED.fields + ORDER.fields} | {ROW_NUMBER}
    for name, _ in record.fields:
        if name.lower() in taken:
            raise ExportError(
                f"stream '{stream}': its field '{name}' has the name of a column that export adds. "
                "Rename or deselect the field in the tap"
            )
    refuse_names(record, f"stream '{stream}'")
    return StructOf(record.fields + ADDED.fields)


def refuse_names(columns: StructOf, whose: str) -> None:
    """Refuse names that don't come through: with the character NUL (Arrow), and those that Spark's Parquet reader and
    writer take for a setting, and put its value in their place.

    They pass column names on through Hadoop's configuration: what stood under such a name would be null, and the value
    of the setting (which may be a secret) would stand in the file.

    Raises:
        ExportError: there is one.
    """
    for name in names_in(columns):
        if "\0" in name:
            raise ExportError(
                f"{whose}: the name of its field {name!r} holds the character NUL, which tables can't have. "
                "Nothing was published.\nRename or deselect the field in the tap"
            )
        if _VARIABLE.search(name):
            raise ExportError(
                f"{whose}: its field '{name}' has the form of a variable, which Spark puts a setting's value into. "
                "Nothing was published.\nRename or deselect the field in the tap"
            )


def named(name: str) -> Column:
    """The column of exactly this name, whatever characters it holds."""
    from pyspark.sql import functions

    return functions.col(quoted(name))


def quoted(name: str) -> str:
    """``name`` as ``select`` and SQL take it, whatever characters it holds.

    In SQL text that Spark parses (``selectExpr``, ``expr``) a stream's names have no place all the same: variables are
    put into it (``${env:HOME}``), and a conf of the user's makes patterns of quoted names.
    """
    return "`" + name.replace("`", "``") + "`"
