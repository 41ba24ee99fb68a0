"""A replication slot and the publication it is read through: made, looked at, moved on. Errors say what to do."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from burler import BurlerError

from .feed import shown
from .values import SESSION, adapt

LOCK_SECONDS = 60
PATIENCE_SECONDS = 10.0
"""How long a slot may be in use: a process that was killed leaves its own in use for a moment."""
ANEW = "Begin anew, without this stream's state (or with tail_full_table_on_failure): the table is read again."

_ABOUT_SLOT = """
select plugin, database = current_database(), active_pid, (confirmed_flush_lsn - '0/0')::text, wal_status
from pg_replication_slots where slot_name = %s
"""
_ABOUT_TABLE = """
select c.oid, c.relreplident::text, array(
    select a.attname::text from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attnum = any(i.indkey)
    where i.indrelid = c.oid and case c.relreplident when 'd' then i.indisprimary when 'i' then i.indisreplident end)
from pg_class c where c.oid = to_regclass(%s)
"""
_ABOUT_PUBLICATION = """
select p.pubinsert and p.pubupdate and p.pubdelete and p.pubtruncate and not exists (
        select from pg_publication_rel r where r.prpubid = p.oid and r.prrelid = to_regclass(%(table)s)
        and coalesce(to_jsonb(r)->>'prqual', to_jsonb(r)->>'prattrs') is not null),
    exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
        join pg_publication_tables t on t.schemaname = n.nspname and t.tablename = c.relname
        where t.pubname = p.pubname and c.oid = to_regclass(%(table)s))
from pg_publication p where p.pubname = %(publication)s
"""
_COLUMNS = """
select attname, atttypid, attgenerated <> '' from pg_attribute
where attrelid = to_regclass(%s) and attnum > 0 and not attisdropped
"""
_WRITERS = """
select pid from pg_stat_activity where backend_xid is not null and pid <> pg_backend_pid() order by xact_start limit 5
"""


class LogError(BurlerError):
    """The log can't be read, or not without a gap."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What the server says of a slot. ``confirmed``: all before it may be gone. ``lost``: so is what came after."""

    plugin: str
    is_here: bool
    active_pid: int | None
    confirmed: int
    lost: bool


class Source:
    """One database, one slot, one publication, one table.

    Args:
        url: ``postgresql://user:password@host:5432/database``; the user needs REPLICATION and may read the table.
        table: ``schema.table``.
    """

    def __init__(self, url: str, *, slot: str, publication: str, table: str) -> None:
        self.url, self.slot, self.publication, self.table = url, slot, publication, table

    @contextlib.contextmanager
    def connected(self, *, replication: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """A connection for a block, closed at its end whatever it was doing.

        Raises:
            LogError: there is none to be had.
        """
        connection = self.connect(replication=replication)
        try:
            yield connection
        finally:
            connection.close()

    def connect(self, *, replication: bool = False) -> psycopg.Connection[Any]:
        """A connection, in autocommit; with ``replication`` one that speaks the replication protocol."""
        settings = {**SESSION, "lock_timeout": f"{LOCK_SECONDS}s", "statement_timeout": "0"}
        settings |= {"idle_in_transaction_session_timeout": "0"}  # whoever takes the rows may be slow
        if replication:
            settings |= {"wal_sender_timeout": "1h"}  # and may take so long before it lets the tap answer
        protocol: dict[str, Any] = {"replication": "database"} if replication else {}
        try:
            connection = psycopg.connect(
                self.url,
                autocommit=True,
                client_encoding="UTF8",
                connect_timeout=10,
                keepalives_idle=30,
                tcp_user_timeout=60_000,
                application_name=f"tap-ledger {os.getpid()}",
                options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
                **protocol,
            )
        except psycopg.OperationalError as error:
            cure = "Is it a user with REPLICATION, and are there enough max_wal_senders?" if replication else ""
            raise LogError(f"the database can't be reached: {first_line(error)}. {cure}".strip()) from None
        if not replication:
            adapt(connection)
        return connection

    # ---- looking ---------------------------------------------------------------------------------------

    def look(self, connection: psycopg.Connection[Any]) -> Slot | None:
        """The slot; None: there is none of that name."""
        found = connection.execute(_ABOUT_SLOT, (self.slot,)).fetchone()
        if found is None:
            return None
        plugin, is_here, pid, confirmed, wal = found
        return Slot(plugin, bool(is_here), pid, int(confirmed or 0), wal == "lost")

    def check(self, connection: psycopg.Connection[Any], keys: tuple[str, ...]) -> int:
        """That the server, the table and the publication are fit for it; gives the table's number.

        Raises:
            LogError: what is not, and the statement that mends it.
        """
        level = connection.execute("show wal_level").fetchone()
        if level is None or level[0] != "logical":
            raise LogError(
                "the server's log is not one that slots can read.\n"
                "  ALTER SYSTEM SET wal_level = logical, then restart the server."
            )
        found = connection.execute(_ABOUT_TABLE, (self.table,)).fetchone()
        if found is None:
            raise LogError(f"there is no table {self.table}, or the tap's user may not see it.")
        oid, identity, told_by = found
        if not keys:
            raise LogError(
                f"{self.table} has no primary key: no target could tell which row has changed.\n"
                f"  ALTER TABLE {self.table} ADD PRIMARY KEY (...)."
            )
        if identity != "f" and not set(keys) <= set(told_by):
            raise LogError(self.without_identity(keys))
        self._check_publication(connection)
        return int(oid)

    def without_identity(self, keys: tuple[str, ...]) -> str:
        """What is said where the log does not name the rows that go."""
        return (
            f"the log of {self.table} does not say the key {', '.join(keys)} of deleted rows (replica identity).\n"
            f"  ALTER TABLE {self.table} REPLICA IDENTITY DEFAULT, or FULL, then begin anew."
        )

    def _check_publication(self, connection: psycopg.Connection[Any]) -> None:
        name, table = self.publication, self.table
        found = connection.execute(_ABOUT_PUBLICATION, {"table": table, "publication": name}).fetchone()
        if found is None:
            raise LogError(f"there is no publication '{name}'.\n  CREATE PUBLICATION {name} FOR TABLE {table}.")
        publishes_all, has_table = found
        if not has_table:
            raise LogError(
                f"the publication '{name}' does not have {table}, so its log does not have what has changed.\n"
                f"  ALTER PUBLICATION {name} ADD TABLE {table}, then begin anew, without this stream's state\n"
                "  (a table of partitions: SET (publish_via_partition_root = true))."
            )
        if not publishes_all:
            raise LogError(
                f"the publication '{name}' leaves changes of {table} out (publish, WHERE, columns): they would be\n"
                "  missing at the target for ever. Take a publication without."
            )

    def columns(self, connection: psycopg.Connection[Any]) -> dict[str, int]:
        """The table's columns as they are now, with the numbers of their types; those that the log has."""
        found = connection.execute(_COLUMNS, (self.table,)).fetchall()
        return {name: kind for name, kind, generated in found if not generated}

    def now(self, connection: psycopg.Connection[Any]) -> int:
        """Where the log ends. What is committed by now stands before it."""
        found = connection.execute("select (pg_current_wal_flush_lsn() - '0/0')::text").fetchone()
        return int(found[0]) if found else 0

    def usable(self, connection: psycopg.Connection[Any], position: int) -> Slot:
        """The slot, for a reader that has all before ``position``.

        Raises:
            LogError: it would not give all that came after.
        """
        slot, since = self.look(connection), f"what has changed since {shown(position)} is gone"
        if slot is None:
            raise LogError(f"the replication slot '{self.slot}' was dropped: {since}.\n  {ANEW}")
        self._check_kind(slot)
        if slot.lost:
            raise LogError(f"the slot '{self.slot}' was emptied (max_slot_wal_keep_size): {since}.\n  {ANEW}")
        if slot.confirmed > position:
            raise LogError(
                f"the slot '{self.slot}' stands at {shown(slot.confirmed)}, the state at {shown(position)}: somebody "
                f"acknowledged\n  changes that the state does not have (acknowledge_state_file prevents it).\n  {ANEW}"
            )
        if position > self.now(connection):
            raise LogError(
                f"the state stands at {shown(position)}, behind the end of the server's log: this is another server,\n"
                f"  or an older copy of it. {ANEW}"
            )
        return slot

    def _check_kind(self, slot: Slot) -> None:
        if slot.plugin != "pgoutput" or not slot.is_here:
            where = "this" if slot.is_here else "another"
            raise LogError(
                f"the slot '{self.slot}' is not this tap's (plugin {slot.plugin}, {where} database).\n"
                '  Choose another name: "slot" in the config.'
            )

    # ---- changing --------------------------------------------------------------------------------------

    def make(self, connection: psycopg.Connection[Any]) -> None:
        """See to it that there is a slot, for a reader that has nothing yet. One that was emptied is made anew."""
        slot = self.look(connection)
        if slot is not None:
            self._check_kind(slot)
            if not slot.lost:
                return
            connection.execute("select pg_drop_replication_slot(%s)", (self.slot,))
        with self._waiting(connection):
            connection.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", (self.slot,))

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[tuple[psycopg.Connection[Any], int]]:
        """A transaction that sees the database as it was at one place of the log: all that stands before it, and
        nothing of what stands after it. Gives both.

        A slot that lives for a moment exports it; the tap's own slot, which is older, keeps what follows.
        """
        with self.connected() as reader:
            with self.connected(replication=True) as maker:
                name = f"burler_{secrets.token_hex(8)}"
                with self._waiting(reader):
                    made = maker.execute(
                        f"CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT".encode()
                    ).fetchone()
                if made is None:
                    raise LogError("the server made no snapshot.")
                high, low = made[1].split("/")
                reader.execute("begin isolation level repeatable read, read only")
                reader.execute(f"set transaction snapshot '{made[2]}'".encode())
            yield reader, (int(high, 16) << 32) + int(low, 16)

    @contextlib.contextmanager
    def _waiting(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        """A slot can be made once all transactions that write are over."""
        try:
            yield
        except psycopg.errors.LockNotAvailable:
            pids = ", ".join(str(pid) for (pid,) in connection.execute(_WRITERS).fetchall())
            raise LogError(
                f"a slot can't be made: for {LOCK_SECONDS} s a transaction that writes has been open (of the processes "
                f"{pids}).\n  Run again once it is over, or end it: SELECT pg_terminate_backend(...)."
            ) from None
        except psycopg.errors.ConfigurationLimitExceeded as error:
            raise LogError(f"a slot can't be made: {first_line(error)}.\n  Raise max_replication_slots.") from None

    def advance(self, lsn: int) -> None:
        """Tell the server that all before ``lsn`` may be forgotten. While no feed runs: a slot in use does not move."""
        with self.connected() as connection:
            slot = self.look(connection)
            if slot is None or slot.lost or slot.confirmed >= lsn:
                return
            connection.execute("select pg_replication_slot_advance(%s, %s::pg_lsn)", (self.slot, shown(lsn)))


def first_line(error: BaseException) -> str:
    """What a driver's error says first."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
