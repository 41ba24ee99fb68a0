"""A big table in parts: each is read on a connection of its own, and all of them see what the first one sees."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import psycopg

from .catalog import Table
from .kinds import quoted

logger = logging.getLogger(__name__)

Connection = psycopg.Connection[Any]

_LEAST_BYTES = 32 * 1024 * 1024
"""Of a part: a smaller one is read before another connection is there."""
_LOCK_MS = 1000
_RANGES_SINCE = 140_000  # before, a range of places made the server look at each row of the table


def named(table: Table) -> str:
    """A table in a statement."""
    return f"{quoted(table.schema)}.{quoted(table.name)}"


@contextlib.contextmanager
def in_parts(
    connection: Connection, table: Table, most: int, connect: Callable[[str], Connection]
) -> Iterator[dict[Connection, str]]:
    """Connections in one snapshot, each with the condition of its part: where in the table rows lie. They are closed
    with the block. A table that is not worth it stays whole, and so does one for which there are no connections.

    Args:
        connection: in a transaction whose snapshot counts.
        most: parts.
        connect: gives a new connection that sees an exported snapshot.
    """
    conditions = _conditions(connection, table, most)
    if len(conditions) == 1:
        yield {connection: ""}
        return
    connection.execute(f"select from {named(table)} limit 0".encode())
    (snapshot,) = connection.execute("select pg_export_snapshot()").fetchone() or ("",)
    with contextlib.ExitStack() as opened:
        others = []
        try:
            for _ in conditions[1:]:
                others.append(opened.enter_context(contextlib.closing(connect(snapshot))))
                _hold(others[-1], table)
        except psycopg.Error as error:
            said = error.diag.message_primary or type(error).__name__
            logger.info("table %s is read on one connection, since another one failed: %s", table.stream, said)
            conditions, others = [""], []
        yield dict(zip((connection, *others), conditions, strict=True))


def _hold(other: Connection, table: Table) -> None:
    """Have a connection lock the table as who reads it does. Somebody who waits to change the table waits for the first
    connection, and both would wait for ever if this one waited for them."""
    other.execute(f"set local lock_timeout = {_LOCK_MS}".encode())
    other.execute(f"select from {named(table)} limit 0".encode())


def _conditions(connection: Connection, table: Table, most: int) -> list[str]:
    """Of each part, at most ``most`` of them; [""] for a table as a whole."""
    if most < 2 or not table.is_stored or connection.info.server_version < _RANGES_SINCE:
        return [""]
    blocks, size_bytes = connection.execute(
        "select pg_relation_size(t) / cast(current_setting('block_size') as int), pg_table_size(t) "
        "from (select cast(%s as regclass) as t) as t",
        (named(table),),
    ).fetchone() or (0, 0)
    count = min(most, size_bytes // _LEAST_BYTES, blocks)
    if count < 2:
        return [""]
    cuts = [f"'({blocks * part // count},0)'" for part in range(1, count)]
    first, last = f"ctid < {cuts[0]}", f"ctid >= {cuts[-1]}"
    middle = [f"ctid >= {low} and ctid < {high}" for low, high in itertools.pairwise(cuts)]
    return [first, *middle, last]
