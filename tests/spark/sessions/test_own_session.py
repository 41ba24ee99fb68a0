"""A session that burler makes: whose confs count, what ends with it, and what is said when none can be had.

Each in a process of its own, since one that has a session would use that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.cli import burler


def is_running(pid):
    """A zombie, whose parent has not asked yet, has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_the_end_of(pid, seconds=30):
    deadline = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(pid)


# ---- a session that burler makes ------------------------------------------------------------------------------------

OWN = """
import contextlib, io, json, os, signal, subprocess, sys
from burler.spark import session

spark = session("mine", json.loads(sys.argv[1]))
keys = ["spark.master", "spark.app.name", "spark.sql.shuffle.partitions", "spark.ui.enabled", "spark.driver.memory",
        "spark.sql.session.timeZone", "spark.driver.host", "spark.my.own", "spark.sql.files.ignoreCorruptFiles"]
java = spark.sparkContext._jvm
said = {
    "confs": [spark.conf.get(key, None) for key in keys],
    "jvm": java.ProcessHandle.current().pid(),
    "class path": java.System.getProperty("java.class.path"),
    "heap": java.Runtime.getRuntime().maxMemory() >> 20,
    "trainings": [],
}

# A first export leaves the training of an archive behind, at most once a day; nothing is started here.
class Popen:
    def __init__(self, command, **options):
        said["trainings"].append([command[1], options["start_new_session"]])

from support.cli import burler
subprocess.Popen = Popen
for environ in ({"CI": "true"}, {"BURLER_SPARK_ARCHIVE": "off", "CI": ""}, {"CI": ""}, {"CI": ""}):
    done = burler("export", sys.argv[2], sys.argv[3], XDG_CACHE_HOME=sys.argv[4], **environ)
    assert done.code == 0, done.stderr
print(json.dumps(said), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("submitted", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_confs_of_the_call_win_over_the_file_and_the_file_over_burlers(packages, lake, tmp_path, submitted):
    """In a process of its own, with a JVM that ends with it, although it is killed.

    At night also with confs for spark-submit, which pyspark hands to its own launcher: as they come, they win over the
    file.
    """
    lake.commit("users", [{"id": 1, "name": "a"}])
    for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR"):
        (tmp_path / name).mkdir()
    (tmp_path / "SPARK_CONF_DIR" / "spark-defaults.conf").write_text(
        "# mine\nspark.master local[1]\nspark.sql.shuffle.partitions   7\nspark.my.own=a=b c\nspark.ui.enabled: false\n"
    )
    confs = {"spark.my.own": "call", "spark.driver.memory": "700m", "spark.sql.session.timeZone": "Europe/Paris"}
    confs["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    environ = {name: str(tmp_path / name) for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR")}
    if submitted:
        environ["PYSPARK_SUBMIT_ARGS"] = "--conf spark.sql.shuffle.partitions=5 --driver-memory 700m pyspark-shell"

    done = subprocess.run(
        [sys.executable, "-c", OWN, json.dumps(confs), lake.root, tmp_path / "out", tmp_path / "cache"],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=600,
    )

    assert done.returncode == -9, done.stderr
    said = json.loads(done.stdout)
    partitions = "5" if submitted else "7"
    assert said["confs"] == [
        *("local[1]", "mine", partitions, "false", "700m", "Europe/Paris", "127.0.0.1", "call", "false"),
    ]
    assert wait_for_the_end_of(said["jvm"]), "the JVM must end with its Python"
    assert 600 < said["heap"] <= 700
    if not submitted:
        assert done.stderr == ""
        assert said["class path"].split(os.pathsep)[:2] == [environ["SPARK_CONF_DIR"], environ["HADOOP_CONF_DIR"]]
        assert said["trainings"] == [["-m", True]]


@pytest.mark.parametrize(("gigabytes", "mib"), [(2, "1,024"), (16, "4,096"), (100, "8,192")])
def test_the_driver_takes_a_quarter_of_the_memory_within_limits(packages, monkeypatch, gigabytes, mib):
    real_size, real_text = os.sysconf, Path.read_text
    sizes = {"SC_PHYS_PAGES": gigabytes << 18, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", lambda name: sizes.get(name) or real_size(name))
    text = lambda self, *args, **more: "max" if self.name == "memory.max" else real_text(self, *args, **more)  # noqa: E731
    monkeypatch.setattr(Path, "read_text", text)

    assert f"driver memory  {mib} MiB" in burler("spark", "info").text


# ---- what can't be had ----------------------------------------------------------------------------------------------

REFUSED = """
import json, socket, sys, threading
from burler.errors import UsageError
from burler.spark import session

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    closed = free.getsockname()[1]
other = socket.create_server(("127.0.0.1", 0))
addresses = ["http://host", "sc://", "host:1", "sc://host:port", "sc://[::1"]
wanted = [{"remote": address + ";token=hidden"} for address in addresses]
wanted += [{"master": "local[1]", "remote": "sail"}, {"master": "lokal"}]
wanted += [{"remote": f"sc://127.0.0.1:{port}/;token=hidden"} for port in (closed, other.getsockname()[1])]
said = [""] * len(wanted)

def ask(at):
    try:
        session(**wanted[at])
    except UsageError as error:
        said[at] = str(error)

import pyspark.sql.connect.session
threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(wanted))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps([closed, said]))
"""


def test_what_is_no_session_is_told_at_once_and_without_its_token(packages):
    """In a process of its own: this one may have a session, which serves whatever master is asked for."""
    environ = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run([sys.executable, "-c", REFUSED], env=environ, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    closed, said = json.loads(done.stdout)
    *addresses, both, master, nobody, other = said
    assert all("sc://HOST:PORT" in one for one in addresses), addresses
    assert "Leave one of them out" in both
    assert master.startswith("there is no Spark master 'lokal'. Masters: local, local[4]")
    assert f"127.0.0.1:{closed} (Connection refused)" in nobody
    assert "does not speak as a Spark Connect server" in other
    assert "hidden" not in done.stdout + done.stderr and "java" not in done.stderr.lower()


ENDED_BY = """
import os
from pathlib import Path
from burler.spark import session
session(remote="sail").range(1).count()
for path in Path("/proc/self/task").glob("*/children"):
    try:
        print(path.read_text(), flush=True)
    except OSError:  # a thread that has just ended
        pass
os.kill(os.getpid(), 9)
"""


def test_sails_server_ends_with_the_process_that_asked_for_it(packages):
    done = subprocess.run([sys.executable, "-c", ENDED_BY], capture_output=True, text=True, timeout=600)

    assert done.returncode == -9, done.stderr
    assert done.stdout.split(), "the server is a process of its own"
    assert all(map(wait_for_the_end_of, done.stdout.split()))
