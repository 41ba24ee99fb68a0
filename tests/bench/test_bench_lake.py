"""The benchmark's rows about the lake: what burler writes is compared, wrong files would be seen, and plans agree."""

import copy
import gzip
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from burler.lake import LakeWriter, open_store
from burler.singer.messages import Schema

HERE = Path(__file__).parent
ROWS = 5
STATE = {"type": "STATE", "value": {"bookmarks": {"std": {"version": 7}}}}


def lake_of(bench, folder, change=lambda rows: None):
    """A lake with the rows that it should hold, but for a change."""
    standard = bench["standard"]
    rows = copy.deepcopy(list(standard.rows(ROWS)))
    change(rows)
    with LakeWriter(open_store(str(folder)), "tap-std", emit_state=lambda state: None) as writer:
        writer.schema(Schema(standard.STREAM, standard.SCHEMA, ("id",)))
        for number, row in enumerate(rows):
            time = f"2024-05-06T07:08:{number:02}.000000Z"
            line = {"type": "RECORD", "stream": standard.STREAM, "record": row, "time_extracted": time}
            writer.page(standard.STREAM, json.dumps(line).encode() + b"\n", 1, [time])
    return folder


def compare(bench, lake, states=(STATE,)):
    wanted = bench["checks"].parse("\n".join(map(json.dumps, bench["standard"].rows(ROWS))).encode())
    return bench["lake_checks"].compare(lake, list(states), wanted)


def test_the_right_files_pass(bench, tmp_path):
    assert compare(bench, lake_of(bench, tmp_path)) == ROWS


WRONG = {
    "a value": lambda rows: rows[4].update(a="other"),
    "a nested value": lambda rows: rows[1]["nested"].update(x=77),
    "a field less": lambda rows: [row.pop("arr") for row in rows],
    "a row less": lambda rows: rows.pop(),
    "a row twice": lambda rows: rows.insert(1, copy.deepcopy(rows[1])),
    "an unclean value": lambda rows: rows[1].update(ts="yesterday"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rows_are_an_error(bench, tmp_path, name):
    with pytest.raises(bench["checks"].Wrong):
        compare(bench, lake_of(bench, tmp_path, WRONG[name]))


def test_other_lines_than_states_are_an_error(bench, tmp_path):
    lake = lake_of(bench, tmp_path)
    for states in ([], [{"bookmarks": {}}], [STATE, {"type": "RECORD"}]):
        with pytest.raises(bench["checks"].Wrong):
            compare(bench, lake, states)


def test_files_that_the_manifest_counts_wrongly_are_an_error(bench, tmp_path):
    lake = lake_of(bench, tmp_path)
    (path,) = lake.glob("raw/*/*/*/*.singer.gz")
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(bench["checks"].Wrong):
        compare(bench, lake)


@pytest.fixture
def plans(monkeypatch):
    spec = importlib.util.spec_from_file_location("lake_plan_bench", HERE / "lake_plan_bench.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lake_plan_bench", module)
    spec.loader.exec_module(module)
    return module


def test_plans_by_manifest_and_by_listing_are_the_same(plans):
    pytest.importorskip("moto")
    took = plans.measure(1200, 1)
    assert len(took["told"]) == len(took["listed"]) == 1


def test_a_plan_that_lacks_a_file_is_an_error(plans, monkeypatch):
    pytest.importorskip("moto")
    whole = plans.plan
    monkeypatch.setattr(
        plans, "plan", lambda url, bucket: whole(url, bucket)[1:] if bucket == "listed" else whole(url, bucket)
    )
    with pytest.raises(SystemExit, match="the plans differ"):
        plans.measure(70, 1)
