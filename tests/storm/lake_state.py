"""A lake that keeps a tap's state: runs that are killed at any moment, and go on without ``--state``."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storm.harness import PATIENCE_SECONDS, Program
from storm.places import Bucket, Folder, place_of
from support.cli import PYTHON

TAP = "tap-states"
ROWS = 400
REGIONS = ("eu", "us")
SOURCE = f"""
import time
from burler import Tap

tap = Tap("{TAP}")
SCHEMA = {{"properties": {{"id": {{"type": "integer"}}, "region": {{"type": "string"}}}}}}
OFTEN = "every_n(7)"


def read(stream, region):
    for number in range(stream.bookmark or 1, {ROWS} + 1):
        time.sleep(0.002)
        yield {{"id": number, "region": region}}


@tap.sync("orders", schema=SCHEMA, key_properties=["id"], replication_key="id", bookmark_strategy=OFTEN)
def orders(stream):
    yield from read(stream, "")


@tap.partitions("shops")
def regions():
    return [{{"region": name}} for name in {REGIONS}]


@tap.sync("shops", schema=SCHEMA, key_properties=["id", "region"], replication_key="id", bookmark_strategy=OFTEN)
def shops(stream, partition):
    yield from read(stream, partition["region"])
"""
CONFIG = {"max_file_records": 7, "state_message_min_interval_ms": 1, "lock_ttl_seconds": 0.8}
SECONDS = {"begun": 1.2, "state": 0.3, "commit": 0.001}
"""When runs are killed: at most so many seconds after what."""
ENTRIES = [("orders", ""), *(("shops", region) for region in REGIONS)]
Places = dict[tuple[str, str], int]
"""How far each entry of a state is."""


@dataclass(frozen=True)
class Plan:
    """``strikes``: SIGKILL so many seconds after the run has begun, after its first STATE, or after a commit later on
    (at once: before its state is written, with some luck)."""

    seed: int
    strikes: tuple[tuple[str, float], ...]


@dataclass
class Ran:
    """What a run has left: what it said on stdout, what the lake's state says, all rows that are committed."""

    code: int
    said: Places
    kept: Places
    rows: Counter[tuple[str, str, int]]


class Check:
    """No state is ahead of the rows that are committed, and none goes out before the lake has it; at the end all rows
    of the source are there."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.figures: Counter[str] = Counter()
        self._last: Ran | None = None

    def take(self, ran: Ran) -> None:
        """See ``Check``."""
        killed = ran.code == -signal.SIGKILL
        assert killed or ran.code == 0, f"exit code {ran.code}"
        self.figures["killed runs" if killed else "runs to the end"] += 1
        self.figures["killed runs that had a state"] += killed and bool(ran.said)
        for entry in ENTRIES:
            kept = ran.kept.get(entry, 0)
            missing = [number for number in range(1, kept + 1) if (*entry, number) not in ran.rows]
            assert not missing, f"the lake's state is ahead: {entry} is at {kept}, without {missing[:9]}"
            assert ran.said.get(entry, 0) <= kept, f"a STATE went out before the lake had it: {entry}: {ran}"
            before = 0 if self._last is None else self._last.kept.get(entry, 0)
            assert before <= kept, f"the lake's state went back: {entry}, from {before} to {kept}"
            newest = max((number for *of, number in ran.rows if tuple(of) == entry), default=0)
            self.figures["kills between a commit and its state"] += killed and newest > kept
        self._last = ran

    def finish(self) -> None:
        """All rows, and the state at their end."""
        assert self._last is not None
        assert self._last.code == 0
        lost = [(*entry, n) for entry in ENTRIES for n in range(1, ROWS + 1) if (*entry, n) not in self._last.rows]
        assert not lost, f"lost: {lost[:9]}"
        assert self._last.kept == dict.fromkeys(ENTRIES, ROWS), self._last.kept
        self.figures["rows"] += len(self._last.rows)
        self.figures["rows that came again"] += self._last.rows.total() - len(self._last.rows)


@dataclass(frozen=True)
class States:
    """The world. ``s3``: the endpoint of a server, if the lake is to lie there."""

    s3: str | None = None
    kills: int = 8
    at_a_time: int = 2

    def plan(self, seed: int) -> Plan:
        """See ``World``."""
        chance = random.Random(seed)
        after = chance.choices(list(SECONDS), k=self.kills)
        return Plan(seed, tuple((what, chance.random() * SECONDS[what]) for what in after))

    def check(self, plan: Plan) -> Check:
        """See ``World``."""
        return Check(plan)

    def run(self, plan: Plan, folder: Path, check: Check) -> Iterator[Ran]:
        """See ``World``."""
        place = place_of(folder, self.s3)
        (folder / "tap_states.py").write_text(SOURCE)
        (folder / "config.json").write_text(json.dumps(CONFIG))
        words = [PYTHON, "-m", "burler", "run", folder / "tap_states.py", "--sink", f"lake:{place.url}"]
        words += ["-c", folder / "config.json"]
        for number, strike in enumerate((*plan.strikes, None)):
            variables = dict(place.environment)
            with Program(words, folder, str(number), variables=variables, reading={}) as one:
                if strike is not None:
                    after, seconds = strike
                    while after != "begun" and one.process.poll() is None and not one.reader.begun.wait(0.02):
                        pass
                    there = _manifests(place)
                    while after == "commit" and one.process.poll() is None and _manifests(place) == there:
                        time.sleep(0.0005)
                    time.sleep(seconds)
                    one.process.kill()
                code = one.process.wait(PATIENCE_SECONDS)
                one.reader.join(PATIENCE_SECONDS)
                lines = bytes(one.reader.got).splitlines(keepends=True)
            whole = [json.loads(line) for line in lines if line.endswith(b"\n")]
            kept = place.read(f"raw/{TAP}/state.json")  # before the rows: a request may still be on its way
            yield Ran(
                code, _places(whole[-1] if whole else None), _places(json.loads(kept) if kept else None), _rows(place)
            )


def _places(state: Mapping[str, Any] | None) -> Places:
    bookmarks = state["value"].get("bookmarks", {}) if state else {}
    found = {("orders", ""): bookmarks.get("orders", {})}
    for partition, entry in bookmarks.get("shops", {}).get("partitions", {}).items():
        found["shops", json.loads(partition)["region"]] = entry
    return {entry: at["id"] for entry, at in found.items() if "id" in at}


def _manifests(place: Folder | Bucket) -> list[bytes | None]:
    return [place.read(f"raw/{TAP}/{stream}/manifest.json") for stream in ("orders", "shops")]


def _rows(place: Folder | Bucket) -> Counter[tuple[str, str, int]]:
    """All rows that the manifests name, by ``zcat``."""
    found: Counter[tuple[str, str, int]] = Counter()
    for stream in ("orders", "shops"):
        folder = f"raw/{TAP}/{stream}"
        manifest = place.read(f"{folder}/manifest.json")
        names = json.loads(manifest)["files"] if manifest else []
        data = [place.read(f"{folder}/{name}") for name in names]
        assert None not in data, f"{stream}: a file is in the manifest, and not there"
        read = subprocess.run(["zcat"], input=b"".join(filter(None, data)), capture_output=True, check=bool(data))
        for message in map(json.loads, read.stdout.splitlines()):
            if message["type"] == "RECORD":
                found[stream, message["record"]["region"], message["record"]["id"]] += 1
    return found
