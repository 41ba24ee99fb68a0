"""Tables that were exported of the shop's lake: where they lie, and what others read in them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
from pyiceberg.catalog.sql import SqlCatalog

FORMATS = ("delta", "parquet", "iceberg")
STREAMS = ("orders", "log", "countries")
KEYS = {"orders": "id", "log": "_sdc_source_file", "countries": "code"}

ICEBERG = Path("/tmp/burler-contract-c550d9f/iceberg")
"""Iceberg's metadata names files by their absolute paths, so its tables are made here, and are brought here again."""


@contextlib.contextmanager
def place(form: str) -> Iterator[Path]:
    """An empty folder for tables. That of Iceberg is the same each time, and one at a time has it."""
    if form != "iceberg":
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / form
        return
    path = "/tmp/burler-contract-c550d9f.lock"
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o644))
    with open(path) as lock:  # to read is enough for a lock, whoever has made the file
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(ICEBERG.parent, ignore_errors=True)
        ICEBERG.parent.mkdir()
        try:
            yield ICEBERG
        finally:
            shutil.rmtree(ICEBERG.parent)


def rows(form: str, out: Path, stream: str) -> list[dict[str, Any]]:
    """The rows of a table as another program than burler reads them: deltalake, DuckDB, pyiceberg."""
    if form == "delta":
        found = deltalake.DeltaTable(str(out / "tap-shop" / stream)).to_pyarrow_table().to_pylist()
    elif form == "parquet":
        table = out / "tap-shop" / stream
        latest = json.loads((table / "_latest.json").read_text())
        files = [str(table / file["path"]) for file in latest["files"]]
        query = duckdb.sql("select * from read_parquet($files, union_by_name = true)", params={"files": files})
        found = query.to_arrow_table().to_pylist()
    else:
        with SqlCatalog("burler", uri=f"sqlite:///{out}/catalog.db") as catalog:
            found = catalog.load_table(f"tap-shop.{stream}").scan().to_arrow().to_pylist()
    return sorted((plain(row) for row in found), key=lambda row: json.dumps([row.get("at"), row[KEYS[stream]]]))


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Values as JSON has them: times and decimals as text."""

    def value(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: value(item) for key, item in node.items()}
        if isinstance(node, list):
            return [value(item) for item in node]
        if isinstance(node, Decimal):
            return str(node)
        return node.isoformat() if hasattr(node, "isoformat") else node

    return {key: value(node) for key, node in row.items()}


def versions(form: str, out: Path, stream: str) -> int:
    """How often a table was published."""
    table = out / "tap-shop" / stream
    if form == "delta":
        return deltalake.DeltaTable(str(table)).version()
    if form == "parquet":
        return max(int(path.stem) for path in (table / "_versions").iterdir() if path.stem.isdigit())
    with SqlCatalog("burler", uri=f"sqlite:///{out}/catalog.db") as catalog:
        return len(catalog.load_table(f"tap-shop.{stream}").metadata.snapshots)
