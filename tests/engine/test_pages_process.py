"""Pages of bytes and of Arrow in real processes: stdout, the lake, signals between pages, start-up."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tapprocess import PYTHON, burler, environment, messages_of, write_tap

PAGES = {
    "array": "json.dumps(rows).encode()",
    "lines": "b'\\n'.join(json.dumps(row).encode() for row in rows)",
    "document": "burler.json_page(json.dumps({'a': {'b': rows}}, indent=2).encode(), 'a.b')",
    "table": "__import__('pyarrow').Table.from_pylist(rows)",
}

TAP = """
import json, sys, time
import burler
tap = burler.tap("tap-pages")

@tap.sync("rows", key_properties="id", replication_key="id", order="asc", bookmark_strategy="every_n(100)")
def feed():
    for first in range(0, 1000, 100):
        rows = [{"id": i, "text": "é" * (i % 7)} for i in range(first, first + 100)]
        yield PAGE
        BEHIND

tap.schema("rows", SCHEMA)
"""

kinds = pytest.mark.parametrize("kind", PAGES)


def write(folder: Path, kind: str, behind: str = "") -> Path:
    return write_tap(folder, TAP.replace("PAGE", PAGES[kind]).replace("BEHIND", behind))


@kinds
def test_stdout_has_each_row_on_a_line_and_the_last_state(tmp_path: Path, kind: str):
    ended = burler("run", write(tmp_path, kind), cwd=tmp_path)
    assert ended.code == 0, ended.stderr
    rows = [m["record"] for m in ended.messages if m["type"] == "RECORD"]
    assert rows == [{"id": i, "text": "é" * (i % 7)} for i in range(1000)]
    assert ended.messages[-1] == {"type": "STATE", "value": {"bookmarks": {"rows": {"id": 999}}}}
    assert "1,000 rows of 'rows'" in ended.stderr


@kinds
def test_the_lake_takes_pages(tmp_path: Path, kind: str):
    ended = burler("run", write(tmp_path, kind), "--sink", "lake:lk", cwd=tmp_path)
    assert ended.code == 0, ended.stderr
    found = []
    for path in sorted(tmp_path.glob("lk/raw/tap-pages/rows/*/*.singer.gz")):
        lines = gzip.decompress(path.read_bytes()).splitlines()
        assert json.loads(lines[0])["type"] == "SCHEMA"
        found += [json.loads(line)["record"]["id"] for line in lines[1:]]
    assert sorted(found) == list(range(1000))
    assert ended.messages[-1]["value"]["bookmarks"] == {"rows": {"id": 999}}


def started(path: Path, *, stderr: int) -> subprocess.Popen[bytes]:
    """A run of the tap that is under way."""
    command = [PYTHON, "-m", "burler", "run", str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment(), cwd=path.parent)


@kinds
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_between_pages_loses_none(tmp_path: Path, kind: str, number: int):
    path = write(tmp_path, kind, "if first == 300: sys.stderr.write('READY\\n'); sys.stderr.flush(); time.sleep(600)")
    process = started(path, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if b"READY" in line:
                break
        process.send_signal(number)
        out, errors = process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, errors
    messages = messages_of(out)
    assert [m["record"]["id"] for m in messages if m["type"] == "RECORD"] == list(range(400))
    assert messages[-1]["value"]["bookmarks"] == {"rows": {"id": 399}}


@kinds
def test_rows_do_not_wait_for_the_next_page(tmp_path: Path, kind: str):
    """What was yielded goes out while the function waits for its source."""
    path = write(tmp_path, kind, "time.sleep(600)")
    process = started(path, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        seen, end = b"", time.monotonic() + 20
        while seen.count(b'"RECORD"') < 100 and time.monotonic() < end:
            seen += process.stdout.read() or b""
            time.sleep(0.05)
        assert seen.count(b'"RECORD"') == 100
    finally:
        process.kill()
        process.communicate()


def test_a_tap_of_bytes_does_not_import_pyarrow(tmp_path: Path):
    path = write(tmp_path, "document", "sys.stderr.write(f'PYARROW {\"pyarrow\" in sys.modules}\\n')")
    ended = burler("run", path, cwd=tmp_path)
    assert ended.code == 0, ended.stderr
    assert "PYARROW False" in ended.stderr and "PYARROW True" not in ended.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory as Linux counts it")
def test_pages_are_not_gathered_ahead(tmp_path: Path):
    """Two hundred pages of a megabyte take the memory of a few."""
    body = """
    import json, re, sys
    import burler
    tap = burler.tap("tap-big")

    @tap.sync("rows", key_properties="id", schema=SCHEMA)
    def feed():
        for i in range(200):
            yield json.dumps([{"id": i * 1000 + j, "text": "x" * 1000} for j in range(1000)]).encode()
            if i in (3, 199):  # less than a pytest that forks has left in ru_maxrss
                peak = re.search("VmHWM: *([0-9]+)", open("/proc/self/status").read().replace("\\t", " "))
                sys.stderr.write(f"PEAK {peak[1]}\\n")
    """
    path = write_tap(tmp_path, body)
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [PYTHON, "-m", "burler", "run", str(path)],
            stdout=out,
            stderr=subprocess.PIPE,
            env=environment(),
            cwd=tmp_path,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    early, late = (int(part.split()[0]) for part in done.stderr.split(b"PEAK ")[1:])
    assert late - early < 15_000  # kB
