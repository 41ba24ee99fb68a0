"""A storm over extractions: drivers and Python workers are killed at random moments; nothing is lost, nothing doubled.

    python tests/spark/extract/extract_storm.py [ROUNDS] [--seed N]

Each round starts ``burler extract`` from the last STATE that came out and kills, after a random while, the driver or
one of its Python workers (``kill -9``). A run whose worker is killed comes to its end by itself: Spark tries the task
again. At the end one run is left in peace, unless the last one ended well. Then the state is that of a local run,
tables made of the lake hold exactly the rows of the source, and ``burler lake check`` finds nothing but files that no
manifest names.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burler.lake import care, open_store
from burler.testing import run_tap

PARTS, ROWS, SLOTS = 6, 400, 4
TAP = """
import time
import burler

tap = burler.tap("tap-stormy")
SCHEMA = {"properties": {"part": {"type": "integer"}, "id": {"type": "integer"}, "text": {"type": "string"}}}

@tap.partitions("rows")
def parts():
    return [{"part": n} for n in range(%(parts)d)]

@tap.sync("rows", key_properties=["part", "id"], replication_key="id", schema=SCHEMA)
def rows(stream, partition):
    for number in range(stream.bookmark or 0, %(rows)d):
        if number %% 40 == 0:
            time.sleep(%(pause)s)
        yield {"part": partition["part"], "id": number, "text": f"{partition['part']}/{number}"}

@tap.partitions("table")
def shards():
    return [{"part": n} for n in range(3)]

@tap.sync("table", key_properties=["part", "id"], schema=SCHEMA)
def table(partition):
    for number in range(50):
        yield {"part": partition["part"], "id": number, "text": "t"}
"""


@dataclass
class Verdict:
    """What a storm showed: counts, and what is wrong."""

    figures: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def count(self, name: str, number: int = 1) -> None:
        self.figures[name] = self.figures.get(name, 0) + number


class World:
    """A tap, a lake, and the last state that came out."""

    def __init__(self, folder: Path, *, pause: float, seed: int) -> None:
        self.app = folder / "tap_stormy.py"
        self.app.write_text(TAP % {"parts": PARTS, "rows": ROWS, "pause": pause})
        self.lake, self.out, self.state = folder / "lake", folder / "out", folder / "state.json"
        self.log = folder / "log"
        self.random = random.Random(seed)
        self.verdict = Verdict()
        self.whole = False

    def start(self) -> subprocess.Popen[bytes]:
        args = [sys.executable, "-m", "burler", "extract", str(self.app), str(self.lake), "--slots", str(SLOTS)]
        args += ["--out-file", str(self.state)]
        if self.state.exists():
            args += ["--state", str(self.state)]
        with self.log.open("ab") as log:
            return subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)

    def round(self, *, driver: bool) -> None:
        """One run that a kill meets."""
        process = self.start()
        begun = self.log.stat().st_size
        while process.poll() is None and b"start (extract)" not in self.log.read_bytes()[begun:]:
            time.sleep(0.05)
        time.sleep(self.random.uniform(0.0, 3.0))
        if process.poll() is not None:
            self.verdict.count("ended before the kill")
        elif driver:
            process.kill()
            self.verdict.count("drivers killed")
        else:
            victims = self._workers(process)
            if not victims:
                self.verdict.count("ended before a worker was found")
            for victim in self.random.sample(victims, min(len(victims), self.random.randint(1, 2))):
                os.kill(victim, signal.SIGKILL)
                self.verdict.count("workers killed")
        self.whole = False
        code = process.wait(timeout=300)
        self.whole = code == 0
        if not driver and code != 0:
            self.verdict.count("runs that said 1")
            if code != 1:
                self.verdict.failures.append(f"a run whose worker was killed ended with {code}:\n{self._said()}")
        self.check_state()

    def _workers(self, process: subprocess.Popen[bytes]) -> list[int]:
        """Its Python workers as soon as there are some; on a busy machine Spark takes a while. Empty if it ended."""
        while process.poll() is None:
            if victims := workers_of(process.pid):
                return victims
            time.sleep(0.05)
        return []

    def check_state(self) -> None:
        """No state is ahead of the lake."""
        if not self.state.exists():
            return
        rows = self.committed("rows")
        parts = json.loads(self.state.read_text()).get("bookmarks", {}).get("rows", {}).get("partitions", {})
        for key, entry in parts.items():
            part = json.loads(key)["part"]
            missing = [n for n in range(entry["id"] + 1) if (part, n) not in rows]
            if missing:
                self.verdict.failures.append(f"part {part}: STATE says {entry}, and {missing[:5]} are not in the lake")

    def committed(self, stream: str) -> set[tuple[int, int]]:
        from extracted import rows_of

        if not (self.lake / "raw" / "tap-stormy" / stream / "manifest.json").exists():
            return set()
        return {(row["part"], row["id"]) for row in rows_of(self.lake, "tap-stormy", stream)}

    def end(self) -> Verdict:
        """A run in peace, unless the last one came to its end all the same, and what must hold then."""
        process = None if self.whole else self.start()
        if process is not None and process.wait(timeout=300):
            self.verdict.failures.append(f"the last run ended with {process.returncode}:\n{self._said()}")
            return self.verdict
        state = json.loads(self.state.read_text())
        from support.internals import apps

        wanted = run_tap(apps.load_app(str(self.app))).result.state
        if without_version(state) != without_version(wanted):
            self.verdict.failures.append(f"the state is {state}; a local run has {wanted}")
        self._check_tables()
        for finding in care.check(open_store(str(self.lake))).findings:
            self.verdict.count(f"findings: {finding.kind}")
            if finding.kind not in ("orphan", "temporary"):
                self.verdict.failures.append(f"lake check: {finding}")
        return self.verdict

    def _check_tables(self) -> None:
        from deltalake import DeltaTable

        from burler.spark import export

        export(None, self.lake, self.out)  # so few rows need no Spark
        for stream, parts, rows in (("rows", PARTS, ROWS), ("table", 3, 50)):
            table = DeltaTable(str(self.out / "tap-stormy" / stream)).to_pyarrow_table().to_pylist()
            found = sorted((row["part"], row["id"]) for row in table)
            if found != [(part, number) for part in range(parts) for number in range(rows)]:
                self.verdict.failures.append(f"table {stream}: {len(found)} rows, {len(set(found))} of them different")
        self.verdict.count("rows in the lake", len(self.committed("rows")))

    def _said(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-20:])


def without_version(state: dict[str, Any]) -> Any:
    """A state with versions, which are times, made alike."""

    def plain(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        return {key: key == "version" or plain(value) for key, value in node.items()}

    return plain(state)


def workers_of(pid: int) -> list[int]:
    """The Python workers below a process: children of Spark's daemon."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        number, parent = int(stat.parent.name), int(text.rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append(number)
    below, daemons = [pid], []
    while below:
        one = below.pop()
        below += children.get(one, [])
        try:
            words = Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"pyspark.daemon" in words:
            daemons.append(one)
    return [child for one in daemons for child in children.get(one, [])]


def storm(folder: Path, *, rounds: int, seed: int, pause: float = 0.2) -> Verdict:
    """Rounds in turn with a driver and a worker as the victim, and one in peace."""
    world = World(folder, pause=pause, seed=seed)
    for number in range(rounds):
        world.round(driver=number % 2 == 0)
    return world.end()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else random.randrange(1 << 30)
    sys.stderr.write(f"seed {seed}\n")
    with tempfile.TemporaryDirectory() as folder:
        verdict = storm(Path(folder), rounds=asked.rounds, seed=seed)
    sys.stderr.write(json.dumps(verdict.figures) + "\n")
    for failure in verdict.failures:
        sys.stderr.write(f"FAILED: {failure}\n")
    return 1 if verdict.failures else 0


if __name__ == "__main__":
    sys.exit(main())
