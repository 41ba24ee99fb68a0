"""A PostgreSQL server for all of these tests, and an empty database for each."""

import itertools
import json
import sys
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from burler.testing import canary
from tap_copy import server

sys.path.append(str(Path(__file__).parent))
_NUMBERS = itertools.count(1)


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
    return password


class Base:
    """An empty database, and a folder for files of it."""

    def __init__(self, url, tap_url, folder):
        self.url, self.folder = url, folder
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
    """A database of its own."""
    name = f"t{next(_NUMBERS)}"
    with psycopg.connect(database_server.url(), autocommit=True) as connection:
        connection.execute(f"create database {name} template template0")
    url = database_server.url(name)

    yield Base(url, database_server.url(name, user="reader", password=tap_password), tmp_path / "exports")
    with psycopg.connect(database_server.url(), autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """Records with numbers as they stand on the line, digit for digit."""
    from burler.sinks import memory

    monkeypatch.setattr(memory, "parse_line", lambda line: json.loads(line, parse_float=Decimal))
