"""Run a pipelines project as a user would, and read what it made."""

from __future__ import annotations

import os
import subprocess
import sys
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
