"""A Delta table made of Parquet files that Spark wrote: published by one atomic commit, read without any JAR.

Source: Spark facts E, specs 11.30. Nothing is ever overwritten: each export writes a data folder of its own
(``data-<export id>``), and the commit makes exactly its files count. Until then, and after a kill, readers see the
old version. A note ``_pending-<export id>.json`` beside it lets a later export remove what a killed one left.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from burler.errors import ExportError
from burler.extras import require
from burler.spark.parquet import DataFile

LEFTOVER_HOURS = 24
"""How long the data of an export that may still run elsewhere is left alone."""

_MADE_BY = "made by burler export from"
_NEEDED_FOR = "burler export"


@dataclass(slots=True)
class DeltaState:
    """A table as it was when an export began; a commit succeeds only if it still is.

    ``schema`` is Delta's (and Spark's) JSON form of the columns and ``table`` the open DeltaTable; both are None where
    there is no table yet.
    """

    path: Path
    source: str
    schema: dict[str, Any] | None = None
    table: Any = field(default=None, repr=False)

    @property
    def version(self) -> int | None:
        """The table's version, None where there is no table."""
        return None if self.table is None else int(self.table.version())

    def transaction(self, app_id: str) -> int | None:
        """What the last commit under this app id said; None if there was none."""
        return None if self.table is None else self.table.transaction_version(app_id)

    def files(self) -> list[str]:
        """Absolute paths of the files that make up the table."""
        return [] if self.table is None else table_files(self.table)


def open_state(path: Path, source: str) -> DeltaState:
    """The state of the table at ``path`` that is made from the stream ``source`` (``tap/stream``).

    Raises:
        ExportError: the path can't hold a table, or holds one that this stream's export did not make.
        MissingExtra: deltalake is not installed.
    """
    if "%" in str(path):
        # delta-rs 1.6 decodes the path once too often and would write somewhere else.
        raise ExportError(f"tables can't be written to {path}: deltalake takes no '%' in a path. Choose another OUT")
    deltalake = require("deltalake", extra="spark", needed_for=_NEEDED_FOR)
    if not deltalake.DeltaTable.is_deltatable(str(path)):
        return DeltaState(path, source)
    table = deltalake.DeltaTable(str(path))
    if table.metadata().description != f"{_MADE_BY} {source}":
        raise ExportError(
            f"{path} holds a table that was not {_MADE_BY} {source}; it stays untouched. "
            "Choose another OUT, or move that table away"
        )
    return DeltaState(path, source, json.loads(table.schema().to_json()), table)


def table_files(table: Any) -> list[str]:
    """Paths of a DeltaTable's files as the file system (or Hadoop) knows them; delta-rs percent-encodes local ones."""
    return [uri if "://" in uri else unquote(uri) for uri in table.file_uris()]


def commit(
    state: DeltaState,
    files: Sequence[DataFile],
    schema: Mapping[str, Any],
    *,
    append: bool,
    transactions: Mapping[str, int],
    metadata: Mapping[str, str],
) -> int:
    """Publish: make ``files`` the table's content, or add them to it, in one atomic version; the new version.

    Args:
        files: their paths are relative to the table. schema: Delta's JSON form of all columns.
        append: keep the files that are there; else they are removed in the same commit.
        transactions: app ids and their numbers, stored in the same commit (exactly-once).

    Raises:
        ExportError: the table has changed since ``state`` was read (another export), or can't be written.
    """
    deltalake = require("deltalake", extra="spark", needed_for=_NEEDED_FOR)
    actions = require("deltalake.transaction", extra="spark", needed_for=_NEEDED_FOR)
    adds = [
        actions.AddAction(file.path, file.size, {}, file.modified_ms, True, json.dumps(file.stats)) for file in files
    ]
    columns = deltalake.Schema.from_json(json.dumps(schema))
    properties = deltalake.CommitProperties(
        custom_metadata=dict(metadata),
        # No retry on top of somebody else's commit: this one's rows were computed from the state as it was.
        max_commit_retries=0,
        app_transactions=[actions.Transaction(app_id, number) for app_id, number in transactions.items()],
    )
    try:
        if state.table is None:
            description = f"{_MADE_BY} {state.source}"
            actions.create_table_with_add_actions(
                str(state.path), columns, adds, description=description, commit_properties=properties
            )
            return 0
        if append and schema != state.schema:
            _add_columns(state, schema)
        state.table.create_write_transaction(
            adds, "append" if append else "overwrite", columns, commit_properties=properties
        )
    except (deltalake.exceptions.DeltaError, OSError) as error:
        raise ExportError(
            f"{state.path}: the commit was refused ({error}): another export of this table was faster, or the folder "
            "can't be written.\nThe table is as that other export left it. Run the export again"
        ) from None
    return int(deltalake.DeltaTable(str(state.path)).version())


def _add_columns(state: DeltaState, schema: Mapping[str, Any]) -> None:
    """New columns for an append: a version of its own, in which they are null in every row."""
    deltalake = require("deltalake", extra="spark", needed_for=_NEEDED_FOR)
    known = {one["name"] for one in (state.schema or {}).get("fields", [])}
    new = [one for one in schema["fields"] if one["name"] not in known]
    state.table.alter.add_columns([deltalake.Field.from_json(json.dumps(one)) for one in new])
    state.table = deltalake.DeltaTable(str(state.path), version=state.table.version())


@contextlib.contextmanager
def data_folder(table: Path) -> Iterator[Path]:
    """A fresh folder inside the table for one export's files; removed again if the block fails.

    Its name starts with ``data-``; staged input may go to ``<folder>.staging`` beside it.
    """
    export_id = secrets.token_hex(8)
    folder, note = table / f"data-{export_id}", table / f"_pending-{export_id}.json"
    table.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid()}), encoding="utf-8")
    try:
        yield folder
    except BaseException:
        # An error after the commit itself (a checkpoint that failed, Ctrl-C) must not cost its files.
        if not _holds(table, folder):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(staging_of(folder), ignore_errors=True)
        note.unlink(missing_ok=True)


def staging_of(folder: Path) -> Path:
    """Where the exact path puts its rows; the leading ``_`` hides it from readers of the table's folder."""
    return folder.with_name("_staging-" + folder.name.removeprefix("data-"))


def _holds(table: Path, folder: Path) -> bool:
    """Whether the table's current version refers to files in ``folder``; also True when that can't be known."""
    deltalake = require("deltalake", extra="spark", needed_for=_NEEDED_FOR)
    try:
        if not deltalake.DeltaTable.is_deltatable(str(table)):
            return False
        files = table_files(deltalake.DeltaTable(str(table)))
    except Exception:
        return True
    return any(Path(file).parent == folder for file in files)


def remove_leftovers(state: DeltaState) -> None:
    """Remove what killed exports left: data folders that a note says are pending and no version ever had.

    A folder whose commit happened (the kill came between commit and clean-up) only loses its note.
    """
    notes = list(state.path.glob("_pending-*.json"))
    if not notes:
        return
    published = _published(state)
    for note in notes:
        export_id = note.stem.removeprefix("_pending-")
        if not _is_over(note):
            continue
        folder = state.path / f"data-{export_id}"
        if folder.name not in published:
            shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(staging_of(folder), ignore_errors=True)
        note.unlink(missing_ok=True)


def _published(state: DeltaState) -> set[str]:
    """Names of the data folders that any version in the log refers to, the current one at least."""
    folders = {Path(file).parent.name for file in state.files()}
    if state.table is not None:
        folders |= {str(entry["burler.data"]) for entry in state.table.history() if "burler.data" in entry}
    return folders


def _is_over(note: Path) -> bool:
    """Whether the export that wrote the note has ended: its process is gone, or it is older than a day."""
    try:
        age_hours = (time.time() - note.stat().st_mtime) / 3600
        owner = json.loads(note.read_text(encoding="utf-8"))
        here, pid = owner["host"] == socket.gethostname(), int(owner["pid"])
    except FileNotFoundError:
        return False  # its export has just ended
    except (OSError, ValueError, KeyError, TypeError):
        here, pid = False, 0  # killed while it wrote the note
    if here and pid != os.getpid():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
    return age_hours > LEFTOVER_HOURS
