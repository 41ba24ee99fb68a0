"""The feed of a replication slot: PostgreSQL's streaming replication protocol, spoken through psycopg's own libpq.

psycopg 3 has no class for it, and needs none: ``START_REPLICATION`` turns a connection into a two-way COPY, in which
the server sends log data (``w``) and signs of life (``k``), and is told how far it is understood (``r``). PostgreSQL's
documentation has them under "Streaming Replication Protocol".
"""

from __future__ import annotations

import select
import struct
import time
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus

_EPOCH_SECONDS = 946_684_800  # 2000-01-01, which the server counts from
_REPLY_SECONDS = 10.0
_MOST_PINGS = 10


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing came. All that stands in the log before ``reached`` has been sent."""

    reached: int


class FeedEnded(Exception):
    """The server has ended the feed; the text is its own."""


class Feed:
    """A running feed.

    Args:
        connection: made with ``replication=database``; closed with the feed.
        slot: a slot of the plugin ``pgoutput``; it belongs to this feed while that runs.
        start: where to begin; the server begins no earlier than where the slot stands.

    Raises:
        psycopg.Error: the slot is not there, in use, or past saving.
    """

    def __init__(self, connection: psycopg.Connection[Any], slot: str, publication: str, start: int) -> None:
        self._connection, self._libpq = connection, connection.pgconn
        name = publication.replace('"', '""').replace("'", "''")
        command = f"START_REPLICATION SLOT {slot} LOGICAL {shown(start)} "
        command += f"(proto_version '1', publication_names '\"{name}\"')"
        self._libpq.send_query(command.encode())
        result = self._result()
        if result is None or result.status != ExecStatus.COPY_BOTH:
            raise _error(result)
        self._poll = select.poll()
        self._poll.register(self._libpq.socket, select.POLLIN)
        self._received = self._flushed = 0
        self._said_at = float("-inf")
        self._pings = 0
        self.acknowledged = 0
        """What the server may forget: up to here, and not a byte more. 0: say nothing of it."""

    def read(self, wait_seconds: float) -> bytes | Idle:
        """The next message of the plugin; ``Idle`` where the server has sent all it has, or nothing came in time.

        Raises:
            FeedEnded: by the server. psycopg.OperationalError: the connection is lost.
        """
        until = time.monotonic() + wait_seconds
        while True:
            if self.acknowledged > self._flushed or time.monotonic() - self._said_at > _REPLY_SECONDS:
                self.tell()
            size, data = self._libpq.get_copy_data(1)
            if size > 0:
                kind = bytes(data[:1])
                if kind == b"w":
                    self._pings = 0
                    return bytes(data[25:])
                if kind == b"k":
                    (reached, _clock, answer) = struct.unpack(">QqB", data[1:18])
                    if answer:
                        self._answer()
                    if reached > self._received:
                        self._received = reached
                        return Idle(reached)
            elif size < 0:
                raise self._ended()
            else:
                left = until - time.monotonic()
                if left <= 0:
                    return Idle(self._received)
                if self._poll.poll(min(left, 1.0) * 1000):
                    self._libpq.consume_input()

    def _answer(self) -> None:
        """A server that is to go down asks again and again, and stays until it hears that all is stored: for hours, if
        nobody says so. All it has is sent by then, so whoever reads may go, and come back later.

        Raises:
            FeedEnded: it is going down.
        """
        self._pings = self._pings + 1 if time.monotonic() - self._said_at < 1.0 else 1
        self.tell()
        if self._pings >= _MOST_PINGS:
            raise FeedEnded("the server is going down")

    def tell(self, *, ask: bool = False) -> None:
        """Tell the server how far it is read and what it may forget; ``ask``: it answers where it stands.

        What was read says nothing of what may be forgotten: only ``acknowledged`` does.
        """
        now = int((time.time() - _EPOCH_SECONDS) * 1_000_000)
        flushed = self.acknowledged
        self._libpq.put_copy_data(
            b"r" + struct.pack(">QQQqB", max(self._received, flushed), flushed, flushed, now, ask)
        )
        self._libpq.flush()
        self._flushed, self._said_at = flushed, time.monotonic()

    def reached(self, lsn: int) -> None:
        """A transaction that ends there is read: signs of life before it say nothing new."""
        self._received = max(self._received, lsn)

    def close(self) -> None:
        """Say the last word of ``acknowledged``, and end."""
        try:
            if self.acknowledged > self._flushed:
                self.tell()
        except psycopg.Error:
            pass  # the next STATE says it again
        finally:
            self._connection.close()

    def _result(self) -> Any:
        """The first result of a command. Waits as psycopg does: a signal's handler gets its turn."""
        poll = select.poll()
        poll.register(self._libpq.socket, select.POLLIN)
        while self._libpq.is_busy():
            if poll.poll(1000):
                self._libpq.consume_input()
        return self._libpq.get_result()

    def _ended(self) -> FeedEnded:
        result = self._result()
        return FeedEnded(_field(result, DiagnosticField.MESSAGE_PRIMARY) or "the server has ended the feed")


def _field(result: Any, which: DiagnosticField) -> str:
    said = None if result is None else result.error_field(which)
    return said.decode(errors="replace") if said else ""


def _error(result: Any) -> psycopg.Error:
    """What psycopg would raise."""
    try:
        kind = psycopg.errors.lookup(_field(result, DiagnosticField.SQLSTATE))
    except KeyError:
        kind = psycopg.OperationalError
    return kind(_field(result, DiagnosticField.MESSAGE_PRIMARY) or "the server began no feed")


def shown(lsn: int) -> str:
    """A place in the log as PostgreSQL writes it: ``0/16B3748``."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
