"""A PostgreSQL server for all of these tests, and an empty database for each."""

import contextlib
import json
import sys
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from burler.testing import canary
from support import postgres

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="package")
def database_server():
    """The server of this run of tests."""
    with contextlib.ExitStack() as stack:
        try:
            started = stack.enter_context(postgres.shared())
        except postgres.Missing as missing:
            pytest.skip(str(missing))
        yield started


@pytest.fixture(scope="package")
def books(database_server):
    """The name of a database."""
    return database_server.new_database()


@pytest.fixture(scope="package")
def reader(database_server, books):
    """The tap's user, who is called as the database is, and its password."""
    password = canary("copy-password")
    database_server.execute(f"create role {books} login password '{password}'")
    return books, password


class Base:
    """An empty database, and a folder for files of it."""

    def __init__(self, url, tap_url, reader, folder):
        self.url, self.folder = url, folder
        self.reader, self.password = reader
        self.config = {"database_url": tap_url, "folder": str(folder)}

    def do(self, *statements):
        """Run statements as the superuser; the tap may read what they made."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"grant select on all tables in schema public to {self.reader}")

    def ask(self, statement):
        """The rows of a statement."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement).fetchall()

    def files(self):
        """The names in the folder, hidden ones too."""
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []


@pytest.fixture
def base(database_server, books, reader, tmp_path):
    """An empty database, the same one for all tests: to make one for each would take its time."""
    name, password = reader
    tap_url = database_server.url(books, user=name, password=password)
    made = Base(database_server.url(books), tap_url, reader, tmp_path / "exports")
    yield made
    others = [name for (name,) in made.ask("select nspname from pg_namespace where nspname !~ '^(pg_|information_)'")]
    dropped = ", ".join(f'"{name}"' for name in others)
    made.do(f"drop schema {dropped} cascade", "create schema public", "grant usage on schema public to public")


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """Records with numbers as they stand on the line, digit for digit."""
    monkeypatch.setattr("burler.testing.parse_line", lambda line: json.loads(line, parse_float=Decimal))
