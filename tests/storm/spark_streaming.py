"""kill -9 of a streaming query at random points, again and again; afterwards the table is exactly right.

    python tests/spark/streaming/streaming_storm.py --rounds 50 --seed 7

A tap counts, a query upserts what it says into a Delta table. Each round kills the driver, its JVM, the tap's process
or a Python worker at a random moment. Where the driver lives on, the query is given time to go on, or to end with an
error of its own; then the driver is killed, too. Meanwhile a reader looks at the table, which must always be that of
some moment: for its greatest number N, the newest number of each id up to N. At the end the query runs to its end.
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
from collections.abc import Iterator, Sequence
from pathlib import Path

KEYS = 50
_HERE = Path(__file__).resolve().parent
_STEP = 40
KINDS = ("driver", "jvm", "pump", "worker")
_AFTER_SECONDS = 40.0
"""How long a query is given to go on after a kill."""


def newest(upto: int) -> dict[int, int]:
    """What the table must hold once all numbers up to this one are in it."""
    return {n % KEYS: n for n in range(upto + 1)}


def drive(folder: Path, once: bool) -> None:
    """The driver: a session, and the query until it ends or is killed."""
    from burler.spark import session, upsert

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


def kill(driver: int, kind: str) -> str:
    """Kill such a process, or the driver where none is there; whom it was."""
    signs = {"jvm": "org.apache.spark", "pump": "streaming.pump", "worker": "pyspark.daemon"}
    found = [pid for pid, command in below(driver) if kind in signs and signs[kind] in command]
    with contextlib.suppress(ProcessLookupError):
        os.kill(found[-1] if found else driver, signal.SIGKILL)
    return kind if found else "driver"


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


def storm(
    folder: Path, *, rounds: int, seed: int, longest_seconds: float = 12.0, kinds: Sequence[str] = KINDS
) -> dict[str, int]:
    """Run it; what was done: who was killed, and how often the query then ``went_on`` or ``ended`` by itself.

    Raises AssertionError if the table is ever wrong.
    """
    chance = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    upto, done = _STEP, dict.fromkeys((*KINDS, "went_on", "ended"), 0)
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
        killed = kill(driver.pid, chance.choice(kinds))
        done[killed] += 1
        # What was under way at the kill may still be published: only what comes after that shows that it goes on.
        begun, give_up = len(watch.versions) + 2, time.monotonic() + _AFTER_SECONDS
        while killed != "driver" and time.monotonic() < give_up and driver.poll() is None:
            if len(watch.versions) > begun:
                done["went_on"] += 1
                break
            upto += chance.randrange(_STEP)
            say(folder, upto)
            time.sleep(0.3)
        done["ended"] += killed != "driver" and driver.poll() is not None
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
