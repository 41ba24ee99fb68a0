"""Rows of every kind for tables of every format, the same changes to all of them, and how others read them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from burler.spark import record_type
from support.internals import formats_base

NOON = dt.datetime(2024, 1, 2, 12, 0, 0, 123456, tzinfo=dt.UTC)
INTEGER, NUMBER, TEXT = {"type": "integer"}, {"type": "number"}, {"type": "string"}
BASE = {"id": INTEGER, "at": {"type": "string", "format": "date-time"}, "text": TEXT}
EVERY = {
    **BASE,
    "amount": {"type": "number", "multipleOf": 1e-9},
    "share": NUMBER,
    "flag": {"type": "boolean"},
    "day": {"type": "string", "format": "date"},
    "blob": {"type": "string", "contentEncoding": "base64"},
    "tags": {"type": "array", "items": TEXT},
    "place": {"type": "object", "properties": {"x": INTEGER, "name": TEXT}},
    "more": {"type": "object", "additionalProperties": INTEGER},
    "a.b c": TEXT,
}


def columns(**properties: Any) -> Any:
    """The columns of a table for these properties of a schema."""
    return record_type({"properties": properties})


COLUMNS, WIDE = columns(**BASE), columns(**EVERY)
FULL_ROW = {
    "id": 9223372036854775807,
    "at": NOON,
    "text": "é\n\t\"'\\ 🂡",
    "amount": Decimal("-12345678901234567890123456789.123456789"),
    "share": 0.1,
    "flag": True,
    "day": dt.date(1, 1, 1),
    "blob": b"\x00\xff",
    "tags": ["a", None, ""],
    "place": {"x": -1, "name": None},
    "more": {"k": 1, "": None},
    "a.b c": "odd name",
}


def change(kind: str, columns: Any = COLUMNS, **more: Any) -> Any:
    """A change with the schema that the columns have, keys ``id`` and order ``at``."""
    from burler.spark import spark_schema

    more.setdefault("numbers", {"burler:g": 1})
    if kind == "merge":
        more.setdefault("keys", ("id",))
        more.setdefault("newer", ("at",))
    return formats_base.Change(kind, columns, spark_schema(columns).jsonValue(), **more)


def arrow(rows: list[Mapping[str, Any]], columns: Any = COLUMNS) -> Any:
    """An Arrow table of the rows; what a row lacks is null."""
    import pyarrow as pa

    from burler.spark import arrow_schema

    lists = {name: [row.get(name) for row in rows] for name, _ in columns.fields}
    schema = arrow_schema(columns)
    return pa.table([pa.array(lists[field.name], field.type) for field in schema], schema=schema)


def frame(spark: Any, rows: list[Mapping[str, Any]], columns: Any = COLUMNS) -> Any:
    """The same as a DataFrame."""
    from burler.spark import spark_schema

    return spark.createDataFrame(
        [tuple(row.get(name) for name, _ in columns.fields) for row in rows], spark_schema(columns)
    )


def plain(value: Any) -> Any:
    """A Spark or Arrow value as plain Python: rows and maps as dicts, times in UTC."""
    if hasattr(value, "asDict"):
        return {name: plain(one) for name, one in value.asDict().items()}
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC)
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, bytearray):
        return bytes(value)
    return value


def read(frame: Any, by: str = "id") -> list[dict[str, Any]]:
    """All rows of a DataFrame as plain dicts, sorted."""
    table = frame.toArrow()
    rows = [{name: plain(value) for name, value in row.items()} for row in table.to_pylist()]
    return sorted(rows, key=lambda row: (row[by] is not None, row[by]))


def row(number: int, text: str | None = None, at: Any = NOON, **more: Any) -> dict[str, Any]:
    return {"id": number, "at": at, "text": text, **more}
