"""Reading all databases but PostgreSQL: rows by SQLAlchemy, fetched in pages from an open cursor."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from burler.errors import SqlError
from burler.sql import sqlite
from burler.sql.failures import sql_error
from burler.sql.reading import Reading
from burler.sql.tables import Column

if TYPE_CHECKING:
    import sqlalchemy as sa

_FIRST, _MOST_ROWS = 10, 5000  # nothing is known of the rows' size at first
_PAGE_BYTES = 1024 * 1024
_decode_json = msgspec.json.Decoder(float_hook=Decimal).decode


class OtherReader:
    """Reads one database; any number of threads may do so at a time, each with a connection of the engine's pool."""

    def __init__(self, engine: sa.Engine, url: sa.URL) -> None:
        self._engine = engine
        self._url = url

    def table_pages(self, reading: Reading) -> Iterator[Any]:
        """The pages of a table: lists of dicts."""
        dialect = self._engine.dialect.name
        select = sqlite.select_of(reading) if dialect == "sqlite" else _select_of(reading)
        readers = [sqlite.reader_of(one) if dialect == "sqlite" else _reader_of(one) for one in reading.columns]
        return self._pages(select, {}, f"stream '{reading.stream}'", reading.names, readers)

    def query_pages(self, sql: str, values: Mapping[str, Any], what: str) -> Iterator[Any]:
        """The pages of a statement with ``:name`` in it."""
        import sqlalchemy as sa

        statement = sa.text(sql)
        names = list(statement.compile().params)
        missing = [name for name in names if name not in values]
        if missing:
            raise SqlError(f"{what}: it asks for ':{missing[0]}', and no such value is given: query(sql, {{...}}).")
        extra = [name for name in values if name not in names]
        if extra:
            raise SqlError(f"{what}: it is given '{extra[0]}', but there is no ':{extra[0]}' in it.")
        return self._pages(statement, values, what, None, None)

    def _pages(
        self,
        statement: Any,
        values: Mapping[str, Any],
        what: str,
        names: Sequence[str] | None,
        readers: Sequence[Callable[[list[Any]], list[Any]] | None] | None,
    ) -> Iterator[Any]:
        import sqlalchemy as sa

        try:
            with self._engine.connect() as connection:
                streaming = connection.execution_options(stream_results=True, max_row_buffer=_MOST_ROWS)
                with streaming.execute(statement, dict(values)) as result:
                    given = list(result.keys()) if names is None else list(names)
                    _refuse_twice(given, what)
                    found = readers or [None] * len(given)
                    count = _FIRST
                    while rows := result.fetchmany(count):
                        yield _page(given, found, rows)
                        count = _next_count(rows)
        except sa.exc.SQLAlchemyError as error:
            raise sql_error(error, what, self._url) from None

    def close(self) -> None:
        """Nothing: the engine's pool is closed by whoever made it."""


def _refuse_twice(names: Sequence[str], what: str) -> None:
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise SqlError(
            f"{what}: it gives two columns the name '{twice}'. Name them: SELECT a.id AS a_id, b.id AS b_id."
        )


def _page(
    names: Sequence[str], readers: Sequence[Callable[[list[Any]], list[Any]] | None], rows: Sequence[Any]
) -> list[dict[str, Any]]:
    if any(readers):
        columns = zip(*rows, strict=True)
        read = [
            values if reader is None else reader(list(values)) for reader, values in zip(readers, columns, strict=True)
        ]
        rows = list(zip(*read, strict=True))
    return [dict(zip(names, row, strict=True)) for row in rows]


def _next_count(rows: Sequence[Any]) -> int:
    """How many rows the next page has, so that it is a megabyte or so."""
    some = rows[-20:]
    size = sum(len(value) if isinstance(value, str | bytes) else 8 for row in some for value in row) // len(some)
    return max(1, min(_MOST_ROWS, _PAGE_BYTES // max(1, size)))


def _select_of(reading: Reading) -> Any:
    """A pass through a table, with bound values."""
    import sqlalchemy as sa

    names = dict.fromkeys((*reading.names, *reading.order))
    by_name = reading.table.by_name
    columns: list[Any] = [sa.column(name, by_name[name].type) for name in names]
    source = sa.table(reading.table.name, *columns, schema=reading.table.schema)
    select = sa.select(*[source.c[name] for name in reading.names])
    values = [_bound(by_name[name], value) for name, value in zip(reading.order, reading.start, strict=False)]
    if values:
        select = select.where(at_or_after([source.c[name] for name in reading.order], values))
    return select.order_by(*[source.c[name] for name in reading.order])


def at_or_after(columns: Sequence[Any], values: Sequence[Any]) -> Any:
    """``(a, b) >= (1, 2)`` in words that every database knows: ``a > 1 or (a = 1 and b >= 2)``."""
    import sqlalchemy as sa

    column, value = columns[0], values[0]
    if len(values) == 1:
        return column >= value
    return sa.or_(column > value, sa.and_(column == value, at_or_after(columns[1:], values[1:])))


def _bound(column: Column, value: Any) -> Any:
    """A bookmark as the driver wants it."""
    form = column.schema.get("format")
    if not isinstance(value, str):
        return value
    if form == "date-time":
        moment = dt.datetime.fromisoformat(value)
        return moment.astimezone(dt.UTC).replace(tzinfo=None) if column.naive and moment.tzinfo else moment
    if form == "date":
        return dt.date.fromisoformat(value[:10])
    return Decimal(value) if form == "singer.decimal" else value


def _reader_of(column: Column) -> Callable[[list[Any]], list[Any]] | None:
    """What is done to a column's values; None: nothing."""
    if column.naive:
        return _in_utc
    if not column.schema:
        return _from_json
    return _as_bytes if column.schema.get("contentEncoding") == "base64" else None


def _in_utc(values: list[Any]) -> list[Any]:
    return [
        value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) and value.tzinfo is None else value
        for value in values
    ]


def _from_json(values: list[Any]) -> list[Any]:
    return [_decode_json(value) if isinstance(value, str | bytes) else value for value in values]


def _as_bytes(values: list[Any]) -> list[Any]:
    return [bytes(value) if isinstance(value, bytearray | memoryview) else value for value in values]
