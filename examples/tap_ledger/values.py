"""PostgreSQL's values as burler takes them, the same for rows that are selected and for rows of the feed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.adapt import Loader, Transformer
from psycopg.pq import Format
from psycopg.types import TypeInfo
from psycopg.types.string import TextLoader

SESSION = {
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
}
"""Settings of every session, so that a value has one form."""

_AS_PSYCOPG_HAS_THEM = frozenset(("bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "bytea"))
_BASE_TYPES = """
with recursive made_of as (
    select oid as of, oid, typbasetype, typtype, typelem, typcategory, typname from pg_type where oid = any(%s)
    union all
    select m.of, t.oid, t.typbasetype, t.typtype, t.typelem, t.typcategory, t.typname
    from made_of m join pg_type t on t.oid = m.typbasetype where m.typtype = 'd'
)
select of, oid, case typcategory when 'A' then typelem else 0 end, typname from made_of where typtype <> 'd'
"""


class _Moment(Loader):
    """``timestamptz``, and ``timestamp``, which is taken for UTC: as RFC 3339 has them. What is no moment elsewhere
    (``infinity``, years before 1) stays as it is, and burler refuses it by name."""

    def load(self, data: Any) -> str:
        text = bytes(data).decode()
        if text[10:11] != " " or text.endswith("BC"):
            return text
        return f"{text[:10]}T{text[11:].removesuffix('+00')}Z"


class _Json(Loader):
    """JSON with all digits of its numbers."""

    def load(self, data: Any) -> Any:
        return json.loads(bytes(data), parse_float=Decimal)


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Make a connection give values so. Types that are named nowhere here are PostgreSQL's own text."""
    adapters = connection.adapters
    for kind in adapters.types:
        if kind.name not in _AS_PSYCOPG_HAS_THEM:
            adapters.register_loader(kind.oid, TextLoader)
    for name in ("timestamp", "timestamptz"):
        adapters.register_loader(name, _Moment)
    for name in ("json", "jsonb"):
        adapters.register_loader(name, _Json)


class Loaders:
    """What makes a value of the bytes of the feed, by the type of its column.

    Args:
        connection: one that is adapted; domains and arrays are looked up there.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._transformer = Transformer(connection)
        self._known: dict[int, Callable[[bytes], Any]] = {}

    def of(self, type_oids: Iterable[int]) -> list[Callable[[bytes], Any]]:
        """One for each column."""
        wanted = list(type_oids)
        missing = list({oid for oid in wanted if oid not in self._known})
        if missing:
            for oid, base, item, name in self._connection.execute(_BASE_TYPES, (missing,)).fetchall():
                if item and self._connection.adapters.types.get(base) is None:  # an array of a type that was made here
                    TypeInfo(name.removeprefix("_"), item, base).register(self._connection)
                self._known[oid] = self._transformer.get_loader(base, Format.TEXT).load
            for oid in missing:  # a type that was dropped since
                self._known.setdefault(oid, lambda data: data.decode())
        return [self._known[oid] for oid in wanted]
