"""The ledger itself: what makes it, and what happens in it: ``python -m examples.tap_ledger.ledger``."""

from __future__ import annotations

import argparse
import random
from decimal import Decimal
from pathlib import Path

import psycopg
from psycopg.types.json import Jsonb

DEFAULT_URL = "postgresql://ledger:ledger@127.0.0.1:8771/ledger"
ACCOUNTS = 20


def make(server_url: str, database: str = "ledger", *, entries: int = 1000) -> None:
    """Make a database with a ledger.

    Args:
        server_url: of any database of the server, for a user that may make one.
    """
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("create database {}").format(psycopg.sql.Identifier(database)))
    fill(f"{server_url.rpartition('/')[0]}/{database}", entries=entries)


def fill(url: str, *, entries: int = 1000) -> None:
    """Make the tables of ``ledger.sql`` in a database, and rows."""
    with psycopg.connect(url) as connection:
        connection.execute((Path(__file__).parent / "ledger.sql").read_text(encoding="utf-8"))
        connection.cursor().executemany(
            "insert into accounts (id, name, currency, credit_limit) values (%s, %s, %s, %s)",
            [
                (i, f"Account No. {i}", ("EUR", "PEN", "JPY")[i % 3], i * 1000 if i % 4 else None)
                for i in range(1, ACCOUNTS + 1)
            ],
        )
        connection.cursor().executemany(
            "insert into entries (account_id, amount, memo, tags, details) values (%s, %s, %s, %s, %s)",
            [_entry(random.Random(i)) for i in range(1, entries + 1)],
        )


def work(url: str, *, count: int = 10, seed: int | None = None) -> None:
    """So many transactions: entries are booked, corrected and struck out, and an account is renamed now and then."""
    chance = random.Random(seed)
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(count):
            with connection.transaction():
                for _ in range(chance.randint(1, 4)):
                    _step(connection, chance)


def _step(connection: psycopg.Connection, chance: random.Random) -> None:
    which = "(select id from entries order by abs(id - %s) limit 1)"
    what, near = chance.random(), chance.randint(1, 2000)
    if what < 0.5:
        connection.execute(
            "insert into entries (account_id, amount, memo, tags, details) values (%s, %s, %s, %s, %s)", _entry(chance)
        )
    elif what < 0.8:
        changed = (f"corrected {chance.randint(1, 99)}", Decimal(chance.randint(1, 99_999)) / 100, near)
        connection.execute(f"update entries set memo = %s, amount = %s where id = {which}", changed)
    elif what < 0.95:
        connection.execute(f"delete from entries where id = {which}", (near,))
    else:
        name = f"Account {chance.randint(1, 9999)}"
        connection.execute("update accounts set name = %s where id = %s", (name, chance.randint(1, ACCOUNTS)))


def _entry(chance: random.Random) -> tuple[object, ...]:
    number = chance.randint(1, 99_999)
    memo = None if number % 7 == 0 else f'Invoice "{number}" – paid\n'
    tags = None if number % 5 == 0 else ["new", None, 'odd, "quoted"'][: number % 4]
    return chance.randint(1, ACCOUNTS), Decimal(number) / 100, memo, tags, Jsonb({"line": number, "rate": 0.1})


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.tap_ledger.ledger", description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("make", "work"))
    parser.add_argument("--url", default=DEFAULT_URL, help=f"of the database ({DEFAULT_URL})")
    parser.add_argument("--count", type=int, default=10, help="work: transactions (10)")
    parser.add_argument("--entries", type=int, default=1000, help="make: how many to begin with (1000)")
    parser.add_argument("--seed", type=int, help="work: of what happens")
    given = parser.parse_args()
    if given.what == "make":
        server, _slash, database = given.url.rpartition("/")
        make(f"{server}/postgres", database, entries=given.entries)
    else:
        work(given.url, count=given.count, seed=given.seed)


if __name__ == "__main__":
    main()
