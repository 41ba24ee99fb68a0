"""From a tap to tables in one call, with the lake between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from extracted import PARTS, app, rows_of

from burler.errors import UsageError
from burler.spark import land
from support.cli import Ended, burler

CONFIG = {"token": "x"}


def ids(out: Path, stream: str = "rows") -> list[int]:
    """The table's keys, as another program reads it."""
    from deltalake import DeltaTable

    return sorted(DeltaTable(str(out / "tap-parts" / stream)).to_pyarrow_table().column("id").to_pylist())


def test_rows_land_in_a_lake_and_in_tables(spark: Any, tmp_path: Path):
    path, out = app(tmp_path, PARTS, "tap_parts_land"), tmp_path / "out"
    states: list[dict[str, Any]] = []
    landed = land(spark, path, out, config=CONFIG, select="rows,plain", emit=states.append)
    assert {table.stream for table in landed.tables} == {"rows", "plain"}
    assert ids(out) == sorted([*range(1, 40), *range(100, 130), 7])
    assert len(rows_of(out / "_lake", "tap-parts", "rows")) == 70
    assert states[-1] == landed.state
    again = land(spark, path, out, config=CONFIG, select="rows,plain")
    assert len(rows_of(out / "_lake", "tap-parts", "rows")) == 73
    assert ids(out) == sorted([*range(1, 40), *range(100, 130), 7]), "what comes twice is there once"
    assert again.extracted.errors == {}


def test_a_table_that_can_not_be_made_leaves_lake_and_state_right(spark: Any, tmp_path: Path):
    path, out, lake = app(tmp_path, PARTS, "tap_parts_stuck"), tmp_path / "out", tmp_path / "lake"
    out.mkdir()
    (out / "tap-parts").write_text("a file stands where the tables' folder must be")
    states: list[dict[str, Any]] = []
    with pytest.raises(
        Exception, match=r"(?s)The rows are in the lake and their STATE is out.*burler export"
    ) as raised:
        land(spark, path, out, lake=lake, config=CONFIG, select="rows", emit=states.append)
    assert not isinstance(raised.value, UsageError)
    assert states[-1]["bookmarks"]["rows"]["partitions"]['{"account":"a"}'] == {"id": 39}
    (out / "tap-parts").unlink()
    land(spark, path, out, lake=lake, config=CONFIG, select="rows", full_refresh=["rows"])
    assert len(ids(out)) == 70 and len(rows_of(lake, "tap-parts", "rows")) == 140


def run(folder: Path, name: str, *more: Any) -> Ended:
    path, config = app(folder, PARTS, name), folder / "config.json"
    config.write_text(json.dumps(CONFIG))
    return burler("run", path, "-c", config, "--select", "rows", *more)


def test_the_sink_of_a_run(spark: Any, tmp_path: Path):
    out = tmp_path / "out"
    given = (tmp_path, "tap_parts_sink", "--sink", f"spark:{out}")
    done = run(*given)
    assert done.code == 0, done.stderr
    state = done.messages[-1]
    assert state["type"] == "STATE"
    assert len(ids(out)) == 70
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert run(*given, "--state", tmp_path / "state.json", "--lake", tmp_path / "elsewhere").code == 0
    assert len(rows_of(tmp_path / "elsewhere", "tap-parts", "rows")) == 3
    assert run(*given).code == 0
    assert len(rows_of(out / "_lake", "tap-parts", "rows")) == 73, "it goes on from the state of the lake behind"
    assert len(ids(out)) == 70


def test_a_table_that_can_not_be_made_ends_a_run_with_1(spark: Any, tmp_path: Path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "tap-parts").write_text("in the way")
    done = run(tmp_path, "tap_parts_broken", "--sink", f"spark:{out}")
    assert done.code == 1
    assert done.messages[-1]["value"]["bookmarks"]["rows"]
    assert "The rows are in the lake and their STATE is out" in done.one_critical()


@pytest.mark.parametrize(
    ("sink", "more", "says"),
    [
        ("spark:", [], "needs the folder"),
        ("stdout", ["--lake", "x"], "--lake is for --sink spark:OUT"),
        ("spark:out", ["--test"], "--test is a look at a few rows"),
        ("spark:out", ["--limit", "2"], "--limit is a look at a few rows"),
    ],
    ids=["no-out", "lake-alone", "test", "limit"],
)
def test_what_does_not_go_together(tmp_path: Path, sink: str, more: list[str], says: str):
    done = run(tmp_path, "tap_parts_refused", "--sink", sink, *more)
    assert done.code == 2
    assert says in done.one_critical()


def test_a_database_has_no_place_for_a_lake(spark: Any, tmp_path: Path):
    path = app(tmp_path, PARTS, "tap_parts_nowhere")
    with pytest.raises(UsageError, match="say where the lake is to be"):
        land(spark, path, "jdbc:postgresql://host/db", format="jdbc", config=CONFIG)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"fromat": "delta"}, TypeError, "land does not take 'fromat'. Did you mean 'format'?"),
        ({"mode": "upsrt"}, UsageError, "mode is 'upsrt'; it must be append or upsert"),
        ({"lake_options": {}}, TypeError, "does not take 'lake_options'"),
    ],
)
def test_options_of_the_export_are_looked_at_before_the_extraction(
    spark: Any, tmp_path: Path, options: dict[str, Any], error: type[Exception], says: str
):
    with pytest.raises(error) as caught:
        land(spark, None, tmp_path / "out", exec="no-such-tap", **options)

    assert says in str(caught.value)
