"""The log of one table: its rows as they are at one place of it, then every change behind that place."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psycopg

from .feed import Feed, FeedEnded, Idle
from .slot import ANEW, PATIENCE_SECONDS, LogError, Slot, Source, first_line
from .transactions import Reader
from .values import Loaders

_PAGE_ROWS = 2000
_IDLE_SECONDS = 0.5
_QUIET_BYTES = 16 * 1024 * 1024  # of log in which nothing is of this table


class Acknowledged:
    """How far a slot may forget, and the feed that is to say so. It belongs to the slot and not to a client: that may
    be made anew while the feed of the one before still runs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.feed: Feed | None = None
        self.lsn = 0


@functools.cache
def _acknowledged(_url: str, _slot: str) -> Acknowledged:
    return Acknowledged()


class Log:
    """Reads one table through one slot. A position is ``{"lsn": ..., "table": ...}``: behind the last transaction
    whose rows are all out, and the table's number.

    Args:
        columns: gives the table's columns and its key, as the running catalog has them.
    """

    def __init__(self, source: Source, columns: Callable[[], tuple[frozenset[str], tuple[str, ...]]]) -> None:
        self._source, self._columns = source, columns
        self._acknowledged = _acknowledged(source.url, source.slot)

    def snapshot(self, stream: Any) -> Iterator[list[dict[str, Any]]]:
        """All rows, as a version of their own; then the position is where they were read.

        Raises:
            LogError: the server or the table is not fit for it.
        """
        with self._translated(stream), self._source.connected() as connection:
            table = self._source.check(connection, self._columns()[1])
            self._source.make(connection)
            with self._acknowledged.lock:
                self._acknowledged.lsn = 0  # what was said of a slot before, or of another server
            with self._source.snapshot() as (reader, lsn), stream.full_table():
                for page in self._pages(reader, stream.schema["properties"]):
                    yield [{**row, "_sdc_deleted_at": None, "_sdc_lsn": lsn} for row in page]
        stream.state = {"lsn": lsn, "table": table}

    def _pages(self, reader: psycopg.Connection[Any], wanted: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
        Loaders(reader).of(self._source.columns(reader).values())  # makes the connection know types that were made here
        select = psycopg.sql.SQL("select {} from {}").format(
            psycopg.sql.SQL(", ").join(psycopg.sql.Identifier(name) for name in wanted if name[:5] != "_sdc_"),
            psycopg.sql.Identifier(*self._source.table.split(".")),
        )
        with reader.cursor(name="rows", row_factory=psycopg.rows.dict_row) as cursor:
            cursor.execute(select)
            while rows := cursor.fetchmany(_PAGE_ROWS):
                yield rows

    def changes(self, stream: Any, *, to_the_end: bool = False) -> Iterator[dict[str, Any]]:
        """Every change behind the position, in the order of their commits. For ever; or up to where the log ends now.

        Raises:
            LogError: the slot does not have all of them, the table has become another one, or the server has gone.
        """
        position = int(stream.state["lsn"])
        with self._translated(stream), self._source.connected() as connection:
            self._check(stream, connection)
            self._source.usable(connection, position)
            end = self._source.now(connection) if to_the_end else None
            if end is not None and end <= position:
                return
            with self._following(stream, connection, position) as feed:
                known, keys = self._columns()
                reader = Reader(self._source, connection, stream, known, keys)
                yield from self._follow(stream, feed, reader, end)

    def _check(self, stream: Any, connection: psycopg.Connection[Any]) -> None:
        table = self._source.check(connection, self._columns()[1])
        if stream.state.get("table") != table:
            raise LogError(f"{self._source.table} was dropped and made anew since the state was written.\n  {ANEW}")

    def _follow(self, stream: Any, feed: Feed, reader: Reader, end: int | None) -> Iterator[dict[str, Any]]:
        said = stream.state["lsn"]
        while not stream.stopping:
            message = feed.read(_IDLE_SECONDS)
            if not isinstance(message, Idle):
                done = yield from reader.rows(message)
                if done is None:
                    continue
                feed.reached(done)
            elif reader.between:
                done = message.reached
                if end is not None:
                    feed.tell(ask=True)
            else:
                continue
            if done > stream.state["lsn"]:
                stream.state = {**stream.state, "lsn": done}
            if end is not None and done >= end:
                return
            if stream.state["lsn"] - said > _QUIET_BYTES:
                # Others write, and nothing of it may be this table's: without a STATE now and then nobody would tell
                # the server, and it would keep all of that.
                said = stream.state["lsn"]
                stream.save_bookmark()

    # ---- the feed --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _following(self, stream: Any, connection: psycopg.Connection[Any], position: int) -> Iterator[Feed]:
        feed, confirmed = self._open(stream, connection, position)
        said = self._acknowledged
        with said.lock:
            said.feed = feed
            if confirmed < said.lsn <= position:  # the feed before was lost before it could say so
                feed.acknowledged = said.lsn
        try:
            yield feed
        finally:
            with said.lock:
                if said.feed is feed:
                    said.feed = None
            feed.close()

    def _open(self, stream: Any, connection: psycopg.Connection[Any], position: int) -> tuple[Feed, int]:
        """The feed from a position, and where the slot stands. Who uses the slot gets a moment to let it go."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            slot = self._source.usable(connection, position)
            fed = self._source.connect(replication=True)
            try:
                return Feed(fed, self._source.slot, self._source.publication, position), slot.confirmed
            except psycopg.errors.ObjectInUse as error:
                fed.close()
                if time.monotonic() > until or stream.wait(0.1):
                    raise self._in_use(slot) from error
            except BaseException:
                fed.close()
                raise

    def _in_use(self, slot: Slot) -> LogError:
        pid = slot.active_pid or "..."
        return LogError(
            f"the slot '{self._source.slot}' is in use by process {pid} of the server: a slot serves one reader.\n"
            '  Is the tap running twice? Give the other one a slot of its own ("slot" in its config), or end it:\n'
            f"  SELECT pg_terminate_backend({pid})."
        )

    @contextlib.contextmanager
    def _translated(self, stream: Any) -> Iterator[None]:
        """Errors name the stream."""
        at = f"stream '{stream.name}'"
        try:
            yield
        except LogError as error:
            raise LogError(f"{at}: {error}") from error.__cause__
        except psycopg.errors.InsufficientPrivilege as error:
            raise LogError(
                f"{at}: the database said: {first_line(error)}.\n"
                f"  The tap's user needs: ALTER ROLE ... REPLICATION; GRANT SELECT ON {self._source.table} TO ..."
            ) from error
        except (psycopg.Error, FeedEnded) as error:
            raise LogError(f"{at}: the database said: {first_line(error)}") from error

    # ---- acknowledging ---------------------------------------------------------------------------------

    def acknowledge(self, lsn: int) -> None:
        """What stands before ``lsn`` is stored elsewhere: the slot need not keep it. A running feed says so with its
        next word; without one the slot is moved.

        Raises:
            LogError: the server can't be told.
        """
        said = self._acknowledged
        with said.lock:
            said.lsn = max(said.lsn, lsn)
            if said.feed is not None:
                said.feed.acknowledged = said.lsn
                return
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._source.advance(lsn)
            except psycopg.errors.ObjectInUse as error:
                if time.monotonic() > until:
                    raise LogError(f"the slot '{self._source.slot}' is in use: {first_line(error)}") from None
                time.sleep(0.1)
            except psycopg.Error as error:
                raise LogError(f"the slot '{self._source.slot}' could not be moved: {first_line(error)}") from None
