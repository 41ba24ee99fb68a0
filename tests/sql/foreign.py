"""Databases that no test connects to, as SQLAlchemy sees them: a SQLite file behind another one's name.

url = foreign("mysql", tmp_path / "x.db", {"t": {"id": mysql.INTEGER(), "year": mysql.YEAR()}})
"""

import sqlite3

from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

TYPES = {}
"""What the columns of a table are said to be of, by (table, column)."""


class NullsLast(SQLiteCompiler):
    """Puts nulls behind all values where nobody says otherwise, as Oracle does."""

    def order_by_clause(self, select, **more):
        words = super().order_by_clause(select, **more).removeprefix(" ORDER BY ")
        return words and " ORDER BY " + ", ".join(f"{one} NULLS LAST" for one in words.split(", "))


class Foreign(SQLiteDialect_pysqlite):
    """A SQLite whose tables have the types of another database."""

    def get_columns(self, connection, table_name, schema=None, **more):
        found = super().get_columns(connection, table_name, schema, **more)
        return [{**one, "type": TYPES.get((table_name, one["name"]), one["type"])} for one in found]


class Mysql(Foreign):
    name = "mysql"
    supports_statement_cache = False


class Mssql(Foreign):
    name = "mssql"
    supports_statement_cache = False


class Oracle(Foreign):
    name = "oracle"
    supports_statement_cache = False
    statement_compiler = NullsLast


def foreign(kind, path, tables):
    """The URL of a database with tables: the type of each column by its name; None: an integer that is the key."""
    registry.register(f"{kind}.foreign", __name__, kind.capitalize())
    shop = sqlite3.connect(path)
    for table, columns in tables.items():
        said = [f"{name} integer primary key" if one is None else f"{name} not null" for name, one in columns.items()]
        shop.execute(f"create table {table} ({', '.join(said)})")
        TYPES.update({(table, name): one for name, one in columns.items() if one is not None})
    shop.close()
    return f"{kind}+foreign:///{path}"
