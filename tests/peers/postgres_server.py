"""A database of PostgreSQL's, for programs that others wrote."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from support import postgres


@dataclass(frozen=True)
class Database:
    """A database of its own in a server: that of a whole run of tests, or one that ends with a program."""

    server: postgres.Server
    name: str

    @property
    def settings(self) -> dict[str, Any]:
        """How to connect, as configs of taps and targets say it. A file with it is called ``config*.json``."""
        where = {"host": "127.0.0.1", "port": self.server.port, "database": self.name}
        return {**where, "user": "burler", "password": self.server.password}

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return self.server.ask(statement, self.name)

    def execute(self, *statements: str) -> None:
        """Statements that give nothing."""
        self.server.execute(*statements, database=self.name)


@contextlib.contextmanager
def database(*, shared: bool = True) -> Iterator[Database]:
    """One, for the block.

    Raises:
        postgres.Missing: PostgreSQL's programs are not here.
    """
    with (postgres.shared if shared else postgres.running)() as server:
        yield Database(server, server.new_database())
