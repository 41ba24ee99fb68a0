"""A PostgreSQL server for all of these tests, and a ledger on it for each."""

import psycopg
import pytest

from burler.testing import canary
from tap_ledger import server
from tap_ledger.tests.follow import Books, Tap


@pytest.fixture(scope="package")
def database_server():
    """A server; it ends with the last of these tests."""
    try:
        started = server.Server(password=canary("ledger-password"))
    except server.Missing as missing:
        pytest.skip(str(missing))
    with started:
        yield started


@pytest.fixture(scope="package")
def tap_password(database_server):
    """The one that the tap's user gets: the README's is known to everybody."""
    password = canary("tap-password")
    with psycopg.connect(database_server.url(), autocommit=True) as connection:
        connection.execute(f"create role tap login replication password '{password}'")
    return password


@pytest.fixture
def make_books(database_server, tap_password):
    """Makes ledgers whose slots go with the test."""
    made = []

    def make(entries=200):
        name = f"l{next(_NUMBERS)}"
        made.append(Books(database_server, name, entries=entries, tap_password=tap_password))
        return made[-1]

    yield make
    for books in made:
        books.drop()


_NUMBERS = iter(range(10_000))


@pytest.fixture
def books(make_books):
    """A ledger of 200 entries."""
    return make_books()


@pytest.fixture
def start(tmp_path, books):
    """Starts taps that follow it, and end with the test."""
    running = []

    def begin(*flags, state=None, every_ms=200, **config):
        flags = ("--state-message-min-interval-ms", str(every_ms), *flags)
        running.append(Tap(tmp_path / f"tap{len(running)}", {**books.config, **config}, *flags, state=state))
        return running[-1]

    yield begin
    for tap in running:
        if tap.process.poll() is None:
            tap.process.kill()
            tap.process.wait()
