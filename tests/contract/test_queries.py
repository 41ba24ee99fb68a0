"""Spark goes on from the checkpoint of a query that ran on c550d9f: the offsets that it wrote are taken."""

from __future__ import annotations

import json
import shutil

import pytest
from contract import lakes, queries
from contract.files import CONTRACT, HERE, read_json

import pyspark_burler
import pyspark_singerlake


def test_the_offsets_of_a_query_are_taken(tmp_path):
    """As Spark asks a source that it goes on with, without Spark: for the end, and the rows from the offset to it."""
    shutil.copytree(CONTRACT / "offsets", tmp_path / "offsets")
    shutil.copytree(CONTRACT / "lakes" / "shop", tmp_path / "shop")
    lake = tmp_path / "shop" / "lake"
    lakes.go_on("shop", lake)
    app = {"app": f"{HERE / 'apps.py'}:counting", "stream": "numbers", "config": json.dumps({"upto": 13})}
    sources = {
        "singerlake": pyspark_singerlake.DefaultSource({"path": str(lake), "stream": "orders"}),
        "burler": pyspark_burler.DefaultSource({**app, "spool": str(tmp_path / "offsets" / "burler" / "spool")}),
    }
    assert sources.keys() == set(queries.NAMES)
    for name, source in sources.items():
        reader = source.streamReader(source.schema())
        first, *_, start = [queries.offsets(tmp_path / "offsets" / name)[at] for at in (0, -1)]
        if hasattr(reader, "getDefaultReadLimit"):  # of Spark 4.2
            reader.prepareForTriggerAvailableNow()
            end = reader.latestOffset(start, reader.getDefaultReadLimit())
        else:
            end = reader.latestOffset()
        found = [
            row for one in reader.partitions(start, end) for batch in reader.read(one) for row in batch.to_pylist()
        ]
        reader.stop()
        assert end["generation"] == start["generation"] == first["generation"]
        if name == "singerlake":  # the rows of the commits behind the offset, and no other ones
            assert sorted(row["id"] for row in found) == [2, 4, 12]
            assert {row["_sdc_sequence"] for row in found} == {end["sequence"]} == {start["sequence"] + 1}
        else:  # the tap went on from the state in the offset
            assert sorted(row["n"] for row in found) == [9, 10, 11, 12, 13]
            assert end["state"] == {"bookmarks": {"numbers": {"n": 13}}}


@pytest.mark.nightly
@pytest.mark.spark
def test_queries_go_on(tmp_path):
    """One session for both kinds: a JVM takes long to start. By day Spark's questions are asked without it."""
    shutil.copytree(CONTRACT / "offsets", tmp_path / "offsets")
    shutil.copytree(CONTRACT / "lakes" / "shop", tmp_path / "shop")
    lake = tmp_path / "shop" / "lake"
    lakes.go_on("shop", lake)
    session = queries.session()
    try:
        for name in queries.NAMES:
            folder = tmp_path / "offsets" / name
            before = read_json(CONTRACT / "offsets" / f"{name}.json")
            assert queries.offsets(folder) == before["offsets"]
            found = [json.loads(row) for row in queries.run(session, name, folder, lake, 13)]
            first, *_, last = queries.offsets(folder)
            assert first == before["offsets"][0]
            if name == "singerlake":  # the rows of the commits behind the offset, and no other ones
                assert sorted(row["id"] for row in found) == [2, 4, 12]
                assert last == {"generation": first["generation"], "sequence": first["sequence"] + 1}
                assert {row["_sdc_sequence"] for row in found} == {last["sequence"]}
            else:  # the tap went on from the state in the offset
                assert sorted(row["n"] for row in found) == [9, 10, 11, 12, 13]
                assert last["state"] == {"bookmarks": {"numbers": {"n": 13}}}
                assert last["generation"] == first["generation"]
            assert {"_sdc_extracted_at", "_sdc_sequence", "_sdc_source_file", "_sdc_position"} <= set(found[0])
    finally:
        session.stop()
