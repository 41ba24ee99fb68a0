"""The columns of a DataFrame over a lake: the stream's, then burler's own; and whether they still fit the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burler.errors import ExportError
from burler.records.columns.types import BIGINT, STRING, TIMESTAMP, FieldType, StructOf
from burler.spark.columns import EXTRACTED_AT, SEQUENCE, SOURCE_FILE, VERSION
from burler.spark.lakesource.kinds_of import columns_of
from burler.spark.lakesource.options import LakeOptions
from burler.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

POSITION = "_sdc_position"
"""Orders the rows of one commit: its file's place in it times 2^32, and the line. With ``_sdc_sequence`` this is the
order in which the tap said them."""
BAD = "_sdc_bad"

OWN: tuple[tuple[str, FieldType], ...] = (
    (EXTRACTED_AT, TIMESTAMP),
    (VERSION, BIGINT),
    (SEQUENCE, BIGINT),
    (SOURCE_FILE, STRING),
    (POSITION, BIGINT),
)


class SchemaChanged(ExportError):
    """The lake has a schema version that does not fit the columns that a query began with."""


def frame_columns(record: StructOf, options: LakeOptions, stream: str) -> StructOf:
    """The columns of a DataFrame: ``record``, then ``OWN``, then ``_sdc_bad`` where bad rows are kept.

    Raises:
        ExportError: the stream has a field of such a name.
    """
    own = (*OWN, (BAD, STRING)) if options.bad == "keep" else OWN
    names = {name for name, _ in own}
    taken = next((name for name, _ in record.fields if name.lower() in names), None)
    if taken is not None:
        raise ExportError(
            f"stream '{stream}': its field '{taken}' has the name of a column that burler adds. "
            'Name the fields that you want without it: option("fields", "id,name")'
        )
    return StructOf((*record.fields, *own))


def misfit(wanted: StructType, columns: StructOf, options: LakeOptions) -> str | None:
    """Why rows in ``columns`` do not fit a DataFrame of the schema ``wanted``; None if they do.

    Columns may come in another order. A column that the DataFrame lacks is no harm where it is one of burler's, or
    where the options say that new ones may be left out.
    """
    there = {field.name: field.dataType for field in wanted}
    for field in spark_schema(columns):
        if field.name in there:
            if there[field.name] != field.dataType:
                return (
                    f"its column '{field.name}' is {field.dataType.simpleString()[:60]} now; the query began with "
                    f"{there[field.name].simpleString()[:60]}"
                )
        elif not options.ignores_new and field.name not in {name for name, _ in OWN} | {BAD}:
            return f"it has a new field '{field.name}'"
    missing = [name for name in there if columns.get(name) is None]
    is_whole = all(name in there for name, _ in columns.fields)  # else a column may go by another name now
    return f"it has no column '{missing[0]}'" if missing and not (options.may_lack and is_whole) else None


def in_order(wanted: StructType, columns: StructOf) -> StructOf:
    """``columns`` as the DataFrame has them: those that ``wanted`` names, in its order."""
    kinds = {**dict(columns_of(wanted).fields), **dict(columns.fields)}
    return StructOf(tuple((field.name, kinds[field.name]) for field in wanted))
