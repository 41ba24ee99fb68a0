"""A PostgreSQL server for all of these tests, and an empty database for each."""

import json
import sys
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from burler.testing import canary
from tap_copy import server

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="package")
def database_server():
    """A server; it ends with the last of these tests."""
    try:
        started = server.Server(password=canary("shop-password"))
    except server.Missing as missing:
        pytest.skip(str(missing))
    with started:
        yield started


@pytest.fixture(scope="package")
def tap_password(database_server):
    """The one that the tap's user gets."""
    password = canary("copy-password")
    with psycopg.connect(database_server.url(), autocommit=True) as connection:
        connection.execute(f"create role reader login password '{password}'")
        connection.execute("create database books")
    return password


class Base:
    """An empty database, and a folder for files of it."""

    def __init__(self, url, tap_url, password, folder):
        self.url, self.password, self.folder = url, password, folder
        self.config = {"database_url": tap_url, "folder": str(folder)}

    def do(self, *statements):
        """Run statements as the superuser; the tap may read what they made."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.execute("grant select on all tables in schema public to reader")

    def ask(self, statement):
        """The rows of a statement."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement).fetchall()

    def files(self):
        """The names in the folder, hidden ones too."""
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []


@pytest.fixture
def base(database_server, tap_password, tmp_path):
    """An empty database, the same one for all tests: to make one for each would take its time."""
    tap_url = database_server.url("books", user="reader", password=tap_password)
    made = Base(database_server.url("books"), tap_url, tap_password, tmp_path / "exports")
    yield made
    others = [name for (name,) in made.ask("select nspname from pg_namespace where nspname !~ '^(pg_|information_)'")]
    dropped = ", ".join(f'"{name}"' for name in others)
    made.do(f"drop schema {dropped} cascade", "create schema public", "grant usage on schema public to public")


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """Records with numbers as they stand on the line, digit for digit."""
    from support.internals import memory_sink as memory

    monkeypatch.setattr(memory, "parse_line", lambda line: json.loads(line, parse_float=Decimal))
