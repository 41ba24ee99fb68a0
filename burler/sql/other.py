"""Reading all databases but PostgreSQL: rows by SQLAlchemy, fetched in pages from an open cursor."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from burler import times
from burler.errors import SqlError
from burler.sql import sqlite
from burler.sql.ahead import InHand, fetch_ahead
from burler.sql.failures import sql_error
from burler.sql.reading import Reading, at_or_after
from burler.sql.tables import Column

if TYPE_CHECKING:
    import sqlalchemy as sa

_FIRST, _MOST_ROWS = 10, 5000  # of a page; nothing is known of the rows' size at first
_ASKED_ROWS = 50  # at a time: the next row may be a thousand times the last
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

        def fetched() -> Generator[Any, None, None]:
            with self._engine.connect() as connection, hand.holding(connection.connection.driver_connection):
                streaming = connection.execution_options(stream_results=True, max_row_buffer=_ASKED_ROWS)
                with streaming.execute(statement, dict(values)) as result:
                    given = list(result.keys()) if names is None else list(names)
                    _refuse_twice(given, what)
                    found = readers or [None] * len(given)
                    for rows in _cut(result.fetchmany):
                        yield _page(given, found, rows)

        hand = InHand(lambda driver: driver.interrupt())  # SQLite's knows how
        try:
            with contextlib.closing(fetch_ahead(fetched(), hand.cancel)) as pages:
                yield from pages
        except SqlError as error:
            raise SqlError(str(error) if str(error).startswith(what) else f"{what}: {error}") from None
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
            values if reader is None else _read(reader, list(values), name)
            for name, reader, values in zip(names, readers, columns, strict=True)
        ]
        rows = list(zip(*read, strict=True))
    return [dict(zip(names, row, strict=True)) for row in rows]


def _read(reader: Callable[[list[Any]], list[Any]], values: list[Any], name: str) -> list[Any]:
    try:
        return reader(values)
    except ValueError as error:
        raise SqlError(
            f"column '{name}' holds a value that can't be read: {error}. Mend it, or deselect the column."
        ) from None


def _cut(fetch: Callable[[int], Sequence[Any]]) -> Iterator[list[Any]]:
    """Rows in pages of a megabyte or so, fetched a few at a time: however the sizes of rows change."""
    rows: list[Any] = []
    size, most = 0, _FIRST
    count = min(_FIRST, _ASKED_ROWS)
    while some := fetch(min(count, most - len(rows))):
        rows += some
        fetched = sum(len(value) if isinstance(value, str | bytes) else 8 for row in some for value in row)
        size += fetched
        if size >= _PAGE_BYTES or len(rows) >= most:
            yield rows
            rows, size, most = [], 0, _MOST_ROWS
        count = max(1, min(_ASKED_ROWS, _PAGE_BYTES * len(some) // max(1, fetched)))
    if rows:
        yield rows


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
    order: list[Any] = []
    for name in reading.order:
        if name in reading.nulls_first:  # NULLS FIRST is not known everywhere
            order.append(sa.case((source.c[name].is_(None), 0), else_=1))
        order.append(source.c[name])
    return select.order_by(*order)


def _bound(column: Column, value: Any) -> Any:
    """A bookmark as the driver wants it."""
    form = column.schema.get("format")
    if not isinstance(value, str):
        return value
    if form == "date-time":
        moment = times.lenient(value)[0]
        return moment.replace(tzinfo=None) if column.naive else moment
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
