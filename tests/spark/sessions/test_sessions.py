"""Whose session it is, whose confs count, and what is said when none can be had."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from burler.errors import UsageError
from burler.spark import Java, export
from burler.spark import session as get_session
from support import internals
from support.internals import export_options, jvm, spark_session
from support.internals import spark_launch as launch
from support.internals import spark_remote as remote

session_module = sys.modules["burler.spark.session"]

ODD = {
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.files.ignoreCorruptFiles": "true",
}

ENDED_BY = """
import os, sys
from support.internals import sail
print(sail.server(), next(iter(sail._running.values()))[0].pid, flush=True)
os.kill(os.getpid(), 9)
"""


# ---- a session that is there ----------------------------------------------------------------------------------------


@pytest.fixture
def odd(spark):
    """The session as somebody else has set it up."""
    before = {key: spark.conf.get(key, None) for key in internals.confs.JOB_CONFS}
    for key, value in ODD.items():
        spark.conf.set(key, value)
    spark.conf.unset("spark.sql.legacy.timeParserPolicy")
    yield spark
    for key, value in before.items():
        spark.conf.set(key, value)


def told(spark):
    return {key: spark.conf.get(key, None) for key in internals.confs.JOB_CONFS}


def test_somebodys_session_is_used_as_it_is_and_has_its_confs_back(odd, lake, tmp_path, monkeypatch):
    monkeypatch.setattr(export_options, "SMALL_ROWS", 0)
    before = told(odd)
    lake.commit("users", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])

    (result,) = export(odd, str(lake.root), str(tmp_path / "out"))

    assert result.rows_written == 2
    assert told(odd) == before
    assert {key: before[key] for key in ODD} == ODD
    assert odd.range(3).count() == 3, "it is not stopped"


def test_confs_come_back_when_the_last_of_two_jobs_ends_and_after_an_error(odd):
    before = told(odd)
    entered, leave = threading.Event(), threading.Event()

    def other():
        with internals.confs.job_confs(odd):
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=other)
    with pytest.raises(ZeroDivisionError), internals.confs.job_confs(odd):
        thread.start()
        assert entered.wait(30)
        raise ZeroDivisionError
    assert told(odd) == dict(internals.confs.JOB_CONFS), "the other job still needs them"
    leave.set()
    thread.join()

    assert told(odd) == before


class Shut:
    """A session whose service lets no conf be set, as serverless ones do."""

    def __init__(self, **values):
        self.conf = self
        self.values = {key.replace("_", "."): value for key, value in values.items()}

    def get(self, key, default=None):
        return self.values.get(key, default)

    def set(self, key, value):
        raise ValueError("[CONFIG_NOT_AVAILABLE] no")

    unset = set


def test_a_session_that_lets_nothing_be_set_serves_where_it_is_right_already():
    with internals.confs.job_confs(Shut(spark_sql_session_timeZone="UTC")):
        pass
    with (
        pytest.raises(UsageError, match=r"timeZone=Asia/Tokyo.*CONFIG_NOT_AVAILABLE.*UTC"),
        internals.confs.job_confs(Shut(spark_sql_session_timeZone="Asia/Tokyo")),
    ):
        pass


def test_another_kind_of_session_is_refused_while_there_is_one(spark):
    with pytest.raises(UsageError, match="classic Spark session already"):
        get_session(remote="sail")
    with pytest.raises(UsageError, match="classic Spark session already"):
        get_session(remote="sc://127.0.0.1:1")


def test_what_a_classic_session_can_do(spark):
    import pyspark

    can = remote.capabilities(spark)

    assert (can.kind, can.is_local, can.has_observe, can.has_metadata, can.runs_python) == ("classic", *[True] * 4)
    assert can.version == remote.version_of(pyspark.__version__)
    assert remote.capabilities(spark) is can


@pytest.mark.parametrize(
    ("version", "pushdown", "admission"), [((4, 0, 1), False, False), ((4, 1, 0), True, False), ((4, 2, 3), True, True)]
)
def test_features_come_with_versions(version, pushdown, admission):
    can = remote.Capabilities("connect", version, True, True, True, True, True)

    assert (can.has_filter_pushdown, can.has_pipelines, can.has_admission_control) == (pushdown, pushdown, admission)


def test_both_sources_are_found_by_name(spark, lake):
    lake.commit("users", [{"id": 1, "name": "a"}])

    frame = spark.read.format("singerlake").option("stream", "users").load(str(lake.root))

    assert [row.id for row in frame.select("id").collect()] == [1]


# ---- whose confs count ----------------------------------------------------------------------------------------------

ASK = """
import json, sys
from burler.spark import session
spark = session("mine", json.loads(sys.argv[1]))
keys = ["spark.master", "spark.app.name", "spark.sql.shuffle.partitions", "spark.ui.enabled", "spark.driver.memory",
        "spark.sql.session.timeZone", "spark.driver.host", "spark.my.own"]
print(json.dumps([spark.conf.get(key, None) for key in keys]))
"""


def test_confs_of_the_call_win_over_the_file_and_the_file_over_burlers(packages, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text(
        "# mine\nspark.master local[1]\nspark.sql.shuffle.partitions   7\nspark.my.own=a=b c\nspark.ui.enabled: false\n"
    )
    confs = {"spark.my.own": "call", "spark.driver.memory": "700m", "spark.sql.session.timeZone": "Europe/Paris"}
    confs["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1"

    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(confs)],
        env={**os.environ, "SPARK_CONF_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [
        "local[1]",
        "mine",
        "7",
        "false",
        "700m",
        "Europe/Paris",
        "127.0.0.1",
        "call",
    ]


def test_confs_of_a_file_and_of_spark_submits_arguments_are_read(tmp_path, monkeypatch):
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.a 1\nspark.b=x y \n#spark.c 3\nnot.spark 4\nspark.d:5\nspark.e\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv(
        "PYSPARK_SUBMIT_ARGS", "--master local[3] --conf spark.a=2 -c 'spark.f=with space' --name=x pyspark-shell"
    )

    assert launch.users_confs() == {
        "spark.a": "2",
        "spark.b": "x y",
        "spark.d": "5",
        "spark.f": "with space",
        "spark.master": "local[3]",
        "spark.app.name": "x",
    }


@pytest.mark.parametrize(
    ("master", "partitions"),
    [("local[3]", "6"), ("local", "2"), ("local[2,4]", "4"), ("local-cluster[2,3,1024]", "12")],
)
def test_a_local_master_has_twice_as_many_shuffle_partitions_as_slots(master, partitions):
    assert spark_session.default_confs(master)["spark.sql.shuffle.partitions"] == partitions


def test_a_clusters_own_addresses_and_partitions_stay(tmp_path):
    confs = spark_session.default_confs("spark://host:7077")

    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.sql.shuffle.partitions"} & set(confs)


@pytest.mark.parametrize(("gigabytes", "mib"), [(2, 1024), (16, 4096), (100, 8192)])
def test_the_driver_takes_a_quarter_of_the_memory_within_limits(monkeypatch, gigabytes, mib):
    sizes = {"SC_PHYS_PAGES": gigabytes << 18, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(session_module.os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(session_module.Path, "read_text", lambda *_a, **_k: "max")

    assert spark_session.default_confs("local[1]")["spark.driver.memory"] == f"{mib}m"


def test_memory_and_folders_of_settings_reach_the_jvm(tmp_path, monkeypatch):
    for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    java = Java("/java/bin/java", 17, "PATH")

    command = jvm.command(java, "/spark", {"spark.driver.memory": "2gb"}, tmp_path / "log4j2.properties")

    assert "-Xmx2g" in command
    assert command[command.index("-cp") + 1] == os.pathsep.join(
        [str(tmp_path / "SPARK_CONF_DIR"), str(tmp_path / "HADOOP_CONF_DIR"), "/spark/jars/*"]
    )


# ---- what can't be had ----------------------------------------------------------------------------------------------


def test_master_and_remote_together_are_refused(packages):
    with pytest.raises(UsageError, match="Leave one of them out"):
        get_session(master="local[1]", remote="sail")


def test_a_word_that_is_no_master_is_refused_before_java_starts(packages):
    """In a process of its own: this one may have a session, which serves whatever master is asked for."""
    code = "from burler.spark import session; session(master='lokal')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "UsageError: there is no Spark master 'lokal'. Masters: local, local[4]" in done.stderr
    assert "java" not in done.stderr.lower()


@pytest.mark.parametrize("address", ["http://host", "sc://", "host:1", "sc://host:port", "sc://[::1", ""])
def test_what_is_no_address_is_told_without_showing_it(address):
    with pytest.raises(UsageError) as caught:
        remote.address_of(address + ";token=hidden")

    assert "sc://HOST:PORT" in str(caught.value)
    assert "hidden" not in str(caught.value)


def closed_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def test_nobody_there_is_told_at_once(packages, monkeypatch):
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    port = closed_port()

    with pytest.raises(UsageError) as caught:
        remote._reach(f"sc://127.0.0.1:{port}/;token=hidden", f"127.0.0.1:{port}")

    assert f"127.0.0.1:{port} (Connection refused)" in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_a_server_of_another_kind_is_told(packages, monkeypatch):
    monkeypatch.setattr(remote, "_REACH_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(UsageError, match="does not speak as a Spark Connect server"):
            remote._reach(f"sc://127.0.0.1:{port}", f"127.0.0.1:{port}")


def test_sails_server_ends_with_the_process_that_asked_for_it(packages):
    import time

    done = subprocess.run([sys.executable, "-c", ENDED_BY], capture_output=True, text=True, timeout=600)
    _, pid = done.stdout.split()

    def runs():
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return False
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"

    deadline = time.monotonic() + 30
    while runs() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert done.returncode == -9
    assert not runs()


def test_the_first_lines_of_the_page_run(spark):
    page = (Path(__file__).parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")
    scope = {}

    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], scope)

    assert scope["session"].range(2).count() == 2
