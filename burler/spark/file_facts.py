"""What the manifest knows of the file that a row was read from, beside the row."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from burler.spark.columns import RANK, SEQUENCE, SOURCE_FILE
from burler.spark.lakefiles import LakeFile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_FACTS: Mapping[str, tuple[str, Callable[[LakeFile], int | str]]] = {
    RANK: ("int64", lambda file: file.rank),
    SEQUENCE: ("int64", lambda file: file.sequence),
    SOURCE_FILE: ("string", lambda file: file.name),
}
"""Arrow's name of each type, and its value."""
_SPARK_NAMES = {"int64": "bigint", "string": "string"}
_MOST_IN_PLAN = 64
"""Up to so many files are looked up in a list, row by row; beyond it a join is cheaper."""


class FileFacts:
    """Rank, sequence and name of each row's file, by the path that Spark gives with the row.

    Few files stand in the plan: a join would cost a job of its own before the rows are read, and a look at the plan
    after it. Rows of no known file are left out, as a join leaves them out; the count of rows shows it.
    """

    def __init__(self, raw: DataFrame, files: Sequence[LakeFile]) -> None:
        """``raw``: what reads the files, and nothing else."""
        by_path = {os.path.normpath(file.path): file for file in files}
        known = ((uri, by_path.get(os.path.normpath(local_path(uri)))) for uri in raw.inputFiles())
        # inputFiles() says file:///x where others of Spark's functions say file:/x: both are known.
        self._spelled = [
            (spelling, file)
            for uri, file in known
            if file is not None
            for spelling in dict.fromkeys((uri, re.sub(r"\Afile:/+", "file:/", uri)))
        ]
        self._sums = [zlib.crc32(uri.encode()) for uri, _ in self._spelled]
        few = len(self._sums) <= 2 * _MOST_IN_PLAN
        self._in_plan = few and len(set(self._sums)) == len(self._sums)

    @property
    def key(self) -> str:
        """SQL for what tells a row's file, to be taken right on the scan."""
        if not self._in_plan:
            return "xxhash64(input_file_name())"
        return f"array_position({_constant(self._sums)}, crc32(cast(input_file_name() as binary)))"

    def found(self, key: str) -> str:
        """SQL for whether a row's file is known, from the column with ``self.key``."""
        return f"{key} > 0" if self._in_plan else "true"

    def beside(self, lines: DataFrame, key: str) -> tuple[DataFrame, dict[str, Column]]:
        """The rows, and RANK, SEQUENCE and SOURCE_FILE by name, to be taken of them."""
        from pyspark.sql import functions as f

        files = [file for _, file in self._spelled]
        if self._in_plan:
            at = f.expr(f"cast({key} as int) - 1")
            return lines, {name: of_place(files, name, at) for name in _FACTS}
        # Two files of one hash would double their rows, and the count of rows would show it.
        paths = [uri for uri, _ in self._spelled]
        table = frame_of(lines.sparkSession, files, {key: paths}).withColumn(key, f.xxhash64(key))
        return lines.join(f.broadcast(table), key), {name: f.col(name) for name in _FACTS}


def of_place(files: Sequence[LakeFile | None], name: str, at: Column) -> Column:
    """RANK, SEQUENCE or SOURCE_FILE of ``files[at]``: a constant that Spark makes once, one step into it for each row.

    Args:
        at: an int; null comes out where it is none of a file.
    """
    from pyspark.sql import functions as f

    kind, of = _FACTS[name]
    values = json.dumps([None if file is None else of(file) for file in files])
    return f.get(f.from_json(f.lit(values), f"array<{_SPARK_NAMES[kind]}>"), at)


def frame_of(spark: SparkSession, files: Sequence[LakeFile], beside: Mapping[str, Sequence[str]]) -> DataFrame:
    """The columns ``beside`` (texts), RANK, SEQUENCE and SOURCE_FILE of the files."""
    import pyarrow as pa

    columns = {name: pa.array(texts, pa.string()) for name, texts in beside.items()}
    for name, (kind, of) in _FACTS.items():
        columns[name] = pa.array([of(file) for file in files], kind)
    return spark.createDataFrame(pa.table(columns))


def local_path(uri: str) -> str:
    """A path as the file system knows it, from the percent-encoded URI that Spark shows."""
    return re.sub(r"\Afile:/+", "/", unquote(uri))


def _constant(numbers: Sequence[int]) -> str:
    return f"from_json('{json.dumps(numbers)}', 'array<bigint>')"
