"""Versions of a Delta table: made by deltalake's commits, each with its numbers, on top of no other version than known.

``max_commit_retries=0`` everywhere: a commit's rows were computed from the table as it was, so
one that meets somebody else's is refused and never laid on top.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from burler.extras import require
from burler.localfile import create_file
from burler.spark.formats.base import Change
from burler.spark.formats.footers import DataFile

DATA = "burler.data"
"""Key in a commit's metadata: the data folder that it made count."""
_NUMBERS = "burler.numbers"
"""The same for the names of its numbers: the log gives a number by name, and no list of names."""
_NEEDED_FOR = "burler export"


class AlreadyThere(Exception):
    """The version that was to be made exists: somebody else's."""


def open_delta(path: Path, version: int | None = None) -> Any:
    """The DeltaTable at ``path``; None where there is none."""
    deltalake = require("deltalake", extra="spark", needed_for=_NEEDED_FOR)
    if not deltalake.DeltaTable.is_deltatable(str(path)):
        return None
    return deltalake.DeltaTable(str(path), version=version)


def table_files(table: Any) -> list[str]:
    """Paths of a DeltaTable's files as the file system (or Hadoop) knows them, in the order of ``actions_of``."""
    root = table_folder(table)
    paths = actions_of(table).column("path").to_pylist()
    if "://" in root:
        return [path if "://" in path else f"{root}/{path}" for path in paths]
    # The log holds URLs: a folder that delta-rs itself has percent-encoded is encoded twice there.
    return [path if "://" in path else f"{root}/{unquote(path)}" for path in paths]


def table_folder(table: Any) -> str:
    """A DeltaTable's folder as the file system (or Hadoop) knows it, without a slash at the end."""
    uri = str(table.table_uri).rstrip("/")
    return unquote(uri.removeprefix("file://")) if uri.startswith("file:///") else uri


def actions_of(table: Any) -> Any:
    """One row a file as a pyarrow Table: ``path``, ``size_bytes``, ``partition.<name>``, ..."""
    arrow = require("pyarrow", extra="spark", needed_for=_NEEDED_FOR)
    return arrow.table(table.get_add_actions(flatten=True))


def schema_of(table: Any) -> dict[str, Any]:
    """A DeltaTable's columns in Spark's JSON form."""
    schema: dict[str, Any] = json.loads(table.schema().to_json())
    return schema


def numbers_of(table: Any) -> dict[str, int]:
    """The numbers that the last publication stored; none where the log does not go back to it."""
    for limit in (10, None):  # somebody may have optimised or vacuumed since; a long log is read only then
        for entry in table.history(limit):
            if _NUMBERS in entry:
                stored = {name: table.transaction_version(name) for name in json.loads(entry[_NUMBERS])}
                return {name: int(number) for name, number in stored.items() if number is not None}
    return {}


def size_of(table: Any) -> int:
    """Bytes of a DeltaTable's files."""
    return sum(actions_of(table).column("size_bytes").to_pylist())


def properties(change: Change, folder: str) -> Any:
    """What each of our commits carries: the numbers, and the data folder."""
    deltalake = require("deltalake", extra="spark", needed_for=_NEEDED_FOR)
    actions = require("deltalake.transaction", extra="spark", needed_for=_NEEDED_FOR)
    return deltalake.CommitProperties(
        custom_metadata=_metadata(change, folder),
        max_commit_retries=0,
        app_transactions=[actions.Transaction(name, number) for name, number in change.numbers.items()],
    )


def _metadata(change: Change, folder: str) -> dict[str, str]:
    return {**change.metadata, DATA: folder, _NUMBERS: json.dumps(sorted(change.numbers))}


def create(path: Path, files: Sequence[DataFile], change: Change, folder: str, description: str) -> None:
    """Version 0."""
    deltalake = require("deltalake", extra="spark", needed_for=_NEEDED_FOR)
    actions = require("deltalake.transaction", extra="spark", needed_for=_NEEDED_FOR)
    actions.create_table_with_add_actions(
        str(path),
        deltalake.Schema.from_json(json.dumps(change.schema)),
        _adds(files),
        partition_by=list(change.partition_by),
        description=description,
        commit_properties=properties(change, folder),
    )


def write(table: Any, files: Sequence[DataFile], change: Change, folder: str, *, append: bool) -> None:
    """The next version: ``files`` beside those that are there, or instead of them."""
    deltalake = require("deltalake", extra="spark", needed_for=_NEEDED_FOR)
    table.create_write_transaction(
        _adds(files),
        "append" if append else "overwrite",
        deltalake.Schema.from_json(json.dumps(change.schema)),
        partition_by=table.metadata().partition_columns,
        commit_properties=properties(change, folder),
    )


def add_columns(table: Any, schema: Mapping[str, Any]) -> Any:
    """New columns for an append: a version of its own, in which they are null in every row; the table as it then is."""
    deltalake = require("deltalake", extra="spark", needed_for=_NEEDED_FOR)
    known = {one["name"] for one in schema_of(table)["fields"]}
    new = [one for one in schema["fields"] if one["name"] not in known]
    if not new:
        return table
    version = int(table.version()) + 1
    quick = deltalake.CommitProperties(max_commit_retries=0)
    table.alter.add_columns([deltalake.Field.from_json(json.dumps(one)) for one in new], commit_properties=quick)
    return deltalake.DeltaTable(table.table_uri, version=version)


def replace_layout(table: Any, files: Sequence[DataFile], change: Change, folder: str) -> None:
    """The next version, with other partition columns: delta-rs can't change those on top of a known version, so this
    one commit is written here, by the same rule (its file must not be there yet).

    Raises:
        AlreadyThere: the version exists.
    """
    path, version, now = Path(table_folder(table)), int(table.version()) + 1, _now_ms()
    info = {"timestamp": now, "operation": "REPLACE TABLE", "operationParameters": {}, "engineInfo": "burler"}
    about = table.metadata()
    meta = {
        "id": str(about.id),
        "name": about.name,
        "description": about.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(change.schema),
        "partitionColumns": list(change.partition_by),
        "configuration": about.configuration,
        "createdTime": about.created_time,
    }
    lines: list[dict[str, Any]] = [{"commitInfo": {**info, **_metadata(change, folder)}}, {"metaData": meta}]
    for old in actions_of(table).column("path").to_pylist():
        lines.append({"remove": {"path": old, "deletionTimestamp": now, "dataChange": True}})
    for file in files:
        add = {"path": file.path, "size": file.size, "modificationTime": file.modified_ms, "dataChange": True}
        lines.append({"add": {**add, "partitionValues": _partition(file), "stats": json.dumps(file.stats)}})
    lines += [{"txn": {"appId": name, "version": number}} for name, number in change.numbers.items()]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    commit = path / "_delta_log" / f"{version:020d}.json"
    try:
        create_file(commit, text.encode())
    except FileExistsError:
        raise AlreadyThere(commit.name) from None


def _now_ms() -> int:
    return int(time.time() * 1000)


def _adds(files: Sequence[DataFile]) -> list[Any]:
    actions = require("deltalake.transaction", extra="spark", needed_for=_NEEDED_FOR)
    return [
        actions.AddAction(file.path, file.size, _partition(file), file.modified_ms, True, json.dumps(file.stats))
        for file in files
    ]


def _partition(file: DataFile) -> dict[str, str | None]:
    return {name: partition_text(value) for name, value in file.partition.items()}


def partition_text(value: Any) -> str | None:
    """A partition value as the Delta protocol spells it; times in UTC."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "utcoffset"):
        return str(value.strftime("%Y-%m-%d %H:%M:%S.%f")).rjust(26, "0")
    return f"{value:f}" if hasattr(value, "as_tuple") else str(value)
