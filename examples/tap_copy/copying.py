"""The rows of COPYs as the server sends them: each in a message of its own, as PostgreSQL's protocol has it.

``Cursor.copy`` of psycopg gives the same rows. This asks libpq itself, of several connections in turn, and puts each
row behind the others at once: a third of the time in Python for rows that nobody looks at, since objects that are kept
cost more than objects that are gone again.
"""

from __future__ import annotations

import select
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import psycopg
from psycopg import pq

_WAIT_MS = 1000
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole rows of one COPY.

    Attributes:
        part: which COPY it is, by its place among those that run.
        header: the line before all rows.
        rows: how many; none only in the last piece.
        data: their bytes, valid until the next piece is asked for.
        is_last: whether the COPY has ended.
    """

    part: int
    header: bytes
    rows: int
    data: memoryview
    is_last: bool


def copied(statements: Mapping[psycopg.Connection[Any], str]) -> Iterator[Piece]:
    """What ``COPY ... TO STDOUT (FORMAT csv, HEADER)`` of some connections gives, as it comes.

    A caller that does not take all of it must close the connections.

    Args:
        statements: a COPY for each connection.

    Raises:
        psycopg.Error: a server refused it, or ended it, or a connection is lost.
    """
    copies = [_Copy(part, *asked) for part, asked in enumerate(statements.items())]
    poll = select.poll()
    for copy in copies:
        copy.begin()
        poll.register(copy.libpq.socket, select.POLLIN)
    while copies:
        came = False
        for copy in copies:
            came = copy.read() or came
            if copy.has_piece:
                yield from copy.piece()
            if copy.ended:
                poll.unregister(copy.libpq.socket)
        copies = [copy for copy in copies if not copy.ended]
        if not came:
            poll.poll(_WAIT_MS)


class _Copy:
    """A COPY on one connection."""

    def __init__(self, part: int, connection: psycopg.Connection[Any], statement: str) -> None:
        self.libpq, self.ended = connection.pgconn, False
        self._part, self._header = part, b""
        self._held, self._size, self._rows, self._given = BytesIO(), 0, 0, 0
        self.libpq.send_query(statement.encode())

    def begin(self) -> None:
        """Wait for the header."""
        self._expect(pq.ExecStatus.COPY_OUT)
        while not (found := self.libpq.get_copy_data(1))[0]:
            self._wait()
        if found[0] < 0:
            self._finish()
        self._header = bytes(found[1])

    @property
    def has_piece(self) -> bool:
        """Whether enough rows are held to be handed on, or the last of them."""
        return self.ended or self._size >= _PIECE_BYTES

    def read(self) -> bool:
        """Take the rows that are there, up to a piece; whether there were some."""
        self.libpq.consume_input()
        get, write = self.libpq.get_copy_data, self._held.write
        rows, held = self._rows, self._size
        while held < _PIECE_BYTES:
            size, row = get(1)
            if size <= 0:
                break
            write(row)
            rows += 1
            held += size
        came, self._rows, self._size = rows > self._rows, rows, held
        if size < 0:
            self._finish()
        return came

    def piece(self) -> Iterator[Piece]:
        """The rows that are held."""
        with self._held.getbuffer() as held, held[: self._size] as data:
            yield Piece(self._part, self._header, self._rows, data, self.ended)
        self._held.seek(0)
        self._given += self._rows
        self._size = self._rows = 0

    def _finish(self) -> None:
        """The server has sent all that it had.

        Raises:
            psycopg.Error: it has not: an error came, or rows are missing.
        """
        told, came = self._expect(pq.ExecStatus.COMMAND_OK).command_tuples, self._given + self._rows
        if told != came:
            raise psycopg.OperationalError(f"{came} rows came, and the server tells of {told}")
        while self.libpq.get_result() is not None:
            pass
        self.ended = True

    def _expect(self, status: pq.ExecStatus) -> Any:
        """The next result, which is to have a status."""
        while self.libpq.is_busy():
            self._wait()
        result = self.libpq.get_result()
        if result is None:
            raise psycopg.OperationalError("the connection is lost")
        if result.status != status:
            raise psycopg.errors.error_from_result(result)
        return result

    def _wait(self) -> None:
        """Wait until the server says something more."""
        poll = select.poll()
        poll.register(self.libpq.socket, select.POLLIN)
        if poll.poll(_WAIT_MS):
            self.libpq.consume_input()
