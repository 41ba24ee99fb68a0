"""Kill storm: exports that are killed at random moments, of a lake that grows, while others read its tables.

Run as: export_storm.py [ROUNDS] [--seed N] [--folder DIR]. A round: the lake grows; an export of it runs as a process
of its own and gets kill -9, or one of its Python workers does; then an export runs to its end. The table must then
hold exactly the rows of the lake, no row of a killed export twice, and readers (deltalake, DuckDB) that looked all the
while must have seen whole versions only: each commit of the lake adds rows whose sum is known, so a part of one shows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROWS = 400
"""Rows that each commit adds, to two streams."""
KEYS = 1_000

EXPORT = """
import json, sys
from burler.spark import export, export_options, session

export_options.SMALL_ROWS = int(sys.argv[3])
spark = session(conf=json.loads(sys.argv[4]), master="local[2]") if export_options.SMALL_ROWS == 0 else None
print("begins", flush=True)
export(spark, sys.argv[1], sys.argv[2])
"""
QUICK = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


class Storm:
    """One lake, one OUT, and what their tables must hold.

    ``lake``: has ``commit`` (see ``conftest.Lake``). ``expected``: rows by stream as they must be now.
    """

    def __init__(self, lake: Any, out: Path, seed: int) -> None:
        self.lake = lake
        self.out = out
        self.chance = random.Random(seed)
        self.log: list[int] = []
        self.latest: dict[int, int] = {}
        self.whole: list[tuple[int, int]] = [(0, 0)]
        self.seen: list[tuple[str, int, int]] = []
        self.faults: list[str] = []
        self.kills = 0

    def grow(self) -> None:
        """One more commit to each stream; every third is not clean, so that the exact path runs too."""
        numbers = range(len(self.log), len(self.log) + ROWS)
        rows = [{"id": self.chance.randrange(KEYS), "name": str(number)} for number in numbers]
        clean = self.chance.random() > 0.33
        self.lake.commit("log", rows, keys=(), clean=clean)
        self.lake.commit("users", rows, clean=clean)
        self.log += numbers
        self.latest.update({row["id"]: int(row["name"]) for row in rows})
        self.whole.append((len(self.log), sum(self.log)))

    def round(self, *, small: bool, heal_small: bool | None = None) -> None:
        """Grow, kill an export somewhere, export again (as ``small`` as the other, or not), compare."""
        self.grow()
        self._killed(small=small, after_seconds=self.chance.random() * (0.8 if small else 12.0))
        if self.chance.random() < 0.5:
            self.grow()
        self._export(small=small if heal_small is None else heal_small)
        self.compare()

    def _start(self, *, small: bool) -> subprocess.Popen[str]:
        arguments = [str(self.lake.root), str(self.out), "50000" if small else "0", json.dumps(QUICK)]
        return subprocess.Popen(
            [sys.executable, "-c", EXPORT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def _killed(self, *, small: bool, after_seconds: float) -> None:
        process = self._start(small=small)
        assert process.stdout is not None
        process.stdout.readline()  # imports and the start of Spark are no export yet
        time.sleep(after_seconds)
        victim = process.pid
        workers = _python_below(process.pid)
        if workers and self.chance.random() < 0.3:
            victim = self.chance.choice(workers)
        self.kills += process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        process.communicate(timeout=300)

    def _export(self, *, small: bool) -> None:
        process = self._start(small=small)
        _, errors = process.communicate(timeout=300)
        if process.returncode:
            self.faults.append(f"the export after a kill ended with {process.returncode}: {errors[-800:]}")

    def compare(self) -> None:
        """The tables as deltalake reads them, against what was put into the lake."""
        import deltalake

        for stream, expected in (("log", sorted(self.log)), ("users", sorted(self.latest.values()))):
            folder = self.out / "tap-x" / stream
            rows = deltalake.DeltaTable(str(folder)).to_pyarrow_table(columns=["id", "name"]).to_pylist()
            found = sorted(int(row["name"]) for row in rows)
            if found != expected:
                self.faults.append(f"{stream}: {len(found)} rows in place of {len(expected)}, commit {len(self.whole)}")
            if stream == "users" and {row["id"]: int(row["name"]) for row in rows} != self.latest:
                self.faults.append("users: not the latest row of each key")
        leftovers = [*self.out.glob("_staging-*"), *self.out.glob("*/*/_pending-*")]
        if leftovers:
            self.faults.append(f"left behind: {leftovers}")

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Readers that look at ``log`` all the while."""
        over = threading.Event()
        readers = [threading.Thread(target=self._look, args=(look, over)) for look in (_deltalake, _duckdb)]
        for reader in readers:
            reader.start()
        try:
            yield
        finally:
            over.set()
            for reader in readers:
                reader.join(timeout=60)
        for name, count, total in self.seen:
            if (count, total) not in self.whole:
                self.faults.append(f"{name} saw {count} rows with sum {total}: no whole version")

    def _look(self, look: Any, over: threading.Event) -> None:
        folder, last = self.out / "tap-x" / "log", -1
        while not over.wait(0.05):
            if not (folder / "_delta_log").is_dir():
                continue
            try:
                count, total = look(str(folder))
            except Exception as error:
                self.faults.append(f"{look.__name__} could not read: {type(error).__name__}: {str(error)[:300]}")
                return
            if count < last:
                self.faults.append(f"{look.__name__} saw {count} rows after {last}")
            last = count
            self.seen.append((look.__name__, count, total))


def _deltalake(folder: str) -> tuple[int, int]:
    import deltalake

    if not deltalake.DeltaTable.is_deltatable(folder):
        return 0, 0
    names = deltalake.DeltaTable(folder).to_pyarrow_table(columns=["name"])["name"].to_pylist()
    return len(names), sum(map(int, names))


def _duckdb(folder: str) -> tuple[int, int]:
    """DuckDB on the files of one version, as the table's log has them."""
    import deltalake
    import duckdb

    if not deltalake.DeltaTable.is_deltatable(folder):
        return 0, 0
    files = deltalake.DeltaTable(folder).file_uris()
    if not files:
        return 0, 0
    with duckdb.connect() as connection:
        said = connection.execute("select count(*), sum(name::bigint) from read_parquet(?)", [files]).fetchone()
    assert said is not None
    return int(said[0]), int(said[1] or 0)


def _python_below(pid: int) -> list[int]:
    """Python workers of a process: grandchildren and further, behind its JVM."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, queue = [], list(children.get(pid, []))
    while queue:
        one = queue.pop()
        queue += children.get(one, [])
        with contextlib.suppress(OSError):
            if b"pyspark" in (Path("/proc") / str(one) / "cmdline").read_bytes().replace(b"java", b""):
                found.append(one)
    return found


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--folder", type=Path)
    said = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    from conftest import Lake

    with tempfile.TemporaryDirectory() as made:
        folder = said.folder or Path(made)
        storm = Storm(Lake(folder / "lake"), folder / "out", said.seed)
        with storm.watched():
            for number in range(said.rounds):
                storm.round(small=number % 3 == 2)
                print(f"round {number + 1}: {storm.kills} killed, {len(storm.seen)} looks, {len(storm.faults)} faults")
    print(f"seed {said.seed}: {said.rounds} rounds, {storm.kills} killed, {len(storm.seen)} looks")
    for fault in storm.faults:
        print(f"FAULT: {fault}")
    return 1 if storm.faults else 0


if __name__ == "__main__":
    sys.exit(main())
