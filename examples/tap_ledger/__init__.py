"""tap-ledger: two ways of following a PostgreSQL database: its log, and a poll that a bell rings for."""

from __future__ import annotations

from datetime import timedelta

import burler
from burler.extras import require

tap = burler.tap(
    "tap-ledger",
    config_spec={
        "type": "object",
        "required": ["database_url"],
        "properties": {
            "database_url": {
                "type": "string",
                "description": "postgresql://user:password@host:5432/ledger, of a user with REPLICATION.",
            },
            "slot": {
                "type": "string",
                "pattern": "^[a-z0-9_]{1,63}$",
                "default": "burler_ledger",
                "description": "The replication slot; made by the first run. Each tap needs its own.",
            },
            "publication": {
                "type": "string",
                "default": "burler_ledger",
                "description": "What the slot is read through: CREATE PUBLICATION ... FOR TABLE entries.",
            },
        },
    },
    version="1.0.0",
    description="Accounts and entries of a ledger, as they change.",
)


@tap.client
def client(config):
    require("psycopg", extra="sql", needed_for="tap-ledger")
    from .client import Ledger

    return Ledger(config["database_url"], slot=config["slot"], publication=config["publication"])


@tap.discover
def discover(client):
    return client.discover()


# ---- entries: every change, from the log --------------------------------------------------------------


# Without a position all rows, and the place in the log at which they were read. In a plain run also what has changed
# since.
@tap.sync("entries", replication_method=burler.LOG_BASED, bookmark_strategy="every_n(10000)", order="none")
def entries(client, stream):
    if "lsn" not in stream.state:
        yield from client.log.snapshot(stream)
    if not stream.tailing:
        yield from client.log.changes(stream, to_the_end=True)


@tap.tail("entries")
def entries_changes(client, stream):
    yield from client.log.changes(stream)


# A STATE has been written (or, with acknowledge_state_file, stored): PostgreSQL may forget what stands before it.
@tap.ack("entries")
def acknowledge(client, state):
    if "lsn" in state:
        client.log.acknowledge(state["lsn"])


# ---- accounts: polled, at once when the database says so ----------------------------------------------


# updated_at is set when a row is written and seen when its transaction ends: each poll looks a minute back. Rows that
# come again unchanged go no further.
@tap.sync("accounts", replication_key="updated_at", bookmark_strategy="every_n(5000)", lookback=timedelta(minutes=1))
def accounts(client, stream):
    return client.pages(stream)


@tap.wake("accounts")
def accounts_changed(client, stream):
    yield from client.notifications("ledger_accounts", stream)
