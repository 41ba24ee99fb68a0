"""What is in the demo's database: ``python -m examples.tap_copy.shop`` changes some of its orders."""

from __future__ import annotations

import argparse

import psycopg

DEFAULT_URL = "postgresql://shop:shop@127.0.0.1:8773/shop"
_TABLES = """
create table orders (
    id bigint primary key, customer text not null, amount numeric(12, 2), rate float8, paid boolean not null,
    tags text[], details jsonb, picture bytea, placed date, updated_at timestamptz not null
);
create index on orders (updated_at);
create table countries (code char(2) primary key, name text not null, note text);
grant usage on schema public to tap;
grant select on all tables in schema public to tap;
"""
_ORDERS = """
insert into orders
select i, 'customer ' || i %% 5000, i %% 100000 / 100.0, case when i %% 3 > 0 then i / 7.0 end, i %% 2 = 0,
       case when i %% 5 > 0 then array['new', null, 'odd, "quoted"'] end, jsonb_build_object('line', i, 'rate', 0.1),
       decode(lpad(to_hex(i), 8, '0'), 'hex'), date '2024-01-01' + i %% 365,
       timestamptz '2024-01-01 00:00+00' + i * interval '1 second'
from generate_series(1, %s) as i
"""
_COUNTRIES = [("PE", "Perú", None), ("DE", "Deutschland", ""), ("JP", "日本", 'a "quoted", odd\nnote')]


def make(server_url: str, database: str = "shop", *, orders: int = 1000, password: str = "tap") -> None:
    """Make a database with a shop, and the user ``tap``, who may read it.

    Args:
        server_url: of any database of the server, for a user that may make one.
    """
    name = psycopg.sql.Identifier(database)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("create database {}").format(name))
        connection.execute(psycopg.sql.SQL("create role tap login password {}").format(password))
    with psycopg.connect(f"{server_url.rpartition('/')[0]}/{database}") as connection:
        connection.execute(_TABLES)
        connection.execute(_ORDERS, (orders,))
        connection.cursor().executemany("insert into countries values (%s, %s, %s)", _COUNTRIES)


def work(url: str, *, count: int) -> None:
    """So many orders are changed."""
    with psycopg.connect(url) as connection:
        connection.execute("update orders set paid = not paid, updated_at = now() where id <= %s", (count,))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.tap_copy.shop", description="Changes orders.")
    parser.add_argument("--url", default=DEFAULT_URL, help=f"of the shop ({DEFAULT_URL})")
    parser.add_argument("--count", type=int, default=1000, help="how many orders (1000)")
    given = parser.parse_args()
    work(given.url, count=given.count)


if __name__ == "__main__":
    main()
