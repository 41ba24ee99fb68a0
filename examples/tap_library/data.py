"""What the library knows, in a SQLite file: branches, rooms, opening hours, authors, books, loans and their events.

Everything comes from a seed, so that two files with the same seed and size hold the same rows. The library has a clock
of its own: it moves with each change, never with time.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

BEGIN = datetime(2024, 1, 2, 8, tzinfo=UTC)
DAYS = 120

TABLES = """
create table branches (id text primary key, name text not null, address text, opened text);
create table rooms (id integer primary key, branch text not null references branches (id), name text not null,
    seats integer);
create table opening_hours (branch text references branches (id), weekday integer, opens text, closes text,
    primary key (branch, weekday));
create table holidays (id text primary key, branch text, day text not null, reason text not null);
create table closings (id text primary key, branch text references branches (id), day text not null,
    reason text not null);
create table authors (id integer primary key, name text not null, born integer, died integer);
create table books (isbn text primary key, title text not null, author integer not null references authors (id),
    year integer, price real, languages text not null, summary text, updated_at text not null);
create table loans (id integer primary key, branch text not null references branches (id),
    isbn text not null references books (isbn),
    member integer not null, lent_at text not null, due_on text not null, returned_at text, updated_at text not null);
create table loan_events (id integer primary key, loan integer not null references loans (id), kind text, at text);
create table last_changes (name text primary key, at text not null);
create index books_by_change on books (updated_at, isbn);
create index loans_by_change on loans (branch, updated_at, id);
create index events_by_loan on loan_events (loan);
create view overdue as select id as loan, branch, isbn, member, due_on from loans
    where returned_at is null and due_on < (select substr(max(at), 1, 10) from last_changes) order by id;
"""
NAMES = ("branches", "rooms", "opening_hours", "holidays", "closings", "authors", "books", "loans")
_PLACES = ("Central", "Harbour", "Hill", "Mill", "Oak Street", "Station", "University", "West")
_ROOMS = ("Reading room", "Café", "Children", "Maps", "Music", "Attic")
_FIRST, _LAST = ("Ana", "Bo", "Cem", "Dee", "Eli", "Zoë"), ("Ito", "Novák", "Okafor", "Silva", "Weiß", "O'Neil")
_WORDS = (
    "night",
    "sea",
    "garden",
    "winter",
    "a",
    "lost",
    "the",
    "letters",
    "of",
    "Łódź",
    "glass",
    "“blue”",
    "50%",
    "&",
)
_HOLIDAYS = ("New Year", "Easter Monday", "Labour Day")


@dataclass(frozen=True)
class Size:
    """How much there is: rows of a table, except `events`, which is for each loan, at most."""

    branches: int = 6
    authors: int = 250
    books: int = 1200
    loans: int = 1500
    events: int = 4


def text(at: datetime) -> str:
    """A time as the library writes it: seconds, UTC, `Z`."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


class Library:
    """A library in a file, to be changed while a server reads it.

    Args:
        path: the SQLite file; `make` writes it.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @classmethod
    def make(cls, path: Path | str, size: Size | None = None, seed: int = 1) -> Library:
        """Write a new library; what was in the file before is gone, also for a server that has it open."""
        library = cls(path)
        with closing(sqlite3.connect(path)) as connection, connection:
            found = connection.execute(
                "select type, name from sqlite_master where type in ('table', 'view')"
            ).fetchall()
            connection.executescript("".join(f"drop {kind} {name};" for kind, name in found) + TABLES)
            for table, rows in _Rows(size or Size(), random.Random(seed)).tables().items():
                marks = ",".join("?" * len(rows[0]))
                connection.executemany(f"insert into {table} values ({marks})", rows)
        return library

    def rows(self, table: str, where: str = "1", *values: Any) -> list[dict[str, Any]]:
        """The rows of a table, as dicts, in the order of their keys. `where` is SQL of your own, for tests."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.row_factory = sqlite3.Row
            return [
                dict(row) for row in connection.execute(f"select * from {table} where {where} order by 1, 2", values)
            ]

    def now(self) -> datetime:
        """The library's clock: when something changed last."""
        with closing(sqlite3.connect(self.path)) as connection:
            return datetime.fromisoformat(connection.execute("select max(at) from last_changes").fetchone()[0])

    def change(self, table: str, count: int = 1) -> list[Any]:
        """Change `count` rows of a table, a minute later each; the keys of those that changed.

        Books get another price and summary, loans are brought back or lent again, a holiday and a closing are added,
        branches get another address and their rooms more seats, opening hours are longer, authors get another name.
        """
        with closing(sqlite3.connect(self.path)) as connection, connection:
            key = _KEYS.get(table, "id")
            keys = [row[0] for row in connection.execute(f"select {key} from {table} order by 1")]
            draw = random.Random(text(self.now()))
            chosen = draw.sample(keys, min(count, len(keys)))
            for step, one in enumerate(chosen, 1):
                at = text(self.now() + timedelta(minutes=step))
                for statement in _CHANGES[table]:
                    connection.execute(statement, {"key": one, "at": at, "number": draw.randrange(1000, 9999)})
                connection.execute("insert or replace into last_changes values (?, ?)", (table, at))
        return chosen

    def remove(self, table: str, key: Any) -> None:
        """Take a row away."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(f"delete from {table} where {_KEYS.get(table, 'id')} = ?", (key,))
            at = text(self.now() + timedelta(minutes=1))
            connection.execute("insert or replace into last_changes values (?, ?)", (table, at))


_KEYS = {"books": "isbn", "opening_hours": "rowid"}  # of all others: id
_CHANGES = {
    "branches": (
        "update branches set address = :number || ' New Road' where id = :key",
        "update rooms set seats = seats + 1 where branch = :key",
    ),
    "rooms": ("update rooms set seats = seats + 1 where id = :key",),
    "opening_hours": ("update opening_hours set closes = printf('21:%02d', :number % 60) where rowid = :key",),
    "holidays": ("insert into holidays values ('holiday-' || :number, null, substr(:at, 1, 10), 'Bridge day')",),
    "closings": (
        "insert into closings select 'closing-' || :number, branch, substr(:at, 1, 10), 'Repairs' from closings"
        " where id = :key",
    ),
    "authors": ("update authors set name = name || ' II' where id = :key",),
    "books": (
        "update books set price = :number / 100.0, summary = 'New: ' || :number, updated_at = :at where isbn = :key",
    ),
    "loans": (
        "update loans set updated_at = :at, returned_at = case when returned_at is null then :at end where id = :key",
        "insert into loan_events select max(id) + 1, :key, 'changed', :at from loan_events",
    ),
}


class _Rows:
    """Draws the rows of all tables."""

    def __init__(self, size: Size, draw: random.Random) -> None:
        self.size, self.draw = size, draw

    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of each table, by its name; a table without rows is left out."""
        names = [f"{place}" for place in _PLACES[: self.size.branches]]
        branches = [name.lower().replace(" ", "-") for name in names]
        tables: dict[str, list[tuple[Any, ...]]] = {
            "branches": [
                (key, name, None if number == 1 else f"{number + 1} {name} Road", f"19{60 + number}-05-01")
                for number, (key, name) in enumerate(zip(branches, names, strict=True))
            ],
            "rooms": [
                (10 * n + k, branch, room, None if room == "Attic" else 10 * k + n)
                for n, branch in enumerate(branches, 1)
                for k, room in enumerate(_ROOMS[: 2 + n % 4])
            ],
            "opening_hours": [
                (branch, day, "09:00", "13:00" if day == 6 else "18:30") for branch in branches for day in range(1, 7)
            ],
            "holidays": [(f"holiday-{n}", None, f"2024-0{n}-01", name) for n, name in enumerate(_HOLIDAYS, 1)],
            "closings": [
                (f"closing-{n}", branch, f"2024-03-{n:02}", "Stocktaking") for n, branch in enumerate(branches, 1)
            ],
            "authors": [self._author(number) for number in range(1, self.size.authors + 1)],
            "books": [self._book(number) for number in range(1, self.size.books + 1)],
        }
        tables["loans"] = [self._loan(n, branches, tables["books"]) for n in range(1, self.size.loans + 1)]
        tables["loan_events"] = list(self._events(tables["loans"]))
        end = text(BEGIN + timedelta(days=DAYS))
        tables["last_changes"] = [(name, end) for name in NAMES]
        return {name: rows for name, rows in tables.items() if rows}

    def _author(self, number: int) -> tuple[Any, ...]:
        born = self.draw.randrange(1850, 1990)
        name = f"{self.draw.choice(_FIRST)} {self.draw.choice(_LAST)}"
        return number, name, born if self._chance(0.9) else None, born + 70 if born < 1930 else None

    def _book(self, number: int) -> tuple[Any, ...]:
        return (
            f"978-{number:06}",
            " ".join(self.draw.choices(_WORDS, k=3)).title(),
            self.draw.randrange(1, self.size.authors + 1),
            self.draw.randrange(1900, 2024),
            self.draw.randrange(500, 6000) / 100 if self._chance(0.95) else None,
            json.dumps(self.draw.sample(["en", "de", "pl", "pt"], self.draw.randrange(1, 4))),
            " ".join(self.draw.choices(_WORDS, k=60)) if self._chance(0.9) else None,
            self._time(),
        )

    def _loan(self, number: int, branches: list[str], books: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        lent = BEGIN + timedelta(minutes=self.draw.randrange(DAYS * 1440 - 40 * 1440))
        back = text(lent + timedelta(hours=self.draw.randrange(1, 900))) if self._chance(0.8) else None
        due: date = (lent + timedelta(days=28)).date()
        book, member = self.draw.choice(books)[0], self.draw.randrange(1, 400)
        return number, self.draw.choice(branches), book, member, text(lent), due.isoformat(), back, back or text(lent)

    def _events(self, loans: Iterable[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
        number = 0
        for loan in loans:
            for kind in ("lent", "reminded", "extended", "returned")[: self.draw.randrange(self.size.events + 1)]:
                number += 1
                yield number, loan[0], kind, loan[4]

    def _time(self) -> str:
        # Whole hours: books that share a time are common.
        return text(BEGIN + timedelta(hours=self.draw.randrange(DAYS * 24)))

    def _chance(self, share: float) -> bool:
        return self.draw.random() < share
