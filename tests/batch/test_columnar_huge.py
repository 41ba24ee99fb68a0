"""Rows of many megabytes in Parquet."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from support.internals import batch_config, columnar

pq = pytest.importorskip("pyarrow.parquet", reason="extra 'batch'")

PARQUET = batch_config.Encoding("parquet", "zstd")
HUGE = r"""
import re
from pathlib import Path
from support.internals import columnar
layout, open_file = columnar.layout, columnar.open_file
from support.internals import batch_config
Encoding = batch_config.Encoding
def most():
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
def write(line):
    encoder = open_file(made, columns, lambda data: None)
    encoder.rows(line, 1)
    encoder.finish()
made = Encoding("parquet")
columns = layout(made, {"properties": {"id": {"type": "integer"}, "v": {"type": "string"}}}, "s")
write(b'{"id":1,"v":"x"}\n')
line = b'{"id":1,"v":"' + b"x" * (40 << 20) + b'"}\n'
before = most()
write(line)
print((most() - before) / (40 << 10))
"""


def test_a_huge_text_is_in_memory_a_few_times_only() -> None:
    done = subprocess.run([sys.executable, "-c", HUGE], capture_output=True, text=True, timeout=60, check=True)
    assert float(done.stdout) < 7, "10 where Parquet looks for the least and the greatest of such texts"


def test_where_a_text_is_huge_the_other_columns_still_have_their_least_and_greatest() -> None:
    schema = {
        "properties": {
            "id": {"type": "integer"},
            "v": {"type": "string"},
            "in": {"type": "object", "properties": {"w": {"type": "string"}, "n": {"type": "integer"}}},
        }
    }

    def measured(text: str) -> dict[str, bool]:
        row = {"id": 1, "v": text, "in": {"w": text, "n": 2}}
        parts: list[bytes] = []
        encoder = columnar.open_file(PARQUET, columnar.layout(PARQUET, schema, "s"), parts.append)
        encoder.rows(json.dumps(row).encode() + b"\n", 1)
        encoder.finish()
        group = pq.ParquetFile(io.BytesIO(b"".join(parts))).metadata.row_group(0)
        return {column.path_in_schema: column.is_stats_set for column in map(group.column, range(4))}

    assert measured("x") == {"id": True, "v": True, "in.w": True, "in.n": True}
    assert measured("x" * 2_000_000) == {"id": True, "v": False, "in.w": False, "in.n": True}
