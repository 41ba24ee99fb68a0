"""What PostgreSQL says in the feed of a replication slot: the messages of its plugin ``pgoutput``, protocol version 1.

PostgreSQL's documentation has them under "Logical Replication Message Formats". Values are text, as the server writes
it.
"""

from __future__ import annotations

import datetime as dt
import struct
from dataclasses import dataclass

from burler import BurlerError

_EPOCH = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
UNCHANGED = object()
"""A big value (TOAST) that an update has left as it was: the server does not say it."""

Values = tuple[object, ...]
"""A row: for each column bytes, None for null, or UNCHANGED."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction's changes follow. ``lsn`` is where its commit stands in the log."""

    lsn: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Commit:
    """The transaction is complete; ``end_lsn`` is behind it."""

    lsn: int
    end_lsn: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Column:
    """A column as it was when the changes that follow were made. ``is_key``: old rows are told by it."""

    name: str
    type_oid: int
    is_key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, said before the first change of it, and again when it has changed itself."""

    oid: int
    schema: str
    name: str
    identity: str  # d: its primary key tells rows; f: all columns; i: those of an index; n: nothing
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A row that came (``new``), went (``old``), or changed.

    ``old`` is None where an update left the key as it was; ``whole``: it has all columns, not the key's alone.
    """

    oid: int
    old: Values | None
    new: Values | None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables of which all rows went at once."""

    oids: tuple[int, ...]


Message = Begin | Commit | Relation | Change | Truncate


def moment(microseconds: int) -> dt.datetime:
    """The server's time: microseconds since 2000, in UTC."""
    return _EPOCH + dt.timedelta(microseconds=microseconds)


def decode(data: bytes) -> Message | None:
    """A message; None for one that says nothing of rows (types, origins).

    Raises:
        BurlerError: it is of a kind that protocol version 1 does not have.
    """
    kind = data[:1]
    if kind in b"IUD":
        return _change(data)
    if kind == b"B":
        lsn, at, _xid = struct.unpack_from(">QqI", data, 1)
        return Begin(lsn, moment(at))
    if kind == b"C":
        _flags, lsn, end_lsn, at = struct.unpack_from(">BQQq", data, 1)
        return Commit(lsn, end_lsn, moment(at))
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        count, _options = struct.unpack_from(">iB", data, 1)
        return Truncate(struct.unpack_from(f">{count}I", data, 6))
    if kind in b"YOM":
        return None
    raise BurlerError(f"PostgreSQL sent a message of the kind {kind!r}, which pgoutput's version 1 does not have.")


def _change(data: bytes) -> Change:
    (oid,) = struct.unpack_from(">I", data, 1)
    old: Values | None = None
    new: Values | None = None
    whole, at = False, 5
    while at < len(data):
        part = data[at : at + 1]
        values, at = _values(data, at + 1)
        if part == b"N":
            new = values
        else:
            old, whole = values, part == b"O"
    return Change(oid, old, new, whole)


def _values(data: bytes, at: int) -> tuple[Values, int]:
    """The values of a row, and where they end."""
    (count,) = struct.unpack_from(">H", data, at)
    at += 2
    values: list[object] = []
    for _ in range(count):
        kind = data[at : at + 1]
        at += 1
        if kind == b"t":
            (size,) = struct.unpack_from(">I", data, at)
            at += 4
            values.append(data[at : at + size])
            at += size
        else:
            values.append(UNCHANGED if kind == b"u" else None)
    return tuple(values), at


def _relation(data: bytes) -> Relation:
    (oid,) = struct.unpack_from(">I", data, 1)
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    identity = chr(data[at])
    (count,) = struct.unpack_from(">H", data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        is_key = bool(data[at] & 1)
        column, at = _text(data, at + 1)
        (type_oid, _modifier) = struct.unpack_from(">Ii", data, at)
        at += 8
        columns.append(Column(column, type_oid, is_key))
    return Relation(oid, schema or "pg_catalog", name, identity, tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    """A text that ends with a zero, and where the next thing begins."""
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1
