"""What an export has to do for one stream: a pure decision from a lake snapshot and a table's state.

Source: specs 11.20, 11.30, 11.31. What a table has taken in is told by numbers that its commits carry:

``burler:<generation>``            the manifest sequence up to which files are in the table
``burler-plan:<generation>:<d>``   the same number; ``d`` is a digest of keys and order, so that a stream
                                   whose keys changed is made anew
``burler-active:<generation>``     the table version of the stream that is active (11.31)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from burler.columns.kinds import ListOf, MapOf, StructOf
from burler.errors import ExportError
from burler.spark.columns import table_columns
from burler.spark.delta import DeltaState
from burler.spark.lakefiles import LakeFile, LakeStream
from burler.spark.types import record_type, spark_schema
from burler.spark.unite import VersionType, unite_versions

_FORMAT = 1
"""Raise it when tables made by older code must be made anew."""

Kind = Literal["skip", "append", "upsert", "rebuild"]


# Ranks of what an earlier export took in, below those of all files: the activation, then the rows it left standing.
SEEN_RANK, TABLE_RANK = -2, -1


@dataclass(frozen=True, slots=True)
class Activation:
    """The last ACTIVATE_VERSION: its version, and the rank of its file (SEEN_RANK: taken in by an earlier export)."""

    version: int
    rank: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with a stream.

    ``files`` are the lake files to read. ``record`` are the stream's own columns, ``schema`` is Delta's JSON form of
    all columns, ``own`` each schema version's columns by hash. ``active`` is what is known before reading.
    """

    kind: Kind
    files: tuple[LakeFile, ...]
    record: StructOf
    columns: StructOf
    schema: Mapping[str, Any]
    own: Mapping[str, StructOf]
    keys: tuple[str, ...]
    order: tuple[str, ...]
    active: Activation | None
    transactions: Mapping[str, int]


def decide(lake: LakeStream, state: DeltaState) -> Plan:
    """The plan for one stream.

    Raises:
        ExportError: schemas that can't be united, keys that are no columns, names that clash.
    """
    if not lake.versions:
        raise ExportError(f"stream '{lake.stream}': the lake knows no schema of it, so there is no table to make")
    own = {
        one.hash: VersionType(one.hash, one.version, record_type(one.schema, stream=lake.stream))
        for one in lake.versions
    }
    keys = lake.versions[-1].key_properties
    united = unite_versions(lake.stream, list(own.values()))
    _check_keys(keys, united, lake.stream)
    # A lake keeps a schema's properties sorted by name: keys first is all the order there is to give.
    record = StructOf(tuple(sorted(united.fields, key=lambda field: _place(field[0], keys))))
    columns = table_columns(record, lake.stream)
    schema = json.loads(spark_schema(columns).json())
    order = tuple(name for name in lake.versions[-1].bookmark_properties if record.get(name) is not None)

    main = f"burler:{lake.generation}"
    mark = f"burler-plan:{lake.generation}:{_digest(keys, order)}"
    taken = _taken(lake, state, main, mark)
    kind, files = _kind(lake, state, schema, taken, upsert=bool(keys))
    before = None
    if kind != "rebuild":
        stored = state.transaction(f"burler-active:{lake.generation}")
        before = None if stored is None else Activation(stored, SEEN_RANK)
    active = last_activation(files, {}, before)
    if kind == "append" and active != before:
        kind, files = "rebuild", lake.files  # rows of the old version go: no mere append
    if active is not None:
        files = tuple(one for one in files if one.rank > active.rank or not one.is_older_than(active.version))
    return Plan(
        kind=kind,
        files=files,
        record=record,
        columns=columns,
        schema=schema,
        own={digest: one.record for digest, one in own.items()},
        keys=keys,
        order=order,
        active=active,
        # Without a manifest there is no generation: nothing to go on from, every export is a whole one.
        transactions={main: lake.sequence, mark: lake.sequence} if lake.generation else {},
    )


def last_activation(
    files: Iterable[LakeFile], learned: Mapping[int, int], before: Activation | None
) -> Activation | None:
    """The last ACTIVATE_VERSION in replay order: by the manifest, by ``learned`` (rank -> version), else ``before``."""
    last = before
    for file in files:
        version = learned.get(file.rank, file.activate_version)
        if version is not None:
            last = Activation(version, file.rank)
    return last


def _taken(lake: LakeStream, state: DeltaState, main: str, mark: str) -> int | None:
    """The manifest sequence that the table holds; None when it must be made anew."""
    if state.version is None or not lake.generation:
        return None
    taken = state.transaction(main)
    if taken is None or state.transaction(mark) != taken or taken > lake.sequence:
        return None  # another generation, other keys, or a lake restored from an older copy
    return taken


def _kind(
    lake: LakeStream, state: DeltaState, schema: Mapping[str, Any], taken: int | None, *, upsert: bool
) -> tuple[Kind, tuple[LakeFile, ...]]:
    """The kind of work, and the files that are new to the table."""
    grown = None if state.schema is None else _grown(state.schema, schema)
    if taken is None or grown is None:
        return "rebuild", lake.files
    new = _new(lake, taken, upsert=upsert)
    if new is None or any(file.records is None for file in lake.files):
        # A compacted file whose old rows can't be told from the new, or a file of which the manifest knows nothing.
        return "rebuild", lake.files
    if not new:
        return ("append" if grown else "skip"), ()
    return ("upsert" if upsert else "append"), new


def _new(lake: LakeStream, taken: int, *, upsert: bool) -> tuple[LakeFile, ...] | None:
    """The files with the rows that the table lacks, in replay order; None if that can't be told (specs 11.20)."""
    found: list[LakeFile] = []
    for file in lake.files:
        known = _had(file, taken)
        if known == "some":
            names = [name for name, sequence in (file.replaces or {}).items() if sequence > taken]
            parts = [lake.replaced[name] for name in names if name in lake.replaced]
            if len(parts) == len(names) and all(part.records is not None for part in parts):
                found += parts
                continue
            if not upsert:
                return None
        if known != "all":
            found.append(file)  # to an upsert rows that the table has already are no harm
    return tuple(sorted(found, key=lambda file: file.rank))


def _had(file: LakeFile, taken: int) -> Literal["all", "none", "some"]:
    """How many of a file's rows a table has that holds everything up to commit ``taken``."""
    parts = (file.replaces or {}).values()
    if file.committed <= taken or (parts and max(parts) <= taken):
        return "all"
    return "some" if parts and min(parts) <= taken else "none"


def _grown(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool | None:
    """Whether ``new`` has more columns than ``old``; None when it is no mere growth (types changed, columns gone)."""
    before = {one["name"]: one for one in old["fields"]}
    after = {one["name"]: one for one in new["fields"]}
    if any(after.get(name) != one for name, one in before.items()):
        return None
    return len(after) > len(before)


def _place(name: str, keys: tuple[str, ...]) -> int:
    return keys.index(name) if name in keys else len(keys)


def _check_keys(keys: tuple[str, ...], record: StructOf, stream: str) -> None:
    for key in keys:
        kind = record.get(key)
        if kind is None:
            raise ExportError(
                f"stream '{stream}': its key '{key}' is no field of its schema, so rows can't be told apart. "
                "Correct key_properties in the tap, or select the field"
            )
        if isinstance(kind, ListOf | MapOf | StructOf):
            raise ExportError(f"stream '{stream}': its key '{key}' is an object or a list; a key must be a plain value")


def _digest(keys: tuple[str, ...], order: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps([_FORMAT, keys, order]).encode()).hexdigest()[:16]
