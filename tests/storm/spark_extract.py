"""Extractions whose drivers and Python workers are killed at random moments: nothing is lost, nothing doubled."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burler.lake import care, load, open_store, read_lines
from storm.harness import Program, same, workers_of
from support.cli import PYTHON

TAP = "tap-stormy"
COUNTS = {"rows": (6, 400), "table": (3, 50)}
"""Partitions, and rows of each."""
SLOTS = 4
SOURCE = """
import time
import burler

tap = burler.tap("tap-stormy")
SCHEMA = {"properties": {"part": {"type": "integer"}, "id": {"type": "integer"}}}

@tap.partitions("rows")
def parts():
    return [{"part": n} for n in range(6)]

@tap.sync("rows", key_properties=["part", "id"], replication_key="id", schema=SCHEMA)
def rows(stream, partition):
    for number in range(stream.bookmark or 0, 400):
        if number % 40 == 0:
            time.sleep(0.2)
        yield {"part": partition["part"], "id": number}

@tap.partitions("table")
def shards():
    return [{"part": n} for n in range(3)]

@tap.sync("table", key_properties=["part", "id"], schema=SCHEMA)
def table(partition):
    for number in range(50):
        yield {"part": partition["part"], "id": number}
"""


def rows_in(lake: Path, tap: str, stream: str) -> list[dict[str, Any]]:
    """The rows that the stream's manifest leads to."""
    if not (lake / "raw" / tap / stream / "manifest.json").exists():
        return []
    store = open_store(str(lake))
    lines = [json.loads(line) for file in load(store, tap, stream).files for line in read_lines(store, file.path)]
    return [message["record"] for message in lines if message["type"] == "RECORD"]


@dataclass
class Ran:
    """How a run went. ``victim``: "driver", "worker", "" for one in peace. ``state``: the lake's. ``lake``: (part, id)
    of its rows by now. ``tables``: of what was exported after the last run; ``wanted``: the state of a local run.
    ``findings``: of ``lake check``, then."""

    victim: str
    code: int
    said: str
    state: dict[str, Any]
    lake: dict[str, list[tuple[int, int]]]
    killed: int = 0
    tables: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    wanted: dict[str, Any] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)


class Check:
    """Holds extractions against their source.

    - No state is ahead of the lake. A run whose worker is killed comes to its end by itself, or says 1.
    - In the end the state is that of a local run, tables made of the lake hold exactly the rows of the source, and
      ``burler lake check`` finds nothing but files that no manifest names.
    """

    def __init__(self) -> None:
        self.figures: Counter[str] = Counter()

    def take(self, ran: Ran) -> None:
        """See ``Check``."""
        there = set(ran.lake["rows"])
        parts = ran.state.get("bookmarks", {}).get("rows", {}).get("partitions", {})
        for key, entry in parts.items():
            part = json.loads(key)["part"]
            missing = [n for n in range(entry["id"] + 1) if (part, n) not in there]
            assert not missing, f"part {part}: STATE says {entry}, and {missing[:5]} are not in the lake"
        self.figures[f"{ran.victim}s killed" if ran.victim else "runs in peace"] += ran.killed or not ran.victim
        self.figures["ended before the kill"] += bool(ran.victim) and not ran.killed
        if ran.victim == "worker":
            assert ran.code in (0, 1), f"a run whose worker was killed ended with {ran.code}"
            self.figures["runs that said 1"] += ran.code
        if not ran.victim:
            self._in_peace(ran)

    def _in_peace(self, ran: Ran) -> None:
        assert ran.code == 0, f"the last run ended with {ran.code}"
        found, wanted = _without_version(ran.state), _without_version(ran.wanted)
        assert found == wanted, f"the state is {found}; a local run has {wanted}"
        for stream, (parts, rows) in COUNTS.items():
            same(f"table {stream}", ran.tables[stream], [(part, n) for part in range(parts) for n in range(rows)])
        bad = [finding for finding in ran.findings if not finding.startswith(("orphan", "temporary"))]
        assert not bad, f"lake check: {bad}"
        self.figures["files that no manifest names"] += len(ran.findings)
        self.figures["rows in the lake"] += len(ran.lake["rows"])

    def finish(self) -> None:
        """See ``_in_peace``."""


def _without_version(node: Any) -> Any:
    """A state with versions, which are times, made alike."""
    if not isinstance(node, dict):
        return node
    return {key: key == "version" or _without_version(value) for key, value in node.items()}


@dataclass(frozen=True)
class Extractions:
    """The world. A plan is a seed: ``rounds`` runs that kill a driver or a worker, in turn; then one in peace."""

    rounds: int = 4
    at_a_time: int = 1

    def plan(self, seed: int) -> int:
        """See ``World``."""
        return seed

    def check(self, plan: int) -> Check:
        """See ``World``."""
        return Check()

    def run(self, plan: int, folder: Path, check: Check) -> Iterator[Ran]:
        """See ``World``."""
        chance = random.Random(f"extract {plan}")
        (folder / "tap_stormy.py").write_text(SOURCE)
        for number in range(self.rounds):
            yield _ran(folder, number, ("driver", "worker")[number % 2], chance)
        yield _ran(folder, self.rounds, "", chance)


def _ran(folder: Path, number: int, victim: str, chance: random.Random) -> Ran:
    app, lake = folder / "tap_stormy.py", folder / "lake"
    state = lake / "raw" / TAP / "state.json"
    args: list[Any] = [PYTHON, "-m", "burler", "extract", app, lake, "--slots", SLOTS]
    variables = {"PYTHONWARNINGS": "default"}
    killed = 0
    with Program(args, folder, str(number), variables=variables, reading={}) as run:
        if victim:
            run.until(lambda: "start (extract)" in run.stderr)
            run.until(lambda: False, chance.uniform(0.0, 3.0))
            victims = [run.pid]
            if victim == "worker":
                # On a busy machine Spark takes a while to have some.
                run.until(lambda: bool(workers_of(run.pid)))
                victims = workers_of(run.pid)
                victims = chance.sample(victims, min(len(victims), chance.randint(1, 2)))
            for one in victims if run.code is None else ():
                os.kill(one, signal.SIGKILL)
                killed += 1
        code = run.ended(300)
    document = json.loads(state.read_text())["value"] if state.exists() else {}
    there = {stream: [(row["part"], row["id"]) for row in rows_in(lake, TAP, stream)] for stream in COUNTS}
    ran = Ran(victim, code, run.stderr, document, there, killed)
    if not victim and code == 0:
        from deltalake import DeltaTable

        from burler.spark import export

        with Program([PYTHON, "-m", "burler", "run", app, "--out-file", folder / "local.json"], folder, "local") as one:
            one.read()
            one.ended()
        ran.wanted = json.loads((folder / "local.json").read_text())
        export(None, lake, folder / "out")  # so few rows need no Spark
        for stream in COUNTS:
            rows = DeltaTable(str(folder / "out" / TAP / stream)).to_pyarrow_table().to_pylist()
            ran.tables[stream] = [(row["part"], row["id"]) for row in rows]
        ran.findings = [f"{one.kind}: {one}" for one in care.check(open_store(str(lake))).findings]
    return ran
