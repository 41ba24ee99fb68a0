"""Speculation: a slow task gets a second attempt on another host, and its partition is committed once.

    python tests/spark/extract/extract_speculation.py

Spark never tries a task again on the host that it runs on. So this starts a standalone cluster of a master and two
workers that listen on two addresses of this machine, 127.0.0.2 and 127.0.0.3. The first attempt at a part waits long.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from burler.lake import care, open_store

HOSTS = ("127.0.0.2", "127.0.0.3")
TAP = """
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
    mark = %r + f"/attempt-{partition['part']}"
    first = True
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        first = False
    for number in range(10):
        yield {"id": partition["part"] * 10 + number, "attempt": 1 if first else 2}
    if first and partition["part"] == 2:
        open(%r + "/slow", "w").close()
        time.sleep(60)
    if not first:
        open(%r + "/second", "w").close()
"""


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and two workers; gives the master's URL."""
    import pyspark

    home = Path(pyspark.__file__).parent
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{home}/jars/*"]
    # Spark's scripts say these; without them Java 17 refuses what Spark does.
    opens = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
    folders = {"SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(folder / "work")}
    environment = {**os.environ, **folders, "SPARK_SCALA_VERSION": "2.13"}
    started = []

    def start(name: str, *args: str) -> None:
        words = [*java, *opens, f"org.apache.spark.deploy.{name}", *args]
        with (folder / "cluster.log").open("ab") as log:
            started.append(subprocess.Popen(words, env=environment, stdout=log, stderr=log, cwd=folder))

    master = f"spark://127.0.0.1:{17000 + os.getpid() % 1000}"
    try:
        start("master.Master", "--host", "127.0.0.1", "--port", master.rpartition(":")[2], "--webui-port", "0")
        wait_for(folder / "cluster.log", "elected leader", 1)
        for host in HOSTS:
            start("worker.Worker", "--host", host, "--cores", "3", "--memory", "1g", "--webui-port", "0", master)
        wait_for(folder / "cluster.log", "Registering worker", len(HOSTS))
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=30)


def wait_for(log: Path, text: str, times: int, seconds: float = 120.0) -> None:
    """Until the cluster has said something so many times."""
    until = time.monotonic() + seconds
    while log.read_text().count(text) < times:
        if time.monotonic() > until:
            raise TimeoutError(f"the cluster has not said {text!r}:\n{log.read_text()[-3000:]}")
        time.sleep(0.2)


_OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip
CONFS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.task.duration.threshold": "3s",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}


def main() -> int:
    from extracted import committed, rows_of

    from burler import spark
    from burler.spark import extract

    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tap_slow.py").write_text(TAP % (name, name, name))
        with cluster(folder) as master:
            session = spark.session("speculation", CONFS, master=master)
            done = extract(session, folder / "tap_slow.py", folder / "lake", slots=4)
            session.stop()
        lake = folder / "lake"
        rows = rows_of(lake, "tap-slow", "rows")
        attempts = {row["attempt"] for row in rows if 20 <= row["id"] < 30}
        names = [one for one in committed(lake, "tap-slow", "rows") if one["type"] == "RECORD"]
        findings = [str(one) for one in care.check(open_store(str(lake))).findings]
        sys.stderr.write(json.dumps({"rows": len(rows), "attempts": sorted(attempts), "findings": findings}) + "\n")
        right = (
            done.errors == {}
            and sorted(row["id"] for row in rows) == list(range(40))
            and len(names) == 40
            and attempts == {2}
            and (folder / "slow").exists()
        )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
