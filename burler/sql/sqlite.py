"""SQLite: its values have types, its columns only wishes. Each value is read for what it is.

ADBC's driver for SQLite guesses a column's type from the first rows and fails at the first that differs; so burler
reads by Python's own, whose values are what the file holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from burler.sql.reading import Reading, at_or_after
from burler.sql.tables import Column

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ Tt](\d\d:\d\d)(:\d\d(?:\.\d+)?)?\s*(Z|z|[+-]\d\d:?\d\d)?", re.ASCII)
"""What SQLite's own functions read, by which rows are ordered: less than ``times.lenient`` does."""
_decode_json = msgspec.json.Decoder(float_hook=Decimal).decode


def never_null(connection: Any, table: str, schema: str | None, primary: Any) -> str:
    """SQLite's INTEGER PRIMARY KEY, which is the row's own number; other primary keys may be null there."""
    import sqlalchemy as sa

    names = list((primary or {}).get("constrained_columns") or ())
    if len(names) != 1:
        return ""
    asked = sa.text("select type from pragma_table_info(:table, :schema) where name = :name")
    kind = connection.scalar(asked, {"table": table, "schema": schema or "main", "name": names[0]})
    return str(names[0]) if str(kind).upper() == "INTEGER" else ""


def select_of(reading: Reading) -> Any:
    """A pass through a table, with bound values and without SQLAlchemy's own reading of types."""
    import sqlalchemy as sa

    columns: list[Any] = [sa.column(name) for name in dict.fromkeys((*reading.names, *reading.order))]
    source = sa.table(reading.table.name, *columns, schema=reading.table.schema)
    select = sa.select(*[source.c[name] for name in reading.names])
    known = reading.table.by_name
    places = [_place(source.c[name], known[name]) for name in reading.order]
    values = [_value(known[name], value) for name, value in zip(reading.order, reading.start, strict=False)]
    if values:
        held = at_or_after(places, values)
        unread = [
            sa.and_(place.is_(None), source.c[name].is_not(None))
            for place, name in zip(places, reading.order, strict=True)
            if _is_moment(known[name])
        ]  # a text that is no time: the stream says so, rather than that it never comes
        select = select.where(sa.or_(held, *unread))
    raw = [source.c[name] for name in reading.order if _is_moment(known[name])]
    return select.order_by(*places, *raw)


def _is_moment(column: Column) -> bool:
    return column.schema.get("format") == "date-time"


def _place(column: Any, known: Column) -> Any:
    """What rows rise by. Times are texts in several spellings, which ``strftime`` makes one."""
    import sqlalchemy as sa

    if _is_moment(known):
        return sa.func.strftime(sa.literal_column("'%Y-%m-%d %H:%M:%f'"), column)
    types = known.schema.get("type", ())
    return column.collate("BINARY") if "string" in ((types,) if isinstance(types, str) else types) else column


def _value(known: Column, value: Any) -> Any:
    import sqlalchemy as sa

    if value is None:
        return None
    if _is_moment(known):
        return sa.func.strftime(sa.literal_column("'%Y-%m-%d %H:%M:%f'"), sa.bindparam(None, str(value)))
    if known.schema.get("format") == "date":
        return str(value)[:10]
    return sa.bindparam(None, float(value) if isinstance(value, Decimal) else value)


def reader_of(column: Column) -> Callable[[list[Any]], list[Any]] | None:
    """What is done to a column's values; None: nothing."""
    import sqlalchemy as sa

    if _is_moment(column):
        return _moments
    types = column.schema.get("type", ())
    if "boolean" in ((types,) if isinstance(types, str) else types):
        return _truths
    if column.schema.get("contentEncoding") == "base64":
        return _blobs
    return _json if isinstance(column.type, sa.JSON) else None


def _moments(values: list[Any]) -> list[Any]:
    return [_moment(value) if isinstance(value, str) else value for value in values]


def _moment(text: str) -> str:
    """A time as RFC 3339 has it: without a zone it is in UTC, as SQLite's own functions have it."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return text
    day, minute, second, zone = found.groups()
    zone = "Z" if zone is None else zone.upper() if len(zone) in (1, 6) else f"{zone[:3]}:{zone[3:]}"
    return f"{day}T{minute}{second or ':00'}{zone}"


def _truths(values: list[Any]) -> list[Any]:
    return [bool(value) if type(value) is int and value in (0, 1) else value for value in values]


def _blobs(values: list[Any]) -> list[Any]:
    return [value.encode() if isinstance(value, str) else value for value in values]


def _json(values: list[Any]) -> list[Any]:
    return [_decode_json(value) if isinstance(value, str | bytes) else value for value in values]
