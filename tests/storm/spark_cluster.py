"""What needs several processes of Spark: executors beside the driver, a slow task's second attempt, and pipelines run
by Spark's own command, over a lake that grows. Each is a story of few chances; a seed says little."""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burler.lake import care, open_store
from storm.harness import Program, same
from storm.spark_extract import rows_in
from storm.spark_pipelines import rows, spark_pipelines
from storm.spark_tables import BIG, TAP, Lake
from support.cli import PYTHON


@dataclass(frozen=True)
class Outcome:
    """``found`` must be ``wanted``, thing by thing."""

    found: dict[str, Any]
    wanted: dict[str, Any]


class Check:
    """See ``Outcome``."""

    def __init__(self) -> None:
        self.figures: Counter[str] = Counter()

    def take(self, outcome: Outcome) -> None:
        """Things that are lists are compared as rows in whatever order."""
        for name, wanted in outcome.wanted.items():
            found = outcome.found[name]
            if isinstance(wanted, list):
                same(name, map(repr, found), map(repr, wanted))
                self.figures["rows compared"] += len(wanted)
            assert isinstance(wanted, list) or found == wanted, f"{name}: {found}, not {wanted}"

    def finish(self) -> None:
        """See ``take``."""


@dataclass(frozen=True)
class Steps:
    """The world. ``tell``: a story, from its folder and its chances."""

    tell: Callable[[Path, random.Random], Iterator[Outcome]]
    at_a_time: int = 1

    def plan(self, seed: int) -> int:
        """See ``World``."""
        return seed

    def check(self, plan: int) -> Check:
        """See ``World``."""
        return Check()

    def run(self, plan: int, folder: Path, check: Check) -> Iterator[Outcome]:
        """See ``World``."""
        return self.tell(folder, random.Random(plan))


EXPORT = """
import json, sys
from burler.spark import export, session
spark = session("cluster", {"spark.driver.memory": "1g", "spark.executor.memory": "512m"}, master=sys.argv[1])
results = export(spark, sys.argv[2], sys.argv[3])
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print(json.dumps([executors, [[one.stream, one.rows_read, one.rows_written] for one in results]]))
"""


def executors(folder: Path, chance: random.Random) -> Iterator[Outcome]:
    """An export by a master with two workers (``local-cluster``) makes the table that ``local[2]`` makes: executors are
    processes of their own there, as on a cluster, and what they need must reach them."""
    lake = Lake(folder / "lake")
    for number in range(3):
        made = [{"id": chance.randrange(50), "name": f"{number}/{one}"} for one in range(BIG if number == 0 else 100)]
        lake.commit("users", made, odd=number == 1)
        lake.commit("log", made, keys=(), odd=True)  # read in Python
    found = {}
    for out, master in (("here", "local[2]"), ("there", "local-cluster[2,1,1024]")):
        words = [PYTHON, "-c", EXPORT, master, lake.root, folder / out]
        with Program(words, folder, out, variables={"PYTHONWARNINGS": "default"}, reading={}) as one:
            assert one.ended(900) == 0, f"the export by {master} failed"
        count, said = json.loads(one.reader.got.splitlines()[-1])
        found[out] = {"executors": count, "said": said}
        for stream in ("users", "log"):
            import deltalake

            table = deltalake.DeltaTable(str(folder / out / TAP / stream)).to_pyarrow_table()
            found[out][stream] = table.drop_columns(["_sdc_batched_at"]).to_pylist()
    yield Outcome(found["there"], found["here"] | {"executors": 2})


SLOW = """
import os
import time
import burler

tap = burler.tap("tap-slow")
SCHEMA = {"properties": {"id": {"type": "integer"}, "attempt": {"type": "integer"}}}

@tap.partitions("rows")
def parts():
    return [{"part": n} for n in range(4)]

@tap.sync("rows", key_properties="id", replication_key="id", schema=SCHEMA)
def rows(partition):
    first = True
    try:
        os.close(os.open(FOLDER + f"/attempt-{partition['part']}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        first = False
    for number in range(10):
        yield {"id": partition["part"] * 10 + number, "attempt": 1 if first else 2}
    if first and partition["part"] == 2:
        time.sleep(60)
"""
EXTRACT = """
import json, logging, sys
from burler import spark
logging.getLogger("burler").addHandler(logging.StreamHandler())  # says why a part has failed
session = spark.session("speculation", json.loads(sys.argv[4]), master=sys.argv[1])
done = spark.extract(session, sys.argv[2], sys.argv[3], slots=4)
session.stop()
print(json.dumps([f"{name}: {error!r}" for name, error in done.errors.items()]))
"""
CONFS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.task.duration.threshold": "3s",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}


def speculation(folder: Path, chance: random.Random) -> Iterator[Outcome]:
    """A slow task gets a second attempt on another host, and its partition is committed once."""
    (folder / "tap_slow.py").write_text(f"FOLDER = {str(folder)!r}\n{SLOW}")
    lake = folder / "lake"
    variables = {"PYTHONWARNINGS": "default", "PYSPARK_PYTHON": sys.executable}
    with _cluster(folder) as master:
        words = [PYTHON, "-c", EXTRACT, master, folder / "tap_slow.py", lake, json.dumps(CONFS)]
        with Program(words, folder, "driver", variables=variables, reading={}) as one:
            code = one.ended(300)
    there = rows_in(lake, "tap-slow", "rows")
    found = {
        "exit code": code,
        "errors": json.loads(one.reader.got.splitlines()[-1] if one.reader.got else "null"),
        "rows": [row["id"] for row in there],
        "attempts at the slow part": sorted({row["attempt"] for row in there if 20 <= row["id"] < 30}),
        "bad findings": [
            str(one) for one in care.check(open_store(str(lake))).findings if one.kind not in ("orphan", "temporary")
        ],
    }
    wanted = {"exit code": 0, "errors": [], "rows": list(range(40)), "attempts at the slow part": [2]}
    yield Outcome(found, {**wanted, "bad findings": []})


HOSTS = ("127.0.0.2", "127.0.0.3")
_OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip


@contextmanager
def _cluster(folder: Path) -> Iterator[str]:
    """A master and two workers that listen on two addresses of this machine, since Spark never tries a task again on
    the host that it runs on; gives the master's URL."""
    import pyspark

    from burler.spark import find_java

    home = Path(pyspark.__file__).parent
    java = [find_java().executable, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{home}/jars/*"]
    # Spark's scripts say these; without them Java 17 refuses what Spark does.
    java += [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
    variables = {"SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(folder / "work"), "SPARK_SCALA_VERSION": "2.13"}
    variables |= {"PYTHONWARNINGS": "default"}
    started: list[Program] = []

    def start(name: str, words: list[str], ready: str) -> None:
        args = [*java, f"org.apache.spark.deploy.{name}", *words]
        started.append(Program(args, folder, name + str(len(started)), variables=variables, reading={}))
        is_up = started[0].until(lambda: started[0].stderr.count(ready) >= max(1, len(started) - 1))
        assert is_up, f"the cluster has not said {ready!r}"

    master = f"spark://127.0.0.1:{17000 + os.getpid() % 1000}"
    try:
        where = ["--host", "127.0.0.1", "--port", master.rpartition(":")[2], "--webui-port", "0"]
        start("master.Master", where, "elected leader")
        for host in HOSTS:
            more = ["--host", host, "--cores", "3", "--memory", "1g", "--webui-port", "0", master]
            start("worker.Worker", more, "Registering worker")
        yield master
    finally:
        for one in reversed(started):
            one.__exit__()


def pipelines(folder: Path, chance: random.Random) -> Iterator[Outcome]:
    """``spark-pipelines run`` over a lake that grows: each run holds just what came so far."""
    lake, project = Lake(folder / "lake"), folder / "project"
    latest: dict[int, str] = {}
    history: list[int] = []
    for number in range(3):
        batch = [{"id": chance.randrange(7), "name": f"{number}/{one}"} for one in range(10)]
        lake.commit("users", batch)
        lake.commit("full", [{"id": one, "name": "x"} for one in range(number + 1)], version=number + 1)
        latest |= {row["id"]: row["name"] for row in batch}
        history += [row["id"] for row in batch]
        if not project.exists():
            words = [PYTHON, "-m", "burler", "spark", "init-pipeline", lake.root, project]
            with Program(words, folder, "init", reading={}) as one:
                assert one.ended() == 0, "no project was made"
        done = spark_pipelines(project, "run")
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        found = {
            "history": [row["id"] for row in rows(project, "tap_x_users_rows")],
            "users": [(row["id"], row["name"]) for row in rows(project, "tap_x_users")],
            "rows of the newest version": len(rows(project, "tap_x_full")),
        }
        yield Outcome(
            found, {"history": history, "users": list(latest.items()), "rows of the newest version": number + 1}
        )
