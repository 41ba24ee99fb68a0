"""Rows into PostgreSQL by COPY, from executors or from here: Arrow batches become CSV, column by column.

COPY of CSV from ``mapInArrow`` is the fastest way measured. Each task loads its rows and notes
that it did in one transaction, so a task that Spark runs twice adds them once.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from burler.extras import require
from burler.records.columns.types import DecimalOf, FieldType, ListOf, MapOf, Scalar, StructOf
from burler.spark.formats import postgres_sql as sql

if TYPE_CHECKING:
    import pyarrow

NEEDED_FOR = "burler export --format jdbc"
_UNBOUNDED = {"inf": "Infinity", "-inf": "-Infinity"}
_JSON_NUL = r"(?:^|[^\\])(?:\\\\)*\\u0000"
"""NUL in JSON text; behind a backslash that is itself escaped, ``u0000`` is plain text."""
REPORT = "part bigint, rows bigint, error string"


@dataclass(frozen=True, slots=True)
class Load:
    """What a task needs to know. It travels to executors with the password in it, and never shows it."""

    connection: Mapping[str, str] = field(repr=False)
    stage: str
    columns: StructOf

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """One task: its rows into the staging table; yields one row of ``REPORT``."""
        import pyarrow as arrow
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        rows, error = self._run(batches, part)
        yield arrow.RecordBatch.from_arrays(
            [
                arrow.array([part], arrow.int64()),
                arrow.array([rows], arrow.int64()),
                arrow.array([error], arrow.string()),
            ],
            names=["part", "rows", "error"],
        )

    def _run(self, batches: Iterator[pyarrow.RecordBatch], part: int) -> tuple[int, str | None]:
        psycopg = require("psycopg", extra="sql", needed_for=NEEDED_FOR)
        try:
            with psycopg.connect(**self.connection) as connection:
                try:
                    tasks = sql.beside_values(sql.tasks_of(self.stage))
                    connection.execute(f"INSERT INTO {tasks} VALUES (%s)", [part])
                except psycopg.errors.UniqueViolation:
                    connection.rollback()
                    for _ in batches:  # the rows are there: an attempt before this one was taken for dead
                        pass
                    return 0, None
                return copy(connection, self.stage, self.columns, batches), None
        except (psycopg.Error, Unfit) as error:
            return 0, reason(error)


class Unfit(Exception):
    """A value that PostgreSQL has no place for; its text says which column."""


def reason(error: BaseException) -> str:
    """What a database error says, on one line, with its column."""
    about = getattr(error, "diag", None)
    said = (getattr(about, "message_primary", None) or str(error)).strip().partition("\n")[0]
    context = (getattr(about, "context", None) or "").partition("\n")[0]
    place = context.partition(": ")[0].partition(", line")[2]
    return f"{said} (line{place})" if place and isinstance(context, str) else said


def cure(error: BaseException) -> str:
    """What a person can do about a database error, by its SQLSTATE."""
    match getattr(error, "sqlstate", None) or "":
        case "2BP01":  # dependent objects
            return "A view, or something else, is made on a column whose type changes: drop it, export, make it again"
        case "54000" | "54001" | "54011":  # a limit of PostgreSQL's
            return "PostgreSQL can't hold this: keys of some 2,700 bytes at the most, rows of 8 kB besides long texts"
        case "53100":
            return "Make room on the database's disk"
    return "See that the database can be reached and that its user may make schemas and tables in it"


def copy(connection: Any, table: str, columns: StructOf, batches: Iterable[Any]) -> int:
    """COPY batches into a table in the connection's transaction; how many rows.

    Raises:
        Unfit: a text with the character NUL, which PostgreSQL has in no type.
    """
    rows = 0
    with connection.cursor() as cursor, cursor.copy(sql.copy_into(table, columns)) as out:
        for batch in batches:
            if batch.num_rows:
                out.write(as_csv(batch, columns))
                rows += batch.num_rows
    return rows


def as_csv(batch: Any, columns: StructOf) -> bytes:
    """A batch as COPY's CSV. Strings are quoted and null is empty, so the two stay apart."""
    arrow = require("pyarrow", extra="spark", needed_for=NEEDED_FOR)
    csv = require("pyarrow.csv", extra="spark", needed_for=NEEDED_FOR)
    compute = require("pyarrow.compute", extra="spark", needed_for=NEEDED_FOR)
    arrays = []
    for (name, kind), column in zip(columns.fields, batch.columns, strict=True):
        text = _column(column, kind, arrow)
        nul = _JSON_NUL if sql.type_of(kind) == "jsonb" else "\\x00"
        if arrow.types.is_string(text.type) and compute.any(compute.match_substring_regex(text, nul)).as_py():
            raise Unfit(
                f"column '{name}' holds a text with the character NUL (U+0000), which PostgreSQL has in no type; "
                "take it out in the tap"
            )
        arrays.append(text)
    out = io.BytesIO()
    table = arrow.Table.from_arrays(arrays, names=[str(at) for at in range(len(arrays))])
    csv.write_csv(table, out, csv.WriteOptions(include_header=False, quoting_style="needed"))
    return out.getvalue()


def _column(column: Any, kind: FieldType, arrow: Any) -> Any:
    if isinstance(kind, ListOf | MapOf | StructOf):
        texts = [None if value is None else as_json(value, kind) for value in column.to_pylist()]
        return arrow.array(texts, arrow.string())
    if isinstance(kind, DecimalOf):
        return column.cast(arrow.string())
    if kind.name == "binary":
        return arrow.array([None if one is None else f"\\x{one.hex()}" for one in column.to_pylist()], arrow.string())
    if kind.name == "timestamp":
        return column.cast(arrow.timestamp("us", "UTC"))
    if kind.name in ("bigint", "double", "boolean", "date"):
        return column
    return column.cast(arrow.string())


def as_json(value: Any, kind: FieldType) -> str:
    """A nested value as JSON text, with every digit. Maps come as lists of pairs."""
    if value is None:
        return "null"
    match kind:
        case ListOf(item):
            return "[" + ",".join(as_json(one, item) for one in value) + "]"
        case MapOf(inner):
            pairs = value.items() if isinstance(value, Mapping) else value
            return "{" + ",".join(f"{_quoted(name)}:{as_json(one, inner)}" for name, one in pairs) + "}"
        case StructOf(fields):
            return "{" + ",".join(f"{_quoted(name)}:{as_json(value[name], inner)}" for name, inner in fields) + "}"
        case DecimalOf():
            return format(value, "f")
        case Scalar("double"):
            return repr(value) if math.isfinite(value) else _quoted(_UNBOUNDED.get(str(value), "NaN"))
        case Scalar("bigint"):
            return str(value)
        case Scalar("boolean"):
            return "true" if value else "false"
        case Scalar("timestamp"):
            return _quoted(value.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0"))
        case Scalar("binary"):
            return _quoted(base64.b64encode(value).decode())
    return _quoted(str(value))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
