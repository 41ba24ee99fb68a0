"""A replication slot and the publication it is read through: made, looked at, moved on. Errors say what to do."""

from __future__ import annotations

import contextlib
import os
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
select p.pubinsert and p.pubupdate and p.pubdelete and p.pubtruncate, t.tablename is not null, to_jsonb(t)->>'rowfilter'
from pg_publication p
left join pg_publication_tables t on t.pubname = p.pubname and format('%%I.%%I', t.schemaname, t.tablename) = %s
where p.pubname = %s
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
        """A connection for a block, closed without a farewell: what it was doing ends.

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
            settings |= {"wal_sender_timeout": "1h"}  # and may take that long for what stands between two answers
        more = {"replication": "database"} if replication else {}
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
                **more,
            )
        except psycopg.OperationalError as error:
            if replication and "replication" in str(error):
                raise LogError(
                    f"the database refuses a replication connection: {first_line(error)}\n"
                    "  Give the tap's user the right (ALTER ROLE ... REPLICATION), or raise max_wal_senders."
                ) from None
            raise LogError(f"the database can't be reached: {first_line(error)}") from None
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
            raise LogError("the server's wal_level is not 'logical': ALTER SYSTEM SET wal_level = logical, and restart it.")
        found = connection.execute(_ABOUT_TABLE, (self.table,)).fetchone()
        if found is None:
            raise LogError(f"there is no table {self.table}, or the tap's user may not see it.")
        oid, identity, told_by = found
        if not keys:
            raise LogError(
                f"{self.table} has no primary key: no target could tell which row has changed. Give it one: "
                f"ALTER TABLE {self.table} ADD PRIMARY KEY (...)."
            )
        if identity != "f" and not set(keys) <= set(told_by):
            raise LogError(
                f"{self.table}: its log does not say the key {', '.join(keys)} of rows that are deleted (replica "
                f"identity). ALTER TABLE {self.table} REPLICA IDENTITY DEFAULT, or FULL."
            )
        self._check_publication(connection)
        return int(oid)

    def _check_publication(self, connection: psycopg.Connection[Any]) -> None:
        found = connection.execute(_ABOUT_PUBLICATION, (self.table, self.publication)).fetchone()
        if found is None:
            raise LogError(
                f"there is no publication '{self.publication}': CREATE PUBLICATION {self.publication} FOR TABLE {self.table}."
            )
        publishes_all, has_table, rows = found
        if not has_table:
            raise LogError(
                f"the publication '{self.publication}' does not have {self.table}: ALTER PUBLICATION {self.publication} "
                f"ADD TABLE {self.table} (one of partitions: SET (publish_via_partition_root = true)).\n"
                "  What changed in the meantime is not in the log: begin anew, without this stream's state."
            )
        if not publishes_all or rows:
            raise LogError(
                f"the publication '{self.publication}' leaves changes of {self.table} out (publish=..., or WHERE): rows "
                "that it leaves out would stay as they are for ever. Make one without."
            )

    def now(self, connection: psycopg.Connection[Any]) -> int:
        """Where the log ends. What is committed by now stands before it."""
        found = connection.execute("select (pg_current_wal_flush_lsn() - '0/0')::text").fetchone()
        return int(found[0]) if found else 0

    def usable(self, connection: psycopg.Connection[Any], position: int) -> Slot:
        """The slot, for a reader that has all before ``position``.

        Raises:
            LogError: it would not give all that came after.
        """
        slot = self.look(connection)
        anew = "Begin anew, without this stream's state (or with tail_full_table_on_failure): the table is read again."
        if slot is None:
            raise LogError(
                f"the replication slot '{self.slot}' is gone, and with it what changed since {shown(position)}.\n  {anew}"
            )
        self._check_kind(slot)
        if slot.lost:
            raise LogError(
                f"the server has thrown away what the slot '{self.slot}' kept (max_slot_wal_keep_size), so what changed "
                f"since {shown(position)} is gone.\n  {anew}"
            )
        if slot.confirmed > position:
            raise LogError(
                f"the slot '{self.slot}' stands at {shown(slot.confirmed)}, behind the state's {shown(position)}: "
                "somebody was told that changes between are stored, and the state does not have them.\n"
                f"  {anew} The setting acknowledge_state_file keeps it from happening."
            )
        if position > self.now(connection):
            raise LogError(
                f"the state's {shown(position)} is later than the end of the server's log: this is another server, or "
                f"an older copy of it.\n  {anew}"
            )
        return slot

    def _check_kind(self, slot: Slot) -> None:
        if slot.plugin != "pgoutput" or not slot.is_here:
            raise LogError(
                f"the slot '{self.slot}' is not this tap's (plugin {slot.plugin}, "
                f"{'this' if slot.is_here else 'another'} database). Choose another name: \"slot\" in the config."
            )

    # ---- changing --------------------------------------------------------------------------------------

    def make(self, connection: psycopg.Connection[Any]) -> None:
        """See to it that there is a slot, for a reader that has nothing yet. One that the server has emptied is made anew."""
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
        """A transaction that sees the database as it was at one place of the log: what stands before it, all of it,
        and nothing of what stands after it. Gives both.

        A slot that lives for a moment exports it; the tap's own slot, which is older, keeps what follows.
        """
        with self.connected() as reader:
            with self.connected(replication=True) as maker:
                name = f"burler_{os.getpid()}_{id(maker) % 100_000}"
                with self._waiting(reader):
                    made = maker.execute(
                        f"CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT"
                    ).fetchone()
                if made is None:
                    raise LogError("the server made no snapshot.")
                high, low = made[1].split("/")
                reader.execute("begin isolation level repeatable read, read only")
                reader.execute(f"set transaction snapshot '{made[2]}'")
            yield reader, (int(high, 16) << 32) + int(low, 16)

    @contextlib.contextmanager
    def _waiting(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        """A slot can be made once all transactions that write are over."""
        try:
            yield
        except psycopg.errors.LockNotAvailable:
            found = connection.execute(
                "select pid from pg_stat_activity where backend_xid is not null and pid <> pg_backend_pid() "
                "order by xact_start limit 5"
            ).fetchall()
            pids = ", ".join(str(pid) for (pid,) in found) or "unknown"
            raise LogError(
                f"a slot can't be made: for {LOCK_SECONDS} s it has been waiting for transactions that write (processes "
                f"{pids}). It is tried again; or end them: SELECT pg_terminate_backend(...)."
            ) from None
        except psycopg.errors.ConfigurationLimitExceeded as error:
            raise LogError(
                f"a slot can't be made: {first_line(error)}. Raise max_replication_slots (a snapshot takes one more)."
            ) from None

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
