"""Rows of many megabytes in Parquet."""

from __future__ import annotations

import io
import json

import pytest
from piped import lines, written

from support.cli import python

pq = pytest.importorskip("pyarrow.parquet", reason="extra 'batch'")

HUGE = r"""
import io, re, sys
from pathlib import Path
from burler.batch import pack
from burler.batch_config import read_batch_config
def most():
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
config = read_batch_config({"encoding": {"format": "parquet"}, "storage": {"root": sys.argv[1]}})
schema = sys.stdin.buffer.readline()
def write(size):
    row = b'{"type":"RECORD","stream":"users","record":{"id":1,"v":"%s"}}\n' % (b"x" * size)
    source = io.BytesIO(schema + row)
    del row
    before = most()
    pack(source, lambda data: None, config)
    return most() - before
write(1)
print(write(40 << 20) / (40 << 10))
"""


def test_a_huge_text_is_in_memory_a_few_times_only(tmp_path) -> None:
    schema = {"properties": {"id": {"type": "integer"}, "v": {"type": "string"}}}
    given = lines({"type": "SCHEMA", "stream": "users", "schema": schema, "key_properties": []})
    done = python("-c", HUGE, tmp_path, stdin=given)
    assert float(done.stdout) < 10, done.stderr


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
        group = pq.ParquetFile(io.BytesIO(written("parquet", schema, json.dumps(row)))).metadata.row_group(0)
        return {column.path_in_schema: column.is_stats_set for column in map(group.column, range(4))}

    assert measured("x") == {"id": True, "v": True, "in.w": True, "in.n": True}
    assert measured("x" * 2_000_000) == {"id": True, "v": False, "in.w": False, "in.n": True}
