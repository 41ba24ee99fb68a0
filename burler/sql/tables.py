"""A table as discovery finds it: frozen facts, no connection; and its name, as patterns and errors have it."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Column:
    """A column of a table or view.

    Attributes:
        schema: the JSON Schema of its values; null among the types if it may be null.
        sql_type: its type, as the database spells it.
        naive: its times say no zone; they are read as UTC.
        unsupported: why its values can't be read; empty if they can.
        type: SQLAlchemy's type; None where it knows none.
    """

    name: str
    schema: Mapping[str, Any]
    sql_type: str = ""
    naive: bool = False
    unsupported: str = ""
    type: Any = field(default=None, compare=False, repr=False)

    @property
    def nullable(self) -> bool:
        """Whether a value may be null."""
        types = self.schema.get("type", "null")
        return "null" in ([types] if isinstance(types, str) else types)


@dataclass(frozen=True)
class Table:
    """A table or a view.

    Attributes:
        schema: the schema of the database that it lies in; None for the default one of a database without schemas.
        keys: the columns of its primary key, else of a unique constraint without nulls; empty for views.
    """

    name: str
    schema: str | None
    columns: tuple[Column, ...]
    keys: tuple[str, ...] = ()
    is_view: bool = False
    database: str = ""

    @property
    def stream(self) -> str:
        """The name of its stream: ``schema.table``, or ``table``."""
        return self.name if self.schema is None else f"{self.schema}.{self.name}"

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """Its columns by their names."""
        return {column.name: column for column in self.columns}


def fits(name: str, whole: str, pattern: str) -> bool:
    """Whether a pattern with ``*`` and ``?`` speaks of a table: by its name, or by the ``whole`` one."""
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(whole, pattern)


def some(names: Iterable[Any], most: int = 10) -> str:
    """Names for an error, no more than so many."""
    listed = [f"'{name}'" for name in names]
    return ", ".join(listed[:most]) + (" ..." if len(listed) > most else "")
