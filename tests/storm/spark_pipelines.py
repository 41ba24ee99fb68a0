"""Run a pipelines project as a user would, and read what it made; the same again, round after round (``make storm``).

python tests/spark/pipelines/running.py 3     # three runs, new commits before each
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import burler

# One compiler of the JVM is enough for a few rows; without this each run takes twice the CPU.
# And a busy machine takes longer than the 15 seconds in which a Python worker must come up.
QUICK = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1", "SPARK_AUTH_SOCKET_TIMEOUT": "120"}


def spark_pipelines(project, *arguments, timeout=600):
    """``spark-pipelines ARGUMENTS --properties-file spark.conf`` in a project's folder."""
    command = Path(sys.executable).with_name("spark-pipelines")
    environ = {
        **os.environ,
        **QUICK,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(burler.__file__).parent.parent),
        "PATH": os.pathsep.join((str(command.parent), os.environ.get("PATH", ""))),
    }
    return subprocess.run(
        [command, *arguments, "--properties-file", "spark.conf"],
        cwd=project,
        env=environ,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def rows(project, table):
    """A table's rows by pyarrow, as dicts."""
    import pyarrow.parquet as pq

    found = []
    for file in sorted((project / "warehouse" / table).glob("*.parquet")):
        found += pq.read_table(file).to_pylist()
    return found


def rounds(count):
    """Runs over a lake that grows; each must hold just what came so far."""
    from support.internals import pipelines

    spec = importlib.util.spec_from_file_location("lakes", Path(__file__).parents[1] / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["lakes"] = module
    spec.loader.exec_module(module)
    with tempfile.TemporaryDirectory() as folder:
        lake, project = module.Lake(Path(folder) / "lake"), Path(folder) / "project"
        latest, history = {}, 0
        for number in range(count):
            batch = [{"id": one % 7, "name": f"{number}/{one}"} for one in range(10)]
            lake.commit("users", batch)
            lake.commit(
                "full", [{"id": one, "name": "x"} for one in range(number + 1)], version=number, activate=number
            )
            latest |= {one["id"]: one["name"] for one in batch}
            history += len(batch)
            if not project.exists():
                pipelines.write_project(str(lake.root), project)
            done = spark_pipelines(project, "run")
            assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
            assert len(rows(project, "tap_x_users_rows")) == history
            assert {row["id"]: row["name"] for row in rows(project, "tap_x_users")} == latest
            assert len(rows(project, "tap_x_full")) == number + 1, "rows of older versions do not count"
            print(f"run {number + 1}: {history} rows, {len(latest)} keys", flush=True)


if __name__ == "__main__":
    rounds(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
