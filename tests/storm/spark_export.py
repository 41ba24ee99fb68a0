"""Kill storm: exports that are killed at random moments, of a lake that grows, while others read its tables.

Run as: export_storm.py [ROUNDS] [--seed N] [--folder DIR]. A round: the lake grows; an export of it runs as a process
of its own, into Delta tables and then into tables of files, and gets kill -9, or one of its Python workers does; then
an export runs to its end. The tables must then hold exactly the rows of the lake, no row of a killed export twice, and
readers that looked all the while must have seen whole versions only: each commit of the lake adds rows whose sum is
known, so a part of one shows. deltalake and Spark read the Delta table; DuckDB reads the table of files by itself, with
the SQL of docs/table-formats.md.
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
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROWS = 400
"""Rows that each commit adds, to two streams."""
KEYS = 1_000

EXPORT = """
import json, sys
from burler.spark import export, session
from support.internals import export_options

export_options.SMALL_ROWS = int(sys.argv[3])
spark = session(conf=json.loads(sys.argv[4]), master="local[2]") if export_options.SMALL_ROWS == 0 else None
print("begins", flush=True)
export(spark, sys.argv[1], sys.argv[2])
export(spark, sys.argv[1], sys.argv[2] + "-files", format="parquet")
"""
READER = """
import json, sys
from burler.spark import session, table

spark = session(conf=json.loads(sys.argv[1]), master="local[1]")
for folder in sys.stdin:
    row = table(spark, folder.strip()).selectExpr("count(*)", "coalesce(sum(cast(name as bigint)), 0)").first()
    print(json.dumps(list(row)), flush=True)
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

    @property
    def files(self) -> Path:
        """Where the tables of files are."""
        return self.out.with_name(f"{self.out.name}-files")

    def compare(self) -> None:
        """The tables as deltalake and DuckDB read them, against what was put into the lake."""
        import deltalake

        for stream, expected in (("log", sorted(self.log)), ("users", sorted(self.latest.values()))):
            rows = deltalake.DeltaTable(str(self.out / "tap-x" / stream)).to_pyarrow_table(columns=["id", "name"])
            found = {"delta": [(row["id"], int(row["name"])) for row in rows.to_pylist()]}
            found["files"] = [(int(at), int(name)) for at, name in _of_files(self.files / "tap-x" / stream, "id, name")]
            for kind, pairs in found.items():
                if sorted(name for _, name in pairs) != expected:
                    self.faults.append(f"{kind}, {stream}: {len(pairs)} rows in place of {len(expected)}")
                if stream == "users" and dict(pairs) != self.latest:
                    self.faults.append(f"{kind}, users: not the latest row of each key")
        leftovers = [
            one for out in (self.out, self.files) for one in (*out.glob("_staging-*"), *out.glob("*/*/_pending-*"))
        ]
        if leftovers:
            self.faults.append(f"left behind: {leftovers}")

    @contextlib.contextmanager
    def watched(self, *, with_spark: bool = True) -> Iterator[None]:
        """Readers that look at ``log`` all the while."""
        over = threading.Event()
        delta, files = self.out / "tap-x" / "log", self.files / "tap-x" / "log"
        looks: list[tuple[str, Look, Path]] = [("deltalake", _deltalake, delta), ("DuckDB", _duckdb, files)]
        with contextlib.ExitStack() as stack:
            if with_spark:
                looks.append(("Spark", stack.enter_context(_spark()), delta))
            readers = [threading.Thread(target=self._look, args=(*one, over)) for one in looks]
            for reader in readers:
                reader.start()
            try:
                yield
            finally:
                over.set()
                for reader in readers:
                    reader.join(timeout=60)
        self.faults += [f"{name} never looked" for name, *_ in looks if name not in {one for one, *_ in self.seen}]
        for name, count, total in self.seen:
            if (count, total) not in self.whole:
                self.faults.append(f"{name} saw {count} rows with sum {total}: no whole version")

    def _look(self, name: str, look: Look, folder: Path, over: threading.Event) -> None:
        last = -1
        while not over.wait(0.05):
            try:
                found = look(folder)
            except Exception as error:
                self.faults.append(f"{name} could not read: {type(error).__name__}: {str(error)[:300]}")
                return
            if found is None:
                continue
            count, total = found
            if count < last:
                self.faults.append(f"{name} saw {count} rows after {last}")
            last = count
            self.seen.append((name, count, total))


Look = Callable[[Path], tuple[int, int] | None]
"""From a table's folder to the number of its rows and the sum of their names; None where there is no table yet."""


def _deltalake(folder: Path) -> tuple[int, int] | None:
    import deltalake

    if not deltalake.DeltaTable.is_deltatable(str(folder)):
        return None
    names = deltalake.DeltaTable(str(folder)).to_pyarrow_table(columns=["name"])["name"].to_pylist()
    return len(names), sum(map(int, names))


def _duckdb(folder: Path) -> tuple[int, int] | None:
    if not (folder / "_latest.json").exists():
        return None
    ((count, total),) = _of_files(folder, "count(*), coalesce(sum(name::bigint), 0)")
    return int(count), int(total)


def _of_files(folder: Path, columns: str) -> list[tuple[Any, ...]]:
    """What DuckDB finds in a table of files, which it opens by itself."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(
            f"set variable files = (select list('{folder}/' || file.path) "
            f"from (select unnest(files) as file from read_json('{folder}/_latest.json')))"
        )
        if not connection.execute("select coalesce(len(getvariable('files')), 0)").fetchall()[0][0]:
            return [(0, 0)]
        return connection.execute(
            f"select {columns} from read_parquet(getvariable('files'), union_by_name = true)"
        ).fetchall()


@contextlib.contextmanager
def _spark() -> Iterator[Look]:
    """A Spark of its own, which answers as often as it is asked."""
    import deltalake

    command = [sys.executable, "-c", READER, json.dumps(QUICK)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        asked, answered = process.stdin, process.stdout

        def look(folder: Path) -> tuple[int, int] | None:
            if not deltalake.DeltaTable.is_deltatable(str(folder)):
                return None
            print(folder, file=asked, flush=True)
            count, total = json.loads(answered.readline())
            return count, total

        yield look
        asked.close()


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
    looks = dict(Counter(name for name, *_ in storm.seen))
    print(f"seed {said.seed}: {said.rounds} rounds, {storm.kills} killed, looks: {looks}")
    for fault in storm.faults:
        print(f"FAULT: {fault}")
    return 1 if storm.faults else 0


if __name__ == "__main__":
    sys.exit(main())
