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
        connection.execute("create database books")
    return password


@pytest.fixture
def books(database_server, tap_password):
    """A ledger of 200 entries; its slots go with the test."""
    made = Books(database_server, next(_NUMBERS), entries=200, tap_password=tap_password)
    yield made
    made.drop()


_NUMBERS = iter(range(10_000))


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
