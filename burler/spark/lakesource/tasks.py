"""What one Spark task reads: a few files, as much as the rows of all tasks together allow."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from burler.lake.choice import Window
from burler.records.columns.types import StructOf
from burler.spark.lakefiles import Activation, LakeFile, LakeStream
from burler.spark.lakesource.chosen import united, versions_up_to, without_folder
from burler.spark.lakesource.options import Bad, LakeOptions
from burler.spark.lakesource.pruned import only
from burler.spark.lakesource.shape import SchemaChanged, frame_columns, in_order, misfit
from burler.spark.readoptions import ReadOptions
from burler.spark.united import United

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_log = logging.getLogger("burler.spark.singerlake")

_UNKNOWN_BYTES = 16 << 20
"""What a file counts for of which no manifest knows the size."""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Plain data that travels to an executor.

    ``files`` with, for each, its place among the files of its commit. ``columns``: what comes out, in order.
    ``is_pruned``: whether fields are left out that a file may have, since nobody wants them.
    """

    url: str
    stream: str
    files: tuple[tuple[LakeFile, int], ...]
    united: United
    columns: StructOf
    times: Window
    active: Activation | None
    bad: Bad
    is_pruned: bool
    options: ReadOptions


def plan_tasks(
    lake: LakeStream, files: Sequence[LakeFile], active: Activation | None, schema: StructType, options: LakeOptions
) -> list[ReadTask]:
    """Tasks for ``files``, in replay order; each file goes whole into one (a gz file can't be read from its middle).

    Raises:
        SchemaChanged: the files have columns that a DataFrame of this ``schema`` can't hold.
    """
    if not files:
        return []
    whole, columns = _fitting(lake, files, schema, options)
    return [
        ReadTask(
            url=lake.store.url,
            stream=lake.stream,
            files=group,
            united=whole,
            columns=in_order(schema, columns),
            times=options.times,
            active=active,
            bad=options.bad,
            is_pruned=options.fields is not None or options.ignores_new,
            options=options.read,
        )
        for group in _groups(_placed(files), options.task_bytes)
    ]


def _fitting(
    lake: LakeStream, files: Sequence[LakeFile], schema: StructType, options: LakeOptions
) -> tuple[United, StructOf]:
    """The columns that the files have together, such that they fit: those of all schema versions, or, where a newer
    one that no file has yet does not fit, of those up to the newest that a file has."""
    problem = ""
    for versions in (lake.versions, versions_up_to(lake, files)):
        whole = united(lake, versions, options)
        columns = frame_columns(whole.record, options, lake.stream)
        found = misfit(schema, columns, options)
        if found is None:
            return _without_new(lake, whole, schema), columns
        problem = found
    newest = versions_up_to(lake, files)[-1]
    raise SchemaChanged(
        f"stream '{lake.stream}': the lake's schema has changed (up to {newest.version}, {newest.hash}): {problem}.\n"
        "Nothing was lost. Load it again, or start the query again (same checkpoint): it takes the new columns.\n"
        'To go on without new fields: option("new_fields", "ignore").'
    )


def _without_new(lake: LakeStream, whole: United, schema: StructType) -> United:
    """``whole`` less the columns that the DataFrame lacks (``new_fields`` says that they may be left out)."""
    kept = set(schema.fieldNames())
    new = [name for name, _ in whole.record.fields if name not in kept]
    if not new:
        return whole
    _log.warning("stream '%s': new fields left out, as option new_fields says: %s", lake.stream, ", ".join(new))
    return only(whole, kept)


def _placed(files: Sequence[LakeFile]) -> Iterator[tuple[LakeFile, int]]:
    """Each file with its place among those of the same commit."""
    places: dict[int, int] = {}
    for file in files:
        place = places.get(file.sequence, 0)
        places[file.sequence] = place + 1
        yield without_folder(file), place


def _groups(files: Iterator[tuple[LakeFile, int]], task_bytes: int) -> Iterator[tuple[tuple[LakeFile, int], ...]]:
    """Files in their order, as many to a group as ``task_bytes`` has room for; one at least."""
    group: list[tuple[LakeFile, int]] = []
    size = 0
    for file, place in files:
        own = _UNKNOWN_BYTES if file.bytes is None else file.bytes
        if group and size + own > task_bytes:
            yield tuple(group)
            group, size = [], 0
        group.append((file, place))
        size += own
    if group:
        yield tuple(group)
