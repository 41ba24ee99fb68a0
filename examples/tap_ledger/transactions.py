"""Rows of the changes in the feed, a transaction at a time."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Generator
from typing import Any

import psycopg

from .pgoutput import UNCHANGED, Begin, Change, Commit, Relation, Truncate, Values, decode
from .slot import ANEW, LogError, Source
from .values import Loaders

logger = logging.getLogger(__name__)

Row = dict[str, Any]


class Reader:
    """Makes rows of messages. It knows where transactions begin and end: no position ever lies inside of one.

    Args:
        connection: for what the feed does not say: types, and big values that an update left as they were.
        known: the table's columns when the SCHEMA was made.
    """

    def __init__(
        self,
        source: Source,
        connection: psycopg.Connection[Any],
        stream: Any,
        known: frozenset[str],
        keys: tuple[str, ...],
    ) -> None:
        self._source, self._connection, self._stream = source, connection, stream
        self._known, self._keys = known, keys
        self._table: int = stream.state["table"]
        self._loaders = Loaders(connection)
        self._shape: list[tuple[str, Callable[[bytes], Any]] | None] = []
        self._names: list[str] = []
        self._key_at: list[int] = []
        self._begin: Begin | None = None
        self._skips = False

    @property
    def between(self) -> bool:
        """Whether no transaction is half read."""
        return self._begin is None

    def rows(self, data: bytes) -> Generator[Row, None, int | None]:
        """The rows of a message; at a transaction's end gives where the log is understood up to.

        Raises:
            LogError: the table is not what it was.
        """
        message = decode(data)
        if isinstance(message, Change):
            if message.oid == self._table and not self._skips:
                yield from self._changed(message)
        elif isinstance(message, Begin):
            self._begin = message
            self._skips = message.lsn < self._stream.state["lsn"]  # a server that crashed may begin a little early
        elif isinstance(message, Commit):
            self._begin = None
            return message.end_lsn
        elif isinstance(message, Relation):
            self._described(message)
        elif isinstance(message, Truncate) and self._table in message.oids and not self._skips:
            self._emptied()
        return None

    def _described(self, relation: Relation) -> None:
        """The table's columns, as they are for the changes that follow."""
        if relation.oid != self._table:
            if f"{relation.schema}.{relation.name}" == self._source.table:
                raise LogError(f"{self._source.table} was dropped and made anew.\n  {ANEW}")
            return
        self._names = [column.name for column in relation.columns]
        self._refuse_new()
        if not set(self._keys) <= {column.name for column in relation.columns if column.is_key}:
            raise LogError(self._source.without_identity(self._keys))
        self._key_at = [self._names.index(name) for name in self._keys]
        wanted = {*self._stream.schema["properties"], *self._keys}
        loads = self._loaders.of(column.type_oid for column in relation.columns)
        self._shape = [(name, load) if name in wanted else None for name, load in zip(self._names, loads, strict=True)]

    def _refuse_new(self) -> None:
        unknown = [name for name in self._names if name not in self._known]
        if not unknown:
            return
        new = sorted(set(self._source.columns(self._connection)).intersection(unknown))  # others were dropped since
        if new:
            raise LogError(
                f"{self._source.table} has a new column '{new[0]}' the SCHEMA does not have. Nothing is lost: rows "
                "with it\n  wait in the slot. SIGHUP, a restart, or the setting tail_rediscover_seconds takes it in."
            )

    def _changed(self, change: Change) -> Generator[Row, None, None]:
        old, new = change.old, change.new
        if new is None:
            yield self._gone(old or (), whole=change.whole)
            return
        if UNCHANGED in new:
            new = self._completed(new, old, whole=change.whole)
        if old is not None and any(old[at] != new[at] for at in self._key_at):
            yield self._gone(old, whole=change.whole)  # the row under the old key is no more
        yield self._row(new, None)

    def _row(self, values: Values, deleted_at: dt.datetime | None) -> Row:
        row: Row = {}
        for place, value in zip(self._shape, values, strict=False):
            if place is not None and value is not UNCHANGED:
                row[place[0]] = place[1](value) if isinstance(value, bytes) else None
        row["_sdc_deleted_at"] = deleted_at
        row["_sdc_lsn"] = self._begin.lsn if self._begin else None
        return row

    def _gone(self, old: Values, *, whole: bool) -> Row:
        """A deleted row: its key, and the rest if the log says it (REPLICA IDENTITY FULL)."""
        row = self._row(old, self._begin.at if self._begin else None)
        if whole:
            return row
        return {name: value for name, value in row.items() if name in self._keys or name[:5] == "_sdc_"}

    def _completed(self, new: Values, old: Values | None, *, whole: bool) -> Values:
        """Big values that an update left as they were: from the old row, if the log says it; else as they are in the
        table now. If they have changed since, that change comes as well; if the row is gone, its deletion does."""
        missing = [at for at, value in enumerate(new) if value is UNCHANGED]
        told = missing if whole else [at for at in missing if at in self._key_at]
        found: dict[int, object] = {at: old[at] for at in told} if old is not None else {}
        new = tuple(found.get(at, value) for at, value in enumerate(new))
        missing = [at for at in missing if at not in found and self._shape[at] is not None]
        if missing:
            found = self._looked_up(missing, new)
        return tuple(found.get(at, value) for at, value in enumerate(new))

    def _looked_up(self, missing: list[int], new: Values) -> dict[int, object]:
        sql = psycopg.sql
        select = sql.SQL("select {} from {} where {}").format(
            sql.SQL(", ").join(sql.Identifier(self._names[at]) for at in missing),
            sql.Identifier(*self._source.table.split(".")),
            sql.SQL(" and ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in self._keys),
        )
        key = [value.decode() if isinstance(value, bytes) else None for value in (new[at] for at in self._key_at)]
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(select, key)
                if cursor.fetchone() is None or cursor.pgresult is None:
                    return {}
                return {at: cursor.pgresult.get_value(0, i) for i, at in enumerate(missing)}
        except psycopg.errors.UndefinedColumn:  # dropped since
            return {}

    def _emptied(self) -> None:
        """All rows went at once: an empty table is the new version of it."""
        if not self._stream.config.get("full_table_versions", True):
            raise LogError(
                f"{self._source.table} was truncated, and full_table_versions: false forbids to tell targets so.\n"
                "  Empty the table at the target, and begin anew, without this stream's state."
            )
        logger.warning("%s was truncated: targets drop all rows that they have of it", self._source.table)
        with self._stream.full_table():
            pass
