"""Crashes: taps of every kind, killed at random moments, gone on with from the last STATE that came, killed again.

Each seed makes a source (``crashworld``, ``crashlines``), a tap over it (``crashtaps``) and a story: runs that end by
SIGKILL or SIGTERM after a random number of bytes or seconds, runs in which a part of the source is broken, and runs
that come to their end, while the source grows. Every STATE is held against the rows before it (``crashclaims``); in the
end nothing may be missing, no table emptied, and nothing may have come that a run did not have to ask for.
"""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import singer

from storm.crashclaims import Ledger, Resumed
from storm.crashlines import lines_of
from storm.crashworld import Line, Phase, Row, fails, rank, source_of
from storm.harness import Program, messages_in
from support.cli import PYTHON

PROGRAM = Path(__file__).with_name("crashtaps.py")


@dataclass(frozen=True)
class Chapter:
    """One run: how the source stands, and how it ends.

    ``ending``: kill, term, or end (it comes to its end by itself). ``at``: after which share of the bytes that are to
    be expected, or (negative) after how many seconds. ``cut``: a part of what came through is lost with the target.
    """

    number: int
    phase: Phase
    ending: str
    at: float
    cut: float
    share: float  # of the author's functions that break
    reader_nap: float
    small_pipe: bool
    out_file: bool
    settings: dict[str, Any] = field(default_factory=dict)

    def config(self, unchanged: list[str]) -> dict[str, Any]:
        mine = {"grown": self.phase.grown, "shrunk": self.phase.shrunk, "run": self.number, "share": self.share}
        return {**mine, "unchanged": unchanged, **self.settings}


@dataclass(frozen=True)
class Plan:
    """The lines of streams of a tap, and what happens to it, run by run; the last one comes to its end in peace."""

    seed: int
    tail: bool
    lines: tuple[Line, ...]
    chapters: tuple[Chapter, ...]

    def __str__(self) -> str:
        return "\n".join(f"  {_said(one)}" for one in (*self.lines, *self.chapters))


def _said(made: Any) -> str:
    """Without what is so by default."""
    shown = (
        f"{one.name}={getattr(made, one.name)!r}" for one in fields(made) if getattr(made, one.name) != one.default
    )
    return f"{type(made).__name__}({', '.join(shown)})"


def story_of(seed: int, *, tail: bool) -> Plan:
    """The plan of a seed. ``tail``: each run polls one to three times."""
    rng = random.Random(f"story {seed}")
    scope = rng.choice(["full", "full", "touched"])
    chapters: list[Chapter] = []
    grown = 0
    for part in range(rng.choice([1, 1, 2])):
        endings = [rng.choice(["kill", "kill", "kill", "term", "end"]) for _ in range(rng.randint(1, 4 - 2 * part))]
        for i, ending in enumerate([*endings, "peace"]):
            grown += grown < 3 and (i > 0 or part > 0) and rng.random() < 0.35
            chapters.append(
                Chapter(
                    number=len(chapters),
                    phase=Phase(grown, part > 0),
                    ending="end" if ending == "peace" else ending,
                    at=rng.random() if rng.random() < 0.7 else -rng.choice([0.2, 0.5, 1.0]) * (0.3 + rng.random()),
                    cut=rng.random() if ending == "kill" and rng.random() < 0.5 else 1.0,
                    share=rng.choice([0.02, 0.1, 0.3]) if ending == "end" else 0.0,
                    reader_nap=rng.choice([0.0, 0.0, 0.0, 0.002]),
                    small_pipe=rng.random() < 0.7,
                    out_file=rng.random() < 0.3,
                    settings={"state_scope": scope, **_settings(rng, tail=tail)},
                )
            )
    return Plan(seed, tail, tuple(lines_of(seed)), tuple(chapters))


def _settings(rng: random.Random, *, tail: bool) -> dict[str, Any]:
    made: dict[str, Any] = {
        "workers": rng.choice([1, 1, 3]),
        "page_max_rows": rng.choice([1, 3, 20, 1000]),
        "page_max_age_seconds": rng.choice([0.01, 0.1, 1.0]),
        "parent_buffer_rows": rng.choice([1, 4, 100]),
        "parent_buffer_seconds": rng.choice([0.005, 1.0]),
        "nap": rng.choice([0.0, 0.02, 0.2]),
    }
    if rng.random() < 0.2:
        made["partition_workers"] = rng.choice([1, 3])
    if tail:
        made |= {
            "tail": True,
            "tail_max_rounds": rng.randint(1, 3),
            "new_record_polling_interval_ms": rng.choice([1, 20]),
            "state_message_min_interval_ms": rng.choice([1, 50, 60_000]),
        }
    return made


@dataclass
class Ran:
    """How a run went. ``out``: what stands in its ``--out-file``, if it was told one and has made it."""

    chapter: Chapter
    got: bytes
    code: int
    said: str
    unchanged: list[str]
    out: bytes = b""


class TailLedger(Ledger):
    """What came, where a row may come again in a later round of the same run: a part of the one before has failed."""

    def _asks(self, begun: Resumed, row: Row) -> bool:
        """The rounds of a run go on from what it has reached, of which its STATEs tell some."""
        return begun.gives(row) or Resumed(begun.line, begun.phase, self.state).gives(row)

    def _row(self, row: Row, message: dict[str, Any], came: Counter[Any]) -> None:
        if came[row.uid]:
            self.figures["twice in one run"] += 1
            came = Counter()
        super()._row(row, message, came)


class Check:
    """Holds the runs of a story against its source; knows the ``state`` to go on from."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.ledger = (TailLedger if plan.tail else Ledger)(plan.lines)
        self.figures = self.ledger.figures
        self.finished: Phase | None = None  # in which phase the last run came to its end in peace
        self.states: list[str] = []

    @property
    def state(self) -> dict[str, Any]:
        return self.ledger.state

    def take(self, ran: Ran) -> None:
        """See ``harness.Check``."""
        chapter, ledger = ran.chapter, self.ledger
        ledger.scope = chapter.settings["state_scope"]
        before = dict(ledger.state)
        killed = chapter.ending == "kill"
        messages = messages_in(ran.got, torn=killed)
        assert killed or "Traceback" not in ran.said, "a traceback"
        if ran.out:
            json.loads(ran.out)  # whole, whenever the kill came
        self.figures["ended before the kill"] += killed and ran.code == 0 and chapter.cut == 1.0
        messages = messages[: int(len(messages) * chapter.cut)]
        ledger.run(messages, chapter.phase)
        self._judge(messages)
        self.states += [json.dumps(message) for message in messages if message["type"] == "STATE"]
        self.figures[f"runs: {chapter.ending}"] += 1
        peace = chapter.ending == "end" and not chapter.share
        if killed:
            assert ran.code in (0, -signal.SIGKILL), f"exit code {ran.code}"
        elif chapter.ending == "term":
            assert ran.code in (0, -signal.SIGTERM), f"exit code {ran.code} after SIGTERM"
            if ran.code == 0:
                self._is_exact(chapter)
        elif peace:
            assert ran.code == 0, f"exit code {ran.code} in peace"
            self._is_complete(ran)
        else:
            self._is_healthy(ran)
        gone_on = ledger.state == before and not messages
        self.finished = chapter.phase if peace else self.finished if gone_on else None

    def finish(self) -> None:
        """Its last run has come to its end in peace: see ``take``."""

    def _judge(self, messages: list[dict[str, Any]]) -> None:
        """singer-python reads what came: its own parser, its own bookmarks."""
        for message in messages:
            if message["type"] in ("STATE", "SCHEMA", "ACTIVATE_VERSION"):
                parsed = singer.parse_message(json.dumps(message))
                assert parsed is not None, message
        state = self.ledger.state
        for line in self.plan.lines:
            entry = (state.get("bookmarks") or {}).get(line.name) or {}
            assert singer.get_bookmark(state, line.name, "key") == entry.get("key")
        syncing = singer.get_currently_syncing(state)
        assert syncing is None or syncing in self.ledger.line_of, syncing

    def _is_exact(self, chapter: Chapter) -> None:
        """After SIGTERM a sorted stream's bookmark stands at the last row that is out; where it has substreams, at the
        first of those that were read ahead and have not had their children yet."""
        ahead = chapter.settings["parent_buffer_rows"]
        for line in self.plan.lines:
            unsure = line.late or line.position or line.signpost or line.table or line.retry or line.rollup
            if (
                unsure
                or line.order != "asc"
                or line.strategy == "manual"
                or (line.depth and line.resume == "exclusive")
            ):
                continue
            begun = Resumed(line, chapter.phase, self.ledger.state)
            for part, rows in begun.source.parts.items():
                mark = begun.bookmark(part)
                beyond = [row.n for row in rows if row.uid in self.ledger.out and row.n > mark]
                if line.resume == "exclusive" and beyond:  # its greatest value is not safe
                    beyond = [n for n in beyond if n < beyond[-1]]
                most = ahead + 40 if line.depth else 0  # 40 rows the author may give in one go
                assert len(beyond) <= most, f"{line.name}: the bookmark lags by {len(beyond)}: {self.ledger.state}"
            self.figures["exact after SIGTERM"] += 1

    def _is_complete(self, ran: Ran) -> None:
        """After a run that came to its end in peace."""
        state = self.ledger.state
        missing = self.ledger.missing(ran.chapter.phase)
        assert not missing, f"{len(missing)} rows are missing: {missing[:3]}; {state}"
        self.ledger.check_tables(ran.chapter.phase)
        assert "CRITICAL" not in ran.said, "CRITICAL in peace"
        assert "currently_syncing" not in state, state["currently_syncing"]
        for line in self.plan.lines:
            entry = (state.get("bookmarks") or {}).get(line.name) or {}
            assert "full_table" not in entry, entry
            if line.partitions == "asc":
                assert "partitions" not in entry, f"finished partitions did not collapse: {entry}"
            if line.table or line.signpost or line.strategy == "manual" or line.position:
                continue
            parts = source_of(line, ran.chapter.phase).parts
            if line.partitions == "asc":
                parts = {0: [row for rows in parts.values() for row in rows]}
            for part, rows in parts.items():
                own = entry["partitions"][line.key_of(part)] if line.partitions == "none" and rows else entry
                if rows:
                    assert rank(line.kind, own["key"]) == max(row.n for row in rows), (line.name, part, own)

    def _is_healthy(self, ran: Ran) -> None:
        """A part of the source was broken: all else is out."""
        chapter, code = ran.chapter, ran.code
        critical = ran.said.count("CRITICAL ")
        assert (code, critical > 0) in ((0, False), (1, True)), f"exit code {code}, {critical} CRITICAL lines"
        known = self.ledger.line_of
        missing = [row for row in self.ledger.missing(chapter.phase) if known[row.stream].name not in ran.unchanged]
        assert not missing or code == 1, f"missing, and nothing said so: {missing[:3]}"
        for row in missing:
            line = known[row.stream]
            calls: list[tuple[str, Any]] = [("top", row.part), ("kids", row.top)]
            if line.depth > 1:
                kids = source_of(line, chapter.phase).kids[row.top]
                calls += [("grand", (row.top, kid.data["id"])) for kid in kids]
            excused = any(fails(line, chapter.number, chapter.share, level, ident) for level, ident in calls)
            assert excused, (
                f"its function did not break: {row.stream} {row.data['id']} of {row.top}, partition {row.part}"
            )
        self.figures["runs: with failures"] += code


@dataclass(frozen=True)
class Crashes:
    """The world. ``tail``: each run polls one to three times."""

    tail: bool = False
    at_a_time: int = 2

    def plan(self, seed: int) -> Plan:
        """See ``World``."""
        return story_of(seed, tail=self.tail)

    def check(self, plan: Plan) -> Check:
        """See ``World``."""
        return Check(plan)

    def run(self, plan: Plan, folder: Path, check: Check) -> Iterator[Ran]:
        """See ``World``."""
        for chapter in plan.chapters:
            rng = random.Random(f"run {plan.seed} {chapter.number}")
            unchanged = [line.name for line in plan.lines if line.table and rng.random() < 0.3]
            yield _ran(plan, chapter, folder, check, unchanged if check.finished == chapter.phase else [], rng)


def _ran(plan: Plan, chapter: Chapter, folder: Path, check: Check, unchanged: list[str], rng: random.Random) -> Ran:
    state, number = check.state, chapter.number
    paths = {name: folder / f"{name}-{number}.json" for name in ("config", "state", "out")}
    paths["config"].write_text(json.dumps(chapter.config(unchanged)))
    args: list[Any] = [PYTHON, PROGRAM, "--config", paths["config"]]
    if state:
        lines = chapter.settings["state_scope"] == "touched" and rng.random() < 0.5
        paths["state"].write_text("\n".join(check.states) + "\n" if lines else json.dumps(state))
        args += ["--state", paths["state"]]
    args += ["--out-file", paths["out"]] if chapter.out_file else []
    expected = sum(
        len(row.data["text"]) + 120
        for line in plan.lines
        if (begun := Resumed(line, chapter.phase, state))
        for row in begun.source.every()
        if begun.gives(row)
    )
    blow = {"kill": signal.SIGKILL, "term": signal.SIGTERM}.get(chapter.ending)
    struck = threading.Event()

    def strike() -> None:
        if not struck.is_set():
            struck.set()
            tap.send(blow or 0)

    def look(got: bytearray) -> None:
        if blow and chapter.at >= 0 and len(got) >= expected * chapter.at:
            strike()
        if chapter.reader_nap and not struck.is_set():
            time.sleep(chapter.reader_nap)

    variables = {"CRASH_SEED": str(plan.seed)}
    tap = Program(args, folder, str(number), variables=variables, small_pipe=chapter.small_pipe)
    tap.read(look=look)
    with tap:
        if blow and chapter.at < 0:
            if blow == signal.SIGTERM:  # until the first byte nobody listens
                tap.until(tap.reader.begun.is_set)
            tap.until(lambda: False, -chapter.at)
            strike()
        code = tap.ended(90.0)
        got = bytes(tap.reader.got)
    (folder / f"stdout-{number}.jsonl").write_bytes(got)
    out = paths["out"].read_bytes() if paths["out"].exists() else b""
    return Ran(chapter, got, code, tap.stderr, unchanged, out)
