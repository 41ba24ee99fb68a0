"""Values that an author gives to a statement of his own: bound, never written into it."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Mapping, Sequence
from typing import Any

from burler.errors import SqlError

_CAST_NAME = re.compile(r"(?<![:\w\\])(:[A-Za-z_]\w*)::")
"""``:name::int``: SQLAlchemy sees no name where two colons follow."""


def with_settings(
    sql: str, types: Mapping[str, str] | None, nulls: frozenset[str] = frozenset()
) -> tuple[str, list[str]]:
    """An author's statement with ``:name`` in it, as a statement that PostgreSQL can be asked.

    Args:
        types: of each parameter; None: parameters become ``$1``, ``$2`` in the order of the names that is given back,
            so that PostgreSQL can say of which types they are.
        nulls: parameters that are null: a setting can't be.

    Returns:
        The statement, and the names in the order of their first place.
    """
    import sqlalchemy as sa
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.dialects.postgresql.base import PGCompiler

    sql = _CAST_NAME.sub(r"\1 ::", sql)
    names: list[str] = []

    class Compiler(PGCompiler):
        def bindparam_string(self, name: str, *_more: Any, **_said: Any) -> str:
            if name not in names:
                names.append(name)
            at = names.index(name)
            if types is None:
                return f"${at + 1}"
            value = "NULL" if name in nulls else f"current_setting('burler.p{at}')"
            return f"CAST({value} AS {types[name]})"

    dialect: Any = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]
    dialect.statement_compiler = Compiler
    return str(sa.text(sql).compile(dialect=dialect)), names


def check_names(names: Sequence[str], values: Mapping[str, Any]) -> None:
    """Refuse parameters without a value, and values without a parameter.

    Raises:
        SqlError: see there.
    """
    missing = [name for name in names if name not in values]
    if missing:
        raise SqlError(f"the query asks for ':{missing[0]}', and no such value is given: query(sql, {{...}}).")
    extra = [name for name in values if name not in names]
    if extra:
        raise SqlError(f"the query is given '{extra[0]}', but there is no ':{extra[0]}' in it.")


def as_text(name: str, value: Any) -> str:
    """A parameter's value as PostgreSQL reads it.

    Raises:
        SqlError: a value of a type that has no such text.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, int | float | decimal.Decimal | str) or type(value).__name__ == "UUID":
        return str(value)
    raise SqlError(
        f"the value of ':{name}' is of type {type(value).__name__}, which has no form in the query. For a list: "
        f"= any(cast(:{name} as int[])) with the text '{{1,2}}'."
    )
