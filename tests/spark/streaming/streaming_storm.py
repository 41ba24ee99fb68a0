"""kill -9 of a streaming query at random points, again and again; afterwards the table is exactly right.

    python tests/spark/streaming/streaming_storm.py --rounds 50 --seed 7

A tap counts, a query upserts what it says into a Delta table. Each round kills the driver, its JVM, the tap's process
or a Python worker at a random moment; meanwhile a reader looks at the table, which must always be that of some moment:
for its greatest number N, the newest number of each id up to N. At the end the query runs to its end once more.
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
import threading
import time
from collections.abc import Iterator
from pathlib import Path

KEYS = 50
_HERE = Path(__file__).resolve().parent
_STEP = 40


def newest(upto: int) -> dict[int, int]:
    """What the table must hold once all numbers up to this one are in it."""
    return {n % KEYS: n for n in range(upto + 1)}


def drive(folder: Path, once: bool) -> None:
    """The driver: a session, and the query until it ends or is killed."""
    from burler.spark import session
    from burler.spark.streaming.upsert import upsert

    conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "1g"}
    spark = session("storm", conf, master="local[2]")
    options = {
        "app": str(_HERE / "counting.py"),
        "stream": "numbers",
        "config": json.dumps({"upto": str(folder / "upto")}),
        "spool": str(folder / "spool"),
        "poll_seconds": "0.2",
        "land_seconds": "0.2",
        "keep_hours": "0.0005",
    }
    frame = spark.readStream.format("burler").options(**options).load()
    writer = frame.writeStream.foreachBatch(upsert(folder / "table", keys="id"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = (writer.trigger(availableNow=True) if once else writer).start()
    print("started", flush=True)
    query.awaitTermination()


class Watch(threading.Thread):
    """A reader that looks at the table all the while."""

    def __init__(self, table: Path) -> None:
        super().__init__(daemon=True)
        self._table = table
        self.over = threading.Event()
        self.versions: set[int] = set()
        self.wrong: list[str] = []

    def run(self) -> None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        while not self.over.wait(0.3):
            try:
                table = DeltaTable(str(self._table))
            except TableNotFoundError:
                continue
            if table.version() in self.versions:
                continue
            self.versions.add(table.version())
            if (problem := fault(table)) is not None:
                self.wrong.append(f"version {table.version()}: {problem}")


def fault(table: object) -> str | None:
    """Why a table is that of no moment; None if it is."""
    rows = table.to_pyarrow_table().select(["id", "n"]).to_pylist()  # type: ignore[attr-defined]
    found = {row["id"]: row["n"] for row in rows}
    if len(found) != len(rows):
        return "an id stands twice"
    upto = max(found.values(), default=-1)
    return None if found == newest(upto) else f"up to {upto} it should hold {newest(upto)}, and holds {found}"


def below(pid: int) -> Iterator[tuple[int, str]]:
    """(pid, command) of all processes that a process has started, and theirs."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            children.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    todo = list(children.get(pid, ()))
    while todo:
        one = todo.pop()
        with contextlib.suppress(OSError):
            yield one, Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        todo += children.get(one, ())


def victim(driver: int, kind: str) -> int:
    """Whom to kill; the driver where no such process is there."""
    signs = {"jvm": "org.apache.spark", "pump": "streaming.pump", "worker": "pyspark.daemon"}
    found = [pid for pid, command in below(driver) if kind in signs and signs[kind] in command]
    return found[-1] if found else driver


def start(folder: Path, *, once: bool = False) -> subprocess.Popen[bytes]:
    words = [sys.executable, __file__, "--drive", str(folder), *(["--once"] if once else [])]
    path = os.pathsep.join([str(_HERE.parents[2]), os.environ.get("PYTHONPATH", "")])
    log = (folder / "drivers.log").open("ab")
    with log:
        return subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=log, env={**os.environ, "PYTHONPATH": path}, start_new_session=True
        )


def end(driver: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a driver: its whole group. Pumps end by themselves, and that is looked at."""
    with contextlib.suppress(ProcessLookupError):
        driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert driver.stdout is not None
    driver.stdout.close()


def say(folder: Path, upto: int) -> None:
    new = folder / "upto.new"
    new.write_text(str(upto))
    new.rename(folder / "upto")


def storm(folder: Path, *, rounds: int, seed: int, longest_seconds: float = 12.0) -> dict[str, int]:
    """Run it; what was done. Raises AssertionError if the table is ever wrong."""
    chance = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    upto, done = _STEP, {"driver": 0, "jvm": 0, "pump": 0, "worker": 0}
    say(folder, upto)
    watch = Watch(folder / "table")
    watch.start()
    for _ in range(rounds):
        driver = start(folder)
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"started\n", (folder / "drivers.log").read_text()[-2000:]
        # Mostly once the query gets on; now and then while it begins.
        begun, patience = len(watch.versions), 0.0 if chance.random() < 0.2 else 90.0
        give_up = time.monotonic() + patience
        while time.monotonic() < give_up and len(watch.versions) == begun:
            upto += chance.randrange(_STEP)
            say(folder, upto)
            time.sleep(0.3)
        until = time.monotonic() + chance.uniform(0.0, longest_seconds)
        while time.monotonic() < until:
            upto += chance.randrange(_STEP)
            say(folder, upto)
            time.sleep(0.3)
        kind = chance.choice(sorted(done))
        done[kind] += 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim(driver.pid, kind), signal.SIGKILL)
        time.sleep(chance.uniform(0, 0.5))
        end(driver)
    last = start(folder, once=True)
    assert last.stdout is not None
    last.stdout.read()
    code = last.wait()
    last.stdout.close()
    assert code == 0, (folder / "drivers.log").read_text()[-3000:]
    watch.over.set()
    watch.join()
    from deltalake import DeltaTable

    table = DeltaTable(str(folder / "table"))
    assert watch.wrong == [], watch.wrong
    assert fault(table) is None, fault(table)
    found = {row["id"]: row["n"] for row in table.to_pyarrow_table().select(["id", "n"]).to_pylist()}
    assert found == newest(upto)
    return {**done, "numbers": upto, "versions": table.version() + 1, "versions_seen": len(watch.versions)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--drive", type=Path, default=None)
    parser.add_argument("--once", action="store_true")
    given = parser.parse_args()
    if given.drive is not None:
        drive(given.drive, given.once)
        return
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        print(storm(given.folder or Path(made) / "storm", rounds=given.rounds, seed=given.seed))


if __name__ == "__main__":
    main()
