"""A lake: several writers of the same streams, killed, paused for longer than locks live, told to stop."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storm.harness import Program
from storm.places import Bucket, Folder, place_of
from support.cli import PYTHON

TAP = "tap-storm"
ROOT = f"raw/{TAP}"
TTL_SECONDS = 0.8
PATIENCE_SECONDS = 150.0
ROWS_A_STATE = 3
MOST_ROWS = 240  # a run's rows fit into a pipe, so that nobody waits for a process that is stopped

ENDINGS = {"end": 3, "kill": 6, "pause": 4, "pause and kill": 1, "term": 1, "closed": 1}
"""How runs end, and how often of all: at the end of input; SIGKILL; SIGSTOP for longer than the ttl, then SIGCONT; the
same without SIGCONT; SIGTERM; the reader of its STATEs goes away."""
CODES = {
    "rest": {0},
    "end": {0, 3},
    "kill": {-signal.SIGKILL, 0, 3},
    "pause": {0, 3},
    "pause and kill": {-signal.SIGKILL, 0, 3},
    "term": {0, 3, 143, -signal.SIGTERM},
    "closed": {0, 3, 4},
}


@dataclass(frozen=True)
class Part:
    """What one place among the writers writes: ``variant`` makes schema versions of one stream."""

    number: int
    streams: tuple[str, ...]
    variant: int = 0


PARTS = (
    Part(0, ("one",)),
    Part(1, ("one",)),
    Part(2, ("one",), variant=1),
    Part(3, ("two",)),
    Part(4, ("two",), variant=1),
    Part(5, ("one", "two", "three"), variant=1),
)
"""Two writers of one schema version, one of another; and one of several streams, among them those of others."""


@dataclass(frozen=True)
class Plan:
    """One storm: writers for so many seconds, then a last run of each."""

    seed: int
    seconds: float
    parts: tuple[Part, ...] = PARTS

    @property
    def streams(self) -> list[str]:
        """Of all parts."""
        return sorted({stream for part in self.parts for stream in part.streams})


@dataclass
class Ledger:
    """What a slot knows. ``acked``: number of the last row that a STATE has covered; ``sent``: the last ever.
    ``tails``: runs that give their locks back after each commit."""

    part: Part
    acked: int = 0
    sent: int = 0
    runs: int = 0
    states: int = 0
    tails: set[int] = field(default_factory=set)
    figures: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


@dataclass
class Outcome:
    """What a storm has left behind: what its writers were told, and all files. ``failures``: seen on the way."""

    ledgers: list[Ledger]
    files: Mapping[str, bytes]
    failures: list[str]
    looks: int = 0


class Slot:
    """The runs of one part, from one thread: one process after the other, each goes on where the last STATE says."""

    def __init__(self, part: Part, seed: int, place: Folder | Bucket, folder: Path) -> None:
        self.ledger = Ledger(part)
        self._part, self._place, self._folder = part, place, folder
        self._chance = random.Random(f"{seed}-{part.number}")

    def go(self, until: float) -> None:
        """Runs, one after the other, until then (``time.monotonic``)."""
        while time.monotonic() < until and not self.ledger.failures:
            ending = self._chance.choices(list(ENDINGS), list(ENDINGS.values()))[0]
            self.run(ending, self._chance.randrange(ROWS_A_STATE, MOST_ROWS))

    def run(self, ending: str, rows: int) -> None:
        """One process, from its beginning to its end."""
        ledger = self.ledger
        ledger.runs += 1
        name = f"slot {self._part.number}, run {ledger.runs}, {ending}"
        variables = {"PYTHONFAULTHANDLER": "1", **self._place.environment}
        words = self._words()
        with Program(words, self._folder, f"{self._part.number}-{ledger.runs}", variables=variables, stdin=True) as one:
            listener = threading.Thread(target=self._listen, args=(one, ending, name), daemon=True)
            listener.start()
            guard = threading.Timer(PATIENCE_SECONDS, one.send, (signal.SIGABRT,))  # says where it stands
            guard.start()
            try:
                self._drive(one, ending, rows)
                code = one.process.wait()
            finally:
                hung = not guard.is_alive()
                guard.cancel()
            listener.join()
        said = one.stderr
        if hung or code not in CODES[ending] or (code >= 0 and "Traceback" in said):
            ledger.failures.append(f"{name}: exit code {code}{', it hung' if hung else ''}\n{said}")
        ledger.figures[f"ended by {ending}"] += 1
        ledger.figures[f"exit code {code}"] += 1
        if code == 3:
            ledger.figures["waited in vain" if "waited" in said else "put aside"] += 1

    def _words(self) -> list[str]:
        options = {
            "--tap-id": TAP,
            "--max-file-records": self._chance.choice((ROWS_A_STATE, 10, 40)),
            "--max-file-age-seconds": self._chance.choice((0.1, 0.5)),
            "--lock-ttl-seconds": TTL_SECONDS,
            "--lock-timeout-seconds": 30,
        }
        given = [str(word) for pair in options.items() for word in pair]
        if self._chance.random() < 0.2:
            self.ledger.tails.add(self.ledger.runs)
            given.append("--tail")
        return [PYTHON, "-m", "burler", "lake", "write", self._place.url, *given]

    def _listen(self, one: Program, ending: str, name: str) -> None:
        """STATE lines, as they come out."""
        leave_after = self._chance.randrange(1, 6) if ending == "closed" else None
        with contextlib.suppress(ValueError):
            for line in one.stdout:
                if not line.endswith(b"\n"):
                    break  # torn by a kill
                message = json.loads(line)
                number = message["value"]["n"]
                if message["type"] != "STATE" or not self.ledger.acked <= number <= self.ledger.sent:
                    self.ledger.failures.append(f"{name}: {line!r} after {self.ledger.acked}")
                self.ledger.acked = number
                self.ledger.states += 1
                if leave_after is not None and self.ledger.states % 7 >= leave_after:
                    break
        one.stdout.close()

    def _drive(self, one: Program, ending: str, rows: int) -> None:
        states = self.ledger.states
        self._send(one, b"".join(self._schema(stream) for stream in self._part.streams))
        first = number = self.ledger.acked + 1
        strike = self._chance.random() * 3.0 if self._chance.random() < 0.2 else None  # else: once a STATE is out
        begun, after = time.monotonic(), self._chance.random() * 0.5
        struck = ending in ("end", "closed", "rest")
        while number < first + rows and one.code is None:
            self._send(one, self._rows(number))
            number += ROWS_A_STATE
            time.sleep(self._chance.choice((0.0, 0.0, 0.01, 0.05)))
            if not struck and strike is None and self.ledger.states > states:
                strike = time.monotonic() - begun + after
            if not struck and strike is not None and time.monotonic() - begun >= strike:
                struck = True
                self._strike(one, ending)
        deadline = time.monotonic() + 5
        while not struck and one.code is None:
            due = strike is not None and time.monotonic() - begun >= strike
            if due or self.ledger.states > states or time.monotonic() > deadline:
                struck = True
                self._strike(one, ending)
            time.sleep(0.01)
        with contextlib.suppress(OSError):
            one.process.stdin.close()  # type: ignore[union-attr]

    def _strike(self, one: Program, ending: str) -> None:
        if ending.startswith("pause"):
            one.send(signal.SIGSTOP)
            time.sleep(TTL_SECONDS * self._chance.uniform(1.1, 3.0))
        one.send({"term": signal.SIGTERM, "pause": signal.SIGCONT}.get(ending, signal.SIGKILL))

    def _send(self, one: Program, data: bytes) -> None:
        with contextlib.suppress(OSError):  # it has ended
            one.process.stdin.write(data)  # type: ignore[union-attr]
            one.process.stdin.flush()  # type: ignore[union-attr]

    def _schema(self, stream: str) -> bytes:
        properties = {"slot": {"type": "integer"}, "run": {"type": "integer"}, "n": {"type": "integer"}}
        extra = {f"v{self._part.variant}": {"type": ["null", "string"]}} if self._part.variant else {}
        schema = {"type": "object", "properties": properties | extra}
        return _line({"type": "SCHEMA", "stream": stream, "key_properties": ["slot", "n"], "schema": schema})

    def _rows(self, number: int) -> bytes:
        """Some rows, one stream after the other, and the STATE behind them."""
        lines = []
        for n in range(number, number + ROWS_A_STATE):
            record = {"slot": self._part.number, "run": self.ledger.runs, "n": n}
            stream = self._part.streams[n % len(self._part.streams)]
            lines.append(_line({"type": "RECORD", "stream": stream, "record": record}))
        last = number + ROWS_A_STATE - 1
        self.ledger.sent = max(self.ledger.sent, last)
        lines.append(_line({"type": "STATE", "value": {"slot": self._part.number, "n": last}}))
        return b"".join(lines)


def _line(message: object) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Watch(threading.Thread):
    """Looks at the JSON files all the time: each is whole, and no manifest ever forgets a file."""

    def __init__(self, place: Folder | Bucket, streams: list[str]) -> None:
        super().__init__(daemon=True, name="lake-storm-watch")
        self._place = place
        self._ended = threading.Event()
        self._manifests: dict[str, dict[str, Any]] = {}
        self._others = ["raw/singerlake.json", f"{ROOT}/catalogue.json"]
        self._streams = [f"{ROOT}/{stream}/manifest.json" for stream in streams]
        self.looks = 0
        self.failures: list[str] = []

    def run(self) -> None:
        """See ``threading.Thread``."""
        while not self._ended.wait(0.05):
            self.look()

    def end(self) -> None:
        """A last look."""
        self._ended.set()
        self.join()
        self.look()

    def look(self) -> None:
        """Read everything once."""
        for path in self._others:
            self._json(path)
        for path in self._streams:
            new, old = self._json(path), self._manifests.get(path)
            if new is None:
                if old is not None:
                    self.failures.append(f"{path}: gone")
                continue
            if old is not None:
                self._compare(path, old, new)
            self._manifests[path] = new

    def _compare(self, path: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        forgotten = set(old["files"]) - set(new["files"])
        if forgotten:
            self.failures.append(f"{path}: forgotten: {sorted(forgotten)}")
        if new["generation"] != old["generation"] or new["sequence"] < old["sequence"]:
            self.failures.append(f"{path}: sequence {old['sequence']} became {new['sequence']}")
        for digest, claim in old["writers"].items():
            if new["writers"].get(digest, {"epoch": 0})["epoch"] < claim["epoch"]:
                self.failures.append(f"{path}: {claim} became {new['writers'].get(digest)}")

    def _json(self, path: str) -> dict[str, Any] | None:
        data = self._place.read(path)
        if data is None:
            return None
        self.looks += 1
        try:
            document = json.loads(data)
            assert isinstance(document, dict)
        except (ValueError, AssertionError):
            self.failures.append(f"{path}: no JSON: {data[:200]!r}")
            return None
        return document


class Check:
    """The lake, after all writers have ended, against what they were told.

    - Every row before a STATE that came out is in the lake, by its manifest: acknowledged, and not *lost*.
    - A writer that was paused and taken for dead commits nothing when it wakes up: no *zombies*.
    - Manifests, catalogue and ``singerlake.json`` are whole JSON at any moment; a manifest forgets no file.
    - Whatever has happened, a new writer gets through, and no lock stays behind it.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.figures: Counter[str] = Counter()
        self._failures: list[str] = []
        self._found: dict[int, Counter[int]] = defaultdict(Counter)

    def take(self, outcome: Outcome) -> None:
        """See ``Check``."""
        self._failures += outcome.failures
        self.figures["looks at JSON"] = outcome.looks
        for stream in self.plan.streams:
            self._stream(stream, outcome)
        for ledger in outcome.ledgers:
            self._slot(ledger)
        left = [path for path in outcome.files if path.endswith("singerlake.lock")]
        if left:
            self._failures.append(f"locks that nobody holds: {left}")
        self.figures["hidden files that kills have left"] = sum("/.tmp-" in path for path in outcome.files)

    def finish(self) -> None:
        """All that was wrong."""
        assert not self._failures, "\n".join(self._failures)

    def _stream(self, stream: str, outcome: Outcome) -> None:
        folder, files = f"{ROOT}/{stream}", outcome.files
        manifest = json.loads(files[f"{folder}/manifest.json"])
        stats = manifest["file_stats"]
        self.figures["commits"] += manifest["sequence"]
        self.figures["claims"] += sum(claim["epoch"] for claim in manifest["writers"].values())
        self.figures["files"] += len(manifest["files"])
        data = {path for path in files if path.startswith(f"{folder}/") and path.endswith(".singer.gz")}
        self.figures["orphans"] += len(data - {f"{folder}/{name}" for name in manifest["files"]})
        alone = {
            (ledger.part.number, run)
            for ledger in outcome.ledgers
            if len(ledger.part.streams) == 1
            for run in range(ledger.runs + 1)
            if run not in ledger.tails
        }
        runs: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for name in sorted(manifest["files"], key=lambda name: stats[name]["sequence"]):
            rows = self._rows(files.get(f"{folder}/{name}"), name)
            for row in rows:
                self._found[row["slot"]][row["n"]] += 1
            if len(rows) != stats[name]["records"]:
                self._failures.append(f"{name}: {len(rows)} rows, not {stats[name]['records']}")
            writers = {(row["slot"], row["run"]) for row in rows}
            if len(writers) != 1:
                self._failures.append(f"{name}: rows of {writers}")
            runs[name.partition("/")[0]].append(min(writers, default=(-1, -1)))
        for digest, order in runs.items():
            self._fenced(f"{stream} {digest}", order, alone)

    def _rows(self, data: bytes | None, name: str) -> list[dict[str, Any]]:
        if data is None:
            self._failures.append(f"{name}: in the manifest, and not there")
            return []
        messages = [json.loads(line) for line in gzip.decompress(data).splitlines()]
        if messages[0]["type"] != "SCHEMA" or any(message["type"] != "RECORD" for message in messages[1:]):
            self._failures.append(f"{name}: {Counter(message['type'] for message in messages)}")
        return [message["record"] for message in messages[1:]]

    def _fenced(self, name: str, order: list[tuple[int, int]], alone: set[tuple[int, int]]) -> None:
        """A run that commits again after another has was fenced, and is a zombie. (One of several streams may have
        waited for a lock, given back what it had, and claimed anew; so may a tail: these are none.)"""
        seen: set[tuple[int, int]] = set()
        for before, run in zip([(-1, -1), *order], order, strict=False):
            if run != before and run in seen and run in alone:
                self._failures.append(f"zombie: {name}: slot {run[0]}, run {run[1]} commits after {before} has")
            seen.add(run)

    def _slot(self, ledger: Ledger) -> None:
        found = self._found[ledger.part.number]
        self.figures["acknowledged commits"] += ledger.states
        self.figures["acknowledged rows"] += ledger.acked
        self.figures["rows that came twice"] += sum(count - 1 for count in found.values())
        self.figures["runs"] += ledger.runs
        self.figures.update(ledger.figures)
        self._failures += ledger.failures
        lost = [n for n in range(1, ledger.acked + 1) if n not in found]
        if lost:
            self._failures.append(f"slot {ledger.part.number}: lost {lost[:20]} of {ledger.acked}")
        strangers = [n for n in found if not 1 <= n <= ledger.sent]
        if strangers:
            self._failures.append(f"slot {ledger.part.number}: rows that nobody sent: {strangers[:20]}")


@dataclass(frozen=True)
class Lakes:
    """The world. ``s3``: the endpoint of a server, if the lake is to lie there. ``seconds``: of a storm."""

    s3: str | None = None
    seconds: float = 60.0
    parts: tuple[Part, ...] = PARTS
    at_a_time: int = 1

    def plan(self, seed: int) -> Plan:
        """See ``World``."""
        return Plan(seed, self.seconds, self.parts)

    def check(self, plan: Plan) -> Check:
        """See ``World``."""
        return Check(plan)

    def run(self, plan: Plan, folder: Path, check: Check) -> Iterator[Outcome]:
        """See ``World``."""
        place = place_of(folder, self.s3)
        slots = [Slot(part, plan.seed, place, folder) for part in plan.parts]
        watch = Watch(place, plan.streams)
        until = time.monotonic() + plan.seconds
        threads = [threading.Thread(target=slot.go, args=(until,), daemon=True) for slot in slots]
        watch.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for slot in slots:  # a last run that nobody disturbs
            slot.run("rest", 3 * ROWS_A_STATE)
        watch.end()
        files = {path: data for path in place.paths() if (data := place.read(path)) is not None}
        yield Outcome([slot.ledger for slot in slots], files, watch.failures, watch.looks)
