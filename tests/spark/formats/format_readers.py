"""Tables as other programs read them: deltalake, DuckDB by the pointer, pyiceberg, psycopg."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Rows = list[tuple[int, str]]


def reader(format: Any) -> Callable[[], Rows]:
    """What gives (id, text) of all rows, as they are at each call."""
    if format.ask:
        return lambda: format.ask('select id, text from "tap-x".things')
    return {"delta": _delta, "parquet": _parquet, "iceberg": _iceberg}[format.kind](format)


def _delta(format: Any) -> Callable[[], Rows]:
    import deltalake

    return lambda: _rows(deltalake.DeltaTable(format.place).to_pyarrow_table())


def _parquet(format: Any) -> Callable[[], Rows]:
    import duckdb

    def read() -> Rows:
        latest = json.loads((Path(format.place) / "_latest.json").read_text())
        files = [str(Path(format.place) / one["path"]) for one in latest["files"]]
        with duckdb.connect() as connection:
            return connection.execute("select id, text from read_parquet(?, union_by_name=true)", [files]).fetchall()

    return read


def _iceberg(format: Any) -> Callable[[], Rows]:
    from pyiceberg.catalog.sql import SqlCatalog

    def read() -> Rows:
        catalog = SqlCatalog("burler", uri=f"sqlite:///{format.folder}/catalog.db", warehouse=f"file://{format.folder}")
        try:
            return _rows(catalog.load_table(("tap-x", "things")).scan().to_arrow())
        finally:
            catalog.close()

    return read


def _rows(table: Any) -> Rows:
    return list(zip(table.column("id").to_pylist(), table.column("text").to_pylist(), strict=True))
