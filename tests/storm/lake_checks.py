"""What must hold in a lake while a storm goes over it and afterwards, looked at by plain means."""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lake_storm_slot import TAP, Ledger
from lake_storm_store import Place

ROOT = f"raw/{TAP}"


class Watch(threading.Thread):
    """Looks at the JSON files all the time: each is whole, and no manifest ever forgets a file."""

    def __init__(self, place: Place, streams: Iterable[str], *, every_seconds: float = 0.05) -> None:
        super().__init__(daemon=True, name="lake-storm-watch")
        self._place, self._every = place, every_seconds
        self._ended = threading.Event()
        self._manifests: dict[str, dict[str, Any]] = {}
        self._others = ["raw/singerlake.json", f"{ROOT}/catalogue.json"]
        self._streams = [f"{ROOT}/{stream}/manifest.json" for stream in streams]
        self.looks = 0
        self.failures: list[str] = []

    def run(self) -> None:
        """See ``threading.Thread``."""
        while not self._ended.wait(self._every):
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


@dataclass
class Verdict:
    """What a storm has come to. ``lost``: rows that a STATE has covered and no manifest leads to."""

    figures: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def judged(place: Place, ledgers: list[Ledger]) -> Verdict:
    """The lake, after all writers have ended, against what they were told."""
    verdict = Verdict()
    paths = set(place.paths())
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for stream in sorted({stream for ledger in ledgers for stream in ledger.part.streams}):
        _stream(place, stream, paths, found, verdict, ledgers)
    for ledger in ledgers:
        _slot(ledger, found[ledger.part.number], verdict)
    left = [path for path in paths if path.endswith("singerlake.lock")]
    if left:
        verdict.failures.append(f"locks that nobody holds: {left}")
    verdict.figures["hidden files that kills have left"] = sum("/.tmp-" in path for path in paths)
    return verdict


def _stream(
    place: Place,
    stream: str,
    paths: set[str],
    found: dict[int, Counter[int]],
    verdict: Verdict,
    ledgers: list[Ledger],
) -> None:
    folder = f"{ROOT}/{stream}"
    manifest = json.loads(place.read(f"{folder}/manifest.json") or b"{}")
    stats = manifest["file_stats"]
    verdict.figures["commits"] += manifest["sequence"]
    verdict.figures["claims"] += sum(claim["epoch"] for claim in manifest["writers"].values())
    verdict.figures["files"] += len(manifest["files"])
    data = {path for path in paths if path.startswith(f"{folder}/") and path.endswith(".singer.gz")}
    verdict.figures["orphans"] += len(data - {f"{folder}/{name}" for name in manifest["files"]})
    alone = {
        (ledger.part.number, run)
        for ledger in ledgers
        if len(ledger.part.streams) == 1
        for run in range(ledger.runs + 1)
        if run not in ledger.tails
    }
    runs: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for name in sorted(manifest["files"], key=lambda name: stats[name]["sequence"]):
        rows = _rows(place, f"{folder}/{name}", verdict)
        for row in rows:
            found[row["slot"]][row["n"]] += 1
        if len(rows) != stats[name]["records"]:
            verdict.failures.append(f"{name}: {len(rows)} rows, not {stats[name]['records']}")
        writers = {(row["slot"], row["run"]) for row in rows}
        if len(writers) != 1:
            verdict.failures.append(f"{name}: rows of {writers}")
        runs[name.partition("/")[0]].append(min(writers, default=(-1, -1)))
    for digest, order in runs.items():
        _fenced(f"{stream} {digest}", order, alone, verdict)


def _rows(place: Place, path: str, verdict: Verdict) -> list[dict[str, Any]]:
    data = place.read(path)
    if data is None:
        verdict.failures.append(f"{path}: in the manifest, and not there")
        return []
    lines = gzip.decompress(data).splitlines()
    messages = [json.loads(line) for line in lines]
    if messages[0]["type"] != "SCHEMA" or any(message["type"] != "RECORD" for message in messages[1:]):
        verdict.failures.append(f"{path}: {Counter(message['type'] for message in messages)}")
    return [message["record"] for message in messages[1:]]


def _fenced(name: str, order: list[tuple[int, int]], alone: set[tuple[int, int]], verdict: Verdict) -> None:
    """A run that commits again after another has was fenced, and is a zombie. (One of several streams may have waited
    for a lock, given back what it had, and claimed anew; so may a tail: these are none.)"""
    seen: set[tuple[int, int]] = set()
    for before, run in zip([(-1, -1), *order], order, strict=False):
        if run != before and run in seen and run in alone:
            verdict.figures["zombies"] += 1
            verdict.failures.append(f"{name}: slot {run[0]}, run {run[1]} commits after {before} has")
        seen.add(run)
    verdict.figures["zombies"] += 0


def _slot(ledger: Ledger, found: Counter[int], verdict: Verdict) -> None:
    lost = [n for n in range(1, ledger.acked + 1) if n not in found]
    verdict.figures["acknowledged commits"] += ledger.states
    verdict.figures["acknowledged rows"] += ledger.acked
    verdict.figures["rows that came twice"] += sum(count - 1 for count in found.values())
    verdict.figures["lost"] += len(lost)
    verdict.figures["runs"] += ledger.runs
    verdict.figures.update(ledger.figures)
    verdict.failures += ledger.failures
    if lost:
        verdict.failures.append(f"slot {ledger.part.number}: lost {lost[:20]} of {ledger.acked}")
    strangers = [n for n in found if not 1 <= n <= ledger.sent]
    if strangers:
        verdict.failures.append(f"slot {ledger.part.number}: rows that nobody sent: {strangers[:20]}")
