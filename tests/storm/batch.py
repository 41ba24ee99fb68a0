"""Batch files: taps of random kinds, killed, told to stop, cut off, without a disk, and gone on with."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storm.batch_files import rows_of
from storm.batch_plan import ENDINGS, Chapter, Plan, plan
from storm.batch_rows import is_as_it_was, place_of
from storm.harness import Program, messages_in, noted, position
from storm.places import Bucket, Folder
from storm.places import place_of as place_of_files
from support.cli import PYTHON

PROGRAM = Path(__file__).with_name("batch_taps.py")
TAP = "tap-batch-storm"
PATIENCE_SECONDS = 120.0
_LAST_WORD = re.compile(r"INFO BATCH: \d+ files? of ")  # the sink is closed; nothing is left to be stopped
_SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT, "stopped": signal.SIGTERM}
_CODES = {
    "closed": (0, 4),
    "stopped": (0, 143),
    "term": (0,),
    "int": (0,),
    "kill": (0, -9),
    "full": (0, 1),
    "rest": (0,),
}


@dataclass
class Ran:
    """How a run went. ``ending``: see ``Chapter``; the one that goes on to the end has "rest". ``cut``: see there.

    ``files``: all that are there now, by their URLs. ``early``: what was named before it was there. ``lost``: the files
    were on a disk that is gone now.
    """

    ending: str
    got: bytes
    code: int
    said: str
    files: dict[str, bytes]
    cut: float = 1.0
    early: list[str] = field(default_factory=list)
    lost: bool = False
    notes: Counter[str] = field(default_factory=Counter)


class Check:
    """Holds the runs of a story against its plan; knows the ``state`` to go on from.

    - No message names a file that is missing, short or torn: each is read whole by plain means, and each row compared
      with the source; at the moment its message comes, each file is there.
    - No torn line, but behind a SIGKILL and in a pipe that nobody reads.
    - A STATE covers only rows in files whose message came before it; ACTIVATE_VERSION comes behind all of its version.
    - What came before the STATE that a story goes on from, and what came after, together hold every row of the source.
    - Temporary files are left by SIGKILL alone, and are gone after the next run. Of final files without a message it
      leaves no more than were on their way.
    """

    def __init__(self, made: Plan) -> None:
        self.plan = made
        self.state: Mapping[str, Any] = {}
        self.figures: Counter[str] = Counter()
        self._safe: dict[str, set[int]] = {place: set() for place in made.places}
        """Rows of each place that were out before a STATE that was gone on from."""
        self._named: set[str] = set()
        self._orphans: set[str] = set()
        self._last: Output | None = None

    def take(self, ran: Ran) -> None:
        """See ``Check``."""
        # A signal to a process that has not begun, or is over, does what it does to any program.
        over = f"{TAP}: " in ran.said.replace(f"{TAP}: start", "") or _LAST_WORD.search(ran.said) is not None
        late = ran.code in (-signal.SIGTERM, -signal.SIGINT) and (not ran.got or over)
        assert ran.code in _CODES[ran.ending] or late, f"{ran.ending}: exit code {ran.code}"
        assert not ran.early, f"named before it was there: {ran.early[0]}"
        # An interruption that meets a callback of Python's own is eaten there, and told; the run ends all the same.
        eaten = ran.said.count("Exception ignored in: ")
        self.figures["interruptions eaten by a callback"] += eaten
        assert late or ran.ending == "kill" or ran.said.count("Traceback") <= eaten, f"a traceback, {ran.code}"
        messages = messages_in(ran.got, torn=ran.code not in (0, 1) or ran.ending == "closed")
        output = Output(self.plan, self.state, ran.files).take(messages)
        kept = output
        if ran.cut < 1:  # the reader has taken only so much, and goes on from a STATE in there
            kept = Output(self.plan, self.state, ran.files).take(messages[: int(len(messages) * ran.cut)])
        if ran.ending in ("term", "int", "rest") and output.named:
            output.check_end()
        self._files(ran, output.named)
        self.state, self._last = kept.state, output
        for place, rows in kept.covered_rows.items():
            self._safe[place] |= rows
        self.figures["batches"] += len(output.named)
        self.figures["states"] += output.states
        self.figures["rows"] += sum(len(rows) for rows in output.out.values())
        self.figures["given up, for nobody read"] += ran.code == 143
        self.figures[f"runs: {ran.ending}"] += 1
        self.figures += ran.notes
        if ran.ending == "full" and ran.code == 1:
            self.figures["disks that were full"] += 1
            assert "CRITICAL " in ran.said, "nothing was said"

    def _files(self, ran: Ran, named: set[str]) -> None:
        """No file is left but those that have a message, and what a kill met on its way."""
        killed = ran.ending == "kill" or ran.code == 143
        temporary = {url for url in ran.files if url.rpartition("/")[2].startswith(".")}
        assert killed or not temporary, f"left: {sorted(temporary)}"
        orphans = set(ran.files) - temporary - self._named - named - self._orphans
        most = len(self.plan.places) + 2 if killed else 0
        assert len(orphans) <= most, f"{len(orphans)} files without a message: {sorted(orphans)[:3]}"
        self.figures[f"files without a message: {ran.ending}"] += len(orphans)
        self.figures["temporary files of killed runs"] += len(temporary)
        if not ran.lost:
            self._orphans |= orphans
            self._named |= named

    def finish(self) -> None:
        """Nothing is missing: the rows of all messages up to each STATE that was gone on from, and those of the last
        run."""
        assert self._last is not None
        for place, count in self.plan.places.items():
            out = self._last.out[place] if place == "table" else self._last.out[place] | self._safe[place]
            lost = set(range(count)) - out
            assert not lost, f"{place}: {len(lost)} rows are lost: {sorted(lost)[:5]}; {self.state}"


class Output:
    """The messages of one run that began from ``state``.

    Raises:
        AssertionError: a row that is torn, or not the source's; a RECORD; a BATCH before its SCHEMA; a STATE that says
            more than what is in files of messages before it; ACTIVATE_VERSION amid the rows of its version.
    """

    def __init__(self, made: Plan, state: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
        self.plan, self.state, self._files = made, state, files
        self.out: dict[str, set[int]] = {place: set() for place in made.places}
        self.covered_rows: dict[str, set[int]] = {place: set() for place in made.places}
        """Rows that were out when the last STATE came."""
        self.named: set[str] = set()
        self.states = 0
        self.began = {place: covered(state, place) for place in made.places}
        self._schemas: set[str] = set()
        self._of_version: Counter[int | None] = Counter()

    def take(self, messages: list[dict[str, Any]]) -> Output:
        """All of them, one by one."""
        known = {"SCHEMA": self._schema, "BATCH": self._batch, "STATE": self._state, "ACTIVATE_VERSION": self._activate}
        for message in messages:
            assert message["type"] in known, f"a strange message: {message}"
            known[message["type"]](message)
        return self

    def _schema(self, message: dict[str, Any]) -> None:
        self._schemas.add(message["stream"])

    def _batch(self, message: dict[str, Any]) -> None:
        stream = message["stream"]
        assert stream in self._schemas, f"BATCH of '{stream}' before its SCHEMA"
        rows = rows_of(message, self.plan.format, self.plan.compression, self._files)
        assert len(rows) <= self.plan.batch_size, f"{len(rows)} rows in a file"
        for row in rows:
            assert is_as_it_was(stream, row, self.plan.size), f"not the source's: {row!r:.300}"
            self.out[place_of(stream, row)].add(int(row["id"]))
        self.named |= set(message["manifest"])
        if stream == "table":  # a part of it changes no state
            self._of_version[message.get("version")] += len(rows)

    def _activate(self, message: dict[str, Any]) -> None:
        rows = self._of_version[message["version"]]
        known = ((self.state.get("bookmarks") or {}).get("table") or {}).get("version")
        if rows or known is not None:  # else it says what the very first version is
            assert rows == self.plan.places["table"], f"ACTIVATE_VERSION after {rows} rows of its version"

    def _state(self, message: dict[str, Any]) -> None:
        for place in self.out:
            if place != "table":
                last = covered(message["value"], place)
                missing = set(range(self.began[place] + 1, last + 1)) - self.out[place]
                assert not missing, f"STATE is ahead: {place} {last}, not out: {sorted(missing)[:3]}"
        self.state = message["value"]
        self.states += 1
        self.covered_rows = {place: set(rows) for place, rows in self.out.items()}

    def check_end(self) -> None:
        """After an end in peace the STATE lags behind no row that is out.

        A file behind the last STATE may hold rows at the bookmarks, which came again: the STATE says them already.
        """
        for place, rows in self.out.items():
            if place != "table" and rows:
                last, most = covered(self.state, place), max(rows)
                assert last == most or (place == "log" and last == most - 1), f"{place}: {last} of {most} in the STATE"


def covered(state: Mapping[str, Any], place: str) -> int:
    """Up to which row a state covers a place; -1: none."""
    return noted(state, place) if place == "log" else position(state, place)


@dataclass(frozen=True)
class Batches:
    """The world. ``s3``: the endpoint of a server, if files are to lie there. ``endings``: of runs."""

    s3: str | None = None
    endings: tuple[str, ...] = ENDINGS
    at_a_time: int = 2

    def plan(self, seed: int) -> Plan:
        """See ``World``."""
        return plan(seed, endings=self.endings)

    def check(self, made: Plan) -> Check:
        """See ``World``."""
        return Check(made)

    def run(self, made: Plan, folder: Path, check: Check) -> Iterator[Ran]:
        """See ``World``."""
        files = place_of_files(folder, self.s3)
        for number, chapter in enumerate([*made.chapters, None]):
            with _disk(folder, files, chapter) as (place, notes):
                ran = _ran(made, chapter, folder, str(number), place, check.state)
            ran.lost, ran.notes = place is not files, notes
            yield ran


@contextlib.contextmanager
def _disk(
    folder: Path, files: Folder | Bucket, chapter: Chapter | None
) -> Iterator[tuple[Folder | Bucket, Counter[str]]]:
    """A disk of its own, that is soon full, where this may be made. Else files may not grow; the figures tell."""
    if chapter is None or chapter.ending != "full" or not chapter.disk or isinstance(files, Bucket):
        yield files, Counter()
        return
    place = folder / "disk"
    place.mkdir(exist_ok=True)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={max(chapter.limit, 8_192)}", "none", place]
    if os.geteuid() or subprocess.run(mounting, capture_output=True, check=False).returncode:
        yield files, Counter({"no disk may be mounted: a limit of bytes in its place": 1})
        return
    try:
        yield Folder(place), Counter({"disks of their own": 1})
    finally:
        subprocess.run(["umount", place], check=True)


def _ran(
    made: Plan, chapter: Chapter | None, folder: Path, name: str, place: Folder | Bucket, state: Mapping[str, Any]
) -> Ran:
    """The process, from its beginning to its end. Without a chapter it goes to the end of its source."""
    settings = made.config(place.url)
    tail = made.tail and (chapter is not None or "log" not in made.streams)
    if chapter is None and tail:
        settings["tail_max_rounds"] = 1
    args: list[Any] = [PYTHON, PROGRAM, *(["--tail"] if tail else [])]
    for flag, document in (("config", settings), ("state", dict(state))):
        path = folder / f"{flag}-{name}.json"
        path.write_text(json.dumps(document))
        args += [f"--{flag}", path]
    told = json.dumps(made.told() | {"rest": chapter is None})
    # A signal may leave a file half opened: that is no fault of anybody's.
    variables = {"STORM_PLAN": told, "PYTHONWARNINGS": "error,ignore::ResourceWarning", **place.environment}
    variables |= {"PYTHONUNBUFFERED": "1"} if made.unbuffered else {}
    ending = chapter.ending if chapter else "rest"
    full = chapter is not None and ending == "full" and not place.url.endswith("/disk")
    early: list[str] = []
    seen = 0

    def look(got: bytearray) -> None:
        """Files that are named must be there this very moment."""
        nonlocal seen
        end = got.rfind(b"\n") + 1
        for line in got[seen:end].split(b"\n"):
            if b'"BATCH"' in line:
                urls = json.loads(line)["manifest"]
                there = {place.begin + path for path in place.paths()} if isinstance(place, Bucket) else None
                early.extend(
                    url
                    for url in urls
                    if not (url in there if there is not None else Path(url.removeprefix("file://")).exists())
                )
        seen = end

    program = Program(
        args,
        folder,
        name,
        variables=variables,
        small_pipe=made.small_pipe or ending == "stopped",
        small_files=chapter.limit if full and chapter else None,
        reading={"look": look},
    )
    with program as tap:
        _strike(tap, made, chapter)
        code = tap.ended(PATIENCE_SECONDS)
        got = bytes(tap.reader.got)
    (folder / f"stdout-{name}.jsonl").write_bytes(got)
    files = {place.begin + path: place.read(path) or b"" for path in place.paths()}
    return Ran(ending, got, code, tap.stderr, files, chapter.cut if chapter else 1.0, early)


def _strike(tap: Program, made: Plan, chapter: Chapter | None) -> None:
    """What the chapter says, when it is time."""
    if chapter is None:
        return
    if chapter.ending == "full":
        if made.tail:  # without an end: it has to be told
            _lines(tap, made, 1 << 40)
            tap.send(signal.SIGTERM)
        return
    if chapter.ending == "kill" and chapter.lines is None and chapter.after < 0.05:
        tap.until(lambda: False, chapter.after * 10)  # before the first byte, or a little later
        tap.send(signal.SIGKILL)
        return
    _lines(tap, made, chapter.lines or 1)
    if chapter.lines is None:
        tap.until(lambda: False, chapter.after)
    if chapter.ending == "closed":
        tap.send(signal.SIGSTOP)  # so that nothing comes between the last look and the end
        stat = Path(f"/proc/{tap.pid}/stat")
        while tap.code is None and stat.read_text().rpartition(")")[2].split()[0] not in "TZX":
            time.sleep(0.001)
        tap.reader.leave()
        tap.stdout.close()
        tap.send(signal.SIGCONT)
        return
    if chapter.ending == "stopped":
        tap.reader.stop()
        tap.until(lambda: False, 0.2)
    tap.send(_SIGNALS[chapter.ending])


def _lines(tap: Program, made: Plan, lines: int) -> None:
    """Wait for so many, whatever the plan wants: there may be fewer."""
    quiet = 1.0 + made.batch_age_seconds if made.tail and made.batch_age_seconds < 10 else 5.0
    last, since = -1, time.monotonic()

    def enough() -> bool:
        nonlocal last, since
        now = len(tap.reader.got)
        if now != last:
            last, since = now, time.monotonic()
        return tap.reader.got.count(b"\n") >= lines or time.monotonic() > since + (quiet if now else 20.0)

    tap.until(enough, 20.0)
