"""What a running stream asks of its table: which columns, from which key on, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from burler.context import StreamRun
from burler.errors import SqlError
from burler.singer.metadata import INCREMENTAL, LOG_BASED
from burler.sql.tables import Column, Table, some

POSITION = "burler.sql"
"""The name in ``stream.state`` under which the place in a table with a key of several columns is kept."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One pass through a table.

    Attributes:
        columns: those to ask for, in the order of the stream's schema.
        order: the columns that rows rise by; empty if the order is no matter.
        start: values of the first columns of ``order``, at or after which rows are asked for; empty: all rows.
    """

    stream: str
    table: Table
    columns: tuple[Column, ...]
    order: tuple[str, ...] = ()
    start: tuple[Any, ...] = ()
    resumes: bool = False

    @property
    def nulls_first(self) -> frozenset[str]:
        """The columns of ``order`` whose nulls must come before all values. ``key >= 5`` leaves null out: so a bookmark
        may stand only where such rows are out. A pass that goes on at one asks for none, and can use an index."""
        if self.start:
            return frozenset()
        return frozenset(name for name in self.order if self.table.by_name[name].nullable)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)


def reading_of(stream: StreamRun, table: Table) -> Reading:
    """What a running stream asks of a table.

    Raises:
        SqlError: a field or a key that the table does not have, a key that can't be read, or no field at all.
    """
    name = stream.name
    columns = _columns(stream, table)
    if stream.replication_method == LOG_BASED:
        raise SqlError(f"stream '{name}': burler.sql reads no log. Make it FULL_TABLE or INCREMENTAL.")
    if stream.replication_method == INCREMENTAL:
        key = stream.replication_key
        if key is None:
            return Reading(name, table, columns)
        _check_key(name, key, table)
        start = _start(stream, table.by_name[key])
        return Reading(name, table, columns, (key,), () if start is None else (start,))
    key = stream.resumable_by
    if key is None:
        return Reading(name, table, columns)
    _check_key(name, key, table)
    order = table.keys if table.keys[:1] == (key,) else (key,)
    return Reading(name, table, columns, order, _resume(stream, order), resumes=len(order) > 1)


def _columns(stream: StreamRun, table: Table) -> tuple[Column, ...]:
    wanted = list(stream.schema.get("properties") or ())
    missing = [field for field in wanted if field not in table.by_name]
    if missing:
        raise SqlError(
            f"stream '{stream.name}': its table has no column '{missing[0]}' (any more). Columns: "
            f"{some((column.name for column in table.columns), 20)}.\n  Make the catalog anew: burler discover APP."
        )
    if not wanted:
        raise SqlError(f"stream '{stream.name}': no column is selected, so there is nothing to ask for. Select one.")
    columns = tuple(table.by_name[field] for field in wanted)
    bad = next((column for column in columns if column.unsupported), None)
    if bad is not None:
        raise SqlError(f"stream '{stream.name}': column '{bad.name}': {bad.unsupported}. Deselect it.")
    return columns


def _check_key(stream: str, key: str, table: Table) -> None:
    if key not in table.by_name:
        raise SqlError(
            f"stream '{stream}': its table has no column '{key}', by which rows should rise. Columns: "
            f"{some((column.name for column in table.columns), 20)}."
        )


def _start(stream: StreamRun, column: Column) -> Any:
    """The bookmark; ``start_date`` says nothing of a key that is no time, of which text is one here."""
    timely = column.schema.get("format") in ("date", "date-time")
    given = stream.raw_bookmark is not None and stream.raw_bookmark == stream.start_date
    return None if given and not timely else stream.bookmark


def _resume(stream: StreamRun, order: Sequence[str]) -> tuple[Any, ...]:
    """Where an interrupted table goes on. The state holds the first column of its key; where the place that the last
    page ended at has the same, the whole key."""
    first = stream.raw_bookmark
    if first is None:
        stream.state.pop(POSITION, None)  # of an older table: it says nothing of this one
        return ()
    kept = stream.state.get(POSITION)
    if isinstance(kept, dict) and kept.get("key") == list(order):  # else the table has another key since then
        at = kept.get("at")
        if isinstance(at, list) and len(at) == len(order) > 1 and _same(at[0], first):
            return tuple(at)
    return (first,)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or str(one) == str(other)


def at_or_after(columns: Sequence[Any], values: Sequence[Any]) -> Any:
    """``(a, b) >= (1, 2)`` in words that every database knows: ``a > 1 or (a = 1 and b >= 2)``. Null is before all
    values, as in SQLite, where a primary key may hold it."""
    import sqlalchemy as sa

    column, value = columns[0], values[0]
    above = column.is_not(None) if value is None else column > value
    if len(values) > 1:
        same = column.is_(None) if value is None else column == value
        return sa.or_(above, sa.and_(same, at_or_after(columns[1:], values[1:])))
    return sa.true() if value is None else column >= value
