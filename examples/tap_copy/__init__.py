"""tap-copy: tables of PostgreSQL as CSV files that COPY writes, passed on as BATCH messages: no row is ever parsed."""

from __future__ import annotations

import burler
from burler.extras import require

tap = burler.tap(
    "tap-copy",
    config_spec={
        "type": "object",
        "required": ["database_url"],
        "properties": {
            "database_url": {
                "type": "string",
                "description": "postgresql://user:password@host:5432/database, of a user who may read.",
            },
            "schemas": {
                "type": "array",
                "items": {"type": "string"},
                "default": ["public"],
                "description": "Whose tables and views are streams.",
            },
            "replication_key": {
                "type": ["null", "string"],
                "description": "The column that new and changed rows have greater values in, such as updated_at. "
                "Tables that have it are incremental, all others full tables.",
            },
            "folder": {"type": "string", "default": "exports", "description": "Where the files go: a folder or URL."},
            "compression": {"type": "string", "enum": ["none", "gzip"], "default": "none"},
            "max_file_bytes": {
                "type": "integer",
                "minimum": 1,
                "default": 256 * 1024 * 1024,
                "description": "A file of so many bytes, before compression, is followed by another one.",
            },
            "connections": {
                "type": "integer",
                "minimum": 1,
                "maximum": 16,
                "default": 2,
                "description": "So many connections read a big table at the same time, each a part of it.",
            },
        },
    },
    version="1.0.0",
    description="Tables of PostgreSQL, in files that the database writes.",
)


@tap.client
def client(config):
    require("psycopg", extra="sql", needed_for="tap-copy")
    from .client import Warehouse

    return Warehouse(
        config["database_url"],
        schemas=config["schemas"],
        replication_key=config.get("replication_key"),
        folder=config["folder"],
        compression=config["compression"],
        most_bytes=config["max_file_bytes"],
        connections=config["connections"],
    )


@tap.discover
def discover(client):
    return client.discover()


# COPY gives rows in no order: the bookmark moves at the end, to the greatest value of the snapshot.
@tap.sync("*", order="none")
def rows(client, stream):
    return client.copy(stream)
