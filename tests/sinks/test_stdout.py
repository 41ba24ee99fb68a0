"""Messages on stdout, into pipes that are slow, full or closed; and ``--sink``."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.cli import burler, environment

TAP = """
import burler
tap = burler.tap("tap-t")

@tap.sync("rows", key_properties="id", replication_key="id", order="asc", bookmark_strategy="every_n(10)",
          schema={"properties": {"id": {"type": "integer"}, "text": {"type": "string"}}})
def rows():
    for number in range(COUNT):
        yield {"id": number, "text": "x" * (number * 37 % WIDTH)}
    if BREAKS:
        raise RuntimeError("boom")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path)
    return tmp_path


def put(folder: Path, count: int = 100, width: int = 1, breaks: bool = False) -> None:
    text = TAP.replace("COUNT", str(count)).replace("WIDTH", str(width)).replace("BREAKS", str(breaks))
    (folder / "tap_t.py").write_text(text)


def start(folder: Path, *args: str, **given: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "burler", "run", "tap_t.py", *args]
    return subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, **given)


def without_times(lines: bytes) -> bytes:
    return re.sub(rb'"time_extracted":"[^"]*"', b"", lines)


def test_all_of_it_arrives_in_order_in_a_pipe_that_does_not_block(folder: Path) -> None:
    put(folder, 2000, 5000)
    wanted = burler("run", "tap_t.py", cwd=folder).stdout
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    process = start(folder, stdout=writing)
    os.close(writing)
    found = bytearray()
    while piece := os.read(reading, 100_000):
        found += piece
        time.sleep(0.0005)
    os.close(reading)
    assert process.wait(30) == 0, process.communicate()
    process.communicate()
    assert len(wanted) > 4_000_000 and without_times(bytes(found)) == without_times(wanted)


@pytest.mark.parametrize("taken", [0, 1, 100_000])
def test_a_reader_that_goes_away_in_the_middle_is_exit_code_4(folder: Path, taken: int) -> None:
    put(folder, 2000, 5000)
    process = start(folder, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(taken)
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(30) == 4 and "Traceback" not in said


def test_a_full_disk_and_a_closed_descriptor_are_one_error(folder: Path) -> None:
    for redirected, says in ((">/dev/full", "No space left"), (">&-", "")):
        line = f"{sys.executable} -m burler run tap_t.py {redirected}"
        done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment(), capture_output=True, check=False)
        said = done.stderr.decode()
        assert done.returncode not in (0, 4) and "Traceback" not in said and said.count(" CRITICAL ") == 1, said
        assert "stdout" in said and says in said


@pytest.mark.parametrize("text", ["stdoutt", "lake", "lake:", "kafka:x", "lake;x"])
def test_unknown_sinks(folder: Path, text: str) -> None:
    done = burler("run", "tap_t.py", "--sink", text, cwd=folder)
    assert (done.code, done.text) == (2, "") and "Known: stdout, lake:URL" in done.stderr


# ---- a lake --------------------------------------------------------------------------------------------------------


def ids_in(lake: Path) -> list[int]:
    """The rows of the files that are published."""
    manifest = lake / "raw" / "tap-t" / "rows" / "manifest.json"
    if not manifest.exists():
        return []
    files = json.loads(manifest.read_text())["files"]
    lines = [line for name in files for line in gzip.decompress((manifest.parent / name).read_bytes()).splitlines()]
    return sorted(m["record"]["id"] for m in map(json.loads, lines) if m["type"] == "RECORD")


def test_a_lake_lets_a_state_go_once_its_rows_are_committed(folder: Path) -> None:
    (folder / "config.json").write_text('{"page_max_rows": 5, "max_file_records": 25}')
    process = start(folder, "--sink", "lake:lake", "--config", "config.json", stdout=subprocess.PIPE)
    assert process.stdout is not None
    marks = []
    for line in process.stdout:
        message = json.loads(line)
        assert message["type"] == "STATE"
        marks.append(message["value"]["bookmarks"]["rows"]["id"])
        assert len(ids_in(folder / "lake")) > marks[-1]
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert ids_in(folder / "lake") == list(range(100)) and marks[-1] == 99 and marks == sorted(marks)


def test_a_lake_keeps_what_a_broken_stream_gave(folder: Path) -> None:
    put(folder, 15, breaks=True)
    done = burler("run", "tap_t.py", "--sink", "lake:lake", cwd=folder)
    assert done.code == 1 and ids_in(folder / "lake") == list(range(15))
    assert done.messages[-1]["value"]["bookmarks"]["rows"]["id"] == 14


def test_a_lake_that_breaks_lets_no_state_go(folder: Path) -> None:
    (folder / "lake").mkdir()
    (folder / "lake/raw").write_text("in the way")
    done = burler("run", "tap_t.py", "--sink", "lake:lake", cwd=folder)
    assert done.code in (1, 2) and done.text == "" and "CRITICAL" in done.stderr
