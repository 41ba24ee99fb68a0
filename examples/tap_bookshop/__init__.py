"""tap-bookshop: the tables of a database as streams (`shop.py` beside this makes the database)."""

from datetime import timedelta

import burler

tap = burler.tap(
    "tap-bookshop",
    config_spec={
        "type": "object",
        "required": ["database_url"],
        "properties": {
            "database_url": {
                "type": "string",
                "description": "As SQLAlchemy has it: sqlite:///bookshop.db, postgresql://user:password@host/bookshop.",
            },
            "statement_timeout_seconds": {
                "type": "number",
                "exclusiveMinimum": 0,
                "default": 3600,
                "description": "How long the next rows of PostgreSQL may take.",
            },
        },
    },
    version="1.0.0",
    description="Authors, books and orders of a bookshop.",
)


@tap.client
def client(config):
    # The shop's clock is in UTC, so nobody need be warned of times that say no zone.
    return burler.sql.Database(
        config["database_url"], statement_timeout_seconds=config["statement_timeout_seconds"], naive_times="utc"
    )


# PostgreSQL's tables lie in a schema: there the streams are "public.books" and so on, in SQLite "books".
@tap.discover
def discover(client):
    schemas = "public" if client.dialect == "postgresql" else None
    return client.discover(
        schemas=schemas,
        tables=["authors", "books", "order_lines", "bestsellers"],
        replication_keys={"*books": "updated_at"},
    )


# What is changed gets a new updated_at. It is set when a transaction begins and seen when it ends, up to five minutes
# later: so each run looks back that far.
@tap.sync("*books", order="asc", bookmark_strategy="every_n(5000)", lookback=timedelta(minutes=5))
def changes(client, stream):
    return client.pages(stream)


# All other tables come as a whole, so that targets drop the rows that are gone. One that is interrupted goes on.
@tap.sync("*", resumable_by="*", bookmark_strategy="every_n(5000)")
def tables(client, stream):
    return client.pages(stream)


# Not every stream is a table.
@tap.sync("sales", key_properties="book_id")
def sales(client):
    return client.query(
        """
        select book_id, sum(amount) as copies, max(ordered_on) as last_ordered_on
        from order_lines where amount >= :least group by book_id
        """,
        {"least": 1},
    )


tap.schema(
    "sales",
    {
        "type": "object",
        "properties": {
            "book_id": {"type": "integer"},
            "copies": {"type": "integer"},
            "last_ordered_on": {"type": "string", "format": "date"},
        },
    },
)
