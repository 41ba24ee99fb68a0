"""What columns a table can't have, whatever its format; told before rows are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from burler.errors import ExportError
from burler.records.columns.types import (
    BINARY,
    STRING,
    VARIANT,
    DecimalOf,
    FieldType,
    ListOf,
    MapOf,
    Scalar,
    StructOf,
    holds,
    names_in,
)

_XML_NAME = re.compile(r"[^\W\d][\w.-]*\Z")
_GOOD = ("bigint", "string", "boolean", "timestamp", "date")


def check_variants(columns: StructOf, place: str, kind: str) -> None:
    """Refuse VARIANT columns for a format that has no such type, or whose library here knows none.

    Raises:
        ExportError: there is one.
    """
    for name, column in columns.fields:
        if holds(column, VARIANT):
            raise ExportError(
                f"{place}: column '{name}' is a VARIANT, which burler can't write to format {kind}. Nothing was "
                "published.\nUse --open-types text (JSON text), or --format parquet"
            )


def refuse_unheld(columns: StructOf, place: str, kind: str) -> None:
    """Refuse what the files of a format have no form for, and Spark writes nevertheless.

    Raises:
        ExportError: a binary column in CSV (Spark writes a picture of its bytes); a name that is none in XML.
    """
    for name, column in columns.fields:
        if kind == "csv" and column == BINARY:
            raise ExportError(
                f"{place}: column '{name}' is binary, which CSV has no form for. Nothing was published.\n"
                "Deselect the field, or choose another --format"
            )
    for name in names_in(columns) if kind == "xml" else ():
        if not _XML_NAME.match(name):
            raise ExportError(
                f"{place}: '{name}' is no name of an XML element. Nothing was published.\n"
                "Rename or deselect the field in the tap, or choose another --format"
            )


def refuse_dotted_twins(columns: StructOf, place: str) -> None:
    """Refuse a field whose name is the path of another one: Iceberg knows the fields of a table by dotted paths.

    Raises:
        ExportError: such as ``a.b`` beside an object ``a`` with a field ``b``.
    """
    seen: set[str] = set()
    for path in _dotted(columns, ""):
        if path in seen:
            raise ExportError(
                f"{place}: '{path}' is the name of a field and the path of another one, and Iceberg knows fields by "
                "their paths. Nothing was published.\nRename or deselect one in the tap, or choose another --format"
            )
        seen.add(path)


def _dotted(kind: FieldType, before: str) -> Iterator[str]:
    match kind:
        case StructOf(fields):
            inside = list(fields)
        case ListOf(item):
            inside = [("element", item)]
        case MapOf(value):
            inside = [("key", STRING), ("value", value)]
        case _:
            inside = []
    for name, one in inside:
        yield f"{before}{name}"
        yield from _dotted(one, f"{before}{name}.")


def check_partitions(partition_by: Sequence[str], columns: StructOf, place: str, *, has_decimals: bool = True) -> None:
    """Refuse partition columns that can't be.

    Args:
        has_decimals: whether the format takes decimals there.

    Raises:
        ExportError: one that is no column, or of a type whose values have no exact short text.
    """
    for name in partition_by:
        kind = columns.get(name)
        if kind is None:
            raise ExportError(f"{place}: there is no column '{name}' to partition by. Nothing was published.")
        if isinstance(kind, DecimalOf) and not has_decimals:
            raise ExportError(
                f"{place}: column '{name}' (decimal) can't partition a Delta table: deltalake spells values below 0 "
                "wrong there. Nothing was published.\nChoose another column, or --format parquet"
            )
        if not (isinstance(kind, DecimalOf) or (isinstance(kind, Scalar) and kind.name in _GOOD)):
            told = kind.name if isinstance(kind, Scalar) else "list, map or object"
            raise ExportError(
                f"{place}: column '{name}' ({told}) can't partition a table. Nothing was published.\n"
                "Choose columns of text, integers, decimals, booleans, dates or timestamps"
            )
    if partition_by and len(set(partition_by)) >= len(columns.fields):
        raise ExportError(f"{place}: at least one column must be left beside those that partition the table")
