"""What a row's file tells of it (sequence, name, place in the order) comes out the same for few files and for many."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from support.internals import file_facts
from support.internals import spark_rows as rows

pytestmark = pytest.mark.usefixtures("packages", "with_spark")

SCHEMA = {"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
COLUMNS = ("id", "name", "_sdc_sequence", "_sdc_source_file")


@pytest.fixture
def committed(lake):
    """Four files of two streams; each has a newer row of the key 0. By stream: the rows that its table has."""
    expected = {"keyed": {}, "keyless": []}
    for number in range(4):
        for stream, keys in (("keyed", ("id",)), ("keyless", ())):
            lines = [{"id": 0, "name": f"of {number}"}, {"id": number + 1, "name": "ours"}]
            path = lake.commit(stream, lines, schema=SCHEMA, keys=keys)
            mine = [(row["id"], row["name"], number + 1, path.name) for row in lines]
            if keys:
                expected[stream] |= {row[0]: row for row in mine}
            else:
                expected[stream] += mine
    return {"keyed": sorted(expected["keyed"].values(), key=repr), "keyless": sorted(expected["keyless"], key=repr)}


def shown(rows_of, out):
    return {
        stream: [(*row[:3], row[3].rpartition("/")[2]) for row in rows_of(stream, *COLUMNS, out=out)]
        for stream in ("keyed", "keyless")
    }


@pytest.mark.parametrize("most", [0, 2, 64])
def test_few_and_many(committed, run, rows_of, monkeypatch, most):
    monkeypatch.setattr(file_facts, "_MOST_IN_PLAN", most)
    monkeypatch.setattr(rows, "_MOST_IN_PLAN", most)

    run()

    assert shown(rows_of, "out") == committed


def test_two_files_of_one_sum_are_told_apart(committed, run, rows_of, monkeypatch):
    monkeypatch.setattr(file_facts, "zlib", SimpleNamespace(crc32=lambda data: 7))

    run()

    assert shown(rows_of, "out") == committed
