"""One PostgreSQL server for all tests here, and a database of its own for each test."""

import json
import sys
from decimal import Decimal
from pathlib import Path

import pytest

_HERE = str(Path(__file__).parent)
if _HERE not in sys.path:
    sys.path.append(_HERE)


@pytest.fixture(scope="session")
def server():
    """The server. Without PostgreSQL on the machine the tests that ask for it are skipped."""
    from support import postgres

    try:
        block = postgres.shared()
        started = block.__enter__()
    except postgres.Missing as missing:
        pytest.skip(str(missing))
    yield started
    block.__exit__(None, None, None)


@pytest.fixture(scope="session")
def one_database(server):
    """The name of a database that all tests share."""
    return server.new_database()


@pytest.fixture
def pg(server, one_database):
    """An empty database: ``pg.url``, ``pg.execute(...)``, ``pg.ask(...)``."""

    import psycopg

    connection = psycopg.connect(server.url(one_database), autocommit=True)
    connection.execute("set timezone = 'UTC'")

    class Empty:
        name = one_database
        url = server.url(one_database)
        port = server.port

        @staticmethod
        def execute(*statements):
            for statement in statements:
                connection.execute(statement)

        @staticmethod
        def ask(statement):
            return connection.execute(statement).fetchall()

    yield Empty
    others = [name for (name,) in Empty.ask("select nspname from pg_namespace where nspname !~ '^(pg_|information_)'")]
    dropped = ", ".join('"' + name.replace('"', '""') + '"' for name in others)
    Empty.execute(f"drop schema {dropped} cascade", "create schema public", "grant usage on schema public to public")
    connection.close()


@pytest.fixture(params=["adbc", "psycopg"])
def adbc(request):
    """Both ways to fetch from PostgreSQL."""
    return request.param == "adbc"


@pytest.fixture
def exact(monkeypatch):
    """Records with numbers as they stand on the line, digit for digit."""
    from burler import testing

    monkeypatch.setattr(testing, "parse_line", lambda line: json.loads(line, parse_float=Decimal))
