"""Batch files read by plain programs (gzip, json, csv, pyarrow, DuckDB), never by burler's own readers; and rows of a
RECORD run in the form that such a file must give.

Three forms. jsonl: the row as JSON has it, numbers exact. csv: each field as the value that its text stands for, None
for null and for what is not there. Columns: the types of docs/batch.md, made here once more, by hand.
"""

from __future__ import annotations

import base64
import csv
import datetime as dt
import functools
import gzip
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

SCALARS = {"string", "integer", "number", "boolean"}


def exact(text: str | bytes) -> Any:
    """A JSON document, its fractions as Decimals."""
    return json.loads(text, parse_float=Decimal)


def same(one: Any, other: Any) -> bool:
    """Equal, and of equal types: True is not 1, Decimal('1.50') is not Decimal('1.5')."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other and str(one) == str(other)


# ---- files ------------------------------------------------------------------------------------------------


def path_of(url: str) -> Path:
    """The file of a URL as targets take it: no decoding."""
    assert url.startswith("file:///"), url
    return Path(url.removeprefix("file://"))


def unpacked(path: Path) -> bytes:
    """The content of a file, unpacked by its ending."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".zst":
        import pyarrow

        with pyarrow.input_stream(str(path), compression="zstd") as stream:
            return bytes(stream.read())
    return path.read_bytes()


def rows_in(path: Path, form: str, schema: dict[str, Any]) -> list[Any]:
    """The rows of a file of a format, in the form of ``expected``."""
    if form == "jsonl":
        lines = unpacked(path).split(b"\n")
        assert lines.pop() == b"", "the last line is ended"
        return [exact(line) for line in lines]
    if form == "csv":
        return [_of_text(row, schema) for row in _fields(path)]
    return [_of_columns(row, schema) for row in _table(path, form).to_pylist()]


def _table(path: Path, form: str) -> Any:
    if form == "parquet":
        import pyarrow.parquet

        return pyarrow.parquet.ParquetFile(path).read()
    import pyarrow

    with pyarrow.ipc.open_file(path) as reader:
        return reader.read_all()


def _fields(path: Path) -> list[dict[str, str | None]]:
    """CSV by DuckDB, which tells null from the empty text; and by Python's csv, which must see the same rows."""
    content = unpacked(path)
    plain = path.parent / f".plain-{path.name}.csv"
    plain.write_bytes(content)
    try:
        found = _duckdb().execute(
            "select * from read_csv(?, all_varchar=true, header=true, delim=',', quote='\"', escape='\"', nullstr='',"
            " allow_quoted_nulls=false, auto_detect=false, strict_mode=true, new_line='\\n', max_line_size=10000000,"
            f" parallel=false, columns={{{_columns(content)}}})",
            [str(plain)],
        )
        names = [column[0] for column in found.description]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    finally:
        plain.unlink()
    by_module = list(csv.DictReader(io.StringIO(content.decode(), newline=""), strict=True))
    assert [{name: value or "" for name, value in row.items()} for row in rows] == by_module
    return rows


@functools.cache
def _duckdb() -> Any:
    import duckdb

    return duckdb.connect(config={"threads": 1})


def _columns(content: bytes) -> str:
    names = next(csv.reader(io.StringIO(content.decode(), newline="")))
    quoted = [name.replace("'", "''") for name in names]
    return ", ".join(f"'{name}': 'VARCHAR'" for name in quoted)


# ---- types, once more --------------------------------------------------------------------------------------


def kind(schema: Any) -> str:
    """What stands in a column, by the table of docs/batch.md."""
    if isinstance(schema, dict) and "anyOf" in schema:
        parts = [part for part in schema["anyOf"] if part != {"type": "null"}]
        return kind(parts[0]) if len(parts) == 1 else "open"
    if isinstance(schema, dict) and "enum" in schema and "type" not in schema:
        return "union" if any(isinstance(value, str) for value in schema["enum"]) else "open"
    if schema is True or not schema or not isinstance(schema.get("type"), str | list):
        return "open"
    said = schema["type"]
    types = ({said} if isinstance(said, str) else set(said)) - {"null"}
    if not types:
        return "null"
    if types == {"string"}:
        if schema.get("contentEncoding") == "base64":
            return "binary"
        return {"date-time": "moment", "date": "date", "singer.decimal": "decimal"}.get(schema.get("format"), "text")
    if types in ({"number"}, {"number", "integer"}):
        return "decimal" if "multipleOf" in schema else "number"
    if types == {"array"} and isinstance(schema.get("items"), dict):
        return "list"
    if types == {"object"} and "properties" in schema and not schema.get("additionalProperties"):
        return "struct"
    if types == {"object"} and isinstance(schema.get("additionalProperties"), dict) and "properties" not in schema:
        return "map"
    if len(types) == 1 and types <= {"integer", "boolean"}:
        return types.pop()
    return "union" if "string" in types and types <= SCALARS else "open"


def expected(row: dict[str, Any], form: str, schema: dict[str, Any]) -> Any:
    """A row of the RECORD run (fractions as Decimals) in the form that a file of a format gives back."""
    if form == "jsonl":
        return row
    make = _field if form == "csv" else _column
    return {name: make(row.get(name), node) for name, node in schema["properties"].items()}


def _field(value: Any, schema: Any) -> Any:
    """Text of a union is text; all else is told from its text."""
    return _source(value) if kind(schema) == "union" and value is not None else value


def _source(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _column(value: Any, schema: Any) -> Any:
    """What a column holds, as Python has it."""
    if value is None:
        return None
    if kind(schema) == "union":
        return _source(value)
    if kind(schema) == "list":
        return [_column(item, schema["items"]) for item in value]
    if kind(schema) == "struct":
        return {name: _column(value.get(name), node) for name, node in schema["properties"].items()}
    if kind(schema) == "map":
        return {name: _column(item, schema["additionalProperties"]) for name, item in value.items()}
    return _PLAIN.get(kind(schema), lambda same: same)(value)


def _moment(text: str) -> dt.datetime:
    whole, point, rest = text.partition(".")
    digits = (rest.rstrip("Z") + "000000")[:6] if point else "000000"  # more than six are cut
    return dt.datetime.strptime(f"{whole.rstrip('Z')}.{digits}+0000", "%Y-%m-%dT%H:%M:%S.%f%z")


_PLAIN = {
    "number": float,
    "decimal": lambda value: Decimal(value).normalize() or Decimal(0),  # no column has a negative zero
    "moment": _moment,
    "date": dt.date.fromisoformat,
    "binary": base64.b64decode,
}


# ---- what files give ---------------------------------------------------------------------------------------


def _of_text(row: dict[str, str | None], schema: dict[str, Any]) -> dict[str, Any]:
    """The fields of a CSV row as values, by the schema; the columns are those of the schema, in its order."""
    assert list(row) == list(schema["properties"])
    return {name: None if text is None else _of_field(text, schema["properties"][name]) for name, text in row.items()}


def _of_field(text: str, schema: Any) -> Any:
    if kind(schema) in ("text", "union", "moment", "date", "binary"):
        return text
    if kind(schema) == "decimal" and "string" in schema["type"]:
        return text
    return exact(text)


def _of_columns(row: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    assert list(row) == list(schema["properties"])
    return {name: _of_column(value, schema["properties"][name]) for name, value in row.items()}


def _of_column(value: Any, schema: Any) -> Any:
    if value is None:
        return None
    if kind(schema) == "list":
        return [_of_column(item, schema["items"]) for item in value]
    if kind(schema) == "struct":
        return {name: _of_column(value[name], node) for name, node in schema["properties"].items()}
    if kind(schema) == "map":
        return {name: _of_column(item, schema["additionalProperties"]) for name, item in value}
    if kind(schema) == "open":
        return exact(value)
    if kind(schema) == "decimal":
        return value.normalize()
    if kind(schema) == "integer":
        return int(value)
    return value
