"""Crashes: taps killed at random moments, gone on with from the last STATE that came through, killed again.

    python tests/runtime/crash.py 200 [first seed]

Each seed makes a source (``crashworld``, ``crashlines``), a tap over it (``crashtaps``) and a story (``crashstory``):
runs that end by SIGKILL or SIGTERM after a random number of bytes or seconds, runs in which a part of the source is
broken, and runs that come to their end, while the source grows. Every STATE is held against the rows before it
(``crashclaims``); in the end nothing may be missing, and nothing may have come that a run did not have to ask for.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import singer
from tapprocess import PYTHON, environment, messages_of

from storm.crashclaims import Ledger, Resumed
from storm.crashlines import lines_of
from storm.crashpipe import PATIENCE_SECONDS, read
from storm.crashstory import Chapter, story_of
from storm.crashworld import Phase, fails, rank, source_of

PROGRAM = Path(__file__).with_name("crashtaps.py")


class Story:
    """One seed, run by run."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.folder = folder
        self.lines = lines_of(seed)
        self.ledger = Ledger(self.lines)
        self.finished: Phase | None = None  # in which phase the last run came to its end in peace
        self.stderr = ""
        self.lines_of_state: list[str] = []

    def tell(self) -> Counter[str]:
        """All runs; figures of what happened.

        Raises:
            AssertionError: with everything one wants to know.
        """
        chapter: Chapter | None = None
        try:
            for chapter in story_of(self.seed):
                self._run(chapter)
        except AssertionError as error:
            lines = "\n".join(f"  {_said(line)}" for line in self.lines)
            raise AssertionError(
                f"seed {self.seed}: {error}\n{lines}\n  {chapter}\n  {self.folder}\n{self.stderr[-3000:]}"
            ) from error
        return self.ledger.figures

    def _run(self, chapter: Chapter) -> None:
        ledger, rng = self.ledger, random.Random(f"run {self.seed} {chapter.number}")
        ledger.scope = chapter.settings["state_scope"]
        unchanged = [line.name for line in self.lines if line.table and rng.random() < 0.3]
        config = chapter.config(unchanged if self.finished == chapter.phase else [])
        before = dict(ledger.state)
        got, code = self._process(chapter, config, rng)
        whole = got[: got.rfind(b"\n") + 1]
        if chapter.ending != "kill":
            assert whole == got, f"a torn line: {got[-200:]!r}"
        messages = messages_of(whole)
        ended = code == 0 and chapter.ending == "kill"
        if ended and chapter.cut == 1.0:
            ledger.figures["ended before the kill"] += 1
        if chapter.cut < 1.0:
            messages = messages[: int(len(messages) * chapter.cut)]
        ledger.run(messages, chapter.phase)
        self._judge(messages)
        self.lines_of_state += [json.dumps(message) for message in messages if message["type"] == "STATE"]
        ledger.figures[f"runs: {chapter.ending}"] += 1
        peace = chapter.ending == "end" and not chapter.share
        if chapter.ending == "kill":
            assert code in (0, -signal.SIGKILL), f"exit code {code}"
        elif chapter.ending == "term":
            assert code in (0, -signal.SIGTERM), f"exit code {code} after SIGTERM"
            if code == 0:
                self._is_exact(chapter)
        elif peace:
            assert code == 0, f"exit code {code} in peace"
            self._is_complete(chapter)
        else:
            self._is_healthy(chapter, code, config["unchanged"])
        gone_on = ledger.state == before and not messages
        self.finished = chapter.phase if peace else self.finished if gone_on else None

    def _process(self, chapter: Chapter, config: dict[str, Any], rng: random.Random) -> tuple[bytes, int]:
        folder, number = self.folder, chapter.number
        paths = {name: folder / f"{name}-{number}.json" for name in ("config", "state", "out")}
        paths["config"].write_text(json.dumps(config))
        args = [PYTHON, str(PROGRAM), "--config", str(paths["config"])]
        if self.ledger.state:
            paths["state"].write_text(json.dumps(self.ledger.state))
            if config["state_scope"] == "touched" and rng.random() < 0.5:
                paths["state"].write_text("\n".join(self.lines_of_state) + "\n")
            args += ["--state", str(paths["state"])]
        if chapter.out_file:
            args += ["--out-file", str(paths["out"])]
        expected = sum(
            len(row.data["text"]) + 120
            for line in self.lines
            if (begun := Resumed(line, chapter.phase, self.ledger.state))
            for row in begun.source.every()
            if begun.gives(row)
        )
        error_path = folder / f"stderr-{number}.txt"
        with error_path.open("wb") as stderr:
            process = subprocess.Popen(
                args, stdout=subprocess.PIPE, stderr=stderr, env=environment(CRASH_SEED=str(self.seed))
            )
            with process:
                got, patient = read(process, chapter, int(expected * chapter.at))
                code = process.wait(30)
        (folder / f"pipe-{number}.jsonl").write_bytes(got)
        self.stderr = error_path.read_text()
        assert patient, f"it hung: {PATIENCE_SECONDS} s"
        if chapter.ending != "kill":
            assert "Traceback" not in self.stderr, "a traceback"
        if chapter.out_file and paths["out"].exists():
            json.loads(paths["out"].read_bytes())  # whole, whenever the kill came
        return got, code

    def _judge(self, messages: list[dict[str, Any]]) -> None:
        """singer-python reads what came: its own parser, its own bookmarks."""
        for message in messages:
            if message["type"] in ("STATE", "SCHEMA", "ACTIVATE_VERSION"):
                parsed = singer.parse_message(json.dumps(message))
                assert parsed is not None, message
        state = self.ledger.state
        for line in self.lines:
            entry = (state.get("bookmarks") or {}).get(line.name) or {}
            assert singer.get_bookmark(state, line.name, "key") == entry.get("key")
        syncing = singer.get_currently_syncing(state)
        assert syncing is None or syncing in self.ledger.line_of, syncing

    def _is_exact(self, chapter: Chapter) -> None:
        """After SIGTERM a sorted stream's bookmark stands at the last row that is out; where it has substreams, at the
        first of those that were read ahead and have not had their children yet."""
        ahead = chapter.settings["parent_buffer_rows"]
        for line in self.lines:
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
            self.ledger.figures["exact after SIGTERM"] += 1

    def _is_complete(self, chapter: Chapter) -> None:
        """After a run that came to its end in peace."""
        state = self.ledger.state
        missing = self.ledger.missing(chapter.phase)
        assert not missing, f"{len(missing)} rows are missing: {missing[:3]}; {state}"
        self.ledger.check_tables(chapter.phase)
        assert "CRITICAL" not in self.stderr, "CRITICAL in peace"
        assert "currently_syncing" not in state, state["currently_syncing"]
        for line in self.lines:
            entry = (state.get("bookmarks") or {}).get(line.name) or {}
            assert "full_table" not in entry, entry
            if line.partitions == "asc":
                assert "partitions" not in entry, f"finished partitions did not collapse: {entry}"
            if line.table or line.signpost or line.strategy == "manual" or line.position:
                continue
            parts = source_of(line, chapter.phase).parts
            if line.partitions == "asc":
                parts = {0: [row for rows in parts.values() for row in rows]}
            for part, rows in parts.items():
                own = entry["partitions"][line.key_of(part)] if line.partitions == "none" and rows else entry
                if rows:
                    assert rank(line.kind, own["key"]) == max(row.n for row in rows), (line.name, part, own)

    def _is_healthy(self, chapter: Chapter, code: int, unchanged: list[str]) -> None:
        """A part of the source was broken: all else is out."""
        critical = self.stderr.count("CRITICAL ")
        assert (code, critical > 0) in ((0, False), (1, True)), f"exit code {code}, {critical} CRITICAL lines"
        known = self.ledger.line_of
        missing = [row for row in self.ledger.missing(chapter.phase) if known[row.stream].name not in unchanged]
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
        self.ledger.figures["runs: with failures"] += code


def _said(made: Any) -> str:
    """A line without what is so by default."""
    shown = (
        f"{one.name}={getattr(made, one.name)!r}" for one in fields(made) if getattr(made, one.name) != one.default
    )
    return f"{type(made).__name__}({', '.join(shown)})"


def one_seed(seed: int, folder: Path) -> Counter[str]:
    """One story; raises AssertionError with everything one wants to know."""
    own = folder / f"seed-{seed}"
    own.mkdir(parents=True, exist_ok=True)
    return Story(seed, own).tell()


def crash(seeds: int, folder: Path, first: int = 0, workers: int = 2) -> Counter[str]:
    """So many stories; what happened in them, summed up."""
    with ThreadPoolExecutor(workers) as pool:
        return sum(pool.map(lambda seed: one_seed(seed, folder), range(first, first + seeds)), Counter())


def main() -> None:
    """The stories from the command line; those that fail are told one by one, and their files are kept."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="crash-"))

    def told(seed: int) -> Counter[str] | None:
        try:
            return one_seed(seed, folder)
        except AssertionError as error:
            print(error, "\n", flush=True)
            return None

    with ThreadPoolExecutor(2) as pool:
        figures = list(pool.map(told, range(first, first + seeds)))
    for what, count in sorted(sum((one for one in figures if one), Counter()).items()):
        print(f"{count:9}  {what}")
    failed = [seed for seed, one in enumerate(figures, first) if one is None]
    print(f"{seeds} seeds, {time.monotonic() - begun:.0f} s, {len(failed)} failed {failed} {folder if failed else ''}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
