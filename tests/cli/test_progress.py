"""How far long work is: drawn on a terminal, a line in a log now and then, and nothing where nobody wants it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tapprocess import environment, write_tap
from terminals import Terminal

from burler.cli import progress as module
from burler.cli.progress import Counter, files, of_run, progress, size
from burler.runtime.report import Report

SLOW = """
import time
import burler

tap = burler.tap("tap-slow")

@tap.sync("rows", schema={"properties": {"id": {"type": "integer"}}})
def rows():
    for i in range(30):
        yield {"id": i}
        time.sleep(0.1)
"""


def test_a_log_has_a_line_now_and_then(caplog):
    caplog.set_level("INFO", logger="burler")
    with progress(lambda: "42 rows", log_seconds=0.1):
        time.sleep(0.35)
    said = [record.getMessage() for record in caplog.records]
    assert 1 <= len(said) <= 4
    assert set(said) == {"42 rows, 0 s"}


@pytest.mark.parametrize("level", ["WARNING", "ERROR"])
def test_a_quiet_log_has_none(caplog, level):
    caplog.set_level(level, logger="burler")
    with progress(lambda: "42 rows", log_seconds=0.02):
        time.sleep(0.1)
    assert caplog.records == []


def test_an_error_in_what_is_said_ends_the_showing_alone(caplog):
    caplog.set_level("INFO", logger="burler")
    with progress(lambda: 1 // 0 and "", log_seconds=0.02):
        time.sleep(0.1)
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []


def test_what_is_said_of_a_run():
    report = Report()
    said = of_run(report)
    assert said() == ""
    report.begin("tap-crm")
    report.stream_began("contacts", method="INCREMENTAL", bookmark=None)
    report.page("contacts", 12_345, "2024-05-01T00:00:00Z")
    assert said() == "contacts: 12,345 rows, at 2024-05-01T00:00:00Z"
    for name in ("notes", "orders"):
        report.stream_began(name, method="FULL_TABLE", bookmark=None)
    assert said() == "notes: 0 rows; orders: 0 rows and 1 more stream"


def test_files_and_sizes():
    told, said = files("checked")
    assert said() == ""
    told(12, 4800)
    assert said() == "checked 12 of 4,800 files"
    assert [size(count) for count in (0, 999, 12_345, 1_500_000, 2_000_000_000)] == [
        "0 B", "999 B", "12.3 kB", "1.5 MB", "2.0 GB",
    ]  # fmt: skip


def test_a_counter_writes_and_counts():
    out: list[bytes] = []
    counter = Counter(out.append)
    counter(b"abc")
    counter(b"de")
    assert (counter.count, b"".join(out)) == (5, b"abcde")


@pytest.mark.parametrize("rich", [True, False])
def test_a_run_on_a_terminal_shows_its_rows_while_it_goes_on(tmp_path: Path, rich: bool):
    write_tap(tmp_path, SLOW)
    path = tmp_path / "path"
    path.mkdir()
    if not rich:
        (path / "rich.py").write_text("raise ImportError('there is none')")
    where = os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH")]))
    terminal = Terminal()
    command = [sys.executable, "-m", "burler", "run", "tap_x.py"]
    started = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal.file, env=environment(PYTHONPATH=where)
    )
    assert started.stdout is not None
    try:
        terminal.wait(lambda lines: any(line.startswith("rows: ") and " rows, " in line for line in lines))
        messages = started.stdout.read()
        assert started.wait(30) == 0
    finally:
        started.stdout.close()
        terminal.close()
    assert messages.count(b'"RECORD"') == 30 and b"\x1b" not in messages


def test_nothing_is_drawn_in_a_log(tmp_path: Path):
    write_tap(tmp_path, SLOW)
    done = subprocess.run(
        [sys.executable, "-m", "burler", "run", "tap_x.py"],
        cwd=tmp_path, capture_output=True, env=environment(), check=True,
    )  # fmt: skip
    assert b"\x1b" not in done.stderr and b"\r" not in done.stderr
    assert module.LOG_SECONDS == 30
