"""Tiny storms of each world (``make storm`` is the whole of it), and that their checks can fail: each is shown outcomes
in which a row is missing, or a STATE comes before its rows."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from storm.batch import Batches
from storm.crash import Crashes
from storm.harness import Check, World, tell
from storm.lake import PARTS, Lakes
from storm.lake_state import States
from storm.signals import Signals
from storm.signals_plan import COMBINATIONS, MODES, READERS, SIGNALS


class Kept:
    """A world whose outcomes are kept."""

    def __init__(self, world: World, made: Callable[[Any], Any] = lambda plan: plan) -> None:
        self.world, self.made = world, made
        self.outcomes: list[Any] = []
        self.plan_of_it: Any = None
        self.at_a_time = 1

    def plan(self, seed: int) -> Any:
        self.plan_of_it = self.made(self.world.plan(seed))
        return self.plan_of_it

    def check(self, plan: Any) -> Check:
        return self.world.check(plan)

    def run(self, plan: Any, folder: Path, check: Any) -> Iterable[Any]:
        for outcome in self.world.run(plan, folder, check):
            self.outcomes.append(copy.deepcopy(outcome))
            yield outcome

    def again(self, doctored: Callable[[list[Any]], None] = lambda outcomes: None) -> None:
        """Show a new check what came, as it is or doctored."""
        outcomes, check = copy.deepcopy(self.outcomes), self.world.check(self.plan_of_it)
        doctored(outcomes)
        for outcome in outcomes:
            check.take(outcome)
        check.finish()


def told(world: World, seed: int, folder: Path) -> dict[str, int]:
    """The figures of a story in which nothing was wrong."""
    told = tell(world, seed, folder)
    assert not told.failure, told.failure
    return told.figures


def without(kind: str) -> Callable[[list[Any]], None]:
    """The last message of a kind is taken out, wherever it came."""

    def doctored(outcomes: list[Any]) -> None:
        last = [line for ran in outcomes for line in ran.got.split(b"\n") if b'{"type":"%s"' % kind.encode() in line][
            -1
        ]
        key = what(last)
        for ran in outcomes:
            ran.got = b"\n".join(line for line in ran.got.split(b"\n") if what(line) != key)

    def what(line: bytes) -> Any:
        message = json.loads(line) if line.endswith(b"}") else {}
        return message.get("stream"), message.get("record"), message.get("manifest")

    return doctored


def state_first(outcomes: list[Any]) -> None:
    """The last STATE of each run is moved before all its rows."""
    for ran in outcomes:
        lines = ran.got.split(b"\n")
        states = [at for at, line in enumerate(lines) if b'{"type":"STATE"' in line]
        rows = [at for at, line in enumerate(lines) if b'{"type":"RECORD"' in line or b'{"type":"BATCH"' in line]
        if states and rows:
            lines.insert(rows[0], lines.pop(states[-1]))
        ran.got = b"\n".join(lines)


def torn(outcomes: list[Any]) -> None:
    """The last line of the last run is cut."""
    outcomes[-1].got = outcomes[-1].got[:-5]


def seed_of(tail: bool, **wanted: Any) -> int:
    """The first seed of a story of signals that is so."""
    return next(seed for seed in count() if wanted.items() <= vars_of(Signals(tail).plan(seed)).items())


def vars_of(plan: Any) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in plan.__dataclass_fields__}


def test_the_stories_of_signals_have_each_mode_reader_and_signal_once():
    plans = [Signals(tail=True).plan(seed) for seed in range(len(COMBINATIONS[True]))]
    found = {(plan.mode, plan.size, plan.unbuffered, plan.reader, plan.signal) for plan in plans}
    assert len(found) == len(plans) == len(MODES) * 2 * 2 * len(READERS) * len(SIGNALS)
    assert plans == [Signals(tail=True).plan(seed) for seed in range(len(plans))]


# Only the whole storm is strict about seconds: here, another program may have the processor.
@pytest.mark.parametrize("tail", [False, True])
def test_signals(tail: bool, tmp_path: Path):
    seed = seed_of(tail, mode="recv", reader="fast", size=200_000, order="asc", signal="SIGTERM", moment="stuck")
    story = Kept(Signals(tail, limit_seconds=30.0))
    assert told(story, seed, tmp_path)["stopped in peace"] == 1
    story.again()
    for doctored, says in ((without("RECORD"), "STATE is ahead"), (state_first, "STATE is ahead"), (torn, "torn")):
        with pytest.raises(AssertionError, match=says):
            story.again(doctored)


def test_sigkill_of_tails(tmp_path: Path):
    assert told(Crashes(tail=True), 5, tmp_path)["runs: kill"] == 1
    assert told(Signals(tail=True, kill=True), 1, tmp_path)["kills"] >= 1


def test_crashes(tmp_path: Path):
    story = Kept(Crashes())

    def is_plain(seed: int) -> bool:
        plan = story.plan(seed)
        plain = all(line.order == "asc" and line.rows > 9 and not (line.table or line.late) for line in plan.lines)
        return plain and [chapter.ending for chapter in plan.chapters] == ["kill", "end"]

    assert told(story, next(filter(is_plain, count())), tmp_path)["runs: kill"] == 1
    story.again()
    for doctored in (without("RECORD"), state_first):
        with pytest.raises(AssertionError, match=r"ahead|missing"):
            story.again(doctored)


def test_batch_files(tmp_path: Path):
    def one_run(plan: Any) -> Any:
        return replace(plan, count=min(plan.count, 300), chapters=plan.chapters[:1])

    story = Kept(Batches(endings=("term",)), one_run)
    seed = next(seed for seed in count() if set(story.plan(seed).streams) == {"parts", "rising"})
    assert told(story, seed, tmp_path)["batches"] > 1
    story.again()
    missed = r"STATE is ahead|rows are lost|files without a message"
    for doctored, says in ((without("BATCH"), missed), (state_first, "STATE is ahead"), (torn, "torn")):
        with pytest.raises(AssertionError, match=says):
            story.again(doctored)

    def without_a_file(outcomes: list[Any]) -> None:
        for ran in outcomes:
            ran.files.pop(min(outcomes[-1].files), None)

    with pytest.raises(AssertionError, match="named, but missing"):
        story.again(without_a_file)
    assert told(Kept(Batches(endings=("full",)), one_run), 27, tmp_path)["disks that were full"] == 1


def test_a_lake(tmp_path: Path):
    story = Kept(Lakes(seconds=2.0, parts=PARTS[:2]))
    assert told(story, 1, tmp_path)["acknowledged commits"] > 2
    story.again()
    path = "raw/tap-storm/one/manifest.json"

    def without_a_file(outcomes: list[Any]) -> None:
        manifest = json.loads(outcomes[0].files[path])
        for name in manifest["files"][-3:]:
            manifest["files"].remove(name)
        outcomes[0].files[path] = json.dumps(manifest).encode()

    def acknowledged_too_early(outcomes: list[Any]) -> None:
        outcomes[0].ledgers[0].acked += 3

    for doctored in (without_a_file, acknowledged_too_early):
        with pytest.raises(AssertionError, match="lost"):
            story.again(doctored)


def test_a_lake_that_keeps_the_state(tmp_path: Path):
    story = Kept(States(kills=2))
    assert told(story, 3, tmp_path)["runs to the end"] > 0
    story.again()

    def ahead(outcomes: list[Any]) -> None:
        outcomes[-1].rows.popitem()

    def said_too_early(outcomes: list[Any]) -> None:
        outcomes[-1].said["orders", ""] += 1

    for doctored, says in ((ahead, "state is ahead"), (said_too_early, "before the lake had it")):
        with pytest.raises(AssertionError, match=says):
            story.again(doctored)


@pytest.mark.nightly
def test_files_on_s3(tmp_path: Path):
    """As above, on another store: one server and some seconds more."""
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    from storm.places import s3_endpoint

    with s3_endpoint() as endpoint:
        assert told(Batches(endpoint, endings=("kill", "closed")), 1, tmp_path)["batches"] > 1
        assert told(Lakes(endpoint, seconds=4.0, parts=PARTS[:2]), 2, tmp_path)["acknowledged commits"] > 3


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("format", range(4))
def test_tables_of_each_format(format: int, tmp_path: Path):
    """Sessions, and exports killed one by one: half a minute each."""
    from storm.spark_tables import Tables

    story = Kept(Tables(big=False), lambda plan: replace(plan, kills=2))
    assert told(story, format, tmp_path)["exports killed"] == 2

    def without_a_row(outcomes: list[Any]) -> None:
        next(iter(outcomes[-1].tables.values())).pop()

    with pytest.raises(AssertionError, match="1 rows are missing"):
        story.again(without_a_row)


@pytest.mark.spark
@pytest.mark.nightly
def test_spark(tmp_path: Path):
    """Drivers and workers killed: minutes."""
    from storm.spark_extract import Extractions
    from storm.spark_streaming import Queries
    from storm.spark_tables import Tables

    told(Tables(big=True), 1, tmp_path)
    extractions = Kept(Extractions(rounds=2))
    told(extractions, 5, tmp_path)
    told(Queries(kills=1, kinds=("worker",), longest_seconds=2.0), 5, tmp_path)

    def state_ahead(outcomes: list[Any]) -> None:
        outcomes[-1].lake["rows"] = outcomes[-1].lake["rows"][:-600]

    with pytest.raises(AssertionError, match="are not in the lake"):
        extractions.again(state_ahead)
