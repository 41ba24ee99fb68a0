"""What the tap's functions reach the database by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import burler
from burler.singer.catalog import Catalog

from .log import Log
from .slot import Source

ENTRIES, ACCOUNTS = "public.entries", "public.accounts"
_ADDED = {
    "_sdc_deleted_at": {"type": ["null", "string"], "format": "date-time"},
    "_sdc_lsn": {"type": ["null", "integer"]},
}

_UNLOGGED = {"inclusion": "unsupported", "unsupported-description": "PostgreSQL does not log generated columns"}


class Ledger:
    """The database: ``log`` for changes of entries, ``pages`` and ``notifications`` for accounts."""

    def __init__(self, url: str, *, slot: str, publication: str) -> None:
        self._database = burler.sql.Database(url)
        plain = self._database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._source = Source(plain, slot=slot, publication=publication, table=ENTRIES)
        self._columns: tuple[frozenset[str], tuple[str, ...]] | None = None
        self.log = Log(self._source, self._entries)

    def discover(self) -> Catalog:
        """Both tables; entries with what the log says beside its columns. Of a deleted row the key alone is known, so
        all other fields may be missing or null."""
        found = self._database.discover(
            schemas="public", tables=["accounts", "entries"], views=False, replication_keys={ACCOUNTS: "updated_at"}
        )
        made = {}
        for name, entry in found.entries.items():
            short = name.partition(".")[2]
            made[short] = replace(entry, tap_stream_id=short, stream=short)
        if "entries" in made:
            made["entries"] = self._with_log(made["entries"])
        return Catalog(made)

    def _with_log(self, entry: Any) -> Any:
        columns, keys = entry.schema["properties"], entry.key_properties
        self._columns = frozenset(columns), keys
        loose = {name: schema if name in keys else _nullable(schema) for name, schema in columns.items()}
        said = {("properties", name): {"inclusion": "automatic"} for name in _ADDED}
        with self._source.connected() as connection:
            logged = self._source.columns(connection)
        said |= {("properties", name): _UNLOGGED for name in columns if name not in logged}
        return replace(
            entry, schema={**entry.schema, "properties": {**loose, **_ADDED}}, metadata={**entry.metadata, **said}
        )

    def _entries(self) -> tuple[frozenset[str], tuple[str, ...]]:
        """The columns and the key of entries, as they were when the catalog of this run was made."""
        if self._columns is None:
            self.discover()
        return self._columns or (frozenset(), ())

    def pages(self, stream: Any) -> Iterator[Any]:
        """Rows of accounts at or after the bookmark."""
        return self._database.pages(stream, ACCOUNTS)

    def notifications(self, channel: str, stream: Any) -> Iterator[str]:
        """Something whenever somebody rings (NOTIFY), and once at the beginning: nobody rings again for what was."""
        with self._source.connected() as connection:
            connection.execute(f'listen "{channel}"'.encode())
            yield "listening"
            while not stream.stopping:
                for note in connection.notifies(timeout=0.25, stop_after=1):
                    yield note.channel

    def close(self) -> None:
        """Close what is open."""
        self._database.close()


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if kind is None or "null" in kind:
        return schema
    return {**schema, "type": ["null", *([kind] if isinstance(kind, str) else kind)]}
