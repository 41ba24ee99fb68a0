"""An extraction goes on from the state that the lake keeps of its tap, as ``burler run`` into the lake does."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from extracted import FOREIGN, PARTS, app, rows_of

from burler.errors import LockLost
from burler.lake import LakeState, StateKeeper, load, open_store
from burler.singer import merge_states
from burler.spark import extract
from support.cli import Ended, burler

GROWS = PARTS.replace(
    "        for number in SOURCE",
    """
        if partition["account"] == "d":
            with open(__file__ + ".most") as most:
                SOURCE["d"] = range(7, int(most.read()) + 1)
        for number in SOURCE""",
)
"""One partition has rows from 7 to what a file beside the app says: workers keep module and environment."""
CONFIG = {"token": "hush", "shop": "one"}


class Place:
    """An app beside its config and its lake."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.lake, self.app = folder, folder / "lake", app(folder, GROWS, name)
        self.config = folder / "config.json"
        self.config.write_text(json.dumps(CONFIG))
        self.grow(7)

    def grow(self, most: int) -> None:
        Path(f"{self.app}.most").write_text(str(most))

    def extract(self, *more: Any, most: int = 7) -> Ended:
        self.grow(most)
        given = ("extract", self.app, self.lake, "-c", self.config, "--select", "rows", *more)
        return burler(*given, cwd=self.folder)

    def run(self, *more: Any, most: int = 7) -> Ended:
        self.grow(most)
        given = ("run", self.app, "--sink", f"lake:{self.lake}", "-c", self.config, "--select", "rows", *more)
        return burler(*given, cwd=self.folder)

    @property
    def ids(self) -> list[int]:
        """What the lake has of the partition that grows, in its order."""
        return [row["id"] for row in rows_of(self.lake, "tap-parts", "rows") if row["account"] == "d"]

    @property
    def bookmarks(self) -> dict[str, Any]:
        state = LakeState(open_store(str(self.lake)), "tap-parts").start()
        assert state is not None
        return state["bookmarks"]

    @property
    def kept(self) -> dict[str, Any]:
        """The bookmarks of the partitions in the lake."""
        return {json.loads(key)["account"]: at["id"] for key, at in self.bookmarks["rows"]["partitions"].items()}


def test_the_second_extraction_moves_only_what_is_new_and_so_does_a_run(spark: Any, tmp_path: Path) -> None:
    place = Place(tmp_path, "tap_parts_goes_on")
    assert place.extract().code == 0
    assert place.kept == {"a": 39, "b": 129, "d": 7}
    again = place.extract("-o", "copy.json", most=9)
    assert again.code == 0 and "goes on from the state in the lake" in again.stderr
    assert (place.ids, place.kept["d"]) == ([7, 7, 8, 9], 9)
    assert json.loads((tmp_path / "copy.json").read_text()) == again.messages[-1]["value"]
    assert place.run(most=10).code == 0, "the config is the same one to it"
    assert (place.ids, place.kept["d"]) == ([7, 7, 8, 9, 9, 10], 10)
    assert place.extract(most=11).code == 0
    assert place.ids[-2:] == [10, 11]


def test_a_state_wins_over_the_lakes_and_a_full_refresh_over_both(spark: Any, tmp_path: Path) -> None:
    place = Place(tmp_path, "tap_parts_wins")
    place.extract(most=9)
    old = {"bookmarks": {"rows": {"partitions": {'{"account":"d"}': {"id": 8}}}}}
    (tmp_path / "old.json").write_text(json.dumps(old))
    assert place.extract("--state", "old.json", most=9).code == 0
    assert place.ids == [7, 8, 9, 8, 9]
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "state_scope": "touched"}))
    named = place.extract("--full-refresh=rows", "--state", "old.json", most=7)
    assert named.code == 0, named.stderr
    assert (place.ids[-1], place.kept["d"]) == (7, 7)
    lines = [message["value"] for message in named.messages]
    assert merge_states(lines)["bookmarks"] == place.bookmarks != lines[-1].get("bookmarks"), "each says what changed"
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert place.extract("--full-refresh", most=8).code == 0
    assert place.ids[-2:] == [7, 8]
    wrong = place.extract("--full-refresh=row")
    assert wrong.code == 2 and "Did you mean 'rows'?" in wrong.one_critical()


def test_rows_whose_state_was_not_written_come_again(spark: Any, tmp_path: Path) -> None:
    """As if the driver were killed between the commit and the state: the state is behind, and no STATE is out."""
    place = Place(tmp_path, "tap_parts_behind")
    place.extract()
    with mock.patch.object(StateKeeper, "save", side_effect=KeyboardInterrupt):
        stopped = place.extract(most=9)
    assert stopped.code != 0 and not stopped.stdout
    assert place.kept["d"] == 7
    assert place.extract(most=9).code == 0
    assert set(place.ids) == {7, 8, 9} and place.kept["d"] == 9


def test_the_rows_of_another_config_have_a_tap_id_of_their_own(spark: Any, tmp_path: Path) -> None:
    place = Place(tmp_path, "tap_parts_other")
    place.extract()
    place.config.write_text(json.dumps({**CONFIG, "token": "changed", "shop": "two"}))
    for refused in place.extract(), place.extract("--state", place.lake / "raw/tap-parts/state.json"):
        assert refused.code == 2 and "'shop' differs" in refused.one_critical()
    assert place.ids == [7]
    assert place.extract("--tap-id", "second").code == 0
    assert (place.lake / "raw/second/state.json").exists()
    assert place.extract("--full-refresh").code == 0
    place.config.write_text(json.dumps(CONFIG))
    assert place.extract().code == 2


def test_of_two_extractions_at_once_one_stops_before_its_state(spark: Any, tmp_path: Path) -> None:
    place, runs = Place(tmp_path, "tap_parts_twice_at_once"), StateKeeper.runs
    place.extract()

    def after_another(keeper: StateKeeper, streams: Any, **more: Any) -> None:
        runs(keeper, streams, **more)
        with mock.patch.object(StateKeeper, "runs", runs):
            assert place.run(most=9).code == 0

    with mock.patch.object(StateKeeper, "runs", after_another):
        ended = place.extract(most=8)
    assert ended.code == 3 and "another run of 'tap-parts'" in ended.one_critical()
    assert not ended.stdout
    assert place.kept["d"] == 9


def test_from_python(spark: Any, tmp_path: Path) -> None:
    path, lake = app(tmp_path, PARTS, "tap_parts_python"), tmp_path / "lake"
    given: dict[str, Any] = {"config": CONFIG, "select": "rows,plain"}
    kept = LakeState(open_store(str(lake)), "tap-parts")
    seen: list[Any] = []
    first = extract(spark, path, lake, **given, emit=lambda state: seen.append((state, kept.start())))
    assert (first.rows["rows"], extract(spark, path, lake, **given).rows["rows"]) == (70, 3)
    for said, held in seen:
        assert held.get("bookmarks") == said.get("bookmarks"), "the lake has it first"
    assert extract(spark, path, lake, **given, state={}).rows["rows"] == 70
    assert extract(spark, path, lake, **given, full_refresh=["rows"]).rows["rows"] == 70
    assert extract(spark, path, lake, **given, full_refresh=True).rows["rows"] == 70
    with pytest.raises(LockLost):
        extract(
            spark,
            path,
            lake,
            **given,
            emit=lambda state: kept.change(lambda there, _again: type(there)({}) if there else there),
        )


def test_a_command_goes_on_too_and_its_config_is_not_compared(spark: Any, tmp_path: Path) -> None:
    tap, lake, config = app(tmp_path, FOREIGN, "tap_foreign"), tmp_path / "lake", tmp_path / "config.json"
    given = ("extract", lake, "--exec", f"{sys.executable} {tap}", "--tap-id", "any", "-c", config)

    def ids(*more: str) -> list[int]:
        done = burler(*given, "--select", "one,two", *more)
        assert done.code == 0, done.stderr
        return [row["id"] for row in rows_of(lake, "any", "one")]

    config.write_text('{"token": "hush", "account": "a"}')
    assert ids() == [0, 1, 2]
    config.write_text('{"token": "hush", "account": "b"}')
    assert ids() == [0, 1, 2, 3, 4, 5]
    state = json.loads((lake / "raw/any/state.json").read_text())
    assert state["value"] == {"bookmarks": {"one": {"id": 6}, "two": {"id": 6}}} and state["config"] is None
    assert ids("--full-refresh=one")[6:] == [0, 1, 2]
    (version,) = load(open_store(str(lake)), "any", "one").schema_lines.values()
    assert json.loads(version)["bookmark_properties"] == ["id"], "what the tap said, not what discovery had said"
    assert len(rows_of(lake, "any", "two")) == 9
    assert burler(*given, "--full-refresh=noe").code == 2
