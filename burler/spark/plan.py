"""What an export has to do for one stream: a pure decision from a lake snapshot and a table's state.

What a table has taken in is told by the numbers that each publication carries:

``burler:<generation>``   the manifest sequence up to which files are in the table
``burler-plan``           a digest of the generation and of all that decides which rows a table has (mode, keys,
                          order): a table of another plan is made anew
``burler-active``         the table version of the stream that is active
``burler-since``          microseconds since 1970: files wholly before that moment were passed over
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from burler.errors import ExportError
from burler.records.columns.types import StructOf
from burler.spark.columns import table_columns
from burler.spark.export_options import ExportOptions
from burler.spark.formats.base import TableState
from burler.spark.formats.checking import check_partitions
from burler.spark.lakefiles import Activation, LakeFile, LakeStream
from burler.spark.plan_columns import (
    as_the_table_has_them,
    grown_columns,
    key_columns,
    united_columns,
)
from burler.spark.plan_news import held, news
from burler.spark.readoptions import ReadOptions
from burler.spark.types import spark_schema
from burler.spark.united import United

_FORMAT = 2
"""Raise it when tables made by older code must be made anew."""
_NONE = -(2**63) + 1
"""Stands for no activation, or no ``since``, in a table's numbers."""

Kind = Literal["skip", "append", "upsert", "rebuild"]

# Ranks of what an earlier export took in, below those of all files: the activation, then the rows it left standing.
SEEN_RANK, TABLE_RANK = -2, -1


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with a stream.

    ``files`` are the lake files to read, in the way that ``read`` and ``united`` say. ``columns`` are all columns of
    the table, ``schema`` the same in Spark's JSON form. ``keys`` is empty where every row is kept, ``order`` says which
    row of a key is the latest. ``before`` is the activation that the table has seen, ``active`` what is known before
    reading, ``versioned`` whether rows of older table versions go. ``numbers`` go with the rows into the table.
    ``replaces``: of an upsert, whether no row of the table stays: all that count are in ``files``.
    """

    kind: Kind
    files: tuple[LakeFile, ...]
    read: ReadOptions
    united: United
    columns: StructOf
    schema: Mapping[str, Any]
    keys: tuple[str, ...]
    order: tuple[str, ...]
    versioned: bool
    before: Activation | None
    active: Activation | None
    numbers: Mapping[str, int]
    partition_by: tuple[str, ...]
    replaces: bool = False

    @property
    def rows(self) -> int | None:
        """RECORD lines in the files; None where that is not known."""
        counts = [file.records for file in self.files]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def bytes(self) -> int:
        """Uncompressed bytes of the files, as far as they are known."""
        return sum(file.bytes or 0 for file in self.files)

    def activated(self, learned: Mapping[int, int]) -> Plan:
        """The plan once the files were read: ``learned`` maps a file's rank to the last version that it activates."""
        active = self.active
        for rank, version in sorted(learned.items()):
            if active is None or rank >= active.rank:
                active = Activation(version, rank)
        if active is None or not self.versioned:
            return self
        numbers = {**self.numbers, "burler-active": active.version}
        return replace(self, active=active, numbers=numbers, replaces=self.replaces and active == self.active)


def decide(lake: LakeStream, state: TableState, options: ExportOptions) -> Plan:
    """The plan for one stream.

    Raises:
        ExportError: schemas that can't be united, keys that are no columns, columns to partition by that are none.
    """
    if not lake.versions:
        raise ExportError(f"stream '{lake.stream}': the lake knows no schema of it, so there is no table to make")
    read, united = united_columns(lake, state, options)
    record = united.record
    keys = key_columns(lake, united, options)
    # A stream asked for with all its history keeps the rows of older table versions too.
    versioned = options.mode != "append"
    columns = table_columns(record, lake.stream)
    check_partitions(options.partition_by, columns, f"stream '{lake.stream}'")
    newest = lake.versions[-1]
    order = tuple(filter(None, (united.column(newest.hash, name) for name in newest.bookmark_properties)))

    files = tuple(_since(lake.files, options.since))
    taken = _taken(lake, state, keys, order, options)
    grown = None if state.schema is None else grown_columns(state.schema, _json(columns))
    kind, files = _kind(lake, files, taken, grown, options, upsert=bool(keys))
    before = None
    if kind != "rebuild" and versioned:
        stored = state.numbers.get("burler-active", _NONE)
        before = None if stored == _NONE else Activation(stored, SEEN_RANK)
    active = last_activation(files, before) if versioned else None
    if kind == "append" and files and active != before:
        kind, files = "rebuild", tuple(_since(lake.files, options.since))  # rows of the old version go
    if active is not None:
        files = tuple(one for one in files if one.rank > active.rank or not one.is_older_than(active.version))
    if kind != "rebuild":
        columns = as_the_table_has_them(columns, state)
    return Plan(
        kind=kind,
        files=files,
        read=read,
        united=united,
        columns=columns,
        schema=_json(columns),
        keys=keys,
        order=order,
        versioned=versioned,
        before=before,
        active=active,
        numbers=_numbers(lake, state, kind, active, options, _digest(lake.generation or "", keys, order, options)),
        partition_by=options.partition_by,
        replaces=kind == "upsert" and active != before and not _stays(lake, taken, active),
    )


def _stays(lake: LakeStream, taken: int | None, active: Activation | None) -> bool:
    """Whether the table may hold rows of the version that new files activate: of a full table that was under way when
    the table was made."""
    if taken is None or active is None:
        return True
    return any(one.records is None or active.version in (one.versions or ()) for one in held(lake, taken))


def last_activation(files: Iterable[LakeFile], before: Activation | None) -> Activation | None:
    """The last ACTIVATE_VERSION in replay order, as far as the manifest knows; else ``before``."""
    last = before
    for file in files:
        if file.activate_version is not None:
            last = Activation(file.activate_version, file.rank)
    return last


def _taken(
    lake: LakeStream, state: TableState, keys: tuple[str, ...], order: tuple[str, ...], options: ExportOptions
) -> int | None:
    """The manifest sequence that the table holds; None when it must be made anew."""
    if state.version is None or not lake.generation or state.partition_by != options.partition_by:
        return None
    since = state.numbers.get("burler-since", _NONE)
    if _micros(options.since) < since:
        return None  # files that it passed over are wanted now
    # Up to its last commit, a manifest that this one was made from counts the same commits.
    for generation, last in ((lake.generation, lake.sequence), *lake.continues.items()):
        taken = state.numbers.get(f"burler:{generation}")
        if state.numbers.get("burler-plan") == _digest(generation, keys, order, options):
            return taken if taken is not None and taken <= min(last, lake.sequence) else None
    return None  # another generation, other keys, another mode


def _kind(
    lake: LakeStream,
    files: tuple[LakeFile, ...],
    taken: int | None,
    grown: bool | None,
    options: ExportOptions,
    *,
    upsert: bool,
) -> tuple[Kind, tuple[LakeFile, ...]]:
    """The kind of work, and the files that are new to the table."""
    if taken is None or grown is None:
        return "rebuild", files
    new = news(lake, taken, upsert=upsert)
    if new is None or any(file.records is None for file in lake.files):
        # A compacted file whose old rows can't be told from the new, or a file of which the manifest knows nothing.
        return "rebuild", files
    new = tuple(_since(new, options.since))
    if not new:
        return ("append" if grown else "skip"), ()
    return ("upsert" if upsert else "append"), new


def _since(files: Iterable[LakeFile], since: dt.datetime | None) -> Iterator[LakeFile]:
    """The files that hold a row extracted at ``since`` or later, and those of which nobody knows."""
    text = None if since is None else f"{since:%Y-%m-%dT%H:%M:%S.%fZ}".rjust(27, "0")
    return (file for file in files if text is None or not file.last or file.last >= text)


def _numbers(
    lake: LakeStream, state: TableState, kind: Kind, active: Activation | None, options: ExportOptions, digest: int
) -> dict[str, int]:
    if not lake.generation:
        return {}  # without a manifest there is nothing to go on from: every export is a whole one
    since = _micros(options.since) if kind == "rebuild" else state.numbers.get("burler-since", _NONE)
    return {
        f"burler:{lake.generation}": lake.sequence,
        "burler-plan": digest,
        "burler-active": _NONE if active is None else active.version,
        "burler-since": since,
    }


def _micros(moment: dt.datetime | None) -> int:
    if moment is None:
        return _NONE
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def _json(columns: StructOf) -> Mapping[str, Any]:
    return json.loads(spark_schema(columns).json())  # type: ignore[no-any-return]


def _digest(generation: str, keys: tuple[str, ...], order: tuple[str, ...], options: ExportOptions) -> int:
    said = json.dumps([_FORMAT, generation, keys, order, options.mode == "append"])
    return int(hashlib.sha256(said.encode()).hexdigest()[:15], 16)
