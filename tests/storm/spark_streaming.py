"""Streaming queries: the driver, its JVM, the tap's process or a Python worker is killed at random moments; afterwards
the table is exactly right."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from storm.harness import Program, below
from support.cli import PYTHON

KEYS = 50
KINDS = {"driver": "", "jvm": "org.apache.spark", "pump": "streaming.pump", "worker": "pyspark.daemon"}
"""Who may be killed, and the sign of its command."""
_STEP = 40
_AFTER_SECONDS = 40.0
"""How long a query is given to go on after a kill."""
SOURCE = """
from pathlib import Path
import burler

tap = burler.tap("tap-counting", config_spec={"upto": "?"})
SCHEMA = {"properties": {"id": {"type": "integer"}, "n": {"type": "integer"}}}

INCREMENT = {"replication_key": "n", "order": "asc", "bookmark_strategy": "every_n(20)"}

@tap.sync("numbers", key_properties="id", schema=SCHEMA, **INCREMENT)
def numbers(stream, config):
    for n in range(stream.bookmark or 0, int(Path(config["upto"]).read_text()) + 1):
        yield {"id": n % 50, "n": n}
"""
DRIVER = """
import json, sys
from burler.spark import session, upsert

folder, once = sys.argv[1], sys.argv[2] == "once"
conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "1g"}
spark = session("storm", conf, master="local[2]")
options = {
    "app": folder + "/tap_counting.py",
    "stream": "numbers",
    "config": json.dumps({"upto": folder + "/upto"}),
    "spool": folder + "/spool",
    "poll_seconds": "0.2",
    "land_seconds": "0.2",
    "keep_hours": "0.0005",
}
frame = spark.readStream.format("burler").options(**options).load()
writer = frame.writeStream.foreachBatch(upsert(folder + "/table", keys="id"))
writer = writer.option("checkpointLocation", folder + "/checkpoint")
query = (writer.trigger(availableNow=True) if once else writer).start()
print("started", flush=True)
query.awaitTermination()
"""
Rows = list[tuple[int, int]]


@dataclass
class Outcome:
    """After a kill: who was killed, and what the query did then ("went on", "ended", or "" if nobody looked); the
    versions of the table that were seen until now. The last one has ``upto``, the exit code of a run in peace, and no
    victim."""

    victim: str
    then: str
    versions: dict[int, Rows]
    upto: int
    code: int | None = None


class Check:
    """The table is always that of some moment: for its greatest number N, the newest number of each id up to N; and in
    the end, after a run in peace, that of the last one."""

    def __init__(self) -> None:
        self.figures: Counter[str] = Counter()

    def take(self, outcome: Outcome) -> None:
        """See ``Check``."""
        for version, rows in outcome.versions.items():
            found = dict(rows)
            assert len(found) == len(rows), f"version {version}: an id stands twice"
            upto = max(found.values(), default=-1)
            assert found == newest(upto), f"version {version}: up to {upto}, and it holds {found}"
        self.figures["versions seen"] = len(outcome.versions)
        if outcome.victim:
            self.figures[f"{outcome.victim}s killed"] += 1
            self.figures[f"the query {outcome.then or 'had no time'} then"] += 1
            return
        assert outcome.code == 0, f"the run in peace ended with {outcome.code}"
        last = dict(outcome.versions[max(outcome.versions)])
        assert last == newest(outcome.upto), f"up to {outcome.upto}, and it holds {last}"
        self.figures["numbers"] += outcome.upto

    def finish(self) -> None:
        """See ``take``."""


def newest(upto: int) -> dict[int, int]:
    """What the table must hold once all numbers up to this one are in it."""
    return {n % KEYS: n for n in range(upto + 1)}


@dataclass(frozen=True)
class Queries:
    """The world. A plan is a seed; ``kills`` of processes of ``kinds``."""

    kills: int = 3
    kinds: tuple[str, ...] = tuple(KINDS)
    longest_seconds: float = 12.0
    at_a_time: int = 1

    def plan(self, seed: int) -> int:
        """See ``World``."""
        return seed

    def check(self, plan: int) -> Check:
        """See ``World``."""
        return Check()

    def run(self, plan: int, folder: Path, check: Check) -> Iterator[Outcome]:
        """See ``World``."""
        chance = random.Random(f"streaming {plan}")
        (folder / "tap_counting.py").write_text(SOURCE)
        numbers, watch = Numbers(folder, chance), Watch(folder / "table")
        watch.start()
        for number in range(self.kills):
            with self._driver(folder, f"driver-{number}") as driver:
                # Mostly once the query gets on; now and then while it begins.
                begun = len(watch.versions)
                if chance.random() > 0.2:
                    numbers.rise(driver, lambda begun=begun: len(watch.versions) > begun, 90.0)
                numbers.rise(driver, lambda: False, chance.uniform(0.0, self.longest_seconds))
                victim, then = _kill(driver, chance.choice(self.kinds)), ""
                if victim != "driver":
                    # What was under way may still be published: only what comes after that shows that it goes on.
                    begun = len(watch.versions) + 2
                    went_on = numbers.rise(driver, lambda begun=begun: len(watch.versions) > begun, _AFTER_SECONDS)
                    then = "went on" if went_on else "" if driver.code is None else "ended"
                time.sleep(chance.uniform(0, 0.5))
                driver.send(signal.SIGKILL)
                # The tap's process ends by itself; of the JVM as much is true.
                gone = time.monotonic() + 60
                while _group(driver.pid) and time.monotonic() < gone:
                    time.sleep(0.1)
                left = _group(driver.pid)
                assert not left, f"a minute after its driver there are still: {left}"
            yield Outcome(victim, then, dict(watch.versions), numbers.upto)
        with self._driver(folder, "last", "once") as driver:
            driver.read()
            code = driver.ended(300)
        watch.end()
        yield Outcome("", "", watch.versions, numbers.upto, code)

    def _driver(self, folder: Path, name: str, how: str = "") -> Program:
        words = [PYTHON, "-c", DRIVER, folder, how]
        driver = Program(words, folder, name, variables={"PYTHONWARNINGS": "default"})
        if not how:
            assert driver.stdout.readline() == b"started\n", "the query has not started"
        return driver


class Numbers:
    """The number up to which the tap counts, in its file."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.upto = _STEP
        self._path, self._chance = folder / "upto", chance
        self._say()

    def _say(self) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(str(self.upto))
        new.rename(self._path)

    def rise(self, driver: Program, true: Callable[[], bool], seconds: float) -> bool:
        """Higher and higher until something is true; False: the driver has ended, or time is up."""
        deadline = time.monotonic() + seconds
        while not true():
            if driver.code is not None or time.monotonic() >= deadline:
                return False
            self.upto += self._chance.randrange(_STEP)
            self._say()
            time.sleep(0.3)
        return True


class Watch(threading.Thread):
    """A reader that looks at the table all the while: its rows at each version it has seen."""

    def __init__(self, table: Path) -> None:
        super().__init__(daemon=True)
        self._table = table
        self._over = threading.Event()
        self.versions: dict[int, Rows] = {}

    def run(self) -> None:
        """See ``threading.Thread``."""
        while not self._over.wait(0.3):
            self._look()

    def end(self) -> None:
        """A last look."""
        self._over.set()
        self.join()
        self._look()

    def _look(self) -> None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        with contextlib.suppress(TableNotFoundError):
            table = DeltaTable(str(self._table))
            if table.version() not in self.versions:
                rows = table.to_pyarrow_table(columns=["id", "n"]).to_pylist()
                self.versions[table.version()] = [(row["id"], row["n"]) for row in rows]


def _kill(driver: Program, kind: str) -> str:
    """Kill such a process, or the driver where none is there; whom it was."""
    found = [pid for pid, _parent, command in below(driver.pid) if KINDS[kind] and KINDS[kind] in command]
    with contextlib.suppress(ProcessLookupError):
        os.kill(found[-1] if found else driver.pid, signal.SIGKILL)
    return kind if found else "driver"


def _group(group: int) -> list[str]:
    """The commands of all that still run in a process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = stat.read_text().rpartition(")")[2].split()
            if int(words[2]) == group and words[0] not in "ZX":
                found.append((stat.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200])
    return found
