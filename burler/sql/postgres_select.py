"""The SELECTs that PostgreSQL is asked, so that no value is lost on the way.

Values never become part of a statement. A bookmark is bound to a setting of the transaction (``set_config``), which
the statement reads back: COPY, by which ADBC fetches, takes no parameters.

Two forms. *Arrow* where every column is of a type that ADBC gives whole, or as text that is. *JSON* where one is an
array of other values, or where there is no ADBC: then PostgreSQL itself makes the JSON of rows, digit for digit. That
costs it three times as much.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.errors import SqlError

if TYPE_CHECKING:
    import sqlalchemy as sa

_WHOLE = {"timestamp", "timestamptz"}.union(
    ("bool", "int2", "int4", "int8", "float8", "text", "varchar", "bpchar", "name", "bytea", "date")
)
"""What ADBC gives as it is. It would give numerics as texts too, in four times the time that PostgreSQL takes."""
_ARRAYS = {"_bool", "_int2", "_int4", "_int8", "_float8", "_text", "_varchar"}
"""Those that ADBC gives as lists; what it can't give so is asked for beside it."""
_JSON_WHOLE = _WHOLE | {"float4", "numeric", "json", "jsonb", "time", "inet", "uuid"}
_KEYS = {
    **dict.fromkeys(("int2", "int4", "int8", "float4", "float8", "numeric", "oid"), ""),
    **dict.fromkeys(("date", "timestamptz", "uuid", "time"), ""),
    **dict.fromkeys(("text", "varchar", "name"), "text"),
    "bpchar": "bpchar",
    "timestamp": "timestamptz",
}
"""Types whose own order a bookmark follows, and the type that its text is read as ("" the same)."""
_TEXTS = frozenset(("text", "varchar", "bpchar", "name"))
_ROW = "burler_row"


@dataclass(frozen=True, slots=True)
class Result:
    """A column of a statement's result: its name, and the name of its type in PostgreSQL (``_int4``: an array)."""

    name: str
    kind: str
    modifier: int = -1

    @property
    def is_json(self) -> bool:
        """Whether its values are JSON."""
        return self.kind in ("json", "jsonb")

    @property
    def is_array(self) -> bool:
        """Whether its values are arrays."""
        return self.kind.startswith("_")

    @property
    def is_list(self) -> bool:
        """Whether Arrow has it as a list, with a column more at the end: see ``_beside``."""
        return self.kind in _ARRAYS


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement with the settings that it reads its values from. ``json``: each row is one JSON text."""

    sql: str
    settings: Mapping[str, str]
    json: bool


def plain_select(table: str, schema: str | None, names: Sequence[str]) -> sa.Select[Any]:
    """The columns of a table as they are, and nothing else."""
    import sqlalchemy as sa

    source = _source(table, schema, names)
    return sa.select(*[source.c[name] for name in names])


def _source(table: str, schema: str | None, names: Sequence[str]) -> Any:
    import sqlalchemy as sa

    columns: list[Any] = [sa.column(name) for name in dict.fromkeys(names)]
    return sa.table(table, *columns, schema=schema).alias("t")


def table_select(
    table: str,
    schema: str | None,
    results: Sequence[Result],
    keys: Sequence[Result],
    start: Sequence[Any],
    *,
    json: bool,
    nulls_first: frozenset[str] = frozenset(),
) -> Asked:
    """A pass through a table.

    Args:
        keys: what rows rise by, none or several columns.
        start: values of the first of them, at or after which rows are wanted.
        nulls_first: columns of ``keys`` whose nulls come before all values (PostgreSQL has them behind).
    """
    import sqlalchemy as sa

    source = _source(table, schema, [one.name for one in (*results, *keys)])
    select = sa.select(*_chosen(source, results, json=json))
    places = [_place(source.c[one.name], one) for one in keys]
    known = list(itertools.takewhile(lambda value: value is not None, start))
    settings = {f"burler.from{i}": str(value) for i, value in enumerate(known)}
    if known:
        values = [_given(one, name) for one, name in zip(keys, settings, strict=False)]
        left, right = places[: len(values)], values
        select = select.where(left[0] >= right[0] if len(values) == 1 else sa.tuple_(*left) >= sa.tuple_(*right))
    order = [place.nulls_first() if one.name in nulls_first else place for one, place in zip(keys, places, strict=True)]
    select = select.order_by(*order)
    return Asked(_as_rows(select) if json else render(select), settings, json)


def wrapped(sql: str, results: Sequence[Result], settings: Mapping[str, str], *, json: bool) -> Asked:
    """An author's own statement, with its columns read as those of tables are.

    Raises:
        SqlError: two columns of one name, or one without a name.
    """
    import sqlalchemy as sa

    names = [one.name for one in results]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise SqlError(f"the query gives two columns the name '{twice}'. Name them: SELECT a.id AS a_id, b.id AS b_id.")
    if not json and all(one.kind in _WHOLE for one in results):
        return Asked(f"{sql}\n", settings, json)  # a comment at its end must not swallow what COPY puts behind it
    columns: list[Any] = [sa.column(name) for name in names]
    source = sa.table("t", *columns)
    select = sa.select(*_chosen(source, results, json=json))
    # The statement is put in as it is: SQLAlchemy's text() would read its colons and backslashes.
    read = f"{render(select).removesuffix('FROM t')}FROM (\n{sql}\n) AS t"
    row = f"SELECT CAST(row_to_json({_ROW}) AS TEXT)\nFROM ({read}) AS {_ROW}"
    return Asked(row if json else read, settings, json)


def _chosen(source: Any, results: Sequence[Result], *, json: bool) -> list[Any]:
    chosen = [_read(source.c[one.name], one, json=json).label(one.name) for one in results]
    return chosen if json else chosen + [_beside(source.c[one.name]) for one in results if one.is_list]


def _beside(column: Any) -> Any:
    """Arrays that are no lists as JSON; null for others."""
    import sqlalchemy as sa

    return sa.case((_is_no_list(column), sa.cast(sa.func.array_to_json(column), sa.Text)))


def _is_no_list(column: Any) -> Any:
    """Of several dimensions, which ADBC makes one of, or counted from another place than 1, which it refuses."""
    import sqlalchemy as sa

    one: Any = sa.literal_column("1")
    return sa.or_(sa.func.array_ndims(column) > one, sa.func.array_lower(column, one) != one)


def _read(column: Any, result: Result, *, json: bool) -> Any:
    """How a column is asked for: as it is, or as the text that says all of it."""
    import sqlalchemy as sa

    kind = result.kind
    if json:
        if kind == "bytea":  # encode() breaks lines after 76 characters
            return sa.func.replace(
                sa.func.encode(column, sa.literal_column("'base64'")),
                sa.literal_column("chr(10)"),
                sa.literal_column("''"),
            )
        if kind == "timestamp":
            return sa.func.timezone(sa.literal_column("'UTC'"), column)
        if kind in _JSON_WHOLE or kind.startswith("_"):
            return column
        return sa.cast(column, sa.Text)
    if kind in _WHOLE:
        return column
    if result.is_list:
        return sa.case((_is_no_list(column), sa.null()), else_=column)
    if kind == "oid":
        return sa.cast(column, sa.BigInteger)
    if kind == "float4":  # as a double it would show digits that nobody wrote: 1.100000023841858
        return sa.cast(sa.cast(column, sa.Text), sa.Double)
    return sa.func.abbrev(column) if kind == "inet" else sa.cast(column, sa.Text)


def _place(column: Any, result: Result) -> Any:
    """What rows rise by: the column; its text, in the order of its characters, where that is all a bookmark knows."""
    if result.kind in _TEXTS:
        return column.collate("C")
    return column if result.kind in _KEYS else _read(column, result, json=result.kind == "bytea").collate("C")


def _given(result: Result, setting: str) -> Any:
    """A setting's value, as the type of the key that it is compared with."""
    import sqlalchemy as sa

    read_as = _KEYS.get(result.kind, "text") or result.kind
    value: Any = sa.literal_column(f"CAST(current_setting('{setting}') AS {read_as})")
    return sa.func.timezone(sa.literal_column("'UTC'"), value) if result.kind == "timestamp" else value


def _as_rows(select: Any) -> str:
    import sqlalchemy as sa

    rows = select.subquery(_ROW)
    row = sa.func.row_to_json(sa.literal_column(_ROW))
    return render(sa.select(sa.cast(row, sa.Text)).select_from(rows))


def render(statement: Any) -> str:
    """A statement without parameters as text; ``%`` stays one, as ADBC and psycopg want it."""
    from sqlalchemy.dialects import postgresql

    dialect: Any = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]
    return str(statement.compile(dialect=dialect))
