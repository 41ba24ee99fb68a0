"""Makes the bookshop's database, and changes it: ``python -m examples.tap_bookshop.shop make`` (or ``change``)."""

import argparse
import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from typing import Any

import sqlalchemy as sa

DEFAULT_URL = "sqlite:///bookshop.db"
FIRST_DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_LOT = 1000

metadata = sa.MetaData()
authors = sa.Table(
    "authors",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(80), nullable=False),
    sa.Column("born", sa.Date),
)
books = sa.Table(
    "books",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("author_id", sa.Integer, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("price", sa.Numeric(8, 2)),
    sa.Column("in_print", sa.Boolean, nullable=False),
    sa.Column("details", sa.JSON),
    sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False, index=True),
)
order_lines = sa.Table(
    "order_lines",
    metadata,
    sa.Column("order_id", sa.Integer, primary_key=True),
    sa.Column("line", sa.Integer, primary_key=True),
    sa.Column("book_id", sa.Integer, nullable=False),
    sa.Column("amount", sa.Integer, nullable=False),
    sa.Column("ordered_on", sa.Date, nullable=False),
)
_VIEW = "create view bestsellers as select book_id, sum(amount) as copies from order_lines group by book_id"


def _authors(count: int) -> Iterator[dict[str, Any]]:
    for i in range(1, count + 1):
        born = dt.date(1800, 1, 1) + dt.timedelta(days=97 * i)
        yield {"id": i, "name": f"Author No. {i}", "born": born if i % 5 else None}


def _books(first: int, last: int, count_authors: int, moment: dt.datetime) -> Iterator[dict[str, Any]]:
    for i in range(first, last + 1):
        yield {
            "id": i,
            "author_id": i % count_authors + 1,
            "title": f'Book "{i}" – a café story',
            "price": Decimal(i % 4000) / 100 if i % 9 else None,
            "in_print": i % 3 > 0,
            "details": {"pages": 100 + i % 400, "tags": ["new", "blue"][: i % 3]},
            "updated_at": moment + dt.timedelta(seconds=i, microseconds=i % 7),
        }


def _order_lines(orders: int, count_books: int) -> Iterator[dict[str, Any]]:
    for order in range(1, orders + 1):
        for line in range(1, order % 4 + 2):
            day = FIRST_DAY.date() + dt.timedelta(days=order % 300)
            book = (order * 7 + line) % count_books + 1
            yield {"order_id": order, "line": line, "book_id": book, "amount": order % 3 + 1, "ordered_on": day}


def make(url: str, *, count_books: int = 500, orders: int = 1000) -> None:
    """Make the tables anew and fill them."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("drop view if exists bestsellers"))
        metadata.drop_all(connection)
        metadata.create_all(connection)
        connection.execute(sa.text(_VIEW))
        count_authors = max(2, count_books // 10)
        _insert(connection, authors, _authors(count_authors))
        _insert(connection, books, _books(1, count_books, count_authors, FIRST_DAY))
        _insert(connection, order_lines, _order_lines(orders, count_books))
    engine.dispose()


def change(url: str) -> None:
    """What happens in a day: two new books, one that changes its price, an author and an order that go."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        last = connection.scalar(sa.select(sa.func.max(books.c.id)))
        newest = connection.scalar(sa.select(sa.func.max(books.c.updated_at))).replace(tzinfo=dt.UTC)
        later = newest + dt.timedelta(days=1)
        _insert(connection, books, _books(last + 1, last + 2, 2, later - dt.timedelta(seconds=last)))
        connection.execute(books.update().where(books.c.id == 1).values(price=Decimal("99.95"), updated_at=later))
        connection.execute(
            authors.delete().where(authors.c.id == sa.select(sa.func.max(authors.c.id)).scalar_subquery())
        )
        connection.execute(order_lines.delete().where(order_lines.c.order_id == 1))
    engine.dispose()


def _insert(connection: sa.Connection, table: sa.Table, rows: Iterator[dict[str, Any]]) -> None:
    while lot := list(islice(rows, _LOT)):
        connection.execute(table.insert(), lot)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("make", "change"))
    parser.add_argument("--url", default=DEFAULT_URL, help=f"of the database ({DEFAULT_URL})")
    parser.add_argument("--books", type=int, default=500)
    parser.add_argument("--orders", type=int, default=1000)
    given = parser.parse_args()
    if given.what == "make":
        make(given.url, count_books=given.books, orders=given.orders)
    else:
        change(given.url)


if __name__ == "__main__":
    main()
