"""Databases as sources: which tables there are, and their rows in pages. Needs the extra ``sql``.

What to open for what:

    database                        ``Database``: what a tap's author uses
    urls                            where it is: URL and engine
    discovery, json_types           tables and views as a catalog; the JSON Schema of each type of column
    parameters                      the values of a statement of the author's own
    reading                         which columns, from where, in which order: what a stream asks of a table
    position                        where a table with a key of several columns goes on
    postgres, postgres_select       reading PostgreSQL: through ADBC as Arrow, or as JSON that PostgreSQL makes
    postgres_links, pool            its two drivers, and connections that wait
    arrow_columns                   Arrow's columns as burler writes them
    other, sqlite                   all other databases: rows by SQLAlchemy; SQLite's own ways with types
    ahead                           the next page is fetched while the last one is written
    failures                        what a driver says, as one ``SqlError`` without secrets
"""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.sql.database import Database
    from burler.sql.tables import Column, Table

__all__ = ["Column", "Database", "Table"]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(__name__, {"Column": "tables", "Database": "database", "Table": "tables"})
