"""PostgreSQL's types: the JSON Schema of each, and how a query writes it so that a CSV file of COPY is right.

COPY writes what a type's own output function gives. For many types a row of JSON holds the same; for others the query
casts:

    boolean           t, f                        ->  true, false
    timestamptz       2024-01-01 10:00:00.5+00    ->  2024-01-01T10:00:00.5Z
    timestamp         2024-01-01 10:00:00         ->  2024-01-01T10:00:00Z (naive times are taken as UTC)
    bytea             \\x6869                      ->  aGk= (base64)
    arrays            {1,NULL,3}                  ->  [1,null,3]
    json, jsonb       as it is: JSON text in a field
    all others        as it is: integers and numerics digit for digit, floats with all digits they need, dates, text

Values that the schema does not know (NaN, infinity, dates before the year 1, arrays in arrays) make the query fail,
with the column's name: nobody looks at the rows afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

REFUSED = "burler refuses column "
"""Begins the text that such a query fails with."""

_LARGEST = "1.7976931348623157e308"
_MOMENTS = "'0001-01-01 00:00:00' and '9999-12-31 23:59:59.999999'"
_MOMENTS_UTC = "'0001-01-01 00:00:00+00' and '9999-12-31 23:59:59.999999+00'"
_BITS = {"int2": 15, "int4": 31, "int8": 63}
_ITEMS = {
    **{kind: {"type": "integer"} for kind in _BITS},
    **{kind: {"type": "string"} for kind in ("text", "varchar", "uuid")},
    "bool": {"type": "boolean"},
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        kind: the name of its type in ``pg_type`` (``_int4``: an array); of a domain: of what that is made of.
        modifier: of the type: digits of a numeric; -1 without.
        spelled: the type as people write it.
    """

    name: str
    kind: str
    modifier: int = -1
    nullable: bool = True
    spelled: str = ""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its values."""
        made = _schema(self)
        if self.nullable and "type" in made:
            made["type"] = ["null", made["type"]]
        return made

    @property
    def selected(self) -> str:
        """What stands for it in a select list."""
        return f"{_expression(self)} as {quoted(self.name)}"


def quoted(name: str) -> str:
    """A name as SQL has it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def _schema(column: Column) -> dict[str, Any]:
    kind = column.kind
    if kind in _BITS:
        return {"type": "integer", "minimum": -(2 ** _BITS[kind]), "maximum": 2 ** _BITS[kind] - 1}
    if kind in ("float4", "float8"):
        return {"type": "number"}
    if kind == "numeric":
        return _numeric(column.modifier)
    if kind == "bool":
        return {"type": "boolean"}
    if kind in ("json", "jsonb"):
        return {}
    if kind == "bytea":
        return {"type": "string", "contentEncoding": "base64"}
    if kind.startswith("_"):
        item = _ITEMS.get(kind[1:])
        return {"type": "array", "items": {**item, "type": ["null", item["type"]]} if item else {}}
    formats = {"date": "date", "timestamp": "date-time", "timestamptz": "date-time", "time": "time", "uuid": "uuid"}
    return {"type": "string", "format": formats[kind]} if kind in formats else {"type": "string"}


def _numeric(modifier: int) -> dict[str, Any]:
    """Fixed digits behind the point are a step; as many as a value likes are exact text."""
    if modifier < 4:
        return {"type": "string", "format": "singer.decimal"}
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    if scale & 0x400:  # negative since PostgreSQL 15: numeric(3, -2)
        return {"type": "integer"}
    if not scale:
        return {"type": "integer", "minimum": 1 - 10**precision, "maximum": 10**precision - 1}
    return {"type": "number", "multipleOf": float(f"1e-{scale}")}


def _expression(column: Column) -> str:
    name, kind = quoted(column.name), column.kind
    if kind == "bool":
        return f"cast({name} as text)"
    if kind == "bytea":
        return f"translate(encode({name}, 'base64'), chr(10), '')"
    if kind in ("float4", "float8"):
        return _unless(column, f"not ({name} between -{_LARGEST} and {_LARGEST})", name, kind)
    if kind == "numeric":
        strange = f"{name} - {name} <> 0" if column.modifier < 4 else f"{name} = 'NaN'"  # infinity - infinity is NaN
        return _unless(column, strange, name, kind)
    if kind == "date":
        return _unless(column, f"not ({name} between '0001-01-01' and '9999-12-31')", name, kind)
    if kind == "timestamp":
        text = f"replace(cast({name} as text), ' ', 'T') || 'Z'"
        return _unless(column, f"not ({name} between {_MOMENTS})", text, "text")
    if kind == "timestamptz":
        text = f"replace(cast({name} at time zone 'UTC' as text), ' ', 'T') || 'Z'"
        return _unless(column, f"not ({name} between {_MOMENTS_UTC})", text, "text")
    if kind.startswith("_"):
        flat = kind[1:] not in _ITEMS
        made = f"cast(to_json({name}) as text)"
        return made if flat else _unless(column, f"array_ndims({name}) > 1", made, "text")
    return name


def _unless(column: Column, bad: str, made: str, kind: str) -> str:
    """An expression that fails where a value is bad. The cast of a text that is no number does it, at that row alone:
    since the value is part of the text, the server can't work it out beforehand."""
    name = quoted(column.name)
    said = (REFUSED + repr(column.name) + ": ").replace("'", "''")
    failing = f"cast('{said}' || left(cast({name} as text), 60) as numeric)"
    failing = failing if kind in ("numeric", "float4", "float8") else f"cast(cast({failing} as text) as {kind})"
    return f"case when {bad} then {failing} else {made} end"
