"""Spark goes on from the checkpoint of a query that ran on c550d9f: the offsets that it wrote are taken."""

from __future__ import annotations

import json
import shutil

import pytest
from contract import lakes, queries
from contract.files import CONTRACT, read_json

pytestmark = pytest.mark.spark


def test_queries_go_on(tmp_path):
    """One session for both kinds: a JVM takes long to start."""
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
