"""Memory stays flat in the number of rows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tapprocess import python, write_tap

SOURCE = """
import burler
tap = burler.tap("tap-x", config_spec={"count": 1})

@tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="every_n(1000)", order="asc")
def rows(stream):
    for i in range(stream.config["count"]):
        yield {"id": i, "text": "some text of a usual length, %d" % i}

tap.schema("rows", SCHEMA)
"""

WRAPPER = """
import os, resource, subprocess, sys
with open(os.devnull, "wb") as null:
    read, write = os.pipe()
    sink = subprocess.Popen(["cat"], stdin=read, stdout=null)
    os.close(read)
    code = subprocess.run(sys.argv[1:], stdout=write, stderr=null).returncode
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    os.close(write)
    sink.wait()
print(code, peak)
"""


@pytest.mark.slow
def test_peak_memory_does_not_grow_with_the_rows(tmp_path: Path):
    path = write_tap(tmp_path, SOURCE)
    peaks = {}
    for count in (10_000, 500_000):
        command = [sys.executable, "-m", "burler", "run", str(path)]
        ended = python("-c", WRAPPER, *command, cwd=tmp_path, TAP_X_COUNT=str(count))
        code, peak = map(int, ended.stdout.split())
        assert code == 0
        peaks[count] = peak
    assert peaks[500_000] <= peaks[10_000] * 1.1 + 10 * 1024, peaks
    assert peaks[500_000] <= 60 * 1024, peaks
