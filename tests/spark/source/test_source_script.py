"""A script in a folder of its own, run from another one, on Spark Connect: its own tap, and one beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

MODULE = """\
import burler

tap = burler.tap("tap-beside")


@tap.schema("rows")
def schema():
    return {"type": "object", "properties": {"id": {"type": "integer"}}}


@tap.sync("rows", key_properties=["id"])
def rows():
    yield [{"id": n} for n in range(7)]
"""
SCRIPT = """\
import json
import sys
import threading

import beside
import burler
from burler.spark import session
from burler.spark import read

tap = burler.tap("tap-script")
WORDS = ["a", "b", "c"]


class Client:
    def __init__(self):
        self.lock = threading.Lock()

    def words(self):
        with self.lock:
            return helped(WORDS)


def helped(words):
    return [word.upper() for word in words]


@tap.client
def client():
    return Client()


@tap.schema("words")
def schema():
    return {"type": "object", "properties": {"word": {"type": "string"}, "part": {"type": "string"}}}


@tap.partitions("words")
def parts():
    return [{"part": "x"}, {"part": "y"}]


@tap.sync("words", key_properties=["part", "word"])
def words(client, partition):
    yield [{"word": word, **partition} for word in client.words()]


if __name__ == "__main__":
    conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "1g"}
    master = {"remote": "local[2]"} if sys.argv[1] == "connect" else {"master": sys.argv[1]}
    spark = session("script", conf, **master)
    own = read(spark, tap, stream="words")
    found = [
        sorted(map(tuple, own.collect())),
        read(spark, beside.tap).count(),
        read(spark, "beside:tap", limit=3).count(),
        "connect" in type(spark).__module__,
    ]
    print(json.dumps(found))
    spark.stop()
"""


@pytest.mark.spark
def test_a_script_on_connect_reads_its_own_tap_and_one_beside_it(tmp_path, packages):
    folder, elsewhere = tmp_path / "job", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "beside.py").write_text(MODULE)
    (folder / "script.py").write_text(SCRIPT)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, folder / "script.py", "connect"],
        cwd=elsewhere,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    words = [[word, part] for word in "ABC" for part in "xy"]
    assert json.loads(done.stdout.splitlines()[-1]) == [words, 7, 3, True]
