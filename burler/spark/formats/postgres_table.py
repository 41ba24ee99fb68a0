"""A table in PostgreSQL: rows go by COPY into a staging table, then one transaction makes them count.

The numbers stand in the table ``burler_exports`` of the same schema and change in the same
transaction. Its row is locked there, so of two exports that began from one version the second is refused.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from burler.config.secrets import masked
from burler.errors import ExportError, UsageError
from burler.extras import require
from burler.spark.columns import named
from burler.spark.confs import job_confs
from burler.spark.formats import postgres_sql as sql
from burler.spark.formats.base import Change, Published, TableState, Target
from burler.spark.formats.checking import check_variants
from burler.spark.formats.databases import connection_of, short_name
from burler.spark.formats.postgres_load import NEEDED_FOR, REPORT, Load, Unfit, copy, cure, reason
from burler.spark.formats.postgres_read import postgres_rows
from burler.spark.formats.writing import is_arrow
from burler.spark.remote import capabilities

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

SCHEMA, CONNECTIONS = "schema", "connections"
_CONNECTIONS = 8
_LOCK = 0x6275726C  # "burl": the first half of the advisory locks by which living staging tables are known


class PostgresTarget(Target):
    """The table of one stream in a PostgreSQL database."""

    name: ClassVar[str] = "jdbc"
    merges_frames: ClassVar[bool] = True
    merges_arrow: ClassVar[bool] = True
    appends_arrow: ClassVar[bool] = True

    def __init__(self, url: str, tap_id: str, stream: str, source: str, options: Mapping[str, str]) -> None:
        """``options``: ``schema`` (the tap's name if left out), ``connections`` (tasks that load at a time), and
        libpq's own parameters (``user``, ``password``, ``sslmode``, ...)."""
        own = dict(options)
        self._schema = own.pop(SCHEMA, "") or tap_id
        said = own.pop(CONNECTIONS, str(_CONNECTIONS))
        if not said.isdigit() or int(said) < 1:
            raise UsageError(f"option {CONNECTIONS}={said}: it must be a number from 1 on")
        self._tasks = int(said)
        self._connection = connection_of(url, own)
        self._stream = short_name(stream)
        if self._stream == sql.EXPORTS or re.match(sql.STAGES.removesuffix("$"), self._stream):
            raise ExportError(
                f"stream '{stream}': burler export has tables of its own by this name in each schema. Nothing was "
                "published.\nName the stream otherwise in the tap"
            )
        self._table = f"{sql.quoted(self._schema)}.{sql.quoted(stream)}"
        self._source = source
        self._state = TableState()
        self.place = f"{self._connection.get('dbname', '')} {self._table}".strip()

    def __repr__(self) -> str:
        return f"PostgresTarget({self.place!r}, {self._source!r})"

    def open(self) -> TableState:
        """See ``Target.open``. Makes the schema and ``burler_exports`` where they are not."""
        with self._connected() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", [_LOCK])  # two may make them at a time
            if not self._exists(connection, sql.EXPORTS):
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {sql.quoted(self._schema)}")
                connection.execute(sql.make_exports(self._schema))
            self._remove_leftovers(connection)
            found = connection.execute(
                f"SELECT source, version, numbers, columns FROM {self._exports} WHERE table_name = %s", [self._stream]
            ).fetchone()
            there = self._exists(connection, self._stream)
            if there and (found is None or found[0] != self._source):
                raise ExportError(
                    f"{self.place} is a table that was not made by burler export from {self._source}; it stays "
                    "untouched. Choose another --option schema=..., or move that table away"
                )
            self._state = TableState()
            if found is not None:
                # A table that somebody dropped, or a column of it, is made anew: its version goes on, and its numbers
                # count no more.
                self._state = TableState(found[1], None, {})
                if there and self._has_columns_of(connection, found[3]):
                    size = connection.execute("SELECT pg_table_size(%s::regclass)", [self._table]).fetchone()[0]
                    self._state = TableState(found[1], found[3], found[2], (), size)
        return self._state

    def rows(self, spark: SparkSession) -> DataFrame:
        """See ``Target.rows``: read by one task."""
        if self._state.schema is None:
            raise UsageError(f"{self.place} is no table yet")
        with self._connected() as connection:
            settings = _settings(connection)
        return postgres_rows(spark, settings, self._table, self._state.schema)

    def publish(self, rows: DataFrame | pyarrow.Table | None, change: Change) -> Published:
        """See ``Target.publish``."""
        if change.partition_by:
            raise UsageError("burler does not partition tables in PostgreSQL: leave partition_by out")
        check_variants(change.columns, self.place, "jdbc")
        stage = f'{sql.quoted(self._schema)}."{sql.STAGE}{secrets.token_hex(8)}"'
        if len({short_name(name) for name, _ in change.columns.fields}) < len(change.columns.fields):
            raise ExportError(
                f"{self.place}: two columns have one name after the cut to 63 bytes. Rename one in the tap"
            )
        with self._staged(stage, change) as connection:
            written = self._load(connection, rows, stage, change)
            change.check()
            version = self._finish(connection, stage, change)
        return Published(version, written)

    def _load(self, connection: Any, rows: Any, stage: str, change: Change) -> int:
        """Rows into the staging table; how many."""
        if rows is None:
            return 0
        if is_arrow(rows):
            try:
                count = copy(connection, stage, change.columns, rows.to_batches())
            except Unfit as error:
                raise ExportError(f"{self.place}: {error}. Nothing was published.") from None
            connection.commit()
            return count
        if not capabilities(rows.sparkSession).runs_python:
            # An engine whose tasks run no Python gives its rows to this process.
            return self._load(connection, rows.toArrow(), stage, change)
        load = Load(_settings(connection), stage, change.columns)
        with job_confs(rows.sparkSession):
            tasks = self._tasks if change.file_count is None else min(self._tasks, max(1, change.file_count))
            # mapInArrow takes a dot in a name for a path: columns are told by their place.
            frame = rows.select(*(named(name).alias(f"c{at}") for at, (name, _) in enumerate(change.columns.fields)))
            reports = frame.coalesce(tasks).mapInArrow(load, REPORT).collect()
        for report in reports:
            if report["error"]:
                raise ExportError(f"{self.place}: {masked(report['error'])}. Nothing was published.")
        return sum(report["rows"] for report in reports)

    def _finish(self, connection: Any, stage: str, change: Change) -> int:
        """The transaction that makes everything visible; the new version."""
        version = self._claim(connection, change)
        have = self._columns(connection)
        if have and change.kind == "replace":
            connection.execute(f"DELETE FROM {self._table}")
            for name in self._keys(connection):
                connection.execute(f"DROP INDEX {sql.quoted(self._schema)}.{sql.quoted(name)}")
        statements = (
            sql.alterations(self._table, change.columns, have, replace=change.kind == "replace")
            if have
            else [sql.make_table(self._table, change.columns)]
        )
        if change.kind == "merge":
            if sql.key_name(self._stream, change.keys) not in (self._keys(connection) if have else ()):
                statements.append(sql.make_key(self._table, self._stream, change.keys))
            statements.append(sql.upsert(self._table, stage, change.columns, change.keys, change.newer))
        else:
            statements.append(sql.insert(self._table, stage, change.columns))
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        return version

    def _claim(self, connection: Any, change: Change) -> int:
        """The next version, with its numbers, under a lock on the table's row of ``burler_exports``."""
        said = [json.dumps(dict(one)) for one in (change.numbers, change.schema, change.metadata)]
        if self._state.version is None:
            claimed = connection.execute(
                f"INSERT INTO {self._exports} (table_name, source, version, numbers, columns, metadata) "
                "VALUES (%s, %s, 0, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING version",
                [self._stream, self._source, *said],
            ).fetchone()
        else:
            claimed = connection.execute(
                f"UPDATE {self._exports} SET version = version + 1, numbers = %s, columns = %s, metadata = %s, "
                "exported_at = now() WHERE table_name = %s AND source = %s AND version = %s RETURNING version",
                [*said, self._stream, self._source, self._state.version],
            ).fetchone()
        if claimed is None:
            raise ExportError(
                f"{self.place}: another export of this table was faster. Nothing was published.\n"
                "The table is as that other export left it. Run the export again"
            )
        return int(claimed[0])

    @contextmanager
    def _staged(self, stage: str, change: Change) -> Iterator[Any]:
        """A connection with a staging table, which goes with the block. An advisory lock says that it lives."""
        with self._connected() as connection:
            connection.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", [_LOCK, stage])
            for statement in sql.make_stage(stage, change.columns):
                connection.execute(statement)
            connection.commit()
            try:
                yield connection
            finally:
                if not connection.closed:
                    connection.rollback()
                    connection.execute(f"DROP TABLE IF EXISTS {stage}, {sql.tasks_of(stage)}")
                    connection.commit()

    def _remove_leftovers(self, connection: Any) -> None:
        """Staging tables whose export is no more: nobody holds their lock."""
        found = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename ~ %s",
            [short_name(self._schema), sql.STAGES],
        ).fetchall()
        for (name,) in found:
            stage = f'{sql.quoted(self._schema)}."{name}"'
            free = connection.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [_LOCK, stage]).fetchone()[0]
            if free:
                connection.execute(f"DROP TABLE IF EXISTS {stage}, {sql.tasks_of(stage)}")
                connection.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", [_LOCK, stage])

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """A connection; its errors become ours, without secrets."""
        psycopg = require("psycopg", extra="sql", needed_for=NEEDED_FOR)
        try:
            with psycopg.connect(**self._connection) as connection:
                yield connection
        except psycopg.Error as error:
            raise ExportError(f"{self.place}: {masked(reason(error))}. Nothing was published.\n{cure(error)}") from None

    @property
    def _exports(self) -> str:
        return sql.beside_values(f"{sql.quoted(self._schema)}.{sql.EXPORTS}")

    def _exists(self, connection: Any, table: str) -> bool:
        name = f"{sql.quoted(self._schema)}.{sql.quoted(table)}"
        return connection.execute("SELECT to_regclass(%s)", [name]).fetchone()[0] is not None

    def _columns(self, connection: Any) -> dict[str, str]:
        """The table's columns: name -> type; none where there is no table."""
        found = connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [self._table],
        ).fetchall()
        return dict(found)

    def _has_columns_of(self, connection: Any, schema: Mapping[str, Any]) -> bool:
        return {short_name(one["name"]) for one in schema["fields"]} <= set(self._columns(connection))

    def _keys(self, connection: Any) -> list[str]:
        """Names of the unique indexes that upserts made."""
        found = connection.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = %s AND tablename = %s",
            [short_name(self._schema), self._stream],
        ).fetchall()
        return [name for (name,) in found if name.startswith(sql.KEY)]


def _settings(connection: Any) -> dict[str, str]:
    """What opens the same connection elsewhere; the password too, also one from a file that is only here."""
    about = connection.info
    said: dict[str, str] = {**about.get_parameters(), "host": about.host, "port": str(about.port)}
    if about.password:
        said["password"] = about.password
    return said
