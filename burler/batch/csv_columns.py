"""The columns of a stream's CSV files: its declared fields in order, and how a value of each is written.

``text`` is text as it is, in quotes; ``number`` and ``boolean`` the JSON source text, bare; ``json`` JSON text in
quotes. A field that takes text and other scalars is ``text`` (its numbers are read back as text), one that takes
objects or arrays, or says nothing of its type, is ``json``, which reads back as it was. Of numbers and texts whose
columns in Parquet are narrower a column knows that, too: its cells are held against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.formats.csv import Column, Narrow
from burler.records.columns.nodes import SchemaNode, column_type, fields_of
from burler.records.columns.types import DATE, TIMESTAMP, FieldType

_MOMENTS: dict[FieldType, Narrow] = {TIMESTAMP: "date-time", DATE: "date"}
_SCALARS = {"integer", "number", "string", "boolean"}


def columns_of(schema: Mapping[str, Any]) -> tuple[Column, ...]:
    """The columns of a schema's rows: none if it declares no fields."""
    return tuple(_column(name, node) for name, node in fields_of(schema).items())


def _column(name: str, node: SchemaNode) -> Column:
    types = node.names - {"null"}
    if types and types <= {"integer", "number"}:
        return Column(name, "number", None if "number" in types else "integer")
    if types == {"boolean"}:
        return Column(name, "boolean")
    if "string" not in types or not types <= _SCALARS:
        return Column(name, "json")
    return Column(name, "text", _MOMENTS.get(column_type(node)))
