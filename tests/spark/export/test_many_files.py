"""What a row's file tells of it (sequence, name, place in the order) comes out the same for few files and for many."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("packages", "with_spark")

SCHEMA = {"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
COLUMNS = ("id", "name", "_sdc_sequence", "_sdc_source_file")


@pytest.mark.parametrize("files", [4, 66])
def test_few_and_many(lake, run, rows_of, files):
    """Each file has a newer row of the key 0. Up to 64 files stand in Spark's plan one by one."""
    expected = {"keyed": {}, "keyless": []}
    for number in range(files):
        for stream, keys in (("keyed", ("id",)), ("keyless", ())):
            lines = [{"id": 0, "name": f"of {number}"}, {"id": number + 1, "name": "ours"}]
            path = lake.commit(stream, lines, schema=SCHEMA, keys=keys)
            mine = [(row["id"], row["name"], number + 1, f"{path.parent.name}/{path.name}") for row in lines]
            if keys:
                expected[stream] |= {row[0]: row for row in mine}
            else:
                expected[stream] += mine

    run()

    assert rows_of("keyed", *COLUMNS) == sorted(expected["keyed"].values(), key=repr)
    assert rows_of("keyless", *COLUMNS) == sorted(expected["keyless"], key=repr)
